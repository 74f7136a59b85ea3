//! Several inputs: files, bytes in memory, or any other implementer of [`Inputs`].
use crate::Weight;
use crate::input::MappedFile;
use profkit_data::stored::Front;
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;

/// The inputs of a merge, in the order in which the user named them.
///
/// A slice, an array or a vector of inputs in memory implements this trait if all its items have the same type, which
/// is one of these:
///
/// | item | name | weight |
/// |---|---|---|
/// | `&[u8]`, `Vec<u8>` | `input 1`, `input 2` and so on | 1 |
/// | `(N, B)`: for example `(&str, &[u8])`, `(String, Vec<u8>)` | `N: AsRef<str>` | 1 |
/// | `(N, Weight, B)`: for example `(&str, Weight, Vec<u8>)` | `N: AsRef<str>` | the [`Weight`] |
/// | [`Shard<B>`](Shard), which has an [`id`](Self::id) too | its `name` | its `weight` |
///
/// The bytes `B` are any `AsRef<[u8]>`. For files, [`InputList`](crate::InputList) implements this trait. For one
/// opened [`Input`](crate::Input), [`SingleInput`](crate::SingleInput) implements it.
///
/// ```
/// use profkit_files::Inputs;
///
/// let runs: [&[u8]; 2] = [b"main\n1\n1\n5\n", b"main\n1\n1\n7\n"];
/// assert_eq!(runs.name(1), "input 2");
/// assert_eq!(runs.open(1, &mut Vec::new())?.as_ref(), runs[1]);
///
/// let named = vec![("monday".to_owned(), runs[0].to_vec())];
/// assert_eq!(named.name(0), "monday");
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Inputs: Sync {
    /// The number of inputs of the merge.
    fn len(&self) -> usize;

    /// Whether the merge has no inputs.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of an input in reports, usually the path as the user typed it.
    fn name(&self, index: usize) -> Cow<'_, str>;

    /// The weight of an input: a factor that multiplies its counts.
    fn weight(&self, index: usize) -> Weight {
        let _ = index;
        Weight::ONE
    }

    /// What identifies an input wherever it is merged: two inputs with the same id are deliveries of one input. `None`
    /// if the implementer does not know: then no other input counts as the same.
    ///
    /// Only merges that do not depend on the order of inputs call this method.
    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        let _ = index;
        None
    }

    /// Opens an input and returns its bytes, which are mapped, borrowed, or read into a buffer. An implementer that
    /// reads the bytes should use `buffer`: take it with `std::mem::take`, clear it, fill it and return it as
    /// `InputData::Buffer`. The merge passes the same buffer again for the next input, so no new memory is needed.
    ///
    /// Any thread may call this method. A merge opens each input once. It opens an input a second time only if
    /// [`can_reopen`](Self::can_reopen) returns true and keeping the bytes would need too much memory.
    ///
    /// # Errors
    /// The error of opening or reading the input. The merge reports it and leaves the input out.
    fn open<'s>(&'s self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>>;

    /// Opens an input that stays open while all others are open too. An implementer whose inputs are files should map all
    /// but the smallest, because then the system can take back their memory.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    fn hold(&self, index: usize) -> io::Result<InputData<'_>> {
        self.open(index, &mut Vec::new())
    }

    /// Whether the input can be opened again with the same bytes, unlike a pipe, whose bytes the merge keeps in memory.
    fn can_reopen(&self, index: usize) -> bool {
        let _ = index;
        true
    }

    /// The first bytes of an input: `most`, or all. They are as they are stored: perhaps compressed. An implementer whose
    /// inputs are files should read no more.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    fn first_bytes(&self, index: usize, most: usize) -> io::Result<Vec<u8>> {
        let mut front = Vec::new();
        self.look_at(index, &mut |bytes| {
            front.extend(bytes.iter().take(most));
        })?;
        Ok(front)
    }

    /// Opens an input before the merge and calls `look` with its bytes. The merge will open the same input again. An
    /// implementer whose inputs may be pipes must therefore keep the bytes, as `InputStore` in profkit-merge does.
    ///
    /// # Errors
    /// The same as [`open`](Self::open).
    fn look_at(&self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        look(self.open(index, &mut Vec::new())?.as_ref());
        Ok(())
    }
}

/// The bytes of an input of a merge.
pub enum InputData<'s> {
    /// A slice of memory that the implementer of [`Inputs`] owns.
    Borrowed(&'s [u8]),
    /// A buffer with the bytes that were read: the buffer that was passed to [`Inputs::open`], or a new one.
    Buffer(Vec<u8>),
    /// A mapped file.
    Mapped(MappedFile),
    /// An object that owns the bytes and is dropped after the merge has used them.
    Owned(Box<dyn AsRef<[u8]> + Send + Sync + 's>),
    /// The first bytes of an input, and the reason why the others cannot be read, which the merge reports.
    Cut(Vec<u8>, String),
}

impl InputData<'_> {
    /// The reason why only the first bytes of the input are here; `None` if all its bytes are here.
    pub fn problem(&self) -> Option<&str> {
        match self {
            InputData::Cut(_, problem) => Some(problem),
            _ => None,
        }
    }

    /// Gives memory back to the system: that of bytes, counted from the start of the input, which the caller will not read
    /// soon. If they are read nevertheless, the system reads the file again. Nothing happens if the input is not mapped.
    pub fn release(&self, bytes: Range<u64>) {
        if let InputData::Mapped(file) = self
            && let (Ok(start), Ok(end)) = (usize::try_from(bytes.start), usize::try_from(bytes.end))
            && let Some(bytes) = file.as_ref().get(start..end)
        {
            file.release(bytes);
        }
    }

    /// The bytes of process memory that this input occupies. Mapped and borrowed bytes do not count.
    pub fn held(&self) -> usize {
        match self {
            InputData::Borrowed(_) | InputData::Mapped(_) | InputData::Owned(_) => 0,
            InputData::Buffer(bytes) | InputData::Cut(bytes, _) => bytes.capacity(),
        }
    }
}

impl<'s> From<Front<Cow<'s, [u8]>>> for InputData<'s> {
    fn from((bytes, problem): Front<Cow<'s, [u8]>>) -> Self {
        match (problem, bytes) {
            (Some(problem), bytes) => InputData::Cut(bytes.into_owned(), problem.to_string()),
            (None, Cow::Borrowed(bytes)) => InputData::Borrowed(bytes),
            (None, Cow::Owned(bytes)) => InputData::Buffer(bytes),
        }
    }
}

impl AsRef<[u8]> for InputData<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            InputData::Borrowed(bytes) => bytes,
            InputData::Buffer(bytes) | InputData::Cut(bytes, _) => bytes,
            InputData::Mapped(file) => file.as_ref(),
            InputData::Owned(owner) => (**owner).as_ref(),
        }
    }
}

impl fmt::Debug for InputData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputData({} bytes)", self.as_ref().len())
    }
}

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

        fn id(&$self, index: usize) -> Option<Cow<'_, str>> {
            $inner.id(index)
        }

        fn open<'s>(&'s $self, index: usize, buffer: &mut Vec<u8>) -> io::Result<InputData<'s>> {
            $inner.open(index, buffer)
        }

        fn hold(&$self, index: usize) -> io::Result<InputData<'_>> {
            $inner.hold(index)
        }

        fn can_reopen(&$self, index: usize) -> bool {
            $inner.can_reopen(index)
        }

        fn first_bytes(&$self, index: usize, most: usize) -> io::Result<Vec<u8>> {
            $inner.first_bytes(index, most)
        }

        fn look_at(&$self, index: usize, look: &mut dyn FnMut(&[u8])) -> io::Result<()> {
            $inner.look_at(index, look)
        }
    };
}

impl<I: Inputs + ?Sized> Inputs for &I {
    pass_on!(self => (**self));
}

trait InMemory: Sync {
    fn name(&self) -> Option<&str> {
        None
    }

    fn weight(&self) -> Weight {
        Weight::ONE
    }

    fn id(&self) -> Option<&str> {
        None
    }

    fn bytes(&self) -> &[u8];
}

/// An input in memory with an id ([`Inputs::id`]).
#[derive(Clone, Debug)]
pub struct Shard<B> {
    /// What identifies the input, wherever and how often it is delivered: the address of an object, for example.
    pub id: String,
    /// The name of the input in reports.
    pub name: String,
    /// The factor that multiplies its counts.
    pub weight: Weight,
    /// The bytes of a profile, or of a part of a merge.
    pub bytes: B,
}

impl<B: AsRef<[u8]> + Sync> InMemory for Shard<B> {
    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn weight(&self) -> Weight {
        self.weight
    }

    fn id(&self) -> Option<&str> {
        Some(&self.id)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }
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

#[allow(
    private_bounds,
    reason = "the forms of an input are described at `Inputs`"
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

    fn id(&self, index: usize) -> Option<Cow<'_, str>> {
        self.get(index).and_then(InMemory::id).map(Cow::Borrowed)
    }

    fn open<'s>(&'s self, index: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        match self.get(index) {
            Some(input) => Ok(InputData::Borrowed(input.bytes())),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl<T> Inputs for Vec<T>
where
    [T]: Inputs,
    T: Sync,
{
    pass_on!(self => self.as_slice());
}

impl<T, const N: usize> Inputs for [T; N]
where
    [T]: Inputs,
    T: Sync,
{
    pass_on!(self => self.as_slice());
}
