//! The back ends for 32-bit Arm (AAPCS32), ARMv7 and later, in the A32 and T32 instruction sets: ELF and Mach-O.
//!
//! A probe needs two registers. [`liveness`] finds dead ones for a place in a function; registers that hold a value are
//! saved. Inserted code may put tables, literals and the targets of short branches out of reach; [`reach`] replaces the
//! instructions that use them.
mod blocks;
mod edges;
mod flow;
mod liveness;
mod mnemonic;
mod reach;
mod registers;
mod sequences;

use super::backend::{Backend, BlockProbes, Flow, Sequence, Site};
use super::body;
use super::options::{Counter, Mode, Options};
use crate::asm::{ArmSet, Instruction, ObjectFormat, Syntax};
pub(super) use mnemonic::is_condition;
use registers::Registers;
use sequences::{Coder, Pair};

#[derive(Debug)]
pub(super) struct Arm {
    format: ObjectFormat,
}

/// The back end for 32-bit Arm with ELF.
pub(super) static ELF: Arm = Arm {
    format: ObjectFormat::Elf,
};

/// The back end for 32-bit Arm with Mach-O.
pub(super) static MACH_O: Arm = Arm {
    format: ObjectFormat::MachO,
};

/// With more statements, a conditional branch, which reaches 1 MiB in T32, may not reach the cold stubs after all other
/// code, so probes use one more branch. Block probes make the code longer: the limit is a quarter.
const NEAR: usize = 64 * 1024;

impl Backend for Arm {
    fn syntax(&self) -> &'static Syntax {
        match self.format {
            ObjectFormat::Elf => &Syntax::ARM_ELF,
            ObjectFormat::MachO => &Syntax::ARM_MACHO,
        }
    }

    fn is_64_bit(&self) -> bool {
        false
    }

    fn supports(&self, options: &Options) -> Result<(), String> {
        match options.mode {
            Mode::Calls {
                return_addresses: Some(0),
            } => Err("cannot have a table of 0 return addresses".to_owned()),
            Mode::Calls {
                return_addresses: Some(_),
            } if self.format == ObjectFormat::MachO => Err("cannot sample return addresses: there is no such probe for Mach-O of 32-bit Arm (leave out --return-addresses)".to_owned()),
            _ => Ok(()),
        }
    }

    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a> {
        flow::of(instruction)
    }

    fn is_landing(&self, instruction: &Instruction<'_>) -> bool {
        let lower = instruction.mnemonic.to_ascii_lowercase();
        matches!(lower.as_slice(), b"bti" | b"pacbti")
    }

    fn is_nop(&self, instruction: &Instruction<'_>) -> bool {
        let lower = instruction.mnemonic.to_ascii_lowercase();
        matches!(lower.as_slice(), b"nop" | b"nop.n" | b"nop.w")
    }

    fn is_prefix(&self, instruction: &Instruction<'_>) -> bool {
        let lower = String::from_utf8_lossy(instruction.mnemonic).to_ascii_lowercase();
        registers::is_it(&lower)
    }

    fn counts_from_itself(&self, instruction: &Instruction<'_>) -> bool {
        flow::counts_from_itself(instruction)
    }

    fn is_conditional(&self, call: &Instruction<'_>) -> bool {
        flow::is_conditional(call)
    }

    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String> {
        let coder = coder(site, site.statement, self.format)?;
        if !coder.unified
            && coder.set == ArmSet::T32
            && !matches!(site.options.mode, Mode::Function(Counter::Store))
        {
            return Err(OLD_SYNTAX.to_owned());
        }
        let bodies = body::bodies(site.module, site.function);
        let facts = liveness::Facts::new(&bodies);
        let dead = bodies.first().and_then(|body| {
            let at = body.position(site.statement)?;
            liveness::dead(body, facts).get(at).copied()
        });
        // The return address is in lr, and no calling convention passes anything in flags.
        let mut dead = dead.unwrap_or_default().without(Registers::LR);
        if matches!(site.options.mode, Mode::Calls { .. }) {
            // The stub stores the record's address below r12.
            dead = dead.without(Registers::IP);
        }
        if !coder.unified {
            // The divided syntax of T32 has short instructions alone.
            dead = dead.and(Registers::LOW);
        }
        let pair = Pair::choose(dead.union(Registers::FLAGS), coder.set);
        let is_far = site.module.statements.len() > NEAR;
        let mut entry = coder.entry(pair, site.labels, site.options, is_far);
        if coder.set == ArmSet::T32 && !bodies.iter().all(blocks::aligns_its_data) {
            entry.code = entry.code.padded();
        }
        Ok(entry.into_sequence())
    }

    fn blocks(
        &self,
        site: &Site<'_, '_>,
        part: usize,
        starts: &[usize],
    ) -> Result<BlockProbes, String> {
        blocks::probes(site, part, starts, self.format)
    }

    fn once(&self, options: &Options) -> String {
        sequences::once(options, self.format)
    }
}

const OLD_SYNTAX: &str = "is T32 code in the divided syntax, for which there is only function coverage (put .syntax unified before it)";

/// How the probe before a statement is expressed.
fn coder(site: &Site<'_, '_>, statement: usize, format: ObjectFormat) -> Result<Coder, String> {
    let state = site
        .module
        .statements
        .get(statement)
        .map(|statement| statement.context.arm)
        .unwrap_or_default();
    if state.old {
        return Err("is for a processor before ARMv7, which lacks movw and movt".to_owned());
    }
    let Some(set) = state.set else {
        return Err("does not show its instruction set (put .arm or .thumb before it)".to_owned());
    };
    Ok(Coder {
        set,
        unified: state.unified,
        format,
    })
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
        	push {r0}; movw ip, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+8)); movt ip, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+8)); .Lprofkit_mip_p0: add ip, pc, ip; mov r0, #0; strb r0, [ip]; pop {r0}; bx lr
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
        	push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; movs r0, #0; strb r0, [r1]; pop {r0, r1}; bx lr
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
        	push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; mov r0, #0; strb r0, [r1]; pop {r0, r1}; bx lr
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
        push {r0, r1}; movw r1, #:lower16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); movt r1, #:upper16:(.Lprofkit_mip_r0-(.Lprofkit_mip_p0+4)); .Lprofkit_mip_p0: add r1, pc; movs r0, #0; strb r0, [r1]; pop {r0, r1}; .LCPI0_0:
        	tbb [pc, r0]
        	.byte (.L1-(.LCPI0_0+4))/2
        	.p2align 1
        .L1:	bx lr
        .Lprofkit_mip_e0: .size f,.-f
        "
        );
    }

    /// Returns the text of the functions with block coverage, or the reasons why there is none.
    fn with_blocks(text: &str) -> String {
        let options = Options {
            blocks: true,
            all_blocks: true,
            ..Options::default()
        };
        let head = ".syntax unified\n.type f,%function\n";
        let text = format!("{head}{text}");
        let made = instrument(text.as_bytes(), "a.s", Some(Target::ArmElf), &options).unwrap();
        if let Some(skipped) = made.skipped.first() {
            return skipped.reason.to_string();
        }
        String::from_utf8(made.text.into_owned()).unwrap()
    }

    #[test]
    fn nothing_stands_between_a_label_that_data_count_from_and_its_instruction() {
        let text = with_blocks(
            ".arm\nf:\n\tcmp r0, #0\n\tbeq .L2\n\tldr r1, .L3\n.L2:\n.LPIC0:\n\tadd r1, pc, r1\n\tbx lr\n.align 2\n.L3: .word x-(.LPIC0+8)\n.size f,.-f\n",
        );
        let probe = text.find("profkit_mip_b0_1:").unwrap();
        assert!(
            text.find(".L2:").unwrap() < probe && probe < text.find(".LPIC0:").unwrap(),
            "{text}"
        );
        assert_eq!(
            with_blocks(
                ".arm\nf:\n\tcmp r0, #0\n\tbeq .L2\n.LPIC0:\n.L2:\n\tadd r1, pc, r1\n\tbx lr\n.align 2\n.L3: .word x-(.LPIC0+8)\n.size f,.-f\n"
            ),
            "has no block coverage: the label .L2 stands between an instruction and the label from which data count"
        );
        insta::assert_snapshot!(
            with_blocks(".arm\nf:\n\tcmp r0, #0\n\tbeq .L2\n\tadd r1, pc, #8\n.L2:\tbx lr\n.size f,.-f\n"),
            @"has no block coverage: line 7 reads the program counter, and no label before it tells what counts from it"
        );
        insta::assert_snapshot!(
            with_blocks(".arm\nf:\n\tcmp r0, #0\n\tbeq .L2\n\tldr r1, =1234\n.L2:\tbx lr\n.size f,.-f\n"),
            @"has no block coverage: line 7 has a literal that the assembler places, which may get out of reach"
        );
    }

    #[test]
    fn a_table_of_branches_stays_as_it_is() {
        let text = with_blocks(
            ".arm\nf:\n\tcmp r0, #1\n\taddls pc, pc, r0, asl #2\n\tb .L2\n.L4:\n\tb .L5\n\tb .L6\n.L5:\tmov r0, #1\n\tbx lr\n.L6:\tb .L2\n.L2:\tbx lr\n.size f,.-f\n",
        );
        assert!(text.contains("\taddls pc, pc, r0, asl #2\n\tb .L2\n.L4:\n\tb .L5\n\tb .L6\n.L5:\t.Lprofkit_mip_b0_0"), "{text}");
        assert_eq!(text.matches("strb").count(), 4);
        insta::assert_snapshot!(
            with_blocks(".thumb\nf:\n\tadr r1, .L4\n\tadd r1, r1, r0, lsl #2\n\tmov pc, r1\n.L4:\n\tb.w .L5\n\tb.w .L6\n.L5:\tbx lr\n.L6:\tbx lr\n.size f,.-f\n"),
            @"has no block coverage: line 7 jumps into a table of branches"
        );
    }

    #[test]
    fn an_it_block_is_not_split() {
        let text = with_blocks(
            ".thumb\n.thumb_func\nf:\n\tcmp r0, #0\n\titt eq\n\tmoveq r0, #1\n\tbxeq lr\n\tmovs r0, #2\n\tbx lr\n.size f,.-f\n",
        );
        assert!(
            text.contains("\titt eq\n\tmoveq r0, #1\n\tbxeq lr\n\t.Lprofkit_mip_b0_0: "),
            "{text}"
        );
        insta::assert_snapshot!(
            with_blocks(".thumb\n.thumb_func\nf:\n\tcbz r0, .L1\n\tit eq\n.L1:\tmoveq r0, #1\n\tbx lr\n.size f,.-f\n"),
            @"has no block coverage: a label stands between a prefix and its instruction"
        );
    }

    #[test]
    fn a_probe_never_stands_in_an_exclusive_access() {
        let text = with_blocks(
            ".arm\nf:\n.L1:\tldrex r1, [r0]\n\tcmp r1, r2\n\tbne .L2\n.Ltmp1:\n\tstrex r3, r2, [r0]\n\tcmp r3, #0\n\tbne .L1\n.L2:\tbx lr\n.size f,.-f\n",
        );
        assert!(
            text.contains("\tstrex r3, r2, [r0]\n\t.Lprofkit_mip_b0_0: "),
            "{text}"
        );
    }

    #[test]
    fn an_exclusive_access_may_fail_once() {
        // LLVM's compare and exchange: the block after the first comparison is executed once, whatever fails.
        let text = |last: &str| {
            format!(
                ".arm\nf:\n\tldrex r1, [r0]\n\tcmp r1, r2\n\tbne .L4\n\tdmb ish\n.L2:\tstrex r12, r3, [r0]\n\tcmp r12, #0\n\tbeq .L4\n\t{last}\n.L4:\tbx lr\n.size f,.-f\n"
            )
        };
        let good = with_blocks(&text("ldrex r1, [r0]\n\tcmp r1, r2\n\tbeq .L2"));
        assert!(good.contains("strb r"), "{good}");
        assert!(good.find("profkit_mip_b0_0: ").unwrap() < good.find("dmb ish").unwrap());
        assert_eq!(
            with_blocks(
                ".arm\nf:\n.L1:\tldrex r1, [r0]\n\tcmp r1, r2\n\tbne .L4\n\tdmb ish\n\tb .L2\n.L2:\tstrex r12, r3, [r0]\n\tcmp r12, #0\n\tbne .L1\n.L4:\tbx lr\n.size f,.-f\n"
            ),
            "has no block coverage: a block of the function lies between a load-exclusive and its store-exclusive, where no other store is allowed"
        );
    }

    #[test]
    fn the_divided_syntax_of_t32_has_no_other_modes() {
        let options = Options {
            mode: Mode::Function(Counter::Unary),
            ..Options::default()
        };
        let made = instrument(
            b".thumb\n.type f,%function\nf:\tbx lr\n",
            "a.s",
            Some(Target::ArmElf),
            &options,
        )
        .unwrap();
        insta::assert_snapshot!(made.skipped[0].reason, @"is T32 code in the divided syntax, for which there is only function coverage (put .syntax unified before it)");
    }

    #[test]
    fn return_addresses_are_refused_for_mach_o() {
        let options = Options {
            mode: Mode::Calls {
                return_addresses: Some(4),
            },
            ..Options::default()
        };
        insta::assert_snapshot!(instrument(b"", "a.s", Some(Target::ArmMachO), &options).unwrap_err(), @"a.s cannot sample return addresses: there is no such probe for Mach-O of 32-bit Arm (leave out --return-addresses)");
    }
}
