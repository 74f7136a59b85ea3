//! The progress of a long command, shown on stderr if that is a terminal, and the steps that `--verbose` prints.
use crate::call;
use crate::print;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use profkit_data::detect::FileKind;
use profkit_report::{read_step, size};
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The delay before the progress bar appears: a merge that ends earlier shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);
const DRAWS_A_SECOND: u8 = 10;

#[derive(Debug)]
pub struct Progress {
    started: Instant,
    is_shown: bool,
    total: u64,
    done: AtomicU64,
    bytes: AtomicU64,
    bar: OnceLock<ProgressBar>,
    /// For `--verbose`, the kind of each input that was opened. `None` if `--verbose` is not given.
    kinds: Option<Mutex<BTreeMap<usize, FileKind>>>,
}

impl Progress {
    pub fn new(total: usize, wanted: bool) -> Self {
        Progress {
            started: Instant::now(),
            is_shown: wanted && !call::is_active() && std::io::stderr().is_terminal(),
            total: total as u64,
            done: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            bar: OnceLock::new(),
            kinds: None,
        }
    }

    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.kinds = verbose.then(Mutex::default);
        self
    }

    pub fn step(&self, bytes: u64) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let elapsed = self.started.elapsed();
        if !self.is_shown || elapsed < SHOW_AFTER {
            return;
        }
        let bar = self.bar.get_or_init(|| {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND);
            let bar = ProgressBar::with_draw_target(Some(self.total), target);
            match ProgressStyle::with_template(
                "{bar:20} {human_pos} of {human_len} files, {msg} left",
            ) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        let rate = u128::from(bytes) * 1000 / elapsed.as_millis().max(1);
        let rate = size(u64::try_from(rate).unwrap_or(u64::MAX));
        // The remaining time is estimated here. The bar could only use the time since it appeared, not since the start.
        let rest = u128::from(self.total.saturating_sub(done));
        let left = elapsed.as_millis() * rest / u128::from(done) / 1000;
        bar.set_message(format!("{}, {rate}/s, {}", size(bytes), minutes(left)));
        bar.set_position(done.min(self.total));
    }

    pub fn counts(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total)
    }

    pub fn finish(&self, threads: usize) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
        if let Some(kinds) = &self.kinds {
            let kinds = kinds.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = self.bytes.load(Ordering::Relaxed);
            let text = read_step(kinds.values(), bytes, self.started.elapsed(), threads);
            self.say(text);
        }
    }

    pub fn say(&self, text: impl std::fmt::Display) {
        if self.kinds.is_some() {
            print::say(format_args!("step: {text}"));
        }
    }
}

impl profkit_merge::Progress for Progress {
    fn input_opened(&self, index: usize, kind: FileKind, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(kinds) = &self.kinds {
            let mut kinds = kinds.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.insert(index, kind);
        }
    }

    fn input_done(&self, _: usize) {
        self.step(0);
    }
}

/// A time in seconds as minutes and seconds: "7s", "2m 05s".
fn minutes(seconds: u128) -> String {
    match seconds / 60 {
        0 => format!("{seconds}s"),
        minutes => format!("{minutes}m {:02}s", seconds % 60),
    }
}
