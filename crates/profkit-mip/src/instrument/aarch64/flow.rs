//! Classifies AArch64 instructions by their effect on the flow of control (Arm Architecture Reference Manual, C6.2).
use crate::asm::{Instruction, words};
use crate::instrument::arm::is_condition;
use crate::instrument::backend::Flow;

pub(super) fn of<'a>(instruction: &Instruction<'a>) -> Flow<'a> {
    let Instruction {
        mnemonic, operands, ..
    } = *instruction;
    let lower = mnemonic.to_ascii_lowercase();
    match lower.as_slice() {
        b"b" => words(operands).next().map_or(Flow::Indirect, Flow::Jump),
        b"bl" | b"blr" | b"blraa" | b"blraaz" | b"blrab" | b"blrabz" => Flow::Call,
        b"br" | b"braa" | b"braaz" | b"brab" | b"brabz" => Flow::Indirect,
        b"ret" | b"retaa" | b"retab" | b"eret" | b"eretaa" | b"eretab" | b"brk" | b"hlt"
        | b"udf" => Flow::Leave,
        b"cbz" | b"cbnz" | b"tbz" | b"tbnz" => branch(operands),
        name if is_conditional(name) => branch(operands),
        _ => Flow::Next,
    }
}

fn branch(operands: &[u8]) -> Flow<'_> {
    let last = operands
        .rsplit(|&byte| byte == b',')
        .next()
        .unwrap_or_default();
    words(last).next().map_or(Flow::Next, Flow::Branch)
}

/// Whether a mnemonic is a conditional branch: `b.eq`, `bc.eq`, or `beq`, which GNU as and clang also accept.
fn is_conditional(mnemonic: &[u8]) -> bool {
    let condition = mnemonic
        .strip_prefix(b"b.")
        .or_else(|| mnemonic.strip_prefix(b"bc."))
        .or_else(|| mnemonic.strip_prefix(b"b"));
    condition.is_some_and(|condition| {
        is_condition(condition)
            || matches!(
                condition,
                b"any"
                    | b"none"
                    | b"first"
                    | b"nfrst"
                    | b"last"
                    | b"nlast"
                    | b"pmore"
                    | b"plast"
                    | b"tcont"
                    | b"tstop"
            )
    })
}

/// Returns the number that a `hint` instruction has as its operand. `None` for other instructions.
fn hint(instruction: &Instruction<'_>) -> Option<u8> {
    if !instruction.mnemonic.eq_ignore_ascii_case(b"hint") {
        return None;
    }
    let digits = instruction
        .operands
        .strip_prefix(b"#")
        .unwrap_or(instruction.operands);
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

pub(super) fn is_landing(instruction: &Instruction<'_>) -> bool {
    let names: [&[u8]; 3] = [b"bti", b"paciasp", b"pacibsp"];
    names
        .iter()
        .any(|name| instruction.mnemonic.eq_ignore_ascii_case(name))
        || matches!(hint(instruction), Some(25 | 27 | 32 | 34 | 36 | 38))
}

pub(super) fn is_nop(instruction: &Instruction<'_>) -> bool {
    instruction.mnemonic.eq_ignore_ascii_case(b"nop") || hint(instruction) == Some(0)
}

/// Whether the instruction begins an exclusive access (`ldxr` and similar instructions).
pub(super) fn is_load_exclusive(lower: &str) -> bool {
    matches!(
        lower,
        "ldxr" | "ldaxr" | "ldxrb" | "ldaxrb" | "ldxrh" | "ldaxrh" | "ldxp" | "ldaxp"
    )
}

/// Whether the instruction ends an exclusive access by a store (`stxr` and similar instructions).
pub(super) fn is_store_exclusive(lower: &str) -> bool {
    matches!(
        lower,
        "stxr" | "stlxr" | "stxrb" | "stlxrb" | "stxrh" | "stlxrh" | "stxp" | "stlxp"
    )
}
