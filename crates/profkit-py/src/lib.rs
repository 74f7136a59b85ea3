//! The native part of the Python package `profkit`: the command, called in this process, and parts of merges. The Python
//! files beside this crate make functions and classes of it.
#![cfg(feature = "extension")]

mod error;
mod given;
mod merger;
mod run;
mod stream;

use given::{Given, inputs_of};
use profkit_cli::Call;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The exit code, standard output, messages, and the report as JSON.
type Answer = (u8, Py<PyBytes>, String, Option<Py<PyBytes>>);

/// Runs a command in this process.
#[pyfunction]
fn call(py: Python<'_>, words: Vec<Vec<u8>>, inputs: Vec<Given>) -> PyResult<Answer> {
    let cancel = Arc::new(AtomicBool::new(false));
    let call = Call {
        args: words.into_iter().map(OsString::from_vec).collect(),
        inputs: inputs_of(inputs, false).map_err(|error| error.raise(py))?,
        cancel: Arc::clone(&cancel),
    };
    let answer = run::on_threads(py, &cancel, || profkit_cli::call(call))?;
    if let Some(failure) = &answer.failure {
        return Err(error::Fault::of(failure, answer.code, answer.report).raise(py));
    }
    let bytes = |bytes: Vec<u8>| PyBytes::new(py, &bytes).unbind();
    Ok((
        answer.code,
        bytes(answer.output),
        answer.messages,
        answer.report.map(bytes),
    ))
}

/// Runs the command as a program does, on the standard streams of this process, and returns its exit code. `program` is the
/// file that starts it again.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<Vec<u8>>, program: PathBuf) -> u8 {
    profkit_mip_driver::set_program(program);
    let words = words.into_iter().map(OsString::from_vec).collect();
    py.detach(|| {
        let code = profkit_cli::exit_code(words);
        // Rust flushes its standard output only at the end of a program whose `main` is Rust's.
        let flushed = std::io::stdout().flush();
        code.max(u8::from(
            flushed.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe),
        ))
    })
}

/// Panics where other functions work, for tests.
#[pyfunction]
fn _panic(py: Python<'_>) -> PyResult<()> {
    run::on_threads(py, &AtomicBool::new(false), || {
        let nothing: [u8; 0] = [];
        let beyond = std::hint::black_box(1);
        let _ = nothing[beyond];
    })
}

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(call, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(_panic, module)?)?;
    module.add_class::<merger::Merger>()?;
    module.add_class::<stream::ArrowFile>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
