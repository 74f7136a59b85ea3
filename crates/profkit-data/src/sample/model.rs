//! The owned model of a sample profile.
use super::names::{NameId, SampleName, SampleNames};
use crate::index_vec::IndexVec;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::{BitOr, BitOrAssign};

/// A place in a function, LLVM's `LineLocation`: the line counted from the function's first, or the number of a pseudo
/// probe, with the discriminator of DWARF's line table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The line less the function's first line; or the probe's number, from 1.
    pub line: u32,
    /// Distinguishes the code of one line; 0 for none.
    pub discriminator: u32,
}

impl Location {
    /// A place.
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
    /// Where.
    pub location: Location,
    /// How many samples.
    pub samples: u64,
}

/// A function called at a place, or a vtable loaded there, with its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Where.
    pub location: Location,
    /// What.
    pub name: NameId,
    /// How many samples.
    pub count: u64,
}

/// A function inlined at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inlined {
    /// The call site in the function around it.
    pub location: Location,
    /// Its samples. Its `head` is 0: encodings hold none for inlined functions.
    pub samples: Samples,
}

/// The samples of a function or of one inlined instance of it: LLVM's `FunctionSamples`, a node of a tree.
///
/// The vectors are sorted by location, and by [`NameId`] within one location; no key occurs twice. Each target stands
/// at the location of a line of `body`. What adds to samples keeps that up ([`adding`](Samples::adding)); who
/// fills the vectors in another way calls [`sort`](Samples::sort).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// The function's name.
    pub name: NameId,
    /// `ContextAttributeMask`: 1 was inlined, 2 should be inlined, 4 duplicated into the base profile.
    pub attributes: u32,
    /// The hash of the control flow graph (`FunctionHash`, `!CFGChecksum`) in profiles of pseudo probes; 0 for none.
    pub checksum: u64,
    /// All samples in the function, with what is inlined.
    pub total: u64,
    /// How often the function was entered by a sampled branch.
    pub head: u64,
    /// Samples by line.
    pub body: Vec<BodyLine>,
    /// What was called, by line of `body`.
    pub targets: Vec<Target>,
    /// Functions inlined, by call site.
    pub inlined: Vec<Inlined>,
    /// Which vtables were seen, by call site (`CallsiteTypeMap`, LLVM 22).
    pub vtables: Vec<Target>,
}

/// A frame of a calling context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function.
    pub name: NameId,
    /// The call site in it.
    pub location: Location,
}

/// A function of a profile, in context-sensitive profiles one of its contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The callers, outermost first; empty in profiles without contexts, and for a base context.
    pub callers: Box<[Frame]>,
    /// The samples; their name is the function's.
    pub samples: Samples,
}

/// What sort of profile it is: facts about all of its functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProfileKind(u32);

impl ProfileKind {
    /// None of the below.
    pub const NONE: Self = ProfileKind(0);
    /// Functions have calling contexts (`ProfileIsCS`, section flag `context`).
    pub const CONTEXT_SENSITIVE: Self = ProfileKind(1);
    /// Lines are pseudo probes, and functions have checksums (`ProfileIsProbeBased`, flag `probe`).
    pub const PROBE_BASED: Self = ProfileKind(1 << 1);
    /// Inlining was decided by `llvm-profgen` (`ProfileIsPreInlined`, flag `preInlined`).
    pub const PRE_INLINED: Self = ProfileKind(1 << 2);
    /// Discriminators are those of FS-AFDO (`ProfileIsFS`, flag `fs-discriminator`).
    pub const FS_DISCRIMINATORS: Self = ProfileKind(1 << 3);
    /// Some names are known by their MD5 only (`ProfileIsMD5`, flag `md5`).
    pub const MD5_NAMES: Self = ProfileKind(1 << 4);
    /// The profile is of code shared with other programs (flag `partial`).
    pub const PARTIAL: Self = ProfileKind(1 << 5);
    /// Functions may have attributes (`ProfileHasAttribute`, flag `attr`).
    pub const HAS_ATTRIBUTES: Self = ProfileKind(1 << 6);
    /// The file holds vtables (`ReadVTableProf`).
    pub const HAS_VTABLES: Self = ProfileKind(1 << 7);

    /// Whether all that `other` says holds.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Without what `other` says.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        ProfileKind(self.0 & !other.0)
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
/// Functions stand in the order in which they were added. They are found by context; who changes a function's name or
/// callers, or the vector of functions, does so through [`take_functions`](Self::take_functions) and
/// [`push`](Self::push), or [`retain`](Self::retain), which make the index anew.
#[derive(Clone, Debug, Default)]
pub struct SampleProfile {
    /// What sort of profile it is.
    pub kind: ProfileKind,
    /// All names, also those that no function needs any more.
    pub names: SampleNames,
    /// The names of all functions of the program, sampled or not (`ProfileSymbolList`). Spelled names.
    pub symbols: BTreeSet<Box<[u8]>>,
    functions: Vec<Function>,
    /// The function without callers by its name; `u32::MAX` for none.
    bases: Vec<u32>,
    /// Functions with callers, by a hash of the context; where two share one, the later stands at the next free number.
    contexts: FxHashMap<u64, u32>,
}

impl SampleProfile {
    /// An empty profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// All functions, in the order in which they were added.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The samples of a function by its place in [`functions`](Self::functions).
    pub fn samples_mut(&mut self, index: usize) -> Option<&mut Samples> {
        Some(&mut self.functions.get_mut(index)?.samples)
    }

    /// The names, and all functions to be changed. Names and callers of functions must stay.
    pub fn parts_mut(&mut self) -> (&mut SampleNames, &mut [Function]) {
        (&mut self.names, &mut self.functions)
    }

    /// The number of a name, added if it is new; `None` for one name too many.
    pub fn intern(&mut self, name: SampleName<'_>) -> Option<NameId> {
        self.names.insert(name)
    }

    /// Where the function with these callers is.
    pub fn find(&self, callers: &[Frame], name: NameId) -> Option<usize> {
        self.slot(callers, name).ok()
    }

    /// Where the function with these callers is; it is added without samples if it is new.
    pub fn find_or_add(&mut self, callers: &[Frame], name: NameId) -> usize {
        match self.slot(callers, name) {
            Ok(index) => index,
            Err(key) => self.add(callers.into(), name, key),
        }
    }

    /// The place of a function, or the key to add it with.
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
        // A function takes bytes of a file of its own, so there are never 2^32 of them in memory.
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

    /// Takes all functions out. Names, kind and symbols stay.
    pub fn take_functions(&mut self) -> Vec<Function> {
        self.bases.clear();
        self.contexts.clear();
        std::mem::take(&mut self.functions)
    }

    /// Keeps the functions that `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&Function) -> bool) {
        for function in self.take_functions() {
            if keep(&function) {
                self.push(function);
            }
        }
    }

    /// Adds a function whose context is not here yet. One that is, is given back.
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

    /// The order in which LLVM writes functions: by total samples descending, then by context (`sortFuncProfiles`).
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

/// LLVM's order of contexts (`SampleContext::operator<`): frame by frame by name, then by call site, the leaf having
/// call site 0; a prefix comes first.
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
