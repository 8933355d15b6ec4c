//! Which counts and items are published, and with what noise.

pub mod gumbel;
pub mod partition_selection;
pub mod permute_and_flip;
pub mod private_count_release;
pub mod scores;
pub mod threshold;
