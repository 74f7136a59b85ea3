//! The back end for 32-bit Arm with ELF (AAPCS32): function coverage of ARMv7 code in the A32 and T32 instruction sets.
//!
//! At the entry of a function, only r12 could be changed without saving it, but compilers use r12 for the static chain.
//! So the probe saves and restores the two registers that it uses. It computes a PC-relative address with `movw` and
//! `movt`, which exist since ARMv6T2, and therefore needs no literal pool.
use super::backend::{Backend, BlockProbes, Flow, Sequence, Site};
use super::options::{Counter, Mode, Options};
use crate::asm::{ArmSet, Instruction, Syntax, words};

/// The back end for 32-bit Arm with ELF.
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
            Mode::Function(Counter::Store) => Err(
                "cannot have block coverage: on 32-bit Arm there is function coverage only"
                    .to_owned(),
            ),
            Mode::Function(Counter::Unary) => Err(
                "cannot have unary counters: on 32-bit Arm there is function coverage only"
                    .to_owned(),
            ),
            Mode::Calls { .. } => Err(
                "cannot have mode calls: on 32-bit Arm there is function coverage only".to_owned(),
            ),
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
        // The inserted code is a multiple of 4 bytes: literal loads after it depend on their alignment.
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

    fn blocks(&self, _: &Site<'_, '_>, _: usize, _: &[usize]) -> Result<BlockProbes, String> {
        Err("cannot have block coverage on 32-bit Arm".to_owned())
    }

    fn once(&self, _: &Options) -> String {
        String::new()
    }
}

/// Source: Arm Architecture Reference Manual for ARMv7-A, A4.3 and A8.
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

pub(super) fn is_condition(name: &[u8]) -> bool {
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

/// Whether the text of a file looks like assembly for 32-bit Arm.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::{Options, Target, instrument};

    fn instrumented(text: &str) -> String {
        let made = instrument(
            text.as_bytes(),
            "a.s",
            Some(Target::ArmElf),
            &Options::default(),
        )
        .unwrap();
        let text = String::from_utf8(made.text.into_owned()).unwrap();
        let skipped: Vec<String> = made
            .skipped
            .iter()
            .map(|skipped| skipped.reason.to_string())
            .collect();
        let body = text.split("\t.section").next().unwrap().trim().to_owned();
        skipped
            .into_iter()
            .chain([body])
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn probes_are_of_the_functions_instruction_set() {
        insta::assert_snapshot!(
            instrumented(".syntax unified\n.arm\n.type f,%function\nf:\n\tbx lr\n.size f,.-f\n"),
            @r"
        .syntax unified
        .arm
        .type f,%function
        f: .Lprofkit_mip_f0:
        	push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+8)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+8)); .Lprofkit_mip_p0: add r1, pc, r1; mov r0, #0; strb r0, [r1]; pop {r0, r1}; bx lr
        .Lprofkit_mip_e0: .size f,.-f
        "
        );
        insta::assert_snapshot!(
            instrumented(".syntax unified\n.thumb\n.type f,%function\n.thumb_func\nf:\n\tbx lr\n.size f,.-f\n"),
            @r"
        .syntax unified
        .thumb
        .type f,%function
        .thumb_func
        f: .Lprofkit_mip_f0:
        	push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; mov.w r0, #0; strb r0, [r1]; pop {r0, r1}; bx lr
        .Lprofkit_mip_e0: .size f,.-f
        "
        );
        insta::assert_snapshot!(
            instrumented(".thumb\n.type f,%function\n.thumb_func\nf:\n\tbx lr\n.size f,.-f\n"),
            @r"
        .thumb
        .type f,%function
        .thumb_func
        f: .Lprofkit_mip_f0:
        	push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; mov r0, #0; nop; strb r0, [r1]; pop {r0, r1}; bx lr
        .Lprofkit_mip_e0: .size f,.-f
        "
        );
    }

    #[test]
    fn what_is_not_known_or_too_old_is_skipped() {
        insta::assert_snapshot!(instrumented(".type f,%function\nf: bx lr\n.size f,.-f"), @r"
        does not show its instruction set (put .arm or .thumb before it)
        .type f,%function
        f: bx lr
        .size f,.-f
        ");
        insta::assert_snapshot!(instrumented(".arch armv6\n.arm\n.type f,%function\nf: bx lr\n.size f,.-f"), @r"
        is for a processor before ARMv7, which lacks movw and movt
        .arch armv6
        .arm
        .type f,%function
        f: bx lr
        .size f,.-f
        ");
    }

    #[test]
    fn a_table_that_counts_from_the_first_instruction_stays_beside_it() {
        insta::assert_snapshot!(
            instrumented(
                ".syntax unified\n.thumb\n.type f,%function\n.thumb_func\nf:\n.LCPI0_0:\n\ttbb [pc, r0]\n\t.byte (.L1-(.LCPI0_0+4))/2\n\t.p2align 1\n.L1:\tbx lr\n.size f,.-f\n"
            ),
            @r"
        .syntax unified
        .thumb
        .type f,%function
        .thumb_func
        f: .Lprofkit_mip_f0:
        push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; mov.w r0, #0; strb r0, [r1]; pop {r0, r1}; .LCPI0_0:
        	tbb [pc, r0]
        	.byte (.L1-(.LCPI0_0+4))/2
        	.p2align 1
        .L1:	bx lr
        .Lprofkit_mip_e0: .size f,.-f
        "
        );
    }

    #[test]
    fn modes_that_there_are_no_sequences_for_are_refused() {
        let refused = |mode, blocks| {
            let options = Options {
                mode,
                blocks,
                ..Options::default()
            };
            instrument(b"", "a.s", Some(Target::ArmElf), &options)
                .unwrap_err()
                .to_string()
        };
        insta::assert_snapshot!(refused(Mode::Function(Counter::Store), true), @"a.s cannot have block coverage: on 32-bit Arm there is function coverage only");
        insta::assert_snapshot!(refused(Mode::Function(Counter::Unary), false), @"a.s cannot have unary counters: on 32-bit Arm there is function coverage only");
        insta::assert_snapshot!(refused(Mode::Calls { return_addresses: None }, false), @"a.s cannot have mode calls: on 32-bit Arm there is function coverage only");
    }

    #[test]
    fn flow_of_instructions() {
        let of = |text: &'static str| {
            let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
            flow(&Instruction {
                mnemonic: mnemonic.as_bytes(),
                operands: operands.as_bytes(),
            })
        };
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
            "udf #0",
        ] {
            assert_eq!(of(leave), Flow::Leave, "{leave}");
        }
        for indirect in [
            "bx r3",
            "tbb [pc, r0]",
            "ldr pc, [r1]",
            "add pc, pc, r0",
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
}
