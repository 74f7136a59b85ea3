//! The back ends for x86-64 with ELF (System V) and with Mach-O.
//!
//! No probe changes a register. This includes r10 (the static chain) and r11, because some calling conventions pass
//! arguments in them. Only probes at the entry of a function change flags. They may do so because no calling convention
//! passes anything in flags.
mod edges;
mod flow;
mod sequences;
mod unwind;

use super::backend::{Backend, BlockProbes, Flow, Sequence, Site};
use super::options::{Mode, Options};
use crate::asm::{Instruction, ObjectFormat, Syntax};
use profkit_abi::mip::record;

#[derive(Debug)]
pub(super) struct X86_64 {
    format: ObjectFormat,
}

/// The back end for x86-64 with ELF.
pub(super) static ELF: X86_64 = X86_64 {
    format: ObjectFormat::Elf,
};

/// The back end for x86-64 with Mach-O.
pub(super) static MACH_O: X86_64 = X86_64 {
    format: ObjectFormat::MachO,
};

impl Backend for X86_64 {
    fn syntax(&self) -> &'static Syntax {
        match self.format {
            ObjectFormat::Elf => &Syntax::X86_ELF,
            ObjectFormat::MachO => &Syntax::X86_MACHO,
        }
    }

    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a> {
        flow::of(instruction)
    }

    fn is_landing(&self, instruction: &Instruction<'_>) -> bool {
        matches!(instruction.mnemonic, b"endbr64" | b"endbr32")
    }

    fn is_nop(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_nop(instruction)
    }

    fn is_entry_hook(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_entry_hook(instruction)
    }

    fn is_frame_setup(
        &self,
        first: &Instruction<'_>,
        second: &Instruction<'_>,
        options: &Options,
    ) -> bool {
        // Probes that read the return address or describe a push are correct only before the frame setup.
        let by_stack = options.large_code_model
            || matches!(
                options.mode,
                Mode::Calls {
                    return_addresses: Some(_)
                }
            );
        !by_stack && flow::is_frame_setup(first, second)
    }

    fn is_filler(&self, instruction: &Instruction<'_>) -> bool {
        // Compilers add no return to a naked function, whose inline assembly returns by itself.
        flow::is_nop(instruction) || instruction.mnemonic.starts_with(b"ud")
    }

    fn is_prefix(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_prefix_alone(instruction)
    }

    fn is_short_branch(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_short_branch(instruction)
    }

    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String> {
        Ok(sequences::entry(site, self.format))
    }

    fn blocks(
        &self,
        site: &Site<'_, '_>,
        part: usize,
        starts: &[usize],
    ) -> Result<BlockProbes, String> {
        Ok(blocks(site, part, starts))
    }

    fn once(&self, options: &Options) -> String {
        sequences::once(options, self.format)
    }
}

/// Makes the block probes: one store at the start of each block.
fn blocks(site: &Site<'_, '_>, part: usize, starts: &[usize]) -> BlockProbes {
    let first = site.options.entry_size();
    let is_large = site.options.large_code_model;
    let by_stack_pointer = if is_large {
        unwind::by_stack_pointer(site, part, starts)
    } else {
        Vec::new()
    };
    let probe = |(number, &start): (usize, &usize)| {
        let offset = first + number * record::BLOCK_SIZE;
        let intel = site
            .module
            .statements
            .get(start)
            .is_some_and(|statement| statement.context.intel);
        let probe = if is_large {
            let described = by_stack_pointer.get(number).is_some_and(|by| *by);
            sequences::large_block(site.labels, part, number, intel, offset, described)
        } else {
            sequences::block(&site.labels.record(), intel, offset)
        };
        (start, probe)
    };
    BlockProbes {
        probes: starts.iter().enumerate().map(probe).collect(),
        replaced: Vec::new(),
    }
}

/// Some signs also exist on 32-bit x86: they count only without the stack pointer of 32-bit x86.
pub(super) fn shows(text: &[u8]) -> bool {
    const SURE: [&[u8]; 11] = [
        b"%rsp", b"%rip", b"%rbp", b"%rdi", b"%rsi", b"%rax", b"%rbx", b"[rsp", b"[rip", b"retq",
        b"rsp,",
    ];
    const LIKELY: [&[u8]; 3] = [b"%eax", b"%xmm", b".intel_syntax"];
    const NARROW: [&[u8]; 2] = [b"%esp", b"[esp"];
    let has = |signs: &[&[u8]]| {
        signs
            .iter()
            .any(|sign| memchr::memmem::find(text, sign).is_some())
    };
    has(&SURE) || has(&LIKELY) && !has(&NARROW)
}
