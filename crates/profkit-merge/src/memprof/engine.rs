//! Merges heap profiles with the common driver. Raw dumps are added up by address; YAML profiles are collected one by
//! one.
use super::{ContextRule, HeapSum, MemProfSum, RawContexts};
use crate::Inputs;
use crate::driver::{
    Cancelled, Driver, MergeKind, OpenedInput, Outcome, ReportPart, RunOptions, Schedule,
};
use crate::report::{Action, Event, HeapDetails, Reason, Report};
use profkit_data::detect::FileKind;
use profkit_data::memprof::raw::RawMemProf;
use profkit_data::memprof::{MemProfile, yaml};
use profkit_data::{Error, ErrorKind, Structure};

/// The largest number of faults of one file that are reported. The first faults usually explain the later ones.
const MOST_FAULTS: u64 = 10;

/// The heap profiles of many inputs. Symbolise [`contexts`](Self::contexts), then [`sum`](Self::sum) adds the rest.
#[derive(Clone, Debug, Default)]
pub struct HeapParts {
    /// The allocation contexts of all raw dumps, with addresses instead of frames.
    pub contexts: RawContexts,
    /// The YAML heap profiles, in input order.
    pub profiles: Vec<MemProfile>,
}

impl HeapParts {
    /// Returns the sum of the symbolised raw dumps and all YAML profiles. Contexts that a dump has at several addresses
    /// with the same call stack stay apart ([`ContextRule::AddCopies`]).
    pub fn sum(&self, symbolized: MemProfile) -> MemProfile {
        if self.profiles.is_empty() {
            return symbolized;
        }
        let mut sum = MemProfSum::new(ContextRule::AddCopies);
        sum.add(&symbolized);
        for profile in &self.profiles {
            sum.add(profile);
        }
        sum.finish()
    }

    /// The number of allocation contexts; one that several profiles have counts in each.
    pub fn context_count(&self) -> u64 {
        let profiles = self.profiles.iter().map(|profile| profile.contexts().len());
        (self.contexts.contexts().len() + profiles.sum::<usize>()) as u64
    }

    /// Whether no input contained any heap profile data.
    pub fn is_empty(&self) -> bool {
        self.contexts.dumps() == 0 && self.profiles.is_empty()
    }
}

/// The result of a merge of heap profiles.
#[derive(Clone, Debug, Default)]
pub struct HeapOutcome {
    /// The sum of the raw dumps, which must still be symbolised, and the YAML profiles.
    pub parts: HeapParts,
    /// The report: what was done with each input. [`Report::heap`] is always set.
    pub report: Report,
}

/// Merges heap profiles: raw dumps and YAML profiles. Weights are ignored, as in LLVM.
///
/// ```
/// use profkit_merge::RunOptions;
/// use profkit_merge::memprof::merge_heap;
///
/// let yaml = b"---\nHeapProfileRecords:\n- GUID: main\n  AllocSites: []\n  CallSites: []\n";
/// let merged = merge_heap(&[yaml.as_slice(), yaml], &RunOptions::new())?;
/// assert_eq!(merged.parts.profiles.len(), 2);
/// # Ok::<(), profkit_merge::Cancelled>(())
/// ```
///
/// # Errors
/// If the merge was cancelled.
pub fn merge_heap(
    inputs: &(impl Inputs + ?Sized),
    run: &RunOptions,
) -> Result<HeapOutcome, Cancelled> {
    let inputs: &dyn Inputs = &inputs;
    let driver = Driver::new(inputs, run);
    let indexes: Vec<usize> = (0..inputs.len()).collect();
    let (worker, part) = driver.merge(&Heap::default(), &indexes)?;
    let details = worker.details(&part);
    Ok(HeapOutcome {
        parts: worker.parts,
        report: Report {
            heap: Some(details),
            ..part.finish(inputs)
        },
    })
}

/// Whether an input is a heap profile: a raw dump, or YAML text with one of LLVM's keys.
pub(crate) fn is_heap_profile(input: &OpenedInput<'_>) -> bool {
    match input.kind {
        FileKind::MemProfRaw => true,
        _ => is_heap_yaml(input.bytes()),
    }
}

fn is_heap_yaml(bytes: &[u8]) -> bool {
    let keys: [&[u8]; 2] = [b"\nHeapProfileRecords:", b"\nDataAccessProfiles:"];
    let has = |key: &&[u8]| memchr::memmem::find(bytes, key).is_some();
    yaml::is_yaml(bytes) && keys.iter().any(has)
}

#[derive(Default)]
pub(crate) struct Heap {
    /// Whether the order of inputs does not matter: they are added up in [`HeapWorker::sum`].
    pub(crate) unordered: bool,
}

#[derive(Debug, Default)]
pub(crate) struct HeapWorker {
    pub(crate) parts: HeapParts,
    pub(crate) sum: HeapSum,
}

impl HeapWorker {
    pub(crate) fn details(&self, part: &ReportPart) -> HeapDetails {
        HeapDetails {
            files: part.totals.files,
            files_dropped: part.totals.files_dropped,
            dumps: self.parts.contexts.dumps() as u64,
            newest_raw_version: self.parts.contexts.newest_version(),
            profiles: self.parts.profiles.len() as u64,
        }
    }

    fn add_raw(&mut self, profile: &RawMemProf<'_>, faults: &mut Faults) -> bool {
        let before = self.parts.contexts.dumps();
        let mut kept = false;
        self.parts.contexts.add(profile, |skipped| {
            kept |= skipped.kept > 0;
            faults.push(skipped.error);
        });
        kept || self.parts.contexts.dumps() > before
    }

    fn add(&mut self, input: &OpenedInput<'_>, faults: &mut Faults) -> Result<bool, Error> {
        if input.kind == FileKind::MemProfRaw {
            let profile = RawMemProf::parse(input.bytes())?;
            return Ok(self.add_raw(&profile, faults));
        }
        let may_be_yaml = matches!(input.kind, FileKind::MemProfYaml | FileKind::Empty)
            || yaml::is_yaml(input.bytes());
        if !may_be_yaml {
            // For a file that is not YAML at all, a syntax error at some line would mislead.
            return Err(Error::new(
                ErrorKind::UnrecognizedFormat,
                "the file is not a heap profile",
            )
            .found(input.kind.description())
            .expected("a raw heap profile or MemProf YAML"));
        }
        let profile = yaml::parse(input.bytes())?;
        if profile.is_empty() {
            return Err(Error::new(ErrorKind::Malformed, "the profile is empty")
                .within(Structure::MemProfYaml)
                .expected("records under HeapProfileRecords or DataAccessProfiles")
                .with_hint(
                    "leave the file out, or write it again from a profile with a MemProf section",
                ));
        }
        self.parts.profiles.push(profile);
        Ok(true)
    }
}

#[derive(Default)]
struct Faults {
    first: Vec<Error>,
    count: u64,
}

impl Faults {
    fn push(&mut self, error: Error) {
        self.count += 1;
        if self.count <= MOST_FAULTS {
            self.first.push(error);
        }
    }
}

impl MergeKind for Heap {
    type Worker = HeapWorker;
    type Error = Cancelled;

    /// Timestamps, CPU numbers and overlap counts depend on the order of the inputs.
    fn schedule(&self) -> Schedule {
        Schedule::Ranges { at_least: 1 }
    }

    fn worker(&self) -> HeapWorker {
        HeapWorker::default()
    }

    fn take(
        &self,
        worker: &mut HeapWorker,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        let mut faults = Faults::default();
        let mut one = HeapWorker::default();
        let target = match self.unordered {
            true => &mut one,
            false => &mut *worker,
        };
        let kept = target.add(input, &mut faults).unwrap_or_else(|error| {
            faults.push(error);
            false
        });
        worker.sum.add(&one.parts);
        let (action, outcome) = match (kept, faults.count) {
            (false, _) => (Action::Dropped, Outcome::Dropped),
            (true, 0) => (Action::Kept, Outcome::Kept),
            (true, _) => (Action::Repaired, Outcome::Repaired),
        };
        for error in &faults.first {
            let event = Event::from_error(input.index, action, Reason::of(error), error);
            part.log.push(event.of_kind(input.kind));
        }
        let more = faults.count.saturating_sub(MOST_FAULTS);
        if more > 0 {
            let error = Error::new(
                ErrorKind::Malformed,
                format!("the dumps have {more} more faults like these"),
            )
            .within(Structure::RawMemProf)
            .with_hint("the file is damaged in many places: profile the program again");
            let event = Event::from_error(input.index, action, Reason::Malformed, &error);
            part.log.push(event);
        }
        outcome
    }

    fn join(
        &self,
        (worker, part): (&mut HeapWorker, &mut ReportPart),
        (later, later_part): (HeapWorker, ReportPart),
    ) -> Result<(), Cancelled> {
        worker.parts.contexts.absorb(later.parts.contexts);
        worker.parts.profiles.extend(later.parts.profiles);
        worker.sum.absorb(&later.sum);
        part.absorb(later_part);
        Ok(())
    }
}
