//! The merge of instrumentation profiles under LLVM's policy: each group of inputs is read and joined as one of LLVM's
//! writers does it.
use super::read::{Adder, weigh_traces};
use super::source::{self, llvm_refuses};
use super::strategy::Instr;
use super::worker::{Group, Worker};
use super::{Context, MergeOutcome, finish_group, version, vtables};
use crate::accumulate::Kept;
use crate::driver::{Done, OpenedInput, Outcome, ReportPart, name_inputs};
use crate::error::MergeError;
use crate::kinds::{InputKind, llvm_kind, llvm_merge};
use crate::report::{Action, Event, LlvmCode, LlvmFault, Reason, Report};
use profkit_abi::raw::MAX_PLAUSIBLE_COUNT;
use profkit_data::detect::FileKind;
use profkit_data::ids::NameRef;
use profkit_data::instr::raw::{RawDialect, RawHeader};
use profkit_data::instr::{InstrKind, InstrReader, InstrSource};
use profkit_data::releases::Release;
use profkit_data::{Error, ErrorKind};
use std::io;

/// The kind of the worker's inputs with one more raw profile; `None` if the fast path must not add it.
pub(super) fn kind_with(
    context: &Context<'_, '_>,
    mut before: InstrKind,
    kind: InstrKind,
    word: u64,
) -> Option<InstrKind> {
    let reads = llvm_refuses(context, FileKind::InstrRaw, word).is_none();
    (reads && llvm_merge(&mut before, llvm_kind(kind, word))).then_some(before)
}

/// Returns the workers that must read their inputs again.
pub(super) fn before_join(workers: &mut [Done<Instr<'_, '_>>]) -> Vec<usize> {
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
        // The first worker has the sums of all, so if one must read its inputs again, all must.
        (0..workers.len()).collect()
    } else {
        odd
    }
}

pub(super) fn finish(
    context: &Context<'_, '_>,
    mut worker: Worker<'_, '_>,
    mut part: ReportPart,
) -> Result<MergeOutcome, MergeError> {
    let inputs = context.inputs();
    let kind = worker.llvm_kind;
    let group = worker.groups.pop();
    let group = group.unwrap_or_else(|| Group::new(Vec::new(), context));
    part.totals.layouts = context.layouts.count() as u64;
    let traces = worker.reservoirs.take(&[], context.options);
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

/// What was found in the records of an input.
#[derive(Default)]
struct Records {
    first_error: Option<Error>,
    implausible: Option<u64>,
    vtable_names: Vec<Vec<u8>>,
}

impl Worker<'_, '_> {
    pub(super) fn unreadable_llvm(&mut self, index: usize, error: &io::Error) {
        let message = format!("cannot be read: {error}");
        let (action, reason) = (Action::Dropped, Reason::Unreadable);
        self.file_errors
            .push(Event::new(index, action, reason, message));
    }

    /// Reads a file as LLVM's tool does (`loadInput`): up to the first bad record.
    pub(super) fn read_llvm(&mut self, opened: &OpenedInput<'_>, part: &mut ReportPart) -> Outcome {
        let outcome = self.load_llvm(opened, part);
        outcome.unwrap_or_else(|error| {
            let (action, reason) = (Action::Dropped, Reason::of(&error));
            let event = Event::from_error(opened.index, action, reason, &error);
            self.file_errors.push(event);
            Outcome::Dropped
        })
    }

    fn load_llvm(
        &mut self,
        opened: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Result<Outcome, Error> {
        let input = opened.index;
        self.check_raw_header(opened)?;
        let mut source = match source::open(opened, false, self.context) {
            Err(error) if error.kind() == ErrorKind::Empty => return Ok(Outcome::Empty),
            source => source?,
        };
        let is_raw = matches!(source, InstrReader::Raw(_));
        // LLVM reads the traces of an indexed profile with its header, those of a text with its records.
        let mut early_traces = None;
        if let InstrReader::Indexed(_) = source {
            self.check_memprof(&source)?;
            early_traces = Some(source.temporal_traces()?);
        }
        let (kind, word) = (source.kind(), source.version_word());
        if let Some(error) = llvm_refuses(self.context, opened.kind, word) {
            return Err(error);
        }
        if !llvm_merge(&mut self.llvm_kind, llvm_kind(kind, word)) {
            self.file_errors.push(Event::new(
                input,
                Action::Dropped,
                Reason::KindMismatch,
                "Merge IR generated profile with Clang generated profile.",
            ));
            return Ok(Outcome::Dropped);
        }
        let records = self.add_records_llvm(input, &mut source, part);
        let weight = self.context.weight(input);
        let group_index = self.group(&[]);
        let Some(group) = self.groups.get_mut(group_index) else {
            return Ok(Outcome::Dropped);
        };
        group.vtable_names.extend(&records.vtable_names);
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
        if let Some(error) = records.first_error.or(traces.err()) {
            return Err(error);
        }
        group.binary_ids.extend(ids?);
        if let Some(section) = memprof {
            group.memprof.take(opened, section, false);
        }
        group.inputs.push(InputKind {
            input,
            kind,
            has_functions: true,
        });
        self.generations.note(input, kind, word, is_raw, true);
        Ok(match records.implausible {
            Some(count) => self.implausible(input, count),
            None => Outcome::Kept,
        })
    }

    /// LLVM first checks the length of the header of a raw file, then the version of the file, then everything else.
    fn check_raw_header(&self, opened: &OpenedInput<'_>) -> Result<(), Error> {
        let refused = match RawDialect::of_any_version(opened.bytes(), 0) {
            Ok(dialect) => llvm_refuses(self.context, FileKind::InstrRaw, dialect.version_word()),
            Err(error) => (error.kind() != ErrorKind::BadMagic).then_some(error),
        };
        let Some(error) = refused else {
            return Ok(());
        };
        if let Some(facts) = self.context.options.read_as.and_then(Release::facts) {
            RawHeader::check_room(opened.bytes(), facts.raw)?;
        }
        Err(error)
    }

    fn check_memprof(&self, source: &InstrReader<'_>) -> Result<(), Error> {
        let reads_as_22 = |release: Release| release >= Release::new(22);
        match source.memprof() {
            Some(section) if self.context.options.read_as.is_some_and(reads_as_22) => {
                section.check_version_as_llvm()
            }
            _ => Ok(()),
        }
    }

    fn add_records_llvm(
        &mut self,
        input: usize,
        source: &mut InstrReader<'_>,
        part: &mut ReportPart,
    ) -> Records {
        let mut records = Records::default();
        let group_index = self.group(&[]);
        let Some(group) = self.groups.get_mut(group_index) else {
            return records;
        };
        let is_raw = matches!(source, InstrReader::Raw(_));
        let keeps_names = self.context.options.keep_vtable_names;
        let mut adder = Adder::new(self.context, input);
        let record = &mut self.record;
        let (mut ordinal, mut profiles) = (0, 0);
        while self.context.joined.is_none() {
            match source.read_record(record) {
                Ok(false) => break,
                // LLVM 22 treats a profile without records like an empty profile.
                Err(error) if error.kind() == ErrorKind::MissingCorrelation => {}
                Err(error) => {
                    records.first_error = Some(error);
                    break;
                }
                Ok(true) => {
                    if is_raw && records.implausible.is_none() {
                        let mut counts = record.counts.iter().copied();
                        records.implausible = counts.find(|&count| count > MAX_PLAUSIBLE_COUNT);
                    }
                    if record.name.is_empty() {
                        record.name_ref = NameRef::of(b"");
                    }
                    // Of several raw profiles, LLVM keeps the names of virtual tables of the last, which the reader
                    // closes at the end.
                    if keeps_names && is_raw && source.profiles_seen() != profiles {
                        profiles = source.profiles_seen();
                        records.vtable_names = vtables::of_input(source);
                    }
                    if ordinal == 0 {
                        adder.set_program(&source.current_ids());
                    }
                    let place = source.record_place(ordinal);
                    if let Some(fault) = adder.add(record, place, &mut group.acc) {
                        part.log.push(fault.event(input, &record.name, Kept::First));
                    }
                }
            }
            ordinal += 1;
        }
        if keeps_names && !is_raw {
            records.vtable_names = vtables::of_input(source);
        }
        // LLVM also collects the names of functions. An error in this step replaces one in a record.
        if keeps_names && let Some(error) = source::empty_name(source) {
            records.first_error = Some(error);
        }
        records
    }

    fn implausible(&mut self, input: usize, count: u64) -> Outcome {
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
        Outcome::Repaired
    }

    /// `mergeWriterContexts`. As in LLVM's output, events for faults found here name neither a file nor a function.
    pub(super) fn absorb_llvm(&mut self, other: Worker<'_, '_>) -> Result<(), MergeError> {
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
                let event = fault.event(at_end, name, Kept::First);
                if faults.iter().all(|other| other.llvm != event.llvm) {
                    faults.push(event);
                }
            });
            mine.symbols.extend(&group.symbols);
            mine.binary_ids.extend(group.binary_ids);
            // The names of virtual tables are left out: LLVM does not pass them from one writer to another.
            mine.inputs.extend(group.inputs);
            mine.memprof.absorb(group.memprof);
        }
        self.absorb_rest(other.generations, other.heap, other.reservoirs);
        Ok(())
    }
}
