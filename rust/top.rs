//! The largest counts, in one total order that no input order can change: count descending, then label.

use std::cmp::Ordering;

use crate::labels::Labels;

/// The numbers of the `n` rows with the largest counts, in order; all of them where there are fewer.
///
/// `counts` must be as long as `labels`.
#[must_use]
pub fn top(labels: &Labels, counts: &[i64], n: usize) -> Vec<usize> {
    let order = |&a: &usize, &b: &usize| -> Ordering {
        counts[b].cmp(&counts[a]).then_with(|| labels.compare(a, b))
    };
    let mut rows: Vec<usize> = (0..counts.len()).collect();
    if n == 0 {
        return Vec::new();
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
}
