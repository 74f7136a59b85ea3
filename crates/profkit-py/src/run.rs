//! Work without the interpreter's lock.
use crate::error::Fault;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long Ctrl-C can go unnoticed.
const POLL: Duration = Duration::from_millis(50);
/// The stack of a program's first thread, for which commands are written.
const STACK: usize = 8 << 20;

/// Runs `work` on threads of its own while this thread waits for signals, and without the interpreter's lock. After Ctrl-C,
/// `cancel` is set, and the exception of the signal handler is raised when the work has ended.
///
/// The threads are not those of rayon's global pool: these would be missing in a process that was forked later.
///
/// # Errors
/// `profkit.Error` of kind `internal` if the work panics.
pub fn on_threads<T: Send>(
    py: Python<'_>,
    cancel: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let pool = ThreadPoolBuilder::new().stack_size(STACK).build();
    let pool = pool.map_err(|error| Fault::new("system", error).raise(py))?;
    let mut result = None;
    let mut interrupt = None;
    py.detach(|| {
        let (done, wait) = channel::<()>();
        pool.in_place_scope(|scope| {
            let result = &mut result;
            scope.spawn(move |_| {
                *result = Some(catch_unwind(AssertUnwindSafe(work)));
                drop(done);
            });
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(POLL) {
                if interrupt.is_none() {
                    interrupt = Python::attach(|py| py.check_signals()).err();
                    cancel.store(interrupt.is_some(), Ordering::Relaxed);
                }
            }
        });
    });
    match (interrupt, result) {
        (Some(exception), _) => Err(exception),
        (None, Some(Ok(value))) => Ok(value),
        (None, Some(Err(panic))) => Err(Fault::new("internal", text_of(&*panic)).raise(py)),
        (None, None) => Err(Fault::new("internal", "the work has not ended").raise(py)),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no message".to_owned());
    format!("a fault of profkit itself: {text}")
}
