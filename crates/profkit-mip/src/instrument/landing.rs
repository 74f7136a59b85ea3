//! Collects facts about the code of a file from its data: the labels in jump tables, and the landing pads in exception
//! tables.
use super::functions::is_data;
use crate::asm::{Directive, EXCEPTION_TABLE, Kind, Module, Section, is_name_byte, quoted, words};
use rustc_hash::{FxHashMap, FxHashSet};

/// Code from `start` to `end`: if a call in it throws, control continues at `pad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region<'a> {
    pub(super) start: &'a [u8],
    pub(super) end: &'a [u8],
    pub(super) pad: &'a [u8],
}

#[derive(Debug, Default)]
pub(super) struct DataFacts<'a> {
    /// Names in data that the program can read, such as jump tables. Labels of code among them may be targets.
    pub(super) referenced: FxHashSet<&'a [u8]>,
    pub(super) tables: FxHashMap<&'a [u8], Vec<&'a [u8]>>,
    pub(super) regions: FxHashMap<&'a [u8], Region<'a>>,
}

/// Whether references to code from this section are never jump targets. An example is debug info.
fn is_silent(section: &Section<'_>) -> bool {
    const NAMES: [&[u8]; 6] = [
        b".debug",
        b".eh_frame",
        b"__patchable_function_entries",
        b"__mcount_loc",
        b"xray_",
        b"__TEXT,__eh_frame",
    ];
    NAMES.iter().any(|name| section.name.starts_with(name))
        || section.name.starts_with(b"__DWARF")
        // A section without the flag `a` is not loaded when the program runs.
        || !section.flags.is_empty()
            && section.selector.0 == b".section"
            && !section.name.contains(&b',')
            && !section.flags.iter().any(|flag| matches!(flag, b'a' | b'?'))
}

fn is_exception_table(section: &Section<'_>) -> bool {
    section.name.starts_with(b".gcc_except_table")
        || section.name == b"__TEXT,__gcc_except_tab"
        || section.name == EXCEPTION_TABLE
}

impl<'a> DataFacts<'a> {
    pub(super) fn gather(module: &Module<'a>) -> Self {
        let mut facts = DataFacts::default();
        // The last label of each section, which still applies when the file returns to it.
        let mut last: FxHashMap<u32, &'a [u8]> = FxHashMap::default();
        for (index, statement) in module.statements.iter().enumerate() {
            let Some(section) = module.section(statement.section) else {
                continue;
            };
            match statement.kind {
                Kind::Label(name) => {
                    last.insert(statement.section.0, name);
                }
                // Within code, a table begins after the last instruction.
                Kind::Instruction(_) => {
                    last.remove(&statement.section.0);
                }
                Kind::Directive(Directive { name, arguments }) if is_data(name) => {
                    if is_exception_table(section) {
                        facts.call_sites(module, index);
                    } else if !is_silent(section) {
                        let label = last.get(&statement.section.0).copied();
                        let names = if section.code {
                            added(arguments)
                        } else {
                            words(arguments).collect()
                        };
                        for word in names.into_iter().filter(|word| !is_number(word)) {
                            facts.referenced.insert(word);
                            if let Some(label) = label.filter(|label| *label != word) {
                                facts.tables.entry(label).or_default().push(word);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        facts
    }

    /// Reads a call-site table: `.uleb128 END-START`, the label START, four values per site, the label END.
    fn call_sites(&mut self, module: &Module<'a>, index: usize) -> Option<()> {
        let at = |index: usize| module.statements.get(index).map(|s| s.kind);
        let Kind::Directive(length) = at(index)? else {
            return None;
        };
        let Kind::Label(begin) = at(index + 1)? else {
            return None;
        };
        // The byte before each of two lengths tells which it is: here, the encoding of call sites.
        let Kind::Directive(encoding) = at(index.checked_sub(1)?)? else {
            return None;
        };
        if encoding.name != b".byte" || !matches!(encoding.arguments, b"1" | b"0x1") {
            return None;
        }
        let mut names = words(length.arguments);
        let end = names.next()?;
        if names.next()? != begin {
            return None;
        }
        let mut values: Vec<&'a [u8]> = Vec::with_capacity(4);
        let section = module.statements.get(index)?.section;
        for statement in module.statements.get(index + 2..)? {
            if statement.section != section {
                return None;
            }
            match statement.kind {
                Kind::Label(name) if name == end => return Some(()),
                Kind::Directive(directive) if is_data(directive.name) => {
                    values.push(directive.arguments);
                    if values.len() == 4 {
                        self.call_site(&values);
                        values.clear();
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn call_site(&mut self, values: &[&'a [u8]]) {
        let first = |index: usize| {
            let value: &'a [u8] = values.get(index).copied().unwrap_or_default();
            words(value).next().filter(|word| !is_number(word))
        };
        if let (Some(start), Some(end), Some(pad)) = (first(0), first(1), first(2)) {
            self.regions.insert(start, Region { start, end, pad });
        }
    }
}

/// The names that an expression adds. Those that it subtracts are places from which a distance is measured, such as
/// the instruction of `.word x-(.LPIC0+8)`. Nothing jumps to them.
pub(super) fn added(expression: &[u8]) -> Vec<&[u8]> {
    let mut names = Vec::new();
    // Whether terms are subtracted: in the parentheses that are open, and for the next term.
    let (mut open, mut next) = (vec![false], false);
    let mut rest = expression;
    while let Some(&byte) = rest.first() {
        let within = open.last().copied().unwrap_or_default();
        match byte {
            b'(' => open.push(within != next),
            b')' => {
                open.pop();
            }
            b'-' => next = true,
            b'+' | b',' => next = false,
            _ if is_name_byte(byte) || byte == b'"' => {
                let length = match quoted(rest) {
                    Some((_, after)) => rest.len() - after.len(),
                    None => rest
                        .iter()
                        .position(|&byte| !is_name_byte(byte))
                        .unwrap_or(rest.len())
                        .max(1),
                };
                let (term, after) = rest.split_at(length);
                if within == next {
                    names.extend(words(term));
                }
                next = false;
                rest = after;
                continue;
            }
            _ => {}
        }
        if byte == b'(' {
            next = false;
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    names
}

pub(super) fn is_number(word: &[u8]) -> bool {
    word == b"." || word.first().is_some_and(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_added_names_count() {
        let names = |text: &'static str| -> Vec<&str> {
            let names = added(text.as_bytes()).into_iter();
            names
                .map(|name| std::str::from_utf8(name).unwrap())
                .filter(|name| !is_number(name.as_bytes()))
                .collect()
        };
        assert_eq!(names(".LBB0_3-.LJTI0_0"), [".LBB0_3"]);
        assert_eq!(names("(.LBB0_3-(.LCPI0_1+4))/2"), [".LBB0_3"]);
        assert_eq!(
            names("x(GOT_PREL)-(.LPC0_0+8-.Ltmp0)"),
            ["x", "GOT_PREL", ".Ltmp0"]
        );
        assert_eq!(names(".L5, .L6 - .L4, \"a-b\""), [".L5", ".L6", "a-b"]);
        assert_eq!(names("-(a-b)+c"), ["b", "c"]);
    }
}
