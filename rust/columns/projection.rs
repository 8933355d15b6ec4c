//! The columns that are read from a table: users, items, the times that divide or limit the rows, and values to sum.
//!
//! One column of integers, text or bytes is read as it is. Several columns, other types and periods become one label
//! of bytes (see [`crate::labels::composite`]).

use std::sync::Arc;

use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::columns::joined::JoinedLabels;
use crate::columns::parts::{Columns, Part, kind_of};
use crate::columns::tally::Tally;
use crate::columns::times::{Every, Period};
use crate::columns::values::{Values, require_numbers};
use crate::columns::{Batch, Column};
use crate::error::{Error, Result};
use crate::labels::LabelType;
use crate::labels::composite::{Field, Kind};

/// The most rows whose labels of bytes are made at a time.
const ROWS: usize = 1 << 16;
/// A batch of labels ends if its labels have at least this many bytes. With labels of 8 KiB, `ROWS` rows would take
/// 1 GiB. Rows of usual labels, of at most 32 bytes for users and items each, are not divided by this limit.
const BYTES: usize = 1 << 22;

/// The remedy for numbers in a column of times.
const SECONDS: &str = "seconds since 1970 become timestamps by to_timestamp(...) in SQL, or by \
                       pandas.to_datetime(..., unit=\"s\")";

/// A name and a type.
pub type Named = (String, DataType);

/// The columns of a table that a count reads, with their types.
pub struct Projection {
    user: Side,
    item: Side,
    period: Option<Period>,
    /// The kinds of the columns of users and of items, and whether each is read as it is. A column of the type null has
    /// none.
    kinds: [Vec<Option<(Kind, bool)>>; 2],
}

enum Side {
    Plain(LabelType),
    Joined(Arc<[Field]>),
}

impl Side {
    fn of(columns: &[Named], is_user: bool, is_plain: bool) -> Result<Self> {
        if let ([(name, data_type)], true) = (columns, is_plain)
            && let Ok(label_type) = LabelType::of(data_type, name)
        {
            return Ok(Self::Plain(label_type));
        }
        let is_one = columns.len() == 1;
        let field = |(name, data_type): &Named| -> Result<Field> {
            let kind = kind_of(data_type, name, is_user)?;
            Ok(Field { name: if is_one { "item".into() } else { name.clone() }, kind })
        };
        Ok(Self::Joined(columns.iter().map(field).collect::<Result<Vec<_>>>()?.into()))
    }

    fn label_type(&self) -> LabelType {
        match self {
            Self::Plain(label_type) => *label_type,
            Self::Joined(_) => LabelType::Binary,
        }
    }

    fn fields(&self) -> Option<&Arc<[Field]>> {
        match self {
            Self::Plain(_) => None,
            Self::Joined(fields) => Some(fields),
        }
    }
}

impl Projection {
    /// Selects columns of users and items, a column of times if there is a period, and a column of values if they are
    /// summed.
    ///
    /// # Errors
    /// [`Error::Schema`] if a column cannot have the type. The text names the column.
    pub fn new(
        user: &[Named],
        item: &[Named],
        time: Option<(&Named, Period)>,
        value: Option<&Named>,
    ) -> Result<Self> {
        if let Some((name, data_type)) = value {
            require_numbers(data_type, name)?;
        }
        if let Some(((name, data_type), _)) = time {
            let kind = kind_of(data_type, name, false);
            if !matches!(kind, Ok(Kind::Text | Kind::Date | Kind::Time { .. })) {
                return Err(Error::Schema(format!(
                    "the column {name:?} is of the type {data_type}, which cannot hold times: give timestamps, dates \
                     or text; {SECONDS}"
                )));
            }
        }
        let period = time.as_ref().map(|(_, period)| period);
        let kinds = |columns: &[Named], side: &Side, is_user: bool| {
            let is_plain = matches!(side, Side::Plain(_));
            let kind = |(name, data_type): &Named| match data_type {
                DataType::Null => Ok(None),
                _ => Ok(Some((kind_of(data_type, name, is_user)?, is_plain))),
            };
            columns.iter().map(kind).collect::<Result<Vec<_>>>()
        };
        let own = Side::of(user, true, period.is_none_or(|period| period.unit.is_none()))?;
        let other = Side::of(item, false, !period.is_some_and(Period::limits_items))?;
        let kinds = [kinds(user, &own, true)?, kinds(item, &other, false)?];
        let mut projection = Self { user: own, item: other, period: None, kinds };
        let Some(((name, _), period)) = time else { return Ok(projection) };
        if let (Some(every), Side::Joined(fields)) = (period.every, &projection.item) {
            let kind = match every {
                Every::Hour => Kind::Time { has_nanos: false, is_zoned: false },
                _ => Kind::Date,
            };
            let first = Field { name: name.clone(), kind };
            let named = item
                .iter()
                .zip(fields.iter())
                .map(|((name, _), field)| Field { name: name.clone(), kind: field.kind });
            projection.item = Side::Joined(std::iter::once(first).chain(named).collect());
        }
        projection.period = Some(period);
        Ok(projection)
    }

    /// Returns the types of users and items.
    #[must_use]
    pub fn types(&self) -> (LabelType, LabelType) {
        (self.user.label_type(), self.item.label_type())
    }

    /// Returns the columns of items, or `None` if they are one column of integers, text or bytes.
    #[must_use]
    pub fn fields(&self) -> Option<&Arc<[Field]>> {
        self.item.fields()
    }

    /// Returns whether all columns of users, or of items, have a type. Without one, all rows lack a label.
    #[must_use]
    pub fn is_typed(&self, is_user: bool) -> bool {
        self.kinds[usize::from(!is_user)].iter().all(Option::is_some)
    }

    /// Returns for each of [`Self::fields`] whether its column has no type.
    #[must_use]
    pub fn untyped_fields(&self) -> Vec<bool> {
        let periods = self.period.as_ref().and_then(|period| period.every).map(|_| false);
        periods.into_iter().chain(self.kinds[1].iter().map(Option::is_none)).collect()
    }

    /// Returns whether users, or items, have the same types as those of another projection. A column without a type is
    /// like every other.
    #[must_use]
    pub fn is_like(&self, other: &Self, is_user: bool) -> bool {
        let [own, others] = [self, other].map(|one| &one.kinds[usize::from(!is_user)]);
        own.len() == others.len()
            && own
                .iter()
                .zip(others)
                .all(|(own, other)| own.is_none() || other.is_none() || own == other)
    }

    /// Adds the rows of some columns to a tally. The columns have the types of the projection and equal lengths.
    ///
    /// # Errors
    /// [`Error::Input`] if a buffer is missing or too short.
    pub fn tally(&self, columns: Columns, tally: &mut Tally) -> Result<()> {
        let is_joined = |side: &Side| matches!(side, Side::Joined(_));
        tally.add(columns, self.period.as_ref(), (is_joined(&self.user), is_joined(&self.item)))
    }

    /// Returns the rows of some columns, which have the types of the projection and equal lengths.
    ///
    /// # Errors
    /// [`Error::Input`] if a buffer is missing or too short.
    pub fn rows(&self, columns: Columns) -> Result<Rows> {
        if !(self.is_typed(true) && self.is_typed(false)) {
            return Ok(Rows(Inner::Whole(None)));
        }
        let len = columns.user.first().map_or(0, ArrayData::len);
        if matches!((&self.user, &self.item, &self.period), (Side::Plain(_), Side::Plain(_), None))
        {
            let (Some(users), Some(items)) = (columns.user.first(), columns.item.first()) else {
                return Err(Error::Internal);
            };
            let (users, items) = (Column::new(users.clone())?, Column::new(items.clone())?);
            let values = columns.value.map(Values::new).transpose()?;
            return Ok(Rows(Inner::Whole(Some(Box::new(Batch { users, items, values })))));
        }
        let parts = |columns: &[ArrayData]| {
            columns.iter().cloned().map(Part::new).collect::<Result<Vec<_>>>()
        };
        let user = match self.user {
            Side::Plain(_) => Read::Plain(columns.user.into_iter().next().ok_or(Error::Internal)?),
            Side::Joined(_) => Read::Parts(parts(&columns.user)?),
        };
        let item = match self.item {
            Side::Plain(_) => Read::Plain(columns.item.into_iter().next().ok_or(Error::Internal)?),
            Side::Joined(_) => Read::Parts(parts(&columns.item)?),
        };
        let time = columns.time.map(Part::new).transpose()?.zip(self.period.clone());
        let value = columns.value;
        Ok(Rows(Inner::Joined(Box::new(Joined { user, item, time, value, at: 0, len }))))
    }
}

/// The rows of some arrays as batches.
pub struct Rows(Inner);

enum Inner {
    Whole(Option<Box<Batch>>),
    Joined(Box<Joined>),
}

struct Joined {
    user: Read,
    item: Read,
    time: Option<(Part, Period)>,
    value: Option<ArrayData>,
    at: usize,
    len: usize,
}

enum Read {
    Plain(ArrayData),
    Parts(Vec<Part>),
}

impl Iterator for Rows {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Inner::Whole(batch) => batch.take().map(|batch| Ok(*batch)),
            Inner::Joined(joined) => joined.next(),
        }
    }
}

impl Joined {
    fn next(&mut self) -> Option<Result<Batch>> {
        if self.at == self.len {
            return None;
        }
        let start = self.at;
        Some(self.batch(start, self.len.min(start + ROWS)))
    }

    /// Returns the batch of the rows from `start` to at most `end`. A batch has at least one row.
    fn batch(&mut self, start: usize, end: usize) -> Result<Batch> {
        let (mut users, mut items) = (JoinedLabels::of_users(), JoinedLabels::of_items());
        let time = self.time.as_ref();
        let of_users = time.filter(|(_, period)| period.unit.is_some());
        let of_items = time.filter(|(_, period)| period.limits_items());
        while self.at < end && users.size() + items.size() < BYTES {
            if let Read::Parts(parts) = &self.user {
                users.push(parts, of_users, self.at)?;
            }
            if let Read::Parts(parts) = &self.item {
                items.push(parts, of_items, self.at)?;
            }
            self.at += 1;
        }
        let column = |read: &Read, labels: JoinedLabels| {
            Column::new(match read {
                Read::Plain(data) => data.slice(start, self.at - start),
                Read::Parts(_) => labels.into_data(),
            })
        };
        let values = self.value.as_ref().map(|data| data.slice(start, self.at - start));
        Ok(Batch {
            users: column(&self.user, users)?,
            items: column(&self.item, items)?,
            values: values.map(Values::new).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, Decimal128Array, StringArray};

    use super::*;

    fn batches(users: ArrayData, items: Vec<ArrayData>) -> Vec<Batch> {
        let named = |place: usize, data: &ArrayData| (place.to_string(), data.data_type().clone());
        let all: Vec<_> =
            items.iter().enumerate().map(|(place, data)| named(place, data)).collect();
        let projection = Projection::new(&[named(9, &users)], &all, None, None).unwrap();
        let columns = Columns { user: vec![users], item: items, time: None, value: None };
        let rows = projection.rows(columns).unwrap();
        rows.collect::<Result<_>>().unwrap()
    }

    fn is_missing(items: &Column) -> Vec<bool> {
        (0..items.len()).map(|row| items.is_null(row)).collect()
    }

    #[test]
    fn batches_of_long_joined_labels_are_divided_by_their_bytes() {
        let len = 3000;
        let text =
            StringArray::from_iter_values((0..len).map(|row| format!("{row:04}").repeat(1000)));
        let (text, users) =
            (text.into_data(), StringArray::from_iter_values((0..len).map(|row| row.to_string())));
        let found = batches(users.into_data(), vec![text.clone(), text]);
        assert_eq!(found.iter().map(|batch| batch.items.len()).sum::<usize>(), len);
        let (label, most) = (2 * ("s4000:".len() + 4000), BYTES);
        for batch in &found {
            assert_eq!(batch.users.len(), batch.items.len());
            assert!(batch.items.len() * label < most + label);
            assert!(is_missing(&batch.items).iter().all(|&missing| !missing));
        }
        assert_eq!(found.len(), len.div_ceil(most.div_ceil(label)));
        let short =
            StringArray::from_iter_values((0..=ROWS).map(|row| row.to_string())).into_data();
        let found = batches(short.clone(), vec![short.clone(), short]);
        assert_eq!(found.iter().map(|batch| batch.users.len()).collect::<Vec<_>>(), [ROWS, 1]);
    }

    #[test]
    fn decimals_beyond_64_bits_are_null_as_items_but_not_as_users() {
        let cells = [7, i128::from(i64::MAX), i128::from(i64::MAX) + 1, i128::MIN];
        let decimals = |digits| {
            Decimal128Array::from_iter_values(cells)
                .with_precision_and_scale(digits, 0)
                .unwrap()
                .into_data()
        };
        // An unsafe cast leaves cells of more digits than the type has.
        let narrow = decimals(38).into_builder().data_type(DataType::Decimal128(18, 0));
        let narrow = narrow.build().unwrap();
        let found = batches(decimals(38), vec![narrow]);
        assert_eq!(is_missing(&found[0].items), [false, false, true, true]);
        assert_eq!(is_missing(&found[0].users), [false; 4]);
    }
}
