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
