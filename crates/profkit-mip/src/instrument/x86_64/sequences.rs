//! Makes the code of x86-64 probes. [docs/formats/mip-code.md] shows the bytes.
//!
//! [docs/formats/mip-code.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-code.md
use super::edges;
use crate::asm::ObjectFormat;
use crate::instrument::backend::{Sequence, Site};
use crate::instrument::helpers::{
    EdgeNames, FIRST, edge_helper, global, helper, hidden, saturates,
};
use crate::instrument::labels::Labels;
use crate::instrument::options::{Counter, Mode, Options};
use profkit_abi::mip::{record, symbol};

fn address(record: &str, intel: bool, offset: usize) -> String {
    let place = match offset {
        0 => record.to_owned(),
        _ => format!("{record}+{offset}"),
    };
    if intel {
        format!("[rip + {place}]")
    } else {
        format!("{place}(%rip)")
    }
}

/// A memory operand in the record; in Intel syntax with its size.
fn memory(record: &str, intel: bool, size: &str, offset: usize) -> String {
    let address = address(record, intel, offset);
    if intel {
        format!("{size} ptr {address}")
    } else {
        address
    }
}

pub(super) use large::block as large_block;

pub(super) fn entry(site: &Site<'_, '_>, format: ObjectFormat) -> Sequence {
    if site.options.large_code_model {
        return large::entry(site, format);
    }
    let intel = site.intel();
    let record = site.labels.record();
    match site.options.mode {
        Mode::Function(Counter::Store) => Sequence {
            inline: block(&record, intel, 0),
            cold: None,
        },
        Mode::Function(Counter::Unary) => {
            let byte = memory(&record, intel, "byte", 0);
            Sequence {
                inline: if intel {
                    format!("shr {byte}, 1")
                } else {
                    format!("shrb {byte}")
                },
                cold: None,
            }
        }
        Mode::Calls { return_addresses } => {
            let count = memory(&record, intel, "dword", record::COUNT_OFFSET);
            let (stub, back) = (site.labels.other("s"), site.labels.other("c"));
            let lock = if site.options.atomic { "lock " } else { "" };
            let increment = if intel { "inc" } else { "incl" };
            let jump = jump(return_addresses.is_some());
            let call = match return_addresses {
                // Finding the record as the other helper does would take longer than the sample itself.
                Some(slots) => format!(
                    "pushq %rax\n\tleaq {record}(%rip), %rax\n\tcallq {}\n\tpopq %rax",
                    global(&edge_helper(slots, site.options.atomic), format)
                ),
                // There is one stub per function, so it is short: the helper finds the record by itself.
                None => format!("callq {}", global(FIRST, format)),
            };
            Sequence {
                inline: format!("{lock}{increment} {count}; {jump} {stub}; {back}:"),
                cold: Some(format!("{stub}:\n\t{call}\n\tjmp {back}\n")),
            }
        }
    }
}

/// The jump to the stub, after an increment. Without call edges it is taken at the first call and when the count has
/// exceeded the largest signed number (but not at that call, which overflows); with them, when a call is to be sampled.
fn jump(edges: bool) -> &'static str {
    if edges { "jns" } else { "jle" }
}

/// The directives for a push and a pop of 8 bytes; empty without unwind information.
fn cfa(site: &Site<'_, '_>) -> (&'static str, &'static str) {
    if site.in_frame() {
        ("; .cfi_adjust_cfa_offset 8", "; .cfi_adjust_cfa_offset -8")
    } else {
        ("", "")
    }
}

mod large {
    use super::{
        Counter, Labels, Mode, ObjectFormat, Sequence, Site, assign_ordinal, cfa, edge_helper,
        global, jump, record, symbol,
    };

    /// Switches to AT&T syntax for `code` if `intel` is in effect: clang 22 rejects `offset` of a difference of labels.
    fn in_syntax(code: &str, intel: bool) -> String {
        if intel {
            format!(".att_syntax prefix; {code}; .intel_syntax noprefix")
        } else {
            code.to_owned()
        }
    }

    pub(super) fn entry(site: &Site<'_, '_>, format: ObjectFormat) -> Sequence {
        let here = site.labels.other("h");
        let record = site.labels.record();
        let (down, up) = cfa(site);
        let operation = match site.options.mode {
            Mode::Function(Counter::Store) => "movb $0, (%rax)",
            Mode::Function(Counter::Unary) => "shrb (%rax)",
            Mode::Calls { .. } if site.options.atomic => "lock incl (%rax)",
            Mode::Calls { .. } => "incl (%rax)",
        };
        debug_assert_eq!(record::COVERED_BYTE, 0);
        let mut inline = format!(
            "pushq %rax{down}; pushq %rcx{down}; {here}: leaq {here}(%rip), %rax; movabsq ${record}-{here}, %rcx; addq %rcx, %rax; {operation}; popq %rcx{up}; popq %rax{up}"
        );
        let mut cold = None;
        if let Mode::Calls { return_addresses } = site.options.mode {
            let (stub, back) = (site.labels.other("s"), site.labels.other("c"));
            // Pops do not change flags, so the branch still sees the flags that the increment has set.
            let jump = jump(return_addresses.is_some());
            inline.push_str(&format!("; {jump} {stub}; {back}:"));
            let there = site.labels.other("t");
            cold = Some(if let Some(slots) = return_addresses {
                let helper = global(&large_helper(slots, site.options.atomic), format);
                format!(
                    "{stub}:\n\tpushq %rax\n\tpushq %rcx\n{there}:\n\tleaq {there}(%rip), %rax\n\tmovabsq ${helper}-{there}, %rcx\n\taddq %rax, %rcx\n\tpushq %rcx\n\tmovabsq ${record}-{there}, %rcx\n\taddq %rcx, %rax\n\tpopq %rcx\n\tcallq *%rcx\n\tpopq %rcx\n\tpopq %rax\n\tjmp {back}\n"
                )
            } else {
                let ordinal = global(symbol::ORDINAL, format);
                // The helper may be out of reach, so the stub itself assigns the ordinal.
                format!(
                    "{stub}:\n\tpushq %rax\n\tpushq %rcx\n\tpushq %rdx\n\tpushq %rsi\n{there}:\n\tleaq {there}(%rip), %rax\n\tmovabsq ${ordinal}-{there}, %rsi\n\taddq %rax, %rsi\n\tmovabsq ${record}-{there}, %rcx\n\taddq %rcx, %rax\n{}{}{done}:\n\tpopq %rsi\n\tpopq %rdx\n\tpopq %rcx\n\tpopq %rax\n\tjmp {back}\n",
                    assign_ordinal("(%rsi)", &site.labels.other("q")),
                    super::saturate(&site.labels.other("o")),
                    done = site.labels.other("o"),
                )
            });
        }
        Sequence {
            inline: in_syntax(&inline, site.intel()),
            cold,
        }
    }

    pub(super) fn large_helper(slots: u32, exact: bool) -> String {
        format!("{}_large", edge_helper(slots, exact))
    }

    /// Marks a block as executed. No register is free, so two are saved below the red zone. No flag changes.
    /// `described` says that the unwinder must be told about each change of the stack pointer.
    pub(in super::super) fn block(
        labels: Labels,
        part: usize,
        number: usize,
        intel: bool,
        offset: usize,
        described: bool,
    ) -> String {
        const RED_ZONE: i32 = 128;
        let here = format!("{}_{part}_{number}", labels.other("l"));
        let record = labels.record();
        let covered = record::COVERED_BYTE;
        let moved = |by: i32| {
            if described {
                format!("; .cfi_adjust_cfa_offset {by}")
            } else {
                String::new()
            }
        };
        let (zone, down, up, back) = (moved(RED_ZONE), moved(8), moved(-8), moved(-RED_ZONE));
        let code = format!(
            "leaq -{RED_ZONE}(%rsp), %rsp{zone}; pushq %rax{down}; pushq %rcx{down}; {here}: leaq {here}(%rip), %rax; movabsq ${record}+{offset}-{here}, %rcx; movb ${covered}, (%rax,%rcx); popq %rcx{up}; popq %rax{up}; leaq {RED_ZONE}(%rsp), %rsp{back}"
        );
        in_syntax(&code, intel)
    }
}

/// Assigns the next ordinal to the record at rax, unless it has one, in which case the code jumps to `known` with rax
/// unchanged. With two threads, the code may be executed twice for one record. Uses rax, rcx and rdx.
pub(super) fn assign_ordinal(ordinal: &str, known: &str) -> String {
    let (offset, never) = (record::ORDINAL_OFFSET, -1);
    format!(
        "\tcmpl ${never}, {offset}(%rax)\n\tjne {known}\n\tmovl $1, %ecx\n\tlock xaddl %ecx, {ordinal}\n\tmovq %rax, %rdx\n\tmovl ${never}, %eax\n\tlock cmpxchgl %ecx, {offset}(%rdx)\n\tmovq %rdx, %rax\n{known}:\n"
    )
}

/// Sets the count at rax back if it has exceeded the largest signed number, otherwise jumps to `done`. Uses rcx.
fn saturate(done: &str) -> String {
    let (offset, [first, last]) = (record::COUNT_OFFSET, saturates());
    format!(
        "\tmovl {offset}(%rax), %ecx\n\tsubl ${first:#x}, %ecx\n\tcmpl ${:#x}, %ecx\n\tja {done}\n\tmovl ${:#x}, {offset}(%rax)\n",
        last - first,
        record::SATURATED_COUNT,
    )
}

/// Makes the store that marks a block as executed. It changes no register and no flag, and does not use the stack.
pub(super) fn block(record: &str, intel: bool, offset: usize) -> String {
    let byte = memory(record, intel, "byte", offset);
    let covered = record::COVERED_BYTE;
    if intel {
        format!("mov {byte}, {covered}")
    } else {
        format!("movb ${covered}, {byte}")
    }
}

/// The part of the helper's assembly code that loads the address of the record into rax. A stub has called the helper,
/// and the return address of this call is at `32(%rsp)`. The code uses rcx, rdx and rsi.
///
/// The instruction after the call is a jump from the stub back to the end of the probe. The probe is `incl
/// record(%rip); jle stub`, and the last four bytes of the `incl` are the distance to the record. So the code decodes
/// the jump to find the end of the probe, and then looks for the `jle` and the `incl` before this end.
///
/// The assembler encodes each jump with an 8-bit or a 32-bit distance, so the `jle` has two or six bytes. The code looks
/// at the last two bytes of the probe. If they are an 8-bit `jle` to the stub, they are that of the probe. Otherwise
/// the `jle` has six bytes. These two cases cannot be confused: if the two bytes were the upper half of the 32-bit
/// distance of a long `jle`, the stub would be more than 2^16 bytes away, but read as a short one they say that it is
/// less than 128 bytes away.
const FIND_RECORD: &str = "\
\tmovq 32(%rsp), %rsi
\tmovsbq 1(%rsi), %rax
\tleaq 2(%rsi,%rax), %rax
\tcmpb $0xeb, (%rsi)
\tje 1f
\tmovslq 1(%rsi), %rax
\tleaq 5(%rsi,%rax), %rax
1:
\tsubq $5, %rsi
\tmovsbq -1(%rax), %rcx
\taddq %rax, %rcx
\tleaq -2(%rax), %rdx
\tcmpb $0x7e, (%rdx)
\tjne 2f
\tcmpq %rcx, %rsi
\tje 3f
2:
\tleaq -6(%rax), %rdx
3:
\tmovslq -4(%rdx), %rax
\taddq %rdx, %rax
";

/// The character before types, and the alignment of helpers.
const HELPER: (char, u8) = ('@', 4);

pub(super) fn once(options: &Options, format: ObjectFormat) -> String {
    let mut out = String::new();
    let Mode::Calls { return_addresses } = options.mode else {
        return out;
    };
    let ordinal = hidden(symbol::ORDINAL, format, &mut out);
    let local = match format {
        ObjectFormat::Elf => ".Lprofkit_mip_",
        ObjectFormat::MachO => "Lprofkit_mip_",
    };
    if let Some(slots) = return_addresses {
        let names = EdgeNames::new(slots, format, local);
        let (exact, large) = (options.atomic, options.large_code_model);
        let name = if large {
            large::large_helper(slots, exact)
        } else {
            edge_helper(slots, exact)
        };
        let body = edges::helper(&names, slots, exact, large);
        helper(&name, &body, format, HELPER, &mut out);
    } else if !options.large_code_model {
        helper(
            FIRST,
            &format!(
                "\tpushq %rax\n\tpushq %rcx\n\tpushq %rdx\n\tpushq %rsi\n{FIND_RECORD}{}{}{local}done:\n\tpopq %rsi\n\tpopq %rdx\n\tpopq %rcx\n\tpopq %rax\n\tret\n",
                assign_ordinal(&format!("{ordinal}(%rip)"), &format!("{local}known")),
                saturate(&format!("{local}done")),
            ),
            format,
            HELPER,
            &mut out,
        );
    }
    out
}
