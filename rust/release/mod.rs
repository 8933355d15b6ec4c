//! Which counts and items are published, and with what noise.

pub mod confirmed_counts;
pub mod gumbel;
pub mod partition_selection;
pub mod permute_and_flip;
pub mod private_count_release;
pub mod scores;
mod slots;
pub mod threshold;
mod tree;
