//! Call chains.
use profkit_data::bytes::Endian;

/// The mode of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The mode of the operating system's kernel.
    Kernel,
    /// The mode of programs.
    User,
    /// The mode of a hypervisor.
    Hypervisor,
    /// The mode of a kernel in a virtual machine.
    GuestKernel,
    /// The mode of a program in a virtual machine.
    GuestUser,
    /// The recording does not state the mode.
    Unknown,
}

impl Mode {
    /// Reads the mode from the flags of a record.
    pub(crate) fn of(misc: u16) -> Mode {
        match misc & 7 {
            1 => Mode::Kernel,
            2 => Mode::User,
            3 => Mode::Hypervisor,
            4 => Mode::GuestKernel,
            5 => Mode::GuestUser,
            _ => Mode::Unknown,
        }
    }

    /// Returns the name that messages use for this mode.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Kernel => "kernel",
            Mode::User => "programs",
            Mode::Hypervisor => "hypervisor",
            Mode::GuestKernel => "kernels of guests",
            Mode::GuestUser => "programs of guests",
            Mode::Unknown => "unknown",
        }
    }
}

/// The smallest value of an entry that is not an address. Such an entry states the mode of the entries after it.
const MARKERS: u64 = 0u64.wrapping_sub(4095);

/// A call chain. It consists of the address of the sample, and then of the return addresses from the innermost function
/// to the outermost.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallChain<'data> {
    words: &'data [[u8; 8]],
    big: bool,
}

impl<'data> CallChain<'data> {
    pub(crate) fn new(bytes: &'data [u8], endian: Endian) -> Self {
        CallChain {
            words: bytes.as_chunks().0,
            big: endian == Endian::Big,
        }
    }

    fn endian(&self) -> Endian {
        if self.big {
            Endian::Big
        } else {
            Endian::Little
        }
    }

    /// The number of entries, including those that state a mode.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether the call chain has no entry.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns all entries. They are addresses, and values that state the mode of the addresses after them.
    pub fn raw(self) -> impl Iterator<Item = u64> + 'data {
        let endian = self.endian();
        self.words.iter().map(move |&word| endian.u64(word))
    }

    /// Returns the addresses, each with its mode.
    pub fn addresses(self) -> impl Iterator<Item = (Mode, u64)> + 'data {
        let mut mode = Mode::Unknown;
        self.raw().filter_map(move |value| {
            if value < MARKERS {
                return Some((mode, value));
            }
            mode = match value.wrapping_neg() {
                32 => Mode::Hypervisor,
                128 => Mode::Kernel,
                512 | 640 => Mode::User,
                2176 => Mode::GuestKernel,
                2560 => Mode::GuestUser,
                _ => mode,
            };
            None
        })
    }
}
