//! Inputs that are opened once: what was looked at is kept until somebody needs it.
use crate::inputs::{InputData, Inputs};
use crate::weight::Weight;
use profkit_data::detect::{FileKind, detect};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of memory that are kept for inputs that can be opened again. Those beyond it are opened again.
const MOST_KEPT: usize = 64 << 20;
/// The most inputs that are kept if they can be opened again: mapped files take no memory of the process, but the system
/// has room for so many mappings only.
const MOST_KEPT_INPUTS: usize = 4096;

/// Inputs of which each is opened once: a front end looks at some ([`peek`](Self::peek)) to know what they are, and the
/// merge then gets what was opened. Inputs that cannot be opened again (pipes, standard input) stay here as
/// long as they are needed; of others no more than 64 MiB.
pub struct InputStore<'a> {
    inputs: &'a dyn Inputs,
    kept: Mutex<Kept<'a>>,
    /// How many inputs `kept` has: most merges keep none, and need not ask for the lock.
    count: AtomicUsize,
}

#[derive(Default)]
struct Kept<'a> {
    data: BTreeMap<usize, InputData<'a>>,
    bytes: usize,
}

impl<'a> InputStore<'a> {
    /// Inputs of which none was opened yet.
    pub fn new(inputs: &'a dyn Inputs) -> Self {
        InputStore {
            inputs,
            kept: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Looks at an input, and keeps it open for whoever opens it next.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn peek<T>(&self, index: usize, look: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        let data = self.take(index, &mut Vec::new())?;
        let seen = look(data.as_ref());
        self.keep(index, data);
        Ok(seen)
    }

    /// What an input is, by its content.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn kind(&self, index: usize) -> io::Result<FileKind> {
        self.peek(index, detect)
    }

    /// Opens an input, or takes it if it was kept.
    pub(crate) fn take(&self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'a>> {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut kept = self.lock();
            if let Some(data) = kept.data.remove(&index) {
                kept.bytes -= data.held();
                self.count.store(kept.data.len(), Ordering::Release);
                return Ok(data);
            }
        }
        self.inputs.open(index, buffer)
    }

    /// Keeps an input that will be needed again. One that can be opened again is given up if there is no room.
    pub(crate) fn keep(&self, index: usize, data: InputData<'a>) {
        let can_reopen = self.inputs.can_reopen(index);
        let held = data.held();
        let mut kept = self.lock();
        let full =
            kept.bytes.saturating_add(held) > MOST_KEPT || kept.data.len() >= MOST_KEPT_INPUTS;
        if can_reopen && full {
            return;
        }
        kept.bytes = kept.bytes.saturating_add(held);
        kept.data.insert(index, data);
        self.count.store(kept.data.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Kept<'a>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inputs for InputStore<'_> {
    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.inputs.name(index)
    }

    fn weight(&self, index: usize) -> Weight {
        self.inputs.weight(index)
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.take(index, buffer)
    }

    fn can_reopen(&self, index: usize) -> bool {
        self.inputs.can_reopen(index)
    }
}

impl fmt::Debug for InputStore<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputStore")
            .field("inputs", &self.inputs.len())
            .field("kept", &self.count)
            .finish()
    }
}
