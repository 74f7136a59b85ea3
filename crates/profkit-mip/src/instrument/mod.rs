//! Instruments assembly: finds the functions and blocks of a compiler's output, puts a probe into each, and adds the
//! records and map entries of docs/formats/mip.md. docs/formats/mip-code.md has the sequences and the reasons.
//!
//! Text is only ever inserted, on the lines that are there or behind the last one, so that the assembler's messages
//! and the debugger's lines stay those of the input.
//!
//! | module | what it is |
//! |---|---|
//! | [`target`] | what a back end must know, and the choice of one |
//! | `functions` | which labels are functions, where each ends, where its probe goes |
//! | `elf` | records, map entries and the rest of what an object gets once, for ELF |
//! | `macho` | the same for Mach-O |
//! | `x86_64` | the back ends for x86-64 |
//! | `aarch64` | the back ends for AArch64 |
//! | `arm` | the back end for 32-bit Arm |

mod aarch64;
mod arm;
mod edits;
mod elf;
mod error;
mod functions;
mod macho;
mod options;
pub mod target;
mod x86_64;

pub use error::{Error, Result};
pub use functions::{Function, SkipReason};
pub use options::{Counter, Mode, Options};
pub use target::{Target, detect};

use crate::asm::{Kind, Module, ObjectFormat, Scanned, Statement};
use edits::Edits;
use std::borrow::Cow;
use target::{Backend, Sequence, Site};

/// What instrumenting made.
#[derive(Clone, Debug)]
pub struct Instrumented<'a> {
    /// The assembly: the input itself if nothing was put into it.
    pub text: Cow<'a, [u8]>,
    /// How many functions got a probe.
    pub functions: usize,
    /// Those that did not, with the reason.
    pub skipped: Vec<Skipped>,
}

/// A function that was left alone, or got less than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its symbol.
    pub name: String,
    /// Line of its label.
    pub line: u32,
    /// Why.
    pub reason: SkipReason,
}

/// Prefix of all labels that this crate makes, behind the target's prefix of local labels.
const LABEL: &str = "profkit_mip_";

/// Names of the labels of one instrumented function.
#[derive(Clone, Copy, Debug)]
pub struct Labels {
    prefix: &'static str,
    data_prefix: &'static str,
    index: usize,
}

impl Labels {
    fn name(self, what: &str) -> String {
        format!("{}{LABEL}{what}{}", self.prefix, self.index)
    }

    /// The function's start.
    pub fn start(self) -> String {
        self.name("f")
    }

    /// The function's end.
    pub fn end(self) -> String {
        self.name("e")
    }

    /// The function's record.
    pub fn record(self) -> String {
        format!("{}{LABEL}r{}", self.data_prefix, self.index)
    }

    /// The function's map entry, where that needs a label.
    pub fn map(self) -> String {
        format!("{}{LABEL}m{}", self.data_prefix, self.index)
    }

    /// A label of the back end's own, such as that of a cold stub; `what` must be told from f, e, r and b.
    pub fn other(self, what: &str) -> String {
        self.name(what)
    }
}

/// One function that gets a probe, as the object format's part needs it.
#[derive(Debug)]
struct Planned<'m, 'a> {
    function: &'m Function<'a>,
    labels: Labels,
    /// Label behind the function's last byte.
    end: String,
    signature: u32,
    cold: Option<String>,
}

/// Instruments one assembly file. `file` is its name for messages.
///
/// # Errors
/// If the target cannot be told, the mode is not available for it, or the file was instrumented before. Assembly that
/// is not understood is no error: it is passed through, and functions that could be broken are skipped.
pub fn instrument<'t>(
    text: &'t [u8],
    file: &str,
    target: Option<Target>,
    options: &Options,
) -> Result<Instrumented<'t>> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::whole(file, "is larger than 4 GiB"));
    }
    let target = match target {
        Some(target) => target,
        None => match detect(text) {
            Some(target) => target,
            // Nothing to instrument, and nothing that tells the target: an empty translation unit.
            None if !functions::mentions_function(text) => return Ok(untouched(text, Vec::new())),
            None => {
                return Err(Error::whole(
                    file,
                    "does not show which target it is for (name it with --target)",
                ));
            }
        },
    };
    let backend = target.backend();
    if let Err(reason) = backend.supports(options) {
        return Err(Error::whole(file, reason));
    }
    let syntax = backend.syntax();
    let scanned = Scanned::new(text, syntax);
    let module = Module::parse(&scanned, syntax);
    refuse(&module, file, text)?;

    let found = functions::find(&module, backend);
    let mut skipped = Vec::new();
    let mut edits = Edits::default();
    let mut planned = Vec::new();
    for function in &found.functions {
        let labels = Labels {
            prefix: syntax.local_prefix,
            data_prefix: syntax.data_prefix,
            index: planned.len(),
        };
        match plan(
            &module, &found, function, labels, backend, options, &mut edits,
        ) {
            Ok(plan) => planned.push(plan),
            Err(reason) => skipped.push(Skipped {
                name: String::from_utf8_lossy(function.name).into_owned(),
                line: module.statements.get(function.label).map_or(0, |s| s.line),
                reason,
            }),
        }
    }
    if planned.is_empty() {
        return Ok(untouched(text, skipped));
    }
    let mut tail = String::new();
    match syntax.format {
        ObjectFormat::Elf => elf::tail(&module, &planned, backend, options, &mut tail),
        ObjectFormat::MachO => macho::tail(&planned, backend, options, &mut tail),
    }
    let at = module
        .end
        .and_then(|end| module.statements.get(end))
        .map_or(text.len(), |end| end.start);
    edits.insert(at, &tail_at(text, at, &tail));
    Ok(Instrumented {
        text: Cow::Owned(edits.apply(text)),
        functions: planned.len(),
        skipped,
    })
}

fn untouched(text: &[u8], skipped: Vec<Skipped>) -> Instrumented<'_> {
    Instrumented {
        text: Cow::Borrowed(text),
        functions: 0,
        skipped,
    }
}

/// The tail begins on a line of its own.
fn tail_at(text: &[u8], at: usize, tail: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(tail.len() + 1);
    if at > 0 && text.get(at - 1) != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(tail.as_bytes());
    bytes
}

/// What cannot be instrumented as a whole.
fn refuse(module: &Module<'_>, file: &str, text: &[u8]) -> Result<()> {
    for statement in &module.statements {
        let problem = match statement.kind {
            Kind::Label(name)
                if name
                    .windows(LABEL.len())
                    .any(|part| part == LABEL.as_bytes()) =>
            {
                "the file was instrumented before"
            }
            Kind::Directive(directive)
                if directive.name == b".section"
                    && directive.arguments.starts_with(b".gnu.lto_") =>
            {
                "holds link-time optimisation bytecode, which has no machine code yet (compile without -flto)"
            }
            _ => continue,
        };
        return Err(Error::at(file, statement, text, problem));
    }
    Ok(())
}

fn is_end_of_unwind(statement: &Statement<'_>) -> bool {
    matches!(statement.kind, Kind::Directive(directive) if directive.name == b".cfi_endproc")
}

/// Decides whether and how a function is instrumented, and makes the insertions for it.
fn plan<'m, 'a>(
    module: &'m Module<'a>,
    found: &functions::Found<'a>,
    function: &'m Function<'a>,
    labels: Labels,
    backend: &dyn Backend,
    options: &Options,
    edits: &mut Edits,
) -> std::result::Result<Planned<'m, 'a>, SkipReason> {
    options.selects(function, module)?;
    let entry = functions::entry(module, found, function, backend)?;
    let site = Site {
        module,
        function,
        labels,
        statement: entry,
        options,
    };
    let Sequence { inline, cold } = backend.entry(&site).map_err(SkipReason::Target)?;
    let statement = |index: usize| module.statements.get(index);
    let (Some(label), Some(before)) = (statement(function.label), statement(entry)) else {
        return Err(SkipReason::Empty);
    };
    let separator = backend.syntax().separator;
    edits.insert(label.end, format!(" {}:", labels.start()).as_bytes());
    let end = match function.end_label {
        Some(name) => String::from_utf8_lossy(name).into_owned(),
        None => {
            let end = labels.end();
            match statement(function.end) {
                Some(size) if function.sized => {
                    edits.insert(size.start, format!("{end}: ").as_bytes());
                }
                _ => {
                    let last =
                        statement(function.end.saturating_sub(1)).ok_or(SkipReason::Empty)?;
                    edits.insert(last.end, format!("{separator} {end}:").as_bytes());
                }
            }
            end
        }
    };
    edits.insert(before.start, format!("{inline}{separator} ").as_bytes());
    // Mach-O has no subsections to put the stub behind all code, and a branch to another symbol's code has no
    // relocation on every target: it stands behind its function, outside of the unwind information.
    let cold = match (backend.syntax().format, cold) {
        (ObjectFormat::MachO, Some(stub)) => {
            let place = match statement(function.end) {
                Some(end) if is_end_of_unwind(end) => Some(end),
                _ => statement(function.end.saturating_sub(1)),
            };
            let place = place.ok_or(SkipReason::Empty)?;
            let stub: Vec<&str> = stub.lines().map(str::trim).collect();
            let joined = stub.join(&format!("{separator} "));
            edits.insert(place.end, format!("{separator} {joined}").as_bytes());
            None
        }
        (_, cold) => cold,
    };
    Ok(Planned {
        function,
        labels,
        end,
        signature: 0,
        cold,
    })
}
