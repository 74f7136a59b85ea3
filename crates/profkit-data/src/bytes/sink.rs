use crate::Result;

/// A destination for the bytes of a writer. A sink does not need to seek, because writers compute all sizes before they
/// write.
pub trait Sink {
    /// Writes all of the given bytes.
    ///
    /// # Errors
    /// [`ErrorKind::WriteFailed`](crate::ErrorKind::WriteFailed) if the bytes cannot be written.
    fn put(&mut self, bytes: &[u8]) -> Result<()>;
}

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Checks that a part of a file has its planned length.
///
/// # Panics
/// If the length differs. The offsets of everything after this part would be wrong, and a wrong file is worse than no
/// file.
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
