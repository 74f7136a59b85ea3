//! From inputs to a result.
use super::cold::trim_cold;
use super::layout::{SampleLayout, flatten, nest};
use super::names::{remap, unify_hashes};
use super::options::SampleMergeOptions;
use crate::inputs::Inputs;
use crate::options::Policy;
use crate::report::{Action, Event, EventLog, REPORT_VERSION, Reason, Report, Totals};
use crate::weight::Weight;
use profkit_data::sample::{
    self, AddOutcome, Function, ProfileKind, ReadReport, SampleEncoding, SampleName, SampleProfile,
    Samples,
};
use profkit_data::{Error, ErrorKind};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A merged profile and what there is to say about it.
#[derive(Clone, Debug)]
pub struct SampleOutcome {
    /// The sum.
    pub profile: SampleProfile,
    /// What was kept, repaired and dropped.
    pub report: Report,
}

/// A merge that has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SampleMergeError {
    /// No input was named.
    NoInputs,
    /// Some inputs have something that others have not, and cannot be merged with them.
    Kinds {
        /// What it is.
        what: SampleConflict,
        /// The first input that has it, by index and name.
        with: (usize, String),
        /// The first that has not.
        without: (usize, String),
    },
    /// An input is damaged, under [`Policy::Llvm`], which stops there: its index and what is wrong with it.
    Damaged(usize, Box<profkit_data::Error>),
    /// An input cannot be read, under [`Policy::Llvm`]: its index, and what the system says.
    Unreadable(usize, Arc<std::io::Error>),
    /// No input could be used; the report says why for each.
    NothingLeft(Box<Report>),
}

/// What keeps sample profiles from being merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleConflict {
    /// Calling contexts.
    Contexts,
    /// Pseudo probes.
    Probes,
}

impl SampleMergeError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            SampleMergeError::Kinds {
                what: SampleConflict::Contexts,
                ..
            } => Some(
                "profkit convert --layout nest makes a profile without contexts of one with them",
            ),
            SampleMergeError::Kinds {
                what: SampleConflict::Probes,
                ..
            } => Some("lines and probes count different places; merge those of one sort only"),
            SampleMergeError::NothingLeft(report) => {
                report.events.iter().find_map(|event| event.hint.as_deref())
            }
            SampleMergeError::Damaged(_, error) => error.hint(),
            SampleMergeError::NoInputs | SampleMergeError::Unreadable(..) => None,
        }
    }
}

impl fmt::Display for SampleMergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SampleMergeError::NoInputs => f.write_str("no input files"),
            SampleMergeError::Kinds {
                what,
                with: (_, with),
                without: (_, without),
            } => {
                let what = match what {
                    SampleConflict::Contexts => "calling contexts",
                    SampleConflict::Probes => "pseudo probes",
                };
                write!(
                    f,
                    "sample profiles with and without {what} cannot be merged: {with} has them, {without} has none"
                )
            }
            SampleMergeError::Damaged(_, error) => error.fmt(f),
            SampleMergeError::Unreadable(_, error) => error.fmt(f),
            SampleMergeError::NothingLeft(report) => {
                write!(
                    f,
                    "no profile could be used, out of {}",
                    report.totals.files
                )
            }
        }
    }
}

impl std::error::Error for SampleMergeError {}

/// Merges sample profiles of any encoding.
///
/// # Errors
/// If there is no result.
pub fn merge_sample(
    inputs: &(impl Inputs + ?Sized),
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, SampleMergeError> {
    merge(&inputs, options)
}

fn merge(
    inputs: &dyn Inputs,
    options: &SampleMergeOptions,
) -> Result<SampleOutcome, SampleMergeError> {
    if inputs.is_empty() {
        return Err(SampleMergeError::NoInputs);
    }
    let (mut profile, mut report) = match quick(inputs, options) {
        Some(done) => done,
        None => Careful::new(inputs, options).run()?,
    };
    let used = report.totals.files_kept + report.totals.files_repaired;
    if used == 0 && options.policy == Policy::Tolerant {
        return Err(SampleMergeError::NothingLeft(Box::new(report)));
    }
    finish(&mut profile, options, &mut report);
    Ok(SampleOutcome { profile, report })
}

/// What is done with the sum.
fn finish(profile: &mut SampleProfile, options: &SampleMergeOptions, report: &mut Report) {
    let mut outcome = AddOutcome::default();
    let contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    if let Some(cold) = options
        .cold
        .filter(|cold| contexts && (cold.trim || cold.merge))
    {
        let threshold = cold_threshold(profile, cold.cutoff);
        outcome.absorb(trim_cold(profile, cold, threshold));
    }
    match options.layout {
        Some(SampleLayout::Flat) => outcome.absorb(flatten(profile)),
        Some(SampleLayout::Nest) => outcome.absorb(nest(profile, options.keep_bases)),
        None => {}
    }
    report.totals.records_overflowed += outcome.overflows;
    report.totals.records_dropped += outcome.mismatches;
    if let Some(filter) = &options.filter {
        let before = profile.functions().len();
        let names = profile.names.clone();
        profile.retain(|function| match names.get(function.samples.name) {
            SampleName::Text(text) => filter(text),
            guid @ SampleName::Guid(_) => filter(guid.to_string().as_bytes()),
        });
        report.totals.functions_filtered = (before - profile.functions().len()) as u64;
    }
    report.totals.functions = profile.functions().len() as u64;
}

/// The least of the counts that hold this share of all samples, in millionths (`getColdCountThreshold`).
fn cold_threshold(profile: &SampleProfile, cutoff: u32) -> u64 {
    let summary = sample::summarize(profile);
    let entry = summary
        .cutoffs
        .iter()
        .find(|entry| entry.cutoff >= u64::from(cutoff));
    entry.map_or(0, |entry| entry.min_count)
}

/// How many inputs a thread is started for at least.
const INPUTS_PER_THREAD: usize = 2;

/// Merges inputs that are sound and go together, on several threads; `None` for others.
fn quick(inputs: &dyn Inputs, options: &SampleMergeOptions) -> Option<(SampleProfile, Report)> {
    if options.remapping.is_some() {
        return None;
    }
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = options.threads.map_or_else(available, usize::from);
    let lanes = wanted.min(inputs.len().div_ceil(INPUTS_PER_THREAD)).max(1);
    let share = |lane: usize| inputs.len() * lane / lanes..inputs.len() * (lane + 1) / lanes;
    let mut sums: Vec<Option<Lane>> = Vec::new();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..lanes)
            .map(|lane| scope.spawn(move || Lane::run(inputs, share(lane), options)))
            .collect();
        sums.push(Lane::run(inputs, share(0), options));
        // A lane that panicked has no sum; the careful merge meets the same input and tells.
        sums.extend(others.into_iter().map(|lane| lane.join().unwrap_or(None)));
    });
    let mut sums = sums.into_iter();
    let mut first = sums.next()??;
    for other in sums {
        first = first.join(other?)?;
    }
    let Lane {
        mut profile,
        is_fs,
        totals,
        ..
    } = first;
    apply_fs_word(&mut profile, is_fs, options.policy);
    if profile.kind.contains(ProfileKind::MD5_NAMES) && mixes_hashes(&profile) {
        match options.policy {
            Policy::Tolerant => {
                let mut outcome = AddOutcome::default();
                unify_hashes(&mut profile, &mut outcome);
                if outcome != AddOutcome::default() {
                    return None;
                }
            }
            Policy::Llvm => return None,
        }
    }
    let report = Report {
        version: REPORT_VERSION,
        totals,
        ..Report::default()
    };
    Some((profile, report))
}

fn mixes_hashes(profile: &SampleProfile) -> bool {
    let is_hash = |(_, name): &(_, SampleName<'_>)| matches!(name, SampleName::Guid(_));
    profile.names.iter().any(|name| is_hash(&name))
        && !profile.names.iter().all(|name| is_hash(&name))
}

/// What an input of this kind says about LLVM's one variable for whether profiles are of FS-AFDO
/// (`FunctionSamples::ProfileIsFS`): readers of encodings that have no word for it set it to what was assumed, that of the
/// extensible encoding only sets it, and that of GCC's leaves it.
fn fs_word(data: &[u8], kind: ProfileKind) -> Option<bool> {
    match sample::encoding(data)? {
        _ if kind.contains(ProfileKind::FS_DISCRIMINATORS) => Some(true),
        SampleEncoding::ExtBinary | SampleEncoding::Gcov => None,
        SampleEncoding::Text | SampleEncoding::Binary | SampleEncoding::CompactBinary => {
            Some(false)
        }
    }
}

/// As in LLVM, the last word counts; otherwise a profile is of FS-AFDO if one of the inputs is.
fn apply_fs_word(profile: &mut SampleProfile, is_fs: Option<bool>, policy: Policy) {
    if policy == Policy::Llvm && is_fs == Some(false) {
        profile.kind = profile.kind.without(ProfileKind::FS_DISCRIMINATORS);
    }
}

/// The kinds that must be the same in all inputs.
fn family(kind: ProfileKind) -> (bool, bool) {
    (
        kind.contains(ProfileKind::CONTEXT_SENSITIVE),
        kind.contains(ProfileKind::PROBE_BASED),
    )
}

/// The sum of inputs that follow one another.
struct Lane {
    profile: SampleProfile,
    family: Option<(bool, bool)>,
    /// See [`fs_word`].
    is_fs: Option<bool>,
    totals: Totals,
}

impl Lane {
    /// `None` if any input is unsound, or does not go with those before.
    fn run(inputs: &dyn Inputs, share: Range<usize>, options: &SampleMergeOptions) -> Option<Self> {
        let mut lane = Lane {
            profile: SampleProfile::new(),
            family: None,
            is_fs: None,
            totals: Totals::default(),
        };
        let mut scratch = Vec::new();
        for index in share {
            let weight = inputs.weight(index).as_integer()?;
            let data = inputs.open(index, &mut scratch).ok()?;
            let bytes = data.as_ref();
            let report = sample::read_with(bytes, &mut lane.profile, weight, &options.read);
            if report.fault_count > 0 || report.outcome != AddOutcome::default() {
                return None;
            }
            if report.functions > 0 || options.policy == Policy::Llvm {
                let family = family(report.kind);
                if *lane.family.get_or_insert(family) != family {
                    return None;
                }
            }
            if options.drop_symbols {
                lane.profile.symbols.clear();
            }
            lane.is_fs = fs_word(bytes, report.kind).or(lane.is_fs);
            lane.totals.files += 1;
            lane.totals.files_kept += 1;
            lane.totals.bytes += bytes.len() as u64;
            lane.totals.records_merged += report.functions;
        }
        Some(lane)
    }

    /// Both sums as one; `None` if the order of inputs matters.
    fn join(mut self, other: Lane) -> Option<Lane> {
        if let (Some(one), Some(two)) = (self.family, other.family)
            && one != two
        {
            return None;
        }
        self.family = self.family.or(other.family);
        self.is_fs = other.is_fs.or(self.is_fs);
        let mut outcome = AddOutcome::default();
        absorb(&mut self.profile, other.profile, 1, |_, _, event| {
            outcome.absorb(event);
        })?;
        if outcome != AddOutcome::default() {
            return None;
        }
        self.totals.files += other.totals.files;
        self.totals.files_kept += other.totals.files_kept;
        self.totals.bytes += other.totals.bytes;
        self.totals.records_merged += other.totals.records_merged;
        Some(self)
    }
}

/// Adds a profile to another, function by function; tells of each that did not fit. `None` for too many names.
fn absorb(
    sum: &mut SampleProfile,
    mut other: SampleProfile,
    weight: u64,
    mut tell: impl FnMut(&SampleProfile, &Function, AddOutcome),
) -> Option<()> {
    let names = sum.names.insert_all(&other.names)?;
    let name = |id: sample::NameId| names.get(id.index()).copied().unwrap_or(id);
    sum.kind |= other.kind;
    sum.symbols.append(&mut other.symbols);
    let mut callers = Vec::new();
    let mut additions = sum.additions();
    for function in other.take_functions() {
        callers.clear();
        callers.extend(function.callers.iter().map(|frame| sample::Frame {
            name: name(frame.name),
            ..*frame
        }));
        let mut outcome = AddOutcome::default();
        additions.merge(&callers, &function.samples, name, weight, &mut outcome);
        if outcome != AddOutcome::default() {
            tell(&other, &function, outcome);
        }
    }
    Some(())
}

/// Merges input by input, each read on its own first.
struct Careful<'a> {
    inputs: &'a dyn Inputs,
    options: &'a SampleMergeOptions,
    profile: SampleProfile,
    /// For contexts and for probes: the first input that has them, and the first that has not.
    seen: [[Option<usize>; 2]; 2],
    log: EventLog,
    totals: Totals,
    /// Functions by the hash of their name, where some names are known by their hash only and LLVM's rule is followed.
    by_hash: bool,
    /// See [`fs_word`].
    is_fs: Option<bool>,
}

impl<'a> Careful<'a> {
    fn new(inputs: &'a dyn Inputs, options: &'a SampleMergeOptions) -> Self {
        Careful {
            inputs,
            options,
            profile: SampleProfile::new(),
            seen: [[None; 2]; 2],
            log: match options.policy {
                Policy::Llvm => EventLog::unlimited(),
                Policy::Tolerant => EventLog::default(),
            },
            totals: Totals::default(),
            by_hash: false,
            is_fs: None,
        }
    }

    fn run(mut self) -> Result<(SampleProfile, Report), SampleMergeError> {
        let mut scratch = Vec::new();
        for index in 0..self.inputs.len() {
            self.totals.files += 1;
            let data = match self.inputs.open(index, &mut scratch) {
                Ok(data) => data,
                Err(error) if self.options.policy == Policy::Llvm => {
                    return Err(SampleMergeError::Unreadable(index, Arc::new(error)));
                }
                Err(error) => {
                    self.unreadable(index, &error);
                    continue;
                }
            };
            self.totals.bytes += data.as_ref().len() as u64;
            self.input(index, data.as_ref())?;
        }
        if self.options.policy == Policy::Tolerant {
            let mut outcome = AddOutcome::default();
            unify_hashes(&mut self.profile, &mut outcome);
            self.totals.records_dropped += outcome.mismatches;
            self.totals.records_overflowed += outcome.overflows;
        }
        apply_fs_word(&mut self.profile, self.is_fs, self.options.policy);
        let (mut events, omitted) = self.log.finish();
        for event in &mut events {
            event.file = self.inputs.name(event.input).into_owned();
        }
        let report = Report {
            version: REPORT_VERSION,
            events,
            omitted,
            totals: self.totals,
            ..Report::default()
        };
        Ok((self.profile, report))
    }

    fn unreadable(&mut self, index: usize, error: &std::io::Error) {
        self.totals.files_dropped += 1;
        let event = Event::new(
            index,
            Action::Dropped,
            Reason::Unreadable,
            error.to_string(),
        );
        self.log.push(event);
    }

    fn input(&mut self, index: usize, data: &[u8]) -> Result<(), SampleMergeError> {
        let mut fresh = SampleProfile::new();
        let report = sample::read_with(data, &mut fresh, 1, &self.options.read);
        let is_llvm = self.options.policy == Policy::Llvm;
        self.is_fs = fs_word(data, report.kind).or(self.is_fs);
        if is_llvm && let Some(error) = llvm_fault(&report) {
            let is_line = error.line_column().is_some();
            if self.options.stop_at_fault || is_line {
                // Its reader of text ends the tool at a bad line, whatever the failure mode.
                return Err(SampleMergeError::Damaged(index, Box::new(error)));
            }
            self.log.push(Event::from_error(
                index,
                Action::Dropped,
                Reason::of(&error),
                &error,
            ));
            self.totals.files_dropped += 1;
            return Ok(());
        }
        if !self.faults(index, &report) {
            return Ok(());
        }
        if report.functions > 0 || is_llvm {
            self.check_kind(index, report.kind)?;
        }
        if self.options.drop_symbols {
            fresh.symbols.clear();
        }
        if let Some(remapping) = &self.options.remapping {
            let as_llvm = is_llvm.then_some(self.options.read.fs_pass);
            let (renamed, outcome) = remap(fresh, remapping, as_llvm);
            fresh = renamed;
            self.totals.records_overflowed += outcome.overflows;
        }
        let weight = self.inputs.weight(index);
        let weight = match weight.as_integer() {
            Some(weight) => weight,
            None => {
                scale(&mut fresh, weight);
                1
            }
        };
        if is_llvm {
            self.by_hash |= fresh.kind.contains(ProfileKind::MD5_NAMES);
            if self.by_hash {
                self.match_hashes(&mut fresh);
            }
        }
        self.totals.records_merged += report.functions;
        let (log, totals) = (&mut self.log, &mut self.totals);
        let added = absorb(
            &mut self.profile,
            fresh,
            weight,
            |other, function, outcome| {
                let name = context_name(other, function);
                if outcome.mismatches > 0 {
                    totals.records_dropped += outcome.mismatches;
                    log.push(
                        Event::new(
                            index,
                            Action::Dropped,
                            Reason::ChecksumMismatch,
                            "the checksum differs from that of an input before",
                        )
                        .function(&name)
                        .hint("the profiles are of different builds of the function"),
                    );
                } else if outcome.overflows > 0 {
                    totals.records_overflowed += 1;
                    log.push(
                        Event::new(
                            index,
                            Action::Repaired,
                            Reason::CounterOverflow,
                            "a count reached the largest number",
                        )
                        .function(&name),
                    );
                }
            },
        );
        if added.is_none() {
            let event = Event::new(
                index,
                Action::Dropped,
                Reason::TooLarge,
                "more than 2^32 names",
            );
            self.log.push(event);
        }
        Ok(())
    }

    /// Takes down what is wrong with an input, and whether it is used all the same.
    fn faults(&mut self, index: usize, report: &ReadReport) -> bool {
        if report.fault_count == 0 {
            self.totals.files_kept += 1;
            return true;
        }
        let used = report.functions > 0;
        let action = if used {
            Action::Repaired
        } else {
            Action::Dropped
        };
        for error in &report.faults {
            self.log
                .push(Event::from_error(index, action, Reason::of(error), error));
        }
        if used {
            self.totals.files_repaired += 1;
        } else {
            self.totals.files_dropped += 1;
        }
        used
    }

    fn check_kind(&mut self, index: usize, kind: ProfileKind) -> Result<(), SampleMergeError> {
        let (contexts, probes) = family(kind);
        // LLVM asks for probes first.
        for (what, has, seen) in [
            (SampleConflict::Probes, probes, 0),
            (SampleConflict::Contexts, contexts, 1),
        ] {
            let Some(seen) = self.seen.get_mut(seen) else {
                continue;
            };
            let [with, without] = seen;
            let slot = if has { &mut *with } else { &mut *without };
            slot.get_or_insert(index);
            if let (Some(with), Some(without)) = (*with, *without) {
                let named = |index| (index, self.inputs.name(index).into_owned());
                return Err(SampleMergeError::Kinds {
                    what,
                    with: named(with),
                    without: named(without),
                });
            }
        }
        Ok(())
    }

    /// LLVM's map of functions is keyed by hash: a function that is spelled in one input and a hash in another is one,
    /// under the name that came first.
    fn match_hashes(&mut self, fresh: &mut SampleProfile) {
        let mut known = rustc_hash::FxHashMap::default();
        for function in self.profile.functions() {
            if function.callers.is_empty() {
                let name = self.profile.names.get(function.samples.name);
                known.insert(name.guid(), name);
            }
        }
        let functions = fresh.take_functions();
        for mut function in functions {
            if function.callers.is_empty()
                && let Some(&name) = known.get(&fresh.names.get(function.samples.name).guid())
                && let Some(id) = fresh.intern(name)
            {
                function.samples.name = id;
            }
            fresh.push(function);
        }
    }
}

/// The first fault, or that a count was too large, which LLVM's readers take for one.
fn llvm_fault(report: &ReadReport) -> Option<Error> {
    if let Some(error) = report.faults.first() {
        return Some(error.clone());
    }
    let overflows = report.outcome.overflows > 0;
    overflows.then(|| Error::new(ErrorKind::CounterTooLarge, "a count exceeds 64 bits"))
}

/// A function's name as LLVM prints it: with its context, if it has one.
fn context_name(profile: &SampleProfile, function: &Function) -> Vec<u8> {
    let mut text = String::new();
    for frame in &function.callers {
        use fmt::Write;
        let _ = write!(
            text,
            "{}:{}",
            profile.names.get(frame.name),
            frame.location.line
        );
        if frame.location.discriminator > 0 {
            let _ = write!(text, ".{}", frame.location.discriminator);
        }
        text.push_str(" @ ");
    }
    text.push_str(&profile.names.get(function.samples.name).to_string());
    text.into_bytes()
}

/// Multiplies every count by a fraction.
fn scale(profile: &mut SampleProfile, weight: Weight) {
    let (_, functions) = profile.parts_mut();
    for function in functions {
        scale_samples(&mut function.samples, weight);
    }
}

fn scale_samples(samples: &mut Samples, weight: Weight) {
    let apply = |count: &mut u64| *count = weight.apply(*count).0;
    apply(&mut samples.total);
    apply(&mut samples.head);
    samples
        .body
        .iter_mut()
        .for_each(|line| apply(&mut line.samples));
    samples
        .targets
        .iter_mut()
        .for_each(|target| apply(&mut target.count));
    samples
        .vtables
        .iter_mut()
        .for_each(|target| apply(&mut target.count));
    for inlined in &mut samples.inlined {
        scale_samples(&mut inlined.samples, weight);
    }
}
