//! Where the bytes of the inputs come from: files, memory, or any other implementer of [`Inputs`].
use crate::Weight;
use std::borrow::Cow;
use std::fmt;
use std::io;

/// The inputs of a merge, in the order in which the user named them.
///
/// Slices and vectors of bytes, of `(name, bytes)` and of `(name, weight, bytes)` are inputs:
///
/// ```
/// use profkit_merge::{MergeOptions, merge_instr};
///
/// let runs: [&[u8]; 2] = [b"main\n1\n1\n5\n", b"main\n1\n1\n7\n"];
/// let merged = merge_instr(&runs[..], &MergeOptions::new())?;
/// assert_eq!(merged.report.totals.files_kept, 2);
/// # Ok::<(), profkit_merge::MergeError>(())
/// ```
pub trait Inputs: Sync {
    /// The number of inputs.
    fn len(&self) -> usize;

    /// Whether there are no inputs.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name that reports print, usually the path as typed.
    fn name(&self, index: usize) -> Cow<'_, str>;

    /// The factor that multiplies the counts of the input.
    fn weight(&self, index: usize) -> Weight {
        let _ = index;
        Weight::ONE
    }

    /// Opens an input: its bytes are mapped, borrowed, or read. An implementer that reads should use `buffer` (take it
    /// with `std::mem::take`, clear it, return it as [`InputData::Buffer`]): the driver passes the same buffer again
    /// for the next input.
    ///
    /// Any thread may call this. A merge opens an input once. It opens the input again only if
    /// [`can_reopen`](Self::can_reopen) allows this and keeping the bytes would need too much memory.
    ///
    /// # Errors
    /// The error of opening or reading the input. The merge reports it and leaves the input out.
    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>>;

    /// Whether the input can be opened a second time and has the same bytes then. False for pipes and standard input,
    /// whose bytes are kept as long as they may be needed.
    fn can_reopen(&self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// Calls `look` with the bytes of an input that will be opened again. An implementer whose inputs may be pipes
    /// keeps the bytes until then, as [`InputStore`](crate::InputStore) does.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn look_at(&self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        look(self.open(index, &mut Vec::new())?.as_ref());
        Ok(())
    }
}

/// The bytes of one input.
pub enum InputData<'s> {
    /// Memory that the implementer owns.
    Borrowed(&'s [u8]),
    /// Bytes that were read into a buffer: the one that [`Inputs::open`] was given, or a new one.
    Buffer(Vec<u8>),
    /// An object that is dropped after use, such as a memory map.
    Owned(Box<dyn AsRef<[u8]> + Send + Sync + 's>),
}

impl InputData<'_> {
    /// The number of bytes in memory that only this input needs.
    pub(crate) fn held(&self) -> usize {
        match self {
            InputData::Borrowed(_) | InputData::Owned(_) => 0,
            InputData::Buffer(bytes) => bytes.capacity(),
        }
    }
}

impl AsRef<[u8]> for InputData<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            InputData::Borrowed(bytes) => bytes,
            InputData::Buffer(bytes) => bytes,
            InputData::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl fmt::Debug for InputData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputData({} bytes)", self.as_ref().len())
    }
}

/// The methods of [`Inputs`], passed on to other inputs.
macro_rules! pass_on {
    ($self:ident => $inner:expr) => {
        fn len(&$self) -> usize {
            $inner.len()
        }

        fn name(&$self, index: usize) -> Cow<'_, str> {
            $inner.name(index)
        }

        fn weight(&$self, index: usize) -> Weight {
            $inner.weight(index)
        }

        fn open<'s>(&'s $self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
            $inner.open(index, buffer)
        }

        fn can_reopen(&$self, index: usize) -> bool {
            $inner.can_reopen(index)
        }

        fn look_at(&$self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
            $inner.look_at(index, look)
        }
    };
}

impl<I: Inputs + ?Sized> Inputs for &I {
    pass_on!(self => (**self));
}

/// One input in memory.
trait InMemory: Sync {
    fn name(&self) -> Option<&str> {
        None
    }

    fn weight(&self) -> Weight {
        Weight::ONE
    }

    fn bytes(&self) -> &[u8];
}

impl<N: AsRef<str> + Sync, B: AsRef<[u8]> + Sync> InMemory for (N, Weight, B) {
    fn name(&self) -> Option<&str> {
        Some(self.0.as_ref())
    }

    fn weight(&self) -> Weight {
        self.1
    }

    fn bytes(&self) -> &[u8] {
        self.2.as_ref()
    }
}

impl<N: AsRef<str> + Sync, B: AsRef<[u8]> + Sync> InMemory for (N, B) {
    fn name(&self) -> Option<&str> {
        Some(self.0.as_ref())
    }

    fn bytes(&self) -> &[u8] {
        self.1.as_ref()
    }
}

impl InMemory for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl InMemory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// Inputs in memory. Inputs without a name are called `input 1`, `input 2` and so on.
#[allow(
    private_bounds,
    reason = "the shapes of an input are listed at `Inputs`"
)]
impl<T: InMemory> Inputs for [T] {
    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        match self.get(index).and_then(InMemory::name) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("input {}", index + 1)),
        }
    }

    fn weight(&self, index: usize) -> Weight {
        self.get(index).map_or(Weight::ONE, InMemory::weight)
    }

    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        match self.get(index) {
            Some(input) => Ok(InputData::Borrowed(input.bytes())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// As the slice of its elements.
impl<T> Inputs for Vec<T>
where
    [T]: Inputs,
    T: Sync,
{
    pass_on!(self => self.as_slice());
}

/// As the slice of its elements.
impl<T, const N: usize> Inputs for [T; N]
where
    [T]: Inputs,
    T: Sync,
{
    pass_on!(self => self.as_slice());
}
