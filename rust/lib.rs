//! The engine of `discreet`: counts, scales and thresholds in, rows out. It knows no epsilon.
//!
//! The map of the house, each floor using only those below it:
//!
//! ```text
//! bindings                     Python: thin wrappers, the only unsafe code (Arrow's C interface)
//! count worker                 rows of (user, item) -> exact distinct users per item, on all cores
//! bound                        at most l0 items of each user
//! union gather                 users' items -> weights of items; rows -> users' items
//! numbers lists                labels by number, whatever they are; a user's items after another's
//! coded                        tables of dictionaries as integers
//! merge                        what all threads have of a partition, deduplicated
//! share chapters               what one thread has, in memory and put away
//! column group store pairs sieve  cells -> partitions and keys -> distinct pairs
//! crew spill                   threads at work; an encrypted temporary file
//! interner label_log           strings by number
//! chains block recent hash     values by partition, large blocks of memory, labels met lately, keyed hashes
//! labels top item_table        the items, their one order, and where they are
//! gumbel permute_and_flip real_gumbel  scores -> which row is chosen
//! threshold partition_selection price_list  counts and prices -> a whole release
//! parts                        rows in parts, each with a stream of its own
//! weighted_noise               weighted sums of an item's noises over all rounds, rounded exactly
//! node_noise                   one noise for an item at a node, whenever it is asked for
//! scores                       counts, a rate and the stop element
//! compose                      sums of laws on a grid, with their rounding bounded
//! noise                        exact integer samplers, one distribution a file
//! keystream                    first blocks of many streams at once
//! rng                          one fresh ChaCha20 per release
//! error                        what a kernel refuses
//! ```
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub mod block;
pub mod bound;
pub mod chains;
pub mod chapters;
mod coded;
pub mod column;
pub mod compose;
pub mod count;
mod crew;
pub mod error;
pub mod gather;
pub mod group;
pub mod gumbel;
pub mod hash;
pub mod interner;
pub mod item_table;
mod keystream;
pub mod label_log;
pub mod labels;
pub mod lists;
mod merge;
#[cfg(test)]
mod neighbours;
pub mod node_noise;
pub mod noise;
mod numbers;
pub mod pairs;
pub mod partition_selection;
mod parts;
pub mod permute_and_flip;
pub mod price_list;
pub mod real_gumbel;
mod recent;
pub mod rng;
pub mod scores;
mod share;
pub mod sieve;
pub mod spill;
pub mod store;
pub mod threshold;
pub mod top;
pub mod union;
pub mod weighted_noise;
pub mod worker;

#[cfg(feature = "python")]
mod bindings;
