//! One input, record by record.
use super::lane::Lane;
use super::source::{Source, llvm_refuses};
use crate::accumulate::{Accumulator, Incoming, SiteRule, Tally, order_of};
use crate::inputs::Inputs;
use crate::kinds::{Seen, llvm_kind, llvm_merge};
use crate::report::{Action, Event, EventLog, LlvmCode, LlvmFault, Reason};
use crate::{MergeOptions, Remapping, Weight};
use profkit_abi::raw::MAX_PLAUSIBLE_COUNT;
use profkit_data::detect::{FileKind, detect};
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::indexed::{IndexedProfile, check_memprof};
use profkit_data::instr::raw::RawDialect;
use profkit_data::instr::{InstrKind, InstrSource, Record, TemporalTraces};
use profkit_data::names::SymbolTable;
use profkit_data::{Error, ErrorKind, Structure};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// A number for a program, from its build ids; 0 without.
pub(crate) fn origin_of(ids: &[BuildId]) -> u32 {
    if ids.is_empty() {
        return 0;
    }
    let mut sorted: Vec<_> = ids.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut hasher = FxHasher::default();
    sorted.hash(&mut hasher);
    let hash = hasher.finish();
    u32::try_from(hash >> 32).unwrap_or(u32::MAX).max(1)
}

/// The sum of an input's sound counts, saturating.
pub(crate) fn total_of(
    inputs: &dyn Inputs,
    input: usize,
    options: &MergeOptions,
    scratch: &mut Vec<u8>,
) -> u64 {
    let Ok(data) = inputs.open(input, scratch) else {
        return 0;
    };
    let Ok(mut source) = Source::open(data.as_ref(), true, options) else {
        return 0;
    };
    let source = source.get();
    let mut record = Record::default();
    let mut total = 0u64;
    loop {
        match source.read_record(&mut record) {
            Ok(true)
                if record
                    .counts
                    .iter()
                    .all(|&count| count <= MAX_PLAUSIBLE_COUNT) =>
            {
                total = record
                    .counts
                    .iter()
                    .fold(total, |sum, &n| sum.saturating_add(n));
            }
            Ok(true) => {}
            Ok(false) => return total,
            Err(_) if source.can_resume() => {}
            Err(_) => return total,
        }
    }
}

/// What happens to the records of one file on their way into the accumulator.
struct Intake<'x> {
    input: usize,
    weight: Weight,
    origin: u32,
    remapping: Option<&'x Remapping>,
    site_rule: SiteRule,
    /// Whether the records of this profile are in the accumulator from an earlier reading, and are only counted.
    added: bool,
}

impl Intake<'_> {
    fn add(
        &self,
        record: &mut Record,
        place: u64,
        acc: &mut Accumulator,
    ) -> Option<crate::accumulate::Fault> {
        if self.added {
            return None;
        }
        if let Some(new) = self.remapping.and_then(|table| table.get(&record.name)) {
            record.name.clear();
            record.name.extend_from_slice(new);
            record.name_ref = NameRef::of(new);
        }
        let order = order_of(self.input, place);
        let mut incoming = Incoming::of_record(record, order, self.weight, self.site_rule);
        incoming.tally = Tally::once(self.origin);
        acc.add(incoming)
    }

    /// Adds a record under the tolerant rules, if it is sound.
    #[allow(clippy::too_many_arguments, reason = "the parts of one loop")]
    fn take(
        &self,
        record: &mut Record,
        place: u64,
        source: &Source<'_>,
        names: Option<&SymbolTable>,
        acc: &mut Accumulator,
        tolls: &mut Tolls,
        file: &mut EventLog,
    ) {
        let Source::Raw(reader) = source else {
            self.add(record, place, acc);
            tolls.kept += 1;
            return;
        };
        if record.name.is_empty() {
            let Some(name) = names.and_then(|names| names.get(record.name_ref)) else {
                tolls.names_lost += 1;
                tolls.dropped += 1;
                return;
            };
            record.name.extend_from_slice(name);
            tolls.names_found += 1;
        }
        let Some(bad) = reader.implausible_count() else {
            self.add(record, place, acc);
            tolls.kept += 1;
            return;
        };
        tolls.dropped += 1;
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

/// What became of one file's records.
#[derive(Default)]
pub(crate) struct Tolls {
    /// The profiles of the file that were read.
    parts: Vec<Part>,
    /// Set if reading stopped before a profile that has lost names, to go on when all names are known.
    put_off: bool,
    kept: u64,
    dropped: u64,
    names_lost: u64,
    names_found: u64,
    counters_lost: u64,
    first_lost: Option<Error>,
}

/// One profile of a file: a raw file may hold several, of several programs.
struct Part {
    /// Its number in the file, from 1.
    number: usize,
    group: usize,
    kind: InstrKind,
    kept: u64,
    vtable_names: Vec<Vec<u8>>,
}

/// An input of which some profile has lost its names.
pub(crate) struct PutOff {
    pub(crate) input: usize,
    /// How many of its profiles were read before that one.
    pub(crate) done: usize,
}

impl Lane<'_> {
    /// Reads a file as far as it is sound. Without `names`, a profile that has lost names is put off until all names
    /// are known, with all that comes after it; `done` profiles were then read before.
    pub(crate) fn read_tolerant(
        &mut self,
        input: usize,
        data: &[u8],
        names: Option<&SymbolTable>,
        done: usize,
    ) {
        let mut source = match Source::open(data, true, self.context.options) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::Empty => {
                self.totals.files_empty += 1;
                let mut event =
                    Event::from_error(input, Action::Dropped, Reason::EmptyFile, &error);
                event.message = "the file is empty".to_owned();
                self.log.push(event);
                self.context
                    .traces_of(input, Vec::new(), &mut self.reservoirs);
                return;
            }
            Err(error) => {
                self.totals.files_dropped += 1;
                let reason = Reason::of(&error);
                self.log
                    .push(Event::from_error(input, Action::Dropped, reason, &error));
                self.context
                    .traces_of(input, Vec::new(), &mut self.reservoirs);
                return;
            }
        };
        let mut file = EventLog::default();
        let tolls = self.read_records(input, &mut source, names, done, &mut file);
        if tolls.put_off {
            // All that there is to say is said when the rest is read.
            let done = tolls.parts.len();
            self.pending.push(PutOff { input, done });
            self.context
                .traces_of(input, Vec::new(), &mut self.reservoirs);
            return;
        }
        let values_lost = match &source {
            Source::Raw(reader) => reader.records_without_values(),
            _ => 0,
        };
        tolls.report(input, values_lost, &mut file);
        self.conclude(input, &mut source, tolls, file, names.is_some());
    }

    /// Adds the share of an indexed profile's records that no other lane of the merge takes.
    pub(crate) fn read_share(
        &mut self,
        input: usize,
        profile: &IndexedProfile<'_>,
        share: usize,
        shares: usize,
    ) -> (Tolls, EventLog) {
        let ids = profile.binary_ids().unwrap_or_default();
        let group = self.group(&ids);
        // Not more than the file has room for, whatever it claims: a name takes 40 bytes at least.
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
        let mut source = Source::Indexed(Box::new(profile.records_of_share(share, shares)));
        let mut file = EventLog::default();
        let tolls = self.read_records(input, &mut source, None, 0, &mut file);
        (tolls, file)
    }

    /// Notes what is to be noted of an indexed profile whose records were read by shares.
    pub(crate) fn conclude_shares(
        &mut self,
        input: usize,
        profile: &IndexedProfile<'_>,
        parts: Vec<(Tolls, EventLog)>,
    ) {
        let mut file = EventLog::default();
        let mut tolls = Tolls::default();
        for (part, events) in parts {
            tolls.kept += part.kept;
            tolls.dropped += part.dropped;
            file.absorb(events);
        }
        file.sort_by_offset();
        let mut source = Source::Indexed(Box::new(profile.records()));
        let part = self.part(&mut source);
        tolls.parts.push(part);
        self.conclude(input, &mut source, tolls, file, false);
    }

    /// The profile that is being read.
    fn part(&mut self, source: &mut Source<'_>) -> Part {
        Part {
            number: source.profiles_seen(),
            group: self.group(&source.current_ids()),
            kind: source.current_kind(),
            kept: 0,
            vtable_names: vtable_names(source, self.context.options.keep_vtable_names),
        }
    }

    /// Adds the records of a file, but for those of the first `done` profiles, which are there.
    fn read_records(
        &mut self,
        input: usize,
        source: &mut Source<'_>,
        names: Option<&SymbolTable>,
        done: usize,
        file: &mut EventLog,
    ) -> Tolls {
        let mut record = std::mem::take(&mut self.record);
        let mut tolls = Tolls::default();
        let mut intake = Intake {
            input,
            weight: self.context.weight(input),
            origin: 0,
            remapping: self.context.options.remapping.as_ref(),
            site_rule: self.context.site_rule,
            added: false,
        };
        let mut group = 0;
        let mut ordinal = 0;
        loop {
            let result = source.get().read_record(&mut record);
            let last = tolls.parts.last().map(|part| part.number);
            // A raw file may hold profiles of several programs. After the last there is none.
            if last.is_none() || last != Some(source.profiles_seen()) && result != Ok(false) {
                if names.is_none() && has_lost_names(source) {
                    tolls.put_off = true;
                    break;
                }
                let ids = source.current_ids();
                intake.origin = origin_of(&ids);
                intake.added = tolls.parts.len() < done;
                let part = self.part(source);
                group = part.group;
                tolls.parts.push(part);
                if let Some(group) = self.groups.get_mut(group) {
                    group.binary_ids.extend(ids);
                }
            }
            let kept = tolls.kept;
            match result {
                Ok(false) => break,
                Err(error) => {
                    note_error(input, error, &mut tolls, file);
                    if !source.get().can_resume() {
                        break;
                    }
                }
                Ok(true) => {
                    if let Some(group) = self.groups.get_mut(group) {
                        let place = source.place(ordinal);
                        intake.take(
                            &mut record,
                            place,
                            source,
                            names,
                            &mut group.acc,
                            &mut tolls,
                            file,
                        );
                    }
                }
            }
            if let Some(part) = tolls.parts.last_mut() {
                part.kept += tolls.kept - kept;
            }
            ordinal += 1;
        }
        self.record = record;
        tolls
    }

    /// Takes what a file holds beside records, and counts it.
    fn conclude(
        &mut self,
        input: usize,
        source: &mut Source<'_>,
        mut tolls: Tolls,
        mut file: EventLog,
        late: bool,
    ) {
        let context = self.context;
        let is_raw = matches!(source, Source::Raw(_));
        let first = tolls.parts.first().map_or(0, |part| part.group);
        let separate = tolls.parts.iter().any(|part| part.group != first);
        if let Err(error) = &source.get().binary_ids() {
            file.push(Event::from_error(
                input,
                Action::Repaired,
                Reason::of(error),
                error,
            ));
        }
        let mut memprof = source.memprof();
        if let Some(section) = &memprof
            && let Err(error) = check_memprof(section)
        {
            let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
            file.push(Event::from_error(input, action, reason, &error));
            memprof = None;
        }
        let traces = source.traces(separate).unwrap_or_else(|error| {
            file.push(Event::from_error(
                input,
                Action::Repaired,
                Reason::of(&error),
                &error,
            ));
            Vec::new()
        });
        let reader = source.get();
        let (kind, word) = (reader.kind(), reader.version_word());
        // What nothing is left of says nothing about kinds.
        let of_use = |kept: u64| kept > 0 || file.is_empty();
        if of_use(tolls.kept) {
            self.generations.note(input, kind, word, is_raw);
        }
        let mut seen: Vec<usize> = Vec::new();
        let mut traces_of_parts = Vec::new();
        for part in &mut tolls.parts {
            let Some(group) = self.groups.get_mut(part.group) else {
                continue;
            };
            group
                .vtable_names
                .extend(&std::mem::take(&mut part.vtable_names));
            let index = if separate { part.number - 1 } else { 0 };
            if let Some(traces) = traces.get(index)
                && (separate || traces_of_parts.is_empty())
            {
                let mut traces = traces.clone();
                weigh_traces(&mut traces, is_raw, context.weight(input));
                traces_of_parts.push((group.ids.clone(), traces));
            }
            if seen.contains(&part.group) {
                continue;
            }
            group.symbols.extend(reader.symbols());
            let (kept, kind) = match separate {
                true => (part.kept, part.kind),
                false => (tolls.kept, kind),
            };
            if of_use(kept) {
                group.seen.push(Seen { input, kind });
                seen.push(part.group);
            }
        }
        if let Some(section) = memprof
            && let Some(group) = self.groups.get_mut(first)
        {
            group.memprof.take(input, section, file.is_empty());
        }
        self.totals.records_dropped += tolls.dropped;
        *match (file.is_empty(), tolls.kept) {
            (true, _) => &mut self.totals.files_kept,
            (false, 0) => &mut self.totals.files_dropped,
            (false, _) => &mut self.totals.files_repaired,
        } += 1;
        file.set_file_action(match tolls.kept {
            0 => Action::Dropped,
            _ => Action::Repaired,
        });
        self.log.absorb(file);
        if late {
            context.late_traces(traces_of_parts, &mut self.reservoirs);
        } else {
            context.traces_of(input, traces_of_parts, &mut self.reservoirs);
        }
    }

    /// Reads a file as LLVM's tool does (`loadInput`): up to the first bad record.
    pub(crate) fn read_llvm(&mut self, input: usize, data: &[u8]) {
        // LLVM looks at the version before anything else in a raw file.
        if let Ok(dialect) = RawDialect::read(data, 0)
            && let Some(error) =
                llvm_refuses(self.context, FileKind::InstrRaw, dialect.version_word())
        {
            return self.fail(input, &error);
        }
        let mut source = match Source::open(data, false, self.context.options) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::Empty => {
                self.totals.files_empty += 1;
                return;
            }
            Err(error) => return self.fail(input, &error),
        };
        let is_raw = matches!(source, Source::Raw(_));
        let (kind, word) = (source.get().kind(), source.get().version_word());
        if let Some(error) = llvm_refuses(self.context, detect(data), word) {
            return self.fail(input, &error);
        }
        if !llvm_merge(&mut self.llvm_kind, llvm_kind(kind, word)) {
            self.totals.files_dropped += 1;
            self.file_errors.push(Event::new(
                input,
                Action::Dropped,
                Reason::KindMismatch,
                "Merge IR generated profile with Clang generated profile.",
            ));
            return;
        }
        let group_index = self.group(&[]);
        let weight = self.context.weight(input);
        let intake = Intake {
            input,
            weight,
            origin: 0,
            remapping: self.context.options.remapping.as_ref(),
            site_rule: self.context.site_rule,
            added: false,
        };
        let mut record = std::mem::take(&mut self.record);
        let Some(group) = self.groups.get_mut(group_index) else {
            return;
        };
        let mut ordinal = 0;
        let mut first_error = None;
        let mut implausible = None;
        loop {
            match source.get().read_record(&mut record) {
                Ok(false) => break,
                // LLVM 22 takes a profile without records for an empty one.
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
                    let place = source.place(ordinal);
                    if let Some(fault) = intake.add(&mut record, place, &mut group.acc) {
                        self.log.push(fault.event(input, &record.name));
                    }
                }
            }
            ordinal += 1;
        }
        self.record = record;
        let vtables = vtable_names(&mut source, self.context.options.keep_vtable_names);
        group.vtable_names.extend(&vtables);
        let memprof = source.memprof();
        let reader = source.get();
        group.symbols.extend(reader.symbols());
        let mut traces = reader.temporal_traces();
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
            group.memprof.take(input, section, false);
        }
        group.seen.push(Seen { input, kind });
        self.generations.note(input, kind, word, is_raw);
        if let Some(count) = implausible {
            self.totals.files_repaired += 1;
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
        } else {
            self.totals.files_kept += 1;
        }
    }

    fn fail(&mut self, input: usize, error: &Error) {
        self.totals.files_dropped += 1;
        let reason = Reason::of(error);
        self.file_errors
            .push(Event::from_error(input, Action::Dropped, reason, error));
    }
}

/// Takes a reader's error into the file's events; of lost counters only the first is told, and their number.
fn note_error(input: usize, error: Error, tolls: &mut Tolls, file: &mut EventLog) {
    let of_record = matches!(error.structures(), [Structure::DataRecord(_), ..]);
    if of_record {
        tolls.dropped += 1;
        if error.kind() == ErrorKind::Truncated {
            tolls.counters_lost += 1;
            tolls.first_lost.get_or_insert(error);
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

impl Tolls {
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
        if self.names_found > 0 {
            let message = format!(
                "the names of {} come from other inputs",
                functions(self.names_found)
            );
            file.push(event(Reason::NamesFromSibling, message));
        }
        if self.names_lost > 0 {
            let message = format!("the names of {} are cut off", functions(self.names_lost));
            file.push(
                event(Reason::NamesLost, message)
                    .hint("merge it together with a whole profile of the same program: names are taken from there"),
            );
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

fn functions(count: u64) -> String {
    match count {
        1 => "1 function".to_owned(),
        _ => format!("{count} functions"),
    }
}

/// Whether a raw file has records but not all of its names.
fn has_lost_names(source: &Source<'_>) -> bool {
    match source {
        Source::Raw(reader) => reader.profile().is_some_and(|profile| {
            !profile.sections().names.is_whole() && profile.dialect().version > 2
        }),
        _ => false,
    }
}

fn vtable_names(source: &mut Source<'_>, keep: bool) -> Vec<Vec<u8>> {
    if !keep {
        return Vec::new();
    }
    let list = |names: &SymbolTable| names.in_order().map(|(_, name)| name.to_vec()).collect();
    match source {
        Source::Indexed(reader) => list(reader.symbols()),
        Source::Raw(reader) => match reader.profile() {
            Some(profile) => {
                let mut names = SymbolTable::new();
                let section = profile.sections().vtable_names;
                // The reader has reported what is wrong with them.
                let _ = names.read_blob(section.bytes, section.offset);
                list(&names)
            }
            None => Vec::new(),
        },
        Source::Text(_) => Vec::new(),
    }
}

/// Gives raw traces the weight of their input; other files have weights of their own, which LLVM leaves alone.
fn weigh_traces(traces: &mut TemporalTraces, is_raw: bool, weight: Weight) {
    if is_raw {
        for trace in &mut traces.traces {
            trace.weight = weight.apply(trace.weight).0.max(1);
        }
    }
}
