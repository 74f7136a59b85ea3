//! Makes the code of probes for 32-bit Arm. [docs/formats/mip-code-arm.md] shows it.
//!
//! Addresses are set by `movw` and `movt`, which exist since ARMv6T2, as a distance from an instruction that adds the
//! program counter. So a probe needs no literal pool.
//!
//! [docs/formats/mip-code-arm.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-code-arm.md
use super::edges;
use super::registers::Registers;
use crate::asm::{ArmSet, ObjectFormat};
use crate::instrument::backend::Sequence;
use crate::instrument::helpers::{EdgeNames, FIRST, edge_helper, global, hidden, saturates};
use crate::instrument::labels::Labels;
use crate::instrument::options::{Counter, Mode, Options};
use profkit_abi::mip::{record, symbol};
use std::fmt::Write as _;

/// The statements of a piece of code, and its size in bytes. All encodings that an assembler may choose have this size.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    statements: Vec<String>,
    pub(super) bytes: u32,
}

impl Code {
    pub(super) fn add(&mut self, statement: impl Into<String>, bytes: u32) {
        self.statements.push(statement.into());
        self.bytes += bytes;
    }

    pub(super) fn text(&self) -> String {
        self.statements.join("; ")
    }

    /// Makes the size a multiple of 4, so that what comes after keeps its alignment.
    pub(super) fn padded(mut self) -> Self {
        if !self.bytes.is_multiple_of(4) {
            self.add("nop", 2);
        }
        self
    }
}

/// Two registers for a probe: one for an address, one for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) address: u8,
    pub(super) value: u8,
    /// Those of the two that hold a value of the program, and must be saved.
    saved: Registers,
    /// Whether the flags may be changed.
    flags: bool,
}

impl Pair {
    /// Chooses registers, with the dead ones first.
    pub(super) fn choose(dead: Registers, set: ArmSet) -> Self {
        let mut free: Vec<u8> = dead.without(Registers::SP).numbers().collect();
        // The stored register should be one of the short instructions: the first.
        let value = if free.is_empty() { 0 } else { free.remove(0) };
        let (value, address) = match free.first() {
            Some(&address) => (value, address),
            // In T32, saving two low registers is shorter than the long instructions for a high one.
            None if value > 7 && set == ArmSet::T32 => (0, 1),
            None if value > 7 => (0, value),
            None => (value, if value == 1 { 0 } else { 1 }),
        };
        let both = Registers::one(address).union(Registers::one(value));
        Pair {
            address,
            value,
            saved: both.without(dead),
            flags: dead.contains(Registers::FLAGS),
        }
    }

    fn is_short(self) -> bool {
        self.address < 8 && self.value < 8
    }
}

/// A low register that is not of the pair.
fn third(pair: Pair) -> u8 {
    let is_free = |number: &u8| ![pair.address, pair.value].contains(number);
    (0..3).find(is_free).unwrap_or_default()
}

fn list(registers: Registers) -> String {
    let names: Vec<String> = registers.numbers().map(name).collect();
    format!("{{{}}}", names.join(", "))
}

fn name(number: u8) -> String {
    match number {
        12 => "ip".to_owned(),
        14 => "lr".to_owned(),
        _ => format!("r{number}"),
    }
}

/// How an instruction set expresses a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coder {
    pub(super) set: ArmSet,
    /// Whether the assembler reads the unified syntax. A32 sequences are the same in both.
    pub(super) unified: bool,
    pub(super) format: ObjectFormat,
}

impl Coder {
    fn is_thumb(self) -> bool {
        self.set == ArmSet::T32
    }

    /// The distance from an instruction to the value of pc that it reads.
    fn ahead(self) -> u32 {
        if self.is_thumb() { 4 } else { 8 }
    }

    /// The size of an instruction that has a short form in T32 if `short`.
    fn size(self, short: bool) -> u32 {
        if self.is_thumb() && short { 2 } else { 4 }
    }

    /// Sets a register to the address of `place`. `here` is a label that nothing else defines.
    pub(super) fn address(self, register: u8, place: &str, here: &str, code: &mut Code) {
        self.address_if("", register, place, here, code);
    }

    /// Sets a register to an address under a condition, which is empty if there is none.
    pub(super) fn address_if(
        self,
        condition: &str,
        register: u8,
        place: &str,
        here: &str,
        code: &mut Code,
    ) {
        let register = name(register);
        let ahead = self.ahead();
        let distance = format!("({place}-({here}+{ahead}))");
        code.add(
            format!("movw{condition} {register}, #:lower16:{distance}"),
            4,
        );
        code.add(
            format!("movt{condition} {register}, #:upper16:{distance}"),
            4,
        );
        if self.is_thumb() {
            code.add(format!("{here}: add{condition} {register}, pc"), 2);
        } else {
            code.add(
                format!("{here}: add{condition} {register}, pc, {register}"),
                4,
            );
        }
    }

    fn zero(self, register: u8, flags: bool, code: &mut Code) {
        let text = name(register);
        if !self.is_thumb() {
            code.add(format!("mov {text}, #0"), 4);
        } else if flags && register < 8 && self.unified {
            code.add(format!("movs {text}, #0"), 2);
        } else if self.unified {
            code.add(format!("mov.w {text}, #0"), 4);
        } else {
            // Without the unified syntax, this changes flags. Only entry probes are made without it.
            code.add(format!("mov {text}, #0"), 2);
        }
    }

    fn save(self, registers: Registers, code: &mut Code) {
        if registers != Registers::NONE {
            let short = registers.numbers().all(|number| number < 8 || number == 14);
            code.add(format!("push {}", list(registers)), self.size(short));
        }
    }

    fn restore(self, registers: Registers, code: &mut Code) {
        if registers != Registers::NONE {
            let short = registers.numbers().all(|number| number < 8);
            code.add(format!("pop {}", list(registers)), self.size(short));
        }
    }

    /// Stores the byte of a covered function or block.
    pub(super) fn store(self, pair: Pair, place: &str, here: &str) -> Code {
        let mut code = Code::default();
        self.save(pair.saved, &mut code);
        self.address(pair.address, place, here, &mut code);
        self.zero(pair.value, pair.flags, &mut code);
        let (value, address) = (name(pair.value), name(pair.address));
        code.add(
            format!("strb {value}, [{address}]"),
            self.size(pair.is_short()),
        );
        self.restore(pair.saved, &mut code);
        code
    }

    /// The code at the entry of a function. Flags are dead there.
    pub(super) fn entry(
        self,
        pair: Pair,
        labels: Labels,
        options: &Options,
        is_far: bool,
    ) -> Entry {
        let (record, here) = (labels.record(), labels.other("p"));
        let (value, address) = (name(pair.value), name(pair.address));
        let short = pair.is_short();
        let mut code = Code::default();
        match options.mode {
            Mode::Function(Counter::Store) => Entry::inline(self.store(pair, &record, &here)),
            Mode::Function(Counter::Unary) => {
                self.save(pair.saved, &mut code);
                self.address(pair.address, &record, &here, &mut code);
                code.add(format!("ldrb {value}, [{address}]"), self.size(short));
                let low = pair.value < 8;
                let shift = if low { "lsrs" } else { "lsr" };
                code.add(format!("{shift} {value}, {value}, #1"), self.size(low));
                code.add(format!("strb {value}, [{address}]"), self.size(short));
                self.restore(pair.saved, &mut code);
                Entry::inline(code)
            }
            Mode::Calls { return_addresses } => {
                let (stub, back) = (labels.other("s"), labels.other("c"));
                let wide = if self.is_thumb() { ".w" } else { "" };
                let offset = record::COUNT_OFFSET;
                debug_assert_eq!(offset, record::REMAINING_OFFSET);
                let helper = match return_addresses {
                    Some(slots) => edge_helper(slots, options.atomic),
                    None => FIRST.to_owned(),
                };
                let third = third(pair);
                let saved = if options.atomic {
                    pair.saved.union(Registers::one(third))
                } else {
                    pair.saved
                };
                self.save(saved, &mut code);
                self.address(pair.address, &record, &here, &mut code);
                let increment = format!("adds {value}, {value}, #1");
                let size = self.size(pair.value < 8);
                if options.atomic {
                    let (again, state) = (labels.other("a"), name(third));
                    code.add(format!("{again}: ldrex {value}, [{address}]"), 4);
                    code.add(increment, size);
                    code.add(format!("strex {state}, {value}, [{address}]"), 4);
                    code.add(format!("cmp {state}, #0"), self.size(third < 8));
                    code.add(format!("bne {again}"), self.size(true));
                    code.add(format!("cmp {value}, #0"), size);
                } else {
                    code.add(
                        format!("ldr {value}, [{address}, #{offset}]"),
                        self.size(short),
                    );
                    code.add(increment, size);
                    code.add(
                        format!("str {value}, [{address}, #{offset}]"),
                        self.size(short),
                    );
                }
                // Without call edges, the stub is executed at the first call and when the count has exceeded the largest
                // signed number; with them, when a call is to be sampled.
                let (condition, other) = match return_addresses {
                    Some(_) => ("pl", "mi"),
                    None => ("le", "gt"),
                };
                if is_far {
                    code.add(format!("b{other} {back}"), self.size(true));
                    code.add(format!("b{wide} {stub}"), 4);
                } else {
                    code.add(format!("b{condition}{wide} {stub}"), 4);
                }
                let mut after = Code::default();
                self.restore(saved, &mut after);
                match after.statements.first_mut() {
                    Some(first) => *first = format!("{back}: {first}"),
                    None => after.add(format!("{back}:"), 0),
                }
                code.bytes += after.bytes;
                code.statements.extend(after.statements);
                Entry {
                    code,
                    cold: Some(self.stub(pair, &global(&helper, self.format), &stub, &back)),
                }
            }
        }
    }

    /// Calls a helper, with the record's address on the stack, and after it r12, which a linker's veneer may overwrite, and
    /// the function's return address.
    fn stub(self, pair: Pair, helper: &str, stub: &str, back: &str) -> String {
        let saved = Registers::one(pair.address)
            .union(Registers::IP)
            .union(Registers::LR);
        let list = list(saved);
        let (set, wide) = if self.is_thumb() {
            (".thumb", ".w")
        } else {
            (".arm", "")
        };
        let set = match self.format {
            ObjectFormat::Elf => format!("\t{set}\n"),
            // The stub stands in the function.
            ObjectFormat::MachO => String::new(),
        };
        // The lowest register of a list is at the lowest address, and lr is the highest.
        debug_assert!(pair.address < 12);
        format!("{set}{stub}:\n\tpush {list}\n\tbl {helper}\n\tpop {list}\n\tb{wide} {back}\n")
    }
}

pub(super) struct Entry {
    pub(super) code: Code,
    pub(super) cold: Option<String>,
}

impl Entry {
    fn inline(code: Code) -> Self {
        Entry { code, cold: None }
    }

    pub(super) fn into_sequence(self) -> Sequence {
        Sequence {
            inline: self.code.text(),
            cold: self.cold,
        }
    }
}

/// The helper functions of an object. They are T32 code, which every processor with `movw` executes.
pub(super) fn once(options: &Options, format: ObjectFormat) -> String {
    let mut out = String::new();
    let Mode::Calls { return_addresses } = options.mode else {
        return out;
    };
    let ordinal = hidden(symbol::ORDINAL, format, &mut out);
    let coder = Coder {
        set: ArmSet::T32,
        unified: true,
        format,
    };
    let prefix = match format {
        ObjectFormat::Elf => ".L",
        ObjectFormat::MachO => "L",
    };
    if let Some(slots) = return_addresses {
        let names = EdgeNames::new(slots, format, prefix);
        let code = edges::helper(&names, slots, options.atomic, coder);
        let name = global(&edge_helper(slots, options.atomic), format);
        write_elf(&name, &body(&code), &mut out);
        return out;
    }
    let mut code = Code::default();
    code.add("push {r0, r1, r2, r3, r4}", 2);
    code.add("ldr r0, [sp, #20]", 2);
    // A record keeps its ordinal: two threads may make the first call.
    code.add(format!("ldr r1, [r0, #{}]", record::ORDINAL_OFFSET), 2);
    code.add("adds r1, r1, #1", 2);
    code.add("bne 4f", 2);
    // Mach-O objects have no distance to a symbol of another object, so they load a pointer.
    let pointer = format!("{prefix}profkit_mip_ordinal_pointer");
    let here = format!("{prefix}profkit_mip_o");
    match format {
        ObjectFormat::Elf => coder.address(2, &ordinal, &here, &mut code),
        ObjectFormat::MachO => {
            coder.address(2, &pointer, &here, &mut code);
            code.add("ldr r2, [r2]", 2);
        }
    }
    for line in [
        "1: ldrex r1, [r2]",
        "adds r3, r1, #1",
        "strex r4, r3, [r2]",
        "cmp r4, #0",
        "bne 1b",
    ] {
        code.add(line, 4);
    }
    code.add(format!("adds r0, #{}", record::ORDINAL_OFFSET), 2);
    for line in [
        "2: ldrex r3, [r0]",
        "adds r3, r3, #1",
        "bne 3f",
        "strex r4, r1, [r0]",
        "cmp r4, #0",
        "bne 2b",
        "3: pop {r0, r1, r2, r3, r4}",
        "bx lr",
    ] {
        code.add(line, 4);
    }
    // The count is set back when it has exceeded the largest signed number. A larger one is that of a record that is
    // just being reset.
    let [low, _] = saturates();
    code.add(format!("4: ldr r1, [r0, #{}]", record::COUNT_OFFSET), 2);
    code.add("lsrs r2, r1, #30", 2);
    code.add(format!("cmp r2, #{}", low >> 30), 2);
    code.add("bne 3b", 2);
    code.add(format!("movs r1, #{}", record::SATURATED_COUNT >> 24), 2);
    code.add("lsls r1, r1, #24", 2);
    code.add(format!("str r1, [r0, #{}]", record::COUNT_OFFSET), 2);
    code.add("b 3b", 2);
    let name = global(FIRST, format);
    let body = body(&code);
    let _ = match format {
        ObjectFormat::Elf => {
            write_elf(&name, &body, &mut out);
            Ok(())
        }
        ObjectFormat::MachO => write!(
            out,
            "\t.section __TEXT,__text,regular,pure_instructions\n\t.syntax unified\n\t.code 16\n\t.globl {name}\n\t.weak_definition {name}\n\t.private_extern {name}\n\t.p2align 2\n\t.thumb_func {name}\n{name}:\n{body}\t.section __DATA,__nl_symbol_ptr,non_lazy_symbol_pointers\n\t.p2align 2\n{pointer}:\n\t.indirect_symbol {ordinal}\n\t.4byte 0\n"
        ),
    };
    out
}

/// The statements as lines.
fn body(code: &Code) -> String {
    code.statements
        .iter()
        .fold(String::new(), |mut body, statement| {
            let _ = writeln!(body, "\t{statement}");
            body
        })
}

fn write_elf(name: &str, body: &str, out: &mut String) {
    let _ = write!(
        out,
        "\t.section .text.{name},\"axG\",%progbits,{name},comdat\n\t.syntax unified\n\t.thumb\n\t.p2align 2\n\t.weak {name}\n\t.hidden {name}\n\t.type {name}, %function\n\t.thumb_func\n{name}:\n{body}\t.size {name}, .-{name}\n"
    );
}
