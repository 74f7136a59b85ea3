//! Compares profiles of any family, two at a time.
use super::instr::of_instr;
use super::side::{Figures, IndexedSide, Side};
use crate::any::AnyProfile;
use crate::diff::instr::check_kinds;
use crate::faults::Faults;
use crate::heap::{FrameRule, HeapProfile, NoBinaries, is_heap_alone, load_heap};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::instr::indexed::ReleaseBytes;
use profkit_data::instr::{InstrKind, InstrProfile};
use profkit_data::memprof::{Field, Frame};
use profkit_data::mip::MipProfile;
use profkit_data::sample::overlap::{
    HotOverlap, Incomparable, OverlapSide, SampleOverlap, hot_threshold,
};
use profkit_data::sample::{ProfileKind, SampleName, SampleProfile, context_name};
use profkit_data::{ErrorKind, Result, share};
use profkit_merge::{MergeError, RunOptions};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;
use std::fmt;

/// The share of all samples, in millionths, that hot lines have together.
const HOT_CUTOFF: u64 = 990_000;

/// A profile of any family, read completely so that it can be compared.
#[derive(Debug)]
pub struct ComparedProfile<'d> {
    pub(crate) content: Content<'d>,
    /// The errors of the file. Its sound parts are compared nevertheless.
    pub damage: Faults,
}

#[derive(Debug)]
pub(crate) enum Content<'d> {
    Instr(InstrProfile),
    /// An instrumentation profile that is read in its file.
    Indexed(Box<IndexedSide<'d>>),
    Sample {
        profile: SampleProfile,
        /// The smallest number of samples that makes a line hot.
        threshold: u64,
    },
    Heap(Box<HeapProfile>),
    Mip(MipProfile),
}

impl<'d> ComparedProfile<'d> {
    /// Reads a profile. The content of the file decides its family.
    ///
    /// # Errors
    /// If the file is no profile, or if nothing of it can be compared.
    pub fn open(data: &[u8]) -> Result<Self> {
        let kind = detect(data);
        let content = match kind.family() {
            Some(Family::MemProf) if kind == FileKind::MemProfRaw => {
                let text =
                    "a raw heap profile cannot be compared: it has addresses instead of functions";
                let error = ErrorKind::Unsupported.error(text);
                return Err(
                    error.with_hint("name the program and its libraries: --binaries PROGRAM")
                );
            }
            Some(Family::MemProf) => {
                let loaded = load_heap(
                    &[data][..],
                    &RunOptions::default(),
                    &NoBinaries::default(),
                    FrameRule::Compiler,
                );
                let loaded = loaded.map_err(|error| match error {
                    MergeError::NothingLeft(report) => {
                        report.events.into_iter().find_map(|event| event.error)
                    }
                    _ => None,
                });
                let loaded = loaded.map_err(|error| {
                    let text = "the heap profile was not read";
                    error.unwrap_or_else(|| ErrorKind::Malformed.error(text))
                })?;
                return Ok(Self::of_heap(HeapProfile::from_loaded(loaded)));
            }
            _ if is_heap_alone(data) => {
                let heap = HeapProfile::from_indexed(data)?;
                Content::Heap(Box::new(heap))
            }
            _ => return Self::of(AnyProfile::open_as(kind, data, None)?),
        };
        let damage = Faults::default();
        Ok(ComparedProfile { content, damage })
    }

    /// Opens a profile as [`open`](Self::open) does, but for [`PairOverlap`] and
    /// [`ProfileDiff`](crate::diff::ProfileDiff) alone: an indexed profile is then not in memory,
    /// but read in its file whenever it is compared. `release` is called with bytes that were read, so that it can give
    /// mapped memory back to the system.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    pub fn open_in_place(data: &'d [u8], release: Option<&'d ReleaseBytes<'d>>) -> Result<Self> {
        match IndexedSide::open(data, release) {
            Some(side) => Ok(ComparedProfile {
                content: Content::Indexed(Box::new(side)),
                damage: Faults::default(),
            }),
            None => Self::open(data),
        }
    }

    /// Takes a heap profile whose frames have functions, such as one that binaries have symbolised.
    pub fn of_heap(heap: HeapProfile) -> Self {
        ComparedProfile {
            damage: heap.damage.clone(),
            content: Content::Heap(Box::new(heap)),
        }
    }

    /// Takes a profile that is already open.
    pub fn of(profile: AnyProfile<'_>) -> Result<Self> {
        let damage = profile.faults();
        let content = match profile {
            AnyProfile::Instr(table) => {
                table.check()?;
                Content::Instr(table.into_united())
            }
            AnyProfile::Mip(profile, _) => Content::Mip(*profile),
            AnyProfile::Sample(view) => Content::Sample {
                threshold: hot_threshold(&view.summary(), HOT_CUTOFF).unwrap_or(u64::MAX),
                profile: view.profile,
            },
        };
        Ok(ComparedProfile { content, damage })
    }

    /// Reads several profiles at the same time, on several threads.
    pub fn open_all(files: &[&[u8]]) -> Vec<Result<Self>> {
        files.par_iter().map(|data| Self::open(data)).collect()
    }

    /// The family of the profile.
    pub fn family(&self) -> Family {
        match &self.content {
            Content::Instr(_) | Content::Indexed(_) => Family::Instr,
            Content::Sample { .. } => Family::Sample,
            Content::Heap(_) => Family::MemProf,
            Content::Mip(_) => Family::Mip,
        }
    }

    /// Returns the kind of the profile as text, with the kind of its instrumentation if that is known; for example `IR
    /// instrumentation profile`.
    pub fn describe(&self) -> String {
        match self.kind() {
            Some(kind) if !kind.is_unknown() => format!("{kind} {}", self.family().profile()),
            _ => self.family().profile().to_owned(),
        }
    }

    /// The kind of an instrumentation profile.
    fn kind(&self) -> Option<InstrKind> {
        match &self.content {
            Content::Instr(profile) => Some(profile.kind),
            Content::Indexed(side) => Some(side.kind()),
            _ => None,
        }
    }

    /// Whether the file of an instrumentation profile also contains a heap profile.
    pub fn has_heap(&self) -> bool {
        self.kind()
            .is_some_and(|kind| kind.contains(InstrKind::MEMPROF))
    }

    /// Whether the profile counts pseudo probes instead of lines.
    pub fn counts_probes(&self) -> bool {
        matches!(&self.content, Content::Sample { profile, .. } if profile.kind.contains(ProfileKind::PROBE_BASED))
    }

    /// The size of the profile: the number of its functions, and the sum of its counts.
    pub fn size(&self) -> ProfileSize {
        match &self.content {
            Content::Instr(profile) => Figures::of_profile(profile).size,
            Content::Indexed(side) => side.figures.size,
            Content::Sample { profile, threshold } => ProfileSize {
                functions: profile.functions().len() as u64,
                total: OverlapSide::new(profile, *threshold).samples().into(),
            },
            Content::Heap(heap) => {
                let contexts = heap.profile.contexts();
                let bytes = contexts
                    .iter()
                    .map(|context| context.block.get(Field::TotalSize));
                ProfileSize {
                    functions: contexts.len() as u64,
                    total: bytes.map(u128::from).sum(),
                }
            }
            Content::Mip(profile) => {
                let (functions, covered) = profile.function_counts();
                ProfileSize {
                    functions,
                    total: covered.into(),
                }
            }
        }
    }
}

/// The number of functions of a profile, and the sum of its counts: counters, samples, allocated bytes, or covered
/// functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProfileSize {
    /// The number of functions; those that share a name and differ in their hash count one by one. For a heap profile,
    /// the number of contexts.
    pub functions: u64,
    /// The sum of the counts.
    pub total: u128,
}

/// Why two profiles cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotCompare {
    /// The profiles are of different families. The fields are the two families.
    Families(Family, Family),
    /// The profiles are sample profiles, but they count different things: for example, only one of them counts pseudo
    /// probes.
    Samples(Incomparable),
    /// The profiles are instrumentation profiles of different kinds, so their counters count different things. The
    /// fields are the two kinds.
    Instrumentation(InstrKind, InstrKind),
    /// The profiles are heap profiles. [`HeapChanges`](crate::diff::HeapChanges) compares such profiles.
    Heap,
}

impl fmt::Display for CannotCompare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotCompare::Families(one, two) => write!(
                f,
                "profiles of different kinds cannot be compared: found {} and {}",
                one.profile(),
                two.profile()
            ),
            CannotCompare::Samples(why) => why.fmt(f),
            CannotCompare::Instrumentation(one, two) => write!(
                f,
                "profiles of different instrumentation cannot be compared: found `{one}` and `{two}`"
            ),
            CannotCompare::Heap => f.write_str("heap profiles are compared by their contexts"),
        }
    }
}

impl std::error::Error for CannotCompare {}

/// What two profiles of one family have in common. Shares are from 0 to 1. For a heap profile, functions are contexts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairOverlap {
    /// How alike the profiles are, from 0 to 1. It is 1 if everything has the same share in both profiles. `None` if
    /// one of the profiles counted nothing.
    ///
    /// | profiles | the overlap is |
    /// |---|---|
    /// | instrumentation | the sum, over all counters, of the smaller of the two shares, as LLVM computes it |
    /// | sample | LLVM's similarity of the whole profiles |
    /// | heap | the sum, over all contexts, of the smaller of the two shares in the allocated bytes |
    /// | MIP | the number of functions that ran in both profiles, divided by the number that ran in at least one |
    pub overlap: Option<f64>,
    /// The number of functions that both profiles have and that were compared.
    pub common: u64,
    /// The number of functions that both profiles have, but with different code, so that their counts cannot be
    /// compared.
    pub mismatched: u64,
    /// The number of functions that only the first profile has.
    pub base_only: u64,
    /// The number of functions that only the second profile has.
    pub test_only: u64,
    /// The share of the `mismatched` functions in the counts of the second profile.
    pub mismatched_share: f64,
    /// The share of the `base_only` functions in the counts of the first profile.
    pub base_only_share: f64,
    /// The share of the `test_only` functions in the counts of the second profile.
    pub test_only_share: f64,
    /// Further figures, each with its name. Only some families have them.
    pub details: Vec<(&'static str, f64)>,
    /// The functions with the largest differences, at most as many as the caller asked for.
    pub functions: Vec<FunctionDifference>,
}

/// The difference of one function between two profiles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionDifference {
    /// The function's name as in the profiles.
    pub name: Vec<u8>,
    /// The function's share of the counts in the first profile; `None` if the first profile lacks the function.
    pub base_share: Option<f64>,
    /// The function's share of the counts in the second profile; `None` if the second profile lacks the function.
    pub test_share: Option<f64>,
    /// How alike the counts inside the function are, whatever the function's share of the total: 1 if each of its
    /// counters or lines has the same share of the function's counts in both profiles. `None` if these counts cannot be
    /// compared.
    pub inner: Option<f64>,
    /// The amount by which this function lowers the overlap of the profiles.
    pub loss: f64,
}

impl FunctionDifference {
    pub(super) fn new(name: Vec<u8>, base: Option<f64>, test: Option<f64>, common: f64) -> Self {
        let mean = base.unwrap_or(0.0).midpoint(test.unwrap_or(0.0));
        FunctionDifference {
            name,
            base_share: base,
            test_share: test,
            inner: None,
            loss: (mean - common).max(0.0),
        }
    }
}

impl FunctionDifference {
    /// Whether the function lowers the overlap, or only one profile has it.
    pub(super) fn is_listed(&self) -> bool {
        self.loss > 0.0 || self.base_share.is_some() != self.test_share.is_some()
    }

    /// The order of a list: by falling loss, then by name.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let by_loss = other.loss.total_cmp(&self.loss);
        by_loss.then_with(|| self.name.cmp(&other.name))
    }
}

impl PairOverlap {
    /// Compares two profiles. `functions` is the number of functions to list.
    ///
    /// # Errors
    /// If the profiles are not of one family.
    pub fn of(
        base: &ComparedProfile<'_>,
        test: &ComparedProfile<'_>,
        functions: usize,
    ) -> std::result::Result<Self, CannotCompare> {
        let detail = functions > 0;
        let mut pair = match (&base.content, &test.content) {
            (Content::Instr(_) | Content::Indexed(_), Content::Instr(_) | Content::Indexed(_)) => {
                let sides = (Side::of(&base.content), Side::of(&test.content));
                let (Some(base), Some(test)) = sides else {
                    return Err(CannotCompare::Families(base.family(), test.family()));
                };
                check_kinds(base.kind(), test.kind(), &[InstrKind::IR])?;
                of_instr(&base, &test, functions)
            }
            (Content::Heap(base), Content::Heap(test)) => of_heap(base, test, detail),
            (Content::Mip(base), Content::Mip(test)) => of_mip(base, test, detail),
            (
                Content::Sample {
                    profile: base,
                    threshold: base_threshold,
                },
                Content::Sample {
                    profile: test,
                    threshold: test_threshold,
                },
            ) => {
                let base = (base, OverlapSide::new(base, *base_threshold));
                let test = (test, OverlapSide::new(test, *test_threshold));
                of_samples(&base, &test, detail).map_err(CannotCompare::Samples)?
            }
            _ => return Err(CannotCompare::Families(base.family(), test.family())),
        };
        let rows = &mut pair.functions;
        rows.retain(FunctionDifference::is_listed);
        rows.sort_by(FunctionDifference::order);
        rows.truncate(functions);
        Ok(pair)
    }
}

/// The part that `sum` has in `whole`, from 0 to 1; 0 if `whole` is 0.
pub(super) fn part(sum: f64, whole: f64) -> f64 {
    if whole < 1.0 { 0.0 } else { sum / whole }
}

fn of_samples(
    (base, base_side): &(&SampleProfile, OverlapSide<'_>),
    (test, test_side): &(&SampleProfile, OverlapSide<'_>),
    detail: bool,
) -> std::result::Result<PairOverlap, Incomparable> {
    let overlap = SampleOverlap::of(base_side, test_side)?;
    let (base_total, test_total) = (base_side.samples(), test_side.samples());
    let mut pair = PairOverlap {
        overlap: (base_total > 0 && test_total > 0).then_some(overlap.similarity),
        common: overlap.common_functions,
        base_only: overlap.base_unique_functions,
        test_only: overlap.test_unique_functions,
        base_only_share: share(overlap.base_unique_samples, base_total),
        test_only_share: share(overlap.test_unique_samples, test_total),
        ..PairOverlap::default()
    };
    pair.details.push((
        "samples",
        share(overlap.common_samples, overlap.union_samples),
    ));
    for (name, HotOverlap { both, either, .. }) in [
        ("hot functions", overlap.hot_functions),
        ("hot lines", overlap.hot_lines),
    ] {
        if either > 0 {
            pair.details.push((name, share(both, either)));
        }
    }
    if !detail {
        return Ok(pair);
    }
    let mut matched = FxHashSet::default();
    for row in &overlap.functions {
        let Some(function) = test.functions().get(row.function) else {
            continue;
        };
        matched.extend(row.base_function);
        let there = row
            .base_function
            .map(|_| share(row.base_samples, base_total));
        let here = share(row.test_samples, test_total);
        let common = row.similarity * there.unwrap_or(0.0).midpoint(here);
        let name = context_name(test, function);
        let listed = FunctionDifference::new(name, there, Some(here), common);
        pair.functions.push(FunctionDifference {
            inner: there.map(|_| row.similarity),
            ..listed
        });
    }
    for (index, function) in base.functions().iter().enumerate() {
        if !matched.contains(&index) {
            let there = share(base_side.function_samples(index), base_total);
            let name = context_name(base, function);
            pair.functions
                .push(FunctionDifference::new(name, Some(there), None, 0.0));
        }
    }
    Ok(pair)
}

/// Whether a sample profile has only the hashes of function names, and no names.
fn has_only_hashes(profile: &SampleProfile) -> bool {
    let mut names = profile.names.iter().map(|(_, name)| name);
    !profile.names.is_empty() && names.all(|name| matches!(name, SampleName::Guid(_)))
}

impl<'d> ComparedProfile<'d> {
    /// Whether the profile has only the hashes of function names, and no names.
    pub fn has_only_hashes(&self) -> bool {
        match &self.content {
            Content::Sample { profile, .. } => has_only_hashes(profile),
            _ => false,
        }
    }
}

fn float(count: u64) -> f64 {
    share(count, 1u64)
}

fn of_heap(base: &HeapProfile, test: &HeapProfile, detail: bool) -> PairOverlap {
    type Stack = Vec<Frame>;
    let contexts = |heap: &HeapProfile| {
        let mut bytes: FxHashMap<Stack, u64> = FxHashMap::default();
        for context in heap.profile.contexts() {
            let frames = heap
                .frames(context.stack)
                .map(|frame| *frame.frame)
                .collect();
            let sum = bytes.entry(frames).or_default();
            *sum = sum.saturating_add(context.block.get(Field::TotalSize));
        }
        bytes
    };
    let (base_contexts, test_contexts) = (contexts(base), contexts(test));
    let total =
        |contexts: &FxHashMap<Stack, u64>| contexts.values().copied().map(float).sum::<f64>();
    let (base_total, test_total) = (total(&base_contexts), total(&test_contexts));
    let name = |stack: &Stack| {
        let function = stack.first().map_or(0, |frame| frame.function);
        let known = test.name(function).or_else(|| base.name(function));
        known.map_or_else(|| format!("{function:#018x}").into_bytes(), <[u8]>::to_vec)
    };
    let mut pair = PairOverlap::default();
    let mut sum = 0.0;
    for (stack, &bytes) in &base_contexts {
        let there = part(float(bytes), base_total);
        let here = test_contexts
            .get(stack)
            .map(|&bytes| part(float(bytes), test_total));
        let common = here.map_or(0.0, |here| here.min(there));
        sum += common;
        match here {
            Some(_) => pair.common += 1,
            None => {
                pair.base_only += 1;
                pair.base_only_share += there;
            }
        }
        if detail {
            let row = FunctionDifference::new(name(stack), Some(there), here, common);
            pair.functions.push(row);
        }
    }
    for (stack, &bytes) in test_contexts
        .iter()
        .filter(|(stack, _)| !base_contexts.contains_key(*stack))
    {
        let here = part(float(bytes), test_total);
        pair.test_only += 1;
        pair.test_only_share += here;
        if detail {
            pair.functions
                .push(FunctionDifference::new(name(stack), None, Some(here), 0.0));
        }
    }
    pair.overlap = (base_total >= 1.0 && test_total >= 1.0).then_some(sum);
    pair
}

fn of_mip(base: &MipProfile, test: &MipProfile, detail: bool) -> PairOverlap {
    #[derive(Default)]
    struct Coverage<'p> {
        covered: bool,
        blocks: FxHashSet<(u32, &'p [u8])>,
    }
    fn ran(profile: &MipProfile) -> FxHashMap<&[u8], Coverage<'_>> {
        let mut functions: FxHashMap<&[u8], Coverage<'_>> = FxHashMap::default();
        for function in &profile.functions {
            let ran = functions.entry(&function.name).or_default();
            ran.covered |= function.is_covered();
            let blocks = function.blocks.iter().filter(|block| block.runs > 0);
            ran.blocks
                .extend(blocks.map(|block| (block.offset, &*function.name)));
        }
        functions
    }
    let (in_base, in_test) = (ran(base), ran(test));
    let covered = |functions: &FxHashMap<&[u8], Coverage<'_>>| {
        functions.values().filter(|it| it.covered).count() as u64
    };
    let (base_covered, test_covered) = (covered(&in_base), covered(&in_test));
    let mut pair = PairOverlap::default();
    let (mut both, mut blocks_both, mut blocks_either) = (0, 0, 0);
    for (name, there) in &in_base {
        let here = in_test.get(name);
        let pieces = here.map_or(0, |here| here.blocks.intersection(&there.blocks).count());
        blocks_both += pieces as u64;
        blocks_either +=
            (there.blocks.len() + here.map_or(0, |here| here.blocks.len()) - pieces) as u64;
        match here {
            Some(here) => {
                pair.common += 1;
                both += u64::from(there.covered && here.covered);
            }
            None => {
                pair.base_only += 1;
                pair.base_only_share += if there.covered {
                    share(1u64, base_covered)
                } else {
                    0.0
                };
            }
        }
        let now = here.is_some_and(|here| here.covered);
        if detail && there.covered && !now {
            let lost = share(1u64, base_covered);
            pair.functions.push(FunctionDifference::new(
                name.to_vec(),
                Some(lost),
                None,
                0.0,
            ));
        }
    }
    for (name, here) in &in_test {
        let there = in_base.get(name);
        if there.is_none() {
            blocks_either += here.blocks.len() as u64;
            pair.test_only += 1;
            pair.test_only_share += if here.covered {
                share(1u64, test_covered)
            } else {
                0.0
            };
        }
        if detail && here.covered && !there.is_some_and(|there| there.covered) {
            let new = share(1u64, test_covered);
            pair.functions
                .push(FunctionDifference::new(name.to_vec(), None, Some(new), 0.0));
        }
    }
    let either = base_covered + test_covered - both;
    pair.overlap = (base_covered > 0 && test_covered > 0).then_some(share(both, either));
    if blocks_either > 0 {
        pair.details
            .push(("blocks that ran", share(blocks_both, blocks_either)));
    }
    pair
}
