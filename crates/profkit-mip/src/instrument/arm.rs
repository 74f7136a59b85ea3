//! The back end for 32-bit Arm with ELF (AAPCS32): function coverage of ARMv7 code in the A32 and T32 instruction sets.
//!
//! At a function's entry only r12 is free, and compilers pass the static chain in it. So the probe saves two registers.
//! The address is PC-relative from `movw` and `movt`, which ARMv6T2 brought; nothing is put into literal pools.
use super::target::{Backend, BlockProbes, Flow, Sequence, Site};
use super::{Counter, Mode, Options};
use crate::asm::{ArmSet, Instruction, Syntax, words};

/// 32-bit Arm ELF.
#[derive(Debug)]
pub(super) struct Elf;

impl Backend for Elf {
    fn syntax(&self) -> &'static Syntax {
        &Syntax::ARM_ELF
    }

    fn is_64_bit(&self) -> bool {
        false
    }

    fn supports(&self, options: &Options) -> Result<(), String> {
        match options.mode {
            Mode::Function(Counter::Store) if !options.blocks => Ok(()),
            Mode::Function(Counter::Store) => {
                Err("cannot have block coverage: on 32-bit Arm there is function coverage only".to_owned())
            }
            Mode::Function(Counter::Unary) => Err(
                "cannot have unary counters: on 32-bit Arm they would cost twice the text of a store".to_owned(),
            ),
            Mode::Calls { .. } => {
                Err("cannot have mode calls: on 32-bit Arm there is function coverage only".to_owned())
            }
        }
    }

    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a> {
        flow(instruction)
    }

    fn is_landing(&self, instruction: &Instruction<'_>) -> bool {
        let lower = instruction.mnemonic.to_ascii_lowercase();
        matches!(lower.as_slice(), b"bti" | b"pacbti")
    }

    fn is_nop(&self, instruction: &Instruction<'_>) -> bool {
        let lower = instruction.mnemonic.to_ascii_lowercase();
        matches!(lower.as_slice(), b"nop" | b"nop.n" | b"nop.w")
    }

    fn is_entry_hook(&self, _: &Instruction<'_>) -> bool {
        false
    }

    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String> {
        let state = site
            .module
            .statements
            .get(site.statement)
            .map(|statement| statement.context.arm)
            .unwrap_or_default();
        if state.old {
            return Err("is for a processor before ARMv7, which lacks movw and movt".to_owned());
        }
        let (record, here) = (site.labels.record(), site.labels.other("p"));
        // Both keep the alignment of what follows to 4 bytes, which literal loads count on.
        let (ahead, zero) = match state.set {
            Some(ArmSet::A32) => (8, "add r1, pc, r1; mov r0, #0"),
            Some(ArmSet::T32) if state.unified => (4, "add r1, pc; mov.w r0, #0"),
            Some(ArmSet::T32) => (4, "add r1, pc; mov r0, #0; nop"),
            None => {
                return Err(
                    "does not show its instruction set (put .arm or .thumb before it)".to_owned(),
                );
            }
        };
        Ok(Sequence {
            inline: format!(
                "push {{r0, r1}}; movw r1, #:lower16:({record}-({here}+{ahead})); \
                 movt r1, #:upper16:({record}-({here}+{ahead})); {here}: {zero}; strb r0, [r1]; pop {{r0, r1}}"
            ),
            cold: None,
        })
    }

    fn blocks(&self, _: &Site<'_, '_>, _: &[usize]) -> Result<BlockProbes, String> {
        Err("cannot have block coverage on 32-bit Arm".to_owned())
    }

    fn once(&self, _: &Options) -> String {
        String::new()
    }
}

/// What an instruction does to the flow of control (Arm Architecture Reference Manual for ARMv7-A, A4.3 and A8).
fn flow<'a>(instruction: &Instruction<'a>) -> Flow<'a> {
    let Instruction {
        mnemonic, operands, ..
    } = *instruction;
    let lower = mnemonic.to_ascii_lowercase();
    let name = lower
        .strip_suffix(b".n")
        .or_else(|| lower.strip_suffix(b".w"))
        .unwrap_or(&lower);
    let last = || {
        words(
            operands
                .rsplit(|&byte| byte == b',')
                .next()
                .unwrap_or_default(),
        )
        .next()
    };
    let to_pc = || {
        words(operands)
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(b"pc"))
    };
    match name {
        b"b" => last().map_or(Flow::Indirect, Flow::Jump),
        b"cbz" | b"cbnz" => last().map_or(Flow::Next, Flow::Branch),
        b"bx" if operands.eq_ignore_ascii_case(b"lr") => Flow::Leave,
        b"bx" | b"bxj" | b"tbb" | b"tbh" => Flow::Indirect,
        b"bl" | b"blx" => Flow::Call,
        b"pop" | b"ldm" | b"ldmia" | b"ldmfd" | b"ldmdb" | b"ldmea" | b"ldmib"
            if words(operands).any(|word| word.eq_ignore_ascii_case(b"pc")) =>
        {
            Flow::Leave
        }
        b"mov"
            if to_pc()
                && words(operands)
                    .nth(1)
                    .is_some_and(|word| word.eq_ignore_ascii_case(b"lr")) =>
        {
            Flow::Leave
        }
        b"mov" | b"add" | b"sub" | b"ldr" if to_pc() => Flow::Indirect,
        b"udf" | b"bkpt" | b"hlt" | b"rfe" | b"rfeia" | b"eret" => Flow::Leave,
        b"subs" | b"movs" if to_pc() => Flow::Leave,
        _ if name.strip_prefix(b"b").is_some_and(is_condition) => {
            last().map_or(Flow::Next, Flow::Branch)
        }
        _ if name.strip_prefix(b"bl").is_some_and(is_condition)
            || name.strip_prefix(b"blx").is_some_and(is_condition) =>
        {
            Flow::Call
        }
        _ => Flow::Next,
    }
}

fn is_condition(name: &[u8]) -> bool {
    matches!(
        name,
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
    )
}

/// Whether a text shows 32-bit Arm.
pub(super) fn shows(text: &[u8]) -> bool {
    const SIGNS: [&[u8]; 6] = [
        b".eabi_attribute",
        b".syntax unified",
        b".syntax\tunified",
        b".fnstart",
        b".thumb",
        b"\tbx\tlr",
    ];
    SIGNS
        .iter()
        .any(|sign| memchr::memmem::find(text, sign).is_some())
}
