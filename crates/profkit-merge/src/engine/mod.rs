//! Merges instrumentation profiles, and the heap profiles among the inputs, with the common driver.
mod as_llvm;
mod collisions;
mod memprof;
mod names;
pub(crate) mod read;
mod shares;
mod source;
mod strategy;
mod trace_queue;
mod trace_sample;
mod version;
mod vtables;
mod worker;

use crate::Weight;
use crate::accumulate::{Accumulator, Keep, sum_of};
use crate::driver::{Cancelled, Driver, InputStore, MergeKind, ReportPart};
use crate::error::{GroupConflict, MergeError};
use crate::join::{Facts, Joined, RecordVisitor, Watch, Watcher, join};
use crate::kinds;
use crate::layout::Layouts;
use crate::memprof::{Heap, HeapParts, HeapSum, HeapWorker};
use crate::options::{MergeOptions, Policy};
use crate::part;
use crate::report::{Event, EventLog, HeapDetails, Reason, Report, Totals};
pub(crate) use collisions::Collisions;
use profkit_data::detect::Family;
use profkit_data::ids::BuildId;
use profkit_data::instr::indexed::IndexedWriteOptions;
use profkit_data::instr::{InstrKind, InstrProfile, TemporalTraces};
use profkit_files::Inputs;
pub(crate) use read::origin_of;
use std::collections::BTreeMap;
use std::mem;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use strategy::Instr;
pub(crate) use strategy::Strategy;
use trace_queue::TraceQueue;
pub(crate) use trace_sample::{Drawn, TraceSample};
pub(crate) use version::Generations;
pub(crate) use worker::Group;
use worker::Worker;

/// The result of a merge of instrumentation profiles.
#[derive(Clone, Debug, Default)]
pub struct MergeOutcome {
    /// The merged profile. With [`MergeOptions::separate_by_build_id`] there is one profile for each set of build ids,
    /// sorted by build ids.
    pub profiles: Vec<MergedProfile>,
    /// The sum of the heap profiles among the inputs. It is not part of `profiles` yet: symbolise it with
    /// `LoadedHeap::new` of profkit-analysis, and add it to a profile with
    /// [`place_section`](crate::memprof::place_section) before writing. Always `None` with [`Policy::Llvm`].
    pub heap: Option<HeapParts>,
    /// The report: what was done with each input.
    pub report: Report,
}

/// A merged profile, and the build ids of its inputs.
#[derive(Clone, Debug, Default)]
pub struct MergedProfile {
    /// The build ids of the inputs. Empty if the profile is the sum of all inputs, or if its inputs have no build ids.
    pub build_ids: Vec<BuildId>,
    /// The indexes of the inputs with counters that were merged, in order.
    pub inputs: Vec<usize>,
    /// The merged profile.
    pub profile: InstrProfile,
}

/// Merges instrumentation profiles.
///
/// Memory: each thread needs one accumulator, one array of counter sums for each program that wrote raw profiles, and
/// the bytes that [`Inputs::open`] returns.
///
/// ```
/// use profkit_merge::{MergeOptions, merge_instr};
///
/// let inputs = [b"main\n1234\n1\n90\n".as_slice(), b"main\n1234\n1\n10\n"];
/// let merged = merge_instr(&inputs, &MergeOptions::new())?;
/// let profile = &merged.profiles[0].profile;
/// let function = profile.tables[0].functions().next().unwrap();
/// let record = function.records().next().unwrap();
/// assert_eq!((function.name(), record.counts), (b"main".as_slice(), [100].as_slice()));
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
///
/// # Errors
/// [`MergeError::NoInputs`] and [`MergeError::Cancelled`] with any policy. With [`Policy::Tolerant`] also
/// [`MergeError::Groups`] for inputs that cannot be merged with each other, and [`MergeError::NothingLeft`] if no input
/// could be used. With [`Policy::Llvm`] also [`MergeError::Llvm`] where LLVM's tool ends at once. The report lists
/// failed inputs; the caller decides whether they are an error (`--failure-mode`).
pub fn merge_instr(
    inputs: &(impl Inputs + ?Sized),
    options: &MergeOptions,
) -> Result<MergeOutcome, MergeError> {
    merge(&inputs, options)
}

/// A merge whose result will be written as an indexed profile ([`merge_indexed`]).
#[derive(Debug)]
pub struct IndexedMerge<'i, V> {
    /// The merged profiles and the report.
    pub outcome: MergeOutcome,
    /// The functions of the only profile, whose tables are empty then, and the visitor that has seen all its records.
    /// `None` if the functions are in the tables of the profiles.
    pub joined: Option<(Joined<'i>, V)>,
}

impl<V> From<MergeOutcome> for IndexedMerge<'_, V> {
    fn from(outcome: MergeOutcome) -> Self {
        IndexedMerge {
            outcome,
            joined: None,
        }
    }
}

/// Merges instrumentation profiles as [`merge_instr`] does. If all inputs are indexed profiles or texts, their functions are joined
/// while the result is written, so that they are never in memory together.
///
/// `write` returns the options of the writer for the indexed version that suits the inputs. The result must be written
/// with the options that it returns for [`Report::suggested_indexed_version`].
///
/// # Errors
/// The same as [`merge_instr`].
pub fn merge_indexed<'i, V: RecordVisitor>(
    inputs: &'i dyn Inputs,
    options: &MergeOptions,
    write: &dyn Fn(u32) -> IndexedWriteOptions,
) -> Result<IndexedMerge<'i, V>, MergeError> {
    let watcher = Watcher::default();
    let (outcome, joined) = join_or_merge(inputs, options, write, &watcher)?;
    Ok(IndexedMerge {
        outcome,
        joined: joined.map(|joined| (joined, watcher.seen())),
    })
}

fn join_or_merge<'i>(
    inputs: &'i dyn Inputs,
    options: &MergeOptions,
    write: &dyn Fn(u32) -> IndexedWriteOptions,
    watch: &dyn Watch,
) -> Result<(MergeOutcome, Option<Joined<'i>>), MergeError> {
    if inputs.is_empty() {
        return Err(MergeError::NoInputs);
    }
    let store = InputStore::new(inputs);
    if part::is_for(&store, options.order_free, options.policy) {
        return Ok((part::merge(&store, options)?, None));
    }
    let driver = Driver::new(&store, &options.run);
    let strategy = Strategy::new(inputs, options);
    if let Some(joined) = join(&store, &driver, strategy, options, write, watch)? {
        let outcome = {
            let held = joined.held(inputs);
            let driver = Driver::new(&held, &options.run);
            merge_rest(&driver, strategy, options, &joined.facts)?
        };
        if joined.is_for(&write(outcome.report.suggested_indexed_version)) {
            return Ok((outcome, Some(joined)));
        }
        joined.give_back(&store);
    }
    Ok((merge_whole(&driver, strategy, options)?, None))
}

/// Merges everything but the functions of inputs.
fn merge_rest(
    driver: &Driver<'_>,
    strategy: Strategy,
    options: &MergeOptions,
    facts: &Facts,
) -> Result<MergeOutcome, MergeError> {
    let context = Context {
        joined: Some(facts),
        ..Context::new(driver, options, strategy)?
    };
    let all: Vec<usize> = (0..driver.inputs.len()).collect();
    let (worker, mut part) = driver.merge(&Instr { context: &context }, &all)?;
    let totals = &mut part.totals;
    totals.functions += facts.functions;
    totals.functions_filtered += facts.functions_filtered;
    totals.names_filtered += facts.names_filtered;
    totals.records_merged += facts.records_merged;
    if facts.collisions.records > 0 {
        totals.collisions += facts.collisions.records;
        facts.collisions.report(facts.counts, &mut part.shared);
    }
    finish(&context, worker, part)
}

fn merge(inputs: &dyn Inputs, options: &MergeOptions) -> Result<MergeOutcome, MergeError> {
    if inputs.is_empty() {
        return Err(MergeError::NoInputs);
    }
    let store = InputStore::new(inputs);
    if part::is_for(&store, options.order_free, options.policy) {
        return part::merge(&store, options);
    }
    let driver = Driver::new(&store, &options.run);
    merge_whole(&driver, Strategy::new(inputs, options), options)
}

/// Merges inputs that are no parts of merges, so that nothing depends on their order. They have the order of the report.
pub(crate) fn merge_order_free(
    inputs: &dyn Inputs,
    options: &MergeOptions,
) -> Result<MergeOutcome, MergeError> {
    let driver = Driver::new(inputs, &options.run);
    merge_whole(&driver, Strategy::ORDER_FREE, options)
}

/// What is known of inputs when they were read and nothing was decided yet: the content of a part of a merge.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) groups: Vec<Group>,
    pub(crate) generations: Generations,
    pub(crate) traces: BTreeMap<Vec<BuildId>, TraceSample>,
    pub(crate) report: ReportPart,
    /// The sum of raw heap dumps and YAML heap profiles; `None` if there are none.
    pub(crate) heap: Option<HeapSum>,
    /// The digest of each input that could be read.
    pub(crate) contents: Vec<(usize, u64)>,
}

/// Reads inputs that are no parts of merges, for [`finish_collected`].
pub(crate) fn collect(
    inputs: &dyn Inputs,
    options: &MergeOptions,
) -> Result<Collected, MergeError> {
    let driver = Driver::new(inputs, &options.run);
    let context = Context::new(&driver, options, Strategy::ORDER_FREE)?;
    let (mut worker, mut report) = read_all(&context)?;
    let heap = add_heap_inputs(&context, &mut worker, &mut report)?;
    worker.add_layout_sums();
    for group in &mut worker.groups {
        group.join_disjoint();
    }
    Ok(Collected {
        groups: worker.groups,
        generations: worker.generations,
        traces: worker.reservoirs.by_priority,
        report,
        heap,
        contents: worker.contents,
    })
}

/// The result of a merge whose inputs were read before. `inputs` has their names.
pub(crate) fn finish_collected(
    inputs: &dyn Inputs,
    options: &MergeOptions,
    collected: Collected,
) -> Result<MergeOutcome, MergeError> {
    let driver = Driver::new(inputs, &options.run);
    let context = Context::new(&driver, options, Strategy::ORDER_FREE)?;
    let mut worker = Worker::new(&context, false);
    worker.groups = collected.groups;
    worker.generations = collected.generations;
    worker.reservoirs.by_priority = collected.traces;
    worker.heap_sum = collected.heap;
    finish_tolerant(&context, worker, collected.report)
}

fn merge_whole(
    driver: &Driver<'_>,
    strategy: Strategy,
    options: &MergeOptions,
) -> Result<MergeOutcome, MergeError> {
    let context = Context::new(driver, options, strategy)?;
    let (worker, report) = read_all(&context)?;
    if context.is_over.load(Ordering::Relaxed) {
        return part::merge(&driver.inputs, options);
    }
    finish(&context, worker, report)
}

fn read_all<'c, 'i>(
    context: &'c Context<'c, 'i>,
) -> Result<(Worker<'c, 'i>, ReportPart), MergeError> {
    let kind = Instr { context };
    let (mut worker, mut part) = read_sound(&kind)?;
    part.absorb(mem::take(&mut worker.unsound).report(context.driver)?);
    Ok((worker, part))
}

/// Reads all inputs but those that the readers of other families must look at.
fn read_sound<'c, 'i>(kind: &Instr<'c, 'i>) -> Result<(Worker<'c, 'i>, ReportPart), MergeError> {
    let context = kind.context;
    let driver = context.driver;
    let mut worker = kind.worker();
    let mut part = ReportPart::new(kind.log());
    let mut done = 0;
    if context.strategy.writers.is_none() {
        done = shares::run(kind, &mut worker, &mut part)?;
    }
    let rest: Vec<usize> = (done..driver.inputs.len()).collect();
    if done == 0 {
        return driver.merge(kind, &rest);
    }
    if !rest.is_empty() {
        let more = driver.merge(kind, &rest)?;
        kind.join((&mut worker, &mut part), more)?;
    }
    Ok((worker, part))
}

fn finish(
    context: &Context<'_, '_>,
    worker: Worker<'_, '_>,
    part: ReportPart,
) -> Result<MergeOutcome, MergeError> {
    if context.strategy.is_llvm {
        as_llvm::finish(context, worker, part)
    } else {
        finish_tolerant(context, worker, part)
    }
}

/// The indexed version that suits indexed inputs, of which the kind, the version word, and whether it has functions is
/// known.
pub(crate) fn suggested_version(inputs: impl Iterator<Item = (InstrKind, u64, bool)>) -> u32 {
    let mut generations = version::Generations::default();
    for (input, (kind, word, has_functions)) in inputs.enumerate() {
        generations.note(input, kind, word, false, has_functions);
    }
    version::suggest(&generations).version
}

/// Runs [`merge_instr`] with [`Policy::Tolerant`] on one thread, but distributes the inputs to workers as several
/// threads might. `schedule` lists pairs of input and worker in the order in which inputs are read. Workers are joined
/// in order. Tests use this function to try distributions that real threads rarely produce.
#[doc(hidden)]
pub fn merge_scheduled(
    inputs: &(impl Inputs + ?Sized),
    options: &MergeOptions,
    schedule: &[(usize, usize)],
) -> Result<MergeOutcome, MergeError> {
    let driver = Driver::new(&inputs, &options.run);
    let context = Context::new(&driver, options, Strategy::TOLERANT)?;
    let kind = Instr { context: &context };
    let count = schedule.iter().map(|&(_, worker)| worker + 1).max();
    let mut workers: Vec<_> = (0..count.unwrap_or(0))
        .map(|_| (kind.worker(), ReportPart::default()))
        .collect();
    let mut buffer = Vec::new();
    for &(input, worker) in schedule {
        if let Some((worker, part)) = workers.get_mut(worker) {
            driver.take(&kind, worker, part, input, &mut buffer)?;
        }
    }
    let (worker, part) = driver.join(&kind, workers)?;
    finish_tolerant(&context, worker, part)
}

pub(crate) struct Context<'c, 'i> {
    pub(crate) driver: &'c Driver<'i>,
    pub(crate) options: &'c MergeOptions,
    pub(crate) strategy: Strategy,
    /// Whether a raw profile is added without being parsed if another one of the same program was read.
    pub(crate) fast: bool,
    pub(crate) layouts: Layouts,
    /// What is known of the functions of all inputs, if they are joined: then their records are not read.
    pub(crate) joined: Option<&'c Facts>,
    /// Whether a part of a merge is among the inputs, so that all are merged by the rules of parts.
    is_over: AtomicBool,
    /// For [`MergeOptions::normalize`]: the factor of each input. Empty if this option is off.
    factors: Vec<Weight>,
    traces: Mutex<TraceQueue>,
}

impl<'c, 'i> Context<'c, 'i> {
    fn new(
        driver: &'c Driver<'i>,
        options: &'c MergeOptions,
        strategy: Strategy,
    ) -> Result<Self, Cancelled> {
        Ok(Context {
            // LLVM writes names of virtual tables in the order of the inputs, which the fast path does not keep.
            fast: !options.no_fast_path && !options.keep_vtable_names,
            layouts: Layouts::new(options.run.threads.count(), !strategy.is_llvm),
            driver,
            options,
            strategy,
            factors: if options.normalize {
                normal_factors(driver, options)?
            } else {
                Vec::new()
            },
            joined: None,
            is_over: AtomicBool::new(false),
            traces: Mutex::default(),
        })
    }
}

impl Context<'_, '_> {
    pub(crate) fn inputs(&self) -> &dyn Inputs {
        &self.driver.inputs
    }

    pub(crate) fn weight(&self, input: usize) -> Weight {
        let weight = self.driver.inputs.weight(input);
        match self.factors.get(input) {
            Some(&factor) => weight.times(factor),
            None => weight,
        }
    }
}

/// Returns the factors by which the sums of counts of the inputs reach the largest of them.
fn normal_factors(driver: &Driver<'_>, options: &MergeOptions) -> Result<Vec<Weight>, Cancelled> {
    let totals = options.run.threads.run(driver.inputs.len(), |input| {
        driver.check_cancelled()?;
        let mut buffer = Vec::new();
        // An input that cannot be opened is reported when it is merged.
        let Ok(opened) = driver.open(input, &mut buffer) else {
            return Ok(0);
        };
        let total = read::total_of(&opened, options);
        opened.keep_open();
        driver.close(opened, &mut buffer);
        Ok(total)
    });
    let totals = totals.into_iter().collect::<Result<Vec<u64>, _>>()?;
    let reference = totals.iter().copied().max().unwrap_or(0);
    Ok(totals
        .iter()
        .map(|&total| Weight::ratio(reference, total).unwrap_or(Weight::ONE))
        .collect())
}

fn finish_tolerant(
    context: &Context<'_, '_>,
    mut worker: Worker<'_, '_>,
    mut part: ReportPart,
) -> Result<MergeOutcome, MergeError> {
    worker.add_layout_sums();
    names::find(context, &mut worker, &mut part.log);
    let heap = merge_heap_inputs(context, &mut worker, &mut part)?;
    if context.strategy.rules.order_free {
        // How the inputs were distributed decides which of them were added without being parsed.
        part.totals.fast_profiles = 0;
    } else {
        part.totals.layouts = context.layouts.count() as u64;
    }
    let kinds = match check_inputs(context, &worker, &part) {
        Ok(kinds) => kinds,
        Err(conflict) => {
            let report = part.finish(context.inputs());
            return Err(MergeError::Groups(conflict, Box::new(report)));
        }
    };
    for group in &mut worker.groups {
        group.report_repeated(&mut part.log);
    }
    let oldest_ir_scheme = worker.generations.oldest_ir_scheme();
    let suggestion = version::suggest(&worker.generations);
    for event in suggestion.notes {
        part.log.push(event);
    }
    let mut queue = context.trace_queue();
    let in_worker = context.strategy.writers.is_some() || context.strategy.rules.order_free;
    let reservoirs = match in_worker {
        true => &mut worker.reservoirs,
        false => &mut queue.reservoirs,
    };
    let mut profiles = Vec::new();
    for (group, kind) in worker.groups.into_iter().zip(kinds) {
        let traces = reservoirs.take(&group.ids, context.options);
        profiles.push(finish_group(context, group, kind, traces, &mut part)?);
    }
    profiles.sort_by(|a, b| a.build_ids.cmp(&b.build_ids));
    if profiles.is_empty() {
        profiles.push(MergedProfile::default());
    }
    let (heap, details) = heap.unzip();
    let report = Report {
        oldest_ir_scheme,
        suggested_indexed_version: if profiles
            .iter()
            .any(|one| one.profile.uniformity_count() > 0)
        {
            suggestion.version.max(profkit_abi::indexed::VERSION_LAST)
        } else {
            suggestion.version
        },
        heap: details,
        ..part.finish(context.inputs())
    };
    if report.totals.files_kept + report.totals.files_repaired == 0 {
        return Err(MergeError::NothingLeft(Box::new(report)));
    }
    Ok(MergeOutcome {
        profiles,
        heap,
        report,
    })
}

fn check_inputs(
    context: &Context<'_, '_>,
    worker: &Worker<'_, '_>,
    part: &ReportPart,
) -> Result<Vec<InstrKind>, Box<GroupConflict>> {
    let (inputs, own) = (context.inputs(), [Family::Instr, Family::MemProf]);
    kinds::check_families(&part.families, &own, inputs)?;
    let groups = worker.groups.iter();
    let kinds = groups.map(|group| kinds::check(&group.inputs, inputs));
    let kinds = kinds.collect::<Result<_, _>>()?;
    // With one result for each set of build ids, each is of another program, which another compiler may have made.
    if !context.options.mixed_hashes && !context.options.separate_by_build_id {
        version::check(&worker.generations, inputs)?;
    }
    Ok(kinds)
}

/// Merges the heap profiles among the inputs, in input order, unless this order does not matter. `None` if there are no
/// heap profiles.
fn merge_heap_inputs(
    context: &Context<'_, '_>,
    worker: &mut Worker<'_, '_>,
    part: &mut ReportPart,
) -> Result<Option<(HeapParts, HeapDetails)>, MergeError> {
    if context.strategy.rules.order_free {
        let read = add_heap_inputs(context, worker, part)?;
        return Ok(worker.heap_sum.take().or(read).map(HeapSum::finish));
    }
    let Some((merged, report)) = read_heap_inputs(context, worker)? else {
        return Ok(None);
    };
    let details = merged.details(&report);
    part.absorb(report);
    Ok(Some((merged.parts, details)))
}

/// The sum of the heap profiles among the inputs, if the order of inputs does not matter.
fn add_heap_inputs(
    context: &Context<'_, '_>,
    worker: &mut Worker<'_, '_>,
    part: &mut ReportPart,
) -> Result<Option<HeapSum>, MergeError> {
    let Some((merged, report)) = read_heap_inputs(context, worker)? else {
        return Ok(None);
    };
    let sum = HeapSum {
        files: report.totals.files,
        files_dropped: report.totals.files_dropped,
        ..merged.sum
    };
    part.absorb(report);
    Ok(Some(sum))
}

fn read_heap_inputs(
    context: &Context<'_, '_>,
    worker: &mut Worker<'_, '_>,
) -> Result<Option<(HeapWorker, ReportPart)>, MergeError> {
    let mut inputs = std::mem::take(&mut worker.heap);
    if inputs.is_empty() {
        return Ok(None);
    }
    inputs.sort_unstable();
    let kind = Heap {
        unordered: context.strategy.rules.order_free,
    };
    Ok(Some(context.driver.merge(&kind, &inputs)?))
}

fn finish_group(
    context: &Context<'_, '_>,
    group: Group,
    kind: InstrKind,
    traces: TemporalTraces,
    part: &mut ReportPart,
) -> Result<MergedProfile, Cancelled> {
    let mut inputs: Vec<usize> = group.inputs.iter().map(|one| one.input).collect();
    inputs.sort_unstable();
    let filter = context.options.filter.clone();
    let keep = filter.as_ref().map(|filter| &**filter as Keep<'_>);
    let finish = |acc: Accumulator| {
        let mut log = EventLog::default();
        (acc.finish(keep, &mut log), log)
    };
    let mut accumulators = vec![group.acc];
    accumulators.extend(group.disjoint);
    let parts = context.options.run.threads.map(accumulators, finish);
    let ReportPart {
        log,
        totals,
        shared,
        mismatched,
        ..
    } = part;
    let mut tables = Vec::new();
    let mut collisions = Collisions::default();
    let mut refused = 0;
    for (mut finished, events) in parts {
        log.absorb(events);
        totals.functions += finished.table.record_count() as u64;
        totals.functions_filtered += finished.filtered;
        totals.names_filtered += finished.filtered_names;
        totals.absorb(&Totals {
            records_merged: finished.records_merged,
            records_dropped: finished.records_dropped.saturating_add(finished.refused),
            records_overflowed: finished.overflowed,
            ..Totals::default()
        });
        refused = finished.refused.saturating_add(refused);
        mismatched.records = mismatched.records.saturating_add(finished.records_dropped);
        mismatched.add(std::mem::take(&mut finished.mismatched));
        collisions.note(&finished);
        tables.push(finished.table);
    }
    totals.collisions += collisions.records;
    if collisions.records > 0 || !mismatched.sides.is_empty() {
        let functions = tables.iter().flat_map(|table| table.functions());
        let records = functions.flat_map(|function| function.records());
        let counts: u128 = records.map(sum_of).sum();
        collisions.report(counts, shared);
        mismatched.counts_kept += counts;
    }
    if refused > 0 {
        log.push(Event::new(
            0,
            crate::Action::Dropped,
            Reason::TooLarge,
            match refused {
                1 => "the result is full: 1 record was left out".to_owned(),
                _ => format!("the result is full: {refused} records were left out"),
            },
        ));
    }
    let vtable_names = match context.options.policy {
        Policy::Llvm => group.vtable_names.finish(),
        _ => match context.joined {
            Some(facts) => vtables::names_of(&facts.vtables, &group.symbols),
            None => vtables::used(&tables, &group.symbols),
        },
    };
    let mut profile = InstrProfile {
        kind,
        tables,
        symbols: group.symbols,
        binary_ids: group.binary_ids.into_iter().collect(),
        traces,
        vtable_names,
        memprof: group.memprof.finish(context, part)?,
    };
    if !profile.traces.traces.is_empty() {
        profile.kind |= InstrKind::TEMPORAL;
    }
    Ok(MergedProfile {
        build_ids: group.ids,
        inputs,
        profile,
    })
}
