//! Dates and times: text in ISO 8601, and the hour, day, week or month of a moment.
//!
//! A moment is a number of microseconds since 1970 in UTC. Years are 1 to 9999: only these have one form of text
//! that all libraries read.

use std::io::Write;

use crate::labels::composite::{Kind, push_cell};

const DAY: i64 = 86_400_000_000;
const HOUR: i64 = 3_600_000_000;
/// The first and the last day, from 0001-01-01 to 9999-12-31.
const DAYS: std::ops::RangeInclusive<i64> = -719_162..=2_932_896;
/// The largest offset from UTC, in seconds. `java.time` allows 18 hours, and ISO 8601 in use at most 14.
const MOST_OFFSET: i64 = 18 * 3600;

/// The length of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week, which begins on Monday.
    Week,
    /// A month.
    Month,
}

impl Every {
    /// Returns the period of a name such as `1d`.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "1h" => Self::Hour,
            "1d" => Self::Day,
            "1w" => Self::Week,
            "1mo" => Self::Month,
            _ => return None,
        })
    }

    /// Returns the number of a moment's period. Two moments have the same number if they are in the same period.
    #[must_use]
    pub fn number(self, moment: i64) -> i64 {
        let days = moment.div_euclid(DAY);
        match self {
            Self::Hour => moment.div_euclid(HOUR),
            Self::Day => days,
            // 1970-01-01 is a Thursday.
            Self::Week => (days + 3).div_euclid(7),
            Self::Month => {
                let (year, month, _) = civil(days);
                12 * year + i64::from(month)
            }
        }
    }

    /// Adds the beginning of a moment's period: a date, or a time for hours. Returns false if the year is out of range.
    pub fn push_start(self, moment: i64, out: &mut Vec<u8>) -> bool {
        let days = moment.div_euclid(DAY);
        match self {
            Self::Hour => push_time(moment.div_euclid(HOUR) * 3600, 0, false, out),
            Self::Day => push_date(days, out),
            // 1970-01-01 is a Thursday.
            Self::Week => push_date(days - (days + 3).rem_euclid(7), out),
            Self::Month => push_date(days - i64::from(civil(days).2) + 1, out),
        }
    }
}

/// How times divide and limit the rows of a table. Limits are microseconds since 1970 in UTC.
#[derive(Debug, Clone, Default)]
pub struct Period {
    /// The length of the periods that are part of an item.
    pub every: Option<Every>,
    /// The length of the periods that are part of a user.
    pub unit: Option<Every>,
    /// The first moment that counts.
    pub since: Option<i64>,
    /// The first moment afterwards that does not count.
    pub until: Option<i64>,
}

impl Period {
    pub(crate) fn has(&self, moment: i64) -> bool {
        self.since.is_none_or(|since| since <= moment)
            && self.until.is_none_or(|until| moment < until)
    }

    /// Adds the period of a moment to the label of an item, if it is part of items. Returns false if the year is out of
    /// range.
    pub(crate) fn push_every(&self, moment: i64, label: &mut Vec<u8>, cell: &mut Vec<u8>) -> bool {
        let Some(every) = self.every else { return true };
        cell.clear();
        let is_known = every.push_start(moment, cell);
        push_cell(label, if every == Every::Hour { b't' } else { b'd' }, cell);
        is_known
    }

    /// Adds the period of a moment to the label of a user, if it is part of users. Nobody reads these labels, so it is
    /// a number.
    pub(crate) fn push_unit(&self, moment: i64, label: &mut Vec<u8>) {
        if let Some(unit) = self.unit {
            push_cell(label, b'p', &unit.number(moment).to_le_bytes());
        }
    }

    /// Returns whether the labels of items show which rows do not count. Otherwise those of users do.
    pub(super) fn limits_items(&self) -> bool {
        self.every.is_some() || self.unit.is_none()
    }
}

/// Adds a day as text, such as 2026-01-31. Returns false if the year is out of range.
pub fn push_date(days: i64, out: &mut Vec<u8>) -> bool {
    let is_known = DAYS.contains(&days);
    if is_known {
        let (year, month, day) = civil(days);
        push(out, format_args!("{year:04}-{month:02}-{day:02}"));
    }
    is_known
}

/// Returns a listed cell as the cells of a column of this kind are written, or `None` if the column cannot hold it.
#[must_use]
pub fn written(kind: Kind, cell: &[u8]) -> Option<Vec<u8>> {
    let text = || std::str::from_utf8(cell).ok();
    let mut out = Vec::new();
    let fits = match kind {
        Kind::Signed => text()?.parse::<i64>().is_ok(),
        Kind::Unsigned => text()?.parse::<u64>().is_ok(),
        Kind::Text | Kind::Binary => true,
        Kind::Bool => matches!(cell, b"true" | b"false"),
        Kind::Date => {
            let (seconds, nanos) = parse(cell)?;
            let is_day = nanos == 0 && seconds.rem_euclid(86_400) == 0;
            return (is_day && push_date(seconds.div_euclid(86_400), &mut out)).then_some(out);
        }
        Kind::Time { has_nanos, is_zoned } => {
            let (seconds, nanos) = parse(cell)?;
            let is_exact = if has_nanos {
                nanoseconds(seconds, nanos).is_some()
            } else {
                nanos.is_multiple_of(1000)
            };
            return (is_exact && push_time(seconds, nanos, is_zoned, &mut out)).then_some(out);
        }
    };
    fits.then(|| cell.to_vec())
}

/// Adds a time as text, such as 2026-01-31T12:00:00.5, with a `Z` if it has a zone. Returns false if the year is out of
/// range.
pub fn push_time(seconds: i64, nanos: u32, is_zoned: bool, out: &mut Vec<u8>) -> bool {
    if !push_date(seconds.div_euclid(86_400), out) {
        return false;
    }
    let second = seconds.rem_euclid(86_400);
    push(out, format_args!("T{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60));
    if !nanos.is_multiple_of(1000) {
        push(out, format_args!(".{nanos:09}"));
    } else if nanos > 0 {
        push(out, format_args!(".{:06}", nanos / 1000));
    }
    if is_zoned {
        out.push(b'Z');
    }
    true
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = out.write_fmt(text);
}

/// Returns the moment of seconds and nanoseconds, or `None` if the year is out of range.
#[must_use]
pub fn moment(seconds: i64, nanos: u32) -> Option<i64> {
    let is_known = DAYS.contains(&seconds.div_euclid(86_400));
    is_known.then(|| seconds * 1_000_000 + i64::from(nanos / 1000))
}

/// Returns the nanoseconds since 1970, or `None` if the years 1677 to 2262 of this type do not have the time. The least
/// number is not a time: pandas and numpy take it for a missing one.
#[must_use]
pub fn nanoseconds(seconds: i64, nanos: u32) -> Option<i64> {
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    i64::try_from(all).ok().filter(|&all| all > i64::MIN)
}

/// Parses a date, or a date and a time with an optional offset from UTC, into seconds since 1970 in UTC and
/// nanoseconds. A time without an offset is in UTC.
///
/// Reads 2026-01-31, 2026-01-31T12:00, a space instead of the `T`, slashes, seconds with a fraction, and the offsets
/// `Z`, `UTC`, `+01`, `+0100` and `+01:00`, also after a space.
#[must_use]
pub fn parse(text: &[u8]) -> Option<(i64, u32)> {
    let mut rest = text.trim_ascii();
    let year = number(&mut rest, 4, 4)?;
    let separator = *rest.first().filter(|mark| matches!(mark, b'-' | b'/'))?;
    skip(&mut rest, separator)?;
    let month = number(&mut rest, 1, 2)?;
    skip(&mut rest, separator)?;
    let day = number(&mut rest, 1, 2)?;
    let days = days_of(year, month, day)?;
    let Some((mark, time)) = rest.split_first() else { return Some((days * 86_400, 0)) };
    if !matches!(mark, b'T' | b't' | b' ') {
        return None;
    }
    rest = time;
    let hour = number(&mut rest, 1, 2)?;
    skip(&mut rest, b':')?;
    let minute = number(&mut rest, 2, 2)?;
    let (mut second, mut nanos) = (0, 0);
    if skip(&mut rest, b':').is_some() {
        second = number(&mut rest, 2, 2)?;
        if skip(&mut rest, b'.').is_some() {
            let digits = rest.iter().take_while(|digit| digit.is_ascii_digit()).count();
            let fraction = rest[..digits].iter().chain(&[b'0'; 9]).take(9);
            nanos = fraction.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            rest = &rest[digits..];
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset(rest)?;
    DAYS.contains(&seconds.div_euclid(86_400)).then_some((seconds, nanos))
}

/// Parses an offset from UTC into seconds.
fn offset(text: &[u8]) -> Option<i64> {
    let mut rest = text.trim_ascii_start();
    let sign = match rest {
        [] | [b'Z' | b'z'] => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return rest.eq_ignore_ascii_case(b"utc").then_some(0),
    };
    rest = &rest[1..];
    let hours = number(&mut rest, 2, 2)?;
    let mut minutes = 0;
    if !rest.is_empty() {
        let _ = skip(&mut rest, b':');
        minutes = number(&mut rest, 2, 2)?;
    }
    let seconds = hours * 3600 + minutes * 60;
    (rest.is_empty() && minutes < 60 && seconds <= MOST_OFFSET).then_some(sign * seconds)
}

/// Parses a number of `least` to `most` digits.
fn number(rest: &mut &[u8], least: usize, most: usize) -> Option<i64> {
    let digits = rest.iter().take(most).take_while(|digit| digit.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    (digits >= least)
        .then(|| number.iter().fold(0, |sum, &digit| sum * 10 + i64::from(digit - b'0')))
}

fn skip(rest: &mut &[u8], mark: u8) -> Option<()> {
    let after = rest.strip_prefix(&[mark])?;
    *rest = after;
    Some(())
}

/// Returns the days since 1970 of a date, or `None` if there is no such date.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if year < 1 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is the last day of a year.
    let years = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let days = years * 365 + years / 4 - years / 100 + years / 400;
    let days = days + (months * 153 + 2) / 5 + day - 1 - 719_468;
    (civil(days) == (year, month as u8, day as u8)).then_some(days)
}

/// Returns year, month and day of days since 1970.
fn civil(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let years = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * years + years / 4 - years / 100);
    let months = (5 * day + 2) / 153;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = years + era * 400 + i64::from(month <= 2);
    (year, month as u8, (day - (153 * months + 2) / 5 + 1) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(work: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<String> {
        let mut out = Vec::new();
        work(&mut out).then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn each_day_of_all_years_is_read_as_it_is_written() {
        let mut last = String::new();
        for days in DAYS {
            let text = written(|out| push_date(days, out)).unwrap();
            assert_eq!(parse(text.as_bytes()), Some((days * 86_400, 0)));
            assert!(text > last);
            last = text;
        }
        assert_eq!(last, "9999-12-31");
        assert_eq!(written(|out| push_date(DAYS.start() - 1, out)), None);
        assert_eq!(written(|out| push_date(DAYS.end() + 1, out)), None);
    }

    #[test]
    fn times_are_read_in_utc() {
        let noon = 1_769_860_800;
        for text in [
            "2026-01-31T12:00",
            "2026-01-31 12:00:00",
            "2026-01-31T12:00:00Z",
            "2026-01-31 12:00:00 UTC",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31 13:00 +0100",
            "2026-01-31T06:30:00.0-05:30",
            " 2026/1/31 12:00 ",
            "2026-02-01T06:00+18",
        ] {
            assert_eq!(parse(text.as_bytes()), Some((noon, 0)), "{text}");
        }
        assert_eq!(parse(b"2026-01-31T12:00:00.1234567891"), Some((noon, 123_456_789)));
        assert_eq!(parse(b"1969-12-31T23:59:59.5"), Some((-1, 500_000_000)));
        for text in [
            "",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-01-31T24:00",
            "2026-01-31T12:60",
            "2026-01-31T12",
            "2026-01-31T12:00+19",
            "2026-01-31T12:00+01:60",
            "2026-01/31",
            "0000-01-01",
            "12026-01-01",
            "2026-01-31x",
            "2026-01-31T12:00 Europe/Berlin",
            "31.01.2026",
            "0001-01-01T00:00+01",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn periods_begin_on_the_hour_at_midnight_on_monday_and_on_the_first() {
        let starts = |text: &str| {
            let (seconds, nanos) = parse(text.as_bytes()).unwrap();
            let moment = moment(seconds, nanos).unwrap();
            [Every::Hour, Every::Day, Every::Week, Every::Month]
                .map(|every| written(|out| every.push_start(moment, out)).unwrap())
        };
        let found = starts("2026-02-01T12:34:56.7");
        assert_eq!(found, ["2026-02-01T12:00:00", "2026-02-01", "2026-01-26", "2026-02-01"]);
        let found = starts("1969-12-31T23:59:59.999999");
        assert_eq!(found, ["1969-12-31T23:00:00", "1969-12-31", "1969-12-29", "1969-12-01"]);
    }

    #[test]
    fn periods_have_one_number_for_each_beginning() {
        // All hours of two years around 1970, and a day of each half month of all years.
        let hours = (-8784..8784).map(|hour| hour * HOUR + hour.rem_euclid(59) * 60_000_000);
        let moments = hours.chain(DAYS.step_by(15).map(|day| day * DAY + DAY - 1));
        let mut moments: Vec<_> = moments.collect();
        moments.sort_unstable();
        for every in [Every::Hour, Every::Day, Every::Week, Every::Month] {
            let start = |moment| written(|out| every.push_start(moment, out)).unwrap();
            for pair in moments.windows(2) {
                let is_same = start(pair[0]) == start(pair[1]);
                assert_eq!(every.number(pair[0]) == every.number(pair[1]), is_same);
                assert!(every.number(pair[0]) <= every.number(pair[1]));
            }
        }
    }

    #[test]
    fn a_column_of_nanoseconds_holds_the_times_of_its_numbers_alone() {
        let nanos = Kind::Time { has_nanos: true, is_zoned: false };
        for (text, is_held) in [
            ("1677-09-21T00:12:43.145224192", false),
            ("1677-09-21T00:12:43.145224193", true),
            ("2262-04-11T23:47:16.854775807", true),
            ("2262-04-11T23:47:16.854775808", false),
            ("9999-12-31", false),
        ] {
            let cell = super::written(nanos, text.as_bytes());
            assert_eq!(cell, is_held.then(|| text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn fractions_are_written_with_six_or_nine_digits() {
        assert_eq!(written(|out| push_time(0, 0, true, out)).unwrap(), "1970-01-01T00:00:00Z");
        assert_eq!(
            written(|out| push_time(0, 5000, false, out)).unwrap(),
            "1970-01-01T00:00:00.000005"
        );
        assert_eq!(
            written(|out| push_time(-1, 5, false, out)).unwrap(),
            "1969-12-31T23:59:59.000000005"
        );
    }
}
