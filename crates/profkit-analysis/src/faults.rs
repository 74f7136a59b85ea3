//! The errors of one file. Only the first ones are kept.
use profkit_data::Error;

/// The first errors that were found in one file, and the number of all its errors.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The first errors.
    pub first: Vec<Error>,
    /// The number of all errors, including those that are not kept.
    pub count: u64,
}

/// The largest number of errors of one file that are kept. The first errors usually explain the later ones. A larger
/// number makes the reports of damaged files longer.
const MOST_KEPT: usize = 10;

impl Faults {
    /// Adds an error.
    pub fn push(&mut self, error: Error) {
        self.count += 1;
        if self.first.len() < MOST_KEPT {
            self.first.push(error);
        }
    }

    /// Adds an error before all errors found so far, because the added error explains them.
    pub fn push_first(&mut self, error: Error) {
        self.count += 1;
        self.first.insert(0, error);
        self.first.truncate(MOST_KEPT);
    }

    /// The number of errors that were counted but not kept.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.count.saturating_sub(self.first.len() as u64)
    }

    /// Returns the value of a successful read. After a failed read, adds the error and returns `None`.
    pub fn or_none<T>(&mut self, result: profkit_data::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Returns the value of a successful read. After a failed read, adds the error and returns an empty value.
    pub fn or_default<T: Default>(&mut self, result: profkit_data::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.push(error);
            T::default()
        })
    }
}
