//! Release mechanisms: which items are published, and with which noisy counts.

pub mod chance_table;
pub mod confirmed_counts;
pub mod gumbel;
pub mod partition_selection;
pub mod private_count_release;
pub mod scores;
mod slots;
pub mod sparse_vector;
pub mod threshold;
mod tree;
