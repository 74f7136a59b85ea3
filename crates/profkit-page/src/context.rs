//! Parts of the HTML page of a profile that do not come from its counts: the findings of `doctor`; the share of the
//! counts that match the functions of binaries; and the effect of a better order of functions on the start of the
//! program.
use super::Page;
use profkit_analysis::doctor::Diagnosis;
use profkit_analysis::matching::{BinaryFunctions, MatchShares, Outcome, ProfileFunctions};
use profkit_analysis::names;
use profkit_analysis::order::{Startup, StartupOrder, StartupText};
use profkit_object::code_symbols::CodeSymbol;
use profkit_report::doctor::remarks;
use profkit_report::{grouped, plural, tenths};

/// The largest number of entries in each of three lists on the page: binaries, hot functions whose counts do not match,
/// and traces.
const MOST: usize = 10;

/// The order of functions that `profkit order` proposes.
#[derive(Clone, Debug, Default)]
pub(super) struct Proposal {
    /// The functions in the proposed order, each as the index of its name in `FunctionList::targets`, counted from 1.
    pub order: Vec<usize>,
    /// What the order improves. Each line is a sentence.
    pub lines: Vec<String>,
}

impl Page {
    /// Adds the problems that `doctor` finds although the file can be read, such as functions without value data. Read
    /// errors are already on the page.
    pub(super) fn add_diagnosis(&mut self, diagnosis: &Diagnosis) {
        if let Some(stated) = diagnosis.functions_stated
            && stated != diagnosis.functions
        {
            self.note(format!(
                "The header states {}, {} can be read.",
                plural(stated, "function"),
                grouped(diagnosis.functions)
            ));
        }
        for remark in remarks(&diagnosis.remarks) {
            self.note(format!("{remark}."));
        }
        if diagnosis.without_values > 0 {
            self.note(format!(
                "{} without value data, which are damaged.",
                plural(diagnosis.without_values, "function")
            ));
        }
    }

    /// Adds the share of the counts that match the functions of binaries, and the hot functions whose counts do not
    /// match.
    pub fn add_match(&mut self, profile: &ProfileFunctions, binaries: &BinaryFunctions) {
        let shares = MatchShares::new(profile, binaries);
        let Some(used) = shares.counts.matched_percent() else {
            return;
        };
        let paths: Vec<&str> = binaries
            .binaries
            .iter()
            .map(|binary| binary.path.as_str())
            .take(MOST)
            .collect();
        self.fact(
            "Used by binaries",
            format_args!("{}% of the counts ({})", tenths(used), paths.join(", ")),
        );
        for (lost, part) in [
            ("with another hash", shares.counts.changed),
            ("only inlined", shares.counts.inlined),
            ("not in the binaries", shares.counts.gone),
            ("inlined or gone", shares.counts.inlined_or_gone),
        ] {
            if let Some(share) = shares.counts.percent(part).filter(|_| part > 0) {
                self.fact("", format_args!("{}% {lost}", tenths(share)));
            }
        }
        for lost in shares.hot_lost.iter().take(MOST) {
            let why = match lost.outcome {
                Outcome::Changed => "has changed since",
                Outcome::Inlined => "is only inlined in the binaries",
                Outcome::InlinedOrGone => "is inlined or gone",
                _ => "is not in the binaries",
            };
            let became = lost
                .successor
                .as_ref()
                .map(|one| format!("; it probably became {}", names::display(&one.name)));
            self.note(format!(
                "The hot function {} {why}{}.",
                names::display(&lost.name),
                became.unwrap_or_default()
            ));
        }
        if shares.hot_lost.len() > MOST {
            self.note(format!(
                "{} more hot functions do not match.",
                grouped(shares.hot_lost.len() - MOST)
            ));
        }
    }

    /// Whether the profile says in which order functions were first called.
    pub fn has_traces(&self) -> bool {
        !self.traces.is_empty()
    }

    /// Adds the order of functions that `profkit order` proposes. If the symbols of the program are given, the page
    /// also says how many pages of memory the functions touch at start-up, with the present order and with the proposed
    /// one.
    pub fn add_order(
        &mut self,
        startup: &Startup,
        order: &StartupOrder,
        symbols: Option<&[CodeSymbol]>,
        page_size: u64,
    ) {
        let functions = order.functions();
        let mut proposal = Proposal {
            order: functions
                .filter_map(|(_, function)| self.first_calls.get(&function).copied())
                .collect(),
            ..Proposal::default()
        };
        if let Some(symbols) = symbols {
            let (all, traces) = order.footprints(startup, symbols, page_size);
            let line = |name: &str, text: &StartupText| {
                format!(
                    "{name}: {} with {} on {}; in the proposed order on {}.",
                    plural(text.functions as u64, "function"),
                    plural(text.bytes, "byte"),
                    plural(text.pages_before as u64, "page"),
                    grouped(text.pages_after)
                )
            };
            proposal.lines.push(line("All traces", &all));
            if traces.len() > 1 {
                let traces = traces.iter().zip(1..).take(MOST);
                let traces = traces.map(|(text, number)| line(&format!("Trace {number}"), text));
                proposal.lines.extend(traces);
            }
            proposal
                .lines
                .push(format!("A page has {}.", plural(page_size, "byte")));
            if !order.missing.is_empty() {
                proposal.lines.push(format!(
                    "Not in the program: {} of the traces.",
                    plural(order.missing.len() as u64, "function")
                ));
            }
        }
        self.proposal = Some(proposal);
    }
}
