//! The report of `profkit layout`: what is ordered, and what was left out. [docs/formats/layout.md] describes the JSON.
//!
//! [docs/formats/layout.md]: https://github.com/profkit/profkit/blob/main/docs/formats/layout.md
use crate::loss::{BRANCH, Loss};
use crate::{grouped, plural};
use profkit_profgen::layout::Layout;
use serde_json::{Value, json};

struct Totals {
    hot: u64,
    cold: u64,
    before: f64,
    after: f64,
}

impl Totals {
    fn of(layout: &Layout<'_>) -> Self {
        let functions = layout.functions.iter();
        Totals {
            hot: functions.clone().map(|it| it.hot.len() as u64).sum(),
            cold: functions.clone().map(|it| it.cold as u64).sum(),
            before: functions.clone().map(|it| it.score_before).sum(),
            after: functions.map(|it| it.score_after).sum(),
        }
    }
}

/// The report as JSON.
pub fn document(layout: &Layout<'_>) -> Value {
    let totals = Totals::of(layout);
    let left_out = layout.code().left_out;
    json!({
        "schema_version": 1,
        "functions": layout.functions.len(),
        "hot_blocks": totals.hot,
        "cold_blocks": totals.cold,
        "score_before": totals.before,
        "score_after": totals.after,
        "branches": layout.losses.branches,
        "branches_outside": layout.losses.outside,
        "branches_into_middle": layout.losses.into_middle,
        "ranges": layout.losses.ranges,
        "broken_ranges": layout.losses.broken_ranges,
        "functions_without_symbol": left_out.unnamed,
        "functions_of_equal_name": left_out.ambiguous,
    })
}

/// Returns the lines for people: what is ordered, and a line for each kind of loss.
pub fn lines(layout: &Layout<'_>) -> Vec<String> {
    let totals = Totals::of(layout);
    let with_blocks = layout.code().functions.len() as u64;
    let percent = if totals.before > 0.0 {
        format!(" (+{:.1} %)", (totals.after / totals.before - 1.0) * 100.0)
    } else {
        String::new()
    };
    let (are, go) = match (totals.hot, totals.cold) {
        (1, 1) => ("is", "goes"),
        (1, _) => ("is", "go"),
        (_, 1) => ("are", "goes"),
        _ => ("are", "go"),
    };
    let mut lines = vec![
        format!(
            "{} of {} ran: {} {are} ordered, {} that did not run {go} to a section of their own",
            grouped(layout.functions.len() as u64),
            plural(with_blocks, "function"),
            plural(totals.hot, "block"),
            grouped(totals.cold)
        ),
        format!(
            "score of extended TSP: {:.0} before, {:.0} after{percent}",
            totals.before, totals.after
        ),
    ];
    let left_out = losses(layout).into_iter().filter_map(Loss::line);
    lines.extend(left_out.map(|line| format!("left out: {line}")));
    lines
}

fn losses(layout: &Layout<'_>) -> [Loss; 5] {
    let losses = &layout.losses;
    let left_out = layout.code().left_out;
    let branch = |number, happened| Loss::new(number, losses.branches, BRANCH, happened);
    let function = |number, happened| Loss::new(number as u64, 0, "{function|functions}", happened);
    [
        branch(
            losses.outside,
            "{begins and ends|begin and end} in functions without known blocks",
        ),
        branch(losses.into_middle, "{goes|go} to the middle of a block"),
        Loss::new(
            losses.broken_ranges,
            losses.ranges,
            "{run|runs} of code between two branches",
            "{does|do} not fit the blocks",
        ),
        function(left_out.unnamed, "{has|have} blocks and no symbol"),
        function(left_out.ambiguous, "{has|have} a name that others have too"),
    ]
}
