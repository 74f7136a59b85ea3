//! The merge of instrumentation profiles under LLVM's policy: each group of inputs is read and joined as one of LLVM's
//! writers does it.
use super::read::{Adder, weigh_traces};
use super::source::{self, llvm_refuses};
use super::strategy::{Instr, Strategy};
use super::worker::{Group, Worker};
use super::{Context, MergeOutcome, finish_group, version, vtables};
use crate::accumulate::Rules;
use crate::driver::{Done, Next, OpenedInput, Outcome, ReportPart, name_inputs};
use crate::error::MergeError;
use crate::kinds::{Seen, llvm_kind, llvm_merge};
use crate::report::{Action, Event, EventLog, LlvmCode, LlvmFault, Reason, Report};
use profkit_abi::raw::MAX_PLAUSIBLE_COUNT;
use profkit_data::detect::FileKind;
use profkit_data::ids::NameRef;
use profkit_data::instr::raw::{RawDialect, RawHeader};
use profkit_data::instr::{InstrKind, InstrReader, InstrSource};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind};
use std::io;

/// The rules of a merge under [`Policy::Llvm`](crate::Policy::Llvm).
#[derive(Debug)]
pub(crate) struct AsLlvm {
    /// The number of writers that LLVM's tool would have: one for each of its threads.
    pub(crate) writers: usize,
}

impl Strategy for AsLlvm {
    fn rules(&self) -> Rules {
        Rules::LLVM
    }

    fn writers(&self) -> Option<usize> {
        Some(self.writers)
    }

    fn faults_have_inputs(&self) -> bool {
        true
    }

    /// LLVM's tool prints a line for each event, so the log keeps all of them.
    fn log(&self) -> EventLog {
        EventLog::unlimited()
    }

    fn read(
        &self,
        worker: &mut Worker<'_, '_>,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        worker.read_llvm(input, part)
    }

    fn kind_with(
        &self,
        context: &Context<'_, '_>,
        mut before: InstrKind,
        kind: InstrKind,
        word: u64,
    ) -> Option<InstrKind> {
        let reads = llvm_refuses(context, FileKind::InstrRaw, word).is_none();
        (reads && llvm_merge(&mut before, llvm_kind(kind, word))).then_some(before)
    }

    /// Does nothing. Each of LLVM's writers samples only the traces of its own inputs, so the traces of other inputs do
    /// not have to wait until this input is known to have none.
    fn no_traces(&self, _: &mut Worker<'_, '_>, _: usize) {}

    fn unreadable(
        &self,
        worker: &mut Worker<'_, '_>,
        index: usize,
        error: &io::Error,
        part: &mut ReportPart,
    ) {
        part.count_unreadable();
        worker.file_errors.push(Event::new(
            index,
            Action::Dropped,
            Reason::Unreadable,
            format!("cannot be read: {error}"),
        ));
    }

    fn taken_all(&self, worker: &mut Worker<'_, '_>, part: &mut ReportPart) -> Next {
        if worker.has_sums_only() && worker.sums_may_wait() {
            return Next::Join;
        }
        worker.add_layout_sums();
        // The fast path does not parse raw profiles, and adds their sums only at the end of the merge. If the sums or
        // the faults depend on the order of inputs, the result may differ from LLVM's. The inputs are then read again
        // without the fast path.
        let fast = part.totals.fast_profiles > 0;
        if fast && !(worker.in_order && part.log.is_empty()) {
            Next::TakeAgain
        } else {
            Next::Join
        }
    }

    fn before_join(&self, workers: &mut [Done<Instr<'_, '_>>]) -> Vec<usize> {
        let together = workers.iter().all(|(worker, _)| worker.has_sums_only())
            && workers
                .first()
                .is_some_and(|(first, _)| first.sums_may_wait());
        if together && let Some(((first, _), others)) = workers.split_first_mut() {
            others
                .iter_mut()
                .for_each(|(other, _)| first.take_sums(other));
        }
        for (worker, _) in workers.iter_mut() {
            worker.add_layout_sums();
        }
        let again = |(_, (worker, part)): &(usize, &Done<Instr<'_, '_>>)| {
            part.totals.fast_profiles > 0 && !worker.in_order
        };
        let odd: Vec<usize> = workers
            .iter()
            .enumerate()
            .filter(again)
            .map(|(number, _)| number)
            .collect();
        if together && !odd.is_empty() {
            // The sums of all workers were moved into the first worker. So if one worker must read its inputs again,
            // all workers must.
            (0..workers.len()).collect()
        } else {
            odd
        }
    }

    fn join<'c, 'i>(
        &self,
        into: &mut Worker<'c, 'i>,
        later: Worker<'c, 'i>,
    ) -> Result<(), MergeError> {
        into.absorb_llvm(later)
    }

    fn finish(
        &self,
        context: &Context<'_, '_>,
        mut worker: Worker<'_, '_>,
        mut part: ReportPart,
    ) -> Result<MergeOutcome, MergeError> {
        let inputs = context.inputs();
        let kind = worker.llvm_kind;
        let group = worker.groups.pop();
        let group = group.unwrap_or_else(|| Group::new(Vec::new(), context));
        part.totals.layouts = context.layouts.count() as u64;
        let traces = worker.reservoirs.take(&[]);
        let merged = finish_group(context, group, kind, traces, &mut part)?;
        let mut report = Report {
            suggested_indexed_version: version::suggest(&worker.generations).version,
            ..part.finish(inputs)
        };
        name_inputs(&mut worker.file_errors, inputs);
        report.events.extend(worker.join_faults);
        report.events.extend(worker.file_errors);
        Ok(MergeOutcome {
            profiles: vec![merged],
            heap: None,
            report,
        })
    }
}

impl Worker<'_, '_> {
    /// Reads a file as LLVM's tool does (`loadInput`): up to the first bad record.
    pub(super) fn read_llvm(&mut self, opened: &OpenedInput<'_>, part: &mut ReportPart) -> Outcome {
        let input = opened.index;
        // LLVM first checks the length of the header of a raw file, then the version of the file, then everything else.
        let refused = match RawDialect::read(opened.bytes(), 0) {
            Ok(dialect) => llvm_refuses(self.context, FileKind::InstrRaw, dialect.version_word()),
            Err(error) => (error.kind() != ErrorKind::BadMagic).then_some(error),
        };
        if let Some(error) = refused {
            let facts = self.context.options.read_as.and_then(Release::facts);
            let room = facts.map_or(Ok(()), |facts| {
                RawHeader::check_room(opened.bytes(), facts.raw)
            });
            return self.fail(input, &room.err().unwrap_or(error));
        }
        let mut source = match source::open(opened, false, self.context.options) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::Empty => {
                return Outcome::Empty;
            }
            Err(error) => return self.fail(input, &error),
        };
        let is_raw = matches!(source, InstrReader::Raw(_));
        // For an indexed profile, LLVM reads the start of the heap profile and the temporal traces together with the
        // header. For a text profile, it reads the traces together with the records.
        let mut early_traces = None;
        if let InstrReader::Indexed(_) = source {
            let reads_as_22 = |release: Release| release >= Release::new(22);
            if self.context.options.read_as.is_some_and(reads_as_22)
                && let Some(section) = source.memprof()
                && let Err(error) = section.check_version_as_llvm()
            {
                return self.fail(input, &error);
            }
            match source.temporal_traces() {
                Ok(traces) => early_traces = Some(traces),
                Err(error) => return self.fail(input, &error),
            }
        }
        let (kind, word) = (source.kind(), source.version_word());
        if let Some(error) = llvm_refuses(self.context, opened.kind, word) {
            return self.fail(input, &error);
        }
        if !llvm_merge(&mut self.llvm_kind, llvm_kind(kind, word)) {
            self.file_errors.push(Event::new(
                input,
                Action::Dropped,
                Reason::KindMismatch,
                "Merge IR generated profile with Clang generated profile.",
            ));
            return Outcome::Dropped;
        }
        let group_index = self.group(&[]);
        let weight = self.context.weight(input);
        let mut adder = Adder::new(self.context, input);
        let mut record = std::mem::take(&mut self.record);
        let Some(group) = self.groups.get_mut(group_index) else {
            return Outcome::Dropped;
        };
        let mut ordinal = 0;
        let mut first_error = None;
        let mut implausible = None;
        let keeps_names = self.context.options.keep_vtable_names;
        let (mut vtable_names, mut profiles) = (Vec::new(), 0);
        loop {
            match source.read_record(&mut record) {
                Ok(false) => break,
                // LLVM 22 treats a profile without records like an empty profile.
                Err(error) if error.kind() == ErrorKind::MissingCorrelation => {}
                Err(error) => {
                    first_error = Some(error);
                    break;
                }
                Ok(true) => {
                    if is_raw && implausible.is_none() {
                        let counts = record.counts.iter();
                        implausible = counts.copied().find(|&count| count > MAX_PLAUSIBLE_COUNT);
                    }
                    if record.name.is_empty() {
                        record.name_ref = NameRef::of(b"");
                    }
                    // Of a raw file with several profiles, LLVM keeps only the names of virtual tables of the last
                    // profile. They are collected here, because the reader closes the last profile at the end of the
                    // file.
                    if keeps_names && is_raw && source.profiles_seen() != profiles {
                        profiles = source.profiles_seen();
                        vtable_names = vtables::of_input(&source);
                    }
                    if ordinal == 0 {
                        adder.set_program(&source.current_ids());
                    }
                    let place = source.record_place(ordinal);
                    if let Some(fault) = adder.add(&mut record, place, &mut group.acc) {
                        part.log.push(fault.event(input, &record.name));
                    }
                }
            }
            ordinal += 1;
        }
        self.record = record;
        if keeps_names && !is_raw {
            vtable_names = vtables::of_input(&source);
        }
        // To find the names of virtual tables, LLVM also collects the names of functions. An error in this step
        // replaces an error in a record.
        if keeps_names && let Some(error) = source::empty_name(&source) {
            first_error = Some(error);
        }
        group.vtable_names.extend(&vtable_names);
        let memprof = source.memprof();
        let reader = &mut source;
        group.symbols.extend(reader.symbols());
        let mut traces = match early_traces {
            Some(traces) => Ok(traces),
            None => reader.temporal_traces(),
        };
        if let Ok(traces) = &mut traces {
            weigh_traces(traces, is_raw, weight);
            if !traces.traces.is_empty() {
                let traces = std::mem::take(traces);
                self.reservoirs.feed(&[], traces, self.context.options);
            }
        }
        let ids = reader.binary_ids();
        if let Some(error) = first_error.or(traces.err()) {
            return self.fail(input, &error);
        }
        match ids {
            Ok(ids) => group.binary_ids.extend(ids),
            Err(error) => return self.fail(input, &error),
        }
        if let Some(section) = memprof {
            group.memprof.take(opened, section, false);
        }
        group.seen.push(Seen { input, kind });
        self.generations.note(input, kind, word, is_raw);
        if let Some(count) = implausible {
            let mut event = Event::new(
                input,
                Action::Kept,
                Reason::ImplausibleCounter,
                "a counter is too large to be true",
            )
            .sides(count, format_args!("at most {MAX_PLAUSIBLE_COUNT}"));
            event.llvm = Some(LlvmFault {
                code: LlvmCode::CounterValueTooLarge,
                detail: Some(count.to_string()),
            });
            self.file_errors.push(event);
            return Outcome::Repaired;
        }
        Outcome::Kept
    }

    fn fail(&mut self, input: usize, error: &Error) -> Outcome {
        let reason = Reason::of(error);
        self.file_errors
            .push(Event::from_error(input, Action::Dropped, reason, error));
        Outcome::Dropped
    }

    /// Adds the state of another worker, which imitates another of LLVM's writers (`mergeWriterContexts`). As in LLVM's
    /// output, the events for faults found here name neither a file nor a function.
    fn absorb_llvm(&mut self, other: Worker<'_, '_>) -> Result<(), MergeError> {
        self.file_errors.extend(other.file_errors);
        self.join_faults.extend(other.join_faults);
        if !llvm_merge(&mut self.llvm_kind, other.llvm_kind) {
            let code = LlvmCode::UnsupportedVersion;
            return Err(MergeError::Llvm(LlvmFault { code, detail: None }));
        }
        let at_end = self.context.inputs().len();
        for group in other.groups {
            let index = self.group(&group.ids);
            let Some(mine) = self.groups.get_mut(index) else {
                continue;
            };
            let faults = &mut self.join_faults;
            mine.acc.merge(group.acc, |fault, name| {
                // LLVM prints only one line for all faults with the same error code.
                let event = fault.event(at_end, name);
                if faults.iter().all(|other| other.llvm != event.llvm) {
                    faults.push(event);
                }
            });
            mine.symbols.extend(&group.symbols);
            mine.binary_ids.extend(group.binary_ids);
            // The names of virtual tables are left out: LLVM does not pass them from one writer to another.
            mine.seen.extend(group.seen);
            mine.memprof.absorb(group.memprof);
        }
        self.absorb_rest(
            other.generations,
            other.pending,
            other.heap,
            other.reservoirs,
        );
        Ok(())
    }
}
