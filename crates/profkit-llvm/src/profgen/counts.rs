//! Counts by address, and the profile that is made from them.
use super::binary::{Binary, share};
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use profkit_data::sample::SampleProfile;
use profkit_perf::collect::{BranchCount, Numbering, Place, RangeCount, Sums};
use profkit_profgen::contexts::Contexts;
use profkit_profgen::{CheckedCounts, Figures, KnownTargets, LineOptions, RangeFault, profile_of};
use rustc_hash::{FxHashMap, FxHashSet};

/// The address that LLVM's tool uses in place of an address at which the binary has no instruction.
pub const EXTERNAL: u64 = 1;

/// Counts by address.
pub enum Counts {
    /// Counts from samples. They were checked against the code of the binary.
    Samples(CheckedCounts),
    /// Counts from an unsymbolized profile. They were not checked against the code.
    Unsymbolized(CheckedCounts),
    /// Counts from samples with call chains, separate for each calling context.
    Contexts(Contexts),
}

impl Counts {
    /// Makes the sample profile from the counts.
    ///
    /// # Errors
    /// If the pseudo probes are damaged. LLVM's tool crashes in this case.
    pub fn profile(self, parsed: &Parsed, binary: &Binary<'_>) -> Result<SampleProfile, Fault> {
        let counts = match self {
            Counts::Samples(counts) | Counts::Unsymbolized(counts) => counts,
            Counts::Contexts(contexts) => {
                return super::contexts::profile(parsed, binary, &contexts);
            }
        };
        let mut options = LineOptions::default();
        options.zero_for_all = parsed.flag("fill-zero-for-all-funcs");
        options.totals_of_lines = parsed.flag("update-total-samples");
        profile_of(&binary.program, counts, &options, &mut Figures::default())
            .map(|(profile, _)| profile)
            .map_err(|error| Fault::of(parsed.text("binary"), error.to_string()))
    }
}

/// A branch stack: the start and the end of each branch.
type Stack = Box<[(u64, u64)]>;

/// The counts of ranges and branches, summed over branch stacks. They were not checked against the code yet.
#[derive(Debug, Default)]
pub struct Stacks {
    ranges: FxHashMap<(u64, u64), u64>,
    branches: FxHashMap<(u64, u64), u64>,
    /// Each different stack once, if they are kept: LLVM 23 counts the branches of these.
    different: Option<FxHashSet<Stack>>,
}

impl Stacks {
    /// Starts without a stack. `keeps` says whether each different one is kept.
    pub fn new(keeps: bool) -> Self {
        Stacks {
            different: keeps.then(FxHashSet::default),
            ..Stacks::default()
        }
    }

    /// Adds a branch stack, in which the newest branch comes first. If the binary has no instruction at an end of a
    /// branch, this end is [`EXTERNAL`]. At least one end of each branch is an instruction.
    pub fn add(&mut self, stack: &[(u64, u64)], count: u64) {
        let mut newer = None;
        for &(from, to) in stack {
            if to != EXTERNAL {
                add(self.branches.entry((from, to)).or_default(), count);
            }
            if let Some(end) = newer {
                add(self.ranges.entry((to, end)).or_default(), count);
            }
            newer = Some(from);
        }
        if let Some(different) = &mut self.different
            && !different.contains(stack)
        {
            different.insert(stack.into());
        }
    }

    /// Adds other sums.
    pub fn join(&mut self, other: Stacks) {
        for (range, count) in other.ranges {
            add(self.ranges.entry(range).or_default(), count);
        }
        for (branch, count) in other.branches {
            add(self.branches.entry(branch).or_default(), count);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.different, other.different) {
            ours.extend(theirs);
        }
    }

    fn into_sums(self) -> Sums {
        let ranges = self.ranges.into_iter();
        let ranges = ranges.map(|((start, end), count)| RangeCount { start, end, count });
        let mut ranges: Vec<RangeCount> = ranges.collect();
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        let from = |from| {
            if from == EXTERNAL {
                Place::ELSEWHERE
            } else {
                Place::at(from)
            }
        };
        let branches = self.branches.into_iter();
        let branches = branches.map(|((source, to), count)| BranchCount {
            from: from(source),
            to: Place::at(to),
            count,
        });
        let mut branches: Vec<BranchCount> = branches.collect();
        branches.sort_unstable_by_key(|branch| (branch.from, branch.to));
        Sums {
            ranges,
            branches,
            ..Sums::default()
        }
    }

    /// Checks the sums against the code. Prints warnings about ranges that do not fit the code, and about branches of
    /// stacks that were kept.
    pub fn check(
        mut self,
        parsed: &Parsed,
        binary: &Binary<'_>,
        session: &Session<'_>,
    ) -> CheckedCounts {
        let different = self.different.take();
        let sums = self.into_sums();
        let detailed = parsed.flag("show-detailed-warning");
        let mut figures = Figures::default();
        let mut checked = CheckedCounts::default();
        let mut report = |fault, start, end| {
            if detailed {
                let text = format!("[{start:>8x},{end:>8x}]: {}", text_of(fault));
                session.warning(b"", &text);
            }
        };
        checked.add(
            &binary.program,
            &sums,
            Numbering::Address,
            &mut figures,
            &mut report,
        );
        let all = figures.ranges.saturating_add(figures.outside_code);
        if all == 0 {
            session.warning(b"", "No samples in perf script!");
        }
        for (part, text) in [
            (
                figures.off_boundary.saturating_add(figures.without_branch),
                "of samples are from ranges that are not on instruction boundary.",
            ),
            (
                figures.no_function,
                "of samples are from ranges that do not belong to any functions.",
            ),
            (
                figures.of_symbols,
                "of samples are from ranges that belong to functions recovered from symbol table.",
            ),
            (
                figures.across_functions,
                "of samples are from ranges that do cross function boundaries.",
            ),
            (
                figures.impossible_in_function,
                "of samples are from ranges that have range start after or too far from range end acrossing the unconditinal jmp.",
            ),
        ] {
            share(session, part, all, text);
        }
        if let Some(different) = different {
            let stacks = different.iter().map(|stack| stack.iter().copied());
            warn_about_branches(binary, stacks, session);
        }
        checked
    }
}

/// Prints the warnings of LLVM 23 about branches that do not fit the code. `stacks` are the different samples, each once: it
/// does not matter how often a sample occurred.
pub fn warn_about_branches(
    binary: &Binary<'_>,
    stacks: impl Iterator<Item = impl Iterator<Item = (u64, u64)>>,
    session: &Session<'_>,
) {
    let mut counts: FxHashMap<(u64, u64), u64> = FxHashMap::default();
    for (from, to) in stacks.flatten() {
        if from != EXTERNAL && to != EXTERNAL {
            add(counts.entry((from, to)).or_default(), 1);
        }
    }
    let known = KnownTargets::new(&binary.program);
    let (mut all, mut not_branches, mut other_targets) = (0, 0, 0);
    for ((from, to), count) in counts {
        add(&mut all, count);
        if !known.is_branch(from) {
            add(&mut not_branches, count);
        }
        if !known.is_target(from, to) {
            add(&mut other_targets, count);
        }
    }
    share(
        session,
        not_branches,
        all,
        "of branch samples do not match the binary.",
    );
    share(
        session,
        other_targets,
        all,
        "of branch targets do not match the binary.",
    );
}

/// Returns LLVM's text for a range that does not fit the code.
fn text_of(fault: RangeFault) -> &'static str {
    match fault {
        RangeFault::OffBoundary => {
            "Range is not on instruction boundary, likely due to profile and binary mismatch."
        }
        RangeFault::NoFunction => {
            "Range does not belong to any functions, likely from PLT, .init or .fini section."
        }
        RangeFault::AcrossFunctions => {
            "Fall through range should not cross function boundaries, likely due to profile and binary mismatch."
        }
        RangeFault::Impossible => "Range start is after or too far from range end.",
    }
}

pub fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}
