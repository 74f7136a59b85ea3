//! Adds sample profiles in the order of the inputs. Where possible, the sum of several neighbouring inputs is added at
//! once. If the order matters for these inputs, they are read again and added one by one.
use super::engine::SampleConflict;
use super::worker::{LlvmWords, Piece, SampleKind, Sum};
use crate::driver::{OpenedInput, Outcome, ReportPart};
use crate::error::MergeError;
use crate::report::{Action, Event, Reason};
use profkit_data::sample::{
    self, Extremes, ProfileKind, SampleProfile, absorb, checksums_differ, remap, scale,
};
use profkit_files::Inputs;

pub(super) struct OrderedSum<'d, 'a> {
    kind: &'d SampleKind<'d, 'a>,
    profile: SampleProfile,
    seen: [[Option<usize>; 2]; 2],
    part: ReportPart,
    words: LlvmWords,
    /// An upper bound of the sum's counts, and whether it has checksums; `None` if they must be computed again.
    extremes: Option<Extremes>,
    buffer: Vec<u8>,
}

impl<'d, 'a> OrderedSum<'d, 'a> {
    pub(super) fn new(kind: &'d SampleKind<'d, 'a>, part: ReportPart) -> Self {
        OrderedSum {
            kind,
            profile: SampleProfile::new(),
            seen: [[None; 2]; 2],
            part,
            words: LlvmWords::default(),
            extremes: None,
            buffer: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, piece: Piece) -> Result<(), MergeError> {
        let (inputs, is_first_time) = match piece {
            Piece::Sum(sum) => match self.add_sum(sum) {
                Ok(()) => return Ok(()),
                // Their order matters, so they are read again, one by one.
                Err(inputs) => (inputs, false),
            },
            Piece::Again(inputs) => (inputs, false),
            Piece::Later(inputs) => (inputs, true),
        };
        self.extremes = None;
        for index in inputs {
            self.kind.driver.check_cancelled()?;
            let mut buffer = std::mem::take(&mut self.buffer);
            let outcome = match self.kind.driver.open(index, &mut buffer) {
                Ok(input) => {
                    let outcome = self.add_opened(&input)?;
                    self.part.count(outcome, &input);
                    self.kind.driver.close(input, &mut buffer);
                    outcome
                }
                Err(error) => {
                    let event = self.kind.strategy.unreadable(index, error)?;
                    self.part.count_unreadable();
                    self.part.log.push(event);
                    Outcome::Dropped
                }
            };
            if is_first_time {
                self.kind.driver.progress(index, outcome);
            }
            self.buffer = buffer;
        }
        Ok(())
    }

    fn add_opened(&mut self, input: &OpenedInput<'_>) -> Result<Outcome, MergeError> {
        self.add_input(input.index, input.bytes())
    }

    /// If the order of the inputs matters, or there are too many names, nothing is added and the inputs are returned.
    fn add_sum(&mut self, sum: Sum) -> Result<(), Vec<usize>> {
        let Some(first) = sum.first_in_family else {
            // No input of this group has a function, so the order of these inputs does not matter.
            self.words = sum.words.after(self.words);
            self.part.absorb(sum.part);
            return self.add_profile(sum.profile).ok_or(sum.inputs);
        };
        let mut seen = self.seen;
        for ([with, without], has) in seen.iter_mut().zip(sum.kinds()) {
            (if has { with } else { without }).get_or_insert(first);
        }
        let mixed = seen.iter().any(|seen| seen.iter().all(Option::is_some));
        let strategy = self.kind.strategy;
        if mixed
            || strategy.names_depend_on_order(&self.profile, &sum.profile)
            || self.conflicts(&sum.profile)
        {
            return Err(sum.inputs);
        }
        self.add_profile(sum.profile).ok_or(sum.inputs)?;
        self.seen = seen;
        self.words = sum.words.after(self.words);
        self.part.absorb(sum.part);
        Ok(())
    }

    /// Adds a profile to the sum. Returns `None` if there are too many names.
    fn add_profile(&mut self, profile: SampleProfile) -> Option<()> {
        if self.profile.names.is_empty() && self.profile.symbol_count() == 0 {
            let kind = self.profile.kind | profile.kind;
            self.profile = profile;
            self.profile.kind = kind;
            return Some(());
        }
        absorb(&mut self.profile, profile, 1, |_, _, _| {}).map(drop)
    }

    /// Whether a count could exceed 64 bits, or a function has different checksums.
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

    pub(super) fn finish(mut self) -> (SampleProfile, ReportPart) {
        let totals = &mut self.part.totals;
        let strategy = self.kind.strategy;
        strategy.finish(&mut self.profile, self.words, totals);
        (self.profile, self.part)
    }

    fn add_input(&mut self, index: usize, data: &[u8]) -> Result<Outcome, MergeError> {
        let mut fresh = SampleProfile::new();
        let SampleKind {
            options, strategy, ..
        } = self.kind;
        let report = sample::read_with(data, &mut fresh, 1, &options.read);
        self.words = LlvmWords::of(data, report.kind).after(self.words);
        let (read, events) = strategy.judge(index, &report)?;
        for event in events {
            self.part.log.push(event);
        }
        if read == Outcome::Dropped {
            return Ok(read);
        }
        if strategy.decides_kind(report.functions) {
            self.check_kind(index, report.kind)?;
        }
        if options.drop_symbols {
            fresh.clear_symbols();
        }
        if let Some(remapping) = &options.remapping {
            let (renamed, outcome) = remap(fresh, remapping, strategy.renaming_cuts_to());
            fresh = renamed;
            self.part.totals.records_overflowed += outcome.overflows;
        }
        let weight = self.kind.driver.inputs.weight(index);
        let weight = match weight.as_integer() {
            Some(weight) => weight,
            None => {
                scale(&mut fresh, |count| weight.apply(count).0);
                1
            }
        };
        strategy.match_names(&self.profile, &mut fresh);
        self.part.totals.records_merged += report.functions;
        let mut own_names = None;
        let ReportPart { log, totals, .. } = &mut self.part;
        let added = absorb(
            &mut self.profile,
            fresh,
            weight,
            |other, function, outcome| {
                let name = strategy.reported_name(other, function, &mut own_names);
                if outcome.mismatches > 0 {
                    totals.records_dropped += outcome.mismatches;
                    log.push(
                        Event::new(
                            index,
                            Action::Dropped,
                            Reason::ChecksumMismatch,
                            "the checksum of the function differs from its checksum in an earlier input",
                        )
                        .function(&name)
                        .hint("the function was changed between two builds: merge only profiles of one build"),
                    );
                } else if outcome.overflows > 0 {
                    totals.records_overflowed += 1;
                    log.push(
                        Event::new(
                            index,
                            Action::Repaired,
                            Reason::CounterOverflow,
                            "a count exceeded the largest possible value and was limited to it",
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
                "the result would have more than 2^32 names",
            );
            self.part.log.push(event);
        }
        Ok(read)
    }

    fn check_kind(&mut self, index: usize, kind: ProfileKind) -> Result<(), MergeError> {
        let [probes, contexts] = family(kind);
        // LLVM checks pseudo probes before calling contexts.
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
                let named = |index| (index, self.kind.driver.inputs.name(index).into_owned());
                return Err(MergeError::Kinds {
                    what,
                    with: named(with),
                    without: named(without),
                    report: Box::new(
                        std::mem::replace(
                            &mut self.part,
                            ReportPart::new(self.kind.strategy.log()),
                        )
                        .finish(&self.kind.driver.inputs),
                    ),
                });
            }
        }
        Ok(())
    }
}

/// Whether the profile has probes, and whether it has contexts. LLVM checks probes first.
pub(super) fn family(kind: ProfileKind) -> [bool; 2] {
    [
        kind.contains(ProfileKind::PROBE_BASED),
        kind.contains(ProfileKind::CONTEXT_SENSITIVE),
    ]
}
