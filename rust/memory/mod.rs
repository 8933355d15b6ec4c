//! Memory for rows by partition: huge pages, prefetching, write-combining buffers.

pub(crate) mod arena;
mod chunk_list;
pub(crate) mod prefetch;
pub(crate) mod record_log;
pub(crate) mod write_buffer;
