//! Counts checked against the code of a binary.
use crate::program::Program;
use profkit_perf::collect::{Numbering, Sums};
use std::collections::BTreeMap;

/// The numbers of samples that could not be used, by reason. A range that occurred 10 times counts 10 times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// All ranges with an end in the code of the binary.
    pub ranges: u64,
    /// Ranges in no section with code, for example in stubs of the linker.
    pub outside_code: u64,
    /// Ranges that do not begin or end with an instruction: the samples are of another build of the binary.
    pub off_boundary: u64,
    /// Ranges in no function of the debug info.
    pub no_function: u64,
    /// Ranges that go on after the end of their function.
    pub across_functions: u64,
    /// Ranges that run over a jump, a call or a return, or backwards.
    pub impossible: u64,
    /// The part of [`impossible`](Self::impossible) that begins in a function of the debug info.
    pub impossible_in_function: u64,
    /// Ranges that were used.
    pub used: u64,
    /// Branches with an end in the code of the binary.
    pub branches: u64,
    /// Branches to the entry of a function.
    pub calls: u64,
    /// Samples at places that are no instruction.
    pub addresses_off_boundary: u64,
    /// Samples at instructions.
    pub addresses_used: u64,
    /// The number of instructions whose source line was looked for.
    pub instructions: u64,
    /// The number of these without a source line.
    pub instructions_without_line: u64,
    /// The number of pseudo probes in the code of the functions that have samples; 0 if the profile is by source line.
    pub probes: u64,
}

/// What is wrong with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeFault {
    /// The range does not begin at the start of an instruction, or does not end at the end of one.
    OffBoundary,
    /// The range begins in no function of the debug info.
    NoFunction,
    /// The range goes on after the end of its function.
    AcrossFunctions,
    /// The range begins in a function, but contains a jump, a call or a return before its last instruction, or ends
    /// before it begins.
    Impossible,
}

/// Counts by address that fit the code of a binary.
#[derive(Clone, Debug, Default)]
pub struct CheckedCounts {
    /// First and last instruction.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// The branch instruction, or `None` if it is not in the code; and the target.
    pub branches: BTreeMap<(Option<u64>, u64), u64>,
    /// Samples by instruction.
    pub addresses: BTreeMap<u64, u64>,
}

impl CheckedCounts {
    /// Adds the counts that fit the code. `fault` gets the other ranges, and those that fit it but not its functions:
    /// first and last address as far as they are in the binary, and what is wrong. A range can have several faults.
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
        for range in &sums.ranges {
            let count = range.count;
            let ends = address(range.start).zip(address(range.end));
            let is_code = |(start, end)| (code.is_code(start), code.is_code(end));
            let Some(((start, end), inside)) = ends
                .map(|ends| (ends, is_code(ends)))
                .filter(|(_, inside)| inside.0 || inside.1)
            else {
                add(&mut figures.outside_code, count);
                continue;
            };
            add(&mut figures.ranges, count);
            let both = inside.0 && inside.1;
            if !both {
                add(&mut figures.off_boundary, count);
                fault(RangeFault::OffBoundary, start, end);
            }
            let function = program.range_at(start);
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
            if code.falls_through(start, end) {
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

/// Adds a count, which texts can state as any number.
pub(crate) fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}
