//! A MIP profile in memory.
use crate::ids::BuildId;
use crate::index_vec::IndexVec;
use crate::tables::{StackId, Tables};
use profkit_abi::mip::{mode, record};
use std::fmt;

/// What records hold: a set of mode flags.
///
/// ```
/// use profkit_data::mip::{EntryKind, Modes};
///
/// let modes = Modes::CALLS.union(Modes::BLOCK_COVERAGE);
/// assert_eq!(modes.entry(), Some(EntryKind::Calls));
/// // Coverage and counts of one function exclude each other.
/// assert_eq!(Modes::FUNCTION_COVERAGE.union(Modes::CALLS).entry(), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Modes(pub u16);

impl Modes {
    /// One byte says whether the function was entered.
    pub const FUNCTION_COVERAGE: Modes = Modes(mode::FUNCTION_COVERAGE);
    /// One byte per non-entry block says whether the block was run.
    pub const BLOCK_COVERAGE: Modes = Modes(mode::BLOCK_COVERAGE);
    /// The ordinal of the first call.
    pub const FIRST_CALL: Modes = Modes(mode::FIRST_CALL);
    /// The number of calls.
    pub const CALL_COUNT: Modes = Modes(mode::CALL_COUNT);
    /// Return addresses of calls.
    pub const RETURN_ADDRESSES: Modes = Modes(mode::RETURN_ADDRESSES);
    /// The byte of function coverage counts from 0 to 8.
    pub const UNARY_COUNTER: Modes = Modes(mode::UNARY_COUNTER);
    /// A part of a function, which no call enters. Only functions have it, images do not.
    pub const PART: Modes = Modes(mode::PART);
    /// Count and order of calls.
    pub const CALLS: Modes = Modes(mode::CALLS);

    /// Whether all of the other's flags are set.
    pub fn contains(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Either's flags.
    #[must_use]
    pub fn union(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// What the entry's part of a record is, if the flags go together.
    pub fn entry(self) -> Option<EntryKind> {
        let unary = self.contains(Self::UNARY_COUNTER);
        let part = self.contains(Self::PART);
        let unknown =
            self.0 & !(mode::ALL | mode::PART) != 0 || part && !self.contains(Self::BLOCK_COVERAGE);
        match self.0 & (mode::FUNCTION_COVERAGE | mode::CALLS) {
            _ if unknown => None,
            mode::FUNCTION_COVERAGE if unary => Some(EntryKind::Unary),
            mode::FUNCTION_COVERAGE => Some(EntryKind::Coverage),
            mode::CALLS if !unary => Some(EntryKind::Calls),
            _ => None,
        }
    }

    /// The flags' names, as YAML has them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MODE_NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|&(_, name)| name)
    }
}

/// Flags with their names.
pub const MODE_NAMES: [(Modes, &str); 7] = [
    (Modes::FUNCTION_COVERAGE, "Function Coverage"),
    (Modes::BLOCK_COVERAGE, "Block Coverage"),
    (Modes::FIRST_CALL, "Function Timestamp"),
    (Modes::CALL_COUNT, "Function Call Count"),
    (Modes::RETURN_ADDRESSES, "Return Address"),
    (Modes::UNARY_COUNTER, "Unary Counter"),
    (Modes::PART, "Function Part"),
];

/// The part of a record that stands for the function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A byte that is 0 once the function was entered.
    Coverage,
    /// A byte whose cleared bits count calls up to 8.
    Unary,
    /// Count and ordinal.
    Calls,
}

impl EntryKind {
    /// Its size in bytes.
    pub fn size(self) -> u64 {
        match self {
            EntryKind::Coverage | EntryKind::Unary => record::COVERAGE_SIZE as u64,
            EntryKind::Calls => record::CALLS_SIZE as u64,
        }
    }
}

/// How raw files, maps and profiles of one image find each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The image's build id, empty if it has none or it is not known. Version 9.
    BuildId(BuildId),
    /// A hash of the link unit's name: the same for every build of it. Version 8.
    ModuleHash(u32),
}

impl Identity {
    /// No build id.
    pub const UNKNOWN: Identity = Identity::BuildId(BuildId(Vec::new()));

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::UNKNOWN
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            _ if self.is_unknown() => f.write_str("no build id"),
            Identity::BuildId(id) => write!(f, "build id {id}"),
            Identity::ModuleHash(hash) => write!(f, "module hash {hash:#010x}"),
        }
    }
}

/// How wide addresses of the target are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

crate::id_type! {
    /// A function, by its place among the functions of its profile.
    pub struct FunctionId of "functions of a MIP profile";
}

/// A profile: the functions of one image, and what runs of it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MipProfile {
    /// Which image.
    pub identity: Identity,
    /// Width of its addresses, if that is known.
    pub width: Option<Width>,
    /// The address of the record section, as the linker gave it. `None`: addresses of functions are relative to it,
    /// as in version 8.
    pub section_address: Option<u64>,
    /// The size of the record section, if it is known. Of version 8 it includes the header.
    pub section_size: Option<u64>,
    /// How many runs were merged.
    pub runs: u64,
    /// The functions, in the order of the map.
    pub functions: IndexVec<FunctionId, Function>,
    /// Calls that were seen, sorted.
    pub edges: Vec<CallEdge>,
    /// Texts and source locations.
    pub tables: Tables,
}

impl Default for MipProfile {
    fn default() -> Self {
        MipProfile {
            identity: Identity::UNKNOWN,
            width: None,
            section_address: None,
            section_size: None,
            runs: 0,
            functions: IndexVec::new(),
            edges: Vec::new(),
            tables: Tables::default(),
        }
    }
}

impl MipProfile {
    /// The modes that functions have, as the header of a raw file states them: without that of parts.
    pub fn modes(&self) -> Modes {
        let all = self
            .functions
            .iter()
            .fold(Modes::default(), |modes, function| {
                modes.union(function.modes)
            });
        Modes(all.0 & !mode::PART)
    }

    /// How many functions there are and how many of them are covered. Parts are counted with their functions.
    pub fn function_counts(&self) -> (u64, u64) {
        let whole = self.functions.iter().filter(|function| !function.is_part());
        whole.fold((0, 0), |(all, covered), function| {
            (all + 1, covered + u64::from(function.is_covered()))
        })
    }

    /// Forgets what runs did: the functions are left.
    pub fn clear_runs(&mut self) {
        self.runs = 0;
        self.edges.clear();
        for function in &mut self.functions {
            let mut bare = std::mem::take(function);
            bare.blocks.iter_mut().for_each(|block| block.runs = 0);
            *function = Function {
                name: bare.name,
                modes: bare.modes,
                record_offset: bare.record_offset,
                address: bare.address,
                size: bare.size,
                signature: bare.signature,
                blocks: bare.blocks,
                location: bare.location,
                ..Function::default()
            };
        }
    }

    /// The call edges of each callee, for walking over the functions in their order.
    pub fn edges_by_callee(&self) -> EdgesByCallee {
        let mut edges = self.edges.clone();
        edges.sort_unstable_by_key(|edge| (edge.callee, edge.caller, edge.call_site));
        EdgesByCallee { edges, next: 0 }
    }

    /// The address of a function as the linker gave it, if the section's is known.
    pub fn address_of(&self, function: &Function, section: Option<u64>) -> Option<u64> {
        match self.section_address {
            Some(_) => Some(function.address),
            None => section.map(|section| section.wrapping_add(function.address)),
        }
    }
}

/// A function, and what runs of it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Symbol name, as the linker knows it.
    pub name: Vec<u8>,
    /// What its record holds.
    pub modes: Modes,
    /// Where its record is in the record section, in bytes from its start. Of version 8 that includes the header.
    pub record_offset: u64,
    /// Its address; see [`MipProfile::section_address`]. A relative one is two's complement.
    pub address: u64,
    /// Its size in bytes.
    pub size: u32,
    /// Control-flow signature; 0 for a function of one block.
    pub signature: u32,
    /// Runs in whose records it was found.
    pub raw_runs: u64,
    /// Runs in which it was entered.
    pub called_runs: u64,
    /// Calls, saturating. Of a unary counter at least so many; 0 in plain coverage, which does not count.
    pub calls: u64,
    /// Sum of the ordinals of first calls, over `order_runs` runs.
    pub order_sum: u64,
    /// Runs whose ordinal is in the sum.
    pub order_runs: u64,
    /// The smallest ordinal; `None` if there is none, or it is not known (version 8).
    pub order_min: Option<u32>,
    /// Blocks but the entry.
    pub blocks: Vec<Block>,
    /// Where it begins in the source.
    pub location: Option<StackId>,
}

impl Function {
    /// The size of its record without padding, if its modes go together.
    pub fn record_size(&self) -> Option<u64> {
        let blocks = if self.modes.contains(Modes::BLOCK_COVERAGE) {
            self.blocks.len() as u64 * record::BLOCK_SIZE as u64
        } else {
            0
        };
        Some(self.modes.entry()?.size() + blocks)
    }

    /// Whether it is a part of a function that stands elsewhere: no call enters it.
    pub fn is_part(&self) -> bool {
        self.modes.contains(Modes::PART)
    }

    /// Whether any run entered it. A part is entered by jumps alone: only its blocks show it.
    pub fn is_covered(&self) -> bool {
        self.called_runs > 0
    }

    /// What functions of one image differ in.
    pub fn key(&self) -> (u64, u64, &[u8]) {
        (self.record_offset, self.address, &self.name)
    }

    /// Whether the other is the same function as compiled, whatever its runs did.
    pub fn same_code(&self, other: &Function) -> bool {
        let offsets = |function: &Function| function.blocks.len();
        self.key() == other.key()
            && self.size == other.size
            && self.signature == other.signature
            && self.modes == other.modes
            && offsets(self) == offsets(other)
            && self
                .blocks
                .iter()
                .zip(&other.blocks)
                .all(|(one, two)| one.offset == two.offset)
    }
}

/// A block other than the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Where it begins, in bytes from the function's start.
    pub offset: u32,
    /// Runs in which it was run. Version 8 knows no more than 0 or 1.
    pub runs: u64,
}

/// Calls from one place to one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallEdge {
    /// The calling function; `None` if the address is in none that is known: all calls of other images and of code
    /// that is not instrumented are one edge.
    pub caller: Option<FunctionId>,
    /// The return address, in bytes from the caller's start; 0 if the caller is not known.
    pub call_site: u32,
    /// The called function.
    pub callee: FunctionId,
    /// Samples, saturating.
    pub weight: u64,
}

/// Call edges, sorted by what is called.
#[derive(Clone, Debug)]
pub struct EdgesByCallee {
    edges: Vec<CallEdge>,
    next: usize,
}

impl EdgesByCallee {
    /// The edges to a function, which must not be one before that of the last call.
    pub fn of(&mut self, callee: FunctionId) -> &[CallEdge] {
        let rest = self.edges.get(self.next..).unwrap_or_default();
        let before = rest.partition_point(|edge| edge.callee < callee);
        let rest = rest.get(before..).unwrap_or_default();
        let count = rest.partition_point(|edge| edge.callee == callee);
        let start = self.next + before;
        self.next = start + count;
        self.edges.get(start..self.next).unwrap_or_default()
    }
}
