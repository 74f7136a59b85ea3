//! Measures the parts of a linked program that instrumentation changes.
use anyhow::{Context, Result};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::path::Path;

/// Sizes in bytes, and counts, of one ELF file.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The size of `__llvm_mipraw`.
    pub records: u64,
    /// The number of instrumented functions, from the entries of the map.
    pub functions: u64,
    pub dynamic_relocations: u64,
    /// The names of symbols, without those of the runtime, and how often each occurs.
    pub symbols: BTreeMap<String, usize>,
    /// The sizes of functions by name. A name has several sizes if it is defined at several addresses.
    pub function_sizes: BTreeMap<String, Vec<u64>>,
}

/// The prefixes of symbols that an instrumented program has and a plain program does not have.
const OWN_SYMBOLS: [&str; 5] = [
    "__profkit_mip",
    "__llvm_mip",
    "__start___llvm_mip",
    "__stop___llvm_mip",
    "profkit_rt",
];

/// Symbols of the C library and the linker that the runtime needs. A plain program does not always need them.
const NEEDED: [&str; 5] = [
    "getenv",
    "signal",
    "__register_atfork",
    "pthread_atfork",
    "__ehdr_start",
];

fn is_needed(name: &str) -> bool {
    NEEDED.contains(&name.split('@').next().unwrap_or_default())
}

fn is_own(name: &str) -> bool {
    OWN_SYMBOLS.iter().any(|own| name.starts_with(own)) || name.contains("profkit")
}

/// Measures a 64-bit ELF file.
pub fn image(path: &Path) -> Result<Image> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes)
        .with_context(|| path.display().to_string())?;
    let mut made = Image::default();
    for section in file.sections() {
        match section.name()? {
            profkit_abi::mip::section::RECORDS => made.records = section.size(),
            profkit_abi::mip::section::MAP => made.functions = entries(section.data()?)?,
            _ => {}
        }
    }
    for symbol in file.symbols() {
        let name = symbol.name().unwrap_or_default();
        if name.is_empty() || symbol.kind() == SymbolKind::File {
            continue;
        }
        if !is_own(name) {
            *made.symbols.entry(name.to_owned()).or_default() += 1;
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                made.function_sizes
                    .entry(name.to_owned())
                    .or_default()
                    .push(symbol.size());
            }
        }
    }
    let header = file.elf_header();
    let endian = file.endian();
    for section in header.section_headers(endian, &*bytes)? {
        let kind = section.sh_type(endian);
        let loaded = section.sh_flags(endian).contains(elf::SHF_ALLOC);
        if loaded && (kind == elf::SHT_RELA || kind == elf::SHT_REL) {
            made.dynamic_relocations += section
                .sh_size(endian)
                .checked_div(section.sh_entsize(endian))
                .unwrap_or(0);
        }
    }
    Ok(made)
}

/// Counts the entries of a map that describe functions. The entry of the anchor does not count; its mode is 0.
fn entries(mut map: &[u8]) -> Result<u64> {
    let mut count = 0;
    while let Some((head, _)) = map.split_first_chunk::<6>() {
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if u16::from_le_bytes([head[4], head[5]]) != 0 {
            count += 1;
        }
        map = map
            .get(size.max(1)..)
            .with_context(|| format!("a map entry of {size} bytes"))?;
    }
    Ok(count)
}

/// Lists the symbols that only one of two programs has: `+` before a name means the instrumented one, `-` the plain
/// one.
pub fn other_symbols(plain: &Image, instrumented: &Image) -> Vec<String> {
    let mut found = Vec::new();
    for (name, count) in &instrumented.symbols {
        if plain.symbols.get(name).copied().unwrap_or(0) < *count && !is_needed(name) {
            found.push(format!("+{name}"));
        }
    }
    for (name, count) in &plain.symbols {
        if instrumented.symbols.get(name).copied().unwrap_or(0) < *count {
            found.push(format!("-{name}"));
        }
    }
    found
}
