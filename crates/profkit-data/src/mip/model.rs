//! A MIP profile in memory.
use crate::ids::BuildId;
use crate::index_vec::IndexVec;
use crate::tables::{StackId, Tables};
use profkit_abi::mip::{mode, record};
use std::fmt;

/// A set of mode flags. It decides what the record of a function holds.
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
    /// The record has one byte for whether the function was entered.
    pub const FUNCTION_COVERAGE: Modes = Modes(mode::FUNCTION_COVERAGE);
    /// The record has one byte per non-entry block, for whether the block was executed.
    pub const BLOCK_COVERAGE: Modes = Modes(mode::BLOCK_COVERAGE);
    /// The record has the ordinal of the function's first call.
    pub const FIRST_CALL: Modes = Modes(mode::FIRST_CALL);
    /// The record has the number of calls.
    pub const CALL_COUNT: Modes = Modes(mode::CALL_COUNT);
    /// Return addresses of calls are sampled.
    pub const RETURN_ADDRESSES: Modes = Modes(mode::RETURN_ADDRESSES);
    /// The byte of function coverage counts calls from 0 to 8.
    pub const UNARY_COUNTER: Modes = Modes(mode::UNARY_COUNTER);
    /// The function is a part of another function and is entered by jumps, not by calls. Only functions have this flag,
    /// images do not.
    pub const PART: Modes = Modes(mode::PART);
    /// The record has the number and the order of calls.
    pub const CALLS: Modes = Modes(mode::CALLS);

    /// Whether all flags of `other` are set.
    pub fn contains(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags that are set in either of the two.
    #[must_use]
    pub fn union(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// The form of the part of a record that describes the function's entry. `None` if the flags contradict each other.
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

    /// The names of the set flags, as in YAML.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MODE_NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|&(_, name)| name)
    }
}

/// All flags with their names.
pub const MODE_NAMES: [(Modes, &str); 7] = [
    (Modes::FUNCTION_COVERAGE, "Function Coverage"),
    (Modes::BLOCK_COVERAGE, "Block Coverage"),
    (Modes::FIRST_CALL, "Function Timestamp"),
    (Modes::CALL_COUNT, "Function Call Count"),
    (Modes::RETURN_ADDRESSES, "Return Address"),
    (Modes::UNARY_COUNTER, "Unary Counter"),
    (Modes::PART, "Function Part"),
];

/// The form of the part of a record that describes the function's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A byte that becomes 0 when the function is entered.
    Coverage,
    /// A byte in which each call clears one bit, so it counts up to 8 calls.
    Unary,
    /// The number of calls, and the ordinal of the first call.
    Calls,
}

impl EntryKind {
    /// The size of this part in bytes.
    pub fn size(self) -> u64 {
        match self {
            EntryKind::Coverage | EntryKind::Unary => record::COVERAGE_SIZE as u64,
            EntryKind::Calls => record::CALLS_SIZE as u64,
        }
    }
}

/// Identifies the image of a raw file, map or profile.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The image's build id, empty if there is none or it is unknown. Used by version 9.
    BuildId(BuildId),
    /// A hash of the link unit's name, which is the same for all its builds. Used by version 8.
    ModuleHash(u32),
}

impl Identity {
    /// The identity of an image that nothing is known about.
    pub const UNKNOWN: Identity = Identity::BuildId(BuildId(Vec::new()));

    /// Whether nothing is known of the image.
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

/// The width of addresses of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

crate::id_type! {
    /// The index of a function among the functions of its profile.
    pub struct FunctionId of "functions of a MIP profile";
}

/// A profile: the functions of one image, and counts of what runs of the image executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MipProfile {
    /// The identity of the image.
    pub identity: Identity,
    /// The width of the image's addresses, if it is known.
    pub width: Option<Width>,
    /// The address of the record section, as the linker assigned it. If it is `None`, addresses of functions are
    /// relative to the record section, as in version 8.
    pub section_address: Option<u64>,
    /// The size of the record section in bytes, if it is known. In version 8 it includes the header.
    pub section_size: Option<u64>,
    /// The number of runs that were merged.
    pub runs: u64,
    /// The functions, in the order of the map.
    pub functions: IndexVec<FunctionId, Function>,
    /// The sampled calls, sorted.
    pub edges: Vec<CallEdge>,
    /// Strings and source locations.
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
    /// The modes of the functions, in the form of a raw file's header: without the flag [`Modes::PART`].
    pub fn modes(&self) -> Modes {
        let all = self
            .functions
            .iter()
            .fold(Modes::default(), |modes, function| {
                modes.union(function.modes)
            });
        Modes(all.0 & !mode::PART)
    }

    /// The number of functions, and how many of them are covered. Parts of functions are not counted.
    pub fn function_counts(&self) -> (u64, u64) {
        let whole = self.functions.iter().filter(|function| !function.is_part());
        whole.fold((0, 0), |(all, covered), function| {
            (all + 1, covered + u64::from(function.is_covered()))
        })
    }

    /// Sets the profile to zero runs. The functions stay.
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

    /// The call edges of each callee, for a pass over the functions in their order.
    pub fn edges_by_callee(&self) -> EdgesByCallee {
        let mut edges = self.edges.clone();
        edges.sort_unstable_by_key(|edge| (edge.callee, edge.caller, edge.call_site));
        EdgesByCallee { edges, next: 0 }
    }

    /// The address of a function as the linker assigned it. `None` if it is relative to a record section of unknown
    /// address.
    pub fn address_of(&self, function: &Function, section: Option<u64>) -> Option<u64> {
        match self.section_address {
            Some(_) => Some(function.address),
            None => section.map(|section| section.wrapping_add(function.address)),
        }
    }
}

/// A function, and counts of what runs executed in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The symbol name of the function.
    pub name: Vec<u8>,
    /// The modes, which decide the layout of the function's record.
    pub modes: Modes,
    /// The offset of the function's record in the record section, in bytes. In version 8, the section begins with its
    /// header.
    pub record_offset: u64,
    /// The address of the function, see [`MipProfile::section_address`]. A relative address is stored as two's
    /// complement.
    pub address: u64,
    /// The size of the function in bytes.
    pub size: u32,
    /// The control-flow signature; 0 for a function of one block.
    pub signature: u32,
    /// The number of runs whose records contained the function.
    pub raw_runs: u64,
    /// The number of runs in which the function was entered.
    pub called_runs: u64,
    /// The number of calls; the sum saturates. With a unary counter, the real number may be higher. It is 0 with plain
    /// coverage, which does not count calls.
    pub calls: u64,
    /// The sum of the ordinals of first calls. `order_runs` runs contributed to it.
    pub order_sum: u64,
    /// The number of runs that contributed an ordinal to `order_sum`.
    pub order_runs: u64,
    /// The smallest ordinal. `None` if there is none, or if it is unknown, as in version 8.
    pub order_min: Option<u32>,
    /// The blocks, without the entry block.
    pub blocks: Vec<Block>,
    /// The source location at which the function begins.
    pub location: Option<StackId>,
}

impl Function {
    /// The size of the function's record in bytes, without padding. `None` if the modes contradict each other.
    pub fn record_size(&self) -> Option<u64> {
        let blocks = if self.modes.contains(Modes::BLOCK_COVERAGE) {
            self.blocks.len() as u64 * record::BLOCK_SIZE as u64
        } else {
            0
        };
        Some(self.modes.entry()?.size() + blocks)
    }

    /// Whether it is a part of another function. Parts are entered by jumps, never by calls.
    pub fn is_part(&self) -> bool {
        self.modes.contains(Modes::PART)
    }

    /// Whether any run entered the function. A part is entered by jumps, which are not counted; whether it was executed
    /// can be seen from its blocks.
    pub fn is_covered(&self) -> bool {
        self.called_runs > 0
    }

    /// The fields that distinguish functions of one image.
    pub fn key(&self) -> (u64, u64, &[u8]) {
        (self.record_offset, self.address, &self.name)
    }

    /// Whether `other` is the same compiled function. Counts of runs are not compared.
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

/// A block other than the entry block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The offset of the block from the function's start, in bytes.
    pub offset: u32,
    /// The number of runs that executed the block. In version 8 it is only 0 or 1.
    pub runs: u64,
}

/// The calls from one call site to one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallEdge {
    /// The calling function. `None` if the return address is in no known function: in another image, or in code without
    /// instrumentation. All such calls of a function are one edge.
    pub caller: Option<FunctionId>,
    /// The return address as an offset from the caller's start, in bytes; 0 if the caller is unknown.
    pub call_site: u32,
    /// The called function.
    pub callee: FunctionId,
    /// The number of samples; the sum saturates.
    pub weight: u64,
}

/// The call edges of a profile, sorted by callee.
#[derive(Clone, Debug)]
pub struct EdgesByCallee {
    edges: Vec<CallEdge>,
    next: usize,
}

impl EdgesByCallee {
    /// The edges to `callee`. Functions must be asked for in ascending order.
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
