//! The report of a layout, for people and programs.
use super::Layout;
use serde_json::{Value, json};
use std::fmt;

/// The sums over all functions of a layout.
struct Totals {
    hot: usize,
    cold: usize,
    before: f64,
    after: f64,
}

impl Layout<'_> {
    fn totals(&self) -> Totals {
        let functions = self.functions.iter();
        Totals {
            hot: functions.clone().map(|it| it.hot.len()).sum(),
            cold: functions.clone().map(|it| it.cold).sum(),
            before: functions.clone().map(|it| it.score_before).sum(),
            after: functions.map(|it| it.score_after).sum(),
        }
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let totals = self.totals();
        json!({
            "schema_version": 1,
            "functions": self.functions.len(),
            "hot_blocks": totals.hot,
            "cold_blocks": totals.cold,
            "score_before": totals.before,
            "score_after": totals.after,
            "branches": self.losses.branches,
            "branches_outside": self.losses.outside,
            "branches_into_middle": self.losses.into_middle,
            "ranges": self.losses.ranges,
            "broken_ranges": self.losses.broken_ranges,
            "functions_without_symbol": self.code.left_out.unnamed,
            "functions_of_equal_name": self.code.left_out.ambiguous,
        })
    }
}

impl fmt::Display for Layout<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = self.totals();
        writeln!(
            f,
            "{} of {} functions ran: {} blocks are ordered, {} that did not run go to a section of their own",
            self.functions.len(),
            self.code.functions.len(),
            totals.hot,
            totals.cold
        )?;
        let percent = if totals.before > 0.0 {
            format!(" (+{:.1} %)", (totals.after / totals.before - 1.0) * 100.0)
        } else {
            String::new()
        };
        writeln!(
            f,
            "score of extended TSP: {:.0} before, {:.0} after{percent}",
            totals.before, totals.after
        )?;
        let losses = &self.losses;
        for (count, what) in [
            (
                losses.outside,
                "branches begin and end in functions without known blocks",
            ),
            (losses.into_middle, "branches go to the middle of a block"),
            (
                losses.broken_ranges,
                "runs of code between two branches do not fit the blocks",
            ),
            (
                self.code.left_out.unnamed as u64,
                "functions have blocks and no symbol",
            ),
            (
                self.code.left_out.ambiguous as u64,
                "functions have a name that others have too",
            ),
        ] {
            if count > 0 {
                writeln!(f, "left out: {count} {what}")?;
            }
        }
        Ok(())
    }
}
