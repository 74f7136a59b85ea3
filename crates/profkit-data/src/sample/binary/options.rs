/// Options for writing the binary and compact binary encodings. There are no options yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinaryOptions {}

impl BinaryOptions {
    /// Makes the default options.
    pub fn new() -> Self {
        Self::default()
    }
}
