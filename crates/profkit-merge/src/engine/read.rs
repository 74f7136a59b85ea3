//! Reads an instrumentation profile record by record.
use super::Context;
use super::source;
use super::worker::Worker;
use crate::accumulate::{Accumulator, Incoming, RecordStats, SiteRule, order_of};
use crate::driver::{OpenedInput, Outcome, ReportPart};
use crate::kinds::InputKind;
use crate::report::{Action, Event, EventLog, LlvmCode, Reason};
use crate::{MergeOptions, Weight};
use profkit_abi::raw::MAX_PLAUSIBLE_COUNT;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::indexed::{IndexedProfile, check_memprof};
use profkit_data::instr::{InstrKind, InstrReader, InstrSource, Record, TemporalTraces};
use profkit_data::remap::Remapping;
use profkit_data::{Error, ErrorKind, Structure};
use twox_hash::XxHash3_64;

/// Returns a number that identifies a program, made from its build ids; 0 if it has none.
pub(crate) fn origin_of(ids: &[BuildId]) -> u32 {
    if ids.is_empty() {
        return 0;
    }
    let mut sorted: Vec<_> = ids.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    // Parts of merges have this number, so it must be the same on every machine.
    let mut bytes = Vec::new();
    for BuildId(id) in sorted {
        bytes.extend_from_slice(&(id.len() as u64).to_le_bytes());
        bytes.extend_from_slice(id);
    }
    let hash = XxHash3_64::oneshot(&bytes);
    u32::try_from(hash >> 32).unwrap_or(u32::MAX).max(1)
}

/// The sum of all counts, at most 2^64 − 1, without the records that have an implausible count.
pub(crate) fn total_of(input: &OpenedInput<'_>, options: &MergeOptions) -> u64 {
    let Ok(mut source) = source::open_with(input, true, options, false) else {
        return 0;
    };
    let mut record = Record::default();
    let mut total = 0u64;
    while let Some(read) = source.next_record(&mut record) {
        let mut counts = record.counts.iter();
        if read.is_ok() && counts.all(|&count| count <= MAX_PLAUSIBLE_COUNT) {
            let counts = record.counts.iter();
            total = counts.fold(total, |sum, &n| sum.saturating_add(n));
        }
    }
    total
}

pub(super) struct Adder<'x> {
    input: usize,
    weight: Weight,
    origin: u32,
    remapping: Option<&'x Remapping>,
    site_rule: SiteRule,
}

impl<'x> Adder<'x> {
    pub(super) fn new(context: &'x Context<'_, '_>, input: usize) -> Self {
        Adder {
            input,
            weight: context.weight(input),
            origin: 0,
            remapping: context.options.remapping.as_ref(),
            site_rule: context.strategy.rules.sites,
        }
    }

    pub(super) fn set_program(&mut self, ids: &[BuildId]) {
        self.origin = origin_of(ids);
    }

    pub(super) fn add(
        &self,
        record: &mut Record,
        place: u64,
        acc: &mut Accumulator,
    ) -> Option<crate::accumulate::Fault> {
        if let Some(new) = self.remapping.and_then(|table| table.get(&record.name)) {
            record.name.clear();
            record.name.extend_from_slice(new);
            record.name_ref = NameRef::of(new);
        }
        let order = order_of(self.input, place);
        let mut incoming = Incoming::of_record(record, order, self.weight, self.site_rule);
        incoming.stats = RecordStats::once(self.origin);
        acc.add(incoming)
    }

    fn take(
        &self,
        record: &mut Record,
        place: u64,
        source: &InstrReader<'_>,
        acc: &mut Accumulator,
        stats: &mut FileStats,
        file: &mut EventLog,
    ) {
        let InstrReader::Raw(reader) = source else {
            self.add(record, place, acc);
            stats.kept += 1;
            return;
        };
        if NameRef::from_stand_in(&record.name).is_some() {
            record.name_ref = NameRef::of(&record.name);
        }
        let Some(bad) = reader.implausible_count() else {
            self.add(record, place, acc);
            stats.kept += 1;
            return;
        };
        stats.dropped += 1;
        if file.is_full(Reason::ImplausibleCounter) {
            return file.count(Reason::ImplausibleCounter);
        }
        let mut event = Event::new(
            self.input,
            Action::Dropped,
            Reason::ImplausibleCounter,
            "a counter is too large to be true",
        )
        .function(&record.name)
        .sides(bad.count, format_args!("at most {MAX_PLAUSIBLE_COUNT}"))
        .llvm(LlvmCode::CounterValueTooLarge);
        event.offset = Some(bad.offset);
        file.push(event);
    }
}

#[derive(Default)]
pub(crate) struct FileStats {
    parts: Vec<Part>,
    kept: u64,
    dropped: u64,
    counters_lost: u64,
    first_lost: Option<Error>,
}

struct Part {
    /// The position of the profile in the file, counted from 1.
    number: usize,
    group: usize,
    kind: InstrKind,
    kept: u64,
}

impl Worker<'_, '_> {
    /// Reads a file as far as it is sound. Functions without names are added under the texts of their hashes.
    pub(crate) fn read_tolerant(
        &mut self,
        opened: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome {
        let input = opened.index;
        let mut source = match source::open(opened, true, self.context) {
            Ok(source) => source,
            Err(error) => {
                let (reason, outcome) = match error.kind() {
                    ErrorKind::Empty => (Reason::EmptyFile, Outcome::Empty),
                    _ => (Reason::of(&error), Outcome::Dropped),
                };
                let mut event =
                    Event::from_error(input, Action::Dropped, reason, &error).of_kind(opened.kind);
                if outcome == Outcome::Empty {
                    event.message = "the file is empty".to_owned();
                }
                part.log.push(event);
                self.no_traces(input);
                return outcome;
            }
        };
        let mut file = EventLog::default();
        let stats = self.read_records(input, &mut source, &mut file);
        let values_lost = match &source {
            InstrReader::Raw(reader) => reader.records_without_values(),
            _ => 0,
        };
        stats.report(input, values_lost, &mut file);
        self.conclude(opened, &mut source, stats, (file, part))
    }

    pub(crate) fn no_traces(&mut self, input: usize) {
        let context = self.context;
        if context.strategy.rules.order_free {
            return;
        }
        context.traces_of(input, Vec::new(), &mut self.reservoirs);
    }

    pub(crate) fn read_share(
        &mut self,
        input: usize,
        profile: &IndexedProfile<'_>,
        share: usize,
        shares: usize,
    ) -> (FileStats, EventLog) {
        let ids = profile.binary_ids().unwrap_or_default();
        let group = self.group(&ids);
        // A name takes at least 40 bytes of the file, whatever number the header contains.
        let most = usize::try_from(profile.table().index_offset() / 40).unwrap_or(0);
        let names = usize::try_from(profile.name_count())
            .unwrap_or(usize::MAX)
            .min(most);
        if let Some(group) = self.groups.get_mut(group)
            && group.acc.is_empty()
        {
            let mine = names / shares + names / shares / 16;
            group
                .acc
                .reserve(mine, mine.saturating_mul(32), mine.saturating_mul(4));
        }
        let mut source = InstrReader::Indexed(Box::new(profile.records_of_share(share, shares)));
        let mut file = EventLog::default();
        let stats = self.read_records(input, &mut source, &mut file);
        (stats, file)
    }

    pub(crate) fn conclude_shares(
        &mut self,
        opened: &OpenedInput<'_>,
        profile: &IndexedProfile<'_>,
        shares: Vec<(FileStats, EventLog)>,
        report: &mut ReportPart,
    ) -> Outcome {
        let mut file = EventLog::default();
        let mut stats = FileStats::default();
        for (part, events) in shares {
            stats.kept += part.kept;
            stats.dropped += part.dropped;
            file.absorb(events);
        }
        file.sort_by_offset();
        let mut source = InstrReader::Indexed(Box::new(profile.records()));
        let part = self.part(&mut source);
        stats.parts.push(part);
        self.conclude(opened, &mut source, stats, (file, report))
    }

    fn part(&mut self, source: &mut InstrReader<'_>) -> Part {
        Part {
            number: source.profiles_seen(),
            group: self.group(&source.current_ids()),
            kind: source.current_kind(),
            kept: 0,
        }
    }

    fn read_records(
        &mut self,
        input: usize,
        source: &mut InstrReader<'_>,
        file: &mut EventLog,
    ) -> FileStats {
        let mut stats = FileStats::default();
        if let Some(joined) = self.context.joined {
            let ids = source.current_ids();
            let mut part = self.part(source);
            part.kept = joined.kept.get(input).copied().unwrap_or(0);
            stats.kept = part.kept;
            if let Some(group) = self.groups.get_mut(part.group) {
                group.binary_ids.extend(ids);
            }
            stats.parts.push(part);
            return stats;
        }
        let mut record = std::mem::take(&mut self.record);
        let mut adder = Adder::new(self.context, input);
        let mut group = 0;
        let mut ordinal = 0;
        loop {
            let result = source.read_record(&mut record);
            let last = stats.parts.last().map(|part| part.number);
            // A raw file may hold profiles of several programs. The program is set when the first record of a profile
            // is read. At the end of the file (`Ok(false)`) there is no next profile.
            if last.is_none() || last != Some(source.profiles_seen()) && result != Ok(false) {
                let ids = source.current_ids();
                adder.set_program(&ids);
                let part = self.part(source);
                group = part.group;
                stats.parts.push(part);
                if let Some(group) = self.groups.get_mut(group) {
                    group.binary_ids.extend(ids);
                }
            }
            let kept = stats.kept;
            match result {
                Ok(false) => break,
                Err(error) => {
                    note_error(input, error, &mut stats, file);
                }
                Ok(true) => {
                    if let Some(group) = self.groups.get_mut(group) {
                        let place = source.record_place(ordinal);
                        adder.take(&mut record, place, source, &mut group.acc, &mut stats, file);
                    }
                }
            }
            if let Some(part) = stats.parts.last_mut() {
                part.kept += stats.kept - kept;
            }
            ordinal += 1;
        }
        self.record = record;
        stats
    }

    /// Adds all but the records, which were added before, and reports the file.
    fn conclude(
        &mut self,
        opened: &OpenedInput<'_>,
        source: &mut InstrReader<'_>,
        stats: FileStats,
        (mut file, report): (EventLog, &mut ReportPart),
    ) -> Outcome {
        let input = opened.index;
        let context = self.context;
        let is_raw = matches!(source, InstrReader::Raw(_));
        let order_free = context.strategy.rules.order_free;
        let first = stats.parts.first().map_or(0, |part| part.group);
        let separate = stats.parts.iter().any(|part| part.group != first);
        match source.binary_ids() {
            Ok(ids) => {
                if let Some(group) = self.groups.get_mut(first) {
                    if is_raw {
                        group.raw_ids.extend(ids);
                    } else if !ids.is_empty() {
                        group.indexed.push((input, ids));
                    }
                }
            }
            Err(error) => {
                let reason = Reason::of(&error);
                file.push(Event::from_error(input, Action::Repaired, reason, &error));
            }
        }
        let mut memprof = source.memprof();
        if let Some(section) = &memprof
            && let Err(error) = check_memprof(section)
        {
            let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
            file.push(Event::from_error(input, action, reason, &error));
            memprof = None;
        }
        let traces = source::traces(source, separate).unwrap_or_else(|error| {
            file.push(Event::from_error(
                input,
                Action::Repaired,
                Reason::of(&error),
                &error,
            ));
            Vec::new()
        });
        let reader = source;
        let (kind, word) = (reader.kind(), reader.version_word());
        // An input that contributes nothing has no influence on the kind of the merged profile.
        let of_use = |kept: u64| kept > 0 || file.is_empty();
        if of_use(stats.kept) {
            self.generations
                .note(input, kind, word, is_raw, stats.kept > 0);
        }
        let mut used: Vec<usize> = Vec::new();
        let mut traces_of_parts = Vec::new();
        for part in &stats.parts {
            let Some(group) = self.groups.get_mut(part.group) else {
                continue;
            };
            let index = if separate { part.number - 1 } else { 0 };
            if let Some(traces) = traces.get(index)
                && (separate || traces_of_parts.is_empty())
            {
                let mut traces = traces.clone();
                weigh_traces(&mut traces, is_raw, context.weight(input));
                traces_of_parts.push((group.ids.clone(), traces));
            }
            if used.contains(&part.group) {
                continue;
            }
            match (order_free, reader.profiles_seen()) {
                // The fast path knows the names of virtual tables alone, and may have taken this profile elsewhere.
                (true, 0 | 1) if is_raw => {
                    for name in super::vtables::of_input(reader) {
                        group.symbols.insert(&name);
                    }
                }
                _ => group.symbols.extend(reader.symbols()),
            }
            let (kept, kind) = if separate {
                (part.kept, part.kind)
            } else {
                (stats.kept, kind)
            };
            if of_use(kept) {
                group.inputs.push(InputKind {
                    input,
                    kind,
                    has_functions: kept > 0,
                });
                used.push(part.group);
            }
        }
        let mut section_faults = Vec::new();
        if let Some(section) = memprof
            && let Some(group) = self.groups.get_mut(first)
        {
            match order_free {
                true => section_faults = group.memprof.add_unordered(opened),
                false => group.memprof.take(opened, section, file.is_empty()),
            }
        }
        report.totals.records_dropped += stats.dropped;
        let mut outcome = match (file.is_empty(), stats.kept) {
            (true, _) => Outcome::Kept,
            (false, 0) => Outcome::Dropped,
            (false, _) => Outcome::Repaired,
        };
        file.set_file_action(match stats.kept {
            0 => Action::Dropped,
            _ => Action::Repaired,
        });
        report.log.absorb(file);
        for error in &section_faults {
            let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
            report
                .log
                .push(Event::from_error(input, action, reason, error));
            if outcome == Outcome::Kept {
                outcome = Outcome::Repaired;
            }
        }
        match self.contents.last() {
            Some(&(_, content)) => {
                context.draw_traces(content, traces_of_parts, &mut self.reservoirs);
            }
            None => context.traces_of(input, traces_of_parts, &mut self.reservoirs),
        }
        outcome
    }
}

fn note_error(input: usize, error: Error, stats: &mut FileStats, file: &mut EventLog) {
    let of_record = matches!(error.structures(), [Structure::DataRecord(_), ..]);
    if of_record {
        stats.dropped += 1;
        if error.kind() == ErrorKind::Truncated {
            stats.counters_lost += 1;
            stats.first_lost.get_or_insert(error);
            return;
        }
    }
    let reason = Reason::of(&error);
    if file.is_full(reason) {
        file.count(reason);
    } else {
        file.push(Event::from_error(input, Action::Repaired, reason, &error));
    }
}

impl FileStats {
    fn report(&self, input: usize, values_lost: usize, file: &mut EventLog) {
        let event = |reason, message: String| Event::new(input, Action::Repaired, reason, message);
        if self.counters_lost > 0 {
            let message = format!(
                "the counters of {} are cut off",
                functions(self.counters_lost)
            );
            let mut event = event(Reason::CountersLost, message);
            event.offset = self.first_lost.as_ref().and_then(Error::offset);
            file.push(event.hint(
                "the program was stopped while it wrote, or the disk was full: run it again",
            ));
        }
        if values_lost > 0 {
            let message = match values_lost {
                1 => "the value profile of 1 function is lost; its counters are kept".to_owned(),
                _ => format!(
                    "the value profiles of {values_lost} functions are lost; their counters are kept"
                ),
            };
            file.push(event(Reason::ValuesLost, message));
        }
    }
}

pub(super) fn functions(count: u64) -> String {
    match count {
        1 => "1 function".to_owned(),
        _ => format!("{count} functions"),
    }
}

/// The traces of raw files get the weight of the input; those of other files have their own, which LLVM does not
/// change.
pub(super) fn weigh_traces(traces: &mut TemporalTraces, is_raw: bool, weight: Weight) {
    if is_raw {
        for trace in &mut traces.traces {
            trace.weight = weight.apply(trace.weight).0.max(1);
        }
    }
}
