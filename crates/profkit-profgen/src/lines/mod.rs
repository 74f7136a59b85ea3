//! Sample profiles by source line.
//!
//! A range is the code that ran from the target of one branch to the next branch. Each instruction of a range gives its
//! count to its line; a line gets the largest count of its instructions, times the number of copies that the compiler
//! made of them. For each function on the inline stack of an instruction, the count of the instruction times its size
//! is added to the function's total. A branch to the entry of a function is a call: the line of the branch gets a call
//! target, and the function that is entered gets a head sample.
mod tree;

use crate::checked::{CheckedCounts, Figures, add};
use crate::discriminators::Discriminators;
use crate::finish::{Density, density, drop_ambiguous};
use crate::probes;
use crate::program::Program;
use crate::ranges::disjoint;
use profkit_data::memprof::canonical_name;
use profkit_data::sample::{Location, ProfileKind, SampleProfile, Samples};
use profkit_data::{Error, Result};
use profkit_perf::collect::{Numbering, Sums};
use rayon::prelude::*;
use std::collections::BTreeMap;
use tree::{Counting, Trees};

/// The mask for a line offset. Line offsets in sample profiles have 16 bits.
const OFFSET_MASK: u32 = 0xffff;

/// How a profile is made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LineOptions {
    /// Whether sampled addresses are counted, and not branch stacks. A line gets their sum; there are no calls.
    pub plain_addresses: bool,
    /// Whether functions without any sample are in the profile too, with lines of count 0.
    pub zero_for_all: bool,
    /// Whether totals of functions are sums of lines, and not of bytes of instructions.
    pub totals_of_lines: bool,
    /// How the compiler wrote the discriminators of the program's line table.
    pub discriminators: Discriminators,
}

/// A finished profile.
#[derive(Debug)]
#[non_exhaustive]
pub struct FinishedProfile {
    /// The profile.
    pub profile: SampleProfile,
    /// The numbers of ranges, branches and samples that were used or left out.
    pub figures: Figures,
    /// The density of the profile, which shows whether there are enough samples.
    pub density: Density,
    /// The errors in debug info that could not be read.
    pub warnings: Vec<Error>,
}

/// Makes the profile of a binary from its counts: by pseudo probe if the program has probes, otherwise by source line.
/// Inputs state places in the binary in different ways, called numberings: as offsets in the file, as addresses, or as
/// distances from a symbol. `counts` has one element for each numbering that the inputs use.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn make_profile(
    program: &Program<'_>,
    counts: &[(&Sums, Numbering)],
    options: &LineOptions,
) -> Result<FinishedProfile> {
    let mut figures = Figures::default();
    let mut checked = CheckedCounts::default();
    for (sums, numbering) in counts {
        checked.add(program, sums, *numbering, &mut figures, &mut |_, _, _| {});
    }
    let (mut profile, warnings) = profile_of(program, checked, options, &mut figures)?;
    drop_ambiguous(&mut profile);
    let density = density(&profile, Density::CUTOFF);
    Ok(FinishedProfile {
        profile,
        figures,
        density,
        warnings,
    })
}

/// Makes the profile of a binary. Samples are counted by pseudo probe if the program has probes, otherwise by source line.
/// Functions with ambiguous names are not removed yet. Adds to `figures`. Also returns the errors in the debug info.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn profile_of(
    program: &Program<'_>,
    mut counts: CheckedCounts,
    options: &LineOptions,
    figures: &mut Figures,
) -> Result<(SampleProfile, Vec<Error>)> {
    if options.plain_addresses {
        let addresses = std::mem::take(&mut counts.addresses);
        counts.ranges = addresses.into_iter().map(|(at, n)| ((at, at), n)).collect();
        counts.branches.clear();
    }
    if program.has_probes() {
        let profile = probes::profile_of(program, counts, options, figures)?;
        return Ok((profile, Vec::new()));
    }
    add_zeros(program, &mut counts.ranges, options.zero_for_all);
    // The instructions of all ranges, and after them the calls.
    let ranges = disjoint(&counts.ranges);
    let inside = ranges.par_iter().flat_map_iter(|&(first, last, count)| {
        let inside = program.code.between(first, last);
        inside.map(move |one| (one.address, one.size, count))
    });
    let instructions: Vec<(u64, u8, u64)> = inside.collect();
    let calls: Vec<(Option<u64>, &[u8], u64)> = counts
        .branches
        .iter()
        .filter_map(|(&(from, to), &count)| {
            let callee = program.entered_at(to)?;
            add(&mut figures.calls, count);
            Some((from, canonical_name(&callee.name), count))
        })
        .collect();
    let sources = calls.iter().map(|(from, ..)| from.unwrap_or(0));
    let addresses: Vec<u64> = instructions
        .iter()
        .map(|(address, ..)| *address)
        .chain(sources)
        .collect();
    let locations = program.symbolizer.symbolize(&addresses);
    let discriminators = match program.fs_discriminators {
        true => Discriminators::Whole,
        false => options.discriminators,
    };
    let counting = Counting {
        discriminators,
        sum_lines: options.plain_addresses,
        totals_of_lines: options.totals_of_lines,
    };
    let mut trees = Trees::new(&locations, counting);
    figures.instructions = instructions.len() as u64;
    figures.instructions_without_line = trees.add_instructions(&instructions);
    for (index, (from, callee, count)) in calls.iter().enumerate() {
        let leaf = from.and_then(|_| locations.leaf(instructions.len() + index));
        trees.add_call(leaf, callee, *count);
    }
    let mut profile = trees.finish();
    discriminators.finish(&mut profile);
    if program.fs_discriminators {
        profile.kind = ProfileKind::FS_DISCRIMINATORS;
    }
    Ok((profile, locations.warnings().to_vec()))
}

/// Gives count 0 to the ranges of functions with samples, or of `all`, so that lines without samples are listed.
pub(crate) fn add_zeros(program: &Program<'_>, ranges: &mut BTreeMap<(u64, u64), u64>, all: bool) {
    let mut zeros: Vec<(u64, u64)> = Vec::new();
    if all {
        for function in &program.functions {
            zeros.extend(&function.ranges);
        }
    } else {
        let starts = ranges.keys().map(|(start, _)| *start);
        let hit = starts.filter_map(|start| Some(program.range_at(start)?.function));
        let hit: rustc_hash::FxHashSet<_> = hit.collect();
        for function in hit.into_iter().filter_map(|id| program.function(id)) {
            zeros.extend(&function.ranges);
        }
    }
    for (start, end) in zeros {
        if let Some(last) = end.checked_sub(1) {
            ranges.entry((start, last)).or_default();
        }
    }
}

pub(crate) fn line_at(samples: &mut Samples, location: Location) -> &mut u64 {
    let found = samples
        .body
        .binary_search_by_key(&location, |line| line.location);
    let at = found.unwrap_or_else(|at| {
        let line = profkit_data::sample::BodyLine {
            location,
            samples: 0,
        };
        samples.body.insert(at, line);
        at
    });
    #[allow(
        clippy::indexing_slicing,
        reason = "the line was found or inserted there"
    )]
    &mut samples.body[at].samples
}

pub(crate) fn raise_lines_to_targets(samples: &mut Samples) {
    let mut sums: BTreeMap<Location, u64> = BTreeMap::new();
    for target in &samples.targets {
        add(sums.entry(target.location).or_default(), target.count);
    }
    for line in &mut samples.body {
        let sum = sums.get(&line.location).copied().unwrap_or(0);
        line.samples = line.samples.max(sum);
    }
}

/// Functions are nested at most as deep as [`SAMPLE_INLINE_DEPTH`](profkit_data::limits::SAMPLE_INLINE_DEPTH).
pub(crate) fn total_of_lines(samples: &mut Samples) -> u64 {
    let own = samples
        .body
        .iter()
        .fold(0u64, |sum, line| sum.saturating_add(line.samples));
    samples.total = samples.inlined.iter_mut().fold(own, |sum, inlined| {
        sum.saturating_add(total_of_lines(&mut inlined.samples))
    });
    samples.total
}
