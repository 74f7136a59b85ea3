//! Which way AArch64 instructions lead the flow of control, by their names (Arm Architecture Reference Manual, C6.2).
use crate::asm::{Instruction, words};
use crate::instrument::backend::Flow;

/// The flow of one instruction.
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

/// A branch to the last operand.
fn branch(operands: &[u8]) -> Flow<'_> {
    let last = operands
        .rsplit(|&byte| byte == b',')
        .next()
        .unwrap_or_default();
    words(last).next().map_or(Flow::Next, Flow::Branch)
}

/// `b.eq`, `bc.eq`, and `beq`, which GNU as and clang take too.
fn is_conditional(mnemonic: &[u8]) -> bool {
    let condition = mnemonic
        .strip_prefix(b"b.")
        .or_else(|| mnemonic.strip_prefix(b"bc."))
        .or_else(|| mnemonic.strip_prefix(b"b"));
    condition.is_some_and(|condition| {
        matches!(
            condition,
            b"eq"
                | b"ne"
                | b"cs"
                | b"hs"
                | b"cc"
                | b"lo"
                | b"mi"
                | b"pl"
                | b"vs"
                | b"vc"
                | b"hi"
                | b"ls"
                | b"ge"
                | b"lt"
                | b"gt"
                | b"le"
                | b"any"
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

/// Number of a `hint`.
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

/// Whether an indirect branch may land here when branch targets are guarded: `bti`, `paciasp`, `pacibsp`, by name or by
/// hint.
pub(super) fn is_landing(instruction: &Instruction<'_>) -> bool {
    let names: [&[u8]; 3] = [b"bti", b"paciasp", b"pacibsp"];
    names
        .iter()
        .any(|name| instruction.mnemonic.eq_ignore_ascii_case(name))
        || matches!(hint(instruction), Some(25 | 27 | 32 | 34 | 36 | 38))
}

/// `nop`.
pub(super) fn is_nop(instruction: &Instruction<'_>) -> bool {
    instruction.mnemonic.eq_ignore_ascii_case(b"nop") || hint(instruction) == Some(0)
}

/// Whether the instruction opens an exclusive access (`ldxr` and its kin).
pub(super) fn is_load_exclusive(lower: &str) -> bool {
    matches!(
        lower,
        "ldxr" | "ldaxr" | "ldxrb" | "ldaxrb" | "ldxrh" | "ldaxrh" | "ldxp" | "ldaxp"
    )
}

/// Whether the instruction ends an exclusive access by a store.
pub(super) fn is_store_exclusive(lower: &str) -> bool {
    matches!(
        lower,
        "stxr" | "stlxr" | "stxrb" | "stlxrb" | "stxrh" | "stlxrh" | "stxp" | "stlxp"
    )
}
