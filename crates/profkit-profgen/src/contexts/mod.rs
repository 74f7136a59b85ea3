//! Sample profiles with calling contexts (CSSPGO), made from samples that have a call chain and a branch stack.
//!
//! [`unwind`] goes through the branches of a sample from the newest to the oldest, and undoes each branch in the call
//! chain. In this way each range of code and each branch gets the context in which it ran. [`make_profile`] turns the
//! contexts into a profile, by pseudo probe or by source line. `finish.rs` decides which contexts a compiler needs. The
//! counting is that of `llvm-profgen` 22.
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
use crate::lines::FinishedProfile;
use crate::probes::probes_of;
use crate::program::Program;
use profkit_data::Result;
use profkit_data::sample::{Location, ProfileKind, SampleProfile};
use profkit_data::summary::Thresholds;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of samples and branches that were used or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextFigures {
    /// The number of samples that have a call chain and a branch stack, and touch the binary.
    pub samples: u64,
    /// The number of samples at a place that is not in the binary.
    pub leaf_elsewhere: u64,
    /// Samples at the first or last instructions of a function, where the call chain can lack the caller.
    pub incomplete_chain: u64,
    /// Samples whose call chain was cut at a return address that does not follow a call.
    pub invalid_return: u64,
    /// The return addresses that do not follow a call.
    pub invalid_returns: BTreeSet<u64>,
    /// The number of branches in the samples that were used.
    pub branches: u64,
    /// Pairs of consecutive branches that leave the binary and come back to it.
    pub left_and_back: u64,
    /// Other branches that leave the binary or come back. All older branches of the sample have no context.
    pub unpaired: u64,
    /// Ranges with a jump before their last instruction. All older branches of the sample have no context.
    pub impossible: u64,
    /// Calls in branch stacks for which the call chain has another call in the same frame.
    pub mismatched_calls: u64,
    /// Branches from outside of the binary for which the call chain has a frame in the binary.
    pub mismatched_outside: u64,
    /// Whether code outside of the binary called code in it. Contexts begin at that call.
    pub foreign_callers: bool,
    /// The number of different contexts.
    pub contexts: u64,
    /// The number of contexts that were cut because a call site has no probe.
    pub without_probe: u64,
    /// Gaps in call chains that were filled with frames, which tail calls had left out.
    pub inferred_frames: u64,
    /// Gaps for which no frames were searched, because that would have taken too long.
    pub searches_given_up: u64,
    /// The number of contexts that were chosen for inlining.
    pub inlined: u64,
}

/// A frame of a context that is given by source lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineFrame {
    /// The function.
    pub name: Box<[u8]>,
    /// The call site in this function; 0 for the innermost frame.
    pub location: Location,
}

/// A calling context, outermost frame first; empty if nothing is known about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// The addresses of the calls, for programs with probes. The function that contains the samples is not included.
    Calls(Box<[u64]>),
    /// The frames of a program without probes, with inlined functions and the function that has the samples.
    Lines(Box<[LineFrame]>),
}

/// The ranges and branches that ran in a context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextCounts {
    /// The count of each range. The key is the address of the first and of the last instruction.
    pub ranges: BTreeMap<(u64, u64), u64>,
    /// The count of each branch, by its address (`None` if it is not in the code) and that of its target.
    pub branches: BTreeMap<(Option<u64>, u64), u64>,
    /// Whether the innermost function was inlined. Always `false` for programs with probes.
    pub was_inlined: bool,
}

/// The ranges and branches of a binary that ran in each context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The contexts.
    pub counts: BTreeMap<Context, ContextCounts>,
    /// Whether the contexts are lists of calls for programs with probes. Otherwise they are by source line.
    pub by_probes: bool,
    /// The numbers of samples and branches that were used or left out.
    pub figures: ContextFigures,
}

impl Contexts {
    /// Adds the counts of `other`, but not its numbers of used and left-out samples ([`figures`](Self::figures)).
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

/// Options for finding contexts and for reducing them to those that a compiler needs.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// The longest sequence of frames whose repetitions are removed; `None` is any length.
    pub compress_recursion: Option<usize>,
    /// The number of callers that are kept in a context; `None` keeps all.
    pub max_depth: Option<usize>,
    /// With probes: the calls that are kept while samples are added up. `None` keeps as many as `max_depth`.
    pub max_calls: Option<usize>,
    /// With probes: whether frames that tail calls left out are searched for.
    pub infer_missing_frames: bool,
    /// The largest number of tail calls in a chain that is searched for.
    pub max_search_depth: u32,
    /// The steps of all these searches. No real program needs as many as the default; malicious ones would not end.
    pub search_steps: u64,
    /// Whether the total of a function is the sum of its lines.
    pub totals_of_lines: bool,
    /// The limits that decide which counts are hot and which are cold.
    pub thresholds: Thresholds,
    /// How contexts are chosen for inlining. Others join the one without callers. `None` keeps all contexts.
    pub preinline: Option<PreinlineOptions>,
    /// Whether contexts that are not hot are dropped.
    pub trim_cold: bool,
    /// Whether contexts that are not hot are merged if they end alike. `None`: yes, unless `preinline` is set.
    pub merge_cold: Option<bool>,
    /// The innermost frames that such a context keeps, with that of the function itself.
    pub cold_depth: usize,
    /// Whether contexts are written as inlined functions. Compilers before LLVM 14 cannot read this.
    pub nest: bool,
    /// Whether the samples of an inlined function are also added to the function's own entry, which has no callers.
    pub keep_bases: bool,
    /// The share of all samples, in millionths, that the densest functions must have together.
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
            search_steps: missing::STEPS,
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

/// How contexts that a compiler shall inline are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreinlineOptions {
    /// The hottest function is inlined if it is smaller than about 100 times this
    /// (`--sample-profile-hot-inline-threshold`).
    pub hot_threshold: i32,
    /// The size below which a cold function is inlined (`--sample-profile-cold-inline-threshold`).
    pub cold_threshold: i32,
    /// The factor by which inlining may increase the size of a function (`--sample-profile-inline-growth-limit`).
    pub growth_limit: u32,
    /// The size up to which inlining may always increase a function (`--sample-profile-inline-limit-min`).
    pub limit_min: u32,
    /// The size beyond which inlining never increases a function (`--sample-profile-inline-limit-max`).
    pub limit_max: u32,
    /// The factor for functions that were inlined before (`--csspgo-preinliner-multiplier-for-previous-inlining`).
    pub was_inlined_factor: u32,
    /// Whether sizes are those of code, and not numbers of lines (`--use-context-cost-for-preinliner`).
    pub code_sizes: bool,
    /// Whether the same functions are inlined as in the recorded program (`--csspgo-replay-preinline`).
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

/// Makes a profile from contexts.
///
/// # Errors
/// If the sections of the pseudo probes are damaged.
pub fn make_profile(
    program: &Program<'_>,
    contexts: &Contexts,
    options: &ContextOptions,
) -> Result<(FinishedProfile, ContextFigures)> {
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

/// Decides about inlining, reduces cold contexts and nests again, for a finished profile with contexts.
pub fn finish_again(
    program: &Program<'_>,
    mut profile: SampleProfile,
    options: &ContextOptions,
) -> Result<(FinishedProfile, ContextFigures)> {
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
