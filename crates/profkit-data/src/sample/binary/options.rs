/// How to write the encodings without sections. There is nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BinaryOptions {}

impl BinaryOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}
