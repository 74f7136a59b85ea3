//! The times of the steps, which `--time-profgen` prints.
use crate::messages::Session;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// The times of the steps so far.
pub struct Timing {
    is_on: bool,
    steps: Vec<(&'static str, Duration)>,
}

impl Timing {
    /// Starts without any step. Nothing is measured if `is_on` is false.
    pub fn new(is_on: bool) -> Self {
        Timing {
            is_on,
            steps: Vec::new(),
        }
    }

    /// Runs a step, and measures its time.
    pub fn of<T>(&mut self, name: &'static str, step: impl FnOnce() -> T) -> T {
        if !self.is_on {
            return step();
        }
        let start = Instant::now();
        let done = step();
        self.steps.push((name, start.elapsed()));
        done
    }

    /// Prints the steps as LLVM prints its timers, the longest first. The processor time of a step is not known.
    pub fn print(mut self, session: &Session<'_>) {
        if !self.is_on {
            return;
        }
        self.steps.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let total: Duration = self.steps.iter().map(|(_, time)| time).sum();
        let line = format!("==={}===\n", "-".repeat(73));
        let mut text = format!("{line}{:^80}", "llvm-profgen")
            .trim_end()
            .to_owned()
            + "\n"
            + &line;
        let seconds = total.as_secs_f64();
        let _ = writeln!(
            text,
            "  Total Execution Time: {seconds:.4} seconds (wall clock)\n"
        );
        let _ = writeln!(text, "   ---Wall Time---  --- Name ---");
        let named = self.steps.iter().map(|(name, time)| (*name, *time));
        for (name, time) in named.chain([("Total", total)]) {
            let share = match seconds {
                0.0 => 0.0,
                _ => time.as_secs_f64() * 100.0 / seconds,
            };
            let _ = writeln!(text, "   {:.4} ({share:5.1}%)  {name}", time.as_secs_f64());
        }
        text.push('\n');
        session.put(text.as_bytes());
    }
}
