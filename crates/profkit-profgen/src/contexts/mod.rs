//! Sample profiles with calling contexts (CSSPGO), of samples that have a call chain and a branch stack.
//!
//! [`unwind`] takes the branches of each sample back, from the newest to the oldest, and with them the call chain: so each
//! range of code and each branch gets the context in which it ran. [`make_profile`] turns the contexts into a profile, by
//! pseudo probe or by source line, and `finish.rs` decides which contexts a compiler needs. The counting is that of
//! `llvm-profgen` 22.
mod compress;
mod finish;
mod inline_order;
mod lines;
mod missing;
mod preinline;
mod probes;
mod queue;
mod sizes;
mod trie;
mod unsymbolized;
mod unwind;

pub use unsymbolized::{read_contexts, write_contexts};
pub use unwind::{Samples, is_complete, unwind, unwind_samples};

use crate::checked::add;
use crate::lines::Made;
use crate::probes::probes_of;
use crate::program::Program;
use profkit_data::Result;
use profkit_data::sample::{Location, ProfileKind, SampleProfile};
use profkit_data::summary::Thresholds;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of samples and branches, used and left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFigures {
    /// The samples with a call chain and a branch stack that touch the binary.
    pub samples: u64,
    /// Samples at a place that is not in the binary.
    pub leaf_elsewhere: u64,
    /// Samples in the first or last instructions of a function, where the call chain lacks the caller. They are left out.
    pub incomplete_chain: u64,
    /// Samples whose call chain was cut where a return address does not come after a call.
    pub invalid_return: u64,
    /// These return addresses.
    pub invalid_returns: BTreeSet<u64>,
    /// The branches of the samples that were used.
    pub branches: u64,
    /// Pairs of branches that leave the binary and come back.
    pub left_and_back: u64,
    /// Branches that leave the binary or come back alone. The older branches of the sample have no context.
    pub unpaired: u64,
    /// Ranges that run over a jump, or backwards. The older branches of the sample have no context.
    pub impossible: u64,
    /// Calls that are not where the call chain says.
    pub mismatched_calls: u64,
    /// Branches from outside of the binary that are not where the call chain says.
    pub mismatched_outside: u64,
    /// Whether frames outside of the binary called code of the binary: the contexts of that code begin there.
    pub foreign_callers: bool,
    /// The different contexts.
    pub contexts: u64,
    /// Contexts that were cut, because a call site has no probe.
    pub without_probe: u64,
    /// Places between two frames at which calls without a frame were found.
    pub inferred_frames: u64,
    /// Places at which calls without a frame were not looked for, because the search would have taken too long.
    pub searches_given_up: u64,
    /// Contexts that were decided to be inlined.
    pub inlined: u64,
}

/// A frame of a context by source line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineFrame {
    /// The function.
    pub name: Box<[u8]>,
    /// The call site in it; 0 for the innermost frame.
    pub location: Location,
}

/// A calling context, outermost frame first. The context of samples that came from outside of the binary is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The addresses of the calls, without the function in which the samples are: for programs with probes.
    Calls(Box<[u64]>),
    /// The frames, with those of inlined functions and the function itself.
    Lines(Box<[LineFrame]>),
}

/// What ran in a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextCounts {
    /// First and last instruction.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// The branch instruction, or `None` if it is not in the code; and the target.
    pub branches: BTreeMap<(Option<u64>, u64), u64>,
    /// Whether the innermost function was inlined (contexts by source line).
    pub was_inlined: bool,
}

/// What ran in each context of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The contexts.
    pub counts: BTreeMap<Context, ContextCounts>,
    /// Whether contexts are by probe.
    pub by_probes: bool,
    /// The numbers of what was used and left out.
    pub figures: ContextFigures,
}

impl Contexts {
    /// Adds the counts of other contexts. Their figures are not added.
    pub fn add(&mut self, other: Contexts) {
        for (context, counts) in other.counts {
            match self.counts.entry(context) {
                Entry::Vacant(new) => {
                    new.insert(counts);
                }
                Entry::Occupied(known) => {
                    let known = known.into_mut();
                    for (range, count) in counts.ranges {
                        add(known.ranges.entry(range).or_default(), count);
                    }
                    for (branch, count) in counts.branches {
                        add(known.branches.entry(branch).or_default(), count);
                    }
                }
            }
        }
    }
}

/// How contexts are found, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// The longest sequence of frames whose repetitions are removed; `None` removes all, `Some(0)` none.
    pub compress_recursion: Option<usize>,
    /// The number of callers that a context keeps; `None` keeps all.
    pub max_depth: Option<usize>,
    /// The number of calls that a context by address keeps while samples are added up, before functions that were inlined
    /// become callers too; `None` keeps as many as `max_depth`. Only programs with probes.
    pub max_calls: Option<usize>,
    /// Whether frames that tail calls left out are looked for. Only programs with probes.
    pub infer_missing_frames: bool,
    /// The longest chain of tail calls that is looked for.
    pub max_search_depth: u32,
    /// Whether the total of a function is the sum of its lines.
    pub totals_of_lines: bool,
    /// Which counts are hot, and which are cold.
    pub thresholds: Thresholds,
    /// Decides which contexts are inlined, and adds the others up. `None` keeps all contexts.
    pub preinline: Option<PreinlineOptions>,
    /// Whether contexts that are not hot are dropped.
    pub trim_cold: bool,
    /// Whether contexts that are not hot are added up; `None` does so unless contexts are inlined beforehand.
    pub merge_cold: Option<bool>,
    /// The number of frames that contexts keep when they are added up.
    pub cold_depth: usize,
    /// Whether contexts become functions inlined in one another, as compilers before LLVM 14 cannot read.
    pub nest: bool,
    /// Whether nested functions are also added to the profile of the function alone.
    pub keep_bases: bool,
    /// The share of samples for the density, in millionths.
    pub density_cutoff: u32,
}

impl Default for ContextOptions {
    /// The defaults of llvm-profgen 22.
    fn default() -> Self {
        ContextOptions {
            compress_recursion: None,
            max_depth: None,
            max_calls: None,
            infer_missing_frames: true,
            max_search_depth: u32::MAX - 1,
            totals_of_lines: false,
            thresholds: Thresholds::default(),
            preinline: Some(PreinlineOptions::default()),
            trim_cold: false,
            merge_cold: None,
            cold_depth: 1,
            nest: true,
            keep_bases: false,
            density_cutoff: crate::finish::Density::CUTOFF,
        }
    }
}

/// How contexts are chosen that a compiler shall inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreinlineOptions {
    /// A hot function is inlined if its size is below this, times 100 (`--sample-profile-hot-inline-threshold`).
    pub hot_threshold: i32,
    /// A cold function is inlined if its size is below this (`--sample-profile-cold-inline-threshold`).
    pub cold_threshold: i32,
    /// How many times its own size a function may grow to (`--sample-profile-inline-growth-limit`).
    pub growth_limit: u32,
    /// A function may always grow to this size (`--sample-profile-inline-limit-min`).
    pub limit_min: u32,
    /// No function may grow beyond this size (`--sample-profile-inline-limit-max`).
    pub limit_max: u32,
    /// The factor of the thresholds for functions that the recorded program has inlined
    /// (`--csspgo-preinliner-multiplier-for-previous-inlining`).
    pub was_inlined_factor: u32,
    /// Whether sizes are those of the code in the program, and not numbers of lines
    /// (`--use-context-cost-for-preinliner`).
    pub code_sizes: bool,
    /// Whether exactly those are inlined that the recorded program has inlined (`--csspgo-replay-preinline`).
    pub replay: bool,
}

impl Default for PreinlineOptions {
    fn default() -> Self {
        PreinlineOptions {
            hot_threshold: 1500,
            cold_threshold: 0,
            growth_limit: 12,
            limit_min: 100,
            limit_max: 50_000,
            was_inlined_factor: 100,
            code_sizes: true,
            replay: false,
        }
    }
}

/// Makes a profile of contexts.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn make_profile(
    program: &Program<'_>,
    contexts: &Contexts,
    options: &ContextOptions,
) -> Result<(Made, ContextFigures)> {
    let mut figures = contexts.figures.clone();
    figures.contexts = contexts.counts.len() as u64;
    let mut trie = trie::Trie::default();
    let sizes = if contexts.by_probes {
        probes::fill(program, contexts, options, &mut trie, &mut figures)?
    } else {
        lines::fill(program, contexts, options, &mut trie)
    };
    let mut kind = ProfileKind::NONE;
    if contexts.by_probes {
        kind |= ProfileKind::PROBE_BASED;
    }
    if program.fs_discriminators {
        kind |= ProfileKind::FS_DISCRIMINATORS;
    }
    finish::sum_up(&mut trie, kind, options);
    let made = finish::finish(trie, &sizes, kind, options, &mut figures);
    Ok((made, figures))
}

/// Does the last steps of a finished profile with contexts again: decisions about inlining, cold contexts, nesting. The
/// figures have only what these steps know.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn finish_again(
    program: &Program<'_>,
    mut profile: SampleProfile,
    options: &ContextOptions,
) -> Result<(Made, ContextFigures)> {
    let mut kind = profile.kind.without(ProfileKind::FS_DISCRIMINATORS);
    let mut trie = trie::Trie::of(&mut profile);
    let sizes = if sizes::Sizes::is_wanted(options) {
        let functions = program.functions_with(&trie.guids());
        if program.has_probes() {
            let map = probes_of(program, &functions)?;
            sizes::Sizes::of_probes(program, &functions, &map, options)
        } else {
            sizes::Sizes::of_lines(program, &functions, options)
        }
    } else {
        sizes::Sizes::default()
    };
    if program.fs_discriminators {
        kind |= ProfileKind::FS_DISCRIMINATORS;
    }
    let mut figures = ContextFigures {
        contexts: trie.with_samples(),
        ..ContextFigures::default()
    };
    let made = finish::finish(trie, &sizes, kind, options, &mut figures);
    Ok((made, figures))
}
