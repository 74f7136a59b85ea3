//! Finds the place for the entry probe of a function.
use super::backend::Backend;
use super::functions::{Function, Functions, SkipReason, is_data};
use super::options::Options;
use crate::asm::{Kind, Module, Statement, words};

/// The statement before which the entry probe is inserted, or why there is none.
pub(super) fn place<'a>(
    module: &Module<'a>,
    found: &Functions<'a>,
    function: &Function<'a>,
    backend: &dyn Backend,
    options: &Options,
) -> Result<usize, SkipReason> {
    if is_naked(module, function, backend) {
        return Err(SkipReason::Naked);
    }
    let mut patchable = false;
    let mut landed = false;
    for (index, statement) in function.statements(module) {
        if statement.context.conditional {
            return Err(SkipReason::Conditional);
        }
        match statement.kind {
            Kind::Label(name) => {
                // A linker optimisation hint refers to the instruction directly after its label.
                if name.starts_with(b"Lloh") || is_referenced(module, function, name) {
                    return Ok(index);
                }
                patchable |= found.patchable.contains(name);
            }
            Kind::Template => return Err(SkipReason::Macro),
            Kind::Assignment(..) => {}
            Kind::Directive(directive) => match directive.name {
                b".macro" | b".rept" | b".irp" | b".irpc" => return Err(SkipReason::Macro),
                name if is_data(name) => return Ok(index),
                _ => {}
            },
            Kind::Instruction(instruction) => {
                if module.macros.contains(instruction.mnemonic) {
                    return Err(SkipReason::Macro);
                }
                if !landed && backend.is_landing(&instruction) {
                    landed = true;
                } else if !(patchable && backend.is_nop(&instruction)
                    || backend.is_entry_hook(&instruction))
                {
                    return Ok(
                        after_frame(module, function, index, backend, options).unwrap_or(index)
                    );
                }
            }
        }
    }
    Err(SkipReason::Empty)
}

/// Whether a function consists of inline assembly only. Instructions that compilers add at its end do not count.
fn is_naked(module: &Module<'_>, function: &Function<'_>, backend: &dyn Backend) -> bool {
    let mut first = true;
    for (_, statement) in function.statements(module) {
        let Kind::Instruction(instruction) = statement.kind else {
            continue;
        };
        if !statement.context.inline && (first || !backend.is_filler(&instruction)) {
            return false;
        }
        first = false;
    }
    !first
}

/// The statement after the frame setup. Debuggers would take a probe before it for the end of the prologue.
fn after_frame(
    module: &Module<'_>,
    function: &Function<'_>,
    first: usize,
    backend: &dyn Backend,
    options: &Options,
) -> Option<usize> {
    let is_unwinding = |statement: &Statement<'_>| matches!(statement.kind, Kind::Directive(directive) if directive.name.starts_with(b".cfi_"));
    let mut rest = function
        .statements(module)
        .skip_while(|(index, _)| *index < first)
        .filter(|(_, statement)| !is_unwinding(statement));
    let (_, push) = rest.next()?;
    let (_, copy) = rest.next()?;
    let (next, _) = rest.next()?;
    match (push.kind, copy.kind) {
        (Kind::Instruction(push), Kind::Instruction(copy))
            if backend.is_frame_setup(&push, &copy, options) =>
        {
            Some(next)
        }
        _ => None,
    }
}

/// An instruction or a table may refer to `label`: entries of a table are distances from the instruction that uses it
/// (`tbb [pc, r0]`).
fn is_referenced(module: &Module<'_>, function: &Function<'_>, label: &[u8]) -> bool {
    function.statements(module).any(|(_, statement)| {
        let text = match statement.kind {
            Kind::Instruction(instruction) => instruction.operands,
            Kind::Directive(directive) if is_data(directive.name) => directive.arguments,
            _ => return false,
        };
        words(text).any(|word| word == label)
    })
}
