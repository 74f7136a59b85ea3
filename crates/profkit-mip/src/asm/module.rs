//! The second pass over an assembly file. It finds the statements and the section of each statement.
use super::sections::Sections;
use super::statement::{self, Context, Kind, Statement};
use super::{Scanned, Section, SectionId, Syntax};
use rustc_hash::FxHashSet;

/// A parsed assembly file: its statements and sections.
#[derive(Debug)]
pub struct Module<'a> {
    /// All statements in the order of the file.
    pub statements: Vec<Statement<'a>>,
    /// All sections, in the order in which the file first mentions them.
    pub sections: Vec<Section<'a>>,
    /// The names of the macros that the file defines.
    pub macros: FxHashSet<&'a [u8]>,
    /// The index of the statement `.end`, after which assemblers ignore everything.
    pub end: Option<usize>,
}

/// The directives that end the body of `name`, if the body is read any number of times, as of `.macro` and `.rept`.
fn opens_template(name: &[u8]) -> Option<&'static [&'static [u8]]> {
    match name {
        b".macro" => Some(&[b".endm", b".endmacro"]),
        b".rept" | b".rep" | b".irp" | b".irpc" => Some(&[b".endr", b".endm"]),
        _ => None,
    }
}

impl<'a> Module<'a> {
    /// Parses a scanned file. Parsing never fails: an unknown statement becomes an instruction with an unknown name.
    pub fn parse(scanned: &'a Scanned, syntax: &Syntax) -> Self {
        let mut parser = Parser {
            module: Module {
                statements: Vec::with_capacity(scanned.pieces.len()),
                sections: Vec::new(),
                macros: FxHashSet::default(),
                end: None,
            },
            sections: Sections::new(syntax),
            context: Context::default(),
            conditionals: 0,
            templates: Vec::new(),
        };
        for piece in &scanned.pieces {
            if parser.module.end.is_some() {
                break;
            }
            parser.context.inline = piece.inline;
            let mut start = piece.start;
            loop {
                let text = scanned.clean.get(start..piece.end).unwrap_or_default();
                let label = if parser.templates.is_empty() {
                    statement::split_label(text)
                } else {
                    None
                };
                let Some((name, rest)) = label else {
                    if !text.is_empty() {
                        parser.statement(piece.line, start, piece.end, statement::parse(text));
                    }
                    break;
                };
                let end = piece.end - rest.len();
                parser.statement(piece.line, start, end, Kind::Label(name));
                start = piece.end - rest.trim_ascii_start().len();
            }
        }
        parser.module.sections = parser.sections.list;
        parser.module
    }

    /// Returns the section with this index.
    pub fn section(&self, id: SectionId) -> Option<&Section<'a>> {
        self.sections.get(id.0 as usize)
    }
}

struct Parser<'a> {
    module: Module<'a>,
    sections: Sections<'a>,
    context: Context,
    conditionals: u32,
    templates: Vec<&'static [&'static [u8]]>,
}

impl<'a> Parser<'a> {
    fn statement(&mut self, line: u32, start: usize, end: usize, mut kind: Kind<'a>) {
        if let Kind::Directive(directive) = kind
            && let Some(closing) = self.templates.last()
        {
            if closing.contains(&directive.name) {
                self.templates.pop();
            } else if let Some(closing) = opens_template(directive.name) {
                self.templates.push(closing);
                kind = Kind::Template;
            } else {
                kind = Kind::Template;
            }
        } else if !self.templates.is_empty() {
            kind = Kind::Template;
        }
        self.module.statements.push(Statement {
            line,
            start,
            end,
            section: self.sections.current,
            context: Context {
                conditional: self.conditionals > 0,
                ..self.context
            },
            kind,
        });
        if let Kind::Directive(directive) = kind {
            self.directive(directive);
        }
    }

    fn directive(&mut self, directive: statement::Directive<'a>) {
        let name = directive.name;
        match name {
            b".if" | b".ifdef" | b".ifndef" => self.conditionals += 1,
            _ if name.starts_with(b".if") => self.conditionals += 1,
            b".endif" => self.conditionals = self.conditionals.saturating_sub(1),
            b".intel_syntax" => self.context.intel = true,
            b".att_syntax" => self.context.intel = false,
            b".end" => self.module.end = Some(self.module.statements.len() - 1),
            b".macro" => {
                if let Some(name) = statement::words(directive.arguments).next() {
                    self.module.macros.insert(name);
                }
            }
            _ => {
                // All branches of `.if` are followed. In real code, each ends in the section in which it began.
                self.sections.follow(directive);
                self.context.arm.follow(directive);
            }
        }
        if let Some(closing) = opens_template(name) {
            self.templates.push(closing);
        }
    }
}
