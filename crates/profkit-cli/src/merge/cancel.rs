//! Ends a merge that the user cancels: Ctrl-C (SIGINT), or SIGTERM. A merge may be waiting for a pipe, so it is not asked
//! to stop: the thread that gets the signal removes the temporary files, reports, and ends the process. On Windows a
//! signal only sets a flag, which the thread looks at.
use super::progress::Progress;
use super::report::failed;
use crate::call;
use crate::exit::{self, Failure};
use crate::print::{grouped, plural};
use profkit_merge::Report;
use profkit_merge::files::abandon_outputs;
use profkit_merge::report::Cancellation;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
#[cfg(not(unix))]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

static MERGE: Mutex<Merge> = Mutex::new(Merge {
    report: None,
    progress: None,
});

struct Merge {
    report: Option<PathBuf>,
    progress: Option<Arc<Progress>>,
}

pub fn watch(report: Option<&Path>) {
    if call::is_active() {
        return;
    }
    MERGE.lock().unwrap_or_else(PoisonError::into_inner).report = report.map(Path::to_owned);
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let wanted = [SIGINT, SIGTERM]
            .into_iter()
            .filter(|&signal| !exit::is_ignored(signal));
        if let Some(wait) = signals(wanted) {
            std::thread::spawn(move || wait().map(end));
        }
    });
}

/// Returns what waits for the first of these signals. `None` if the system does not report them.
#[cfg(unix)]
fn signals(wanted: impl Iterator<Item = i32>) -> Option<impl FnOnce() -> Option<i32> + Send> {
    let mut signals = signal_hook::iterator::Signals::new(wanted).ok()?;
    Some(move || signals.forever().next())
}

#[cfg(not(unix))]
fn signals(wanted: impl Iterator<Item = i32>) -> Option<impl FnOnce() -> Option<i32> + Send> {
    const OFTEN: std::time::Duration = std::time::Duration::from_millis(100);
    let came = Arc::new(AtomicUsize::new(0));
    for signal in wanted {
        let number = usize::try_from(signal).ok()?;
        signal_hook::flag::register_usize(signal, Arc::clone(&came), number).ok()?;
    }
    Some(move || {
        loop {
            std::thread::sleep(OFTEN);
            if let Ok(signal @ 1..) = i32::try_from(came.load(Ordering::Relaxed)) {
                return Some(signal);
            }
        }
    })
}

pub fn count(progress: &Arc<Progress>) {
    let mut merge = MERGE.lock().unwrap_or_else(PoisonError::into_inner);
    merge.progress = Some(Arc::clone(progress));
}

fn end(signal: i32) {
    let merge = MERGE.lock().unwrap_or_else(PoisonError::into_inner);
    let replaced = abandon_outputs();
    let (done, total) = merge.progress.as_ref().map_or((0, 0), |progress| {
        progress.finish(1);
        progress.counts()
    });
    let by = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
    let what = match replaced {
        0 => "no output was written".to_owned(),
        _ => format!("{} written before", plural(replaced as u64, "output")),
    };
    let failure = Failure::input(format_args!(
        "cancelled by {by} after {} of {}: {what}",
        grouped(done),
        plural(total, "input")
    ));
    let mut report = Report::new();
    report.totals.files = total;
    report.cancelled = Some(Cancellation {
        by: by.to_owned(),
        inputs_done: done,
    });
    let failure = failed(failure, &report, merge.report.as_deref());
    exit::by_signal(&failure, signal);
}
