//! The options of the instrumenter: what it records, and for which functions.
use super::list::IgnoreList;
use profkit_abi::mip::{mode, record};

/// What the record of a function contains for the entry of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The record shows whether the function was entered.
    Function(Counter),
    /// The record contains the number of calls, and the position of the first call among the first calls of all
    /// functions. With `return_addresses`, return addresses are also sampled into a ring.
    Calls {
        /// The number of entries in the ring of sampled return addresses; `None` if they are not sampled.
        return_addresses: Option<u32>,
    },
}

/// The instruction that records the entry of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// The instruction stores 0 into the function's byte.
    #[default]
    Store,
    /// The instruction shifts the function's byte, which counts up to 8 calls.
    Unary,
}

/// The options of the instrumenter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What a record contains for the entry of a function.
    pub mode: Mode,
    /// Whether the record also shows which blocks were executed.
    pub blocks: bool,
    /// The number of instructions that a function must have to be instrumented.
    pub min_instructions: usize,
    /// The number of groups, and the index of the selected group. A function belongs to the group whose index is the
    /// hash of the function's name modulo the number of groups. Only functions of the selected group are instrumented.
    /// `None` selects all functions.
    pub group: Option<(u64, u64)>,
    /// The list of functions and source files that are not instrumented.
    pub ignore: Option<IgnoreList>,
    /// Whether the program uses the large code model, in which a record may be out of reach of a 32-bit offset.
    pub large_code_model: bool,
    /// Whether a file may contain bytecode for GCC's link-time optimisation. Machine code beside it is instrumented; the
    /// bytecode is not. Without this option such a file is an error.
    pub bytecode: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Function(Counter::Store),
            blocks: false,
            min_instructions: 0,
            group: None,
            ignore: None,
            large_code_model: false,
            bytecode: false,
        }
    }
}

impl Options {
    /// Returns the mode flags ([`mode`]) for the map entry of a function in which all requested probes were inserted.
    pub fn flags(&self) -> u16 {
        let own = match self.mode {
            Mode::Function(Counter::Store) => mode::FUNCTION_COVERAGE,
            Mode::Function(Counter::Unary) => mode::FUNCTION_COVERAGE | mode::UNARY_COUNTER,
            Mode::Calls {
                return_addresses: None,
            } => mode::CALLS,
            Mode::Calls {
                return_addresses: Some(_),
            } => mode::CALLS | mode::RETURN_ADDRESSES,
        };
        own | if self.blocks { mode::BLOCK_COVERAGE } else { 0 }
    }

    /// The size in bytes of the part of a record that belongs to the function's entry. The bytes of the blocks follow
    /// it.
    pub fn entry_size(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls { .. } => record::CALLS_SIZE,
        }
    }

    /// The alignment of a record in bytes.
    pub fn record_align(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls { .. } => record::CALLS_ALIGN,
        }
    }
}
