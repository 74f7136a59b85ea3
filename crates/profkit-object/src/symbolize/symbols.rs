//! Finds the symbol at an address.
//!
//! As in LLVM's `SymbolizableObjectFile.cpp`, some symbols are ignored, and one symbol is chosen if several have the
//! same address.
use crate::bounds::named;
use object::elf::{STB_LOCAL, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT};
use object::{
    Architecture, BinaryFormat, Object, ObjectSection, ObjectSymbol, ReadRef, SectionFlags,
    SymbolFlags, SymbolKind,
};
use profkit_data::Result;

#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'data> {
    address: u64,
    /// The size of the symbol in bytes. 0 means that the size is unknown; the symbol then extends to the next one.
    size: u64,
    pub(super) name: &'data [u8],
    /// The index in the symbol table, if the symbol is a local ELF symbol; by the index, its `STT_FILE` symbol is
    /// found. 0 for other symbols.
    local: usize,
}

#[derive(Default)]
pub(super) struct Symbols<'data> {
    /// The symbols sorted by address. Each address has one symbol.
    symbols: Vec<Symbol<'data>>,
    /// The `STT_FILE` symbols: the index in the symbol table and the name of each.
    files: Vec<(usize, &'data [u8])>,
}

impl<'data> Symbols<'data> {
    /// Reads the symbols of the binary. If the binary has none, reads those of its debug file. If that file has
    /// none either, reads the dynamic symbols of the binary. If the debug file `is_packed` in the binary, it has only symbols
    /// that are not dynamic, so both are read. A symbol table that cannot be read counts as empty.
    ///
    /// # Errors
    /// If the names of the symbols are longer together than the file.
    pub(super) fn read<R: ReadRef<'data>>(
        binary: &object::File<'data, R>,
        debug: Option<&object::File<'data, R>>,
        is_packed: bool,
    ) -> Result<Self> {
        let mut symbols = Symbols::default();
        symbols.collect(binary, false)?;
        if let (true, Some(debug)) = (symbols.symbols.is_empty(), debug) {
            symbols.collect(debug, false)?;
        }
        if symbols.symbols.is_empty() || is_packed {
            symbols.collect(binary, true)?;
        }
        Ok(symbols)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The address and the name of each symbol, sorted by address.
    pub(super) fn functions(&self) -> impl Iterator<Item = (u64, &'data [u8])> {
        self.symbols
            .iter()
            .map(|symbol| (symbol.address, symbol.name))
    }

    fn collect<R: ReadRef<'data>>(
        &mut self,
        file: &object::File<'data, R>,
        dynamic: bool,
    ) -> Result<()> {
        let elf = file.format() == BinaryFormat::Elf;
        self.files.clear();
        let table = if dynamic {
            file.dynamic_symbols()
        } else {
            file.symbols()
        };
        for symbol in named(file, table) {
            let (symbol, mut name) = symbol?;
            let mut local = 0;
            if elf {
                let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                    continue;
                };
                let kind = st_info.st_type();
                if kind == STT_FILE {
                    self.files.push((symbol.index().0, name));
                    continue;
                }
                if !matches!(kind, STT_NOTYPE | STT_FUNC | STT_OBJECT | STT_GNU_IFUNC)
                    || is_mapping_symbol(file.architecture(), name)
                {
                    continue;
                }
                if st_info.st_bind() == STB_LOCAL {
                    local = symbol.index().0;
                }
            } else if !matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data) {
                continue;
            }
            let Some(section) = symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
            else {
                continue;
            };
            if let SectionFlags::Elf { sh_flags, .. } = section.flags()
                && !sh_flags.contains(object::elf::SHF_ALLOC)
            {
                continue;
            }
            if file.format() == BinaryFormat::MachO {
                name = name.strip_prefix(b"_").unwrap_or(name);
            }
            self.symbols.push(Symbol {
                address: symbol.address(),
                size: symbol.size(),
                name,
                local,
            });
        }
        // Of several symbols with the same address, the largest is kept; of equally large ones, the last.
        self.symbols
            .sort_by_key(|symbol| (symbol.address, symbol.size));
        self.symbols.dedup_by(|later, kept| {
            let same = later.address == kept.address;
            if same {
                *kept = *later;
            }
            same
        });
        Ok(())
    }

    /// Returns the symbol that covers `address`; `None` if no symbol does.
    pub(super) fn find(&self, address: u64) -> Option<&Symbol<'data>> {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        (symbol.size == 0 || address - symbol.address < symbol.size).then_some(symbol)
    }

    /// The next address at which the result of [`Symbols::find`] may change.
    pub(super) fn next_change(&self, address: u64) -> u64 {
        let after = self
            .symbols
            .partition_point(|symbol| symbol.address <= address);
        let next = self
            .symbols
            .get(after)
            .map_or(u64::MAX, |symbol| symbol.address);
        match self.find(address) {
            Some(symbol) if symbol.size != 0 => {
                next.min(symbol.address.saturating_add(symbol.size))
            }
            _ => next,
        }
    }

    /// Returns the source file of a local ELF symbol: the name of the `STT_FILE` symbol before it. `None` if there is
    /// no such symbol or if the symbol is not local.
    pub(super) fn file_of(&self, symbol: &Symbol<'_>) -> Option<&'data [u8]> {
        if symbol.local == 0 {
            return None;
        }
        let after = self
            .files
            .partition_point(|(index, _)| *index < symbol.local);
        self.files
            .get(after.checked_sub(1)?)
            .map(|(_, name)| *name)
            .filter(|name| !name.is_empty())
    }
}

/// Whether a symbol only marks the start of code or data, as on some architectures, and is not the name of a function
/// or variable.
fn is_mapping_symbol(architecture: Architecture, name: &[u8]) -> bool {
    match architecture {
        Architecture::Aarch64 => name.starts_with(b"$d") || name.starts_with(b"$x"),
        Architecture::Arm => {
            name.is_empty()
                || name.starts_with(b"$d")
                || name.starts_with(b"$t")
                || name.starts_with(b"$a")
        }
        Architecture::Riscv32 | Architecture::Riscv64 => name.is_empty() || name.starts_with(b"$"),
        _ => false,
    }
}
