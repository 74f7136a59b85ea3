//! Merges MIP files with the common driver. All raw files of one target (the profile that they are merged into) are
//! added up. All profiles of one build are added up, too.
use crate::Inputs;
use crate::driver::{
    Cancelled, Driver, InputStore, MergeKind, OpenedInput, Outcome, ReportPart, RunOptions,
    Schedule, Threads,
};
use crate::error::MergeError;
use crate::options::Policy;
use crate::part::{self, Merger, Unsound, content_of, examine};
use crate::report::{Action, Event, MipDetails, Reason, Report, TargetReport};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::ids::BuildId;
use profkit_data::mip::plan::RecordPlan;
use profkit_data::mip::{
    Identity, ImageId, MipProfile, RawPart, RawParts, RecordSums, Refusal, add_profile,
};
use profkit_data::{Error, ErrorKind, Structure};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// A MIP profile that inputs are merged into.
#[derive(Clone, Debug)]
pub struct MipTarget {
    /// The name of the profile in reports.
    pub name: String,
    /// The MIP profile. It may contain counts of earlier runs.
    pub profile: MipProfile,
}

/// Options of [`merge_mip`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MipMergeOptions {
    /// The threads of the merge, the receiver of its progress, and the flag that cancels it.
    pub run: RunOptions,
    /// Whether profiles among the inputs that belong to no target become results of their own, one for each build, with
    /// the raw files of this build. Otherwise they are dropped.
    pub take_profiles: bool,
}

impl MipMergeOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        run: RunOptions,
        take_profiles: bool,
    }

    /// Sets the number of threads. The default is one per core.
    #[must_use]
    pub fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.run.threads = Threads::new(threads);
        self
    }
}

/// The result of a MIP merge.
#[derive(Clone, Debug)]
pub struct MipOutcome {
    /// The merged profiles: first the given targets in their order, then the profiles among the inputs that became
    /// results of their own, sorted by identity. [`MipDetails::targets`] has the same order.
    pub targets: Vec<MipTarget>,
    /// The report: what was done with each input. [`Report::mip`] is always set.
    pub report: Report,
}

/// Inputs that a worker gets at a time. More make the work at the end less even, fewer make workers wait more often.
const TAKEN_AT_ONCE: usize = 16;
/// The largest number of functions of one profile that are reported by name because they differ.
const MOST_NAMED: usize = 3;

/// Merges raw files and profiles into the targets of their builds. A target is the profile of one build. No two targets
/// should have the same identity (build id or module hash). If several have, everything is merged into the first.
///
/// ```
/// use profkit_data::mip::yaml;
/// use profkit_merge::mip::{MipMergeOptions, MipTarget, merge_mip};
///
/// let profile = yaml::parse(include_bytes!(concat!(
///     env!("CARGO_MANIFEST_DIR"),
///     "/../../tests/fixtures/mip/v8-b.yaml"
/// )))
/// .unwrap()
/// .0;
/// let raw = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/mip/v8-b.mipraw"));
/// let targets = vec![MipTarget { name: "v8-b".to_owned(), profile }];
/// let merged = merge_mip(targets, &[raw.as_slice()], &MipMergeOptions::new())?;
/// assert_eq!(merged.targets[0].profile.runs, 1);
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
///
/// # Errors
/// [`MergeError::Cancelled`], and [`MergeError::Part`] for parts of merges that cannot be added.
pub fn merge_mip(
    targets: Vec<MipTarget>,
    inputs: &(impl Inputs + ?Sized),
    options: &MipMergeOptions,
) -> Result<MipOutcome, MergeError> {
    let store = InputStore::new(&inputs);
    let given = targets.len();
    if part::is_for(&store, false, Policy::Tolerant) {
        return merge_parts(targets, &store, options);
    }
    let has_parts = AtomicBool::new(false);
    let first = options.take_profiles;
    let (mut targets, worker, part) = read(targets, &store, options, first, Some(&has_parts))?;
    if has_parts.into_inner() {
        targets.truncate(given);
        return merge_parts(targets, &store, options);
    }
    Ok(finish(targets, worker, part, &store))
}

fn merge_parts(
    targets: Vec<MipTarget>,
    inputs: &InputStore<'_>,
    options: &MipMergeOptions,
) -> Result<MipOutcome, MergeError> {
    let mut merger = Merger::of_mip(targets, options.clone());
    merger.add(inputs)?;
    merger.finish_mip()
}

/// Reads all inputs. With `profiles_first`, profiles among the inputs become targets too, without their counts.
pub(super) fn read(
    mut targets: Vec<MipTarget>,
    inputs: &InputStore<'_>,
    options: &MipMergeOptions,
    profiles_first: bool,
    has_parts: Option<&AtomicBool>,
) -> Result<(Vec<MipTarget>, MipWorker, ReportPart), Cancelled> {
    let driver = Driver::new(inputs, &options.run);
    let mut part = ReportPart::default();
    let mut all: Vec<usize> = (0..inputs.len()).collect();
    let mut before = MipWorker::default();
    if profiles_first {
        // Raw files can be added only when the profiles that they belong to are known, so profiles are read first.
        let first = Mip {
            index: Index::new(&[]),
            targets: &[],
            plans: &[],
            driver: &driver,
            take_profiles: true,
            profiles_only: true,
            has_parts,
        };
        let (worker, report) = driver.merge(&first, &all)?;
        part.absorb(report);
        before = worker;
        let known = Index::new(&targets);
        targets.extend(before.profiles.targets(&known));
        all = std::mem::take(&mut before.pending);
        all.sort_unstable();
    }
    take_build_id(&mut targets, &driver, &mut part);
    let plans: Vec<RecordPlan> = targets
        .iter()
        .map(|target| RecordPlan::new(&target.profile))
        .collect();
    let kind = Mip {
        index: Index::new(&targets),
        targets: &targets,
        plans: &plans,
        driver: &driver,
        take_profiles: options.take_profiles,
        profiles_only: false,
        has_parts,
    };
    let (mut worker, report) = driver.merge(&kind, &all)?;
    part.absorb(report);
    worker.details.absorb(&before.details);
    worker.profiles.join(before.profiles, &mut part);
    worker.contents.extend(before.contents);
    drop(kind);
    worker.plans = plans;
    Ok((targets, worker, part))
}

#[derive(Default)]
pub(super) struct Profiles {
    /// The lowest build of which two profiles have different functions.
    pub(super) contradiction: Option<Identity>,
    pub(super) sums: FxHashMap<Identity, (usize, MipProfile)>,
    /// The first input with each identity, without counts. Filled only if profiles can become results of their own.
    bases: FxHashMap<Identity, (usize, MipProfile)>,
}

impl Profiles {
    fn add(&mut self, input: usize, profile: &MipProfile, part: &mut ReportPart) -> u64 {
        let place = self.sums.entry(profile.identity.clone());
        let (_, sum) = place.or_insert_with(|| (input, MipProfile::default()));
        let refused = add_profile(sum, profile);
        report_refused(input, &refused, part);
        self.note_refused(&profile.identity, &refused);
        refused.len() as u64
    }

    fn note_refused(&mut self, build: &Identity, refused: &[Refusal]) {
        if !refused.is_empty() {
            let both = [self.contradiction.take(), Some(build.clone())];
            self.contradiction = both.into_iter().flatten().min();
        }
    }

    fn add_base(&mut self, input: usize, mut profile: MipProfile) {
        match self.bases.entry(profile.identity.clone()) {
            Entry::Occupied(place) if place.get().0 < input => {}
            place => {
                profile.clear_runs();
                place.insert_entry((input, profile));
            }
        }
    }

    /// The profiles that are results of their own, sorted by identity.
    fn targets(&mut self, known: &Index) -> Vec<MipTarget> {
        let bases = std::mem::take(&mut self.bases).into_iter();
        let mut targets: Vec<_> = bases
            .filter(|(identity, _)| known.find_identity(identity).is_none())
            .map(|(identity, (_, profile))| MipTarget {
                name: identity.to_string(),
                profile,
            })
            .collect();
        targets.sort_by(|one, two| one.profile.identity.cmp(&two.profile.identity));
        targets
    }

    fn join(&mut self, other: Profiles, part: &mut ReportPart) {
        for (_, (input, base)) in other.bases {
            self.add_base(input, base);
        }
        let mut refusals = Vec::new();
        for (identity, (input, profile)) in other.sums {
            match self.sums.entry(identity) {
                Entry::Vacant(place) => {
                    place.insert((input, profile));
                }
                Entry::Occupied(mut place) => {
                    let (first, mine) = place.get_mut();
                    // If two inputs have contradicting functions, those of the earlier input are kept.
                    let (mut base, more) = if *first <= input {
                        (std::mem::take(mine), profile)
                    } else {
                        (profile, std::mem::take(mine))
                    };
                    let refused = add_profile(&mut base, &more);
                    report_refused_later(input.max(*first), &refused, part);
                    *first = input.min(*first);
                    *mine = base;
                    refusals.push((place.key().clone(), refused));
                }
            }
        }
        for (identity, refused) in refusals {
            self.note_refused(&identity, &refused);
        }
        let both = [self.contradiction.take(), other.contradiction];
        self.contradiction = both.into_iter().flatten().min();
    }
}

/// A target that was made of a map alone has no build id. The first of them gets that of the first raw file.
fn take_build_id(targets: &mut [MipTarget], driver: &Driver<'_>, part: &mut ReportPart) {
    let Some(target) = targets
        .iter_mut()
        .find(|target| target.profile.identity.is_unknown())
    else {
        return;
    };
    for input in 0..driver.inputs.len() {
        let first_id = driver.inputs.peek(input, |data| {
            match RawParts::new(data).find_map(Result::ok)?.id {
                ImageId::BuildId(id) => Some(BuildId(id.to_vec())),
                ImageId::ModuleHash(_) => None,
            }
        });
        // Faults of this input are reported when it is merged.
        let Ok(Some(id)) = first_id else { continue };
        if id.0.is_empty() {
            return;
        }
        target.profile.identity = Identity::BuildId(id);
        let message = format!(
            "its {} is now also that of {}, which had none because it was created from a map",
            target.profile.identity, target.name
        );
        let (action, reason) = (Action::Kept, Reason::BuildIdTaken);
        part.log.push(Event::new(input, action, reason, message));
        return;
    }
}

pub(super) struct Index {
    build_ids: FxHashMap<Vec<u8>, usize>,
    module_hashes: FxHashMap<u32, usize>,
}

impl Index {
    pub(super) fn new(targets: &[MipTarget]) -> Self {
        let mut index = Index {
            build_ids: FxHashMap::default(),
            module_hashes: FxHashMap::default(),
        };
        for (place, target) in targets.iter().enumerate() {
            match &target.profile.identity {
                Identity::BuildId(id) => index.build_ids.entry(id.0.clone()).or_insert(place),
                Identity::ModuleHash(hash) => index.module_hashes.entry(*hash).or_insert(place),
            };
        }
        index
    }

    fn find(&self, id: ImageId<'_>) -> Option<usize> {
        match id {
            ImageId::BuildId(id) => self.build_ids.get(id).copied(),
            ImageId::ModuleHash(hash) => self.module_hashes.get(&hash).copied(),
        }
    }

    pub(super) fn find_identity(&self, identity: &Identity) -> Option<usize> {
        match identity {
            Identity::BuildId(id) => self.find(ImageId::BuildId(&id.0)),
            Identity::ModuleHash(hash) => self.find(ImageId::ModuleHash(*hash)),
        }
    }
}

struct Mip<'a, 'i> {
    targets: &'a [MipTarget],
    plans: &'a [RecordPlan],
    driver: &'a Driver<'i>,
    index: Index,
    take_profiles: bool,
    /// Whether raw files are left for a second pass, when the profiles among the inputs are known.
    profiles_only: bool,
    /// Whether a part of a merge is among the inputs, so that all are merged by the rules of parts; `None` if they are.
    has_parts: Option<&'a AtomicBool>,
}

#[derive(Default)]
pub(super) struct MipWorker {
    pub(super) plans: Vec<RecordPlan>,
    pub(super) sums: Vec<Option<RecordSums>>,
    /// For each target, the first input that was added to it.
    pub(super) first: Vec<Option<usize>>,
    pub(super) contents: Vec<(usize, u64)>,
    /// Of these, the readers of other families say what is wrong.
    pub(super) unsound: Unsound,
    pub(super) profiles: Profiles,
    pub(super) details: MipDetails,
    pub(super) pending: Vec<usize>,
}

impl MergeKind for Mip<'_, '_> {
    type Worker = MipWorker;
    type Error = Cancelled;

    fn schedule(&self) -> Schedule {
        Schedule::Shared {
            batch: TAKEN_AT_ONCE,
        }
    }

    fn worker(&self) -> MipWorker {
        MipWorker {
            sums: vec![None; self.targets.len()],
            first: vec![None; self.targets.len()],
            ..MipWorker::default()
        }
    }

    fn is_over(&self) -> bool {
        self.has_parts
            .is_some_and(|has_parts| has_parts.load(Ordering::Relaxed))
    }

    fn take(
        &self,
        worker: &mut MipWorker,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        let data = input.bytes();
        let kind = detect(data);
        if self.profiles_only && !matches!(kind, FileKind::MipProfile | FileKind::Part(_)) {
            worker.pending.push(input.index);
            return Outcome::Pending;
        }
        let weight = self.driver.inputs.weight(input.index);
        worker
            .contents
            .push((input.index, content_of(data, weight)));
        if self.has_parts.is_none() && worker.unsound.take(input, Family::Mip) {
            return Outcome::Pending;
        }
        match kind {
            FileKind::Part(_) => match examine(data) {
                Ok(_) => {
                    if let Some(has_parts) = self.has_parts {
                        has_parts.store(true, Ordering::Relaxed);
                    }
                    Outcome::Pending
                }
                Err(error) => {
                    report_error(input.index, Action::Dropped, &error, part);
                    Outcome::Dropped
                }
            },
            FileKind::MipProfile => self.profile(input.index, data, worker, part),
            FileKind::Empty => {
                self.raw(input.index, data, worker, part);
                Outcome::Empty
            }
            FileKind::MipRaw | FileKind::MipReturnAddresses | FileKind::MipUnknown => {
                self.raw(input.index, data, worker, part)
            }
            kind => {
                let reason = Reason::NotAProfile;
                let event = event_of(input.index, Action::Dropped, reason, &not_mip(kind));
                part.log.push(event.of_kind(kind));
                Outcome::Dropped
            }
        }
    }

    fn join(
        &self,
        (worker, part): (&mut MipWorker, &mut ReportPart),
        (later, later_part): (MipWorker, ReportPart),
    ) -> Result<(), Cancelled> {
        part.absorb(later_part);
        for (mine, theirs) in worker.sums.iter_mut().zip(later.sums) {
            match (mine.as_mut(), theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => mine.join(theirs),
                (None, theirs) => *mine = theirs,
            }
        }
        worker.profiles.join(later.profiles, part);
        worker.details.absorb(&later.details);
        worker.pending.extend(later.pending);
        worker.contents.extend(later.contents);
        worker.unsound.absorb(later.unsound);
        for (mine, theirs) in worker.first.iter_mut().zip(later.first) {
            *mine = [*mine, theirs].into_iter().flatten().min();
        }
        Ok(())
    }
}

fn outcome_of(kept: u64, lost: u64) -> Outcome {
    match (kept, lost) {
        (_, 0) => Outcome::Kept,
        (0, _) => Outcome::Dropped,
        _ => Outcome::Repaired,
    }
}

impl Mip<'_, '_> {
    fn raw(
        &self,
        input: usize,
        data: &[u8],
        worker: &mut MipWorker,
        report: &mut ReportPart,
    ) -> Outcome {
        let (mut kept, mut lost) = (0, 0);
        for part in RawParts::new(data) {
            let part = match part {
                Ok(part) => part,
                Err(error) => {
                    report_error(input, Action::Dropped, &error, report);
                    lost += 1;
                    continue;
                }
            };
            match self.part(input, &part, worker) {
                Ok(()) => {
                    kept += 1;
                    worker.details.raw_parts += 1;
                    worker.details.runs += u64::from(part.runs);
                    if let Some(damage) = &part.damage {
                        report_error(input, Action::Repaired, damage, report);
                        lost += 1;
                    }
                }
                Err((reason, error)) => {
                    lost += 1;
                    report
                        .log
                        .push(event_of(input, Action::Dropped, reason, &error));
                }
            }
        }
        outcome_of(kept, lost)
    }

    fn part(
        &self,
        input: usize,
        part: &RawPart<'_>,
        worker: &mut MipWorker,
    ) -> Result<(), (Reason, Error)> {
        let found = self.index.find(part.id);
        let target = found.and_then(|index| {
            Some((
                self.targets.get(index)?,
                self.plans.get(index)?,
                worker.sums.get_mut(index)?,
                worker.first.get_mut(index)?,
            ))
        });
        let Some((target, plan, sums, first)) = target else {
            return Err((Reason::OtherBuild, self.other_build(part)));
        };
        fits(part, &target.profile, plan).map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::Malformed => Reason::Malformed,
                _ => Reason::OtherLayout,
            };
            (reason, error)
        })?;
        sums.get_or_insert_with(|| RecordSums::new(plan))
            .add(plan, part);
        *first = Some(first.map_or(input, |first| first.min(input)));
        Ok(())
    }

    #[cold]
    fn other_build(&self, part: &RawPart<'_>) -> Error {
        let expected = match self.targets {
            [] => "the id of a profile".to_owned(),
            [only] => only.profile.identity.to_string(),
            [first, ..] => format!(
                "{}, or the id of one of {} other profiles",
                first.profile.identity,
                self.targets.len() - 1
            ),
        };
        let hint = if part.version == profkit_abi::mip::VERSION {
            "give the profile of the build that wrote the raw file, or the binary with --binary"
        } else {
            "give the profile of the program or library that wrote the raw file"
        };
        Error::new(
            ErrorKind::Unsupported,
            "no profile has the build id of this raw file",
        )
        .at(part.offset)
        .within(Structure::MipRaw)
        .found(part.id.to_identity())
        .expected(expected)
        .with_hint(hint)
    }

    fn profile(
        &self,
        input: usize,
        data: &[u8],
        worker: &mut MipWorker,
        part: &mut ReportPart,
    ) -> Outcome {
        let profile = match MipProfile::parse(data) {
            Ok(profile) => profile,
            Err(error) => {
                report_error(input, Action::Dropped, &error, part);
                return Outcome::Dropped;
            }
        };
        if !self.take_profiles && self.index.find_identity(&profile.identity).is_none() {
            let error = other_profile(&profile.identity);
            let reason = Reason::OtherBuild;
            part.log
                .push(event_of(input, Action::Dropped, reason, &error));
            return Outcome::Dropped;
        }
        worker.details.count_profile(&profile);
        let lost = worker.profiles.add(input, &profile, part);
        if self.profiles_only {
            worker.profiles.add_base(input, profile);
        }
        outcome_of(1, lost)
    }
}

pub(super) fn other_profile(build: &Identity) -> Error {
    Error::new(ErrorKind::Unsupported, "the profile is of another build")
        .at(0)
        .within(Structure::MipProfile)
        .found(build)
        .with_hint("to merge profiles of several builds, give a folder: -p FOLDER")
}

impl MipDetails {
    fn count_profile(&mut self, profile: &MipProfile) {
        self.profiles += 1;
        self.runs = self.runs.saturating_add(profile.runs);
    }

    pub(super) fn absorb(&mut self, other: &MipDetails) {
        self.raw_parts += other.raw_parts;
        self.profiles += other.profiles;
        self.runs = self.runs.saturating_add(other.runs);
        self.samples_dropped = self.samples_dropped.saturating_add(other.samples_dropped);
        self.calls_not_kept = self.calls_not_kept.saturating_add(other.calls_not_kept);
    }
}

fn report_error(input: usize, action: Action, error: &Error, part: &mut ReportPart) {
    let reason = match error.kind() {
        ErrorKind::Unsupported => Reason::NotAProfile,
        _ => Reason::of(error),
    };
    let action = if reason.is_note() {
        Action::Dropped
    } else {
        action
    };
    part.log.push(event_of(input, action, reason, error));
}

/// Makes an event from a reader's error. The event has no error code of LLVM, because LLVM does not read MIP files.
pub(super) fn event_of(input: usize, action: Action, reason: Reason, error: &Error) -> Event {
    Event {
        llvm: None,
        ..Event::from_error(input, action, reason, error)
    }
}

fn report_refused_later(input: usize, refused: &[Refusal], part: &mut ReportPart) {
    if !refused.is_empty() {
        part.repaired_after_all();
    }
    report_refused(input, refused, part);
}

fn report_refused(input: usize, refused: &[Refusal], part: &mut ReportPart) {
    for (index, one) in refused.iter().enumerate() {
        let event = |reason, message| Event::new(input, Action::Dropped, reason, message);
        let event = match one {
            Refusal::Profile { found, expected } => {
                event(Reason::OtherLayout, "the profile belongs to another build")
                    .sides(found, expected)
            }
            Refusal::Function {
                name,
                found,
                expected,
            } if index < MOST_NAMED => event(
                Reason::SignatureChanged,
                "the function's code differs between this file and the profile that it is merged into",
            )
            .function(name)
            .sides(
                format_args!("signature {found:#x}"),
                format_args!("{expected:#x}"),
            ),
            Refusal::Function { .. } => {
                part.log.count_omitted(Reason::SignatureChanged);
                continue;
            }
        };
        part.log.push(event);
    }
}

fn fits(part: &RawPart<'_>, profile: &MipProfile, plan: &RecordPlan) -> Result<(), Error> {
    let v8 = part.version == profkit_abi::mip::v8::VERSION;
    let size = part.records_size;
    let mismatch = |message: &'static str| {
        Error::new(ErrorKind::Unsupported, message)
            .at(part.offset)
            .within(Structure::MipRaw)
    };
    match profile.section_size {
        Some(expected) if expected != size && !v8 => {
            return Err(mismatch("the records have the wrong size")
                .found(format_args!("{size} bytes"))
                .expected(format_args!("{expected} bytes, the size in the binary")));
        }
        _ if size < plan.end() => {
            return Err(mismatch("too few records")
                .found(format_args!("{size} bytes"))
                .expected(format_args!("at least {} bytes", plan.end())));
        }
        _ => {}
    }
    let modes = part.modes.union(profile.modes());
    if modes != part.modes {
        return Err(
            mismatch("the program was built without a mode that the profile has")
                .found(format_args!("mode bits {:#x}", part.modes.0))
                .expected(format_args!("all bits of {:#x}", modes.0)),
        );
    }
    if v8 && let Err(at) = RecordSums::check_v8(plan, part.records) {
        return Err(
            Error::new(ErrorKind::Malformed, "a record has an invalid value")
                .at(at as u64)
                .within(Structure::MipRaw)
                .expected("a byte of 0x00 or 0xff, or a count with an ordinal"),
        );
    }
    Ok(())
}

#[cold]
fn not_mip(kind: FileKind) -> Error {
    let (found, hint) = if kind == FileKind::MipMap {
        ("a map", "create a profile from the map first")
    } else if kind == FileKind::ObjectFile {
        (
            kind.description(),
            "name binaries with --binary; a raw file is a file that the program wrote when it ran",
        )
    } else {
        (
            kind.description(),
            "a raw file is the file that an instrumented program writes when it ends; its name is default.mipraw if no other name was set",
        )
    };
    Error::new(
        ErrorKind::BadMagic,
        "the file is neither a MIP raw file nor a MIP profile",
    )
    .at(0)
    .within(Structure::FirstBytes)
    .found(found)
    .with_hint(hint)
}

/// Adds the sums of raw files to their targets.
pub(super) fn add_raw(targets: &mut [MipTarget], worker: &mut MipWorker) {
    let details = &mut worker.details;
    let sums = std::mem::take(&mut worker.sums);
    for ((target, plan), sums) in targets.iter_mut().zip(&worker.plans).zip(sums) {
        if let Some(sums) = sums {
            let not_kept = sums.lost_samples();
            details.calls_not_kept = details.calls_not_kept.saturating_add(not_kept);
            let lost = sums.add_to(plan, &mut target.profile);
            details.samples_dropped = details.samples_dropped.saturating_add(lost);
        }
    }
}

pub(super) fn finish(
    mut targets: Vec<MipTarget>,
    mut worker: MipWorker,
    mut part: ReportPart,
    inputs: &dyn Inputs,
) -> MipOutcome {
    let before: Vec<u64> = targets.iter().map(|target| target.profile.runs).collect();
    add_raw(&mut targets, &mut worker);
    let mut details = worker.details;
    let mut profiles: Vec<_> = worker.profiles.sums.into_iter().collect();
    profiles.sort_by(|one, two| one.0.cmp(&two.0));
    for (identity, (input, profile)) in profiles {
        let target = targets
            .iter_mut()
            .find(|target| target.profile.identity == identity);
        match target {
            Some(target) => {
                let refused = add_profile(&mut target.profile, &profile);
                report_refused_later(input, &refused, &mut part);
            }
            None => targets.push(MipTarget {
                name: identity.to_string(),
                profile,
            }),
        }
    }
    details.targets = targets
        .iter()
        .enumerate()
        .map(|(index, target)| {
            let (functions, covered) = target.profile.function_counts();
            TargetReport {
                name: target.name.clone(),
                identity: target.profile.identity.to_string(),
                runs_added: target
                    .profile
                    .runs
                    .saturating_sub(before.get(index).copied().unwrap_or(0)),
                runs: target.profile.runs,
                functions,
                covered,
            }
        })
        .collect();
    let report = Report {
        mip: Some(details),
        ..part.finish(inputs)
    };
    MipOutcome { targets, report }
}
