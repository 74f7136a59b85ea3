//! Sample profiles by source line.
//!
//! Each instruction of a range gives its count to its line. A line gets the largest count of its instructions, times
//! the number of copies that the compiler made of them. Each function on the inline stack adds the count times the size
//! of the instruction to its total. A branch to the entry of a function is a call. It adds a call target to the line of
//! the branch, and a head sample to the function.
use crate::checked::{CheckedCounts, Figures, add};
use crate::finish::{Density, density, drop_ambiguous};
use crate::probes;
use crate::program::Program;
use crate::ranges::disjoint;
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::memprof::canonical_name;
use profkit_data::sample::{
    AddOutcome, Location, NameId, ProfileKind, SampleName, SampleProfile, Samples,
    base_discriminator, duplication_factor,
};
use profkit_data::{Error, Result};
use profkit_object::symbolize::{FrameId, Locations};
use profkit_perf::collect::{Numbering, Sums};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The mask for a line offset. Line offsets in sample profiles have 16 bits.
const OFFSET_MASK: u32 = 0xffff;

/// How a profile is made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LineOptions {
    /// Whether the places of samples are counted, and not the branch stacks. A line then gets the sum of its samples,
    /// and there are no calls.
    pub plain_addresses: bool,
    /// Whether functions without any sample are in the profile too, with lines of count 0.
    pub zero_for_all: bool,
    /// Whether the total of a function is the sum of its lines. Otherwise it is the sum over the bytes of its
    /// instructions.
    pub totals_of_lines: bool,
}

/// A finished profile.
#[derive(Debug)]
#[non_exhaustive]
pub struct Made {
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
/// `counts` has several elements if the inputs give the places in the binary in different numberings.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn make_profile(
    program: &Program<'_>,
    counts: &[(&Sums, Numbering)],
    options: &LineOptions,
) -> Result<Made> {
    let mut figures = Figures::default();
    let mut checked = CheckedCounts::default();
    for (sums, numbering) in counts {
        checked.add(program, sums, *numbering, &mut figures, &mut |_, _, _| {});
    }
    let (mut profile, warnings) = profile_of(program, checked, options, &mut figures)?;
    drop_ambiguous(&mut profile);
    let density = density(&profile, Density::CUTOFF);
    Ok(Made {
        profile,
        figures,
        density,
        warnings,
    })
}

/// Makes the profile of a binary, with all its functions: by pseudo probe if the program has probes, otherwise by
/// source line. Adds to `figures`. Also returns the errors in the debug info.
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
    // The list has the instructions of all ranges; the calls follow in a second list.
    let mut instructions = Vec::new();
    for (first, last, count) in disjoint(&counts.ranges) {
        let inside = program.code.between(first, last);
        instructions.extend(inside.map(|one| (one.address, one.size, count)));
    }
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
    let mut builder = Builder {
        profile: SampleProfile::new(),
        locations: &locations,
        whole_discriminators: program.fs_discriminators,
        sum_lines: options.plain_addresses,
    };
    if program.fs_discriminators {
        builder.profile.kind = ProfileKind::FS_DISCRIMINATORS;
    }
    figures.instructions = instructions.len() as u64;
    figures.instructions_without_line = builder.add_instructions(&instructions);
    for (index, (from, callee, count)) in calls.iter().enumerate() {
        let leaf = from.and_then(|_| locations.leaf(instructions.len() + index));
        builder.add_call(leaf, callee, *count);
    }
    let mut profile = builder.profile;
    let (_, functions) = profile.parts_mut();
    for function in functions {
        raise_lines_to_targets(&mut function.samples);
        if options.totals_of_lines {
            total_of_lines(&mut function.samples);
        }
    }
    Ok((profile, locations.warnings().to_vec()))
}

/// Adds, with count 0, all ranges of the functions that have samples, so that their other lines get the count 0. With
/// `all`, adds the ranges of all functions.
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

/// The place of an instruction in the tree of samples: the function, the chain of functions inlined into it, and the
/// line in the innermost function.
struct Path {
    function: NameId,
    inlined: Vec<(Location, NameId)>,
    /// The line in the innermost function, with all parts of the discriminator.
    line: Location,
}

struct Builder<'l> {
    profile: SampleProfile,
    locations: &'l Locations,
    whole_discriminators: bool,
    sum_lines: bool,
}

impl Builder<'_> {
    fn base(&self, location: Location) -> Location {
        let discriminator = if self.whole_discriminators {
            location.discriminator
        } else {
            base_discriminator(location.discriminator)
        };
        Location::new(location.line, discriminator)
    }

    /// Returns the place of a frame. `None` if the outermost function has no name, or if the inline stack is deeper
    /// than a profile allows. If an inlined function has no name, it is left out, and so are the functions inlined into
    /// it.
    fn path(&mut self, leaf: FrameId) -> Option<Path> {
        let locations = self.locations;
        let frames = std::iter::successors(Some(leaf), |&frame| locations.caller(frame));
        let frames = frames.take(SAMPLE_INLINE_DEPTH + 1);
        let mut frames: Vec<_> = frames.filter_map(|id| locations.frame(id)).collect();
        if frames.len() > SAMPLE_INLINE_DEPTH {
            return None;
        }
        frames.reverse();
        let mut path: Option<Path> = None;
        for frame in frames {
            let Some(name) = frame.function.filter(|name| !name.is_empty()) else {
                break;
            };
            let name = self.profile.intern(SampleName::Text(name))?;
            let line = Location::new(
                frame.line.wrapping_sub(frame.function_line) & OFFSET_MASK,
                frame.discriminator,
            );
            path = Some(match path {
                None => Path {
                    function: name,
                    inlined: Vec::new(),
                    line,
                },
                Some(mut path) => {
                    path.inlined.push((self.base(path.line), name));
                    Path { line, ..path }
                }
            });
        }
        path
    }

    /// Returns the samples of the innermost function of a path. Adds `total` to all functions of the path.
    fn enter(&mut self, path: &Path, total: u64) -> Option<&mut Samples> {
        let index = self.profile.find_or_add(&[], path.function);
        let mut samples = self.profile.samples_mut(index)?;
        add(&mut samples.total, total);
        for &(location, name) in &path.inlined {
            samples = samples.inlined_at(location, name);
            add(&mut samples.total, total);
        }
        Some(samples)
    }

    /// Adds instructions, each with its address, size and count. Their addresses are the first in `locations`. Returns
    /// the number of instructions without a line.
    fn add_instructions(&mut self, instructions: &[(u64, u8, u64)]) -> u64 {
        /// The counts of a frame: `total` for the totals of its functions, `line` for its line.
        #[derive(Clone, Copy, Default)]
        struct Counts {
            total: u64,
            line: u64,
            instructions: u64,
        }
        let mut without_line = 0;
        let mut frames: FxHashMap<FrameId, Counts> = FxHashMap::default();
        let mut order = Vec::new();
        for (index, (_, size, count)) in instructions.iter().enumerate() {
            let Some(leaf) = self.locations.leaf(index) else {
                without_line += 1;
                continue;
            };
            let counts = frames.entry(leaf).or_insert_with(|| {
                order.push(leaf);
                Counts::default()
            });
            counts.instructions += 1;
            add(&mut counts.total, count.saturating_mul(u64::from(*size)));
            if self.sum_lines {
                add(&mut counts.line, *count);
            } else {
                counts.line = counts.line.max(*count);
            }
        }
        for leaf in order {
            let counts = frames.get(&leaf).copied().unwrap_or_default();
            let Some(path) = self.path(leaf) else {
                without_line += counts.instructions;
                continue;
            };
            let factor = if self.whole_discriminators || self.sum_lines {
                1
            } else {
                duplication_factor(path.line.discriminator)
            };
            let count = counts.line.saturating_mul(u64::from(factor));
            let (location, sum) = (self.base(path.line), self.sum_lines);
            if let Some(samples) = self.enter(&path, counts.total) {
                let line = line_at(samples, location);
                *line = if sum {
                    line.saturating_add(count)
                } else {
                    (*line).max(count)
                };
            }
        }
        without_line
    }

    /// Adds a call from a frame, if the frame is known.
    fn add_call(&mut self, leaf: Option<FrameId>, callee: &[u8], count: u64) {
        let Some(callee) = self.profile.intern(SampleName::Text(callee)) else {
            return;
        };
        if let Some(path) = leaf.and_then(|leaf| self.path(leaf)) {
            let location = self.base(path.line);
            if let Some(samples) = self.enter(&path, 0) {
                line_at(samples, location);
                let mut outcome = AddOutcome::default();
                samples
                    .adding()
                    .add_target(location, callee, count, 1, &mut outcome);
            }
        }
        let index = self.profile.find_or_add(&[], callee);
        if let Some(samples) = self.profile.samples_mut(index) {
            add(&mut samples.head, count);
        }
    }
}

/// Returns the count of a line. If the function does not have the line, it is added with the count 0.
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

/// Raises the count of each line with calls to the sum of its calls, if that is larger.
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

/// Sets the total of a function to the sum of its lines, and likewise for the functions inlined into it. Functions are
/// nested at most as deep as [`SAMPLE_INLINE_DEPTH`].
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
