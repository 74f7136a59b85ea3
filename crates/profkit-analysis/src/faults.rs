//! The errors of one file. Only the first ones are kept.
use profkit_data::Error;

/// The errors of a file: the first of them, and their number.
#[derive(Debug, Default)]
pub struct Faults {
    /// The first errors.
    pub first: Vec<Error>,
    /// How many errors there are.
    pub count: u64,
}

/// How many errors are kept. The first errors usually explain the others. Raising it makes reports of damaged files
/// longer.
const MOST_KEPT: usize = 10;

impl Faults {
    /// Adds an error.
    pub fn push(&mut self, error: Error) {
        self.count += 1;
        if self.first.len() < MOST_KEPT {
            self.first.push(error);
        }
    }

    /// The number of errors that are not kept.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.count.saturating_sub(self.first.len() as u64)
    }

    /// Returns the value. If it could not be read, the error is added, and an empty value is returned.
    pub fn or_default<T: Default>(&mut self, result: profkit_data::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.push(error);
            T::default()
        })
    }
}
