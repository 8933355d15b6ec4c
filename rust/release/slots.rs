//! Slots: k̄ places, one of which a step of [`super::confirmed_counts`] draws.
//!
//! The slots hold the rows with the k̄ largest counts among the rows that are not named yet. A row is the place of an
//! item in a histogram; to name a row is to publish its item. If there are fewer than k̄ such rows, the other slots
//! hold dummies of count zero.
//!
//! The rate γ of a draw depends on the step's level. A slot has the weight `exp(γ count)`. In the [`Tree`] of a level,
//! each leaf is an upper bound of the total weight of all slots with the same count. Trees are kept for later draws.
//! Before a tree is used again, its changed leaves are updated.

#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

use rand::Rng;

use crate::error::Result;
use crate::noise::uniform_below;
use crate::release::gumbel::accepted;
use crate::release::scores::Scores;
use crate::release::tree::{Tree, Weight};

/// The rows in the slots, grouped by count.
pub struct Slots {
    /// The distinct counts, descending.
    values: Vec<i64>,
    /// The index in `values` of each row's count.
    group_of: Vec<u32>,
    /// For each count, the rows of this count that are in a slot.
    members: Vec<Vec<u32>>,
    /// The first row that has had no slot yet.
    following: usize,
    /// The number of dummies.
    dummies: u64,
    /// The index of each count whose number of slots changed, in the order of the changes. The last index stands for
    /// the dummies.
    changes: Vec<u32>,
    /// The kept trees, by level modulo `KEPT`.
    planted: [Option<Planted>; KEPT],
}

/// The number of kept trees. A release moves back and forth between fewer levels.
const KEPT: usize = 16;

/// The tree of one rate after the first `changes` changes.
struct Planted {
    /// The bits of the rate.
    gamma: u64,
    scores: Scores,
    tree: Tree,
    changes: usize,
}

/// A drawn slot that holds a row: the index of the row's count, and the row's index among the rows of this count.
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

    /// Draws one slot with a probability proportional to `exp(gamma count)`. Returns `None` for a dummy.
    ///
    /// `level` is the number of the level whose rate is `gamma`.
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

    /// Returns the row in a drawn slot.
    pub fn row(&self, drawn: Drawn) -> usize {
        self.members[drawn.group][drawn.place] as usize
    }

    /// Returns the slot that holds a row, as if it were drawn. Returns `None` if no slot holds the row.
    pub fn drawn(&self, row: usize) -> Option<Drawn> {
        let group = *self.group_of.get(row)? as usize;
        let place = self.members[group].iter().position(|&member| member as usize == row)?;
        Some(Drawn { group, place })
    }

    /// Removes the row of a drawn slot, and fills the slot with the next row or with a dummy.
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

    /// Updates a tree with all later changes. The sums of a tree depend only on its leaves, so the result equals a new
    /// tree.
    fn updated(&self, mut planted: Planted) -> Planted {
        for &group in &self.changes[planted.changes..] {
            planted.tree.set(group as usize, self.weight(&planted.scores, group as usize));
        }
        planted.changes = self.changes.len();
        planted
    }

    /// Returns an upper bound of the total weight of all slots of one count. The last index stands for the dummies.
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
        // The five slots hold the counts 3, 2, 2 and two dummies; gamma = 1.
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
    fn the_slot_of_a_row_is_found_until_the_row_is_removed() {
        let mut slots = Slots::new(&[9, 8, 8, 7], 3);
        assert_eq!((slots.drawn(3), slots.drawn(9)), (None, None));
        let drawn = slots.drawn(1).unwrap();
        assert_eq!(slots.row(drawn), 1);
        slots.remove(drawn);
        assert_eq!(slots.drawn(1), None);
        assert_eq!(slots.drawn(3).map(|drawn| slots.row(drawn)), Some(3));
    }

    #[test]
    fn an_updated_tree_equals_a_new_tree() {
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
