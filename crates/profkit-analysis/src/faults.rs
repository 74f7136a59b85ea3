//! Errors of one file, of which only the first are kept.
use profkit_data::Error;

/// What is wrong with a file: the first errors, and how many there are.
#[derive(Debug, Default)]
pub struct Faults {
    /// The first errors.
    pub first: Vec<Error>,
    /// How many errors there are.
    pub count: u64,
}

/// How many errors are kept: the first ones explain the others.
const MOST_KEPT: usize = 10;

impl Faults {
    /// Adds an error.
    pub fn push(&mut self, error: Error) {
        self.count += 1;
        if self.first.len() < MOST_KEPT {
            self.first.push(error);
        }
    }

    /// How many there are beside the first ones.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.count.saturating_sub(self.first.len() as u64)
    }

    /// The value, or an empty one if it could not be read, which is added as a fault.
    pub fn or_default<T: Default>(&mut self, result: profkit_data::Result<T>) -> T {
        result.unwrap_or_else(|error| {
            self.push(error);
            T::default()
        })
    }
}
