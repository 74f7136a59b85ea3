//! Instruments assembly: finds the functions and blocks in the output of a compiler, inserts a probe into each, and
//! adds the records and map entries of [docs/formats/mip.md]. [docs/formats/mip-code.md] lists the probes and explains
//! them.
//!
//! Text is inserted only into existing lines or after the last line. So the line numbers that assemblers and debuggers
//! show stay the same.
//!
//! | module | content |
//! |---|---|
//! | [`target`] | the supported targets, and the recognition of a file's target |
//! | `coff` | the recognition of files for Windows, which are refused |
//! | [`backend`] | the interface of the back ends |
//! | `options` | the options of the instrumenter |
//! | `functions` | finds the functions in a file and their ends |
//! | `entry` | finds the place for the entry probe of a function |
//! | `labels` | makes the names of the inserted labels |
//! | `blocks`, `landing` | find the basic blocks and their successors, with the help of tables in data |
//! | `ways` | finds all edges that the code may take between blocks |
//! | `prune` | chooses the blocks that get a probe, and from which of them the others are inferred |
//! | `body` | the statements of a function in the form that back ends examine |
//! | `plan` | decides for each function what is inserted where |
//! | `list` | reads ignore lists in the sanitizers' form |
//! | `elf` | writes records, map entries and everything that an object needs once, for ELF |
//! | `macho` | writes the same items for Mach-O |
//! | `x86_64` | the back ends for x86-64 |
//! | `aarch64` | the back ends for AArch64 |
//! | `arm` | the back ends for 32-bit Arm |
//!
//! [docs/formats/mip.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip.md
//! [docs/formats/mip-code.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-code.md

mod aarch64;
mod arm;
pub mod backend;
mod blocks;
mod body;
mod coff;
mod edits;
mod elf;
mod entry;
mod error;
mod functions;
mod helpers;
mod labels;
mod landing;
mod list;
mod macho;
mod options;
mod parts;
mod plan;
mod prune;
pub mod target;
#[cfg(test)]
mod tests;
mod ways;
mod x86_64;

pub use backend::Backend;
pub use error::{Error, Result};
pub use functions::{Function, Part, SkipReason, Skipped};
pub use labels::Labels;
pub use list::{IgnoreList, ListError};
pub use options::{Counter, Mode, Options};
pub use target::{Target, detect};

use crate::asm::{Kind, Module, ObjectFormat, Scanned, Section};
use labels::LABEL;
use landing::DataFacts;
use plan::Planner;
use std::borrow::Cow;
use ways::Callees;

/// The result of instrumenting an assembly file.
#[derive(Clone, Debug)]
pub struct Instrumented<'a> {
    /// The instrumented assembly. It is the unchanged input if nothing was inserted.
    pub text: Cow<'a, [u8]>,
    /// The number of functions that got a probe.
    pub functions: usize,
    /// The functions that did not get all the probes that the options ask for, each with the reason.
    pub skipped: Vec<Skipped>,
}

impl Instrumented<'_> {
    /// The number of functions that got no probe at all.
    pub fn skipped_functions(&self) -> usize {
        self.skipped
            .iter()
            .filter(|skipped| !matches!(skipped.reason, SkipReason::Blocks(_)))
            .count()
    }
}

/// Instruments an assembly file. `file` is the name of the file in messages.
///
/// # Errors
/// If the target is unknown, the target does not support the mode, or the file was instrumented before. Assembly that
/// cannot be interpreted is not an error and stays unchanged. Functions that an insertion could break are skipped.
pub fn instrument<'t>(
    text: &'t [u8],
    file: &str,
    target: Option<Target>,
    options: &Options,
) -> Result<Instrumented<'t>> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::whole(file, "is larger than 4 GiB"));
    }
    if coff::shows(text) {
        return Err(Error::whole(
            file,
            format!(
                "is assembly for Windows (COFF), for which there is no back end (there is one for {})",
                target::supported()
            ),
        ));
    }
    let target = match target {
        Some(target) => target,
        None => match detect(text) {
            Some(target) => target,
            // A text without a function, as that of an empty source file, need not show its target.
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
    let syntax = backend.syntax();
    let scanned = Scanned::new(text, syntax);
    let module = Module::parse(&scanned, syntax);
    let mut options = Cow::Borrowed(options);
    if !options.large_code_model && module.sections.iter().any(is_large) {
        options.to_mut().large_code_model = true;
    }
    let options = &*options;
    if let Err(reason) = backend.supports(options) {
        return Err(Error::whole(file, reason));
    }
    refuse(&module, file, text, options)?;

    let found = functions::find(&module, syntax.format);
    let data = DataFacts::gather(&module);
    let source = source_name(&module).unwrap_or(file.as_bytes());
    let callees = Callees::gather(&module, &data, backend);
    let mut planner = Planner::new(&module, &found, &data, &callees, backend, options, source);
    for function in &found.functions {
        planner.function(function);
    }
    let Planner {
        mut planned,
        mut edits,
        skipped,
        functions,
        ..
    } = planner;
    if planned.is_empty() {
        return Ok(untouched(text, skipped));
    }
    // Neighbours of one code section share one record section.
    planned.sort_by_key(|plan| plan.section);
    let mut tail = String::new();
    if module.statements.last().is_some_and(|it| it.context.intel) {
        tail.push_str("\t.att_syntax prefix\n");
    }
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
        functions,
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

/// `tail` with a line break before it, unless `at` is at the start of a line.
fn tail_at(text: &[u8], at: usize, tail: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(tail.len() + 1);
    if at > 0 && text.get(at - 1) != Some(&b'\n') {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(tail.as_bytes());
    bytes
}

/// clang marks sections of the large code model since version 18.
fn is_large(section: &Section<'_>) -> bool {
    section.code && section.flags.contains(&b'l')
}

/// Returns the name of the source file from the compiler's directive `.file`.
fn source_name<'a>(module: &Module<'a>) -> Option<&'a [u8]> {
    module.statements.iter().find_map(|statement| {
        let Kind::Directive(directive) = statement.kind else {
            return None;
        };
        let name = directive
            .arguments
            .strip_prefix(b"\"")?
            .strip_suffix(b"\"")?;
        (directive.name == b".file").then_some(name)
    })
}

/// Returns an error with the reason if the file as a whole must not be instrumented.
fn refuse(module: &Module<'_>, file: &str, text: &[u8], options: &Options) -> Result<()> {
    for statement in &module.statements {
        let problem = match statement.kind {
            Kind::Label(name) if memchr::memmem::find(name, LABEL.as_bytes()).is_some() => {
                "the file is already instrumented"
            }
            Kind::Directive(directive) if matches!(directive.name, b".code16" | b".code32") => {
                "has 16-bit or 32-bit code, which there is no back end for"
            }
            Kind::Directive(directive) if directive.name == b".section" => {
                let name = directive.arguments;
                if name.starts_with(b".gnu.lto_") && !options.bytecode {
                    "holds link-time optimisation bytecode, which has no machine code yet (compile without -flto)"
                } else if name.starts_with(b".note.GNU-split-stack") {
                    "was compiled with -fsplit-stack: linkers rewrite the start of its functions, where the probe would be"
                } else {
                    continue;
                }
            }
            _ => continue,
        };
        return Err(Error::at(file, statement, text, problem));
    }
    Ok(())
}
