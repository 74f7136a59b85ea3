//! What the instrumenter must know of a target.
use super::functions::Function;
use super::{Labels, Options, aarch64, arm, macho, x86_64};
use crate::asm::{Instruction, Kind, Module, Syntax};
use std::fmt;
use std::str::FromStr;

/// A target that there is a back end for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// x86-64 with ELF.
    X86_64Elf,
    /// AArch64 with ELF.
    Aarch64Elf,
    /// 32-bit Arm with ELF: ARMv7 and later, A32 and T32.
    ArmElf,
    /// x86-64 with Mach-O.
    X86_64MachO,
    /// AArch64 with Mach-O.
    Aarch64MachO,
}

impl Target {
    /// All targets.
    pub const ALL: [Target; 5] = [
        Target::X86_64Elf,
        Target::Aarch64Elf,
        Target::ArmElf,
        Target::X86_64MachO,
        Target::Aarch64MachO,
    ];

    /// Its usual triple.
    pub fn triple(self) -> &'static str {
        match self {
            Target::X86_64Elf => "x86_64-unknown-linux-gnu",
            Target::Aarch64Elf => "aarch64-unknown-linux-gnu",
            Target::ArmElf => "armv7-unknown-linux-gnueabihf",
            Target::X86_64MachO => "x86_64-apple-macosx",
            Target::Aarch64MachO => "arm64-apple-macosx",
        }
    }

    /// Its back end.
    pub fn backend(self) -> &'static dyn Backend {
        match self {
            Target::X86_64Elf => &x86_64::ELF,
            Target::Aarch64Elf => &aarch64::ELF,
            Target::ArmElf => &arm::Elf,
            Target::X86_64MachO => &x86_64::MACH_O,
            Target::Aarch64MachO => &aarch64::MACH_O,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.triple())
    }
}

impl FromStr for Target {
    type Err = String;

    /// Takes a triple as compilers do (`x86_64-linux-gnu`, `x86_64-unknown-freebsd14`).
    fn from_str(triple: &str) -> Result<Self, String> {
        let arch = triple.split('-').next().unwrap_or_default();
        let apple = triple.contains("-apple-") || triple.ends_with("-macho");
        let windows =
            triple.contains("windows") || triple.contains("-cygwin") || triple.contains("-uefi");
        match arch {
            "x86_64" | "amd64" if !apple && !windows && !triple.ends_with("x32") => {
                Ok(Target::X86_64Elf)
            }
            "x86_64" | "x86_64h" | "amd64" if apple => Ok(Target::X86_64MachO),
            "aarch64" | "arm64" if apple => Ok(Target::Aarch64MachO),
            "aarch64" | "arm64" if !windows && !triple.ends_with("ilp32") => Ok(Target::Aarch64Elf),
            _ if is_arm(arch) && !apple && !windows => Ok(Target::ArmElf),
            _ => Err(format!(
                "there is no back end for target {triple} (there is one for {})",
                Target::ALL.map(Target::triple).join(", ")
            )),
        }
    }
}

/// Tells the target from the assembly, if it shows; `None` if it does not.
pub fn detect(text: &[u8]) -> Option<Target> {
    // The start of a file has its first functions; a register settles it.
    const ENOUGH: usize = 1 << 20;
    let head = text.get(..text.len().min(ENOUGH)).unwrap_or_default();
    let mach_o = macho::shows(head);
    // Files of 32-bit Arm say so; what they share with AArch64 comes second.
    if !mach_o && arm::shows(head) {
        Some(Target::ArmElf)
    } else if x86_64::shows(head) {
        Some(if mach_o {
            Target::X86_64MachO
        } else {
            Target::X86_64Elf
        })
    } else if aarch64::shows(head) {
        Some(if mach_o {
            Target::Aarch64MachO
        } else {
            Target::Aarch64Elf
        })
    } else {
        None
    }
}

/// Little-endian 32-bit Arm, by a triple's first word.
fn is_arm(arch: &str) -> bool {
    let big = arch.starts_with("armeb") || arch.starts_with("thumbeb") || arch.ends_with("eb");
    (arch.starts_with("arm") && !arch.starts_with("arm64") || arch.starts_with("thumb")) && !big
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// Goes on to the next instruction.
    Next,
    /// Calls, and goes on to the next instruction.
    Call,
    /// Goes to a label, always.
    Jump(&'a [u8]),
    /// Goes to a label, or to the next instruction.
    Branch(&'a [u8]),
    /// Goes where a register or a table says.
    Indirect,
    /// Returns, traps, or leaves the function otherwise.
    Leave,
}

/// Where a probe goes.
#[derive(Clone, Copy, Debug)]
pub struct Site<'m, 'a> {
    /// The file.
    pub module: &'m Module<'a>,
    /// The function.
    pub function: &'m Function<'a>,
    /// Names of its labels.
    pub labels: Labels,
    /// Index of the statement before which the probe goes.
    pub statement: usize,
    /// What is asked for.
    pub options: &'m Options,
}

impl Site<'_, '_> {
    /// Whether the probe stands in a procedure of call frame information, so that a push has to be told.
    pub fn in_frame(&self) -> bool {
        self.function
            .statements(self.module)
            .take_while(|(index, _)| *index < self.statement)
            .any(|(_, statement)| {
                matches!(statement.kind, Kind::Directive(d) if d.name == b".cfi_startproc")
            })
    }

    /// Whether Intel syntax is on where the probe goes.
    pub fn intel(&self) -> bool {
        self.module
            .statements
            .get(self.statement)
            .is_some_and(|statement| statement.context.intel)
    }
}

/// The code of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// In the function: statements parted by the target's separator, without a line break.
    pub inline: String,
    /// Out of the way: lines behind the code of the section.
    pub cold: Option<String>,
}

/// The probes of a function's non-entry blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockProbes {
    /// For each block: the statement before which its probe goes, and the probe.
    pub probes: Vec<(usize, String)>,
    /// Statements of the function and its jump tables that must be written otherwise because the code grows.
    pub replaced: Vec<(usize, String)>,
}

/// The back end of one target.
pub trait Backend: fmt::Debug + Sync {
    /// Its assembly syntax and object format.
    fn syntax(&self) -> &'static Syntax;

    /// Whether its addresses have 64 bits.
    fn is_64_bit(&self) -> bool;

    /// Says why a mode is not available, if it is not.
    ///
    /// # Errors
    /// The reason, worded to follow the file's name.
    fn supports(&self, options: &Options) -> Result<(), String>;

    /// What an instruction does to the flow of control.
    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a>;

    /// Whether it is a landing pad for indirect calls, which must stay the first instruction (`endbr64`, `bti c`).
    fn is_landing(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether it is a no-operation, such as a patchable entry has.
    fn is_nop(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether it is a profiler's hook that must stay at the function's start (`call __fentry__`).
    fn is_entry_hook(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether two instructions at a function's start set up its frame in the way that debuggers look for, so that
    /// the entry probe goes behind them. The probe must be right there too.
    fn is_frame_setup(
        &self,
        _first: &Instruction<'_>,
        _second: &Instruction<'_>,
        _options: &Options,
    ) -> bool {
        false
    }

    /// Whether it is a prefix alone, which belongs to the next instruction (`lock` on a line of its own).
    fn is_prefix(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether it is a branch whose range does not grow with the distance, so that probes in between could put its
    /// target out of reach (`loop`, `jrcxz`).
    fn is_short_branch(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether a compiler puts it behind the inline assembly of a naked function.
    fn is_filler(&self, instruction: &Instruction<'_>) -> bool {
        self.is_nop(instruction) || self.flow(instruction) == Flow::Leave
    }

    /// The probe at a function's entry.
    ///
    /// # Errors
    /// Why this function cannot have one.
    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String>;

    /// The probes of the non-entry blocks of one part of a function (0: the function itself) that start before the
    /// statements `starts`, in that order: the first one's byte follows the entry's part of the record.
    ///
    /// # Errors
    /// Why the function cannot have them.
    fn blocks(
        &self,
        site: &Site<'_, '_>,
        part: usize,
        starts: &[usize],
    ) -> Result<BlockProbes, String>;

    /// Lines that an object needs once, such as helper functions in COMDAT groups. They are appended to the file.
    fn once(&self, options: &Options) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_choose_a_back_end() {
        for (triple, target) in [
            ("x86_64-linux-gnu", Target::X86_64Elf),
            ("amd64-unknown-freebsd14", Target::X86_64Elf),
            ("aarch64-linux-gnu", Target::Aarch64Elf),
            ("aarch64-linux-android29", Target::Aarch64Elf),
            ("armv7-linux-gnueabihf", Target::ArmElf),
            ("thumbv7em-none-eabi", Target::ArmElf),
            ("armv8l-linux-gnueabihf", Target::ArmElf),
            ("x86_64-apple-macos13", Target::X86_64MachO),
            ("arm64-apple-ios16", Target::Aarch64MachO),
        ] {
            assert_eq!(triple.parse(), Ok(target), "{triple}");
        }
        for target in Target::ALL {
            assert_eq!(target.triple().parse(), Ok(target));
        }
        for triple in [
            "armeb-linux-gnueabi",
            "aarch64_be-linux-gnu",
            "aarch64-linux-gnu_ilp32",
            "x86_64-linux-gnux32",
            "x86_64-pc-windows-msvc",
            "aarch64-pc-windows-msvc",
            "armv7k-apple-watchos9",
            "riscv64-linux-gnu",
            "",
        ] {
            assert!(triple.parse::<Target>().is_err(), "{triple}");
        }
    }

    #[test]
    fn assembly_shows_its_target() {
        for (text, target) in [
            ("f:\n\tmovq %rdi, %rax\n\tretq\n", Some(Target::X86_64Elf)),
            (
                "f:\n\tstp x29, x30, [sp, #-16]!\n\tret\n",
                Some(Target::Aarch64Elf),
            ),
            ("\t.arch armv8-a\nf:\n\tret\n", Some(Target::Aarch64Elf)),
            (
                "\t.arch armv7-a\n\t.eabi_attribute 28, 1\nf:\n\tbx\tlr\n",
                Some(Target::ArmElf),
            ),
            (
                "\t.arch armv8-a\n\t.syntax unified\n\t.thumb\nf:\n",
                Some(Target::ArmElf),
            ),
            (
                "\t.section __TEXT,__text\n_f:\n\tmovl %edi, %eax\n\tretq\n",
                Some(Target::X86_64MachO),
            ),
            (
                "\t.build_version macos, 13, 0\n_f:\n\tadd\tw0, w0, #1\n",
                Some(Target::Aarch64MachO),
            ),
            ("f:\n\taddi sp, sp, -16\n\tret\n", None),
        ] {
            assert_eq!(detect(text.as_bytes()), target, "{text}");
        }
    }
}
