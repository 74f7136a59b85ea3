//! What the unwinder knows at places inside a function: whether it finds the frame by the stack pointer.
use super::super::backend::Site;
use crate::asm::{Directive, Kind};

/// The register number of the stack pointer in DWARF.
const STACK_POINTER: [&[u8]; 3] = [b"7", b"%rsp", b"rsp"];
/// `DW_CFA_def_cfa_expression`. Compilers write this opcode for frames that they align.
const EXPRESSION: [&[u8]; 2] = [b"0x0f", b"0xf"];

/// For each statement in `starts`, whether the unwinder finds the frame by the stack pointer, so that it must be told
/// about changes. The statements are in ascending order, all in part `part`; part 0 is the main code.
pub(super) fn by_stack_pointer(site: &Site<'_, '_>, part: usize, starts: &[usize]) -> Vec<bool> {
    let (label, section) = match part
        .checked_sub(1)
        .and_then(|at| site.function.parts.get(at))
    {
        Some(part) => (part.label, part.section),
        None => (site.function.label, site.function.section),
    };
    let mut answers = Vec::with_capacity(starts.len());
    let mut state = false;
    let mut remembered = Vec::new();
    let mut at = label;
    for &start in starts {
        for statement in site.module.statements.get(at..start).unwrap_or_default() {
            if statement.section == section
                && let Kind::Directive(directive) = statement.kind
            {
                match directive.name {
                    b".cfi_startproc" => state = true,
                    b".cfi_endproc" => state = false,
                    b".cfi_remember_state" => remembered.push(state),
                    b".cfi_restore_state" => state = remembered.pop().unwrap_or(state),
                    b".cfi_def_cfa" | b".cfi_def_cfa_register" => {
                        state = STACK_POINTER.contains(&first(&directive));
                    }
                    b".cfi_escape" if EXPRESSION.contains(&first(&directive)) => state = false,
                    _ => {}
                }
            }
        }
        answers.push(state);
        at = start.max(at);
    }
    answers
}

fn first<'a>(directive: &Directive<'a>) -> &'a [u8] {
    let end = directive.arguments.iter().position(|byte| *byte == b',');
    let first = end.and_then(|end| directive.arguments.get(..end));
    first.unwrap_or(directive.arguments).trim_ascii()
}
