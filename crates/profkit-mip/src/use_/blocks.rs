//! Makes lists of hot blocks for clang's option `-fbasic-block-sections=list=`. With such a list, clang leaves executed
//! blocks in the function and moves the others to `FUNCTION.cold`.
//!
//! A MIP map contains the addresses of blocks, but clang's list needs the ids of machine basic blocks. The section
//! `.llvm_bb_addr_map` of the instrumented binary contains both. The ids depend on the source, the compiler and its
//! options. So a later build with a list has the same ids if nothing but the list changes.
use profkit_data::mip::{Function, MipProfile};
use profkit_object::bb_addr_map::FunctionBlocks;
use rustc_hash::FxHashMap;

/// The version of clang's list format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListVersion {
    /// Lines `!function` and `!!ids`, for LLVM 12 and later. The ids are those of `.llvm_bb_addr_map` since LLVM 15.
    V0,
    /// Lines of the form `v1`, `f function` and `c ids`, which LLVM 17 and later read.
    V1,
}

impl ListVersion {
    /// `None` if the release writes a form of `.llvm_bb_addr_map` that is not supported.
    pub fn of_release(release: u32) -> Option<Self> {
        match release {
            0..=14 => None,
            15 | 16 => Some(ListVersion::V0),
            _ => Some(ListVersion::V1),
        }
    }
}

/// The executed blocks of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotBlocks<'p> {
    /// The symbol of the function.
    pub name: &'p [u8],
    /// The ids of the executed blocks, in the order of the function's code. The first is the entry block.
    pub ids: Vec<u32>,
    /// The number of blocks that were not executed.
    pub cold: usize,
    /// The size in bytes of the blocks that were not executed.
    pub cold_bytes: u64,
}

/// The executed blocks of functions, and why other functions are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList<'p> {
    /// The listed functions. In each of them, at least one block was never executed.
    pub functions: Vec<HotBlocks<'p>>,
    /// The number of functions that are not listed because all their blocks were executed.
    pub whole: usize,
    /// Functions that were never called: clang's list cannot mark a whole function as cold.
    pub never_called: usize,
    /// The symbols of functions in the profile that the binary does not contain.
    pub missing: Vec<&'p [u8]>,
    /// The symbols of functions whose blocks differ between the binary and the profile, because the code changed.
    pub stale: Vec<&'p [u8]>,
    /// The symbols that several functions have. A list cannot distinguish these functions.
    pub ambiguous: Vec<&'p [u8]>,
    /// The number of functions that have no block coverage in the profile.
    pub without_blocks: usize,
    /// Functions that `.llvm_bb_addr_map` lacks, or that begin elsewhere, as those of assembly.
    pub without_ids: usize,
}

/// Makes a list of hot blocks. `current` is an empty profile with the functions of the binary's map, and `maps` is the
/// content of the binary's `.llvm_bb_addr_map`. The binary may be the one that was profiled, or a later build.
///
/// A function is listed if its control-flow signature and its number of blocks are the same in the binary and the
/// profile.
pub fn hot_blocks<'p>(
    profile: &'p MipProfile,
    current: &MipProfile,
    maps: &[FunctionBlocks],
) -> BlockList<'p> {
    let mut by_name: FxHashMap<&[u8], (usize, Option<&Function>)> = FxHashMap::default();
    for function in &current.functions {
        let known = by_name.entry(&function.name).or_default();
        *known = (known.0 + 1, Some(function));
    }
    let mut in_profile: FxHashMap<&[u8], usize> = FxHashMap::default();
    for function in &profile.functions {
        *in_profile.entry(&function.name).or_default() += 1;
    }
    let maps: FxHashMap<u64, &FunctionBlocks> = maps.iter().map(|map| (map.address, map)).collect();
    let mut list = BlockList::default();
    for function in &profile.functions {
        if function.is_part() {
            continue;
        }
        if !function.is_covered() {
            list.never_called += 1;
            continue;
        }
        let (count, now) = by_name.get(&*function.name).copied().unwrap_or_default();
        let Some(now) = now else {
            list.missing.push(&function.name);
            continue;
        };
        if count > 1
            || in_profile
                .get(&*function.name)
                .is_some_and(|&count| count > 1)
        {
            list.ambiguous.push(&function.name);
        } else if now.signature != function.signature || now.blocks.len() != function.blocks.len() {
            list.stale.push(&function.name);
        } else if !function
            .modes
            .contains(profkit_data::mip::Modes::BLOCK_COVERAGE)
        {
            list.without_blocks += 1;
        } else {
            match maps
                .get(&now.address)
                .and_then(|map| of_function(function, now, map))
            {
                None => list.without_ids += 1,
                Some(hot) if hot.cold == 0 => list.whole += 1,
                Some(hot) => list.functions.push(hot),
            }
        }
    }
    list.ambiguous.dedup();
    list
}

/// The executed blocks: `now` is the function in the binary's map, `map` its entry with the ids; `None` if they do not
/// fit.
fn of_function<'p>(
    function: &'p Function,
    now: &Function,
    map: &FunctionBlocks,
) -> Option<HotBlocks<'p>> {
    let first = map.blocks.first()?;
    if first.address != now.address {
        return None;
    }
    // For each MIP block, its offset, and whether it was executed. The first is the entry.
    let mut executed: Vec<(u64, bool)> = vec![(0, true)];
    executed.extend(
        now.blocks
            .iter()
            .zip(&function.blocks)
            .map(|(now, then)| (now.offset.into(), then.runs > 0)),
    );
    executed.sort_unstable_by_key(|(offset, _)| *offset);
    let mut hot = HotBlocks {
        name: &function.name,
        ids: Vec::new(),
        cold: 0,
        cold_bytes: 0,
    };
    for block in &map.blocks {
        // A machine block that starts no MIP block belongs to the last one before it.
        let offset = block.address.checked_sub(now.address)?;
        let after = executed.partition_point(|(start, _)| *start <= offset);
        let (_, executed) = executed.get(after.checked_sub(1)?)?;
        if *executed {
            hot.ids.push(block.id);
        } else {
            hot.cold += 1;
            hot.cold_bytes = hot.cold_bytes.saturating_add(block.size);
        }
    }
    Some(hot)
}

impl BlockList<'_> {
    /// The number of blocks in the listed functions that were never executed.
    pub fn cold_blocks(&self) -> usize {
        self.functions.iter().map(|function| function.cold).sum()
    }

    /// The size of these blocks in bytes.
    pub fn cold_bytes(&self) -> u64 {
        let bytes = self.functions.iter().map(|function| function.cold_bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the text of the list in the form that clang reads.
    pub fn write(&self, version: ListVersion) -> Vec<u8> {
        let mut out = Vec::new();
        if version == ListVersion::V1 {
            out.extend_from_slice(b"v1\n");
        }
        let (function_line, cluster_line): (&[u8], &[u8]) = match version {
            ListVersion::V0 => (b"!", b"!!"),
            ListVersion::V1 => (b"f ", b"c "),
        };
        for function in &self.functions {
            out.extend_from_slice(function_line);
            out.extend_from_slice(function.name);
            out.push(b'\n');
            out.extend_from_slice(cluster_line);
            let ids: Vec<String> = function.ids.iter().map(ToString::to_string).collect();
            out.extend_from_slice(ids.join(" ").as_bytes());
            out.push(b'\n');
        }
        out
    }
}
