//! From inputs to profiles: one lane a thread, joined at the end.
use super::plan::RecordPlan;
use super::profile::{Refused, add_profile};
use super::report::{MipAction, MipEvent, MipReason, MipReport, TargetReport, reason_of};
use super::sums::RecordSums;
use crate::Inputs;
use profkit_data::ids::BuildId;
use profkit_data::mip::{
    Identity, ImageId, MipKind, MipProfile, RawPart, RawParts, has_magic, is_map, preamble,
};
use profkit_data::{Error, ErrorKind, Structure};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A profile to merge into.
#[derive(Clone, Debug)]
pub struct MipTarget {
    /// What reports call it.
    pub name: String,
    /// Its functions, and what earlier runs did.
    pub profile: MipProfile,
}

/// How to merge.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MipMergeOptions {
    /// Threads to use; one a core by default.
    pub threads: Option<NonZeroUsize>,
    /// Whether a profile among the inputs whose build has no target becomes one.
    pub take_profiles: bool,
}

impl MipMergeOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: Option<NonZeroUsize>) -> Self {
        self.threads = threads;
        self
    }

    /// Lets profiles among the inputs become targets.
    #[must_use]
    pub fn take_profiles(mut self, take: bool) -> Self {
        self.take_profiles = take;
        self
    }
}

/// What came out.
#[derive(Clone, Debug)]
pub struct MipOutcome {
    /// The targets in their order, then profiles that became targets, by identity. [`TargetReport`]s are in the same
    /// order.
    pub targets: Vec<MipTarget>,
    /// What happened.
    pub report: MipReport,
}

/// A thread takes so many inputs at once: few enough to share the last ones out, enough not to fight for the counter.
const TAKEN_AT_ONCE: usize = 16;
/// How many functions of one profile are named that are not those of its target.
const MOST_NAMED: usize = 3;

/// Merges raw files and profiles into the targets of their build. Targets must differ in their identity; if several
/// are the same, the first takes all.
pub fn merge_mip(
    mut targets: Vec<MipTarget>,
    inputs: &dyn Inputs,
    options: &MipMergeOptions,
) -> MipOutcome {
    let mut report = MipReport::default();
    if options.take_profiles && targets.is_empty() {
        targets = among(inputs);
    }
    take_build_id(&mut targets, inputs, &mut report);
    let plans: Vec<RecordPlan> = targets
        .iter()
        .map(|target| RecordPlan::new(&target.profile))
        .collect();
    let index = Index::new(&targets);
    let shared = Shared {
        targets: &targets,
        plans: &plans,
        index: &index,
        inputs,
        take_profiles: options.take_profiles,
        next: AtomicUsize::new(0),
    };
    let most = inputs.len().div_ceil(TAKEN_AT_ONCE).max(1);
    let threads = options.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let lanes = run_lanes(&shared, threads.min(most));
    let mut joined = Lane::new(targets.len());
    for lane in lanes {
        joined.join(lane, inputs);
    }
    finish(targets, &plans, joined, inputs, report)
}

/// The images whose profiles are among the inputs, without what runs did: that is added with the other inputs.
fn among(inputs: &dyn Inputs) -> Vec<MipTarget> {
    let mut targets: Vec<MipTarget> = Vec::new();
    let mut scratch = Vec::new();
    for input in 0..inputs.len() {
        let Ok(data) = inputs.load(input, &mut scratch) else {
            continue;
        };
        let data = data.as_ref();
        if !preamble(data).is_ok_and(|preamble| preamble.kind == MipKind::Profile) {
            continue;
        }
        // What is wrong with it is told when it is merged.
        let Ok(mut profile) = MipProfile::parse(data) else {
            continue;
        };
        let known = |target: &MipTarget| target.profile.identity == profile.identity;
        if targets.iter().any(known) {
            continue;
        }
        profile.clear_runs();
        targets.push(MipTarget {
            name: profile.identity.to_string(),
            profile,
        });
    }
    targets.sort_by(|one, two| one.profile.identity.cmp(&two.profile.identity));
    targets
}

fn run_lanes(shared: &Shared<'_>, threads: usize) -> Vec<Lane> {
    if threads <= 1 {
        return vec![shared.lane()];
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| shared.lane()))
            .collect();
        let mut lanes = vec![shared.lane()];
        for other in others {
            match other.join() {
                Ok(lane) => lanes.push(lane),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        lanes
    })
}

/// A profile that was made of a map alone does not know its build id: it takes that of the first raw file.
fn take_build_id(targets: &mut [MipTarget], inputs: &dyn Inputs, report: &mut MipReport) {
    let Some(target) = targets
        .iter_mut()
        .find(|target| target.profile.identity.is_unknown())
    else {
        return;
    };
    let mut scratch = Vec::new();
    for input in 0..inputs.len() {
        let Ok(data) = inputs.load(input, &mut scratch) else {
            continue;
        };
        let part = RawParts::new(data.as_ref()).find_map(Result::ok);
        let Some(RawPart {
            id: ImageId::BuildId(id),
            ..
        }) = part
        else {
            continue;
        };
        if id.is_empty() {
            return;
        }
        target.profile.identity = Identity::BuildId(BuildId(id.to_vec()));
        report.push(MipEvent {
            input,
            file: inputs.name(input).to_owned(),
            offset: None,
            action: MipAction::Noted,
            reason: MipReason::BuildIdTaken,
            message: format!(
                "{} was made of a map without its binary and has no build id: it takes {} from here",
                target.name, target.profile.identity
            ),
            hint: None,
        });
        return;
    }
}

/// Targets by identity.
struct Index {
    build_ids: FxHashMap<Vec<u8>, usize>,
    module_hashes: FxHashMap<u32, usize>,
}

impl Index {
    fn new(targets: &[MipTarget]) -> Self {
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

    fn find_identity(&self, identity: &Identity) -> Option<usize> {
        match identity {
            Identity::BuildId(id) => self.find(ImageId::BuildId(&id.0)),
            Identity::ModuleHash(hash) => self.find(ImageId::ModuleHash(*hash)),
        }
    }
}

struct Shared<'a> {
    targets: &'a [MipTarget],
    plans: &'a [RecordPlan],
    index: &'a Index,
    inputs: &'a dyn Inputs,
    take_profiles: bool,
    next: AtomicUsize,
}

/// What one thread has merged.
struct Lane {
    sums: Vec<Option<RecordSums>>,
    /// Profiles among the inputs, with the number of the input that came first.
    profiles: FxHashMap<Identity, (usize, MipProfile)>,
    report: MipReport,
}

impl Lane {
    fn new(targets: usize) -> Self {
        Lane {
            sums: vec![None; targets],
            profiles: FxHashMap::default(),
            report: MipReport::default(),
        }
    }

    fn join(&mut self, other: Lane, inputs: &dyn Inputs) {
        for (mine, theirs) in self.sums.iter_mut().zip(other.sums) {
            match (mine.as_mut(), theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => mine.join(theirs),
                (None, theirs) => *mine = theirs,
            }
        }
        for (identity, (input, profile)) in other.profiles {
            match self.profiles.entry(identity) {
                std::collections::hash_map::Entry::Vacant(place) => {
                    place.insert((input, profile));
                }
                std::collections::hash_map::Entry::Occupied(mut place) => {
                    let (first, mine) = place.get_mut();
                    // What came first wins where functions contradict each other.
                    let (mut base, more) = if *first <= input {
                        (std::mem::take(mine), profile)
                    } else {
                        (profile, std::mem::take(mine))
                    };
                    let refused = add_profile(&mut base, &more);
                    let later = input.max(*first);
                    self.report
                        .refused_late(later, inputs.name(later), &refused);
                    *first = input.min(*first);
                    *mine = base;
                }
            }
        }
        self.report.join(other.report);
    }
}

/// What became of one input.
#[derive(Default)]
struct Fate {
    kept: u64,
    lost: u64,
}

impl Shared<'_> {
    fn lane(&self) -> Lane {
        let mut lane = Lane::new(self.targets.len());
        let mut scratch = Vec::new();
        loop {
            let start = self.next.fetch_add(TAKEN_AT_ONCE, Ordering::Relaxed);
            let end = (start + TAKEN_AT_ONCE).min(self.inputs.len());
            if start >= end {
                return lane;
            }
            for input in start..end {
                self.input(input, &mut lane, &mut scratch);
            }
        }
    }

    fn input(&self, input: usize, lane: &mut Lane, scratch: &mut Vec<u8>) {
        lane.report.totals.files += 1;
        let data = match self.inputs.load(input, scratch) {
            Ok(data) => data,
            Err(error) => {
                let message = error.to_string();
                let message = match message.find(" (os error ") {
                    Some(end) => message.get(..end).unwrap_or(&message).to_owned(),
                    None => message,
                };
                self.event(
                    lane,
                    input,
                    MipAction::Dropped,
                    MipReason::Unreadable,
                    message,
                );
                lane.report.totals.files_dropped += 1;
                return;
            }
        };
        let data = data.as_ref();
        let totals = &mut lane.report.totals;
        totals.bytes = totals.bytes.saturating_add(data.len() as u64);
        let mut fate = Fate::default();
        match preamble(data) {
            Ok(preamble) if preamble.kind == MipKind::Profile => {
                self.profile(input, data, lane, &mut fate);
            }
            _ if data.is_empty() || has_magic(data) => self.raw(input, data, lane, &mut fate),
            _ => {
                self.error(lane, input, MipAction::Dropped, &not_mip(data));
                fate.lost += 1;
            }
        }
        let totals = &mut lane.report.totals;
        *match fate {
            _ if data.is_empty() => &mut totals.files_empty,
            Fate { lost: 0, .. } => &mut totals.files_kept,
            Fate { kept: 0, .. } => &mut totals.files_dropped,
            Fate { .. } => &mut totals.files_repaired,
        } += 1;
    }

    fn raw(&self, input: usize, data: &[u8], lane: &mut Lane, fate: &mut Fate) {
        for part in RawParts::new(data) {
            let part = match part {
                Ok(part) => part,
                Err(error) => {
                    self.error(lane, input, MipAction::Dropped, &error);
                    fate.lost += 1;
                    continue;
                }
            };
            match self.part(&part, lane) {
                Ok(()) => {
                    fate.kept += 1;
                    lane.report.totals.raw_parts += 1;
                    lane.report.totals.runs += u64::from(part.runs);
                    if let Some(damage) = &part.damage {
                        self.error(lane, input, MipAction::Repaired, damage);
                        fate.lost += 1;
                    }
                }
                Err((reason, error)) => {
                    fate.lost += 1;
                    self.event_of(lane, input, MipAction::Dropped, reason, &error);
                }
            }
        }
    }

    fn part(&self, part: &RawPart<'_>, lane: &mut Lane) -> Result<(), (MipReason, Error)> {
        let found = self.index.find(part.id);
        let target = found.and_then(|index| {
            Some((
                self.targets.get(index)?,
                self.plans.get(index)?,
                lane.sums.get_mut(index)?,
            ))
        });
        let Some((target, plan, sums)) = target else {
            return Err((MipReason::OtherBuild, self.other_build(part)));
        };
        fits(part, &target.profile, plan).map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::Malformed => MipReason::Malformed,
                _ => MipReason::OtherLayout,
            };
            (reason, error)
        })?;
        sums.get_or_insert_with(|| RecordSums::new(plan))
            .add(plan, part);
        Ok(())
    }

    #[cold]
    fn other_build(&self, part: &RawPart<'_>) -> Error {
        let expected = match self.targets {
            [] => "a profile of it".to_owned(),
            [only] => only.profile.identity.to_string(),
            [first, ..] => format!(
                "{} or that of one of {} other profiles",
                first.profile.identity,
                self.targets.len() - 1
            ),
        };
        let hint = if part.version == profkit_abi::mip::VERSION {
            "give the profile of its own build, or its binary with --binary"
        } else {
            "give the profile of its own link unit"
        };
        Error::new(ErrorKind::Unsupported, "a raw file of another build")
            .at(part.offset)
            .within(Structure::MipRaw)
            .found(part.id.to_identity())
            .expected(expected)
            .with_hint(hint)
    }

    fn profile(&self, input: usize, data: &[u8], lane: &mut Lane, fate: &mut Fate) {
        let profile = match MipProfile::parse(data) {
            Ok(profile) => profile,
            Err(error) => {
                fate.lost += 1;
                return self.error(lane, input, MipAction::Dropped, &error);
            }
        };
        if !self.take_profiles && self.index.find_identity(&profile.identity).is_none() {
            let error = Error::new(ErrorKind::Unsupported, "a profile of another build")
                .at(0)
                .within(Structure::MipProfile)
                .found(&profile.identity)
                .with_hint("profiles of several builds go into a folder: -p FOLDER");
            fate.lost += 1;
            return self.event_of(
                lane,
                input,
                MipAction::Dropped,
                MipReason::OtherBuild,
                &error,
            );
        }
        fate.kept += 1;
        lane.report.totals.profiles += 1;
        lane.report.totals.runs = lane.report.totals.runs.saturating_add(profile.runs);
        let place = lane.profiles.entry(profile.identity.clone());
        let (_, sum) = place.or_insert_with(|| (input, MipProfile::default()));
        let refused = add_profile(sum, &profile);
        fate.lost += refused.len() as u64;
        lane.report
            .refused(input, self.inputs.name(input), &refused);
    }

    fn error(&self, lane: &mut Lane, input: usize, action: MipAction, error: &Error) {
        self.event_of(lane, input, action, reason_of(error), error);
    }

    fn event_of(
        &self,
        lane: &mut Lane,
        input: usize,
        action: MipAction,
        reason: MipReason,
        error: &Error,
    ) {
        let action = if reason.is_note() {
            MipAction::Noted
        } else {
            action
        };
        lane.report.push(MipEvent {
            input,
            file: self.inputs.name(input).to_owned(),
            offset: error.offset(),
            action,
            reason,
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
        });
    }

    fn event(
        &self,
        lane: &mut Lane,
        input: usize,
        action: MipAction,
        reason: MipReason,
        message: String,
    ) {
        lane.report.push(MipEvent {
            input,
            file: self.inputs.name(input).to_owned(),
            offset: None,
            action,
            reason,
            message,
            hint: None,
        });
    }
}

impl MipReport {
    /// Tells what of a profile was refused that was taken for kept before.
    fn refused_late(&mut self, input: usize, file: &str, refused: &[Refused]) {
        if !refused.is_empty() && self.totals.files_kept > 0 {
            self.totals.files_kept -= 1;
            self.totals.files_repaired += 1;
        }
        self.refused(input, file, refused);
    }

    /// Tells what of a profile was refused.
    fn refused(&mut self, input: usize, file: &str, refused: &[Refused]) {
        for (index, one) in refused.iter().enumerate() {
            let (reason, message) = match one {
                Refused::Profile { found, expected } => (
                    MipReason::OtherLayout,
                    format!("a profile of another build: found {found}, expected {expected}"),
                ),
                Refused::Function {
                    name,
                    found,
                    expected,
                } if index < MOST_NAMED => (
                    MipReason::SignatureChanged,
                    format!(
                        "function `{}` is compiled otherwise: found signature {found:#x}, expected {expected:#x}",
                        String::from_utf8_lossy(name)
                    ),
                ),
                Refused::Function { .. } => {
                    *self.omitted.entry(MipReason::SignatureChanged).or_default() += 1;
                    continue;
                }
            };
            self.push(MipEvent {
                input,
                file: file.to_owned(),
                offset: None,
                action: MipAction::Dropped,
                reason,
                message,
                hint: None,
            });
        }
    }
}

/// Whether a part's records are laid out as the profile says.
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
            return Err(mismatch("records of another size")
                .found(format_args!("{size} bytes"))
                .expected(format_args!("{expected}, as the binary has")));
        }
        _ if size < plan.end() => {
            return Err(mismatch("fewer records than the profile has")
                .found(format_args!("{size} bytes"))
                .expected(format_args!("at least {}", plan.end())));
        }
        _ => {}
    }
    let modes = part.modes.union(profile.modes());
    if modes != part.modes {
        return Err(mismatch("records of another mode")
            .found(format_args!("{:#x}", part.modes.0))
            .expected(format_args!("bits of {:#x}", modes.0)));
    }
    if v8 && let Err(at) = RecordSums::check_v8(plan, part.records) {
        return Err(
            Error::new(ErrorKind::Malformed, "a record that nothing writes")
                .at(at as u64)
                .within(Structure::MipRaw)
                .expected("bytes of 0x00 or 0xff, and a count with an ordinal"),
        );
    }
    Ok(())
}

#[cold]
fn not_mip(data: &[u8]) -> Error {
    let (found, hint) = if is_map(data) {
        (
            "a map",
            "a profile is made of a map first: profkit mip create -p PROFILE MAP",
        )
    } else if data.starts_with(b"\x7fELF") {
        (
            "an ELF file",
            "binaries are given with --binary; raw files are what the program wrote when it ran",
        )
    } else {
        (
            "other bytes",
            "raw files are what a program built with profkit mip cc writes when it ends, default.mipraw",
        )
    };
    Error::new(ErrorKind::BadMagic, "not a MIP raw file or profile")
        .at(0)
        .within(Structure::FirstBytes)
        .found(found)
        .with_hint(hint)
}

/// Puts everything into the targets.
fn finish(
    mut targets: Vec<MipTarget>,
    plans: &[RecordPlan],
    joined: Lane,
    inputs: &dyn Inputs,
    mut report: MipReport,
) -> MipOutcome {
    report.join(joined.report);
    let before: Vec<u64> = targets.iter().map(|target| target.profile.runs).collect();
    for ((target, plan), sums) in targets.iter_mut().zip(plans).zip(joined.sums) {
        if let Some(sums) = sums {
            let lost = sums.add_to(plan, &mut target.profile);
            report.totals.samples_dropped = report.totals.samples_dropped.saturating_add(lost);
        }
    }
    let mut profiles: Vec<_> = joined.profiles.into_iter().collect();
    profiles.sort_by(|one, two| one.0.cmp(&two.0));
    for (identity, (input, profile)) in profiles {
        let target = targets
            .iter_mut()
            .find(|target| target.profile.identity == identity);
        match target {
            Some(target) => {
                let refused = add_profile(&mut target.profile, &profile);
                report.refused_late(input, inputs.name(input), &refused);
            }
            None => targets.push(MipTarget {
                name: identity.to_string(),
                profile,
            }),
        }
    }
    report.targets = targets
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
    report.finish();
    MipOutcome { targets, report }
}
