//! Batches of columns for a caller in C.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{Error, Result};

/// Returns the columns that `read` returns as a batch. A panic becomes an error, because in C it would abort the process.
pub(crate) fn batch_of(
    schema: SchemaRef,
    read: impl FnOnce() -> Result<Option<Vec<ArrayRef>>>,
) -> Option<std::result::Result<RecordBatch, ArrowError>> {
    let batch = || {
        let Some(columns) = read()? else { return Ok(None) };
        let batch = RecordBatch::try_new(schema, columns);
        batch.map(Some).map_err(|_| Error::Input("the columns are not equally long"))
    };
    let batch = catch_unwind(AssertUnwindSafe(batch)).unwrap_or(Err(Error::Internal));
    batch.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
}
