//! What one thread carries along.
use super::memprof::MemProfs;
use super::read::PutOff;
use super::source::llvm_refuses;
use super::trace_queue::Reservoirs;
use super::version::Generations;
use super::vtables::VtableNames;
use super::{Context, all_names, llvm_fault};
use crate::accumulate::{Accumulator, Incoming, Rule, SiteRule, Tally, order_of};
use crate::kinds::{self, Seen, llvm_merge};
use crate::layout::LayoutSums;
use crate::report::{Action, Event, EventLog, LlvmCode, LlvmFault, Reason};
use crate::{Policy, Totals, Weight};
use profkit_abi::variant;
use profkit_data::detect::FileKind;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::raw::RawProfile;
use profkit_data::instr::{InstrKind, NewRecord, Record};
use profkit_data::names::SymbolTable;
use std::collections::BTreeSet;

/// What goes into one result.
pub(crate) struct Group {
    /// The build ids that the result is for; empty if results are not separate.
    pub(crate) ids: Vec<BuildId>,
    pub(crate) acc: Accumulator,
    /// Accumulators of other names, that need not be merged with `acc`.
    pub(crate) disjoint: Vec<Accumulator>,
    /// Sums of profiles of known layouts, until they go into `acc`.
    pub(crate) sums: LayoutSums,
    pub(crate) symbols: SymbolTable,
    pub(crate) binary_ids: BTreeSet<BuildId>,
    pub(crate) vtable_names: VtableNames,
    pub(crate) seen: Vec<Seen>,
    pub(crate) memprof: MemProfs,
}

impl Group {
    pub(crate) fn new(ids: Vec<BuildId>, context: &Context<'_>) -> Self {
        Group {
            ids,
            acc: Accumulator::new(context.rule, context.site_rule),
            disjoint: Vec::new(),
            sums: LayoutSums::default(),
            symbols: SymbolTable::new(),
            binary_ids: BTreeSet::new(),
            vtable_names: VtableNames::default(),
            seen: Vec::new(),
            memprof: MemProfs::default(),
        }
    }

    /// Puts the sums of layouts into the accumulator. Returns whether that is what adding the profiles one by one, in
    /// order, would have given under LLVM's rules; with the tolerant ones it always is.
    pub(crate) fn settle_layouts(&mut self, context: &Context<'_>) -> bool {
        let sums = std::mem::take(&mut self.sums);
        let mut as_in_order = true;
        let acc = &mut self.acc;
        sums.for_each_record(|record| {
            let renamed = context
                .options
                .remapping
                .as_ref()
                .and_then(|table| table.get(record.name));
            let values = record.values.filter(|values| !values.is_empty());
            let incoming = Incoming {
                name: renamed.unwrap_or(record.name),
                name_ref: renamed.map_or(record.name_ref, NameRef::of),
                data: NewRecord {
                    func_hash: record.func_hash,
                    counts: record.counts,
                    bitmap: record.bitmap,
                    values,
                    order: order_of(record.first_input, record.index as u64),
                },
                weight: Weight::ONE,
                tally: Tally {
                    seen: record.profiles,
                    ..Tally::once(record.origin)
                },
                site_rule: SiteRule::Canonical,
            };
            // LLVM's sums of values depend on the order of inputs, and so does who is at fault.
            if context.site_rule == SiteRule::Llvm {
                as_in_order &= values.is_none() || !acc.has_values(&incoming);
            }
            as_in_order &= acc.add(incoming).is_none();
        });
        for blob in sums.vtable_names() {
            // The layout was learned from a profile whose names could be read.
            let mut names = SymbolTable::new();
            let _ = names.read_blob(blob, 0);
            self.symbols.extend(&names);
        }
        as_in_order
    }

    /// `disjoint`: the other group holds names that this one has not.
    fn absorb(&mut self, other: Group, disjoint: bool) {
        if disjoint {
            self.disjoint.push(other.acc);
            self.disjoint.extend(other.disjoint);
        } else {
            for acc in std::mem::take(&mut self.disjoint) {
                self.acc.merge(acc, |_, _| {});
            }
            for acc in other.disjoint.into_iter().chain([other.acc]) {
                self.acc.merge(acc, |_, _| {});
            }
        }
        self.sums.absorb(other.sums);
        self.symbols.extend(&other.symbols);
        self.binary_ids.extend(other.binary_ids);
        self.vtable_names.absorb(other.vtable_names);
        self.seen.extend(other.seen);
        self.seen.sort_unstable_by_key(|seen| seen.input);
        self.memprof.absorb(other.memprof);
    }
}

/// The state of one thread, or of one of LLVM's writers.
pub(crate) struct Lane<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) groups: Vec<Group>,
    pub(crate) log: EventLog,
    pub(crate) totals: Totals,
    pub(crate) generations: Generations,
    /// Inputs that have lost names, to be read at the end.
    pub(crate) pending: Vec<PutOff>,
    /// With LLVM's policy: what its writer knows about kinds.
    pub(crate) llvm_kind: InstrKind,
    /// With LLVM's policy: errors of whole files, which LLVM prints last.
    pub(crate) file_errors: Vec<Event>,
    /// If the lane is one of LLVM's writers: its traces.
    pub(crate) reservoirs: Reservoirs,
    /// Whether adding by layout gave what adding one by one gives; see [`Group::settle_layouts`].
    pub(crate) in_order: bool,
    pub(crate) record: Record,
    pub(crate) scratch: Vec<u8>,
}

impl<'a> Lane<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Self {
        Lane {
            context,
            groups: Vec::new(),
            log: match context.options.policy {
                Policy::Tolerant => EventLog::default(),
                Policy::Llvm => EventLog::unlimited(),
            },
            totals: Totals::default(),
            generations: Generations::default(),
            pending: Vec::new(),
            llvm_kind: InstrKind::UNKNOWN,
            file_errors: Vec::new(),
            reservoirs: Reservoirs::default(),
            in_order: true,
            record: Record::default(),
            scratch: Vec::new(),
        }
    }

    /// Adds what is good of an input that is loaded.
    pub(crate) fn take_data(&mut self, input: usize, data: &[u8]) {
        self.totals.files += 1;
        self.totals.bytes += data.len() as u64;
        if !(self.context.fast && self.take_fast(input, data)) {
            match self.context.options.policy {
                Policy::Tolerant => self.read_tolerant(input, data, None, 0),
                Policy::Llvm => self.read_llvm(input, data),
            }
        }
    }

    /// Reads one input and adds what is good of it.
    pub(crate) fn take(&mut self, input: usize) {
        let mut scratch = std::mem::take(&mut self.scratch);
        match self.context.inputs.open(input, &mut scratch) {
            Ok(data) => self.take_data(input, data.as_ref()),
            Err(error) => {
                let event = Event::new(
                    input,
                    Action::Dropped,
                    Reason::Unreadable,
                    format!("cannot be read: {error}"),
                );
                self.totals.files += 1;
                self.totals.files_dropped += 1;
                if self.context.options.policy == Policy::Llvm {
                    self.file_errors.push(event);
                } else {
                    self.log.push(event);
                    self.context
                        .traces_of(input, Vec::new(), &mut self.reservoirs);
                }
            }
        }
        self.scratch = scratch;
    }

    /// Adds a raw file that holds one profile of a usual sort by its layout. Returns whether it did.
    fn take_fast(&mut self, input: usize, data: &[u8]) -> bool {
        let Ok(mut profile) = RawProfile::parse(data) else {
            return false;
        };
        if let Some(source) = &self.context.options.correlation {
            match source.metadata(&profile) {
                Ok(None) => {}
                Ok(Some(metadata)) => match profile.with_metadata(metadata) {
                    Ok(joined) => profile = joined,
                    Err(_) => return false,
                },
                Err(_) => return false,
            }
        }
        let Ok(ids) = profile.binary_ids() else {
            return false;
        };
        let context = self.context;
        let word = profile.dialect().version_word();
        let kind = InstrKind::from_version_word(word);
        let tolerant = context.rule == Rule::Tolerant;
        if word & variant::TEMPORAL != 0 {
            // Traces come from the time stamps of all records.
            return false;
        }
        if !tolerant && llvm_refuses(context, FileKind::InstrRaw, word).is_some() {
            return false;
        }
        let mut llvm_kind = self.llvm_kind;
        if !tolerant && !llvm_merge(&mut llvm_kind, kinds::llvm_kind(kind, word)) {
            return false;
        }
        let group_index = self.group(&ids);
        let Some(group) = self.groups.get_mut(group_index) else {
            return false;
        };
        let weight = context.weight(input);
        if group
            .sums
            .add_profile(&context.layouts, &profile, input, weight, context.site_rule)
            .is_none()
        {
            return false;
        }
        self.llvm_kind = llvm_kind;
        group.binary_ids.extend(ids);
        group.seen.push(Seen { input, kind });
        self.generations.note(input, kind, word, true);
        self.totals.files_kept += 1;
        self.totals.fast_profiles += 1;
        if tolerant {
            context.traces_of(input, Vec::new(), &mut self.reservoirs);
        }
        true
    }

    /// Whether the order of inputs cannot matter for what is in the sums: there is one layout, without values.
    pub(crate) fn sums_may_wait(&self) -> bool {
        self.context.layouts.count() == 1
            && !self.groups.iter().any(|group| group.sums.have_values())
    }

    /// Whether all inputs were added by their layout.
    pub(crate) fn has_sums_only(&self) -> bool {
        self.groups.iter().all(|group| group.acc.is_empty())
    }

    /// Takes the sums of another lane.
    pub(crate) fn take_sums(&mut self, other: &mut Lane<'_>) {
        for group in &mut other.groups {
            let sums = std::mem::take(&mut group.sums);
            let index = self.group(&group.ids);
            if let Some(mine) = self.groups.get_mut(index) {
                mine.sums.absorb(sums);
            }
        }
    }

    /// Puts all sums of layouts into the accumulators; see [`Group::settle_layouts`].
    pub(crate) fn settle_layouts(&mut self) {
        for group in &mut self.groups {
            self.in_order &= group.settle_layouts(self.context);
        }
    }

    /// The group that inputs with these build ids go to.
    pub(crate) fn group(&mut self, ids: &[BuildId]) -> usize {
        let mut key = Vec::new();
        if self.context.options.separate_by_build_id {
            key = ids.to_vec();
            key.sort_unstable();
            key.dedup();
        }
        if let Some(index) = self.groups.iter().position(|group| group.ids == key) {
            return index;
        }
        self.groups.push(Group::new(key, self.context));
        self.groups.len() - 1
    }

    /// Adds all that another lane of the tolerant policy has; see [`Group::absorb`].
    pub(crate) fn absorb(&mut self, other: Lane<'_>, disjoint: bool) {
        for group in other.groups {
            match self.groups.iter_mut().find(|mine| mine.ids == group.ids) {
                Some(mine) => mine.absorb(group, disjoint),
                None => self.groups.push(group),
            }
        }
        self.log.absorb(other.log);
        add_totals(&mut self.totals, &other.totals);
        self.generations.absorb(other.generations);
        self.pending.extend(other.pending);
        self.reservoirs
            .absorb(other.reservoirs, self.context.options);
    }

    /// Reads the inputs that have lost names, with the names of all others at hand.
    pub(crate) fn salvage(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.is_empty() {
            return;
        }
        pending.sort_unstable_by_key(|put_off| put_off.input);
        let names = all_names(&self.groups);
        let mut scratch = std::mem::take(&mut self.scratch);
        for PutOff { input, done } in pending {
            match self.context.inputs.open(input, &mut scratch) {
                Ok(data) => self.read_tolerant(input, data.as_ref(), Some(&names), done),
                Err(error) => {
                    self.totals.files_dropped += 1;
                    self.log.push(Event::new(
                        input,
                        Action::Dropped,
                        Reason::Unreadable,
                        format!("cannot be read again: {error}"),
                    ));
                }
            }
        }
        self.scratch = scratch;
    }

    /// Adds another of LLVM's writers (`mergeWriterContexts`). Faults come out as LLVM prints them there: without file
    /// and function.
    ///
    /// # Errors
    /// Where LLVM's tool ends: if the kinds do not go together.
    pub(crate) fn absorb_llvm(
        &mut self,
        other: Lane<'_>,
        late: &mut Vec<Event>,
    ) -> Result<(), LlvmFault> {
        self.file_errors.extend(other.file_errors);
        if !llvm_merge(&mut self.llvm_kind, other.llvm_kind) {
            return Err(llvm_fault(LlvmCode::UnsupportedVersion));
        }
        let at_end = self.context.inputs.len();
        for group in other.groups {
            let index = self.group(&group.ids);
            let Some(mine) = self.groups.get_mut(index) else {
                continue;
            };
            mine.acc.merge(group.acc, |fault, name| {
                // LLVM prints one line a code.
                let event = fault.event(at_end, name);
                if late.iter().all(|other| other.llvm != event.llvm) {
                    late.push(event);
                }
            });
            mine.symbols.extend(&group.symbols);
            mine.binary_ids.extend(group.binary_ids);
            // LLVM's writers do not hand each other the names of virtual tables.
            mine.seen.extend(group.seen);
            mine.memprof.absorb(group.memprof);
        }
        self.reservoirs
            .absorb(other.reservoirs, self.context.options);
        self.log.absorb(other.log);
        add_totals(&mut self.totals, &other.totals);
        self.generations.absorb(other.generations);
        self.in_order &= other.in_order;
        Ok(())
    }
}

fn add_totals(into: &mut Totals, from: &Totals) {
    into.files += from.files;
    into.files_kept += from.files_kept;
    into.files_repaired += from.files_repaired;
    into.files_dropped += from.files_dropped;
    into.files_empty += from.files_empty;
    into.bytes += from.bytes;
    into.records_dropped += from.records_dropped;
    into.fast_profiles += from.fast_profiles;
}
