//! Slots: the k̄ largest counts that were not named yet, filled up to exactly k̄ with dummies of count zero.
//!
//! Items of one count are alike to a draw, so that they share a leaf of the tree.

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
    /// The place of each row's count in `values`.
    group_of: Vec<u32>,
    /// The rows of each count that are in a slot.
    members: Vec<Vec<u32>>,
    /// The first row that is in no slot.
    following: usize,
    dummies: u64,
    scores: Scores,
    tree: Tree,
}

/// Where a drawn item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    group: usize,
    place: usize,
}

impl Slots {
    /// The slots of descending `counts`.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where `gamma` is out of range.
    pub fn new(counts: &[i64], k_bar: usize, gamma: f64) -> Result<Self> {
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
        let scores = Scores::new(&values, values.first().copied().unwrap_or(0), gamma, 0, 0.0)?;
        let tree = Tree::new(std::iter::empty());
        let mut new = Self { values, group_of, members, following, dummies, scores, tree };
        new.plant();
        Ok(new)
    }

    /// Draws with another rate from now on.
    ///
    /// # Errors
    /// [`crate::error::Error::Parameter`] where `gamma` is out of range.
    pub fn set_rate(&mut self, gamma: f64) -> Result<()> {
        let reference = self.values.first().copied().unwrap_or(0);
        self.scores = Scores::new(&self.values, reference, gamma, 0, 0.0)?;
        self.plant();
        Ok(())
    }

    /// One slot, with a probability proportional to `exp(gamma count)`; `None` for a dummy.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Drawn> {
        loop {
            let Some(group) = self.tree.walk(rng) else { continue };
            if !accepted(&self.scores, group, rng) {
                continue;
            }
            let members = self.members.get(group)?;
            let place = uniform_below(rng, members.len() as u64) as usize;
            return Some(Drawn { group, place });
        }
    }

    /// The row of a drawn item.
    pub fn row(&self, drawn: Drawn) -> usize {
        self.members[drawn.group][drawn.place] as usize
    }

    /// Takes a named item out, and puts the next row or a dummy in.
    pub fn remove(&mut self, drawn: Drawn) {
        self.members[drawn.group].swap_remove(drawn.place);
        self.tree.set(drawn.group, self.weight(drawn.group));
        let entered = match self.group_of.get(self.following) {
            Some(&group) => {
                self.members[group as usize].push(self.following as u32);
                self.following += 1;
                group as usize
            }
            None => {
                self.dummies += 1;
                self.values.len()
            }
        };
        self.tree.set(entered, self.weight(entered));
    }

    fn plant(&mut self) {
        let weights: Vec<Weight> =
            (0..=self.values.len()).map(|group| self.weight(group)).collect();
        self.tree = Tree::new(weights.into_iter());
    }

    /// The envelope of all slots of one count; the dummies' come last.
    fn weight(&self, group: usize) -> Weight {
        let size = self.members.get(group).map_or(self.dummies, |members| members.len() as u64);
        if size == 0 {
            return Weight::ZERO;
        }
        Weight::halved(size, self.scores.exponent(group).halvings())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::rng::{SecureRng, repetitions};

    #[test]
    fn draws_follow_the_exponential_mechanism_with_dummies() {
        // Counts 3, 2, 2 and, of the 5 slots, two dummies; epsilon = 1.
        let slots = Slots::new(&[3, 2, 2], 5, 1.0).unwrap();
        let weights = [3_f64.exp(), 2_f64.exp(), 2_f64.exp(), 2.0];
        let total: f64 = weights.iter().sum();
        let (draws, mut seen) = (repetitions(400_000), [0_u32; 4]);
        let mut rng = SecureRng::seeded(5);
        for _ in 0..draws {
            seen[slots.draw(&mut rng).map_or(3, |drawn| slots.row(drawn))] += 1;
        }
        for (seen, weight) in seen.into_iter().zip(weights) {
            let p = weight / total;
            let sd = (p * (1.0 - p) * f64::from(draws)).sqrt();
            assert!((f64::from(seen) - p * f64::from(draws)).abs() < 5.0 * sd);
        }
    }

    #[test]
    fn a_removed_row_makes_room_for_the_next_and_then_for_dummies() {
        let mut slots = Slots::new(&[9, 8, 8, 7, 0], 3, 5.0).unwrap();
        let mut rng = SecureRng::seeded(6);
        let mut rows = Vec::new();
        for left in (0..4_usize).rev() {
            let drawn = loop {
                if let Some(drawn) = slots.draw(&mut rng) {
                    break drawn;
                }
            };
            rows.push(slots.row(drawn));
            slots.remove(drawn);
            assert_eq!(slots.dummies as usize, 3 - left.min(3));
        }
        rows.sort_unstable();
        assert_eq!(rows, [0, 1, 2, 3]);
        assert_eq!(slots.draw(&mut rng), None);
    }

    #[test]
    fn another_rate_is_that_of_fresh_slots() {
        let mut slots = Slots::new(&[9, 8, 8, 7, 1], 4, 2.0).unwrap();
        slots.set_rate(0.25).unwrap();
        assert_eq!(slots.tree, Slots::new(&[9, 8, 8, 7, 1], 4, 0.25).unwrap().tree);
    }
}
