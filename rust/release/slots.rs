//! Slots: the k̄ largest counts that are not yet named, filled up to exactly k̄ with dummies of count zero.
//!
//! Items of the same count have the same weight, so they share a leaf of the tree. Each of the last few rates keeps its
//! tree. Before a tree is used again, the leaves that changed in the meantime are updated.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::error::Result;
use crate::noise::uniform_below;
use crate::release::gumbel::accepted;
use crate::release::scores::Scores;
use crate::release::tree::{Tree, Weight};

/// The rows in the slots, by their counts.
pub struct Slots {
    /// The distinct counts, descending.
    values: Vec<i64>,
    /// The index in `values` of each row's count.
    group_of: Vec<u32>,
    /// For each count, its rows that are in a slot.
    members: Vec<Vec<u32>>,
    /// The first row that has no slot yet.
    following: usize,
    dummies: u64,
    /// The groups whose sizes changed, in order.
    changes: Vec<u32>,
    planted: [Option<Planted>; KEPT],
}

/// The number of kept trees, more than the levels between which a release moves back and forth.
const KEPT: usize = 16;

/// The tree of one rate after the first `changes` changes.
struct Planted {
    gamma: u64,
    scores: Scores,
    tree: Tree,
    changes: usize,
}

/// The place of a drawn item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    group: usize,
    place: usize,
}

impl Slots {
    /// Fills the slots from descending `counts`.
    pub fn new(counts: &[i64], k_bar: usize) -> Self {
        let present = &counts[..counts.partition_point(|&count| count > 0)];
        let mut values = Vec::new();
        let mut group_of = Vec::with_capacity(present.len());
        for &count in present {
            if values.last() != Some(&count) {
                values.push(count);
            }
            group_of.push(values.len() as u32 - 1);
        }
        let following = k_bar.min(present.len());
        let mut members = vec![Vec::new(); values.len()];
        for row in 0..following {
            members[group_of[row] as usize].push(row as u32);
        }
        let dummies = (k_bar - following) as u64;
        let (changes, planted) = (Vec::new(), [const { None }; KEPT]);
        Self { values, group_of, members, following, dummies, changes, planted }
    }

    /// Draws one slot with a probability proportional to `exp(gamma count)`; `None` is a dummy.
    ///
    /// `level` numbers the rates of a release. Trees are kept by this number.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] if `gamma` is out of range.
    pub fn draw<R: Rng + ?Sized>(
        &mut self,
        level: usize,
        gamma: f64,
        rng: &mut R,
    ) -> Result<Option<Drawn>> {
        let current = match self.planted[level % KEPT].take() {
            Some(planted) if planted.gamma == gamma.to_bits() => self.updated(planted),
            _ => self.plant(gamma)?,
        };
        let current = self.planted[level % KEPT].insert(current);
        loop {
            let Some(group) = current.tree.walk(rng) else { continue };
            if !accepted(&current.scores, group, rng) {
                continue;
            }
            let Some(members) = self.members.get(group) else { return Ok(None) };
            let place = uniform_below(rng, members.len() as u64) as usize;
            return Ok(Some(Drawn { group, place }));
        }
    }

    /// Returns the row of a drawn item.
    pub fn row(&self, drawn: Drawn) -> usize {
        self.members[drawn.group][drawn.place] as usize
    }

    /// Removes a named item, and fills its slot with the next row or a dummy.
    pub fn remove(&mut self, drawn: Drawn) {
        self.members[drawn.group].swap_remove(drawn.place);
        let entered = match self.group_of.get(self.following) {
            Some(&group) => {
                self.members[group as usize].push(self.following as u32);
                self.following += 1;
                group
            }
            None => {
                self.dummies += 1;
                self.values.len() as u32
            }
        };
        self.changes.extend([drawn.group as u32, entered]);
    }

    fn plant(&self, gamma: f64) -> Result<Planted> {
        let reference = self.values.first().copied().unwrap_or(0);
        let scores = Scores::new(&self.values, reference, gamma, 0, 0.0)?;
        let weights: Vec<Weight> =
            (0..=self.values.len()).map(|group| self.weight(&scores, group)).collect();
        let tree = Tree::new(weights.into_iter());
        Ok(Planted { gamma: gamma.to_bits(), scores, tree, changes: self.changes.len() })
    }

    /// Returns the tree after all changes. Its sums depend only on its leaves, so it equals a newly planted tree.
    fn updated(&self, mut planted: Planted) -> Planted {
        for &group in &self.changes[planted.changes..] {
            planted.tree.set(group as usize, self.weight(&planted.scores, group as usize));
        }
        planted.changes = self.changes.len();
        planted
    }

    /// Returns the weight of all slots of one count. The last group is the dummies.
    fn weight(&self, scores: &Scores, group: usize) -> Weight {
        let size = self.members.get(group).map_or(self.dummies, |members| members.len() as u64);
        if size == 0 {
            return Weight::ZERO;
        }
        Weight::halved(size, scores.exponent(group).halvings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    #[test]
    fn draws_follow_the_exponential_mechanism_with_dummies() {
        // Counts 3, 2, 2 and, of the 5 slots, two dummies; epsilon = 1.
        let mut slots = Slots::new(&[3, 2, 2], 5);
        let weights = [3_f64.exp(), 2_f64.exp(), 2_f64.exp(), 2.0];
        let total: f64 = weights.iter().sum();
        let (draws, mut seen) = (repetitions(400_000), [0_u32; 4]);
        let mut rng = SecureRng::seeded(5);
        for _ in 0..draws {
            let drawn = slots.draw(0, 1.0, &mut rng).unwrap();
            seen[drawn.map_or(3, |drawn| slots.row(drawn))] += 1;
        }
        for (seen, weight) in seen.into_iter().zip(weights) {
            let p = weight / total;
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(seen) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn a_removed_row_is_replaced_by_the_next_row_or_a_dummy() {
        let mut slots = Slots::new(&[9, 8, 8, 7, 0], 3);
        let mut rng = SecureRng::seeded(6);
        let mut rows = Vec::new();
        for left in (0..4_usize).rev() {
            let drawn = loop {
                if let Some(drawn) = slots.draw(0, 5.0, &mut rng).unwrap() {
                    break drawn;
                }
            };
            rows.push(slots.row(drawn));
            slots.remove(drawn);
            assert_eq!(slots.dummies as usize, 3 - left.min(3));
        }
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2, 3]);
        assert_eq!(slots.draw(0, 5.0, &mut rng).unwrap(), None);
    }

    #[test]
    fn an_updated_tree_equals_a_planted_one() {
        let counts: Vec<i64> = (0..60).rev().map(|count| count / 2).collect();
        let mut slots = Slots::new(&counts, 40);
        let mut rng = SecureRng::seeded(7);
        let rate = |level: usize| 0.5 + level as f64;
        for step in 0..200 {
            let level = step % 3 + KEPT * (step / 7 % 2);
            if let Some(drawn) = slots.draw(level, rate(level), &mut rng).unwrap() {
                slots.remove(drawn);
            }
            let planted = slots.planted[level % KEPT].take().unwrap();
            let updated = slots.updated(planted);
            assert_eq!(updated.tree, slots.plant(rate(level)).unwrap().tree);
            slots.planted[level % KEPT] = Some(updated);
        }
    }
}
