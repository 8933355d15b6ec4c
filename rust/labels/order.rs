//! The order of rows: by descending count, then by label. The order depends on nothing else.

use std::cmp::Reverse;

use crate::labels::Labels;

/// The bits of a radix sort's digit: 256 buckets, whose ends stay in the first-level cache.
const DIGIT: u32 = 8;
const BUCKETS: usize = 1 << DIGIT;
/// Fewer counts than this are sorted by comparison, which is faster than clearing buckets.
const FEW: usize = 1 << 10;

/// The most rows of equal counts whose labels' beginnings are copied, to 32 MiB.
const MANY: usize = 1 << 20;

/// Returns the places of all `counts` in order. The label of place `i` is the one of row `row(i)`.
///
/// A million noisy counts are sorted by radix in a quarter of the time of comparisons. Only rows of equal counts read
/// their labels, each once: the first 16 bytes usually decide.
#[must_use]
pub fn order(labels: &Labels, counts: &[i64], row: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut places = by_count(counts);
    let mut beginnings = Vec::new();
    for tie in places.chunk_by_mut(|&a, &b| counts[a] == counts[b]) {
        if tie.len() > 1 {
            sort_by_label(labels, &row, tie, &mut beginnings);
        }
    }
    places
}

/// Returns the places of counts in descending order of the counts. Equal counts keep their order.
fn by_count(counts: &[i64]) -> Vec<usize> {
    let (Some(&least), Some(&most)) = (counts.iter().min(), counts.iter().max()) else {
        return Vec::new();
    };
    let place_bits = usize::BITS - (counts.len() - 1).leading_zeros();
    let key_bits = u64::BITS - most.abs_diff(least).leading_zeros();
    if key_bits + place_bits > u64::BITS {
        let mut places: Vec<usize> = (0..counts.len()).collect();
        places.sort_by_key(|&place| Reverse(counts[place]));
        return places;
    }
    let packed = |(&count, place): (&i64, u64)| (most.abs_diff(count) << place_bits) | place;
    let mut packed: Vec<u64> = counts.iter().zip(0..).map(packed).collect();
    if packed.len() < FEW {
        packed.sort_unstable();
    } else {
        sort_by_bits(&mut packed, place_bits, key_bits);
    }
    let places = (1_u64 << place_bits) - 1;
    packed.into_iter().map(|packed| (packed & places) as usize).collect()
}

/// Sorts numbers by some of their bits, stably, one digit at a time from the lowest.
fn sort_by_bits(numbers: &mut Vec<u64>, first: u32, bits: u32) {
    let mut sorted = vec![0; numbers.len()];
    for shift in (first..first + bits).step_by(DIGIT as usize) {
        let digit = |number: u64| (number >> shift) as usize % BUCKETS;
        let mut starts = [0; BUCKETS];
        for &number in numbers.iter() {
            starts[digit(number)] += 1;
        }
        let mut next = 0;
        for start in &mut starts {
            next += std::mem::replace(start, next);
        }
        for &number in numbers.iter() {
            let start = &mut starts[digit(number)];
            sorted[*start] = number;
            *start += 1;
        }
        std::mem::swap(numbers, &mut sorted);
    }
}

fn sort_by_label(
    labels: &Labels,
    row: &impl Fn(usize) -> usize,
    places: &mut [usize],
    beginnings: &mut Vec<(u128, usize)>,
) {
    let strings = match labels {
        Labels::Signed(values) => return places.sort_unstable_by_key(|&place| values[row(place)]),
        Labels::Unsigned(values) => {
            return places.sort_unstable_by_key(|&place| values[row(place)]);
        }
        Labels::Text(strings) | Labels::Binary(strings) => strings,
    };
    let string = |place: usize| strings.get(row(place));
    if places.len() > MANY {
        return places.sort_unstable_by_key(|&place| string(place));
    }
    beginnings.clear();
    beginnings.extend(places.iter().map(|&place| (beginning(string(place)), place)));
    // A stable sort merges runs that are in order. Rows of equal counts come from few true counts, and those of each are
    // in the order of their labels.
    beginnings.sort_by(|&(a, place), &(b, other)| {
        a.cmp(&b).then_with(|| string(place).cmp(string(other)))
    });
    for (place, &(_, next)) in places.iter_mut().zip(beginnings.iter()) {
        *place = next;
    }
}

/// Returns the first 16 bytes of a string as a number that orders strings as their bytes do. Zeros follow a shorter
/// string, so equal numbers do not decide.
fn beginning(string: &[u8]) -> u128 {
    if let Some(&bytes) = string.first_chunk() {
        return u128::from_be_bytes(bytes);
    }
    let mut padded = [0; 16];
    padded[..string.len()].copy_from_slice(string);
    u128::from_be_bytes(padded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelType;

    /// Returns the order by a sort that compares counts and labels.
    fn compared(labels: &Labels, counts: &[i64], row: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut places: Vec<usize> = (0..counts.len()).collect();
        places.sort_by(|&a, &b| {
            counts[b].cmp(&counts[a]).then_with(|| labels.compare(row(a), row(b)))
        });
        places
    }

    #[test]
    fn the_order_equals_a_sort_by_comparison() {
        for label_type in
            [LabelType::Signed, LabelType::Unsigned, LabelType::Text, LabelType::Binary]
        {
            for rows in [0, 1, 2, FEW - 1, FEW, 5_000] {
                let mut labels = Labels::new(label_type);
                for row in 0..rows as u64 {
                    let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    if label_type.is_integer() {
                        labels.push_integer(mixed);
                    } else {
                        // Zeros at the end, equal beginnings of 16 bytes, and shorter strings.
                        let text = format!("{:0>1$}{mixed}", "", mixed as usize % 20);
                        labels.push_bytes(if row == 0 { b"0\0" } else { text.as_bytes() });
                    }
                }
                let spans: [fn(i64) -> i64; 4] = [
                    |_| 7,
                    |row| row * 7_919 % 31 - 9,
                    |row| row * 104_729 % 70_001,
                    |row| if row % 3 == 0 { i64::MIN } else { i64::MAX - row % 5 },
                ];
                for count in spans {
                    let counts: Vec<i64> = (0..rows as i64).map(count).collect();
                    let row = |place| rows - 1 - place;
                    assert_eq!(order(&labels, &counts, row), compared(&labels, &counts, row));
                }
            }
        }
    }
}
