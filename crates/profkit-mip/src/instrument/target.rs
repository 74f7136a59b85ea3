//! The targets for which there is a back end. Recognises the target of an assembly file.
use super::backend::Backend;
use super::{aarch64, arm, macho, x86_64};
use std::fmt;
use std::str::FromStr;

/// A target for which there is a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target {
    /// The target is x86-64 with ELF.
    X86_64Elf,
    /// The target is AArch64 with ELF.
    Aarch64Elf,
    /// The target is 32-bit Arm with ELF: ARMv7 and later, A32 and T32.
    ArmElf,
    /// The target is x86-64 with Mach-O.
    X86_64MachO,
    /// The target is AArch64 with Mach-O.
    Aarch64MachO,
    /// The target is 32-bit Arm with Mach-O: ARMv7 and later, A32 and T32.
    ArmMachO,
}

impl Target {
    /// All targets for which there is a back end.
    pub const ALL: [Target; 6] = [
        Target::X86_64Elf,
        Target::Aarch64Elf,
        Target::ArmElf,
        Target::X86_64MachO,
        Target::Aarch64MachO,
        Target::ArmMachO,
    ];

    /// Returns the usual triple of the target.
    pub fn triple(self) -> &'static str {
        match self {
            Target::X86_64Elf => "x86_64-unknown-linux-gnu",
            Target::Aarch64Elf => "aarch64-unknown-linux-gnu",
            Target::ArmElf => "armv7-unknown-linux-gnueabihf",
            Target::X86_64MachO => "x86_64-apple-macosx",
            Target::Aarch64MachO => "arm64-apple-macosx",
            Target::ArmMachO => "armv7k-apple-watchos",
        }
    }

    /// Returns the back end of the target.
    pub fn backend(self) -> &'static dyn Backend {
        match self {
            Target::X86_64Elf => &x86_64::ELF,
            Target::Aarch64Elf => &aarch64::ELF,
            Target::ArmElf => &arm::ELF,
            Target::X86_64MachO => &x86_64::MACH_O,
            Target::Aarch64MachO => &aarch64::MACH_O,
            Target::ArmMachO => &arm::MACH_O,
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

    /// Parses a triple in the forms that compilers accept (`x86_64-linux-gnu`, `x86_64-unknown-freebsd14`).
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
            _ if is_arm(arch) && apple => Ok(Target::ArmMachO),
            _ if is_arm(arch) && !windows => Ok(Target::ArmElf),
            _ => Err(format!(
                "there is no back end for target {triple} (there is one for {})",
                supported()
            )),
        }
    }
}

/// The triples of all targets, as a list for messages.
pub(super) fn supported() -> String {
    Target::ALL.map(Target::triple).join(", ")
}

/// Recognises the target of an assembly file. `None` if the text does not show its target.
pub fn detect(text: &[u8]) -> Option<Target> {
    // One register identifies the target, and the first functions are near the start of the file.
    const ENOUGH: usize = 1 << 20;
    let head = text.get(..text.len().min(ENOUGH)).unwrap_or_default();
    let mach_o = macho::shows(head);
    // 32-bit Arm comes first: some of its instructions look like AArch64, but it has directives of its own.
    if arm::shows(head) {
        Some(if mach_o {
            Target::ArmMachO
        } else {
            Target::ArmElf
        })
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

fn is_arm(arch: &str) -> bool {
    let big = arch.starts_with("armeb") || arch.starts_with("thumbeb") || arch.ends_with("eb");
    (arch.starts_with("arm") && !arch.starts_with("arm64") || arch.starts_with("thumb")) && !big
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
            ("armv7k-apple-watchos9", Target::ArmMachO),
            ("thumbv7-apple-ios7", Target::ArmMachO),
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
            "thumbv7-pc-windows-msvc",
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
            (
                "\t.section __TEXT,__text,regular,pure_instructions\n\t.syntax unified\n_f:\n\tstr r0, [sp]\n",
                Some(Target::ArmMachO),
            ),
            ("f:\n\taddi sp, sp, -16\n\tret\n", None),
        ] {
            assert_eq!(detect(text.as_bytes()), target, "{text}");
        }
    }
}
