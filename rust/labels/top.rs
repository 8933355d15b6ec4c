//! Selects the largest counts. Rows are ordered by descending count and then by label, so the result
//! does not depend on the order of the input.

use std::cmp::Ordering;

use crate::labels::Labels;
use crate::labels::order::order;

/// Counts compared at a time. Usually none of these counts is among the largest.
const AT_ONCE: usize = 64;

/// Returns the rows of the `n` largest counts in order, or all rows if there are fewer.
///
/// `counts` must be as long as `labels`. The counts are read once. At most 2 `n` row numbers are in
/// memory at a time, or 1,024 if this is more.
#[must_use]
pub fn top(labels: &Labels, counts: &[i64], n: usize) -> Vec<usize> {
    if n >= counts.len() {
        return order(labels, counts, |row| row);
    }
    let order = |&a: &usize, &b: &usize| -> Ordering {
        counts[b].cmp(&counts[a]).then_with(|| labels.compare(a, b))
    };
    if n == 0 {
        return Vec::new();
    }
    let most = n.saturating_mul(2).max(1 << 10);
    let mut rows: Vec<usize> = Vec::with_capacity(most.min(counts.len()));
    // The last of the `n` first rows in order, as of the last truncation.
    let mut last: Option<usize> = None;
    for (chunk, start) in counts.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
        if last.is_some_and(|last| chunk.iter().all(|&count| count < counts[last])) {
            continue;
        }
        for row in start..start + chunk.len() {
            if last.is_some_and(|last| order(&row, &last) == Ordering::Greater) {
                continue;
            }
            if rows.len() == most {
                rows.select_nth_unstable_by(n - 1, order);
                rows.truncate(n);
                last = Some(rows[n - 1]);
            }
            rows.push(row);
        }
    }
    if n < rows.len() {
        rows.select_nth_unstable_by(n - 1, order);
        rows.truncate(n);
    }
    rows.sort_unstable_by(order);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::LabelType;

    #[test]
    fn ties_are_broken_by_label() {
        let mut labels = Labels::new(LabelType::Text);
        for label in ["d", "c", "b", "a"] {
            labels.push_bytes(label.as_bytes());
        }
        assert_eq!(top(&labels, &[1, 2, 2, 2], 2), [3, 2]);
        assert_eq!(top(&labels, &[1, 2, 2, 2], 9), [3, 2, 1, 0]);
        assert!(top(&labels, &[1, 2, 2, 2], 0).is_empty());
    }

    #[test]
    fn the_largest_counts_equal_the_first_rows_of_a_sort() {
        let rows = 20_000_i64;
        let labels = Labels::Signed((0..rows).map(|row| row * 7_919 % rows).collect());
        let orders: [fn(i64) -> i64; 4] =
            [|row| row, |row| -row, |row| row * 104_729 % 5_003, |row| i64::from(row > 9_000)];
        for of_row in orders {
            let counts: Vec<i64> = (0..rows).map(of_row).collect();
            let mut sorted: Vec<usize> = (0..counts.len()).collect();
            sorted.sort_by(|&a, &b| counts[b].cmp(&counts[a]).then_with(|| labels.compare(a, b)));
            for n in [1, 2, 500, 9_999, 10_000, 19_999, 20_000, 30_000] {
                assert_eq!(top(&labels, &counts, n), sorted[..n.min(counts.len())]);
            }
        }
    }
}
