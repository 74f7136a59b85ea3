//! Counts checked against the code of a binary.
use crate::branches::BranchFault;
use crate::code::Flow;
use crate::program::Program;
use profkit_perf::collect::{Numbering, Sums};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// How many ranges, branches and samples there are, and why some were not used. A range that occurs 10 times counts 10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// The number of ranges that have at least one end in the code of the binary.
    pub ranges: u64,
    /// The number of ranges with no end in the code of the binary, for example in stubs of the linker.
    pub outside_code: u64,
    /// Ranges whose start or end is no instruction: the samples are from another build of the binary.
    pub off_boundary: u64,
    /// Ranges whose last instruction is no branch, call or return. LLVM's tool counts them as not fitting; both use
    /// them.
    pub without_branch: u64,
    /// The number of ranges that begin in no function of the debug info.
    pub no_function: u64,
    /// The number of ranges in functions that only the symbol table has. They are used.
    pub of_symbols: u64,
    /// The number of ranges that go on after the end of their function.
    pub across_functions: u64,
    /// Ranges with a jump, call or return before their last instruction, or that end before they begin.
    pub impossible: u64,
    /// The number of [`impossible`](Self::impossible) ranges that begin in a function of the debug info.
    pub impossible_in_function: u64,
    /// The number of ranges that fit the code and were used.
    pub used: u64,
    /// The number of branches that have at least one end in the code of the binary.
    pub branches: u64,
    /// The number of branches with both ends in the code of the binary.
    pub branches_inside: u64,
    /// Of these, the branches at an instruction that is no branch. They are used.
    pub not_branches: u64,
    /// Of the branches inside, those at a direct branch that leads elsewhere. They are used.
    pub other_targets: u64,
    /// The number of branches to the entry of a function.
    pub calls: u64,
    /// The number of samples at an address where no instruction begins.
    pub addresses_off_boundary: u64,
    /// The number of samples at instructions.
    pub addresses_used: u64,
    /// The number of instructions whose source line was looked for.
    pub instructions: u64,
    /// The number of looked-up instructions that have no source line.
    pub instructions_without_line: u64,
    /// The number of pseudo probes in the code of functions with samples; 0 if the profile is by source line.
    pub probes: u64,
}

/// The reason why a range does not fit a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeFault {
    /// The range does not begin at an instruction, or does not end at a branch, a call or a return.
    OffBoundary,
    /// The range begins in no function of the debug info.
    NoFunction,
    /// The range continues after the end of its function.
    AcrossFunctions,
    /// The range has a jump, call or return before its last instruction, or ends before it begins.
    Impossible,
}

struct Looked {
    ends: (u64, u64),
    both: bool,
    ends_in_branch: bool,
    falls_through: bool,
}

/// Counts by address that fit the code of a binary.
#[derive(Clone, Debug, Default)]
pub struct CheckedCounts {
    /// The count of each range. The key is the address of the first and of the last instruction.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// The count of each branch, by its address (`None` if it is not in the code) and that of its target.
    pub branches: BTreeMap<(Option<u64>, u64), u64>,
    /// Samples by instruction.
    pub addresses: BTreeMap<u64, u64>,
}

impl CheckedCounts {
    /// Adds the counts that fit. `fault` gets each fault of a range, with its first and last address; a range can have
    /// several. Ranges with no end in the code are not reported.
    pub fn add(
        &mut self,
        program: &Program<'_>,
        sums: &Sums,
        numbering: Numbering,
        figures: &mut Figures,
        fault: &mut dyn FnMut(RangeFault, u64, u64),
    ) {
        let valid = self;
        let address = |place| program.address(numbering, place);
        let code = &program.code;
        // The code is decoded here, by all processor cores.
        let looked_at: Vec<Option<Looked>> = sums
            .ranges
            .par_iter()
            .map(|range| {
                let (start, end) = address(range.start).zip(address(range.end))?;
                let last = code.at(end);
                let (starts, ends) = (code.is_code(start), last.is_some());
                (starts || ends).then(|| Looked {
                    ends: (start, end),
                    both: starts && ends,
                    ends_in_branch: last.is_some_and(|last| last.flow != Flow::Next),
                    falls_through: starts && ends && code.falls_through(start, end),
                })
            })
            .collect();
        for (range, looked) in sums.ranges.iter().zip(looked_at) {
            let count = range.count;
            let Some(Looked {
                ends: (start, end),
                both,
                ends_in_branch,
                falls_through,
            }) = looked
            else {
                add(&mut figures.outside_code, count);
                continue;
            };
            add(&mut figures.ranges, count);
            if !both {
                add(&mut figures.off_boundary, count);
                fault(RangeFault::OffBoundary, start, end);
            } else if !ends_in_branch {
                add(&mut figures.without_branch, count);
                fault(RangeFault::OffBoundary, start, end);
            }
            let function = program.range_at(start);
            let of_symbols = function
                .and_then(|range| program.function(range.function))
                .is_some_and(|function| function.of_symbols);
            if of_symbols {
                add(&mut figures.of_symbols, count);
            }
            match function {
                None => {
                    add(&mut figures.no_function, count);
                    fault(RangeFault::NoFunction, start, end);
                }
                Some(range) if end >= range.end => {
                    add(&mut figures.across_functions, count);
                    fault(RangeFault::AcrossFunctions, start, end);
                }
                Some(_) => {}
            }
            if !both {
                continue;
            }
            if falls_through {
                add(&mut figures.used, count);
                add(valid.ranges.entry((start, end)).or_default(), count);
            } else {
                add(&mut figures.impossible, count);
                if function.is_some() {
                    add(&mut figures.impossible_in_function, count);
                    fault(RangeFault::Impossible, start, end);
                }
            }
        }
        for branch in &sums.branches {
            let end = |place: profkit_perf::collect::Place| {
                place.get().and_then(address).filter(|&at| code.is_code(at))
            };
            let (from, to) = (end(branch.from), end(branch.to));
            if from.is_some() || to.is_some() {
                add(&mut figures.branches, branch.count);
            }
            if let (Some(from), Some(to)) = (from, to) {
                add(&mut figures.branches_inside, branch.count);
                match program.branch_fault(from, to) {
                    Some(BranchFault::NoBranch) => add(&mut figures.not_branches, branch.count),
                    Some(BranchFault::OtherTarget) => add(&mut figures.other_targets, branch.count),
                    None => {}
                }
            }
            if let Some(to) = to {
                let sum = valid.branches.entry((from, to)).or_default();
                add(sum, branch.count);
            }
        }
        for sample in &sums.addresses {
            match address(sample.place).filter(|&at| code.is_code(at)) {
                Some(at) => {
                    add(&mut figures.addresses_used, sample.count);
                    add(valid.addresses.entry(at).or_default(), sample.count);
                }
                None => add(&mut figures.addresses_off_boundary, sample.count),
            }
        }
    }
}

/// Adds `count` to `sum`. The sum stops at the largest number, because text inputs can state counts of any size.
pub(crate) fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}
