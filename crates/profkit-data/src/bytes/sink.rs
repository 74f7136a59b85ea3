use crate::Result;

/// Where a writer puts its bytes. Writers plan sizes first, so a sink never seeks.
pub trait Sink {
    /// Takes all of the bytes.
    ///
    /// # Errors
    /// [`ErrorKind::WriteFailed`](crate::ErrorKind::WriteFailed) if the bytes cannot be taken.
    fn put(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Checks that a part of a file has the length that was planned for it.
///
/// # Panics
/// If it has not: the offsets of what comes after it would be wrong, and a wrong file is worse than none.
#[track_caller]
pub fn assert_planned(part: &str, planned: u64, written: u64) {
    assert!(
        written == planned,
        "{part}: {planned} bytes were planned, and {written} were written"
    );
}

#[cfg(test)]
mod tests {
    use super::assert_planned;

    #[test]
    #[should_panic(expected = "names: 4 bytes were planned, and 5 were written")]
    fn another_length_than_planned_panics() {
        assert_planned("names", 4, 5);
    }
}
