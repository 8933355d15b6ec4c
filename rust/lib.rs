//! The engine of `discreet`: counts, scales and thresholds in, rows out. It knows no epsilon.
//!
//! The map of the house, each floor using only those below it:
//!
//! ```text
//! bindings                     Python: thin wrappers, the only unsafe code (Arrow's C interface)
//! agreement neighbours         tests alone: counts of a table however it comes; of two of which one has a user more
//! count                        rows of (user, item) -> exact distinct users per item, on all cores
//! bound                        at most l0 items of each user
//! worker                       what one thread does
//! long                         its rows of any keys
//! popular                      rows of the items that have the most
//! merge                        what all threads have of a partition, deduplicated
//! short                        rows of four bytes, of either form
//! numbered                     those of numbered users and labels
//! share                        what one thread has, in memory and put away
//! chapters group packed        rows in a file; cells -> partitions and keys; rows of four bytes of small numbers
//! user_keys                    users' cells -> keys
//! users                        users by number, for all threads
//! label_log store sieve        one thread's labels, and its rows; what is distinct among rows
//! gather union                 users' items while they are read; users' items -> weights of items
//! lists bucket                 users' items, and at most l0 of each; some users' pairs, distinct
//! coded numbers                tables of dictionaries as integers; users and items by number
//! choices                      the pairs that users choose among, dealt out by user
//! lines records                values, and records of words, by partition, which wait side by side to be written
//! chains pairs seen            values by partition; rows as integers; which of four bytes have been seen
//! tables                       for tests alone
//! column                       the cells of Arrow arrays
//! string_cells                 those that are strings, of any layout
//! integers                     those that are integers, of any width; buffers that may be too short
//! candidates                   the items that users may keep, by number
//! price_list                   counts and prices -> a whole release
//! gumbel permute_and_flip      scores -> which row is chosen
//! weighted_noise               sums of an item's noises with weights
//! node_noise                   one noise for an item at a node, whenever it is asked for
//! threshold partition_selection scores  counts -> which are released; counts, a rate and the stop element
//! noise parts                  exact integer samplers, one distribution a file; rows in parts, each with its stream
//! rng                          one fresh ChaCha20 per release
//! counts                       a histogram before it is sorted
//! compose crew spill           laws on a grid, rounding bounded; threads at work; an encrypted temporary file
//! csv                          CSV files -> columns of text
//! interner item_table top      strings by number; the items and their one order
//! hash recent keystream        keyed hashes; labels met lately; first blocks of many streams at once
//! labels                       the labels of a histogram
//! ends                         where strings end that lie end to end
//! returning                    whether labels come back, told from a few
//! ahead block mark entropy     memory asked for ahead, and in large blocks; what tells a string from others; fresh bits
//! error                        what a kernel refuses
//! ```
#![cfg_attr(not(feature = "python"), forbid(unsafe_code))]
#![deny(unsafe_code)]

#[cfg(test)]
mod agreement;
mod ahead;
mod block;
pub mod bound;
mod bucket;
mod candidates;
mod chains;
mod chapters;
mod choices;
mod coded;
pub mod column;
pub mod compose;
pub mod count;
mod counts;
mod crew;
pub mod csv;
mod ends;
mod entropy;
pub mod error;
pub mod gather;
mod group;
pub mod gumbel;
pub mod hash;
mod integers;
mod interner;
pub mod item_table;
mod keystream;
mod label_log;
pub mod labels;
mod lines;
pub mod lists;
mod mark;
mod merge;
#[cfg(test)]
mod neighbours;
pub mod node_noise;
pub mod noise;
mod numbers;
mod packed;
pub mod pairs;
pub mod partition_selection;
mod parts;
pub mod permute_and_flip;
pub mod price_list;
mod recent;
mod records;
pub mod rng;
mod rows;
pub mod scores;
mod seen;
mod sieve;
mod spill;
mod store;
mod string_cells;
#[cfg(test)]
mod tables;
pub mod threshold;
pub mod top;
pub mod union;
mod user_keys;
pub mod weighted_noise;
mod worker;

#[cfg(feature = "python")]
mod bindings;
