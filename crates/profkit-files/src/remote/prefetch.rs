//! Reads the next objects of a list while the current ones are merged.
use super::Object;
use super::store::{Fetched, REQUESTS, fetch, runtime};
use crate::InputData;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// The number of bytes that may be there and not taken yet.
const BUDGET: u64 = 256 << 20;

/// The objects of a list, which are taken roughly in its order.
pub(crate) struct Prefetch {
    objects: Vec<Object>,
    numbers: HashMap<String, usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The first object that was not asked for yet.
    next: usize,
    /// What was asked for and not taken.
    ahead: HashMap<usize, JoinHandle<io::Result<Fetched>>>,
    /// The sizes of these objects together.
    bytes: u64,
    /// Why objects could not be read. Who asks again gets the same answer, and does not wait for it again.
    failed: HashMap<usize, (io::ErrorKind, String)>,
}

impl Prefetch {
    pub fn new(objects: Vec<Object>) -> Self {
        let numbered = objects.iter().enumerate();
        Prefetch {
            numbers: numbered
                .map(|(number, object)| (object.uri.clone(), number))
                .collect(),
            objects,
            state: Mutex::default(),
        }
    }

    /// The bytes of an object, and the requests for those after it. Who takes out of order waits for a request of its
    /// own.
    pub fn take(&self, object: &Object) -> io::Result<InputData<'static>> {
        let runtime = runtime()?;
        let index = self.numbers.get(&object.uri).copied().unwrap_or_default();
        let asked = {
            let mut state = self.lock();
            if let Some((kind, text)) = state.failed.get(&index) {
                return Err(io::Error::new(*kind, text.clone()));
            }
            let asked = state.ahead.remove(&index);
            if asked.is_some() {
                state.bytes -= object.size;
            } else {
                state.next = state.next.max(index + 1);
            }
            while state.ahead.len() < REQUESTS
                && let Some(next) = self.objects.get(state.next)
                && (state.ahead.is_empty() || state.bytes + next.size <= BUDGET)
            {
                let number = state.next;
                let request = runtime.spawn(fetch(next.clone(), None));
                state.ahead.insert(number, request);
                state.bytes += next.size;
                state.next += 1;
            }
            asked
        };
        let fetched = match asked {
            Some(request) => runtime.block_on(request).map_err(io::Error::other)?,
            None => runtime.block_on(fetch(object.clone(), None)),
        };
        match fetched {
            Ok(fetched) => fetched.data(),
            Err(error) => {
                let known = (error.kind(), error.to_string());
                self.lock().failed.insert(index, known);
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        for (_, request) in self.lock().ahead.drain() {
            request.abort();
        }
    }
}

impl fmt::Debug for Prefetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prefetch of {} objects", self.objects.len())
    }
}
