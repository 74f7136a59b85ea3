//! The pool of threads on which merges run.
use rayon::prelude::*;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

/// The number of threads that the user may ask for on any machine. More threads than cores make no merge faster.
const MOST_BEYOND_CORES: usize = 16;

/// A pool of threads, started when there is work for a second thread. Clones share the threads.
#[derive(Clone, Default)]
pub struct Threads {
    wanted: Option<NonZeroUsize>,
    pool: Arc<OnceLock<Option<rayon::ThreadPool>>>,
}

impl Threads {
    /// Makes a pool of the given number of threads, or of one thread per core.
    pub fn new(wanted: Option<NonZeroUsize>) -> Self {
        Threads {
            wanted,
            pool: Arc::default(),
        }
    }

    /// The number of threads that the caller asked for. `None` stands for one thread per core.
    pub fn wanted(&self) -> Option<NonZeroUsize> {
        self.wanted
    }

    /// The largest number of threads that work at the same time.
    pub fn count(&self) -> usize {
        let most = cores().max(MOST_BEYOND_CORES);
        self.wanted.map_or_else(cores, NonZeroUsize::get).min(most)
    }

    /// Calls `task` with each number below `tasks` on the threads. Returns the results in the order of the numbers.
    pub fn run<T: Send>(&self, tasks: usize, task: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
        self.map((0..tasks).collect(), task)
    }

    /// Calls `task` once with each item, on the threads of the pool. Returns the results in the order of the items.
    pub fn map<I: Send, T: Send>(
        &self,
        items: Vec<I>,
        task: impl Fn(I) -> T + Sync + Send,
    ) -> Vec<T> {
        let pool = match items.len() {
            0 | 1 => None,
            _ if self.count() == 1 => None,
            _ => self.pool(),
        };
        match pool {
            Some(pool) => pool.install(|| {
                let items = items.into_par_iter().with_max_len(1);
                items.map(task).collect()
            }),
            None => items.into_iter().map(task).collect(),
        }
    }

    /// Calls `work` so that parallel iterators of `rayon` in it use the threads of this pool.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self.pool() {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Returns the pool, or `None` if the system cannot start threads. The calling thread then does the work alone.
    fn pool(&self) -> Option<&rayon::ThreadPool> {
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(self.count())
                .build()
                .ok()
        };
        self.pool.get_or_init(start).as_ref()
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Threads").field(&self.wanted).finish()
    }
}

/// Determined only once, because on Linux this requires reading several files.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    #[test]
    fn tasks_come_back_in_order_and_run_on_no_more_threads_than_wanted() {
        for count in 1..=4 {
            let threads = Threads::new(NonZeroUsize::new(count));
            let seen = Mutex::new(HashSet::new());
            let done = threads.run(100, |number| {
                seen.lock().unwrap().insert(std::thread::current().id());
                number * 2
            });
            assert_eq!(done, (0..100).map(|number| number * 2).collect::<Vec<_>>());
            assert!(seen.lock().unwrap().len() <= count);
            assert_eq!(threads.install(rayon::current_num_threads), count);
        }
    }
}
