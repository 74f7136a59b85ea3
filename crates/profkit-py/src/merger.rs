//! Parts of merges.
use crate::error::Fault;
use crate::given::{Given, inputs_of};
use crate::run::on_threads;
use profkit_merge::files::InputList;
use profkit_merge::{RunOptions, part};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A sum of inputs. Threads may share it: one adds at a time.
#[derive(Debug)]
#[pyclass(frozen, module = "profkit._native")]
pub struct Merger {
    sum: Mutex<part::Merger>,
    cancel: Arc<AtomicBool>,
}

#[pymethods]
impl Merger {
    /// `words` are options of `merge`.
    #[new]
    fn new(py: Python<'_>, words: Vec<Vec<u8>>) -> PyResult<Self> {
        let cancel = Arc::new(AtomicBool::new(false));
        let run = RunOptions::new().cancel(Arc::clone(&cancel));
        let words = words.into_iter().map(OsString::from_vec).collect();
        let sum = profkit_cli::merger(words, run)
            .map_err(|failure| Fault::of(&failure, 2, None).raise(py))?;
        Ok(Merger {
            sum: Mutex::new(sum),
            cancel,
        })
    }

    fn add(&self, py: Python<'_>, inputs: Vec<Given>, missing_ok: bool) -> PyResult<()> {
        let given = inputs_of(inputs, missing_ok).map_err(|fault| fault.raise(py))?;
        self.with(py, |sum| {
            let list = InputList::of(given, None).map_err(|error| Box::new(Fault::list(&error)))?;
            sum.add(&list)
                .map_err(|error| Box::new(Fault::merge(&error)))
        })
    }

    fn add_part(&self, py: Python<'_>, name: &str, bytes: PyBackedBytes) -> PyResult<()> {
        self.with(py, |sum| {
            let added = sum.add_part(name, &bytes);
            added.map_err(|error| Box::new(Fault::merge(&error)))
        })
    }

    fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |sum| {
            sum.encode().map_err(|error| Box::new(Fault::merge(&error)))
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn inputs(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |sum| Ok(sum.inputs()))
    }

    fn repeated(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |sum| Ok(sum.repeated().to_vec()))
    }
}

impl Merger {
    /// Calls `work` with the sum, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut part::Merger) -> Result<T, Box<Fault>> + Send,
    ) -> PyResult<T> {
        let result = on_threads(py, &self.cancel, || {
            let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut sum)
        });
        self.cancel.store(false, Ordering::Relaxed);
        result?.map_err(|fault| fault.raise(py))
    }
}
