//! Makes the code of AArch64 probes. [docs/formats/mip-code.md] shows the bytes.
//!
//! [docs/formats/mip-code.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-code.md
use super::edges;
use crate::asm::ObjectFormat;
use crate::instrument::backend::{Sequence, Site};
use crate::instrument::helpers::{
    EdgeNames, FIRST, edge_helper, global, helper, hidden, saturates,
};
use crate::instrument::options::{Counter, Mode, Options};
use profkit_abi::mip::{record, symbol};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug)]
pub(super) struct Addressing {
    pub(super) format: ObjectFormat,
    /// Whether addresses are set by `movz` and `movk`, because data may be more than 4 GiB away.
    pub(super) large: bool,
}

pub(super) fn separator(format: ObjectFormat) -> &'static str {
    match format {
        ObjectFormat::Elf => "; ",
        ObjectFormat::MachO => "%% ",
    }
}

impl Addressing {
    pub(super) fn new(format: ObjectFormat, options: &Options) -> Self {
        Addressing {
            format,
            large: format == ObjectFormat::Elf && options.large_code_model,
        }
    }

    fn global(self, name: &str) -> String {
        global(name, self.format)
    }

    /// The statements for the upper part of an address, to which [`low`](Self::low) is added. With 64-bit addresses,
    /// they set all of it, and [`low`](Self::low) is `None`.
    fn page(self, register: &str, place: &Place) -> Vec<String> {
        let place = match self.format {
            ObjectFormat::Elf => place.elf(),
            ObjectFormat::MachO => {
                return vec![format!("adrp {register}, {}", place.mach_o("PAGE"))];
            }
        };
        if !self.large {
            return vec![format!("adrp {register}, {place}")];
        }
        vec![
            format!("movz {register}, #:abs_g3:{place}"),
            format!("movk {register}, #:abs_g2_nc:{place}"),
            format!("movk {register}, #:abs_g1_nc:{place}"),
            format!("movk {register}, #:abs_g0_nc:{place}"),
        ]
    }

    /// The operand for the lower part of the address; `None` if [`page`](Self::page) sets all of it.
    fn low(self, place: &Place) -> Option<String> {
        match self.format {
            ObjectFormat::MachO => Some(place.mach_o("PAGEOFF")),
            ObjectFormat::Elf if self.large => None,
            ObjectFormat::Elf => Some(format!(":lo12:{}", place.elf())),
        }
    }

    /// Returns the memory operand for `place`. The statements from [`page`](Self::page) must have set the register.
    fn memory(self, register: &str, place: &Place) -> String {
        match self.low(place) {
            Some(low) => format!("[{register}, {low}]"),
            None => format!("[{register}]"),
        }
    }

    pub(super) fn address(self, register: &str, place: &Place) -> Vec<String> {
        let mut statements = self.page(register, place);
        statements.extend(
            self.low(place)
                .map(|low| format!("add {register}, {register}, {low}")),
        );
        statements
    }
}

#[derive(Clone, Debug)]
pub(super) struct Place {
    symbol: String,
    offset: usize,
}

impl Place {
    pub(super) fn new(symbol: String) -> Self {
        Place { symbol, offset: 0 }
    }

    fn elf(&self) -> String {
        match self.offset {
            0 => self.symbol.clone(),
            offset => format!("{}+{offset}", self.symbol),
        }
    }

    fn mach_o(&self, part: &str) -> String {
        match self.offset {
            0 => format!("{}@{part}", self.symbol),
            offset => format!("{}@{part}+{offset}", self.symbol),
        }
    }
}

/// `far` says that `cbz` may not reach the cold stub. Only x16 and x17 are dead at the entry under every calling
/// convention, because a linker may use them between the caller and the function.
pub(super) fn entry(site: &Site<'_, '_>, addressing: Addressing, far: bool) -> Sequence {
    let record = Place::new(site.labels.record());
    let page = addressing.page("x16", &record);
    let memory = addressing.memory("x16", &record);
    let separator = separator(addressing.format);
    let joined = |statements: &[String]| statements.join(separator);
    match site.options.mode {
        Mode::Function(Counter::Store) => {
            let mut statements = page;
            statements.push(format!("strb wzr, {memory}"));
            Sequence {
                inline: joined(&statements),
                cold: None,
            }
        }
        Mode::Function(Counter::Unary) => {
            let mut statements = page;
            statements.extend([
                format!("ldrb w17, {memory}"),
                "lsr w17, w17, #1".to_owned(),
                format!("strb w17, {memory}"),
            ]);
            Sequence {
                inline: joined(&statements),
                cold: None,
            }
        }
        Mode::Calls { return_addresses } => {
            let (stub, back) = (site.labels.other("s"), site.labels.other("c"));
            let mut statements = if site.options.atomic {
                atomic_increment(site, addressing, &record)
            } else {
                let mut statements = page;
                statements.extend([
                    format!("ldr w17, {memory}"),
                    "adds w17, w17, #1".to_owned(),
                    format!("str w17, {memory}"),
                ]);
                statements
            };
            // Without call edges, the stub is executed at the first call and when the count has exceeded the largest
            // signed number (but not at that call, which overflows); with them, when a call is to be sampled.
            let (condition, other) = match return_addresses {
                Some(_) => ("pl", "mi"),
                None => ("le", "gt"),
            };
            if far {
                statements.extend([format!("b.{other} {back}"), format!("b {stub}")]);
            } else {
                statements.push(format!("b.{condition} {stub}"));
            }
            let inline = format!("{}{separator}{back}:", joined(&statements));
            let mut stub = format!("{stub}:\n");
            if let Some(low) = addressing.low(&record).filter(|_| !site.options.atomic) {
                let _ = writeln!(stub, "\tadd x16, x16, {low}");
            }
            let helper = match return_addresses {
                Some(slots) => edge_helper(slots, site.options.atomic),
                None => FIRST.to_owned(),
            };
            for statement in call(&addressing.global(&helper)) {
                let _ = writeln!(stub, "\t{statement}");
            }
            let _ = writeln!(stub, "\tb {back}");
            Sequence {
                inline,
                cold: Some(stub),
            }
        }
    }
}

/// Adds one to the count at `record` and sets the flags. Leaves the record's address in x16. The loop needs a third
/// register, which is saved.
fn atomic_increment(site: &Site<'_, '_>, addressing: Addressing, record: &Place) -> Vec<String> {
    let again = site.labels.other("a");
    let mut statements = vec!["str x15, [sp, #-16]!".to_owned()];
    let described = site.in_frame();
    if described {
        statements.push(".cfi_adjust_cfa_offset 16".to_owned());
    }
    statements.extend(addressing.address("x16", record));
    statements.extend([
        format!("{again}: ldxr w17, [x16]"),
        "adds w17, w17, #1".to_owned(),
        "stxr w15, w17, [x16]".to_owned(),
        format!("cbnz w15, {again}"),
        "ldr x15, [sp], #16".to_owned(),
    ]);
    if described {
        statements.push(".cfi_adjust_cfa_offset -16".to_owned());
    }
    statements
}

/// Calls a helper, with the record's address (in x16) and the return address on the stack: a linker may overwrite x16
/// and x17 before the helper is reached.
fn call(helper: &str) -> [String; 3] {
    [
        "stp x16, x30, [sp, #-16]!".to_owned(),
        format!("bl {helper}"),
        "ldp x16, x30, [sp], #16".to_owned(),
    ]
}

/// Marks a block as executed, by the dead `register`, or by one that is saved below the stack pointer, after the red
/// zone of Apple's systems. Flags stay unchanged.
pub(super) fn block(
    record: String,
    offset: usize,
    addressing: Addressing,
    register: Option<u8>,
) -> Sequence {
    let place = Place {
        symbol: record,
        offset,
    };
    let name = format!("x{}", register.unwrap_or(16));
    let mut statements = addressing.page(&name, &place);
    statements.push(format!("strb wzr, {}", addressing.memory(&name, &place)));
    if register.is_none() {
        let below = match addressing.format {
            ObjectFormat::Elf => 16,
            ObjectFormat::MachO => 16 + RED_ZONE,
        };
        statements.insert(0, format!("str {name}, [sp, #-{below}]!"));
        statements.push(format!("ldr {name}, [sp], #{below}"));
    }
    Sequence {
        inline: statements.join(separator(addressing.format)),
        cold: None,
    }
}

/// The bytes below the stack pointer that belong to the function on Apple's systems.
const RED_ZONE: usize = 128;

fn write_helper(name: &str, body: &[String], addressing: Addressing, out: &mut String) {
    // A linker may reach the helper by a branch through a register: it begins with `bti c`.
    let body = format!("\thint #34\n\t{}\n\tret\n", body.join("\n\t"));
    helper(name, &body, addressing.format, ('%', 2), out);
}

/// Sets a register to a constant. Parts of 16 bits that are 0 need no statement of their own.
pub(super) fn constant(register: &str, value: u64) -> Vec<String> {
    let mut statements = vec![format!("movz {register}, #{}", value & 0xffff)];
    for part in 1..4 {
        let bits = value >> (16 * part) & 0xffff;
        if bits != 0 {
            statements.push(format!("movk {register}, #{bits}, lsl #{}", 16 * part));
        }
    }
    statements
}

pub(super) fn once(options: &Options, addressing: Addressing) -> String {
    let mut out = String::new();
    let Mode::Calls { return_addresses } = options.mode else {
        return out;
    };
    let ordinal = hidden(symbol::ORDINAL, addressing.format, &mut out);
    if let Some(slots) = return_addresses {
        let names = EdgeNames::new(slots, addressing.format, "");
        let body = edges::helper(&names, slots, options.atomic, addressing);
        let name = edge_helper(slots, options.atomic);
        write_helper(&name, &body, addressing, &mut out);
        return out;
    }
    let ordinal = Place::new(ordinal);
    let line = str::to_owned;
    let mut body = vec![
        line("stp x9, x10, [sp, #-16]!"),
        line("ldr x16, [sp, #16]"),
        format!("ldr w9, [x16, #{}]", record::ORDINAL_OFFSET),
        // A record keeps its ordinal; two threads may make the first call.
        line("cmn w9, #1"),
        line("b.ne 4f"),
    ];
    body.extend(addressing.address("x16", &ordinal));
    body.extend(
        [
            "1: ldxr w9, [x16]",
            "add w10, w9, #1",
            "stxr w17, w10, [x16]",
            "cbnz w17, 1b",
            "ldr x16, [sp, #16]",
        ]
        .map(str::to_owned),
    );
    body.push(format!("add x16, x16, #{}", record::ORDINAL_OFFSET));
    body.extend(
        [
            "2: ldxr w10, [x16]",
            "cmn w10, #1",
            "b.ne 3f",
            "stxr w17, w9, [x16]",
            "cbnz w17, 2b",
            "b 3f",
        ]
        .map(str::to_owned),
    );
    // The count is set back when it has exceeded the largest signed number.
    let [first, last] = saturates();
    body.push(format!("4: ldr w9, [x16, #{}]", record::COUNT_OFFSET));
    body.extend(constant("x10", first.into()));
    body.push(line("sub w9, w9, w10"));
    body.extend(constant("x10", (last - first).into()));
    body.extend([line("cmp w9, w10"), line("b.hi 3f")]);
    body.extend(constant("x10", record::SATURATED_COUNT.into()));
    body.extend([
        format!("str w10, [x16, #{}]", record::COUNT_OFFSET),
        line("3: ldp x9, x10, [sp], #16"),
    ]);
    write_helper(FIRST, &body, addressing, &mut out);
    out
}
