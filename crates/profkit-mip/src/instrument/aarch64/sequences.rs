//! Makes the code of AArch64 probes. [docs/formats/mip-code.md] shows the bytes.
//!
//! [docs/formats/mip-code.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-code.md
use crate::asm::ObjectFormat;
use crate::instrument::backend::{Sequence, Site};
use crate::instrument::helpers::{FIRST, edge_helper, global, helper, hidden, start_of_records};
use crate::instrument::options::{Counter, Mode, Options};
use profkit_abi::mip::{record, ring, symbol};
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

    fn address(self, register: &str, place: &Place) -> Vec<String> {
        let mut statements = self.page(register, place);
        statements.extend(
            self.low(place)
                .map(|low| format!("add {register}, {register}, {low}")),
        );
        statements
    }
}

#[derive(Clone, Debug)]
struct Place {
    symbol: String,
    offset: usize,
}

impl Place {
    fn new(symbol: String) -> Self {
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
            let mut statements = page;
            statements.extend([
                format!("ldr w17, {memory}"),
                "add w17, w17, #1".to_owned(),
                format!("str w17, {memory}"),
            ]);
            if far {
                statements.extend([format!("cbnz w17, {back}"), format!("b {stub}")]);
            } else {
                statements.push(format!("cbz w17, {stub}"));
            }
            let mut inline = format!("{}{separator}{back}:", joined(&statements));
            if let Some(slots) = return_addresses {
                let mut statements = addressing.address("x16", &record);
                statements.extend(call(&addressing.global(&edge_helper(slots))));
                let _ = write!(inline, " {}", joined(&statements));
            }
            let mut stub = format!("{stub}:\n");
            if let Some(low) = addressing.low(&record) {
                let _ = writeln!(stub, "\tadd x16, x16, {low}");
            }
            for statement in call(&addressing.global(FIRST)) {
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

pub(super) fn once(options: &Options, addressing: Addressing) -> String {
    let mut out = String::new();
    let Mode::Calls { return_addresses } = options.mode else {
        return out;
    };
    let ordinal = Place::new(hidden(symbol::ORDINAL, addressing.format, &mut out));
    let line = str::to_owned;
    let mut body = vec![
        line("stp x9, x10, [sp, #-16]!"),
        line("ldr x16, [sp, #16]"),
        format!("ldr w9, [x16, #{}]", record::ORDINAL_OFFSET),
        // A record keeps its ordinal: the count may wrap around, or two threads make the first call.
        line("cmn w9, #1"),
        line("b.ne 3f"),
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
            "3: ldp x9, x10, [sp], #16",
        ]
        .map(str::to_owned),
    );
    write_helper(FIRST, &body, addressing, &mut out);
    if let Some(slots) = return_addresses {
        edge(slots, addressing, &mut out);
    }
    out
}

fn edge(slots: u32, addressing: Addressing, out: &mut String) {
    let next = Place::new(hidden(symbol::RING_NEXT, addressing.format, out));
    let ring_place =
        Place::new(addressing.global(&format!("{}{slots}", symbol::RING_GROUP_PREFIX)));
    let start = Place::new(start_of_records(addressing.format));
    let line = str::to_owned;
    let mut body = vec![line("stp x9, x10, [sp, #-32]!"), line("str x30, [sp, #16]")];
    // `xpaclri` (`hint #7`) removes the signature of `paciasp`, but only from x30. Other processors ignore it.
    body.extend(
        [
            "ldr x30, [sp, #40]",
            "hint #7",
            "mov x10, x30",
            "ldr x30, [sp, #16]",
        ]
        .map(str::to_owned),
    );
    body.extend(addressing.page("x16", &next));
    let memory = addressing.memory("x16", &next);
    body.extend([
        format!("ldr w9, {memory}"),
        line("add w17, w9, #1"),
        format!("str w17, {memory}"),
    ]);
    if slots == 1 {
        body.push(line("mov w9, wzr"));
    } else if slots.is_power_of_two() {
        body.push(format!("and w9, w9, #{}", slots - 1));
    } else {
        body.push(format!("mov w17, #{}", slots & 0xffff));
        if slots > 0xffff {
            body.push(format!("movk w17, #{}, lsl #16", slots >> 16));
        }
        body.extend(["udiv w16, w9, w17", "msub w9, w16, w17, w9"].map(str::to_owned));
    }
    body.extend(addressing.address("x16", &ring_place));
    body.push(format!(
        "add x9, x16, w9, uxtw #{}",
        ring::SAMPLE_SIZE.trailing_zeros()
    ));
    body.extend(addressing.address("x16", &start));
    body.extend([
        line("ldr x17, [sp, #32]"),
        line("sub w17, w17, w16"),
        format!("str w17, [x9, #{}]", ring::RECORD_OFFSET),
        line("sub w10, w10, w16"),
        format!("str w10, [x9, #{}]", ring::RETURN_OFFSET),
        line("ldp x9, x10, [sp], #32"),
    ]);
    write_helper(&edge_helper(slots), &body, addressing, out);
}
