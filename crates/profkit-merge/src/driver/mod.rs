//! The driver of all merges. It opens inputs, distributes them to workers on a pool of threads, joins the results of
//! the workers, and collects the report. An implementer of [`MergeKind`] defines what a worker does with an input.
mod store;
mod threads;

pub use store::InputStore;
pub use threads::Threads;

use crate::error::Members;
use crate::report::{
    Action, Event, EventLog, MismatchSums, Reason, Report, SharedFunctions, Totals,
};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::sound_family;
use profkit_data::stored::StoredError;
use profkit_files::{InputData, Inputs};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A receiver of the progress of a merge.
pub trait Progress: Send + Sync {
    /// Called once for each input, after the input was merged or rejected. Any thread may make the call.
    fn input_done(&self, index: usize);

    /// Called when an input was opened, with its kind and size. Any thread may make the call.
    fn input_opened(&self, index: usize, kind: FileKind, bytes: u64) {
        let _ = (index, kind, bytes);
    }
}

/// Options that every kind of merge has: threads, progress, cancelling. They do not change the result.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The threads that the merge runs on.
    pub threads: Threads,
    /// The receiver of the progress, which is called for each input that is done. `None` if nothing is to be called.
    pub progress: Option<Arc<dyn Progress>>,
    /// Once this flag is true, the merge ends with an error before the next input.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl RunOptions {
    /// The defaults: one thread per core, no progress, no cancelling.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        threads: Threads,
    }

    /// Sets the receiver of progress.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Sets the flag that cancels the merge.
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = Some(cancel);
        self
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("threads", &self.threads)
            .field("progress", &self.progress.is_some())
            .field("cancel", &self.cancel)
            .finish()
    }
}

/// The error of a merge that was cancelled by the flag [`RunOptions::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the merge was cancelled")
    }
}

impl std::error::Error for Cancelled {}

pub(crate) trait MergeKind: Sync {
    type Worker: Send;
    type Error: From<Cancelled> + Send;

    fn schedule(&self) -> Schedule;

    fn worker(&self) -> Self::Worker;

    fn log(&self) -> EventLog {
        EventLog::default()
    }

    fn take(
        &self,
        worker: &mut Self::Worker,
        input: &OpenedInput<'_>,
        part: &mut ReportPart,
    ) -> Outcome;

    /// Whether an input was met because of which all inputs will be merged in another way, so that the others need not be
    /// read now.
    fn is_over(&self) -> bool {
        false
    }

    fn unreadable(
        &self,
        worker: &mut Self::Worker,
        index: usize,
        error: io::Error,
        part: &mut ReportPart,
    ) {
        let _ = worker;
        part.count_unreadable();
        part.log.push(unreadable(index, &error));
    }

    /// Called when a worker has read all of its inputs. With [`Schedule::Shared`] it must return [`Next::Join`],
    /// because the inputs of a worker are not known afterwards.
    fn taken_all(&self, worker: &mut Self::Worker, part: &mut ReportPart) -> Next {
        let _ = (worker, part);
        Next::Join
    }

    /// Called once, before the workers are joined. Returns the workers whose inputs must be read again.
    fn before_join(&self, workers: &mut [Done<Self>]) -> Vec<usize>
    where
        Self: Sized,
    {
        let _ = workers;
        Vec::new()
    }

    /// The worker that reads inputs again, if [`taken_all`](Self::taken_all) or [`before_join`](Self::before_join) asks
    /// for it.
    fn worker_again(&self) -> Self::Worker {
        self.worker()
    }

    /// Unless the schedule is [`Schedule::Shared`], the inputs of `later` come after those of `into`.
    fn join(
        &self,
        into: (&mut Self::Worker, &mut ReportPart),
        later: (Self::Worker, ReportPart),
    ) -> Result<(), Self::Error>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// Whenever a worker is free, it gets the next few inputs. For sums that do not depend on the order of inputs.
    Shared {
        batch: usize,
    },
    Ranges {
        at_least: usize,
    },
    /// As LLVM deals inputs to its writers, even with fewer threads than writers, and joins them: the upper half of the
    /// workers is added to the lower half, again and again.
    InTurn {
        /// The number of writers that LLVM's tool would have, one for each of its threads.
        writers: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Join,
    TakeAgain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Kept,
    Repaired,
    Dropped,
    Empty,
    Pending,
    Counted,
}

#[derive(Debug)]
pub(crate) struct OpenedInput<'i> {
    pub(crate) index: usize,
    pub(crate) kind: FileKind,
    data: InputData<'i>,
    keep: Cell<bool>,
}

impl<'i> OpenedInput<'i> {
    pub(crate) fn new(index: usize, data: InputData<'i>) -> Self {
        OpenedInput {
            index,
            kind: detect(data.as_ref()),
            data,
            keep: Cell::new(false),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.data.as_ref()
    }

    /// Asks the driver to keep the bytes of this input, because the input will be read again.
    pub(crate) fn keep_open(&self) {
        self.keep.set(true);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReportPart {
    pub(crate) log: EventLog,
    pub(crate) totals: Totals,
    /// The inputs by family. Inputs from which nothing can be read are left out.
    pub(crate) families: BTreeMap<Family, Members>,
    /// What the programs of the inputs have in common; filled at the end of the merge.
    pub(crate) shared: SharedFunctions,
    /// Which records contradict each other; filled at the end of the merge.
    pub(crate) mismatched: MismatchSums,
}

impl ReportPart {
    pub(crate) fn new(log: EventLog) -> Self {
        ReportPart {
            log,
            ..Self::default()
        }
    }

    pub(crate) fn count(&mut self, outcome: Outcome, input: &OpenedInput<'_>) {
        let outcome = match &input.data {
            InputData::Cut(_, problem) => self.cut(outcome, input.index, problem),
            _ => outcome,
        };
        let totals = &mut self.totals;
        *match outcome {
            Outcome::Kept => &mut totals.files_kept,
            Outcome::Repaired => &mut totals.files_repaired,
            Outcome::Dropped => &mut totals.files_dropped,
            Outcome::Empty => &mut totals.files_empty,
            Outcome::Pending | Outcome::Counted => return,
        } += 1;
        totals.files += 1;
        totals.bytes = totals.bytes.saturating_add(input.bytes().len() as u64);
        let family = match outcome {
            Outcome::Kept | Outcome::Repaired => input.kind.family(),
            _ => sound_family(input.bytes()),
        };
        if let Some(family) = family {
            self.families.entry(family).or_default().add(input.index);
        }
    }

    /// Reports an input of which only the first bytes can be read. Returns the outcome of the whole input.
    fn cut(&mut self, outcome: Outcome, index: usize, problem: &str) -> Outcome {
        let (action, outcome) = match outcome {
            Outcome::Pending | Outcome::Counted => return outcome,
            Outcome::Kept | Outcome::Repaired => (Action::Repaired, Outcome::Repaired),
            Outcome::Dropped | Outcome::Empty => (Action::Dropped, Outcome::Dropped),
        };
        let event = Event::new(index, action, Reason::Truncated, problem);
        self.log.push_first(event.hint(
            "the compressed file or archive is cut off: copy it again, or give the original files",
        ));
        outcome
    }

    pub(crate) fn count_unreadable(&mut self) {
        self.totals.files += 1;
        self.totals.files_dropped += 1;
    }

    /// A fault was found after the input had been counted as kept.
    pub(crate) fn repaired_after_all(&mut self) {
        if self.totals.files_kept > 0 {
            self.totals.files_kept -= 1;
            self.totals.files_repaired += 1;
        }
    }

    pub(crate) fn absorb(&mut self, other: ReportPart) {
        self.log.absorb(other.log);
        self.totals.absorb(&other.totals);
        for (family, members) in &other.families {
            self.families.entry(*family).or_default().absorb(members);
        }
    }

    pub(crate) fn finish(self, inputs: &dyn Inputs) -> Report {
        let (mut events, omitted) = self.log.finish();
        name_inputs(&mut events, inputs);
        Report {
            events,
            omitted,
            totals: self.totals,
            shared: Some(self.shared).filter(|shared| shared.functions > 0),
            mismatched: self.mismatched.finish(inputs),
            ..Report::new()
        }
    }
}

pub(crate) fn name_inputs(events: &mut [Event], inputs: &dyn Inputs) {
    for event in events {
        if event.input < inputs.len() {
            event.file = inputs.name(event.input).into_owned();
        }
    }
}

pub(crate) fn unreadable(index: usize, error: &io::Error) -> Event {
    let text = crate::files::system_text(error);
    let message = format!("cannot be read: {text}");
    let event = Event::new(index, Action::Dropped, Reason::Unreadable, message);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    match cause.map(StoredError::hint) {
        Some(hint) => event.hint(hint),
        None => event,
    }
}

pub(crate) type Done<K> = (<K as MergeKind>::Worker, ReportPart);

pub(crate) struct Driver<'a> {
    pub(crate) inputs: InputStore<'a>,
    pub(crate) run: &'a RunOptions,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(inputs: &'a dyn Inputs, run: &'a RunOptions) -> Self {
        Driver {
            inputs: InputStore::new(inputs),
            run,
        }
    }

    pub(crate) fn open(&self, index: usize, buffer: &mut Vec<u8>) -> io::Result<OpenedInput<'a>> {
        let opened = OpenedInput::new(index, self.inputs.take(index, buffer)?);
        if let Some(progress) = &self.run.progress {
            progress.input_opened(index, opened.kind, opened.bytes().len() as u64);
        }
        Ok(opened)
    }

    /// Keeps the bytes if [`OpenedInput::keep_open`] was called. Otherwise their buffer is reused.
    pub(crate) fn close(&self, input: OpenedInput<'a>, buffer: &mut Vec<u8>) {
        match input.data {
            data if input.keep.get() => self.inputs.keep(input.index, data),
            InputData::Buffer(bytes) => *buffer = bytes,
            InputData::Borrowed(_)
            | InputData::Mapped(_)
            | InputData::Owned(_)
            | InputData::Cut(..) => {}
        }
    }

    pub(crate) fn merge<K: MergeKind>(
        &self,
        kind: &K,
        indexes: &[usize],
    ) -> Result<Done<K>, K::Error> {
        let workers = self.work(kind, indexes)?;
        self.join(kind, workers)
    }

    pub(crate) fn work<K: MergeKind>(
        &self,
        kind: &K,
        indexes: &[usize],
    ) -> Result<Vec<Done<K>>, Cancelled> {
        let dealer = Dealer::new(kind.schedule(), indexes.len(), self.run.threads.count());
        let done = self.run.threads.run(dealer.workers, |number| {
            let (worker, part) =
                self.take_all(kind, kind.worker(), indexes, (&dealer, number), true)?;
            self.again_if_asked(kind, indexes, (&dealer, number), (worker, part))
        });
        let mut done = done.into_iter().collect::<Result<Vec<_>, Cancelled>>()?;
        let again = kind.before_join(&mut done);
        let redone = self.run.threads.map(again, |number| {
            let worker = kind.worker_again();
            let done = self.take_all(kind, worker, indexes, (&dealer, number), false)?;
            Ok((number, done))
        });
        for redone in redone {
            let (number, redone) = redone?;
            if let Some(place) = done.get_mut(number) {
                *place = redone;
            }
        }
        Ok(done)
    }

    fn again_if_asked<K: MergeKind>(
        &self,
        kind: &K,
        indexes: &[usize],
        place: (&Dealer, usize),
        (mut worker, mut part): Done<K>,
    ) -> Result<Done<K>, Cancelled> {
        match kind.taken_all(&mut worker, &mut part) {
            Next::Join => Ok((worker, part)),
            Next::TakeAgain => {
                drop((worker, part));
                let (mut worker, mut part) =
                    self.take_all(kind, kind.worker_again(), indexes, place, false)?;
                kind.taken_all(&mut worker, &mut part);
                Ok((worker, part))
            }
        }
    }

    fn take_all<K: MergeKind>(
        &self,
        kind: &K,
        mut worker: K::Worker,
        indexes: &[usize],
        (dealer, number): (&Dealer, usize),
        is_first_time: bool,
    ) -> Result<Done<K>, Cancelled> {
        let mut buffer = Vec::new();
        let mut part = ReportPart::new(kind.log());
        for turn in 0.. {
            let dealt = indexes.get(dealer.deal(number, turn)).unwrap_or_default();
            if dealt.is_empty() {
                break;
            }
            for &index in dealt {
                if kind.is_over() {
                    return Ok((worker, part));
                }
                let outcome = self.take(kind, &mut worker, &mut part, index, &mut buffer)?;
                if is_first_time {
                    self.progress(index, outcome);
                }
            }
        }
        Ok((worker, part))
    }

    pub(crate) fn take<K: MergeKind>(
        &self,
        kind: &K,
        worker: &mut K::Worker,
        part: &mut ReportPart,
        index: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Outcome, Cancelled> {
        self.check_cancelled()?;
        let input = match self.open(index, buffer) {
            Ok(input) => input,
            Err(error) => {
                kind.unreadable(worker, index, error, part);
                return Ok(Outcome::Dropped);
            }
        };
        let outcome = kind.take(worker, &input, part);
        part.count(outcome, &input);
        let may_take_again = matches!(kind.schedule(), Schedule::InTurn { .. });
        if outcome == Outcome::Pending || may_take_again && !self.inputs.can_reopen(index) {
            input.keep_open();
        }
        self.close(input, buffer);
        Ok(outcome)
    }

    pub(crate) fn check_cancelled(&self) -> Result<(), Cancelled> {
        let cancel = self.run.cancel.as_ref();
        if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Cancelled);
        }
        Ok(())
    }

    pub(crate) fn progress(&self, index: usize, outcome: Outcome) {
        if outcome != Outcome::Pending
            && let Some(progress) = &self.run.progress
        {
            progress.input_done(index);
        }
    }

    pub(crate) fn join<K: MergeKind>(
        &self,
        kind: &K,
        workers: Vec<Done<K>>,
    ) -> Result<Done<K>, K::Error> {
        let mut workers: Vec<_> = workers.into_iter().map(Some).collect();
        let (Schedule::Shared { .. } | Schedule::Ranges { .. }) = kind.schedule() else {
            join_halves(kind, &mut workers)?;
            let first = workers.into_iter().next().flatten();
            return Ok(first.unwrap_or_else(|| (kind.worker(), ReportPart::new(kind.log()))));
        };
        let mut workers = workers.into_iter().flatten();
        let (mut worker, mut part) = match workers.next() {
            Some(first) => first,
            None => (kind.worker(), ReportPart::new(kind.log())),
        };
        for later in workers {
            kind.join((&mut worker, &mut part), later)?;
        }
        Ok((worker, part))
    }
}

/// LLVM may have more writers than there are workers; the additional writers have no inputs and are empty.
fn join_halves<K: MergeKind>(kind: &K, workers: &mut [Option<Done<K>>]) -> Result<(), K::Error> {
    let Schedule::InTurn { writers } = kind.schedule() else {
        return Ok(());
    };
    for (into, from) in join_order(writers, workers.len()) {
        let from = workers.get_mut(from).and_then(Option::take);
        if let (Some(from), Some(Some((worker, part)))) = (from, workers.get_mut(into)) {
            kind.join((worker, part), from)?;
        }
    }
    Ok(())
}

/// The order in which LLVM joins its writers, of which only the first `workers` have inputs: pairs of a writer and the one
/// that is added to it.
pub(crate) fn join_order(writers: usize, workers: usize) -> Vec<(usize, usize)> {
    let mut order = Vec::new();
    let mut end = writers;
    let mut middle = end / 2;
    while middle > 0 {
        let odd = (end % 2 == 1).then_some((0, end - 1));
        let low_half = 0..middle.min(workers);
        let pairs = low_half.map(|low| (low, low + middle)).chain(odd);
        order.extend(pairs.filter(|&(_, from)| from < workers));
        end = middle;
        middle /= 2;
    }
    order
}

struct Dealer {
    schedule: Schedule,
    inputs: usize,
    workers: usize,
    next: AtomicUsize,
}

impl Dealer {
    fn new(schedule: Schedule, inputs: usize, threads: usize) -> Self {
        let workers = match schedule {
            Schedule::Shared { batch } => threads.min(inputs.div_ceil(batch)),
            Schedule::Ranges { at_least } => threads.min(inputs.div_ceil(at_least)),
            Schedule::InTurn { writers } => writers.min(inputs),
        };
        Dealer {
            schedule,
            inputs,
            workers: workers.max(1),
            next: AtomicUsize::new(0),
        }
    }

    fn deal(&self, worker: usize, turn: usize) -> Range<usize> {
        let inputs = self.inputs;
        match self.schedule {
            Schedule::Shared { batch } => {
                let start = self.next.fetch_add(batch, Ordering::Relaxed).min(inputs);
                start..(start + batch).min(inputs)
            }
            Schedule::Ranges { .. } if turn == 0 => {
                inputs * worker / self.workers..inputs * (worker + 1) / self.workers
            }
            Schedule::Ranges { .. } => 0..0,
            Schedule::InTurn { writers } => {
                let input = writers.saturating_mul(turn).saturating_add(worker);
                input.min(inputs)..input.saturating_add(1).min(inputs)
            }
        }
    }
}
