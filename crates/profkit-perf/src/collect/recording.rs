//! Counts of a recording.
use super::places::PlaceCache;
use super::stacks::SharedStacks;
use super::thread::{PlacedBranch, ThreadSums, increase};
use super::{Counts, Selected, Selection};
use crate::file::sample_type;
use crate::process::Processes;
use crate::sample::{Mode, Sample};
use crate::survey::Recording;

/// The options for counting samples.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CollectOptions {
    /// The samples that are counted.
    pub selection: Selection,
    /// Whether to count also the branches that the processor took only by speculation, and the branches that were not
    /// taken. llvm-profgen counts them, because it does not read the marks of such branches.
    pub count_marked: bool,
    /// Whether samples with a call chain and a branch stack are also kept whole, and not only added to the sums.
    /// Profiles with calling contexts are made from whole samples. Equal samples are kept once, with their number.
    pub stacks: bool,
    /// Whether branches are also counted together with the code that ran after each (`Sums::traces`),
    /// and how often they were mispredicted.
    pub traces: bool,
    /// The maximum memory in bytes for the samples that are kept whole; [`CONTEXT_MEMORY`](super::CONTEXT_MEMORY) is a
    /// good value. If they need more memory, all of them are shortened ([`Stacks::halvings`](super::Stacks::halvings)).
    /// `None` sets no limit.
    pub context_memory: Option<u64>,
    /// Whether samples are weighted by their period. The weight of a sample is then its period divided by the smallest
    /// period of its event, rounded to the nearest number. Periods differ if the kernel adapts them to a number of
    /// samples per second.
    pub by_period: bool,
}

/// The facts about an event that counting needs.
#[derive(Clone, Copy)]
struct EventPlan {
    /// Whether samples have an address.
    address: bool,
    /// Whether the branch stacks contain all taken branches.
    every_branch: bool,
    /// Whether the address of a sample may be after the instruction that caused the event.
    imprecise: bool,
    /// The smallest period of the event. A sample with this period counts once. 0 if every sample counts once, whatever
    /// its period is.
    period: u64,
}

impl EventPlan {
    /// Returns how often a sample counts: its period divided by the smallest period, rounded to the nearest number.
    fn weight(self, sample: &Sample<'_>) -> u64 {
        let Some(weight) = sample.period.checked_div(self.period) else {
            return 1;
        };
        let rest = sample.period % self.period;
        (weight + u64::from(rest >= self.period - rest)).max(1)
    }
}

/// The state of one thread that counts samples.
struct Thread {
    sums: ThreadSums,
    places: PlaceCache,
}

/// Returns the smallest period of each event among the selected samples. Samples without a period are ignored; the
/// result is 0 if no sample has a period.
fn smallest_periods(recording: &Recording<'_>, selected: Option<&Selected<'_>>) -> Vec<u64> {
    let smaller = |ours: &mut u64, theirs: u64| {
        if theirs != 0 && (*ours == 0 || theirs < *ours) {
            *ours = theirs;
        }
    };
    let (periods, _) = recording.samples(
        || vec![0; recording.events().len()],
        |periods, sample| {
            if selected.is_none_or(|selected| selected.has(recording, sample))
                && let Some(smallest) = periods.get_mut(sample.event)
            {
                smaller(smallest, sample.period);
            }
        },
        |periods, other| {
            for (ours, theirs) in periods.iter_mut().zip(other) {
                smaller(ours, theirs);
            }
        },
    );
    periods
}

/// Adds up the samples of a recording. Uses the threads of rayon's current pool. The result does not depend on the
/// number of threads.
pub fn collect(recording: &Recording<'_>, options: &CollectOptions) -> Counts {
    let processes = recording.processes();
    let selected = (!options.selection.is_all()).then(|| options.selection.of(recording));
    let periods = match options.by_period {
        true => smallest_periods(recording, selected.as_ref()),
        false => vec![0; recording.events().len()],
    };
    let events = recording.events().iter().zip(periods);
    let plans: Vec<EventPlan> = events
        .map(|(event, period)| EventPlan {
            address: event.attr.has(sample_type::IP),
            every_branch: event.attr.has_every_branch(),
            imprecise: event.attr.precision == 0,
            period,
        })
        .collect();
    let all_stacks = SharedStacks::new(options.context_memory);
    let (sum, losses) = recording.samples(
        || Thread {
            sums: ThreadSums::new(processes.binaries().len(), &all_stacks, options.traces),
            places: PlaceCache::default(),
        },
        |thread, sample| {
            if let Some(selected) = &selected
                && !selected.has(recording, sample)
            {
                thread.sums.losses.not_selected += 1;
                return;
            }
            if let Some(&plan) = plans.get(sample.event) {
                thread.take(processes, plan, sample, options);
            }
        },
        |thread, other| thread.sums.join(other.sums),
    );
    let mut table = sum.sums.into_table(processes.binaries());
    table.losses.recording.add_all(&losses);
    table.finish()
}

impl Thread {
    fn take(
        &mut self,
        processes: &Processes,
        plan: EventPlan,
        sample: &Sample<'_>,
        options: &CollectOptions,
    ) {
        let count_marked = options.count_marked;
        let (pid, time) = (sample.pid, sample.when());
        let count = plan.weight(sample);
        let places = &mut self.places;
        let losses = &mut self.sums.losses;
        increase(&mut losses.samples, count);
        if !sample.chain.is_empty() {
            increase(&mut losses.with_chain, count);
        }
        if plan.address {
            let in_kernel = sample.mode == Mode::Kernel;
            let place = places.locate(processes, in_kernel, pid, time, sample.address);
            if plan.imprecise {
                increase(&mut losses.imprecise, count);
            }
            self.sums.address(place, count);
        }
        let (mut wrong_path, mut not_taken) = (0u64, 0u64);
        let branches = sample.branches.iter().filter_map(|branch| {
            if !count_marked && branch.is_wrong_path() {
                increase(&mut wrong_path, count);
                return None;
            }
            if !count_marked && branch.is_not_taken() {
                increase(&mut not_taken, count);
                return None;
            }
            let from = places.locate(processes, false, pid, time, branch.from);
            let to = places.locate(processes, false, pid, time, branch.to);
            Some(PlacedBranch {
                from,
                to,
                mispredicted: branch.is_mispredicted(),
            })
        });
        if options.stacks && plan.every_branch && !sample.chain.is_empty() {
            let branches: Vec<_> = branches.collect();
            let branched = branches.iter().copied();
            self.sums.stack(branched, plan.every_branch, count);
            let chain = sample.chain.addresses().map(|(mode, address)| {
                places.locate(processes, mode == Mode::Kernel, pid, time, address)
            });
            self.sums.whole(chain, &branches, count);
        } else {
            self.sums.stack(branches, plan.every_branch, count);
        }
        increase(&mut self.sums.losses.wrong_path, wrong_path);
        increase(&mut self.sums.losses.not_taken, not_taken);
    }
}
