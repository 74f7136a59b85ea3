//! The sum of inputs in their order: sums of inputs that follow one another are added as they are, and single inputs are
//! read on their own first where the order matters.
use super::engine::{SampleConflict, SampleMergeError};
use super::options::SampleMergeOptions;
use super::worker::{Piece, Sum, fs_word};
use crate::driver::{Driver, OpenedInput, Outcome, ReportPart, unreadable};
use crate::inputs::Inputs;
use crate::options::Policy;
use crate::report::{Action, Event, Reason};
use profkit_data::sample::{
    self, AddOutcome, Extremes, ProfileKind, ReadReport, SampleName, SampleProfile, absorb,
    checksums_differ, context_name, remap, scale, unify_hashes,
};
use profkit_data::{Error, ErrorKind};
use std::sync::Arc;

/// Sums up inputs in their order.
pub(super) struct OrderedSum<'d, 'a> {
    driver: &'d Driver<'a>,
    options: &'d SampleMergeOptions,
    profile: SampleProfile,
    /// For probes and for contexts: the first input that has them, and the first that has not.
    seen: [[Option<usize>; 2]; 2],
    part: ReportPart,
    /// Functions by the hash of their name, where some names are known by their hash only and LLVM's rule is followed.
    by_hash: bool,
    /// See [`fs_word`].
    is_fs: Option<bool>,
    /// The largest count at most, and whether there are checksums, if that is known.
    extremes: Option<Extremes>,
    buffer: Vec<u8>,
}

impl<'d, 'a> OrderedSum<'d, 'a> {
    pub(super) fn new(
        driver: &'d Driver<'a>,
        options: &'d SampleMergeOptions,
        part: ReportPart,
    ) -> Self {
        OrderedSum {
            driver,
            options,
            profile: SampleProfile::new(),
            seen: [[None; 2]; 2],
            part,
            by_hash: false,
            is_fs: None,
            extremes: None,
            buffer: Vec::new(),
        }
    }

    /// Adds the inputs that come next.
    ///
    /// # Errors
    /// If they do not go with those before, or are faulty under a policy that ends there.
    pub(super) fn add(&mut self, piece: Piece) -> Result<(), SampleMergeError> {
        let inputs = match piece {
            Piece::Sum(sum) => match self.add_sum(sum) {
                Ok(()) => return Ok(()),
                // Only these inputs are read again.
                Err(inputs) => inputs,
            },
            Piece::Later(inputs) => inputs,
        };
        self.extremes = None;
        for index in inputs {
            self.driver.check_cancelled()?;
            let mut buffer = std::mem::take(&mut self.buffer);
            match self.driver.open(index, &mut buffer) {
                Ok(input) => {
                    let outcome = self.add_opened(&input)?;
                    self.part.count(outcome, input.bytes().len());
                    self.driver.progress(index, outcome);
                    self.driver.close(input, &mut buffer);
                }
                Err(error) if self.options.policy == Policy::Llvm => {
                    return Err(SampleMergeError::Unreadable(index, Arc::new(error)));
                }
                Err(error) => {
                    self.part.count(Outcome::Dropped, 0);
                    self.part.log.push(unreadable(index, &error));
                }
            }
            self.buffer = buffer;
        }
        Ok(())
    }

    fn add_opened(&mut self, input: &OpenedInput<'_>) -> Result<Outcome, SampleMergeError> {
        self.add_input(input.index, input.bytes())
    }

    /// Adds the sum of some inputs. If the order of inputs matters in it, nothing is added and the inputs are given
    /// back.
    fn add_sum(&mut self, sum: Sum) -> Result<(), Vec<usize>> {
        let Some(first) = sum.first_in_family else {
            // Nothing of any input: there is nothing that could be in another order.
            self.is_fs = sum.is_fs.or(self.is_fs);
            self.part.absorb(sum.part);
            return self.add_profile(sum.profile).ok_or(sum.inputs);
        };
        let mut seen = self.seen;
        for ([with, without], has) in seen.iter_mut().zip(sum.kinds()) {
            (if has { with } else { without }).get_or_insert(first);
        }
        let mixed = seen.iter().any(|seen| seen.iter().all(Option::is_some));
        if mixed || self.mixes_hashes(&sum) || self.conflicts(&sum.profile) {
            return Err(sum.inputs);
        }
        let is_md5 = sum.profile.kind.contains(ProfileKind::MD5_NAMES);
        self.add_profile(sum.profile).ok_or(sum.inputs)?;
        self.seen = seen;
        self.by_hash |= is_md5 && self.options.policy == Policy::Llvm;
        self.is_fs = sum.is_fs.or(self.is_fs);
        self.part.absorb(sum.part);
        Ok(())
    }

    /// `None` for too many names.
    fn add_profile(&mut self, profile: SampleProfile) -> Option<()> {
        if self.profile.names.is_empty() && self.profile.symbols.is_empty() {
            let kind = self.profile.kind | profile.kind;
            self.profile = profile;
            self.profile.kind = kind;
            return Some(());
        }
        absorb(&mut self.profile, profile, 1, |_, _, _| {})
    }

    /// Whether the sum and what is to be added name functions differently: some by name, some by hash. LLVM's rule for these
    /// depends on the order of inputs.
    fn mixes_hashes(&self, sum: &Sum) -> bool {
        let kind = self.profile.kind | sum.profile.kind;
        if self.options.policy != Policy::Llvm || !kind.contains(ProfileKind::MD5_NAMES) {
            return false;
        }
        let names = || self.profile.names.iter().chain(sum.profile.names.iter());
        let is_hash = |(_, name): &(_, SampleName<'_>)| matches!(name, SampleName::Guid(_));
        names().any(|name| is_hash(&name)) && !names().all(|name| is_hash(&name))
    }

    /// Whether counts could exceed 64 bits, or checksums differ, if a profile were added.
    fn conflicts(&mut self, other: &SampleProfile) -> bool {
        if self.profile.functions().is_empty() {
            return false;
        }
        let mine = self.extremes.take();
        let mine = mine.unwrap_or_else(|| Extremes::of(&self.profile));
        let theirs = Extremes::of(other);
        let Some(count) = mine.count.checked_add(theirs.count) else {
            return true;
        };
        let has_checksums = mine.has_checksums || theirs.has_checksums;
        self.extremes = Some(Extremes {
            count,
            has_checksums,
        });
        has_checksums && checksums_differ(&self.profile, other)
    }

    /// The sum, and what there is to report.
    pub(super) fn finish(mut self) -> (SampleProfile, ReportPart) {
        match self.options.policy {
            Policy::Tolerant => {
                let mut outcome = AddOutcome::default();
                unify_hashes(&mut self.profile, &mut outcome);
                self.part.totals.records_dropped += outcome.mismatches;
                self.part.totals.records_overflowed += outcome.overflows;
            }
            // As in LLVM, the last word counts; otherwise a profile is of FS-AFDO if one of the inputs is.
            Policy::Llvm if self.is_fs == Some(false) => {
                self.profile.kind = self.profile.kind.without(ProfileKind::FS_DISCRIMINATORS);
            }
            Policy::Llvm => {}
        }
        (self.profile, self.part)
    }

    /// Reads an input on its own, then adds it.
    fn add_input(&mut self, index: usize, data: &[u8]) -> Result<Outcome, SampleMergeError> {
        let mut fresh = SampleProfile::new();
        let report = sample::read_with(data, &mut fresh, 1, &self.options.read);
        let is_llvm = self.options.policy == Policy::Llvm;
        self.is_fs = fs_word(data, report.kind).or(self.is_fs);
        if is_llvm && let Some(error) = llvm_fault(&report) {
            let is_line = error.line_column().is_some();
            if self.options.stop_at_fault || is_line {
                // LLVM's reader of text ends the tool at a bad line, in every failure mode.
                return Err(SampleMergeError::Damaged(index, Box::new(error)));
            }
            self.part.log.push(Event::from_error(
                index,
                Action::Dropped,
                Reason::of(&error),
                &error,
            ));
            return Ok(Outcome::Dropped);
        }
        let read = self.faults(index, &report);
        if read == Outcome::Dropped {
            return Ok(read);
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
            self.part.totals.records_overflowed += outcome.overflows;
        }
        let weight = self.driver.inputs.weight(index);
        let weight = match weight.as_integer() {
            Some(weight) => weight,
            None => {
                scale(&mut fresh, |count| weight.apply(count).0);
                1
            }
        };
        if is_llvm {
            self.by_hash |= fresh.kind.contains(ProfileKind::MD5_NAMES);
            if self.by_hash {
                self.match_hashes(&mut fresh);
            }
        }
        self.part.totals.records_merged += report.functions;
        let ReportPart { log, totals } = &mut self.part;
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
            self.part.log.push(event);
        }
        Ok(read)
    }

    /// Reports what is wrong with an input, and says what became of it.
    fn faults(&mut self, index: usize, report: &ReadReport) -> Outcome {
        let (action, outcome) = match (report.fault_count, report.functions) {
            (0, _) => return Outcome::Kept,
            (_, 0) => (Action::Dropped, Outcome::Dropped),
            _ => (Action::Repaired, Outcome::Repaired),
        };
        for error in &report.faults {
            let event = Event::from_error(index, action, Reason::of(error), error);
            self.part.log.push(event);
        }
        outcome
    }

    fn check_kind(&mut self, index: usize, kind: ProfileKind) -> Result<(), SampleMergeError> {
        let [probes, contexts] = family(kind);
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
                let named = |index| (index, self.driver.inputs.name(index).into_owned());
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

/// The kinds that must be the same in all inputs: probes, then contexts. LLVM asks for probes first.
pub(super) fn family(kind: ProfileKind) -> [bool; 2] {
    [
        kind.contains(ProfileKind::PROBE_BASED),
        kind.contains(ProfileKind::CONTEXT_SENSITIVE),
    ]
}

/// The first fault, or that a count was too large, which LLVM's readers take for one.
fn llvm_fault(report: &ReadReport) -> Option<Error> {
    if let Some(error) = report.faults.first() {
        return Some(error.clone());
    }
    let overflows = report.outcome.overflows > 0;
    overflows.then(|| Error::new(ErrorKind::CounterTooLarge, "a count exceeds 64 bits"))
}
