//! Kernel modules of Linux (`.ko`). They are relocatable files: the kernel links them when it loads them.
//!
//! `link` links a module in memory, so that it is read like other binaries. The section `.text` comes first, at the
//! address `TEXT`, because perf records an address in a module as the distance from the start of this section. The
//! other sections with code follow in the order of the section table, as in memory. Then come the sections with the
//! code of the module's initialisation, which the kernel loads elsewhere and frees. The sections with data come last.
//! Relocations are applied to code, data and debug info.
//!
//! Sources: Linux `kernel/module/main.c` (`layout_sections`), `tools/perf/util/symbol-elf.c`; the ELF ABIs of x86-64
//! and AArch64.
use crate::binary::damaged;
use crate::bounds::SectionBytes;
use object::elf::{SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR};
use object::{
    Architecture, CompressionFormat, Object, ObjectKind, ObjectSection, ObjectSymbol,
    RelocationEncoding, RelocationKind, RelocationTarget, SectionFlags, SectionIndex,
};
use profkit_data::{Error, ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;
use std::path::Path;

/// The address that the section `.text` gets. It is not 0, because debug info uses the address 0 for functions that
/// were left out.
const TEXT: u64 = 0x10000;
/// The name of a section that every module has, and that no other relocatable file has.
const MODULE: &str = ".gnu.linkonce.this_module";
/// The ends of the file names of compressed modules.
const PACKED: [&[u8]; 3] = [b".ko.xz", b".ko.zst", b".ko.gz"];
/// The beginning of the names of sections that the kernel frees after the module's initialisation.
const INIT: &str = ".init";

/// Offsets of fields in the 64-bit ELF structures, and the sizes of a section's and of a symbol's entry.
mod place {
    pub const TYPE: usize = 16;
    pub const SECTION_TABLE: usize = 40;
    pub const SECTION_SIZE: usize = 64;
    pub const SECTION_FLAGS: usize = 8;
    pub const SECTION_ADDRESS: usize = 16;
    pub const SECTION_OFFSET: usize = 24;
    pub const SECTION_BYTES: usize = 32;
    pub const SYMBOL_SIZE: usize = 24;
    pub const SYMBOL_VALUE: usize = 8;
}

/// Whether a file is a kernel module.
pub fn is_module<'data, R: object::ReadRef<'data>>(file: &object::File<'data, R>) -> bool {
    file.kind() == ObjectKind::Relocatable
        && matches!(file, object::File::Elf64(_))
        && file.is_little_endian()
        && file.section_by_name(MODULE).is_some()
}

/// Whether a file has the name of a compressed kernel module. Distributions ship modules in this form.
pub(crate) fn is_packed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    PACKED.iter().any(|suffix| name.ends_with(suffix))
}

/// Links a kernel module. Returns a file in which sections and symbols have addresses, and in which the relocations
/// were applied.
///
/// # Errors
/// [`ErrorKind::Malformed`] if its sections or symbols are damaged.
pub(crate) fn link(bytes: &[u8]) -> Result<Vec<u8>> {
    let file = object::File::parse(bytes).map_err(|error| damaged(&error))?;
    let addresses = addresses(&file);
    let mut linked = Linked {
        bytes: bytes.to_vec(),
        sections: usize::try_from(number(bytes, place::SECTION_TABLE)?).unwrap_or(usize::MAX),
    };
    // The file gets the type of a shared library and not that of a program, because programs have segments and modules
    // have none.
    linked.put(place::TYPE, &object::elf::ET_DYN.0.to_le_bytes())?;
    let mut left = SectionBytes::of(&file);
    for section in file.sections() {
        let index = section.index();
        let address = addresses.get(&index).copied().unwrap_or(0);
        linked.put_field(index, place::SECTION_ADDRESS, address)?;
        let relocated = relocated(&file, &section, &addresses, &mut left)?;
        let Some(relocated) = relocated else {
            continue;
        };
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            continue;
        };
        if sh_flags.contains(SHF_COMPRESSED) {
            let offset = linked.bytes.len() as u64;
            linked.bytes.extend_from_slice(&relocated);
            let flags = sh_flags.0 & !SHF_COMPRESSED.0;
            linked.put_field(index, place::SECTION_FLAGS, flags)?;
            linked.put_field(index, place::SECTION_OFFSET, offset)?;
            linked.put_field(index, place::SECTION_BYTES, relocated.len() as u64)?;
        } else if let Some((offset, _)) = section.file_range() {
            linked.put(usize::try_from(offset).unwrap_or(usize::MAX), &relocated)?;
        }
    }
    let table = file
        .sections()
        .find(|section| section.name_bytes() == Ok(b".symtab"))
        .and_then(|section| section.file_range());
    for symbol in file.symbols() {
        let Some((start, _)) = table else { break };
        let Some(address) = symbol
            .section_index()
            .and_then(|section| addresses.get(&section))
        else {
            continue;
        };
        let at = usize::try_from(start)
            .unwrap_or(usize::MAX)
            .saturating_add(place::SYMBOL_VALUE)
            .saturating_add(symbol.index().0.saturating_mul(place::SYMBOL_SIZE));
        let value = address.wrapping_add(symbol.address());
        linked.put(at, &value.to_le_bytes())?;
    }
    Ok(linked.bytes)
}

/// The bytes of a module that is being linked.
struct Linked {
    bytes: Vec<u8>,
    /// The offset of the section table in the file.
    sections: usize,
}

impl Linked {
    fn put(&mut self, at: usize, new: &[u8]) -> Result<()> {
        let end = at.checked_add(new.len());
        let old = end.and_then(|end| self.bytes.get_mut(at..end));
        old.ok_or_else(outside)?.copy_from_slice(new);
        Ok(())
    }

    /// Sets a field of a section's entry in the section table.
    fn put_field(&mut self, section: SectionIndex, field: usize, value: u64) -> Result<()> {
        let entry = section.0.saturating_mul(place::SECTION_SIZE);
        let at = self.sections.saturating_add(entry).saturating_add(field);
        self.put(at, &value.to_le_bytes())
    }
}

#[cold]
fn outside() -> Error {
    Error::new(
        ErrorKind::Malformed,
        "a part of the kernel module lies outside the file",
    )
    .within(Structure::ObjectFile)
    .with_hint("the file is damaged or cut: build or fetch it again")
}

fn number(bytes: &[u8], at: usize) -> Result<u64> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    Ok(u64::from_le_bytes(*field.ok_or_else(outside)?))
}

/// The addresses of the sections that are loaded.
fn addresses(file: &object::File<'_>) -> FxHashMap<SectionIndex, u64> {
    let text = file.section_by_name(".text").map(|section| section.index());
    // The order is: `.text`, other code that the kernel keeps, code of the initialisation, data.
    let rank = |section: &object::Section<'_, '_>| -> Option<u32> {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
            return None;
        };
        if !sh_flags.contains(SHF_ALLOC) {
            return None;
        }
        let is_init = section.name().is_ok_and(|name| name.starts_with(INIT));
        Some(if Some(section.index()) == text {
            0
        } else if sh_flags.contains(SHF_EXECINSTR) {
            1 + u32::from(is_init)
        } else {
            3
        })
    };
    let mut loaded: Vec<_> = file
        .sections()
        .filter_map(|section| Some((rank(&section)?, section)))
        .collect();
    loaded.sort_by_key(|(rank, section)| (*rank, section.index().0));
    let mut end = TEXT;
    let mut addresses = FxHashMap::default();
    for (_, section) in loaded {
        let align = section.align().max(1);
        let start = end.checked_next_multiple_of(align).unwrap_or(end);
        addresses.insert(section.index(), start);
        end = start.saturating_add(section.size());
    }
    addresses
}

/// Returns the decompressed bytes of a section with its relocations applied. `None` if the section needs no change,
/// because it has no bytes in the file, or is not compressed and has no relocations.
fn relocated(
    file: &object::File<'_>,
    section: &object::Section<'_, '_>,
    addresses: &FxHashMap<SectionIndex, u64>,
    bytes: &mut SectionBytes,
) -> Result<Option<Vec<u8>>> {
    if section.file_range().is_none() {
        return Ok(None);
    }
    let compressed = section.compressed_data().map_err(|error| damaged(&error))?;
    let is_compressed = compressed.format != CompressionFormat::None;
    let mut relocations = section.relocations().peekable();
    if relocations.peek().is_none() && !is_compressed {
        return Ok(None);
    }
    let within = |error: Error| error.within(Structure::ObjectFile);
    let mut bytes = bytes.read(section).map_err(within)?.into_owned();
    let own = addresses.get(&section.index()).copied().unwrap_or(0);
    for (offset, relocation) in relocations {
        let target = match relocation.target() {
            RelocationTarget::Symbol(symbol) => {
                let symbol = file.symbol_by_index(symbol);
                let symbol = symbol.map_err(|error| damaged(&error))?;
                // Symbols of the kernel and of other modules have no address here.
                let Some(section) = symbol.section_index() else {
                    continue;
                };
                let section = addresses.get(&section).copied().unwrap_or(0);
                section.wrapping_add(symbol.address())
            }
            RelocationTarget::Section(section) => addresses.get(&section).copied().unwrap_or(0),
            _ => continue,
        };
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = bytes.get_mut(at..).unwrap_or_default();
        let value = target.wrapping_add_signed(relocation.addend());
        let distance = value.wrapping_sub(own.wrapping_add(offset));
        match (relocation.kind(), relocation.encoding(), relocation.size()) {
            (RelocationKind::Absolute, _, 64) => put(place, &value.to_le_bytes()),
            (RelocationKind::Absolute, _, 32) => put(place, &low(value)),
            (
                RelocationKind::Relative | RelocationKind::PltRelative,
                RelocationEncoding::Generic | RelocationEncoding::X86Branch,
                32,
            ) => put(place, &low(distance)),
            (_, RelocationEncoding::AArch64Call, 26)
                if file.architecture() == Architecture::Aarch64 =>
            {
                put_call(place, distance);
            }
            // Relocations of all other kinds are skipped. They do not occur in debug info. In code they change only the
            // values of operands; this does no harm, because only the kinds of the instructions matter.
            _ => {}
        }
    }
    Ok(Some(bytes))
}

/// Replaces the first bytes of `place` by `value`. Does nothing if `place` is shorter than `value`.
fn put(place: &mut [u8], value: &[u8]) {
    if let Some(place) = place.get_mut(..value.len()) {
        place.copy_from_slice(value);
    }
}

/// Sets the distance in a branch instruction of AArch64. The lower 26 bits of the instruction are the distance, counted
/// in instructions.
fn put_call(place: &mut [u8], distance: u64) {
    const DISTANCE: u32 = (1 << 26) - 1;
    if let Some(place) = place.first_chunk_mut::<4>() {
        let [a, b, c, d, ..] = (distance >> 2).to_le_bytes();
        let distance = u32::from_le_bytes([a, b, c, d]) & DISTANCE;
        let instruction = u32::from_le_bytes(*place) & !DISTANCE | distance;
        *place = instruction.to_le_bytes();
    }
}

/// Returns the lower 32 bits as bytes, the lowest byte first.
fn low(value: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = value.to_le_bytes();
    [a, b, c, d]
}
