//! Lists of hot blocks for clang's `-fbasic-block-sections=list=`: executed blocks stay with the function, the others
//! go to `FUNCTION.cold`.
//!
//! A map of MIP knows blocks by address; clang's list knows them by the ids of machine basic blocks. The section
//! `.llvm_bb_addr_map` of the instrumented binary has both, so it joins them. clang numbers the blocks when it makes
//! them. So a build of the same source, by the same compiler with the same options and the list, has the same ids.
use super::bb_addr_map::FunctionBlocks;
use profkit_data::mip::{Function, MipProfile};
use rustc_hash::FxHashMap;

/// The form of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListVersion {
    /// `!function` and `!!ids`: read by LLVM 12 and later. Its ids are those of the map in LLVM 15 and later.
    V0,
    /// `v1`, `f function` and `c ids`: LLVM 17 and later.
    V1,
}

impl ListVersion {
    /// The form to write for an LLVM release; `None` if that release writes a block map of another form.
    pub fn of_release(release: u32) -> Option<Self> {
        match release {
            0..=14 => None,
            15 | 16 => Some(ListVersion::V0),
            _ => Some(ListVersion::V1),
        }
    }
}

/// The hot blocks of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotBlocks<'p> {
    /// Its symbol.
    pub name: &'p [u8],
    /// The ids of the executed blocks, in the order of their layout. The entry is the first.
    pub ids: Vec<u32>,
    /// How many blocks are not executed.
    pub cold: usize,
    /// Their size.
    pub cold_bytes: u64,
}

/// The hot blocks of all functions, and counts of the functions that are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockList<'p> {
    /// Functions with a block that no run executed.
    pub functions: Vec<HotBlocks<'p>>,
    /// Functions whose blocks were all executed: there is nothing to split off.
    pub whole: usize,
    /// Functions that no run called. clang's list cannot mark a whole function as cold.
    pub never_called: usize,
    /// Functions that the binary no longer has.
    pub missing: Vec<&'p [u8]>,
    /// Functions whose blocks differ between the binary and the profile: the code changed.
    pub stale: Vec<&'p [u8]>,
    /// Names that several functions have. A list cannot tell them apart.
    pub ambiguous: Vec<&'p [u8]>,
    /// Functions without block coverage in the profile.
    pub without_blocks: usize,
    /// Functions that `.llvm_bb_addr_map` does not list, or lists without a block at their start (other compilers,
    /// assembly).
    pub without_ids: usize,
}

/// Makes the list. `current` is an empty profile of the binary's map, and `maps` is the binary's `.llvm_bb_addr_map`.
/// The binary may be the build that the profile belongs to, or a later one.
///
/// A function is listed if its control-flow signature and its number of blocks are those of the profile.
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

/// The hot blocks of one function: `now` is its entry in the current map, and `map` has its blocks.
fn of_function<'p>(
    function: &'p Function,
    now: &Function,
    map: &FunctionBlocks,
) -> Option<HotBlocks<'p>> {
    let first = map.blocks.first()?;
    if first.address != now.address {
        return None;
    }
    // Blocks of MIP by their start; the entry is the first.
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
        // A block that MIP does not count separately runs together with the one before it.
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
    /// The list as clang reads it.
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
