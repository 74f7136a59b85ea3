//! Call chains.
use profkit_data::bytes::Endian;

/// In which mode a processor was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The kernel of the machine.
    Kernel,
    /// A program.
    User,
    /// The hypervisor.
    Hypervisor,
    /// The kernel of a guest.
    GuestKernel,
    /// A program of a guest.
    GuestUser,
    /// The recording does not say.
    Unknown,
}

impl Mode {
    /// The mode in the flags of a record.
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

    /// A name for the mode, for people.
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

/// Values from here on are no addresses: they say in which mode the following addresses are.
const MARKERS: u64 = 0u64.wrapping_sub(4095);

/// A call chain: the address of the sample, then the return addresses of the functions that were active, the innermost
/// first.
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

    /// The number of entries, with the entries that are no addresses.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The entries as they stand in the file: addresses, and values that name the mode of the addresses after them.
    pub fn raw(self) -> impl Iterator<Item = u64> + 'data {
        let endian = self.endian();
        self.words.iter().map(move |&word| endian.u64(word))
    }

    /// The addresses, each with its mode.
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
