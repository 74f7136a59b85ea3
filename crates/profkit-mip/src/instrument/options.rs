//! What the instrumenter records, and for which functions.
use super::list::IgnoreList;
use profkit_abi::mip::{mode, record};

/// What the record of a function holds, apart from its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whether the function was entered.
    Function(Counter),
    /// How often it was called, and the order of first calls. With `return_addresses`, these are also sampled into a
    /// ring that has this many slots.
    Calls {
        /// Slots of the ring.
        return_addresses: Option<u32>,
    },
}

/// The instruction that marks a function as entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// A store of 0.
    #[default]
    Store,
    /// A shift, which counts up to 8.
    Unary,
}

/// Options of the instrumenter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What a record holds.
    pub mode: Mode,
    /// Whether blocks are covered too.
    pub blocks: bool,
    /// Functions with fewer instructions are not instrumented.
    pub min_instructions: usize,
    /// With (groups, selected): only functions whose name's hash modulo the number of groups is the selected one.
    pub group: Option<(u64, u64)>,
    /// Functions that are not instrumented, by name or source.
    pub ignore: Option<IgnoreList>,
    /// The code model is large: the record may be out of reach of a 32-bit offset.
    pub large_code_model: bool,
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
        }
    }
}

impl Options {
    /// The mode flags ([`mode`]) in the map entry of a function that got everything the options ask for.
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

    /// Size in bytes of the entry's part of a record. The byte of the first block follows it.
    pub fn entry_size(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls { .. } => record::CALLS_SIZE,
        }
    }

    /// Alignment of a record.
    pub fn record_align(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls { .. } => record::CALLS_ALIGN,
        }
    }
}
