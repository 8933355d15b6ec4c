//! Memory for rows by partition, with huge pages, prefetching and write-combining buffers.

pub(crate) mod arena;
mod chunk_list;
pub(crate) mod prefetch;
pub(crate) mod record_log;
pub(crate) mod write_buffer;
