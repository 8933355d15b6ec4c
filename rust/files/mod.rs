//! Reads files and standard input in blocks of bytes: it decompresses gzip and decodes to UTF-8.

mod batches;
mod blocks;
mod encoding;
mod gzip;
#[cfg(test)]
pub(crate) mod temp_file;

pub(crate) use batches::batch_of;
pub use blocks::{BLOCK, Source};
pub(crate) use blocks::{Blocks, Next};
pub use encoding::Encoding;
