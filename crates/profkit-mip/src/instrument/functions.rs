//! Finds the functions in an assembly file. Decides which labels are functions, and where each function ends.
use crate::asm::{
    Directive, Instruction, Kind, Module, ObjectFormat, SectionId, Statement, arguments, words,
};
use profkit_data::mip::part_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// A function in an assembly file: its label, and the statements up to its end.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The symbol of the function.
    pub name: &'a [u8],
    /// The index of the statement with the function's label.
    pub label: usize,
    /// The index of the first statement after the end of the function.
    pub end: usize,
    /// Whether `.size` determines the end, and not the statements after the label.
    pub sized: bool,
    /// The end label that the function's `.size` directive names, if it names one.
    pub end_label: Option<&'a [u8]>,
    /// The function's section. Statements of other sections do not belong to it.
    pub section: SectionId,
    /// The parts of the function in other places, such as cold parts.
    pub parts: Vec<Part<'a>>,
    /// Why the function must not be changed. Later checks may find further reasons.
    pub unfit: Option<SkipReason>,
}

/// A part for cold code or one of clang's basic-block sections. It is reached by jumps, so it has no entry probe.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The symbol of the part.
    pub name: &'a [u8],
    /// The index of the statement with the part's label.
    pub label: usize,
    /// The index of the first statement after the end of the part.
    pub end: usize,
    /// Whether `.size` determines the end, and not the statements after the label.
    pub sized: bool,
    /// The end label that the part's `.size` directive names, if it names one.
    pub end_label: Option<&'a [u8]>,
    /// The section that contains the part.
    pub section: SectionId,
}

impl<'a> Function<'a> {
    /// Returns the statements of the function, each with its index. The function's label is not among them.
    pub fn statements<'m>(
        &self,
        module: &'m Module<'a>,
    ) -> impl Iterator<Item = (usize, &'m Statement<'a>)> + use<'m, 'a> {
        let section = self.section;
        let first = self.label + 1;
        module
            .statements
            .get(first..self.end)
            .unwrap_or_default()
            .iter()
            .enumerate()
            .map(move |(index, statement)| (first + index, statement))
            .filter(move |(_, statement)| statement.section == section)
    }

    /// Returns the instructions of the function.
    pub fn instructions<'m>(
        &self,
        module: &'m Module<'a>,
    ) -> impl Iterator<Item = Instruction<'a>> + use<'m, 'a> {
        self.statements(module)
            .filter_map(|(_, statement)| match statement.kind {
                Kind::Instruction(instruction) => Some(instruction),
                _ => None,
            })
    }
}

/// The reason why a function got no probe, or not all probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The function contains no instruction.
    Empty,
    /// The function has fewer instructions than the options require.
    Small,
    /// The function is not in the group of [`Options::group`](super::Options::group).
    OtherGroup,
    /// The function is inside a conditional directive, so its labels may be missing.
    Conditional,
    /// The function begins with a macro or a repetition. It is unknown which instructions they produce.
    Macro,
    /// The function's label is inside another function, whose code may continue into it.
    Overlap,
    /// The label marks a type hash that stands before a function (KCFI). The hash is data, not code.
    TypeHash,
    /// LLVM's machine outliner made the function: all registers and flags may be in use when it is called.
    Outlined,
    /// The function is the resolver of an indirect function (ifunc). A call of its name executes other code.
    Resolver,
    /// The function is a naked function: it consists of inline assembly only.
    Naked,
    /// A directive `.org` in the function's section fixes the position of code, and inserted code would shift it.
    Placed,
    /// The function's label is defined more than once.
    Ambiguous,
    /// The ignore list excludes the function.
    Listed,
    /// The function has an entry probe but no block probes. The variant holds the reason.
    Blocks(String),
    /// The back end of the target cannot instrument the function. The variant holds the reason.
    Target(String),
}

/// A function that got no probe, or not all probes that the options ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The symbol of the function.
    pub name: String,
    /// The line number of the function's label.
    pub line: u32,
    /// The reason. Its text form can follow the name of the function in a message.
    pub reason: SkipReason,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let SkipReason::Blocks(reason) = self {
            return write!(f, "has no block coverage: {reason}");
        }
        f.write_str(match self {
            SkipReason::Empty => "has no instruction",
            SkipReason::Small => "has fewer instructions than --min-instructions",
            SkipReason::OtherGroup => "is not in the group that --group selects",
            SkipReason::Conditional => "stands inside a conditional directive",
            SkipReason::Macro => "begins with a macro whose instructions are unknown",
            SkipReason::Overlap => "begins inside another function",
            SkipReason::TypeHash => "is a type hash, not code",
            SkipReason::Outlined => "is a piece of other functions, outlined by LLVM",
            SkipReason::Resolver => "is the resolver of an indirect function",
            SkipReason::Naked => "consists only of inline assembly (naked)",
            SkipReason::Placed => "is in a section with .org",
            SkipReason::Ambiguous => "has a label that is defined more than once",
            SkipReason::Listed => "is named by the ignore list",
            SkipReason::Blocks(reason) | SkipReason::Target(reason) => reason,
        })
    }
}

pub(super) fn mentions_function(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 4] = [b"@function", b"%function", b"STT_FUNC", b"\"function\""];
    MARKS
        .iter()
        .any(|mark| memchr::memmem::find(text, mark).is_some())
        || memchr::memmem::find(text, b"__TEXT,__text").is_some()
}

#[derive(Default)]
struct Facts<'a> {
    /// The symbols that are functions by `.type`; true for indirect ones (ifunc).
    types: FxHashMap<&'a [u8], bool>,
    labels: FxHashMap<&'a [u8], (usize, bool)>,
    sizes: FxHashMap<&'a [u8], (usize, &'a [u8])>,
    placed: FxHashSet<SectionId>,
    /// The symbols that the Mach-O directive `.alt_entry` declares to be places inside a function.
    inside: FxHashSet<&'a [u8]>,
    patchable: FxHashSet<&'a [u8]>,
    /// Names of cold parts in instructions. With a type, such a symbol is a function that clang has outlined.
    named_cold: FxHashSet<&'a [u8]>,
}

#[derive(Debug)]
pub(super) struct Functions<'a> {
    pub(super) functions: Vec<Function<'a>>,
    pub(super) patchable: FxHashSet<&'a [u8]>,
}

pub(super) fn find<'a>(module: &Module<'a>, format: ObjectFormat) -> Functions<'a> {
    let facts = facts(module);
    let mut functions: Vec<Function<'a>> = Vec::new();
    let mut parts: Vec<(&[u8], Part<'a>)> = Vec::new();
    // For each section, where its last function found so far ends: the largest statement index among these ends.
    let mut furthest: FxHashMap<SectionId, usize> = FxHashMap::default();
    for (index, statement) in module.statements.iter().enumerate() {
        let Kind::Label(name) = statement.kind else {
            continue;
        };
        let is_code = module.section(statement.section).is_some_and(|s| s.code);
        if !is_code || statement.context.inline && format == ObjectFormat::MachO {
            continue;
        }
        if let Some(whole) = part_of(name)
            && facts.labels.contains_key(whole)
            && (!facts.types.contains_key(name) || !facts.named_cold.contains(name))
        {
            let (end, sized, end_label) = facts.end(module, index, name, format);
            parts.push((
                whole,
                Part {
                    name,
                    label: index,
                    end,
                    sized,
                    end_label,
                    section: statement.section,
                },
            ));
            continue;
        }
        let typed = facts.is_function(name, format);
        let Some(indirect) = typed else { continue };
        // Several labels at the same place name the same function. The function gets the first of these labels.
        if let Some(last) = functions.last()
            && last.section == statement.section
            && !last.instructions_before(module, index)
        {
            continue;
        }
        let (end, sized, end_label) = facts.end(module, index, name, format);
        let duplicate = facts.labels.get(name).is_some_and(|&(_, twice)| twice);
        let unfit = if statement.context.conditional {
            Some(SkipReason::Conditional)
        } else if duplicate {
            Some(SkipReason::Ambiguous)
        } else if indirect {
            Some(SkipReason::Resolver)
        } else if facts.placed.contains(&statement.section) {
            Some(SkipReason::Placed)
        } else if name
            .strip_prefix(b"__cfi_")
            .is_some_and(|typed| facts.labels.contains_key(typed))
        {
            Some(SkipReason::TypeHash)
        } else if name.starts_with(b"OUTLINED_FUNCTION_") {
            Some(SkipReason::Outlined)
        } else if furthest
            .get(&statement.section)
            .is_some_and(|&furthest| index < furthest)
        {
            Some(SkipReason::Overlap)
        } else {
            None
        };
        if sized {
            let furthest = furthest.entry(statement.section).or_default();
            *furthest = end.max(*furthest);
        }
        functions.push(Function {
            name,
            label: index,
            end,
            sized,
            end_label,
            section: statement.section,
            parts: Vec::new(),
            unfit,
        });
    }
    let by_name: FxHashMap<&[u8], usize> = functions
        .iter()
        .enumerate()
        .map(|(index, function)| (function.name, index))
        .collect();
    for (whole, part) in parts {
        if let Some(function) = by_name.get(whole).and_then(|&at| functions.get_mut(at)) {
            function.parts.push(part);
        }
    }
    Functions {
        functions,
        patchable: facts.patchable,
    }
}

impl Function<'_> {
    fn instructions_before(&self, module: &Module<'_>, index: usize) -> bool {
        module
            .statements
            .get(self.label..index)
            .unwrap_or_default()
            .iter()
            .any(|statement| {
                statement.section == self.section
                    && (matches!(statement.kind, Kind::Instruction(_) | Kind::Template)
                        || matches!(statement.kind, Kind::Directive(d) if is_data(d.name)))
            })
    }
}

fn facts<'a>(module: &Module<'a>) -> Facts<'a> {
    let mut facts = Facts::default();
    for (index, statement) in module.statements.iter().enumerate() {
        match statement.kind {
            Kind::Label(name) => {
                facts
                    .labels
                    .entry(name)
                    .and_modify(|(_, twice)| *twice = true)
                    .or_insert((index, false));
            }
            Kind::Directive(Directive { name, arguments }) => match name {
                b".type" => {
                    let mut parts = words(arguments);
                    if let (Some(symbol), Some(indirect)) = (parts.next(), function_type(arguments))
                    {
                        let known = facts.types.entry(symbol).or_insert(indirect);
                        *known |= indirect;
                    }
                }
                b".size" => {
                    let mut parts = self::arguments(arguments);
                    if let (Some(symbol), Some(size)) = (parts.next(), parts.next()) {
                        let symbol = words(symbol).next().unwrap_or_default();
                        facts.sizes.entry(symbol).or_insert((index, size));
                    }
                }
                b".alt_entry" => {
                    facts.inside.extend(words(arguments).next());
                }
                b".org" => {
                    facts.placed.insert(statement.section);
                }
                _ if is_data(name)
                    && module
                        .section(statement.section)
                        .is_some_and(|s| s.name == b"__patchable_function_entries") =>
                {
                    facts.patchable.extend(words(arguments));
                }
                _ => {}
            },
            Kind::Assignment(b".", _) => {
                facts.placed.insert(statement.section);
            }
            Kind::Instruction(instruction) => {
                let names = words(instruction.operands);
                facts
                    .named_cold
                    .extend(names.filter(|name| part_of(name).is_some()));
            }
            _ => {}
        }
    }
    facts
}

fn function_type(arguments: &[u8]) -> Option<bool> {
    let kind = arguments
        .rsplit(|byte| byte.is_ascii_whitespace() || *byte == b',')
        .next()?;
    let kind = kind.strip_prefix(b"@").or(kind.strip_prefix(b"%"));
    let whole = arguments.trim_ascii_end();
    match kind {
        Some(b"function") => Some(false),
        Some(b"gnu_indirect_function") => Some(true),
        Some(_) => None,
        None if whole.ends_with(b"STT_FUNC")
            || whole.ends_with(b"\"function\"")
            || whole.ends_with(b"#function") =>
        {
            Some(false)
        }
        None if whole.ends_with(b"STT_GNU_IFUNC") => Some(true),
        None => None,
    }
}

impl<'a> Facts<'a> {
    /// Whether the function is indirect (ifunc); `None` if it is none. In Mach-O every label in code is a function,
    /// except those inside functions and those that the linker does not see.
    fn is_function(&self, name: &[u8], format: ObjectFormat) -> Option<bool> {
        match format {
            ObjectFormat::Elf => self.types.get(name).copied(),
            ObjectFormat::MachO => {
                let is_local = name.starts_with(b"L")
                    || name.starts_with(b"l")
                    || name.iter().all(u8::is_ascii_digit);
                (!is_local && !self.inside.contains(name)).then_some(false)
            }
        }
    }

    /// The first statement after the function, whether `.size` says so, and the end label that it names.
    fn end(
        &self,
        module: &Module<'a>,
        label: usize,
        name: &[u8],
        format: ObjectFormat,
    ) -> (usize, bool, Option<&'a [u8]>) {
        let section = module.statements.get(label).map(|s| s.section);
        if let Some(&(at, size)) = self.sizes.get(name)
            && at > label
            && let Some((end, start)) = difference(size)
            && start == name
        {
            if end != b"."
                && let Some(&(place, _)) = self.labels.get(end)
                && place > label
                && module.statements.get(place).map(|s| s.section) == section
            {
                return (place, true, Some(end));
            }
            if end == b"." && module.statements.get(at).map(|s| s.section) == section {
                return (at, true, None);
            }
        }
        // A function without a usable `.size` ends at the next function of its section, or where the section changes.
        let mut end = label + 1;
        for (index, statement) in module.statements.iter().enumerate().skip(label + 1) {
            match statement.kind {
                Kind::Label(other)
                    if Some(statement.section) == section
                        && other != name
                        && self.is_function(other, format).is_some() =>
                {
                    break;
                }
                _ if Some(statement.section) != section => break,
                // Mach-O has no sizes: the function ends at `.cfi_endproc`, after which jump tables may stand.
                Kind::Directive(directive)
                    if format == ObjectFormat::MachO && directive.name == b".cfi_endproc" =>
                {
                    break;
                }
                Kind::Instruction(_) | Kind::Template => end = index + 1,
                Kind::Directive(directive) if is_data(directive.name) => end = index + 1,
                _ => {}
            }
        }
        (end, false, None)
    }
}

/// Splits an expression of the form `a-b` into a and b. `None` for other expressions.
fn difference(expression: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut names = words(expression);
    let (end, start) = (names.next()?, names.next()?);
    (names.next().is_none() && expression.contains(&b'-')).then_some((end, start))
}

pub(super) fn is_data(name: &[u8]) -> bool {
    matches!(
        name,
        b".byte"
            | b".short"
            | b".hword"
            | b".half"
            | b".word"
            | b".value"
            | b".2byte"
            | b".int"
            | b".long"
            | b".4byte"
            | b".quad"
            | b".xword"
            | b".dword"
            | b".8byte"
            | b".octa"
            | b".ascii"
            | b".asciz"
            | b".string"
            | b".zero"
            | b".skip"
            | b".space"
            | b".fill"
            | b".nops"
            | b".inst"
            | b".inst.n"
            | b".inst.w"
            | b".insn"
            | b".uleb128"
            | b".sleb128"
            | b".float"
            | b".double"
            | b".single"
            | b".incbin"
            | b".include"
            | b".bundle_lock"
    )
}
