//! The state of one worker in a merge of instrumentation profiles.
use super::memprof::MemProfs;
use super::trace_queue::Reservoirs;
use super::version::Generations;
use super::vtables::VtableNames;
use super::{Context, as_llvm};
use crate::Weight;
use crate::accumulate::{Accumulator, Incoming, RecordStats, Rules, SiteRule, order_of};
use crate::driver::{OpenedInput, ReportPart};
use crate::kinds::InputKind;
use crate::layout::LayoutSums;
use crate::memprof::HeapSum;
use crate::part::Unsound;
use crate::report::{Action, Event, EventLog, Reason};
use profkit_abi::variant;
use profkit_data::ids::{BuildId, NameRef};
use profkit_data::instr::raw::RawProfile;
use profkit_data::instr::{InstrKind, NewRecord, Record};
use profkit_data::names::SymbolTable;
use profkit_files::Inputs;
use std::collections::BTreeSet;

pub(crate) struct Group {
    /// The build ids of the merged profile. Empty if all inputs are merged into one profile.
    pub(crate) ids: Vec<BuildId>,
    pub(crate) acc: Accumulator,
    /// Further accumulators. None has a function name in common with another or with `acc`.
    pub(crate) disjoint: Vec<Accumulator>,
    /// The sums of the fast path. They are added to `acc` at the end.
    pub(crate) sums: LayoutSums,
    pub(crate) symbols: SymbolTable,
    pub(crate) binary_ids: BTreeSet<BuildId>,
    pub(crate) raw_ids: BTreeSet<BuildId>,
    pub(crate) indexed: Vec<(usize, Vec<BuildId>)>,
    /// With [`Policy::Llvm`](crate::Policy::Llvm): the names of virtual tables, if they are kept.
    pub(crate) vtable_names: VtableNames,
    pub(crate) inputs: Vec<InputKind>,
    pub(crate) memprof: MemProfs,
}

impl Group {
    pub(crate) fn new(ids: Vec<BuildId>, context: &Context<'_, '_>) -> Self {
        Self::of_rules(ids, context.strategy.rules)
    }

    pub(crate) fn of_rules(ids: Vec<BuildId>, rules: Rules) -> Self {
        Group {
            ids,
            acc: Accumulator::new(rules),
            disjoint: Vec::new(),
            sums: LayoutSums::default(),
            symbols: SymbolTable::new(),
            binary_ids: BTreeSet::new(),
            raw_ids: BTreeSet::new(),
            indexed: Vec::new(),
            vtable_names: VtableNames::default(),
            inputs: Vec::new(),
            memprof: MemProfs::default(),
        }
    }

    /// Adds the sums of the fast path. Returns whether the result is that of adding the raw profiles one by one, which
    /// under LLVM's rules it may not be.
    pub(crate) fn add_layout_sums(&mut self, context: &Context<'_, '_>) -> bool {
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
                    ..NewRecord::default()
                },
                weight: Weight::ONE,
                stats: RecordStats {
                    seen: record.profiles,
                    ..RecordStats::once(record.origin)
                },
                site_rule: SiteRule::Canonical,
            };
            // Under LLVM's rules, sums of values, and the input of a fault, depend on the order of inputs.
            if context.strategy.rules.sites == SiteRule::Llvm {
                as_in_order &= values.is_none() || !acc.may_have_values(&incoming);
            }
            let fault = acc.add(incoming);
            as_in_order &= fault.is_none() || !context.strategy.is_llvm;
        });
        for blob in sums.vtable_names() {
            // Reading the names cannot fail: they come from a profile whose names were already read without an error.
            let mut names = SymbolTable::new();
            let _ = names.read_blob(blob, 0);
            self.symbols.extend(&names);
        }
        as_in_order
    }

    pub(crate) fn report_repeated(&mut self, log: &mut EventLog) {
        for (input, ids) in std::mem::take(&mut self.indexed) {
            let Some(id) = ids.iter().find(|id| self.raw_ids.contains(id)) else {
                continue;
            };
            let message = format!(
                "raw profiles among the inputs are of the same program (build id {id}): if this file was made from them, their counts are added twice"
            );
            let event = Event::new(input, Action::Kept, Reason::MayCountTwice, message);
            log.push(event.hint("leave the indexed profile out, or write it to another folder than that of the raw profiles"));
        }
    }

    pub(crate) fn join_disjoint(&mut self) {
        for acc in std::mem::take(&mut self.disjoint) {
            self.acc.merge(acc, |_, _| {});
        }
    }

    pub(crate) fn absorb(&mut self, other: Group, disjoint: bool) {
        if disjoint {
            self.disjoint.push(other.acc);
            self.disjoint.extend(other.disjoint);
        } else {
            self.join_disjoint();
            for acc in other.disjoint.into_iter().chain([other.acc]) {
                self.acc.merge(acc, |_, _| {});
            }
        }
        self.sums.absorb(other.sums);
        self.symbols.extend(&other.symbols);
        self.binary_ids.extend(other.binary_ids);
        self.raw_ids.extend(other.raw_ids);
        self.indexed.extend(other.indexed);
        self.inputs.extend(other.inputs);
        self.inputs.sort_unstable_by_key(|one| one.input);
        self.memprof.absorb(other.memprof);
    }
}

/// What was merged of the inputs of one thread, or of one of LLVM's writers.
pub(crate) struct Worker<'c, 'i> {
    pub(crate) context: &'c Context<'c, 'i>,
    /// Whether the fast path is used: a raw profile of a known program is added without being parsed.
    pub(crate) fast: bool,
    pub(crate) groups: Vec<Group>,
    pub(crate) generations: Generations,
    /// The inputs that are heap profiles.
    pub(crate) heap: Vec<usize>,
    /// Their sum, if they were read before.
    pub(crate) heap_sum: Option<HeapSum>,
    /// Under LLVM's policy: the kind of all inputs so far, as LLVM's writer computes it.
    pub(crate) llvm_kind: InstrKind,
    /// Under LLVM's policy: errors about whole files, which LLVM prints last.
    pub(crate) file_errors: Vec<Event>,
    /// Under LLVM's policy: faults that were found when writers were joined. LLVM prints them before `file_errors`.
    pub(crate) join_faults: Vec<Event>,
    /// The sampled temporal traces, if this worker imitates one of LLVM's writers.
    pub(crate) reservoirs: Reservoirs,
    /// Whether the fast path gave the same result as adding raw profiles one by one ([`Group::add_layout_sums`]).
    pub(crate) in_order: bool,
    pub(crate) record: Record,
    /// If the order of inputs does not matter: the digest of each input ([`content_of`](crate::part::content_of)). The
    /// last one is that of the input that is being read.
    pub(crate) contents: Vec<(usize, u64)>,
    /// Only in merges that do not depend on the order of inputs: those of which other readers say what is wrong.
    pub(crate) unsound: Unsound,
}

impl<'c, 'i> Worker<'c, 'i> {
    pub(crate) fn new(context: &'c Context<'c, 'i>, fast: bool) -> Self {
        Worker {
            context,
            fast,
            groups: Vec::new(),
            generations: Generations::default(),
            heap: Vec::new(),
            heap_sum: None,
            llvm_kind: InstrKind::UNKNOWN,
            file_errors: Vec::new(),
            join_faults: Vec::new(),
            reservoirs: Reservoirs::default(),
            in_order: true,
            record: Record::default(),
            contents: Vec::new(),
            unsound: Unsound::default(),
        }
    }

    pub(crate) fn note_content(&mut self, opened: &OpenedInput<'_>) {
        let weight = self.context.driver.inputs.weight(opened.index);
        let content = crate::part::content_of(opened.bytes(), weight);
        self.contents.push((opened.index, content));
    }

    /// Returns whether the file was added: it must be a single raw profile without unusual properties.
    pub(crate) fn take_fast(&mut self, opened: &OpenedInput<'_>, part: &mut ReportPart) -> bool {
        let input = opened.index;
        let Ok(mut profile) = RawProfile::parse(opened.bytes()) else {
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
        if word & variant::TEMPORAL != 0 {
            // A profile with time stamps is read record by record, because traces are made from the time stamps.
            return false;
        }
        let mut llvm_kind = self.llvm_kind;
        if context.strategy.is_llvm {
            match as_llvm::kind_with(context, llvm_kind, kind, word) {
                Some(kind) => llvm_kind = kind,
                None => return false,
            }
        }
        let group_index = self.group(&ids);
        let Some(group) = self.groups.get_mut(group_index) else {
            return false;
        };
        let weight = context.weight(input);
        if group
            .sums
            .add_profile(
                &context.layouts,
                &profile,
                input,
                weight,
                context.strategy.rules.sites,
            )
            .is_none()
        {
            return false;
        }
        self.llvm_kind = llvm_kind;
        group.raw_ids.extend(ids.iter().cloned());
        group.binary_ids.extend(ids);
        let has_functions = profile.record_count() > 0;
        group.inputs.push(InputKind {
            input,
            kind,
            has_functions,
        });
        self.generations
            .note(input, kind, word, true, has_functions);
        part.totals.fast_profiles += 1;
        self.no_traces(input);
        true
    }

    /// The order of inputs does not matter if all raw profiles come from one program and have no value profiles.
    pub(crate) fn sums_may_wait(&self) -> bool {
        self.context.layouts.count() == 1
            && !self.groups.iter().any(|group| group.sums.have_values())
    }

    /// Whether all inputs of this worker were added by the fast path.
    pub(crate) fn has_sums_only(&self) -> bool {
        self.groups.iter().all(|group| group.acc.is_empty())
    }

    /// Moves the counter sums of the fast path from another worker into this worker.
    pub(crate) fn take_sums(&mut self, other: &mut Worker<'_, '_>) {
        for group in &mut other.groups {
            let sums = std::mem::take(&mut group.sums);
            let index = self.group(&group.ids);
            if let Some(mine) = self.groups.get_mut(index) {
                mine.sums.absorb(sums);
            }
        }
    }

    /// Adds all counter sums of the fast path to the accumulators; see [`Group::add_layout_sums`].
    pub(crate) fn add_layout_sums(&mut self) {
        for group in &mut self.groups {
            self.in_order &= group.add_layout_sums(self.context);
        }
    }

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

    pub(crate) fn absorb(&mut self, other: Worker<'_, '_>, disjoint: bool) {
        for group in other.groups {
            match self.groups.iter_mut().find(|mine| mine.ids == group.ids) {
                Some(mine) => mine.absorb(group, disjoint),
                None => self.groups.push(group),
            }
        }
        self.contents.extend(other.contents);
        self.unsound.absorb(other.unsound);
        self.absorb_rest(other.generations, other.heap, other.reservoirs);
    }

    pub(crate) fn absorb_rest(
        &mut self,
        generations: Generations,
        heap: Vec<usize>,
        reservoirs: Reservoirs,
    ) {
        self.generations.absorb(generations);
        self.heap.extend(heap);
        self.reservoirs.absorb(reservoirs, self.context.options);
    }
}
