//! A sample profile in memory.
use super::names::{NameId, SampleName, SampleNames};
use crate::index_vec::IndexVec;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{BitOr, BitOrAssign};

/// A location in a function (LLVM's `LineLocation`): the line, counted from the function's first line, and the
/// discriminator of DWARF's line table. In profiles of pseudo probes, the line is the index of the probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The line number minus the number of the function's first line. In profiles of pseudo probes it is the index of
    /// the probe, counted from 1.
    pub line: u32,
    /// The discriminator of DWARF's line table, which distinguishes several pieces of code on one line. It is 0 if
    /// there is no discriminator.
    pub discriminator: u32,
}

impl Location {
    /// The line relative to the function's first line, as a signed number. Profiles have only the lowest 16 bits of it:
    /// a line before the function's first one, such as of code from an included file, is stored as 65536 minus the
    /// distance. Not for pseudo probes, whose indices are never negative.
    pub fn offset(self) -> i64 {
        match self.line {
            0x8000..=0xffff => i64::from(self.line) - 0x1_0000,
            line => line.into(),
        }
    }

    /// Makes a location from a line and a discriminator.
    pub fn new(line: u32, discriminator: u32) -> Self {
        Location {
            line,
            discriminator,
        }
    }
}

/// The samples of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BodyLine {
    /// The location of the samples: line and discriminator.
    pub location: Location,
    /// The number of samples of the line.
    pub samples: u64,
}

/// A call target or vtable at a location, with the number of its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The location at which the function is called or the vtable is loaded.
    pub location: Location,
    /// The name of the called function or of the vtable.
    pub name: NameId,
    /// The number of samples of this call target or vtable.
    pub count: u64,
}

/// A function that was inlined at a location, with its samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The call site: the location in the calling function at which this function was inlined.
    pub location: Location,
    /// The samples of the inlined function. `head` of these samples is 0, because no encoding stores this number for
    /// inlined functions.
    pub samples: Samples,
}

/// The samples of a function, or of one inlined copy of a function (LLVM's `FunctionSamples`). It contains the samples
/// of the functions that were inlined into it, so samples form a tree.
///
/// Each vector is sorted by location, then by [`NameId`], and no key occurs twice. For each call target, `body` has a
/// line at the target's location. The methods that add samples keep this order ([`adding`](Samples::adding)). Code that
/// fills the vectors in another way must call [`sort`](Samples::sort).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The name of the function.
    pub name: NameId,
    /// LLVM's `ContextAttributeMask`: the sum of 1 for "was inlined", 2 for "should be inlined", 4 for "duplicated into
    /// the base profile".
    pub attributes: u32,
    /// The checksum: the hash of the control flow graph (`FunctionHash`, `!CFGChecksum`). Only profiles of pseudo
    /// probes have checksums; the checksum is 0 if there is none.
    pub checksum: u64,
    /// The number of samples in the function, including its inlined functions.
    pub total: u64,
    /// The number of sampled branches that entered the function.
    pub head: u64,
    /// The samples of each line of the function.
    pub body: Vec<BodyLine>,
    /// The call targets: the functions that were called at each line.
    pub targets: Vec<Target>,
    /// The functions that were inlined into this function, by call site.
    pub inlined: Vec<Inlined>,
    /// The vtables that were loaded at each call site (`CallsiteTypeMap`, LLVM 22).
    pub vtables: Vec<Target>,
}

/// A frame of a calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The name of the function of this frame.
    pub name: NameId,
    /// The location in this function at which the next frame was called.
    pub location: Location,
}

/// A function of a sample profile. In a context-sensitive profile, each calling context of a function is a separate
/// `Function`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The callers, outermost first. The list is empty in profiles without calling contexts. In profiles with contexts,
    /// the list is empty for a function's base profile, which has the samples that belong to no context.
    pub callers: Box<[Frame]>,
    /// The samples of the function, including its name.
    pub samples: Samples,
}

/// The kind of a sample profile: a set of flags that describe all its functions.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ProfileKind(u32);

impl ProfileKind {
    /// The kind without any flag.
    pub const NONE: Self = ProfileKind(0);
    /// Functions have calling contexts (`ProfileIsCS`, section flag `context`).
    pub const CONTEXT_SENSITIVE: Self = ProfileKind(1);
    /// The line fields of locations have the indexes of pseudo probes, and functions have checksums
    /// (`ProfileIsProbeBased`, flag `probe`).
    pub const PROBE_BASED: Self = ProfileKind(1 << 1);
    /// `llvm-profgen` decided which functions are inlined (`ProfileIsPreInlined`, flag `preInlined`).
    pub const PRE_INLINED: Self = ProfileKind(1 << 2);
    /// Discriminators were set by FS-AFDO (`ProfileIsFS`, flag `fs-discriminator`).
    pub const FS_DISCRIMINATORS: Self = ProfileKind(1 << 3);
    /// Some names are known only by their MD5 hash (`ProfileIsMD5`, flag `md5`).
    pub const MD5_NAMES: Self = ProfileKind(1 << 4);
    /// The profile covers code that is shared with other programs (flag `partial`).
    pub const PARTIAL: Self = ProfileKind(1 << 5);
    /// Functions may have attributes (`ProfileHasAttribute`, flag `attr`).
    pub const HAS_ATTRIBUTES: Self = ProfileKind(1 << 6);
    /// The profile has vtables (`ReadVTableProf`).
    pub const HAS_VTABLES: Self = ProfileKind(1 << 7);

    /// The flags with their names. If LLVM has a name for a flag, that name is used.
    const FLAGS: [(Self, &'static str); 8] = [
        (Self::CONTEXT_SENSITIVE, "context"),
        (Self::PROBE_BASED, "probe"),
        (Self::PRE_INLINED, "preInlined"),
        (Self::FS_DISCRIMINATORS, "fs-discriminator"),
        (Self::MD5_NAMES, "md5"),
        (Self::PARTIAL, "partial"),
        (Self::HAS_ATTRIBUTES, "attr"),
        (Self::HAS_VTABLES, "vtables"),
    ];

    /// The flags as bits: those of the constants, [`CONTEXT_SENSITIVE`](Self::CONTEXT_SENSITIVE) the lowest.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The kind with these [`bits`](Self::bits); `None` if one of them is not known.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let all = Self::FLAGS.iter().fold(0, |all, (flag, _)| all | flag.0);
        (bits & !all == 0).then_some(ProfileKind(bits))
    }

    /// The names of the flags, for example `probe`. LLVM's names are used for flags that have one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let flags = Self::FLAGS.into_iter();
        flags.filter_map(move |(flag, name)| self.contains(flag).then_some(name))
    }

    /// The kind with these [names](Self::names); `None` if one of them is no such name.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let flag = |name: &str| {
            let mut flags = Self::FLAGS.into_iter();
            flags.find_map(|(flag, one)| (one == name).then_some(flag))
        };
        let mut names = names.into_iter();
        names.try_fold(Self::NONE, |all, name| Some(all | flag(name)?))
    }

    /// Whether this kind has all flags of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns this kind without the flags of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        ProfileKind(self.0 & !other.0)
    }
}

impl fmt::Debug for ProfileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names().collect();
        write!(f, "ProfileKind({})", names.join(", "))
    }
}

impl BitOr for ProfileKind {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        ProfileKind(self.0 | other.0)
    }
}

impl BitOrAssign for ProfileKind {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A sample profile.
///
/// Functions keep the order in which they were added. The profile has an index by which it finds a function by its name
/// and callers. To change names, callers or the list of functions, use [`retain`](Self::retain), or
/// [`take_functions`](Self::take_functions) and then [`push`](Self::push): these methods rebuild the index.
///
/// ```
/// use profkit_data::sample::{SampleName, SampleProfile, read};
///
/// let mut profile = SampleProfile::new();
/// let report = read(b"main:100:5\n 1: 100\n", &mut profile, 1);
/// assert!(report.faults.is_empty());
/// let function = &profile.functions()[0];
/// assert_eq!(profile.names.get(function.samples.name), SampleName::Text(b"main"));
/// assert_eq!((function.samples.total, function.samples.head), (100, 5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SampleProfile {
    /// The kind of the profile: flags such as "has calling contexts".
    pub kind: ProfileKind,
    /// The names of all functions, targets and vtables. The table may include names that no function uses any more.
    pub names: SampleNames,
    /// The profile symbol list: the names of all functions of the program, with samples or without (LLVM's
    /// `ProfileSymbolList`). The list has only names that are known as text.
    pub symbols: BTreeSet<Box<[u8]>>,
    /// The names of the profile symbol list that are known only by their MD5 hash, as LLVM 24 can write them.
    pub symbol_hashes: BTreeSet<u64>,
    /// Whether the summary counts each calling context of a function as a separate function. Otherwise the contexts of
    /// a function are added up before the summary is computed, because a single context of a hot function can look
    /// cold.
    pub summary_by_context: bool,
    keeps_variants: bool,
    functions: Vec<Function>,
    /// For each name, the index of the function that has this name and no callers; `u32::MAX` if there is none.
    bases: Vec<u32>,
    /// The indices of the functions that have a calling context, by a hash of this context. If the hash is already the
    /// key of another context, the key is the next higher number that is not a key yet.
    contexts: FxHashMap<u64, u32>,
}

impl SampleProfile {
    /// The number of names in the profile symbol list, including the names that are known only by their hash.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len() + self.symbol_hashes.len()
    }

    /// Empties the profile symbol list.
    pub fn clear_symbols(&mut self) {
        self.symbols.clear();
        self.symbol_hashes.clear();
    }

    /// Makes a sample profile without functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a sample profile without functions that keeps functions with different checksums or attributes apart: what
    /// readers add to it does not depend on the order of files. The functions of such a profile have names of their own for
    /// each checksum ([`SampleNames::insert_variant`]) and no checksum, until [`unite_variants`](super::unite_variants).
    pub fn keeping_variants() -> Self {
        SampleProfile {
            keeps_variants: true,
            ..Self::default()
        }
    }

    /// Whether the profile keeps functions with different checksums or attributes apart.
    pub fn keeps_variants(&self) -> bool {
        self.keeps_variants
    }

    pub(super) fn stop_keeping_variants(&mut self) {
        self.keeps_variants = false;
    }

    /// Returns all functions in the order in which they were added.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns mutable access to the samples of the function at this index of [`functions`](Self::functions); `None` if
    /// there are not so many functions.
    pub fn samples_mut(&mut self, index: usize) -> Option<&mut Samples> {
        Some(&mut self.functions.get_mut(index)?.samples)
    }

    /// Returns the names, and mutable access to the samples of all functions. The caller must not change the names and
    /// callers of the functions.
    pub fn parts_mut(&mut self) -> (&mut SampleNames, &mut [Function]) {
        (&mut self.names, &mut self.functions)
    }

    /// Adds a name if it is new, and returns its id. Returns `None` if the profile already has 2^32 − 1 names.
    pub fn intern(&mut self, name: SampleName<'_>) -> Option<NameId> {
        self.names.insert(name)
    }

    /// Returns the index of the function with this name and these callers; `None` if there is none.
    pub fn find(&self, callers: &[Frame], name: NameId) -> Option<usize> {
        self.slot(callers, name).ok()
    }

    /// Returns the index of the function with this name and these callers. If there is no such function, it is added
    /// without samples.
    pub fn find_or_add(&mut self, callers: &[Frame], name: NameId) -> usize {
        match self.slot(callers, name) {
            Ok(index) => index,
            Err(key) => self.add(callers.into(), name, key),
        }
    }

    /// Returns the index of a function. If there is no such function, returns as the error the key with which the
    /// caller must add the function to the index.
    fn slot(&self, callers: &[Frame], name: NameId) -> Result<usize, u64> {
        if callers.is_empty() {
            return match self.bases.get(name.index()) {
                Some(&index) if index != u32::MAX => Ok(index as usize),
                _ => Err(0),
            };
        }
        let mut hasher = FxHasher::default();
        (callers, name).hash(&mut hasher);
        let mut key = hasher.finish();
        loop {
            let Some(&index) = self.contexts.get(&key) else {
                return Err(key);
            };
            match self.functions.get(index as usize) {
                Some(found) if found.samples.name == name && *found.callers == *callers => {
                    return Ok(index as usize);
                }
                _ => key = key.wrapping_add(1),
            }
        }
    }

    fn add(&mut self, callers: Box<[Frame]>, name: NameId, key: u64) -> usize {
        let index = self.functions.len();
        self.index(callers.is_empty(), name, key, index);
        self.functions.push(Function {
            callers,
            samples: Samples {
                name,
                ..Samples::default()
            },
        });
        index
    }

    fn index(&mut self, is_base: bool, name: NameId, key: u64, index: usize) {
        // The conversion to 32 bits cannot fail: 2^32 functions would not fit into memory.
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        if !is_base {
            self.contexts.insert(key, number);
            return;
        }
        if self.bases.len() <= name.index() {
            self.bases
                .resize(self.names.len().max(name.index() + 1), u32::MAX);
        }
        if let Some(slot) = self.bases.get_mut(name.index()) {
            *slot = number;
        }
    }

    /// Removes and returns all functions. The profile keeps its names, kind and symbol list.
    pub fn take_functions(&mut self) -> Vec<Function> {
        self.bases.clear();
        self.contexts.clear();
        std::mem::take(&mut self.functions)
    }

    /// Keeps only the functions for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Function) -> bool) {
        for function in self.take_functions() {
            if keep(&function) {
                self.push(function);
            }
        }
    }

    /// Adds a function. If the profile already has a function with the same name and callers, nothing is added and
    /// `function` is returned. Otherwise returns `None`.
    pub fn push(&mut self, function: Function) -> Option<Function> {
        match self.slot(&function.callers, function.samples.name) {
            Ok(_) => Some(function),
            Err(key) => {
                let index = self.functions.len();
                let (is_base, name) = (function.callers.is_empty(), function.samples.name);
                self.index(is_base, name, key, index);
                self.functions.push(function);
                None
            }
        }
    }

    /// Returns the indices of the functions in the order in which LLVM writes them: by descending total samples, then
    /// by calling context (`sortFuncProfiles`). `ranks` has the [rank](SampleNames::ranks) of each name.
    pub fn llvm_order(&self, ranks: &IndexVec<NameId, u32>) -> Vec<u32> {
        let rank = |name: NameId| ranks.get(name).copied().unwrap_or(u32::MAX);
        let mut order: Vec<(u64, u32, u32)> = (0u32..)
            .zip(&self.functions)
            .map(|(index, function)| {
                let first = function.callers.first().map(|frame| frame.name);
                let first = rank(first.unwrap_or(function.samples.name));
                (!function.samples.total, first, index)
            })
            .collect();
        let function = |index: u32| self.functions.get(index as usize);
        order.sort_unstable_by(|one, two| {
            (one.0, one.1).cmp(&(two.0, two.1)).then_with(|| {
                match (function(one.2), function(two.2)) {
                    (Some(one), Some(two)) => compare_contexts(one, two, rank),
                    _ => std::cmp::Ordering::Equal,
                }
            })
        });
        order.into_iter().map(|(_, _, index)| index).collect()
    }
}

/// Compares two calling contexts as LLVM does (`SampleContext::operator<`): frame by frame, first by name, then by call
/// site. The call site of the last frame counts as 0. A context comes before longer contexts that begin with it. `rank`
/// returns the [rank](SampleNames::ranks) of a name.
pub fn compare_contexts(
    one: &Function,
    two: &Function,
    rank: impl Fn(NameId) -> u32,
) -> std::cmp::Ordering {
    let frames = |function: &Function| {
        let leaf = (rank(function.samples.name), Location::default());
        let callers = function.callers.iter();
        callers
            .map(|frame| (rank(frame.name), frame.location))
            .chain([leaf])
            .collect::<Vec<_>>()
    };
    if one.callers.is_empty() && two.callers.is_empty() {
        return rank(one.samples.name).cmp(&rank(two.samples.name));
    }
    frames(one).cmp(&frames(two))
}
