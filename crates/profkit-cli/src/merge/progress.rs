//! The progress of a long merge, shown on stderr if that is a terminal.
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The delay before the bar appears: a merge that ends earlier shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
const DRAWS_A_SECOND: u8 = 10;

/// Counts inputs as they are merged.
#[derive(Debug, Default)]
pub struct Progress {
    started: Option<Instant>,
    total: u64,
    done: AtomicU64,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    /// Makes a progress bar for a number of inputs. It is shown only if stderr is a terminal and `wanted` is true.
    pub fn new(total: usize, wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        Progress {
            started: shown.then(Instant::now),
            total: total as u64,
            done: AtomicU64::new(0),
            bar: OnceLock::new(),
        }
    }

    /// Counts one more input as merged.
    pub fn step(&self) {
        let Some(started) = self.started else { return };
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if started.elapsed() < SHOW_AFTER {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND);
            let bar = ProgressBar::with_draw_target(Some(self.total), target);
            match ProgressStyle::with_template(
                "{bar:40} {human_pos} of {human_len} files, {per_sec}, {eta} left",
            ) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        bar.set_position(done.min(self.total));
    }

    /// Removes the bar from the screen.
    pub fn finish(&self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

impl profkit_merge::Progress for Progress {
    fn input_done(&self, _: usize) {
        self.step();
    }
}
