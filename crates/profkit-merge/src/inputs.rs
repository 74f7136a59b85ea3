//! Where the bytes of the inputs come from: memory, or files through [`files`](crate::files).
use crate::Weight;
use std::fmt;

/// The inputs of a merge, in the order in which the user named them.
pub trait Inputs: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that reports print, usually the path as typed.
    fn name(&self, index: usize) -> &str;

    /// How much the input counts.
    fn weight(&self, index: usize) -> Weight {
        let _ = index;
        Weight::ONE
    }

    /// The bytes of an input: mapped, owned, or read into `scratch`, which one thread passes again and again. An
    /// input may be loaded more than once and by any thread; what is loaded must be the same each time.
    ///
    /// # Errors
    /// Whatever opening or reading says; the input is then reported and left out.
    fn load<'s>(&'s self, index: usize, scratch: &'s mut Vec<u8>)
    -> std::io::Result<InputData<'s>>;
}

/// The bytes of one input.
pub enum InputData<'s> {
    /// In a buffer of the implementer or of the caller.
    Borrowed(&'s [u8]),
    /// In something that is given up after use, such as a memory map.
    Owned(Box<dyn AsRef<[u8]> + Send + Sync + 's>),
}

impl AsRef<[u8]> for InputData<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            InputData::Borrowed(bytes) => bytes,
            InputData::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl fmt::Debug for InputData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputData({} bytes)", self.as_ref().len())
    }
}

/// Inputs that lie in memory: `(name, weight, bytes)`.
impl<N: AsRef<str> + Sync, B: AsRef<[u8]> + Sync> Inputs for [(N, Weight, B)] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn name(&self, index: usize) -> &str {
        self.get(index).map_or("", |(name, ..)| name.as_ref())
    }

    fn weight(&self, index: usize) -> Weight {
        self.get(index)
            .map_or(Weight::ONE, |&(_, weight, _)| weight)
    }

    fn load<'s>(&'s self, index: usize, _: &'s mut Vec<u8>) -> std::io::Result<InputData<'s>> {
        match self.get(index) {
            Some((.., bytes)) => Ok(InputData::Borrowed(bytes.as_ref())),
            None => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}
