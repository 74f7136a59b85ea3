//! The basic blocks of a program by address.
use object::read::elf::{ElfFile, FileHeader, ProgramHeader as _};
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::bb_addr_map::{self, BasicBlock, SECTION};
use profkit_object::binary::Image;
use profkit_object::code_symbols::code_symbols;
use profkit_perf::collect::{Numbering, Place};
use rustc_hash::FxHashMap;

/// A function whose blocks are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFunction {
    /// The names of the function, sorted. No other function has one of these names.
    pub names: Vec<Vec<u8>>,
    /// The address.
    pub address: u64,
    /// The blocks in the order of their addresses. The first one is the entry.
    pub blocks: Vec<BasicBlock>,
    /// The number of the function's first block. Blocks are numbered through the whole program.
    pub(super) first: usize,
}

impl MappedFunction {
    /// The size of all blocks.
    pub fn size(&self) -> u64 {
        let sizes = self.blocks.iter().map(|block| block.size);
        sizes.fold(0, u64::saturating_add)
    }
}

/// How many functions have known blocks but cannot be named in the output, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of functions without a symbol.
    pub unnamed: usize,
    /// Functions that share their name, so that neither compilers nor linkers can tell them apart.
    pub ambiguous: usize,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// The addresses of a block, for the search by address.
#[derive(Clone, Copy, Debug)]
struct BlockPlace {
    start: u64,
    end: u64,
    /// The number of the block. Blocks are numbered through the whole program.
    number: usize,
}

/// The functions of a program with their basic blocks.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    /// The functions, sorted by address.
    pub functions: Vec<MappedFunction>,
    /// How many functions are left out of `functions`, by reason.
    pub left_out: LeftOut,
    /// The smallest version of the program's block maps, which shows the oldest possible compiler.
    pub version: u8,
    segments: Vec<Segment>,
    /// All blocks, sorted by address. An empty block comes before the block that begins at the same address.
    places: Vec<BlockPlace>,
    /// For each block, the index of its function.
    owners: Vec<usize>,
}

impl CodeMap {
    /// Reads the basic blocks of a program.
    ///
    /// # Errors
    /// [`ErrorKind::CannotCorrelate`] if the program has no symbols, or no section `.llvm_bb_addr_map`, which describes
    /// its basic blocks. If this section is damaged, the error of its reader.
    pub fn read(image: &Image<'_>) -> Result<Self> {
        let Some(maps) = bb_addr_map::of_image(image)? else {
            return Err(Error::new(
                ErrorKind::CannotCorrelate,
                format!("the program has no section {SECTION}, which says where its basic blocks are"),
            )
            .with_hint(
                "compile it with -fbasic-block-address-map (clang 19 and later) or -fbasic-block-sections=labels \
                 (clang 13 to 18), and record that program",
            ));
        };
        let mut names: FxHashMap<u64, Vec<Vec<u8>>> = FxHashMap::default();
        let mut owners: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
        for symbol in code_symbols(image)? {
            *owners.entry(symbol.name.clone()).or_default() += 1;
            names.entry(symbol.address).or_default().push(symbol.name);
        }
        if names.is_empty() {
            return Err(Error::new(
                ErrorKind::CannotCorrelate,
                "the program has no symbols, which name its functions",
            )
            .with_hint("give the program as it was before strip"));
        }
        let mut code = CodeMap {
            segments: segments(image),
            version: u8::MAX,
            ..CodeMap::default()
        };
        let mut maps = maps;
        // If the linker removed a function, the function's map is still there, but with the address 0.
        maps.retain(|map| map.address != 0 && !map.blocks.is_empty());
        maps.sort_by_key(|map| map.address);
        maps.dedup_by_key(|map| map.address);
        for map in maps {
            let Some(mut names) = names.remove(&map.address) else {
                code.left_out.unnamed += 1;
                continue;
            };
            names.retain(|name| owners.get(name) == Some(&1) && is_writable(name));
            if names.is_empty() {
                code.left_out.ambiguous += 1;
                continue;
            }
            code.version = code.version.min(map.version);
            code.functions.push(MappedFunction {
                names,
                address: map.address,
                blocks: map.blocks,
                first: 0,
            });
        }
        code.number();
        Ok(code)
    }

    /// Numbers the blocks.
    pub(super) fn number(&mut self) {
        for (index, function) in self.functions.iter_mut().enumerate() {
            function.first = self.owners.len();
            for block in &function.blocks {
                self.places.push(BlockPlace {
                    start: block.address,
                    end: block.address.saturating_add(block.size),
                    number: self.owners.len(),
                });
                self.owners.push(index);
            }
        }
        self.places.sort_by_key(|place| (place.start, place.number));
    }

    /// The number of blocks.
    pub(super) fn block_count(&self) -> usize {
        self.owners.len()
    }

    /// Returns a block by its number, and its function.
    pub(super) fn block(&self, number: usize) -> Option<(&MappedFunction, &BasicBlock)> {
        let function = self.functions.get(*self.owners.get(number)?)?;
        Some((function, function.blocks.get(number - function.first)?))
    }

    /// The index of the function that contains the block with this number.
    pub(super) fn owner(&self, number: usize) -> Option<usize> {
        self.owners.get(number).copied()
    }

    /// The number of the block that contains an address. Empty blocks contain no address.
    pub(super) fn holding(&self, address: u64) -> Option<usize> {
        let after = self.places.partition_point(|place| place.start <= address);
        let place = self.places.get(after.checked_sub(1)?)?;
        (address < place.end).then_some(place.number)
    }

    /// The first block that begins at an address, or else the one that contains it.
    pub(super) fn reached(&self, address: u64) -> Option<usize> {
        let at = self.places.partition_point(|place| place.start < address);
        match self.places.get(at) {
            Some(place) if place.start == address => Some(place.number),
            _ => self.holding(address),
        }
    }

    pub(super) fn address(&self, place: Place, numbering: Numbering) -> Option<u64> {
        let place = place.get()?;
        match numbering {
            Numbering::Address => Some(place),
            Numbering::FromBase => self.base().checked_add(place),
            // The kernel has no sections of blocks whose order a linker could change.
            Numbering::FromText | Numbering::FromStext | Numbering::FromModule => None,
            Numbering::FileOffset => self.segments.iter().find_map(|segment| {
                let distance = place.checked_sub(segment.offset)?;
                (distance < segment.size).then(|| segment.address.wrapping_add(distance))
            }),
        }
    }

    fn base(&self) -> u64 {
        const PAGE: u64 = 0x1000;
        let first = self.segments.iter().map(|segment| segment.address).min();
        first.unwrap_or_default() / PAGE * PAGE
    }
}

/// In the files of compilers and linkers, blanks and line breaks separate names.
fn is_writable(name: &[u8]) -> bool {
    name.iter()
        .all(|byte| byte.is_ascii_graphic() || *byte >= 0x80)
        && !name.is_empty()
}

fn segments(image: &Image<'_>) -> Vec<Segment> {
    match image {
        object::File::Elf32(elf) => segments_of(elf),
        object::File::Elf64(elf) => segments_of(elf),
        _ => Vec::new(),
    }
}

fn segments_of<'data, H: FileHeader>(elf: &ElfFile<'data, H>) -> Vec<Segment> {
    let endian = elf.endian();
    elf.elf_program_headers()
        .iter()
        .filter(|header| header.p_type(endian) == object::elf::PT_LOAD)
        .filter(|header| header.p_flags(endian).0 & object::elf::PF_X.0 != 0)
        .map(|header| Segment {
            offset: header.p_offset(endian).into(),
            size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
        })
        .collect()
}
