//! The options of the instrumenter: what it records, and in which functions.
use super::list::IgnoreList;
use profkit_abi::mip::{mode, record};

/// What the entry probe of a function records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The probe records whether the function was entered.
    Function(Counter),
    /// Counts the calls, and records the order of first calls. With `return_addresses`, also samples who calls whom.
    Calls {
        /// The number of slots in the table of sampled calls; `None` if they are not sampled.
        return_addresses: Option<u32>,
    },
}

/// The instruction by which an entry probe records that the function was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// The instruction stores 0 into the function's byte.
    #[default]
    Store,
    /// The instruction shifts the function's byte by one bit. So the byte counts up to 8 calls.
    Unary,
}

/// The options of the instrumenter.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What the entry probe of a function records.
    pub mode: Mode,
    /// Whether the instrumented program also records which blocks were executed.
    pub blocks: bool,
    /// Whether calls are counted atomically, so that counts are exact in programs with several threads. Only the mode
    /// `calls` counts.
    pub atomic: bool,
    /// Whether each block gets a probe, also where others imply whether it ran. Only tests need this.
    pub all_blocks: bool,
    /// The smallest number of instructions that a function must have to be instrumented.
    pub min_instructions: usize,
    /// The number of groups, and the one that is instrumented: the hash of the name modulo the number decides.
    pub group: Option<(u64, u64)>,
    /// The list of functions and source files that are not instrumented; `None` if there is no list.
    pub ignore: Option<IgnoreList>,
    /// Whether the program uses the large code model. A record may then be out of reach of a 32-bit offset.
    pub large_code_model: bool,
    /// Whether a file may have bytecode for GCC's link-time optimisation, which is not instrumented.
    pub bytecode: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            mode: Mode::Function(Counter::Store),
            blocks: false,
            atomic: false,
            all_blocks: false,
            min_instructions: 0,
            group: None,
            ignore: None,
            large_code_model: false,
            bytecode: false,
        }
    }
}

impl Options {
    /// Returns the mode flags (`profkit_abi::mip::mode`) for the map entry of a function in which all requested probes were inserted.
    pub fn flags(&self) -> u16 {
        let own = match self.mode {
            Mode::Function(Counter::Store) => mode::FUNCTION_COVERAGE,
            Mode::Function(Counter::Unary) => mode::FUNCTION_COVERAGE | mode::UNARY_COUNTER,
            Mode::Calls {
                return_addresses: None,
            } => mode::CALLS,
            Mode::Calls {
                return_addresses: Some(_),
            } => mode::CALLS | mode::CALL_EDGES,
        };
        own | if self.blocks { mode::BLOCK_COVERAGE } else { 0 }
    }

    /// The bytes of a record for the function's entry. Those of the blocks follow.
    pub fn entry_size(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls {
                return_addresses: None,
            } => record::CALLS_SIZE,
            Mode::Calls { .. } => record::SAMPLED_CALLS_SIZE,
        }
    }

    /// The alignment of a record in bytes.
    pub fn record_align(&self) -> usize {
        match self.mode {
            Mode::Function(_) => record::COVERAGE_SIZE,
            Mode::Calls {
                return_addresses: None,
            } => record::CALLS_ALIGN,
            Mode::Calls { .. } => record::SAMPLED_CALLS_ALIGN,
        }
    }
}
