//! The sections of an assembly file, and the directives that change the current section.
use super::statement::{Directive, quoted};
use super::{ObjectFormat, Syntax};
use rustc_hash::FxHashMap;

/// The index of a section in [`Module::sections`](super::Module::sections).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SectionId(pub u32);

/// A section of an assembly file, with the attributes that the file gives it.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The name of the section. In Mach-O, the name has the form "segment,section".
    pub name: &'a [u8],
    /// The flags without quotes; in Mach-O the type and attributes. Empty if the file gives none.
    pub flags: &'a [u8],
    /// The name of the COMDAT group or other group that contains the section; `None` if no group does.
    pub group: Option<&'a [u8]>,
    /// The number after `unique`, which distinguishes sections of the same name.
    pub unique: Option<&'a [u8]>,
    /// A directive that makes this section the current section again: its name and arguments, as in the file.
    pub selector: (&'a [u8], &'a [u8]),
    /// Whether the section contains code.
    pub code: bool,
}

/// Splits the arguments of a directive at the commas outside of quotes, parentheses and brackets.
pub fn arguments(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut at) = (0u32, 0);
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => {
                    at = text.len() - quoted(text.get(at..)?).map_or(0, |(_, after)| after.len());
                    continue;
                }
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        rest = text.get(at + 1..);
        text.get(..at).map(<[u8]>::trim_ascii)
    })
}

pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    quoted(text).map_or(text, |(name, _)| name)
}

type Key<'a> = (&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);

#[derive(Debug)]
pub(super) struct Sections<'a> {
    pub(super) list: Vec<Section<'a>>,
    by_key: FxHashMap<Key<'a>, SectionId>,
    pub(super) current: SectionId,
    previous: SectionId,
    stack: Vec<(SectionId, SectionId)>,
    /// The section of the function whose exception table is being read.
    handled: Option<SectionId>,
    format: ObjectFormat,
}

impl<'a> Sections<'a> {
    pub(super) fn new(syntax: &Syntax) -> Self {
        let mut sections = Sections {
            list: Vec::new(),
            by_key: FxHashMap::default(),
            current: SectionId(0),
            previous: SectionId(0),
            stack: Vec::new(),
            handled: None,
            format: syntax.format,
        };
        // An assembler starts in the text section.
        sections.select(Directive {
            name: b".text",
            arguments: b"",
        });
        sections.previous = sections.current;
        sections
    }

    pub(super) fn follow(&mut self, directive: Directive<'a>) {
        match directive.name {
            b".pushsection" => {
                self.stack.push((self.current, self.previous));
                self.select(Directive {
                    name: b".section",
                    ..directive
                });
            }
            b".popsection" => {
                if let Some((current, previous)) = self.stack.pop() {
                    (self.current, self.previous) = (current, previous);
                }
            }
            b".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            // On 32-bit Arm, the exception table of a function stands between these two directives.
            b".handlerdata" => {
                self.handled = Some(self.current);
                self.enter(Section {
                    name: EXCEPTION_TABLE,
                    flags: b"a",
                    group: None,
                    unique: None,
                    selector: (directive.name, b""),
                    code: false,
                });
            }
            b".fnend" => self.current = self.handled.take().unwrap_or(self.current),
            _ => {
                self.select(directive);
            }
        }
    }

    fn select(&mut self, directive: Directive<'a>) {
        let section = match self.format {
            ObjectFormat::Elf => elf(directive),
            ObjectFormat::MachO => mach_o(directive),
        };
        if let Some(section) = section {
            self.enter(section);
        }
    }

    fn enter(&mut self, section: Section<'a>) {
        self.previous = self.current;
        let key = (section.name, section.group, section.unique);
        let id = match self.by_key.get(&key) {
            Some(&id) => id,
            None => {
                // A file has fewer sections than bytes, of which callers check that they are fewer than u32::MAX.
                let id = SectionId(u32::try_from(self.list.len()).unwrap_or(u32::MAX));
                self.list.push(section);
                self.by_key.insert(key, id);
                id
            }
        };
        self.current = id;
    }
}

/// The name of the sections that `.handlerdata` selects. The assembler adds the name of the function's section.
pub const EXCEPTION_TABLE: &[u8] = b".ARM.extab";

/// The ELF directives that select the section of the same name.
const ELF_SHORT: [&[u8]; 9] = [
    b".text",
    b".data",
    b".bss",
    b".rodata",
    b".tdata",
    b".tbss",
    b".data.rel",
    b".data.rel.ro",
    b".eh_frame",
];

fn elf(directive: Directive<'_>) -> Option<Section<'_>> {
    if ELF_SHORT.contains(&directive.name) {
        return Some(Section {
            name: directive.name,
            flags: b"",
            group: None,
            unique: None,
            selector: (directive.name, b""),
            code: directive.name == b".text",
        });
    }
    if !matches!(directive.name, b".section" | b".sect" | b".sect.s") {
        return None;
    }
    let mut parts = arguments(directive.arguments);
    let name = unquoted(parts.next()?);
    let flags = parts.next().map_or(&b""[..], unquoted);
    let mut rest: Vec<&[u8]> = parts.collect();
    if rest.first().is_some_and(|kind| {
        matches!(kind.first(), Some(b'@' | b'%' | b'"' | b'#')) || kind.starts_with(b"STT")
    }) {
        rest.remove(0);
    }
    if flags.contains(&b'M') && !rest.is_empty() {
        rest.remove(0);
    }
    let unique = rest
        .iter()
        .position(|word| *word == b"unique")
        .and_then(|at| rest.get(at + 1).copied());
    // Old versions of clang have the group before the linked-to section, GNU as and new ones after it. The name before
    // "comdat" is that of the group, or else the first.
    let group = if flags.contains(&b'G') {
        let comdat = rest.iter().position(|word| *word == b"comdat");
        let name = match comdat {
            Some(at) => at.checked_sub(1).and_then(|at| rest.get(at)),
            None => rest.first(),
        };
        name.map(|name| unquoted(name))
    } else {
        None
    };
    let code = if flags.is_empty() {
        name == b".text" || name.starts_with(b".text.") || name == b".init" || name == b".fini"
    } else {
        flags.contains(&b'x')
    };
    Some(Section {
        name,
        flags,
        group,
        unique,
        selector: (b".section", directive.arguments),
        code,
    })
}

fn mach_o(directive: Directive<'_>) -> Option<Section<'_>> {
    let plain = |name, code| {
        Some(Section {
            name,
            flags: b"",
            group: None,
            unique: None,
            selector: (directive.name, b""),
            code,
        })
    };
    match directive.name {
        b".text" => plain(b"__TEXT,__text", true),
        b".data" => plain(b"__DATA,__data", false),
        b".bss" => plain(b"__DATA,__bss", false),
        b".const" => plain(b"__TEXT,__const", false),
        b".const_data" => plain(b"__DATA,__const", false),
        b".cstring" => plain(b"__TEXT,__cstring", false),
        b".literal4" => plain(b"__TEXT,__literal4", false),
        b".literal8" => plain(b"__TEXT,__literal8", false),
        b".literal16" => plain(b"__TEXT,__literal16", false),
        b".section" => {
            let text = directive.arguments;
            let comma = text.iter().position(|&byte| byte == b',')?;
            let end = text
                .iter()
                .skip(comma + 1)
                .position(|&byte| byte == b',')
                .map_or(text.len(), |at| comma + 1 + at);
            let name = text.get(..end)?.trim_ascii();
            let flags = text.get(end..)?;
            let has = |word: &[u8]| flags.windows(word.len()).any(|window| window == word);
            Some(Section {
                name,
                flags,
                group: None,
                unique: None,
                selector: (b".section", text),
                code: has(b"pure_instructions") || name == b"__TEXT,__text",
            })
        }
        _ => None,
    }
}
