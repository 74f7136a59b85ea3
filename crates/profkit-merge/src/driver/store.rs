//! A store for inputs that must be opened only once: a pipe, for example. If a front end looks at an input before the
//! merge, the store keeps its bytes in memory until the merge reads them.
use crate::Weight;
use profkit_data::detect::{FileKind, detect};
use profkit_files::{InputData, Inputs};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The largest number of bytes that the store keeps of inputs that can be opened again. Beyond this limit, such inputs
/// are opened again. With a limit of 64 MiB a merge of heap dumps needs twice the memory, and is not faster.
const MOST_KEPT: usize = 16 << 20;
/// Once the store keeps this many inputs, it keeps no further input that can be opened again. Mapped files need no
/// memory of the process, but the system limits the number of mappings.
const MOST_KEPT_INPUTS: usize = 4096;

/// A store that opens inputs, and keeps those that will be needed again. A front end can look at an input
/// ([`peek`](Self::peek)) to find out what it is; the merge then uses the same bytes. Inputs that cannot be opened
/// again (pipes, standard input) are kept until they are used. Of the other inputs at most 16 MiB are kept.
pub struct InputStore<'a> {
    inputs: &'a dyn Inputs,
    kept: Mutex<Kept<'a>>,
    /// The number of inputs in `kept`. It is usually 0; then the lock on `kept` is not needed.
    count: AtomicUsize,
}

#[derive(Default)]
struct Kept<'a> {
    data: BTreeMap<usize, InputData<'a>>,
    bytes: usize,
}

impl<'a> InputStore<'a> {
    /// Makes a store that has opened no input yet.
    pub fn new(inputs: &'a dyn Inputs) -> Self {
        InputStore {
            inputs,
            kept: Mutex::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// Opens an input, calls `look` with its bytes, and keeps the input until it is opened for the merge.
    ///
    /// # Errors
    /// If the input cannot be opened or read.
    pub fn peek<T>(&self, index: usize, look: impl FnOnce(&[u8]) -> T) -> io::Result<T> {
        let data = self.take(index, &mut Vec::new())?;
        let seen = look(data.as_ref());
        self.keep(index, data);
        Ok(seen)
    }

    /// Recognises the type of an input by its content.
    ///
    /// # Errors
    /// If the input cannot be opened or read.
    pub fn kind(&self, index: usize) -> io::Result<FileKind> {
        self.peek(index, detect)
    }

    pub(crate) fn take(&self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'a>> {
        match self.take_kept(index) {
            Some(data) => Ok(data),
            None => self.inputs.open(index, buffer),
        }
    }

    /// Takes an input that will stay open while all others are open too.
    pub(crate) fn take_to_hold(&self, index: usize) -> io::Result<InputData<'a>> {
        match self.take_kept(index) {
            Some(data) => Ok(data),
            None => self.inputs.hold(index),
        }
    }

    fn take_kept(&self, index: usize) -> Option<InputData<'a>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut kept = self.lock();
        let data = kept.data.remove(&index)?;
        kept.bytes -= self.counted(index, &data);
        self.count.store(kept.data.len(), Ordering::Release);
        Some(data)
    }

    /// If a limit is reached, the bytes are dropped instead, provided that the input can be opened again.
    pub(crate) fn keep(&self, index: usize, data: InputData<'a>) {
        let counted = self.counted(index, &data);
        let mut kept = self.lock();
        let bytes = kept.bytes.saturating_add(counted);
        let full = bytes > MOST_KEPT || kept.data.len() >= MOST_KEPT_INPUTS;
        if full && self.inputs.can_reopen(index) {
            return;
        }
        kept.bytes = bytes;
        kept.data.insert(index, data);
        self.count.store(kept.data.len(), Ordering::Release);
    }

    /// The number of bytes that count towards [`MOST_KEPT`]: 0 for an input that must always be kept.
    fn counted(&self, index: usize, data: &InputData<'_>) -> usize {
        if self.inputs.can_reopen(index) {
            data.held()
        } else {
            0
        }
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

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.inputs.id(index)
    }

    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        self.take(index, buffer)
    }

    fn hold(&self, index: usize) -> io::Result<InputData<'_>> {
        self.take_to_hold(index)
    }

    fn can_reopen(&self, index: usize) -> bool {
        self.inputs.can_reopen(index)
    }

    fn first_bytes(&self, index: usize, most: usize) -> io::Result<Vec<u8>> {
        if self.inputs.can_reopen(index) && !self.lock().data.contains_key(&index) {
            return self.inputs.first_bytes(index, most);
        }
        self.peek(index, |bytes| bytes.iter().take(most).copied().collect())
    }

    fn look_at(&self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.peek(index, look)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    /// Input 0 is a pipe, input 1 small, input 2 mapped. The files after that are larger than half of the limit.
    #[derive(Default)]
    struct Files {
        opened: [AtomicUsize; 5],
    }

    const PIPE: usize = 0;
    const SMALL: usize = 1;
    const MAPPED: usize = 2;
    const LARGE: usize = 3;
    const ALSO_LARGE: usize = 4;

    impl Files {
        fn opened(&self, index: usize) -> usize {
            self.opened[index].load(Ordering::SeqCst)
        }
    }

    impl Inputs for Files {
        fn len(&self) -> usize {
            self.opened.len()
        }

        fn name(&self, index: usize) -> Cow<'_, str> {
            index.to_string().into()
        }

        fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
            self.opened[index].fetch_add(1, Ordering::SeqCst);
            let capacity = match index {
                PIPE => MOST_KEPT + 1,
                SMALL => 8,
                MAPPED => return Ok(InputData::Owned(Box::new(b"mapped"))),
                _ => MOST_KEPT / 2 + 1,
            };
            let mut bytes = Vec::with_capacity(capacity);
            bytes.extend_from_slice(b"bytes");
            Ok(InputData::Buffer(bytes))
        }

        fn can_reopen(&self, index: usize) -> bool {
            index != PIPE
        }
    }

    fn take(store: &InputStore<'_>, index: usize) -> Vec<u8> {
        let data = store.take(index, &mut Vec::new()).unwrap();
        data.as_ref().to_vec()
    }

    #[test]
    fn what_was_looked_at_is_not_opened_again() {
        let files = Files::default();
        let store = InputStore::new(&files);
        for index in [PIPE, SMALL, MAPPED] {
            let len = store.peek(index, <[u8]>::len).unwrap();
            store.kind(index).unwrap();
            assert_eq!(take(&store, index).len(), len);
            assert_eq!(files.opened(index), 1, "input {index}");
        }
    }

    #[test]
    fn beyond_the_limit_files_are_opened_again_and_pipes_are_not() {
        let files = Files::default();
        let store = InputStore::new(&files);
        for index in [LARGE, ALSO_LARGE, PIPE, MAPPED] {
            store.peek(index, |_| ()).unwrap();
        }
        // A mapped file needs no memory of the process, so it is kept even if the limit for bytes is reached.
        for (index, times) in [(LARGE, 1), (ALSO_LARGE, 2), (PIPE, 1), (MAPPED, 1)] {
            take(&store, index);
            assert_eq!(files.opened(index), times, "input {index}");
        }
    }

    #[test]
    fn what_was_taken_makes_room_for_others() {
        let files = Files::default();
        let store = InputStore::new(&files);
        for index in [LARGE, ALSO_LARGE, LARGE, ALSO_LARGE] {
            store.peek(index, |_| ()).unwrap();
            take(&store, index);
        }
        assert_eq!((files.opened(LARGE), files.opened(ALSO_LARGE)), (2, 2));
    }
}
