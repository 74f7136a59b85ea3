//! The back end for x86-64 with ELF (System V).
//!
//! No probe touches a register: not even r10 (static chain) and r11, which some calling conventions pass arguments in.
//! Flags are changed at a function's entry only, where no calling convention passes any.
mod flow;
mod sequences;

use super::target::{Backend, Flow, Sequence, Site};
use super::{Mode, Options};
use crate::asm::{Instruction, Syntax};

/// x86-64 ELF.
#[derive(Debug)]
pub(super) struct Elf;

impl Backend for Elf {
    fn syntax(&self) -> &'static Syntax {
        &Syntax::X86_ELF
    }

    fn is_64_bit(&self) -> bool {
        true
    }

    fn supports(&self, options: &Options) -> Result<(), String> {
        if options.large_code_model && options.blocks {
            return Err(
                "cannot have block coverage in the large code model: inside a function no register is known to be \
                 free for the address of the record"
                    .to_owned(),
            );
        }
        match options.mode {
            Mode::Calls {
                return_addresses: Some(0),
            } => Err("cannot have a ring of 0 return addresses".to_owned()),
            _ => Ok(()),
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

    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String> {
        Ok(sequences::entry(site))
    }

    fn block(&self, site: &Site<'_, '_>, offset: usize) -> Result<Sequence, String> {
        Ok(sequences::block(site, offset))
    }

    fn once(&self, options: &Options) -> String {
        sequences::once(options)
    }
}

/// Whether a text shows registers of x86-64.
pub(super) fn shows(text: &[u8]) -> bool {
    const REGISTERS: [&[u8]; 8] = [
        b"%rsp", b"%rip", b"%rbp", b"%rdi", b"%rax", b"%eax", b"[rsp", b"[rip",
    ];
    memchr::memmem::find(text, b"__TEXT,__text").is_none()
        && (REGISTERS
            .iter()
            .any(|name| memchr::memmem::find(text, name).is_some())
            || memchr::memmem::find(text, b".intel_syntax").is_some()
            || memchr::memmem::find(text, b"retq").is_some())
}
