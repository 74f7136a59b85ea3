//! A MIP profile in memory.
use super::inference::Inference;
use crate::ids::BuildId;
use crate::index_vec::IndexVec;
use crate::tables::{StackId, Tables};
use profkit_abi::mip::{mode, record};
use std::fmt;

/// A set of mode flags. The flags decide what the record of a function contains.
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
    /// The record has one byte that shows whether the function was entered.
    pub const FUNCTION_COVERAGE: Modes = Modes(mode::FUNCTION_COVERAGE);
    /// The record has one byte for each block except the entry block. The byte shows whether the block was executed.
    pub const BLOCK_COVERAGE: Modes = Modes(mode::BLOCK_COVERAGE);
    /// The record has the ordinal of the function's first call: its position in the order of all first calls.
    pub const FIRST_CALL: Modes = Modes(mode::FIRST_CALL);
    /// The record has the number of calls of the function.
    pub const CALL_COUNT: Modes = Modes(mode::CALL_COUNT);
    /// The program takes samples of the return addresses of calls.
    pub const RETURN_ADDRESSES: Modes = Modes(mode::RETURN_ADDRESSES);
    /// The byte of function coverage is a unary counter, which counts up to 8 calls.
    pub const UNARY_COUNTER: Modes = Modes(mode::UNARY_COUNTER);
    /// The function is a part of another function, and is entered by jumps instead of calls. Only functions have this
    /// flag; it is not set in the modes of an image.
    pub const PART: Modes = Modes(mode::PART);
    /// The program samples who calls whom. The record has the number of calls until the next sample, too.
    pub const CALL_EDGES: Modes = Modes(mode::CALL_EDGES);
    /// Some blocks have no byte in the record, and are inferred from others ([`Function::inference`]). Only functions have
    /// this flag; it is not set in the modes of an image.
    pub const INFERRED: Modes = Modes(mode::INFERRED);
    /// The record has the number of calls and the ordinal of the first call.
    pub const CALLS: Modes = Modes(mode::CALLS);

    /// Whether these modes have all flags of `other`.
    pub fn contains(self, other: Modes) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags that are set in these modes, in `other`, or in both.
    #[must_use]
    pub fn union(self, other: Modes) -> Modes {
        Modes(self.0 | other.0)
    }

    /// Returns how the record describes the function's entry: coverage, a unary counter, or calls. Returns `None` if
    /// the flags contradict each other.
    pub fn entry(self) -> Option<EntryKind> {
        let unary = self.contains(Self::UNARY_COUNTER);
        const OF_FUNCTIONS: u16 = mode::PART | mode::INFERRED;
        let unknown = self.0 & !(mode::ALL | OF_FUNCTIONS) != 0
            || self.0 & OF_FUNCTIONS != 0 && !self.contains(Self::BLOCK_COVERAGE);
        match self.0 & (mode::FUNCTION_COVERAGE | mode::CALLS) {
            _ if unknown => None,
            mode::FUNCTION_COVERAGE if self.contains(Self::CALL_EDGES) => None,
            mode::FUNCTION_COVERAGE if unary => Some(EntryKind::Unary),
            mode::FUNCTION_COVERAGE => Some(EntryKind::Coverage),
            mode::CALLS if unary => None,
            mode::CALLS if self.contains(Self::CALL_EDGES) => Some(EntryKind::SampledCalls),
            mode::CALLS => Some(EntryKind::Calls),
            _ => None,
        }
    }

    /// Returns the names of the flags that are set, as they are written in YAML.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MODE_NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|&(_, name)| name)
    }
}

/// All mode flags with their names.
pub const MODE_NAMES: [(Modes, &str); 9] = [
    (Modes::FUNCTION_COVERAGE, "Function Coverage"),
    (Modes::BLOCK_COVERAGE, "Block Coverage"),
    (Modes::FIRST_CALL, "Function Timestamp"),
    (Modes::CALL_COUNT, "Function Call Count"),
    (Modes::RETURN_ADDRESSES, "Return Address"),
    (Modes::UNARY_COUNTER, "Unary Counter"),
    (Modes::PART, "Function Part"),
    (Modes::CALL_EDGES, "Call Edges"),
    (Modes::INFERRED, "Inferred Blocks"),
];

/// The way in which a record shows that the function was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// The record has a byte that becomes 0 when the function is entered.
    Coverage,
    /// The record has a byte in which each call clears one bit. The byte therefore counts up to 8 calls.
    Unary,
    /// The record has the number of calls and the ordinal of the first call.
    Calls,
    /// The record has the number of calls, the ordinal of the first call, and the number of calls until the next sample.
    SampledCalls,
}

impl EntryKind {
    /// The number of bytes in the record that describe the function's entry.
    pub fn size(self) -> u64 {
        match self {
            EntryKind::Coverage | EntryKind::Unary => record::COVERAGE_SIZE as u64,
            EntryKind::Calls => record::CALLS_SIZE as u64,
            EntryKind::SampledCalls => record::SAMPLED_CALLS_SIZE as u64,
        }
    }
}

/// The identity of an image (an executable or a shared library). Raw files, maps and profiles state it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// The build id of the image. The build id is empty if the image has none, or if the build id is not known. Files
    /// of version 9 state this identity.
    BuildId(BuildId),
    /// A hash of the name under which the image was linked. All builds of the image have the same hash. Files of
    /// version 8 state this identity.
    ModuleHash(u32),
}

impl Identity {
    /// The identity of an unknown image: a build id without bytes.
    pub const UNKNOWN: Identity = Identity::BuildId(BuildId(Vec::new()));

    /// Whether nothing is known about the image.
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

/// The width of addresses in an image: 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Addresses of the target have 32 bits.
    Bits32,
    /// Addresses of the target have 64 bits.
    Bits64,
}

crate::id_type! {
    /// The index of a function among the functions of its profile.
    pub struct FunctionId of "functions of a MIP profile";
}

/// A MIP profile: the functions of one image (an executable or a shared library), and counts of what its runs executed.
///
/// ```
/// use profkit_data::mip::MipProfile;
///
/// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/mip/v8-b.mip"));
/// let profile = MipProfile::parse(file)?;
/// let (functions, covered) = profile.function_counts();
/// assert_eq!((functions, covered), (2, 0));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MipProfile {
    /// The identity of the image to which the profile belongs.
    pub identity: Identity,
    /// The width of the image's addresses; `None` if it is not known.
    pub width: Option<Width>,
    /// The address that the linker gave to the record section. If it is `None`, the addresses of functions are relative
    /// to the record section, as in version 8.
    pub section_address: Option<u64>,
    /// The size of the record section in bytes; `None` if it is not known. In version 8 the size includes the header of
    /// the section.
    pub section_size: Option<u64>,
    /// The number of runs that the profile sums up.
    pub runs: u64,
    /// The functions in the order of the map.
    pub functions: IndexVec<FunctionId, Function>,
    /// The call edges, which come from sampled calls. The edges are sorted.
    pub edges: Vec<CallEdge>,
    /// The tables with the source locations of functions, and with the strings of these locations.
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
    /// Returns the modes of the image, as the header of a raw file has them. A flag is set if any function has it,
    /// except for [`Modes::PART`] and [`Modes::INFERRED`], which are never set.
    pub fn modes(&self) -> Modes {
        let all = self
            .functions
            .iter()
            .fold(Modes::default(), |modes, function| {
                modes.union(function.modes)
            });
        Modes(all.0 & !(mode::PART | mode::INFERRED))
    }

    /// Returns the number of functions, and the number of functions that were entered. Parts of functions are not
    /// counted.
    pub fn function_counts(&self) -> (u64, u64) {
        let whole = self.functions.iter().filter(|function| !function.is_part());
        whole.fold((0, 0), |(all, covered), function| {
            (all + 1, covered + u64::from(function.is_covered()))
        })
    }

    /// Returns the number of blocks, and the number of blocks that were run. The entries of functions are not counted.
    pub fn block_counts(&self) -> (u64, u64) {
        let blocks = self.functions.iter().flat_map(|it| &it.blocks);
        blocks.fold((0, 0), |(all, ran), block| {
            (all + 1, ran + u64::from(block.runs > 0))
        })
    }

    /// Sets all counts to zero, as if there were no runs. The functions are kept.
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
                inference: bare.inference,
                location: bare.location,
                ..Function::default()
            };
        }
    }

    /// Returns the call edges grouped by the called function. Ask for the edges of one function after the other
    /// (`EdgesByCallee::of` in this crate), in ascending order of the functions.
    pub fn edges_by_callee(&self) -> EdgesByCallee {
        let mut edges = self.edges.clone();
        edges.sort_unstable_by_key(|edge| (edge.callee, edge.caller, edge.call_site));
        EdgesByCallee { edges, next: 0 }
    }

    /// Returns the address that the linker gave to a function. Returns `None` if the address is relative to a record
    /// section whose own address is not known.
    pub fn address_of(&self, function: &Function, section: Option<u64>) -> Option<u64> {
        match self.section_address {
            Some(_) => Some(function.address),
            None => section.map(|section| section.wrapping_add(function.address)),
        }
    }
}

/// A function of a MIP profile, and the counts of its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The symbol name of the function.
    pub name: Vec<u8>,
    /// The mode flags, which decide the layout of the function's record.
    pub modes: Modes,
    /// The offset of the function's record in the record section, in bytes. In version 8, the record section begins
    /// with a header.
    pub record_offset: u64,
    /// The address of the function. It may be relative to the record section ([`MipProfile::section_address`]); a
    /// negative distance is stored in two's complement.
    pub address: u64,
    /// The size of the function in bytes.
    pub size: u32,
    /// The control-flow signature: a hash of the function's blocks and jumps. It is 0 for a function of one block.
    pub signature: u32,
    /// The number of runs whose raw files contain the function's record.
    pub raw_runs: u64,
    /// The number of runs in which the function was entered.
    pub called_runs: u64,
    /// The number of calls, at most the largest 64-bit number. If [`calls_at_least`](Self::calls_at_least) is set, the real
    /// number may be higher. A unary counter counts at most 8 calls per run, so for a
    /// record with such a counter the real number may be higher, too. For a record with plain coverage, calls are not
    /// counted and the number is 0.
    pub calls: u64,
    /// Whether `calls` is a lower bound, because a counter of 32 bits was not large enough in one of the runs.
    pub calls_at_least: bool,
    /// The sum of the ordinals of the first calls, over the `order_runs` runs that have an ordinal.
    pub order_sum: u64,
    /// The number of runs that have an ordinal and contributed it to `order_sum`.
    pub order_runs: u64,
    /// The smallest ordinal of a first call. It is `None` if no run has an ordinal. It is also `None` in a profile of
    /// version 8, which does not store the smallest ordinal.
    pub order_min: Option<u32>,
    /// The blocks of the function, without the entry block.
    pub blocks: Vec<Block>,
    /// How it is inferred which blocks ran that have no byte in the record; `None` if all have one. It is set if and only
    /// if the modes have [`Modes::INFERRED`].
    pub inference: Option<Box<Inference>>,
    /// The source location at which the function begins; `None` if it is not known.
    pub location: Option<StackId>,
}

impl Function {
    /// Returns the size of the function's record in bytes, without padding. Returns `None` if its mode flags contradict
    /// each other.
    pub fn record_size(&self) -> Option<u64> {
        let blocks = self.recorded_blocks() as u64 * record::BLOCK_SIZE as u64;
        Some(self.modes.entry()?.size() + blocks)
    }

    /// Whether the real number of calls may be higher than [`calls`](Self::calls).
    pub fn has_more_calls(&self) -> bool {
        let is_unary = self.modes.entry() == Some(EntryKind::Unary);
        self.calls_at_least || is_unary && self.calls >= record::UNARY_MAX.into()
    }

    /// Returns the number of blocks that have a byte in the record.
    pub fn recorded_blocks(&self) -> usize {
        match &self.inference {
            _ if !self.modes.contains(Modes::BLOCK_COVERAGE) => 0,
            Some(inference) => inference.recorded(),
            None => self.blocks.len(),
        }
    }

    /// Whether this is a part of another function. Parts are entered by jumps instead of calls.
    pub fn is_part(&self) -> bool {
        self.modes.contains(Modes::PART)
    }

    /// Whether any run called the function. A part of a function is entered by jumps, which are not counted here. The
    /// blocks of the part show whether it was executed.
    pub fn is_covered(&self) -> bool {
        self.called_runs > 0
    }

    /// Returns the offset of the record, the address and the name. Two functions of one image are the same if these
    /// three are equal.
    pub fn key(&self) -> (u64, u64, &[u8]) {
        (self.record_offset, self.address, &self.name)
    }

    /// Whether `other` is the same compiled function. The counts of the runs are not compared.
    pub fn same_code(&self, other: &Function) -> bool {
        let offsets = |function: &Function| function.blocks.len();
        self.key() == other.key()
            && self.size == other.size
            && self.signature == other.signature
            && self.modes == other.modes
            && self.inference == other.inference
            && offsets(self) == offsets(other)
            && self
                .blocks
                .iter()
                .zip(&other.blocks)
                .all(|(one, two)| one.offset == two.offset)
    }
}

/// Returns F for the names of its parts: `F.cold` (gcc, clang), `F.cold.N` (older gcc), `F.__part.N` and `F.eh` (clang). Returns
/// `None` for other names.
pub fn part_of(name: &[u8]) -> Option<&[u8]> {
    if let Some(whole) = name.strip_suffix(b".cold").or(name.strip_suffix(b".eh")) {
        return Some(whole);
    }
    let dot = name.iter().rposition(|&byte| byte == b'.')?;
    let (rest, number) = (name.get(..dot)?, name.get(dot + 1..)?);
    if number.is_empty() || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    rest.strip_suffix(b".cold")
        .or(rest.strip_suffix(b".__part"))
}

/// A block of a function other than its entry block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The offset of the block from the function's start, in bytes.
    pub offset: u32,
    /// The number of runs that executed the block. In a profile of version 8 the number is 0 or 1.
    pub runs: u64,
}

/// A call edge: the sampled calls from one call site to one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallEdge {
    /// The calling function. It is `None` if the return address is in another image or in code without instrumentation.
    /// All such calls to a function are one edge.
    pub caller: Option<FunctionId>,
    /// The return address as an offset from the caller's start, in bytes. The offset is 0 if the caller is not known.
    pub call_site: u32,
    /// The function that is called.
    pub callee: FunctionId,
    /// The number of calls that the samples stand for, at most the largest 64-bit number. In files of programs without the
    /// mode [`Modes::CALL_EDGES`], it is the number of samples.
    pub weight: u64,
}

/// The call edges of a profile, sorted by the called function.
#[derive(Clone, Debug)]
pub struct EdgesByCallee {
    edges: Vec<CallEdge>,
    next: usize,
}

impl EdgesByCallee {
    /// Returns the call edges to `callee`. Callers of this method must ask for functions in ascending order.
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
