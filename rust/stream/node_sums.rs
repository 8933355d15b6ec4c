//! The sums of every item's noise over the nodes of a round.
//!
//! The table has a row for each node. A row holds the sum of an item's noise at this node and at the
//! nodes before it. Only the last nodes change from one round to the next. So a round usually draws
//! one noise value for each item, and one pass over the items draws it, adds it and stores the sum.

use crate::noise::Sampler;
use crate::random::parallel::FEW_ROWS;
use crate::stream::node_noise::NodeNoise;

/// A node of a round: its number, the scale of its noise, and the sampler of this noise.
pub type Node<'a> = (u64, f64, &'a Sampler);

/// Sums of noise have 32 bits up to this scale. They overflow with a chance of about `e^-2000`, far
/// below the rounding of the thresholds.
const NARROW: f64 = (1 << 22) as f64;

/// The sums of the noise of all items over the nodes of the latest round.
#[derive(Default)]
pub struct NodeSums {
    nodes: Vec<(u64, f64)>,
    rows: Rows,
}

/// The sums by node and item.
enum Rows {
    Narrow(Vec<Vec<i32>>),
    Wide(Vec<Vec<i64>>),
}

impl Default for Rows {
    fn default() -> Self {
        Self::Narrow(Vec::new())
    }
}

impl NodeSums {
    /// Return the sums of all items over the nodes of a round. Nodes that begin like those of the
    /// latest round are not drawn again, except for new items.
    pub fn advance(&mut self, noise: &mut NodeNoise, nodes: &[Node<'_>]) -> Vec<i64> {
        let kept = nodes.iter().zip(&self.nodes).take_while(|(new, old)| (new.0, new.1) == **old);
        let kept = kept.count();
        if let Rows::Narrow(rows) = &mut self.rows
            && nodes.iter().any(|node| node.1 > NARROW)
        {
            let wide = |row: Vec<i32>| row.into_iter().map(i64::from).collect();
            self.rows = Rows::Wide(std::mem::take(rows).into_iter().map(wide).collect());
        }
        self.nodes = nodes.iter().map(|node| (node.0, node.1)).collect();
        match &mut self.rows {
            Rows::Narrow(rows) => advance(rows, noise, nodes, kept),
            Rows::Wide(rows) => advance(rows, noise, nodes, kept),
        }
    }
}

/// An integer of the table. A sum that overflows wraps around.
trait Sum: Copy + Default + Into<i64> + Send + Sync {
    fn plus(self, noise: i64) -> Self;
}

impl Sum for i32 {
    fn plus(self, noise: i64) -> Self {
        self.wrapping_add(noise as i32)
    }
}

impl Sum for i64 {
    fn plus(self, noise: i64) -> Self {
        self.wrapping_add(noise)
    }
}

/// Bring the rows of these nodes up to date, of which the first `kept` hold all earlier items.
fn advance<T: Sum>(
    rows: &mut Vec<Vec<T>>,
    noise: &mut NodeNoise,
    nodes: &[Node<'_>],
    kept: usize,
) -> Vec<i64> {
    let items = noise.items();
    rows.resize_with(rows.len().max(nodes.len()), Vec::new);
    for (depth, &(node, _, law)) in nodes[..kept].iter().enumerate() {
        let known = rows[depth].len().min(items);
        grow(&mut rows[depth], items);
        if known < items {
            let (before, row) = split(rows, depth);
            for (place, z) in (known..).zip(noise.draw_from(known, node, law)) {
                row[place] = before.map_or_else(T::default, |before| before[place]).plus(z);
            }
        }
    }
    let mut sums = vec![0; items];
    for (depth, &(node, _, law)) in nodes.iter().enumerate().skip(kept) {
        grow(&mut rows[depth], items);
        let (before, row) = split(rows, depth);
        let cells = row.chunks_mut(FEW_ROWS).zip(sums.chunks_mut(FEW_ROWS));
        match before {
            Some(before) => {
                let parts = cells.zip(before.chunks(FEW_ROWS));
                let parts = parts.map(|((row, sums), before)| row.iter_mut().zip(sums).zip(before));
                noise.draw_into(node, law, parts, |((cell, sum), before), z| {
                    *cell = before.plus(z);
                    *sum = (*cell).into();
                });
            }
            None => {
                let parts = cells.map(|(row, sums)| row.iter_mut().zip(sums));
                noise.draw_into(node, law, parts, |(cell, sum), z| {
                    *cell = T::default().plus(z);
                    *sum = (*cell).into();
                });
            }
        }
    }
    if let Some(row) = nodes.len().checked_sub(1).filter(|&last| last < kept).map(|n| &rows[n]) {
        sums.iter_mut().zip(row).for_each(|(sum, &cell)| *sum = cell.into());
    }
    sums
}

/// Return the row before this one, if any, and this row.
fn split<T>(rows: &mut [Vec<T>], depth: usize) -> (Option<&[T]>, &mut [T]) {
    let (before, rest) = rows.split_at_mut(depth);
    (before.last().map(Vec::as_slice), &mut rest[0])
}

/// Give a row one cell for each item, and room for a sixteenth more.
fn grow<T: Sum>(row: &mut Vec<T>, items: usize) {
    if row.capacity() < items {
        row.reserve_exact(items + items / 16 + 16 - row.len());
    }
    row.resize(items, T::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::DiscreteGaussian;

    fn keyed(items: u8) -> NodeNoise {
        let mut noise = NodeNoise::default();
        noise.extend(&(0..items).map(|n| [n; 32]).collect::<Vec<_>>());
        noise
    }

    #[test]
    fn sums_are_those_of_the_noise_at_each_node() {
        let laws: Vec<(f64, Sampler)> = [3.0, 50.0, 1e7]
            .map(|sigma| (sigma, DiscreteGaussian::new(sigma).unwrap().into()))
            .into();
        let mut sums = NodeSums::default();
        // Pairs of a node and its scale. The last rounds need 64 bits.
        let rounds: [&[(u64, usize)]; 7] = [
            &[(1, 0)],
            &[(2, 0)],
            &[(2, 0), (3, 1)],
            &[(2, 0), (3, 1)],
            &[(2, 0), (3, 0), (9, 1)],
            &[(2, 0), (3, 0), (10, 2)],
            &[(2, 0)],
        ];
        for (items, nodes) in [3, 3, 5, 9, 9, 12, 20].into_iter().zip(rounds) {
            let nodes: Vec<_> =
                nodes.iter().map(|&(node, law)| (node, laws[law].0, &laws[law].1)).collect();
            let mut expected = vec![0; items.into()];
            for &(node, _, law) in &nodes {
                let drawn = keyed(items).draw(node, law);
                expected.iter_mut().zip(drawn).for_each(|(sum, z)| *sum += z);
            }
            assert_eq!(sums.advance(&mut keyed(items), &nodes), expected);
        }
    }
}
