//! Classifies instructions of 32-bit Arm by their effect on the flow of control (Arm Architecture Reference Manual for
//! ARMv7-A, A4.3 and A8).
use super::mnemonic::Mnemonic;
use crate::asm::{Instruction, words};
use crate::instrument::backend::Flow;

/// A conditional instruction that leaves the function: see [`Flow::Branch`].
const MAY_LEAVE: Flow<'static> = Flow::Branch(b"");

pub(super) fn of<'a>(instruction: &Instruction<'a>) -> Flow<'a> {
    let Instruction {
        mnemonic, operands, ..
    } = *instruction;
    let lower = String::from_utf8_lossy(mnemonic).to_ascii_lowercase();
    let Some(Mnemonic {
        base,
        conditional,
        sets_flags,
    }) = Mnemonic::parse(&lower)
    else {
        return match lower.as_str() {
            "rfe" | "rfeia" | "rfeda" | "rfedb" | "rfeib" | "eret" => Flow::Leave,
            _ => Flow::Next,
        };
    };
    let last = || {
        words(
            operands
                .rsplit(|&byte| byte == b',')
                .next()
                .unwrap_or_default(),
        )
        .next()
    };
    let is = |place: usize, name: &[u8]| {
        words(operands)
            .nth(place)
            .is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let unless = |flow| if conditional { MAY_LEAVE } else { flow };
    match base {
        "b" if conditional => last().map_or(Flow::Next, Flow::Branch),
        "b" => last().map_or(Flow::Indirect, Flow::Jump),
        "cbz" | "cbnz" => last().map_or(Flow::Next, Flow::Branch),
        "bl" | "blx" => Flow::Call,
        "bx" if is(0, b"lr") => unless(Flow::Leave),
        "tbb" | "tbh" => Flow::Indirect,
        "bx" | "bxj" => unless(Flow::Indirect),
        "pop" | "ldm" | "ldmda" | "ldmia" | "ldmfd" | "ldmdb" | "ldmea" | "ldmib"
            if list(operands).any(|word| word.eq_ignore_ascii_case(b"pc")) =>
        {
            unless(Flow::Leave)
        }
        "udf" | "bkpt" | "hlt" => Flow::Leave,
        "mov" if is(0, b"pc") && (is(1, b"lr") || sets_flags) => unless(Flow::Leave),
        "sub" if is(0, b"pc") && sets_flags => unless(Flow::Leave),
        // A jump table of instructions: the condition tells whether the table has an entry.
        _ if is(0, b"pc") && counts_from_itself(instruction) => Flow::Indirect,
        "mov" | "add" | "sub" | "ldr" if is(0, b"pc") => unless(Flow::Indirect),
        _ => Flow::Next,
    }
}

/// The registers in braces.
fn list(operands: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = operands.iter().position(|&byte| byte == b'{');
    words(
        start
            .and_then(|start| operands.get(start..))
            .unwrap_or_default(),
    )
}

pub(super) fn is_conditional(instruction: &Instruction<'_>) -> bool {
    let lower = String::from_utf8_lossy(instruction.mnemonic).to_ascii_lowercase();
    Mnemonic::parse(&lower).is_some_and(|parsed| parsed.conditional)
}

/// Whether an instruction jumps by a distance from itself.
pub(super) fn counts_from_itself(instruction: &Instruction<'_>) -> bool {
    let lower = String::from_utf8_lossy(instruction.mnemonic).to_ascii_lowercase();
    let Some(parsed) = Mnemonic::parse(&lower) else {
        return false;
    };
    let mut names = words(instruction.operands);
    let mut is_pc = || {
        names
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(b"pc"))
    };
    match parsed.base {
        "tbb" | "tbh" => is_pc(),
        // With two operands, the second is added to the first.
        "add" if words(instruction.operands).count() == 2 => is_pc(),
        "add" | "sub" | "ldr" => is_pc() && is_pc(),
        _ => false,
    }
}

pub(super) fn is_load_exclusive(lower: &str) -> bool {
    lower.starts_with("ldrex") || lower.starts_with("ldaex")
}

pub(super) fn is_store_exclusive(lower: &str) -> bool {
    lower.starts_with("strex") || lower.starts_with("stlex")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(text: &str) -> Instruction<'_> {
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        Instruction {
            mnemonic: mnemonic.as_bytes(),
            operands: operands.as_bytes(),
        }
    }

    #[test]
    fn flow_of_instructions() {
        let of = |text| super::of(&instruction(text));
        assert_eq!(of("b .L1"), Flow::Jump(b".L1"));
        assert_eq!(of("b.w memcpy"), Flow::Jump(b"memcpy"));
        for branch in [
            "beq .L1",
            "bls.n .L1",
            "blt.w .L1",
            "cbnz r0, .L1",
            "BNE .L1",
        ] {
            assert_eq!(of(branch), Flow::Branch(b".L1"), "{branch}");
        }
        for call in ["bl f", "blx r3", "bleq f", "blxne r1"] {
            assert_eq!(of(call), Flow::Call, "{call}");
        }
        for leave in [
            "bx lr",
            "pop {r4, pc}",
            "ldmia sp!, {r4, pc}",
            "mov pc, lr",
            "movs pc, lr",
            "subs pc, lr, #4",
            "udf #0",
        ] {
            assert_eq!(of(leave), Flow::Leave, "{leave}");
        }
        for may_leave in [
            "bxeq lr",
            "popne {r4, pc}",
            "ldmfdls sp!, {pc}",
            "moveq pc, lr",
            "bxne r3",
        ] {
            assert_eq!(of(may_leave), MAY_LEAVE, "{may_leave}");
        }
        for indirect in [
            "bx r3",
            "tbb [pc, r0]",
            "ldr pc, [r1]",
            "add pc, pc, r0",
            "addls pc, pc, r0, asl #2",
            "ldrls pc, [pc, r0, asl #2]",
            "mov pc, r2",
        ] {
            assert_eq!(of(indirect), Flow::Indirect, "{indirect}");
        }
        for next in [
            "pop {r4, lr}",
            "add r0, pc",
            "bic r0, r1",
            "bfi r0, r1, #1, #2",
            "it eq",
        ] {
            assert_eq!(of(next), Flow::Next, "{next}");
        }
    }

    #[test]
    fn tables_beside_their_instruction() {
        for text in [
            "tbb [pc, r0]",
            "add pc, r0",
            "addls pc, pc, r0, asl #2",
            "ldrls pc, [pc, r1, lsl #2]",
        ] {
            assert!(counts_from_itself(&instruction(text)), "{text}");
        }
        for text in [
            "add r0, pc, r0",
            "ldr pc, [r1]",
            "add pc, r1, r0",
            "tbb [r1, r0]",
        ] {
            assert!(!counts_from_itself(&instruction(text)), "{text}");
        }
    }
}
