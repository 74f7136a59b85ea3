//! Lists the functions in the symbol table of a binary, with their addresses and sizes.
use crate::binary::{BinaryFile, Image};
use crate::bounds::named;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use profkit_data::{Error, ErrorKind, Result};
use std::path::Path;

/// A function in the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSymbol {
    /// The name in the symbol table. In Mach-O it has an underscore before the C name.
    pub name: Vec<u8>,
    /// The address.
    pub address: u64,
    /// The size in bytes. ELF states the size; in other formats the function extends to the next one in its section.
    pub size: u64,
}

/// Lists the functions of the program or library in a file, sorted by address.
///
/// # Errors
/// If the file cannot be read, is no program or library, or has no symbols of functions.
pub fn read_code_symbols(path: &Path) -> Result<Vec<CodeSymbol>> {
    let file = BinaryFile::open(path).map_err(|error| {
        Error::new(
            ErrorKind::CannotCorrelate,
            format!("cannot be read: {error}"),
        )
    })?;
    let symbols = code_symbols(&file.image(|_| true)?)?;
    if symbols.is_empty() {
        let error = Error::new(ErrorKind::Empty, "the program has no symbols of functions");
        return Err(error.with_hint("give the program as it was before strip"));
    }
    Ok(symbols)
}

/// Lists the functions of a binary, sorted by address.
///
/// # Errors
/// If the names of the symbols are longer together than the file.
pub fn code_symbols(image: &Image<'_>) -> Result<Vec<CodeSymbol>> {
    let text = image.symbols().chain(image.dynamic_symbols());
    let text = text.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
    let mut symbols = named(image, text)
        .filter(|symbol| symbol.as_ref().map_or(true, |(_, name)| !name.is_empty()))
        .map(|symbol| {
            let (symbol, name) = symbol?;
            let found = CodeSymbol {
                name: name.to_vec(),
                address: symbol.address(),
                size: symbol.size(),
            };
            Ok((found, symbol.section_index()))
        })
        .collect::<Result<Vec<_>>>()?;
    symbols.sort_by(|(one, _), (two, _)| (one.address, &one.name).cmp(&(two.address, &two.name)));
    symbols.dedup_by(|(one, _), (two, _)| (one.address, &one.name) == (two.address, &two.name));
    let mut next = None;
    let mut after = u64::MAX;
    for (symbol, section) in symbols.iter_mut().rev() {
        if next != Some(symbol.address) {
            after = next.unwrap_or(u64::MAX);
            next = Some(symbol.address);
        }
        if symbol.size == 0 {
            let section = section.and_then(|index| image.section_by_index(index).ok());
            let end = section.map_or(symbol.address, |section| {
                section.address().saturating_add(section.size())
            });
            symbol.size = after.min(end).saturating_sub(symbol.address);
        }
    }
    Ok(symbols.into_iter().map(|(symbol, _)| symbol).collect())
}
