//! The back ends for AArch64: ELF (AAPCS64) and Apple's Mach-O.
//!
//! A probe at the entry of a function uses x16 and x17, which every calling convention reserves for linkers. The probe
//! of a block needs one register: [`registers`] finds a dead one. If none is dead, the probe saves and restores a
//! register. Inserted code may put the targets of short branches out of reach; [`reach`] replaces such branches.
mod blocks;
mod edges;
mod flow;
mod reach;
mod registers;
mod sequences;

use super::backend::{Backend, BlockProbes, Flow, Sequence, Site};
use super::options::Options;
use crate::asm::{Instruction, ObjectFormat, Syntax};
use sequences::Addressing;

#[derive(Debug)]
pub(super) struct Aarch64 {
    format: ObjectFormat,
}

/// The back end for AArch64 with ELF.
pub(super) static ELF: Aarch64 = Aarch64 {
    format: ObjectFormat::Elf,
};

/// The back end for arm64 with Mach-O.
pub(super) static MACH_O: Aarch64 = Aarch64 {
    format: ObjectFormat::MachO,
};

/// With more statements, a `cbz`, which reaches 256 Ki instructions, may not reach the cold stubs after all other code,
/// so probes use one more branch. Block probes make the code longer: the limit is a quarter.
const NEAR: usize = 64 * 1024;

fn is_far(site: &Site<'_, '_>) -> bool {
    site.module.statements.len() > NEAR
}

impl Backend for Aarch64 {
    fn syntax(&self) -> &'static Syntax {
        match self.format {
            ObjectFormat::Elf => &Syntax::AARCH64_ELF,
            ObjectFormat::MachO => &Syntax::AARCH64_MACHO,
        }
    }

    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a> {
        flow::of(instruction)
    }

    fn is_landing(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_landing(instruction)
    }

    fn is_nop(&self, instruction: &Instruction<'_>) -> bool {
        flow::is_nop(instruction)
    }

    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String> {
        entry(site, self.format)
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
        sequences::once(options, Addressing::new(self.format, options))
    }
}

/// The prefixes of the names of functions that get an argument in x16 or x17, or that are pieces of other functions.
const REGISTER_THUNKS: [&str; 4] = [
    "__llvm_slsblr_thunk_",
    "__call_indirect_",
    "OUTLINED_FUNCTION_",
    "__hwasan_check_",
];

fn entry(site: &Site<'_, '_>, format: ObjectFormat) -> Result<Sequence, String> {
    let name = String::from_utf8_lossy(site.function.name);
    let plain = name
        .strip_prefix('_')
        .filter(|_| format == ObjectFormat::MachO)
        .unwrap_or(&name);
    if REGISTER_THUNKS
        .iter()
        .any(|prefix| plain.starts_with(prefix))
    {
        return Err("is called with x16 or x17 in use".to_owned());
    }
    Ok(sequences::entry(
        site,
        Addressing::new(format, site.options),
        is_far(site),
    ))
}

/// Whether a text looks like assembly for AArch64.
pub(super) fn shows(text: &[u8]) -> bool {
    const SIGNS: [&[u8]; 9] = [
        b"adrp",
        b"wzr",
        b"xzr",
        b", [sp",
        b"x29,",
        b"\tw0,",
        b"\tx0,",
        b".arch armv8",
        b".arch armv9",
    ];
    SIGNS
        .iter()
        .any(|sign| memchr::memmem::find(text, sign).is_some())
}
