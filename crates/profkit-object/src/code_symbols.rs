//! The functions of a binary with their places, as its symbol table has them.
use crate::binary::Image;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// A function in the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSymbol {
    /// The name as the linker has it. Mach-O puts an underscore before C names.
    pub name: Vec<u8>,
    /// The address.
    pub address: u64,
    /// The size in bytes. ELF states it; elsewhere the function reaches to the next one in its section.
    pub size: u64,
}

/// Lists the functions of a binary, sorted by address.
pub fn code_symbols(image: &Image<'_>) -> Vec<CodeSymbol> {
    let ends: Vec<(u64, u64)> = image
        .sections()
        .map(|section| {
            (
                section.address(),
                section.address().saturating_add(section.size()),
            )
        })
        .collect();
    let mut symbols: Vec<CodeSymbol> = image
        .symbols()
        .chain(image.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
            Some(CodeSymbol {
                name: name.to_vec(),
                address: symbol.address(),
                size: symbol.size(),
            })
        })
        .collect();
    symbols.sort_by(|one, two| (one.address, &one.name).cmp(&(two.address, &two.name)));
    symbols.dedup_by(|one, two| (one.address, &one.name) == (two.address, &two.name));
    let mut next = None;
    let mut after = u64::MAX;
    for symbol in symbols.iter_mut().rev() {
        if next != Some(symbol.address) {
            after = next.unwrap_or(u64::MAX);
            next = Some(symbol.address);
        }
        if symbol.size == 0 {
            let section = ends
                .iter()
                .find(|(start, end)| (*start..*end).contains(&symbol.address));
            let end = section.map_or(symbol.address, |&(_, end)| end);
            symbol.size = after.min(end).saturating_sub(symbol.address);
        }
    }
    symbols
}
