//! The function at an address, by the symbol table of a binary.
use object::elf::{STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolFlags, SymbolKind};
use profkit_data::Result;
use profkit_object::binary::Image;
use profkit_object::bounds::named;

/// How many symbols before an address are tried, if the last one before it has ended already. Symbols with a size can
/// lie in each other.
const MOST_TRIED: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    start: u64,
    /// The end of the code. Equal to the start while the size is not known.
    end: u64,
    name: Vec<u8>,
    /// Of several symbols at one address, the one with the largest rank names it.
    rank: (bool, bool, bool, std::cmp::Reverse<usize>, usize),
}

/// The functions of a binary by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    list: Vec<Symbol>,
}

impl Symbols {
    /// Reads the symbol table and the dynamic symbols of a binary and of its debug file. Of several names for one
    /// address, the one is chosen that perf chooses: a name with a size, not a weak one, a global one, the one with the
    /// fewest underscores at its beginning, the longest.
    ///
    /// # Errors
    /// If the names of the symbols are longer together than the file.
    pub fn of(image: &Image<'_>, debug: Option<&Image<'_>>) -> Result<Self> {
        let mut list = Vec::new();
        for image in [Some(image), debug].into_iter().flatten() {
            read(image, &mut list)?;
        }
        let mut sections: Vec<(u64, u64)> = image
            .sections()
            .filter(|section| section.size() > 0)
            .map(|section| {
                let start = section.address();
                (start, start.saturating_add(section.size()))
            })
            .collect();
        sections.sort_unstable();
        Ok(Self::sorted(list, &sections))
    }

    /// Sections are their starts and ends, sorted.
    fn sorted(mut list: Vec<Symbol>, sections: &[(u64, u64)]) -> Self {
        list.sort_by(|a, b| (a.start, &b.rank, &a.name).cmp(&(b.start, &a.rank, &b.name)));
        list.dedup_by_key(|symbol| symbol.start);
        // A symbol without a size ends where the next one begins, or with its section.
        let starts: Vec<u64> = list.iter().map(|symbol| symbol.start).collect();
        let nexts = starts.into_iter().skip(1).chain([u64::MAX]);
        for (symbol, next) in list.iter_mut().zip(nexts) {
            if symbol.end == symbol.start {
                let after = sections.partition_point(|(start, _)| *start <= symbol.start);
                let section = after.checked_sub(1).and_then(|at| sections.get(at));
                symbol.end = next.min(section.map_or(symbol.start, |&(_, end)| end));
                symbol.end = symbol.end.max(symbol.start);
            }
        }
        Symbols { list }
    }

    /// Reads the text of `/proc/kallsyms`: a line for each symbol, with its address, its type and its name. The name of a
    /// module follows symbols of modules, which are left out. Also returns the addresses of `_text` and `_stext`.
    pub fn of_kallsyms(text: &[u8]) -> (Self, [Option<u64>; 2]) {
        let mut list: Vec<Symbol> = Vec::new();
        let mut starts = [None; 2];
        for line in text.split(|&byte| byte == b'\n') {
            let mut words = line.split(|byte| byte.is_ascii_whitespace());
            let (Some(address), Some(kind), Some(name), None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let address = std::str::from_utf8(address).ok();
            let address = address.and_then(|text| u64::from_str_radix(text, 16).ok());
            // The kernel states 0 to users who may not know its addresses.
            let Some(start) = address.filter(|&address| address != 0) else {
                continue;
            };
            match name {
                b"_text" => starts[0] = Some(start),
                b"_stext" => starts[1] = Some(start),
                _ => {}
            }
            if !matches!(kind, b"t" | b"T" | b"w" | b"W") {
                continue;
            }
            let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
            let is_upper = kind.iter().all(u8::is_ascii_uppercase);
            list.push(Symbol {
                start,
                end: start,
                name: name.to_vec(),
                rank: (
                    false,
                    !kind.eq_ignore_ascii_case(b"w"),
                    is_upper,
                    std::cmp::Reverse(underscores),
                    name.len(),
                ),
            });
        }
        (Self::sorted(list, &[(0, u64::MAX)]), starts)
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the name of the function at an address; `None` if no symbol covers the address.
    pub fn name(&self, address: u64) -> Option<&[u8]> {
        let after = self.list.partition_point(|symbol| symbol.start <= address);
        let before = self.list.get(..after)?.iter().rev().take(MOST_TRIED);
        let mut covering = before.filter(|symbol| address < symbol.end);
        covering.next().map(|symbol| symbol.name.as_slice())
    }
}

fn read(image: &Image<'_>, list: &mut Vec<Symbol>) -> Result<()> {
    let is_code = |symbol: &object::Symbol<'_, '_, _>| {
        let section = symbol.section_index();
        let section = section.and_then(|index| image.section_by_index(index).ok());
        section.is_some_and(|section| section.kind() == SectionKind::Text)
    };
    for symbol in named(image, image.symbols().chain(image.dynamic_symbols())) {
        let (symbol, name) = symbol?;
        let is_function = match symbol.flags() {
            SymbolFlags::Elf { st_info, .. } => match st_info.st_type() {
                STT_FUNC | STT_GNU_IFUNC => true,
                STT_NOTYPE => is_code(&symbol),
                _ => false,
            },
            _ => symbol.kind() == SymbolKind::Text,
        };
        // Names that begin with `$` mark data and code in objects of Arm and RISC-V, and are no functions.
        if !is_function || !symbol.is_definition() || name.is_empty() || name.starts_with(b"$") {
            continue;
        }
        let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
        list.push(Symbol {
            start: symbol.address(),
            end: symbol.address().saturating_add(symbol.size()),
            name: name.to_vec(),
            rank: (
                symbol.size() > 0,
                !symbol.is_weak(),
                symbol.is_global(),
                std::cmp::Reverse(underscores),
                name.len(),
            ),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_running_kernel() {
        let text =
            b"ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t helper\n\
            ffffffff81000200 W weaker\nffffffff81000200 T strong\nffffffff81000300 d data\n\
            ffffffffc0000000 t of_module\t[ext4]\n";
        let (symbols, starts) = Symbols::of_kallsyms(text);
        let text_start = 0xffff_ffff_8100_0000;
        assert_eq!(starts, [Some(text_start); 2]);
        let name = |offset: u64| {
            let name = symbols.name(text_start + offset);
            name.map(|name| String::from_utf8_lossy(name).into_owned())
        };
        assert_eq!(name(0x150).as_deref(), Some("helper"));
        assert_eq!(name(0x200).as_deref(), Some("strong"), "not the weak name");
        assert_eq!(
            name(0x300).as_deref(),
            Some("strong"),
            "data are no function"
        );
        assert_eq!(symbols.name(text_start - 1), None);
        // Without the permission to know addresses, all are 0.
        let (hidden, starts) = Symbols::of_kallsyms(b"0000000000000000 T _text\n");
        assert!(hidden.is_empty() && starts == [None, None]);
    }
}
