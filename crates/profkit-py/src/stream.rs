//! Tables for data frames, by Arrow's C interface.
use crate::error::Fault;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_ipc::reader::FileReader;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;
use std::io::Cursor;
use std::sync::Arc;

/// An Arrow IPC file in memory.
#[derive(Debug)]
#[pyclass(frozen, module = "profkit._native")]
pub struct ArrowFile(Arc<PyBackedBytes>);

/// Bytes that a reader on another thread may share.
struct Shared(Arc<PyBackedBytes>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[pymethods]
impl ArrowFile {
    #[new]
    fn new(bytes: PyBackedBytes) -> Self {
        ArrowFile(Arc::new(bytes))
    }

    /// The capsule that libraries for Arrow take.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer give its own types, and the consumer cast.
        let _ = requested_schema;
        let bytes = Shared(Arc::clone(&self.0));
        let reader = FileReader::try_new(Cursor::new(bytes), None);
        let reader = reader.map_err(|error| Fault::new("internal", error).raise(py))?;
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let bytes = Shared(Arc::clone(&self.0));
        let reader = FileReader::try_new(Cursor::new(bytes), None);
        let reader = reader.map_err(|error| Fault::new("internal", error).raise(py))?;
        let schema = reader.schema();
        Ok(schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect())
    }
}
