//! The rules of a merge of sample profiles: what happens to inputs that cannot be read or have faults, and to functions
//! that are known only by the hash of their name.
use super::options::SampleMergeOptions;
use super::worker::LlvmWords;
use crate::driver::{Outcome, unreadable};
use crate::error::MergeError;
use crate::options::Policy;
use crate::report::{Action, Event, EventLog, Reason, Totals};
use profkit_data::ids::NameRef;
use profkit_data::sample::{
    AddOutcome, Frame, FsPass, Function, NameId, ProfileKind, ReadReport, SampleName,
    SampleProfile, Samples, context_name, unify_hashes,
};
use profkit_data::{Error, ErrorKind};
use rustc_hash::FxHashMap;
use std::io;
use std::sync::Arc;

/// For each name hash, the first name of an input. Empty if the input has no hashes in place of names.
pub(super) type OwnNames = FxHashMap<NameRef, NameId>;

/// The rules of a merge of sample profiles. Without `as_llvm`, they are those of [`Policy::Tolerant`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Strategy {
    pub(super) as_llvm: Option<AsLlvm>,
}

/// The rules of [`Policy::Llvm`].
#[derive(Clone, Copy, Debug)]
pub(super) struct AsLlvm {
    stop_at_fault: bool,
    /// The pass to whose bits renaming cuts discriminators. It also removes contexts, checksums and vtables.
    pub(super) fs_pass: FsPass,
}

impl Strategy {
    pub(super) fn new(options: &SampleMergeOptions) -> Self {
        let as_llvm = (options.policy == Policy::Llvm).then_some(AsLlvm {
            stop_at_fault: options.stop_at_fault,
            fs_pass: options.read.fs_pass,
        });
        Strategy { as_llvm }
    }

    pub(super) fn is_llvm(self) -> bool {
        self.as_llvm.is_some()
    }

    pub(super) fn log(self) -> EventLog {
        if self.is_llvm() {
            // LLVM's tool prints a line for each event.
            EventLog::unlimited()
        } else {
            EventLog::default()
        }
    }

    pub(super) fn unreadable(self, index: usize, error: io::Error) -> Result<Event, MergeError> {
        if self.is_llvm() {
            Err(MergeError::Unreadable(index, Arc::new(error)))
        } else {
            Ok(unreadable(index, &error))
        }
    }

    pub(super) fn judge(
        self,
        index: usize,
        report: &ReadReport,
    ) -> Result<(Outcome, Vec<Event>), MergeError> {
        let (Some(rules), Some(error)) = (self.as_llvm, first_fault(report)) else {
            return Ok(judge_by_functions(index, report));
        };
        // At an invalid line, LLVM's text reader ends the whole tool, whatever `--failure-mode` says.
        if rules.stop_at_fault || error.line_column().is_some() {
            return Err(MergeError::Damaged(index, Box::new(error)));
        }
        let event = Event::from_error(index, Action::Dropped, Reason::of(&error), &error);
        Ok((Outcome::Dropped, vec![event]))
    }

    /// Whether an input must agree with the others: all have probes or none, all have contexts or none.
    pub(super) fn decides_kind(self, functions: u64) -> bool {
        self.is_llvm() || functions > 0
    }

    pub(super) fn renaming_cuts_to(self) -> Option<FsPass> {
        self.as_llvm.map(|rules| rules.fs_pass)
    }

    /// Gives functions of an input the names that they have in the sum. LLVM finds functions by their hash: a name and
    /// its hash are one function, which keeps the form that came first.
    pub(super) fn match_names(self, sum: &SampleProfile, input: &mut SampleProfile) {
        let has_hashes = (sum.kind | input.kind).contains(ProfileKind::MD5_NAMES);
        if !self.is_llvm() || !has_hashes {
            return;
        }
        // Frames of calling contexts are compared by their hashes, too.
        let key = |profile: &SampleProfile, function: &Function| {
            let frame = |frame: &Frame| (profile.names.get(frame.name).guid(), frame.location);
            let callers: Vec<_> = function.callers.iter().map(frame).collect();
            (profile.names.get(function.samples.name).guid(), callers)
        };
        let mut known = FxHashMap::default();
        for function in sum.functions() {
            known.insert(key(sum, function), function);
        }
        for mut function in input.take_functions() {
            if let Some(same) = known.get(&key(input, &function)) {
                let frames = function.callers.iter_mut().map(|frame| &mut frame.name);
                let same_frames = same.callers.iter().map(|frame| frame.name);
                let names = frames.chain([&mut function.samples.name]);
                for (name, same) in names.zip(same_frames.chain([same.samples.name])) {
                    *name = input.intern(sum.names.get(same)).unwrap_or(*name);
                }
            }
            input.push(function);
        }
    }

    /// The name or hash that the input has. [`match_names`](Self::match_names) added the names of the sum after those
    /// of the input, so the first name with a hash is the input's own. `own` keeps these names between calls.
    pub(super) fn reported_name(
        self,
        input: &SampleProfile,
        function: &Function,
        own: &mut Option<OwnNames>,
    ) -> Vec<u8> {
        if !self.is_llvm() {
            return context_name(input, function);
        }
        let own = own.get_or_insert_with(|| {
            let is_hash = |(_, name): (_, SampleName<'_>)| matches!(name, SampleName::Guid(_));
            let mut own = OwnNames::default();
            if input.names.iter().any(is_hash) {
                for (id, name) in input.names.iter() {
                    own.entry(name.guid()).or_insert(id);
                }
            }
            own
        });
        if own.is_empty() {
            return context_name(input, function);
        }
        let own = |id: NameId| own.get(&input.names.get(id).guid()).copied().unwrap_or(id);
        let mut function = Function {
            callers: function.callers.clone(),
            samples: Samples {
                name: own(function.samples.name),
                ..Samples::default()
            },
        };
        for frame in &mut function.callers {
            frame.name = own(frame.name);
        }
        context_name(input, &function)
    }

    /// Whether the inputs of `other` must be added one by one, because their order decides names: if some functions
    /// have names and others only hashes, LLVM keeps the form that came first.
    pub(super) fn names_depend_on_order(self, sum: &SampleProfile, other: &SampleProfile) -> bool {
        let has_hashes = (sum.kind | other.kind).contains(ProfileKind::MD5_NAMES);
        if !self.is_llvm() || !has_hashes {
            return false;
        }
        let names = || sum.names.iter().chain(other.names.iter());
        let is_hash = |(_, name): &(_, SampleName<'_>)| matches!(name, SampleName::Guid(_));
        names().any(|name| is_hash(&name)) && !names().all(|name| is_hash(&name))
    }

    /// LLVM's variables `ProfileIsFS` and `ProfileIsPreInlined` decide two flags of the result. Of several inputs that
    /// set a variable, the last one decides.
    pub(super) fn finish(self, profile: &mut SampleProfile, words: LlvmWords, totals: &mut Totals) {
        if !self.is_llvm() {
            let mut outcome = AddOutcome::default();
            unify_hashes(profile, &mut outcome);
            totals.records_dropped += outcome.mismatches;
            totals.records_overflowed += outcome.overflows;
            return;
        }
        for (word, flag) in [
            (words.is_fs, ProfileKind::FS_DISCRIMINATORS),
            (words.is_pre_inlined, ProfileKind::PRE_INLINED),
        ] {
            if word == Some(false) {
                profile.kind = profile.kind.without(flag);
            }
        }
    }
}

pub(super) fn judge_by_functions(index: usize, report: &ReadReport) -> (Outcome, Vec<Event>) {
    let (action, outcome) = match (report.fault_count, report.functions) {
        (0, _) => return (Outcome::Kept, Vec::new()),
        (_, 0) => (Action::Dropped, Outcome::Dropped),
        _ => (Action::Repaired, Outcome::Repaired),
    };
    let event = |error| Event::from_error(index, action, Reason::of(error), error);
    (outcome, report.faults.iter().map(event).collect())
}

/// LLVM's readers also treat a count that is too large as a fault.
fn first_fault(report: &ReadReport) -> Option<Error> {
    if let Some(error) = report.faults.first() {
        return Some(error.clone());
    }
    let overflows = report.outcome.overflows > 0;
    overflows.then(|| Error::new(ErrorKind::CounterTooLarge, "a count exceeds 64 bits"))
}
