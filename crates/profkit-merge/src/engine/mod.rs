//! From inputs to a result.
mod lane;
mod memprof;
pub(crate) mod read;
mod shares;
mod source;
mod trace_queue;
mod version;
mod vtables;

use crate::Weight;
use crate::accumulate::{Accumulator, Keep, Rule, SiteRule};
use crate::driver::cores;
use crate::error::MergeError;
use crate::inputs::Inputs;
use crate::kinds;
use crate::layout::Layouts;
use crate::options::{MergeOptions, Policy, ValueWeights};
use crate::report::{Event, EventLog, LlvmCode, LlvmFault, REPORT_VERSION, Reason, Report};
use lane::{Group, Lane};
use profkit_data::ids::BuildId;
use profkit_data::instr::{InstrKind, InstrProfile, TemporalTraces};
use profkit_data::names::SymbolTable;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace_queue::TraceQueue;

/// What a merge gives.
#[derive(Clone, Debug, Default)]
pub struct MergeOutcome {
    /// The result; one a set of build ids with [`MergeOptions::separate_by_build_id`], sorted by them.
    pub profiles: Vec<MergedProfile>,
    /// What was done with the inputs.
    pub report: Report,
}

/// One result.
#[derive(Clone, Debug, Default)]
pub struct MergedProfile {
    /// The build ids that the inputs of this result state; empty for one result of everything, and for inputs
    /// without ids.
    pub build_ids: Vec<BuildId>,
    /// The profile.
    pub profile: InstrProfile,
}

/// Merges instrumentation profiles.
///
/// Memory: for each thread one accumulator, one array of sums a layout, and whatever [`Inputs::load`] holds.
///
/// # Errors
/// [`MergeError::NoInputs`]; with [`Policy::Tolerant`] [`MergeError::Kinds`] for inputs that count different things
/// and [`MergeError::NothingLeft`] if no input is of use; with [`Policy::Llvm`] [`MergeError::Llvm`] where LLVM's tool
/// ends at once. LLVM's decision about failed inputs (`--failure-mode`) is the caller's to make, from the report.
pub fn merge_instr(
    inputs: &(impl Inputs + ?Sized),
    options: &MergeOptions,
) -> Result<MergeOutcome, MergeError> {
    merge(&inputs, options)
}

fn merge(inputs: &dyn Inputs, options: &MergeOptions) -> Result<MergeOutcome, MergeError> {
    if inputs.is_empty() {
        return Err(MergeError::NoInputs);
    }
    let threads = thread_count(inputs.len(), options);
    let mut context = Context::new(inputs, options, threads);
    if options.policy == Policy::Tolerant && context.site_rule == SiteRule::Llvm {
        return merge_as_writers(&mut context);
    }
    if options.policy == Policy::Tolerant {
        let mut lane = Lane::new(&context);
        let done = shares::run(&mut lane, thread_limit(options));
        if done < inputs.len() {
            for other in run(&context, threads.min(inputs.len() - done), done) {
                lane.absorb(other, false);
            }
        }
        return finish_tolerant(&context, lane);
    }
    if context.fast {
        let lanes = run(&context, threads, 0);
        if let Some(outcome) = finish_llvm(&context, lanes, threads)? {
            return Ok(outcome);
        }
        // The order of inputs matters here: do it LLVM's way.
        context.fast = false;
    }
    let lanes = run(&context, threads, 0);
    finish_llvm(&context, lanes, threads).map(Option::unwrap_or_default)
}

/// [`merge_instr`] with [`Policy::Tolerant`] on one thread that does what several might: `schedule` lists (input, lane) in
/// the order in which inputs are read. Lanes are joined in order. For tests of what chance rarely does.
///
/// # Errors
/// As [`merge_instr`].
#[doc(hidden)]
pub fn merge_scheduled(
    inputs: &dyn Inputs,
    options: &MergeOptions,
    schedule: &[(usize, usize)],
) -> Result<MergeOutcome, MergeError> {
    let context = Context::new(inputs, options, 1);
    let count = schedule.iter().map(|&(_, lane)| lane + 1).max();
    let mut lanes: Vec<_> = (0..count.unwrap_or(0))
        .map(|_| Lane::new(&context))
        .collect();
    for &(input, lane) in schedule {
        if let Some(lane) = lanes.get_mut(lane) {
            lane.take(input);
        }
    }
    let mut all = Lane::new(&context);
    for lane in lanes {
        all.absorb(lane, false);
    }
    finish_tolerant(&context, all)
}

/// What all lanes share.
pub(crate) struct Context<'a> {
    pub(crate) inputs: &'a dyn Inputs,
    pub(crate) options: &'a MergeOptions,
    pub(crate) rule: Rule,
    /// How value sites of inputs are added. With [`SiteRule::Llvm`] each lane is one of LLVM's writers.
    pub(crate) site_rule: SiteRule,
    /// Whether profiles of known layout are added without being parsed.
    pub(crate) fast: bool,
    pub(crate) layouts: Layouts,
    /// Extra weight of each input; empty without normalising.
    factors: Vec<Weight>,
    traces: Mutex<TraceQueue>,
}

impl<'a> Context<'a> {
    fn new(inputs: &'a dyn Inputs, options: &'a MergeOptions, threads: usize) -> Self {
        Context {
            // Names of virtual tables count in the order of inputs.
            fast: !options.no_fast_path && !options.keep_vtable_names,
            layouts: Layouts::default(),
            inputs,
            options,
            rule: match options.policy {
                Policy::Tolerant => Rule::Tolerant,
                Policy::Llvm => Rule::Llvm,
            },
            site_rule: site_rule(inputs, options),
            factors: match options.normalize {
                true => normal_factors(inputs, options, threads),
                false => Vec::new(),
            },
            traces: Mutex::default(),
        }
    }
}

impl Context<'_> {
    pub(crate) fn weight(&self, input: usize) -> Weight {
        let weight = self.inputs.weight(input);
        match self.factors.get(input) {
            Some(&factor) => weight.times(factor),
            None => weight,
        }
    }
}

/// Whose rule value sites are merged by.
fn site_rule(inputs: &dyn Inputs, options: &MergeOptions) -> SiteRule {
    if options.policy == Policy::Llvm {
        return SiteRule::Llvm;
    }
    let mut weights = (0..inputs.len()).map(|input| inputs.weight(input));
    let as_llvm = options.value_weights == ValueWeights::AsLlvm
        && !options.normalize
        && weights.clone().all(|weight| weight.as_integer().is_some())
        && weights.any(|weight| !weight.is_one());
    match as_llvm {
        true => SiteRule::Llvm,
        false => SiteRule::Canonical,
    }
}

/// Tolerant merging with [`ValueWeights::AsLlvm`]: a lane for each of LLVM's writers, joined as they are.
fn merge_as_writers(context: &mut Context<'_>) -> Result<MergeOutcome, MergeError> {
    let writers = context.options.threads.map_or(1, NonZeroUsize::get);
    if context.fast {
        let mut lanes = run(context, writers, 0);
        lanes.iter_mut().for_each(Lane::settle_layouts);
        if lanes.iter().all(|lane| lane.in_order) {
            return finish_writers(context, lanes, writers);
        }
        // Values came in another order than the inputs: again, without adding up by layout.
        context.fast = false;
        context.layouts = Layouts::default();
        context.traces = Mutex::default();
    }
    finish_writers(context, run(context, writers, 0), writers)
}

fn finish_writers(
    context: &Context<'_>,
    lanes: Vec<Lane<'_>>,
    writers: usize,
) -> Result<MergeOutcome, MergeError> {
    let joined = join_writers(lanes, writers, |into, from| {
        into.absorb(from, false);
        Ok(())
    });
    match joined? {
        Some(lane) => finish_tolerant(context, lane),
        None => Err(MergeError::NoInputs),
    }
}

/// Joins the lanes as LLVM joins its writers: the upper half into the lower, again and again. Writers beyond the lanes
/// have got no input and are empty.
fn join_writers<'a>(
    lanes: Vec<Lane<'a>>,
    writers: usize,
    mut join: impl FnMut(&mut Lane<'a>, Lane<'a>) -> Result<(), MergeError>,
) -> Result<Option<Lane<'a>>, MergeError> {
    let mut lanes: Vec<Option<Lane<'_>>> = lanes.into_iter().map(Some).collect();
    let mut end = writers;
    let mut middle = end / 2;
    while middle > 0 {
        let odd = (end % 2 == 1).then_some((0, end - 1));
        let low_half = 0..middle.min(lanes.len());
        for (into, from) in low_half.map(|low| (low, low + middle)).chain(odd) {
            let from = lanes.get_mut(from).and_then(Option::take);
            if let (Some(from), Some(Some(into))) = (from, lanes.get_mut(into)) {
                join(into, from)?;
            }
        }
        end = middle;
        middle /= 2;
    }
    Ok(lanes.into_iter().next().flatten())
}

/// How many threads may work on one input.
fn thread_limit(options: &MergeOptions) -> usize {
    options.threads.map_or_else(cores, NonZeroUsize::get)
}

fn thread_count(inputs: usize, options: &MergeOptions) -> usize {
    match (options.policy, options.threads) {
        (Policy::Llvm, Some(threads)) => threads.get(),
        (Policy::Llvm, None) => cores().min(inputs.div_ceil(2)),
        (_, threads) => threads.map_or_else(cores, NonZeroUsize::get).min(inputs),
    }
}

/// Reads the inputs from `first` on. With [`SiteRule::Llvm`] there is a lane for each writer that LLVM would have and that
/// gets an input; else one for each thread.
fn run<'a>(context: &'a Context<'a>, threads: usize, first: usize) -> Vec<Lane<'a>> {
    let count = context.inputs.len();
    let next = AtomicUsize::new(first);
    let work = |number: usize| {
        let mut lane = Lane::new(context);
        match context.site_rule {
            // LLVM deals inputs out in turn.
            SiteRule::Llvm => (number..count)
                .step_by(threads)
                .for_each(|input| lane.take(input)),
            // Whoever is free takes the next input.
            _ => loop {
                let input = next.fetch_add(1, Ordering::Relaxed);
                if input >= count {
                    break;
                }
                lane.take(input);
            },
        }
        // Where no order matters, the lanes' sums are added up before they are settled.
        if context.site_rule == SiteRule::Llvm && !lane.sums_may_wait() {
            lane.settle_layouts();
        }
        lane
    };
    // Lanes without inputs would be empty, and more threads than cores help nobody.
    let lanes = threads.min(count);
    let workers = match context.site_rule {
        SiteRule::Llvm => lanes.min(cores()),
        _ => lanes,
    };
    if workers <= 1 {
        return (0..lanes.max(1)).map(work).collect();
    }
    let work = |worker: usize| -> Vec<_> {
        (worker..lanes)
            .step_by(workers)
            .map(|number| (number, work(number)))
            .collect()
    };
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers)
            .map(|worker| scope.spawn(move || work(worker)))
            .collect();
        let mut lanes = work(0);
        for other in others {
            match other.join() {
                Ok(more) => lanes.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        lanes.sort_by_key(|&(number, _)| number);
        lanes.into_iter().map(|(_, lane)| lane).collect()
    })
}

/// The factor that brings each input's sum of counts to the largest sum of any.
fn normal_factors(inputs: &dyn Inputs, options: &MergeOptions, threads: usize) -> Vec<Weight> {
    let next = AtomicUsize::new(0);
    let totals: Vec<AtomicTotal> = (0..inputs.len()).map(|_| AtomicTotal::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(inputs.len()) {
            scope.spawn(|| {
                let mut scratch = Vec::new();
                loop {
                    let input = next.fetch_add(1, Ordering::Relaxed);
                    let Some(total) = totals.get(input) else {
                        break;
                    };
                    total.set(read::total_of(inputs, input, options, &mut scratch));
                }
            });
        }
    });
    let totals: Vec<u64> = totals.iter().map(AtomicTotal::get).collect();
    let reference = totals.iter().copied().max().unwrap_or(0);
    totals
        .iter()
        .map(|&total| Weight::ratio(reference, total).unwrap_or(Weight::ONE))
        .collect()
}

#[derive(Default)]
struct AtomicTotal(std::sync::atomic::AtomicU64);

impl AtomicTotal {
    fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn finish_tolerant(context: &Context<'_>, mut lane: Lane<'_>) -> Result<MergeOutcome, MergeError> {
    lane.settle_layouts();
    lane.salvage();
    let Lane {
        groups,
        mut log,
        mut totals,
        generations,
        mut reservoirs,
        ..
    } = lane;
    totals.layouts = context.layouts.count() as u64;
    let suggestion = version::suggest(&generations);
    suggestion
        .notes
        .into_iter()
        .for_each(|event| log.push(event));
    let mut report = Report {
        version: REPORT_VERSION,
        suggested_indexed_version: suggestion.version,
        ..Report::default()
    };
    let mut kinds = Vec::new();
    for group in &groups {
        match kinds::check(&group.seen, context.inputs) {
            Ok(kind) => kinds.push(kind),
            Err(conflict) => return Err(MergeError::Kinds(conflict)),
        }
    }
    let mut queue = context.trace_queue();
    let reservoirs = match context.site_rule {
        SiteRule::Llvm => &mut reservoirs,
        _ => &mut queue.reservoirs,
    };
    let mut profiles = Vec::new();
    for (group, kind) in groups.into_iter().zip(kinds) {
        let traces = reservoirs.take(&group.ids);
        profiles.push(finish_group(
            context,
            group,
            kind,
            traces,
            &mut log,
            &mut totals,
        ));
    }
    profiles.sort_by(|a, b| a.build_ids.cmp(&b.build_ids));
    report.totals = totals;
    (report.events, report.omitted) = log.finish();
    name_files(&mut report.events, context.inputs);
    if totals.files_kept + totals.files_repaired == 0 {
        return Err(MergeError::NothingLeft(Box::new(report)));
    }
    Ok(MergeOutcome { profiles, report })
}

fn finish_group(
    context: &Context<'_>,
    group: Group,
    kind: InstrKind,
    traces: TemporalTraces,
    log: &mut EventLog,
    totals: &mut crate::Totals,
) -> MergedProfile {
    let filter = context.options.filter.clone();
    let keep = filter.as_ref().map(|filter| &**filter as Keep<'_>);
    let finish = |acc: Accumulator| {
        let mut log = EventLog::default();
        (acc.finish(keep, &mut log), log)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = group
            .disjoint
            .into_iter()
            .map(|acc| scope.spawn(|| finish(acc)))
            .collect();
        let mut parts = vec![finish(group.acc)];
        for other in others {
            match other.join() {
                Ok(part) => parts.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    });
    let mut tables = Vec::new();
    let mut refused = 0;
    for (finished, events) in parts {
        log.absorb(events);
        totals.functions += finished.table.function_count() as u64;
        totals.functions_filtered += finished.filtered;
        totals.records_merged += finished.records_merged;
        totals.records_dropped += finished.records_dropped + finished.refused;
        totals.records_overflowed += finished.overflowed;
        totals.collisions += finished.collisions;
        refused += finished.refused;
        tables.push(finished.table);
    }
    if refused > 0 {
        log.push(Event::new(
            0,
            crate::Action::Dropped,
            Reason::TooLarge,
            format!("{refused} records found no room in the result"),
        ));
    }
    let mut profile = InstrProfile {
        kind,
        tables,
        symbols: group.symbols,
        binary_ids: group.binary_ids.into_iter().collect(),
        traces,
        vtable_names: group.vtable_names.finish(context.rule),
        memprof: group.memprof.finish(context.inputs, log, totals),
    };
    if !profile.traces.traces.is_empty() {
        profile.kind |= InstrKind::TEMPORAL;
    }
    MergedProfile {
        build_ids: group.ids,
        profile,
    }
}

fn name_files(events: &mut [Event], inputs: &dyn Inputs) {
    for event in events {
        if event.input < inputs.len() {
            event.file = inputs.name(event.input).into_owned();
        }
    }
}

/// Joins the lanes as LLVM joins its writers. `None` if the lanes added profiles by layout, and the result may depend on the order of inputs.
fn finish_llvm(
    context: &Context<'_>,
    mut lanes: Vec<Lane<'_>>,
    writers: usize,
) -> Result<Option<MergeOutcome>, MergeError> {
    if lanes.iter().all(Lane::has_sums_only)
        && let Some((first, others)) = lanes.split_first_mut()
        && first.sums_may_wait()
    {
        others.iter_mut().for_each(|other| first.take_sums(other));
    }
    lanes.iter_mut().for_each(Lane::settle_layouts);
    let fast = lanes.iter().any(|lane| lane.totals.fast_profiles > 0);
    if fast
        && !lanes
            .iter()
            .all(|lane| lane.in_order && lane.log.is_empty())
    {
        return Ok(None);
    }
    let mut late = Vec::new();
    let joined = join_writers(lanes, writers, |into, from| {
        into.absorb_llvm(from, &mut late).map_err(MergeError::Llvm)
    });
    let Some(mut lane) = joined? else {
        return Err(MergeError::NoInputs);
    };
    if fast && !late.is_empty() {
        return Ok(None);
    }
    lane.totals.layouts = context.layouts.count() as u64;
    let mut report = Report {
        version: REPORT_VERSION,
        suggested_indexed_version: version::suggest(&lane.generations).version,
        ..Report::default()
    };
    let kind = lane.llvm_kind;
    let group = lane
        .groups
        .pop()
        .unwrap_or_else(|| Group::new(Vec::new(), context));
    let traces = lane.reservoirs.take(&[]);
    let merged = finish_group(
        context,
        group,
        kind,
        traces,
        &mut lane.log,
        &mut lane.totals,
    );
    (report.events, report.omitted) = lane.log.finish();
    name_files(&mut report.events, context.inputs);
    report.events.extend(late);
    name_files(&mut lane.file_errors, context.inputs);
    report.events.extend(lane.file_errors);
    report.totals = lane.totals;
    Ok(Some(MergeOutcome {
        profiles: vec![merged],
        report,
    }))
}

/// The names of all functions of some lanes, to find names that a cut file has lost.
fn all_names(groups: &[Group]) -> SymbolTable {
    let mut names = SymbolTable::new();
    for group in groups {
        names.extend(&group.symbols);
        for acc in group.disjoint.iter().chain([&group.acc]) {
            for function in acc.table().functions() {
                names.insert_hashed(function.name_ref(), function.name());
            }
        }
    }
    names
}

fn llvm_fault(code: LlvmCode) -> LlvmFault {
    LlvmFault { code, detail: None }
}
