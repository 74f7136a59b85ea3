//! The effect of AArch64 instructions on the general registers, as far as block coverage needs it. The effect consists
//! of the registers that an instruction may read, the registers that it always overwrites, and whether the next
//! instruction is executed next.
//!
//! An unknown instruction is assumed to read every register that it mentions, and to jump anywhere. So if an
//! instruction is missing in the lists of this module, a probe may be eight bytes longer, because it saves a register.
//! A value in a register is never lost.

/// Bit N is set if register N is in the set. 31 (zero or the stack pointer) never is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers(u32);

impl Registers {
    /// x16 and x17, which linkers may overwrite at calls and returns.
    pub(super) const SCRATCH: Self = Self(1 << 16 | 1 << 17);
    /// x0 to x17. x18 belongs to the platform, and the following are preserved for the caller.
    const USABLE: Self = Self(0x3_ffff);

    pub(super) const fn one(number: u8) -> Self {
        Self(1 << number)
    }

    pub(super) const fn contains(self, number: u8) -> bool {
        self.0 >> number & 1 != 0
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// x16 if possible, else the one with the highest number up to 17.
    pub(super) fn best(self) -> Option<u8> {
        let usable = self.0 & Self::USABLE.0;
        let is_in = |number: &u8| usable >> *number & 1 != 0;
        [16].into_iter().chain((0..=17).rev()).find(is_in)
    }
}

pub(super) fn number(name: &str) -> Option<u8> {
    match name {
        "fp" => return Some(29),
        "lr" => return Some(30),
        "ip0" => return Some(16),
        "ip1" => return Some(17),
        _ => {}
    }
    let digits = name.strip_prefix(['x', 'w', 'X', 'W'])?;
    if digits.is_empty() || digits.len() > 2 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&number| number <= 30)
}

/// A name inside a symbol counts too (`__llvm_slsblr_thunk_x16`).
pub(super) fn mentions(text: &str, number: u8) -> bool {
    let found = text.split(['x', 'X', 'w', 'W']).skip(1).any(|rest| {
        let end = rest
            .bytes()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(rest.len());
        rest.get(..end)
            .is_some_and(|digits| digits.parse() == Ok(number))
    });
    if found {
        return true;
    }
    match number {
        16 => text.contains("ip0"),
        17 => text.contains("ip1"),
        _ => false,
    }
}

fn named(text: &str) -> Registers {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'))
        .filter_map(number)
        .fold(Registers::default(), |set, number| {
            set.union(Registers::one(number))
        })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Here,
    /// Execution leaves the function, so x16 and x17 are dead before, unless another instruction reads them first.
    Out,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) reads: Registers,
    pub(super) writes: Registers,
    pub(super) next: Next,
}

/// These overwrite their first operand without reading it. Writing its lower half clears the upper one.
const WRITES_FIRST: &[&str] = &[
    "adc", "adcs", "add", "adds", "adr", "adrp", "and", "ands", "asr", "asrv", "bic", "bics",
    "cinc", "cinv", "cls", "clz", "cneg", "csel", "cset", "csetm", "csinc", "csinv", "csneg",
    "eon", "eor", "extr", "lsl", "lslv", "lsr", "lsrv", "madd", "mneg", "mov", "movn", "movz",
    "mrs", "msub", "mul", "mvn", "neg", "negs", "ngc", "ngcs", "orn", "orr", "rbit", "rev",
    "rev16", "rev32", "rev64", "ror", "rorv", "sbc", "sbcs", "sbfiz", "sbfm", "sbfx", "sdiv",
    "smaddl", "smnegl", "smsubl", "smulh", "smull", "sub", "subs", "sxtb", "sxth", "sxtw", "ubfiz",
    "ubfm", "ubfx", "udiv", "umaddl", "umnegl", "umsubl", "umulh", "umull", "uxtb", "uxth", "uxtw",
    "ldr", "ldrb", "ldrh", "ldrsb", "ldrsh", "ldrsw", "ldur", "ldurb", "ldurh", "ldursb", "ldursh",
    "ldursw", "fmov", "umov", "smov", "fcvtzs", "fcvtzu", "fcvtas", "fcvtau", "fcvtms", "fcvtmu",
    "fcvtns", "fcvtnu", "fcvtps", "fcvtpu",
];

/// The mnemonics of loads that overwrite their first two operands.
const WRITES_TWO: &[&str] = &["ldp", "ldnp", "ldpsw"];

/// These overwrite no general register completely, so all that they mention count as read: they write none, a part of
/// one (`movk`, `bfi`), or the base by write-back.
const WRITES_NONE: &[&str] = &[
    "ccmn", "ccmp", "cmn", "cmp", "movk", "bfi", "bfm", "bfxil", "nop", "prfm", "prfum", "stp",
    "stnp", "str", "strb", "strh", "stur", "sturb", "sturh", "stlr", "stlrb", "stlrh", "tst",
    "dmb", "dsb", "isb", "hint", "bti",
];

/// Returns the effect of an instruction. The caller must pass the mnemonic and the operands in lower case.
pub(super) fn effect(mnemonic: &str, operands: &str) -> Effect {
    let all = named(operands);
    if matches!(mnemonic, "bl" | "b") {
        // A call may read any register but x16 and x17, which linkers may overwrite. None counts as overwritten,
        // because calling conventions preserve different ones. A local jump does not make x16 and x17 dead.
        let next = if mnemonic == "b" && is_local(operands.trim()) {
            Next::Unknown
        } else {
            Next::Out
        };
        return Effect {
            reads: all,
            writes: Registers::default(),
            next,
        };
    }
    if mnemonic == "ret" {
        return Effect {
            reads: all,
            writes: Registers::default(),
            next: Next::Out,
        };
    }
    let mut parts = operands.split(',').map(str::trim);
    let first = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or_default();
    let destinations = if WRITES_FIRST.contains(&mnemonic) {
        1
    } else if WRITES_TWO.contains(&mnemonic) {
        2
    } else if WRITES_NONE.contains(&mnemonic) || is_vector(first) {
        0
    } else {
        return Effect {
            reads: all,
            writes: Registers::default(),
            next: Next::Unknown,
        };
    };
    let mut writes = Registers::default();
    let mut rest = operands;
    for destination in [first, second].iter().take(destinations) {
        if let Some(number) = number(destination) {
            writes = writes.union(Registers::one(number));
        }
        rest = rest.split_once(',').map_or("", |(_, rest)| rest);
    }
    let reads = if destinations == 0 { all } else { named(rest) };
    Effect {
        reads,
        writes,
        next: Next::Here,
    }
}

/// Vector and floating-point registers, and lists of them, which branches never have.
fn is_vector(operand: &str) -> bool {
    let name = operand.trim_start_matches(['{', ' ']);
    let mut letters = name.chars();
    matches!(
        letters.next(),
        Some('v' | 'q' | 'd' | 's' | 'h' | 'b' | 'z')
    ) && letters.next().is_some_and(|digit| digit.is_ascii_digit())
}

/// Whether a symbol is a local label of the assembler: `.L…`, `L…`, or a number followed by `b` or `f`.
pub(super) fn is_local(symbol: &str) -> bool {
    symbol.starts_with(".L")
        || symbol.starts_with('L')
        || symbol.starts_with(|first: char| first.is_ascii_digit())
}

/// A register that `instructions`, up to the first jump, overwrite before they read it.
pub(super) fn dead_before<'text>(
    instructions: impl Iterator<Item = (&'text str, &'text str)>,
) -> Option<u8> {
    let mut read = Registers::default();
    for (mnemonic, operands) in instructions {
        let effect = effect(mnemonic, operands);
        read = read.union(effect.reads);
        match effect.next {
            Next::Here => {}
            Next::Out => return Registers::SCRATCH.without(read).best(),
            Next::Unknown => return None,
        }
        let dead = effect.writes.without(read).best();
        if dead.is_some() {
            return dead;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(text: &str) -> Option<u8> {
        dead_before(text.lines().map(|line| {
            line.trim()
                .split_once(char::is_whitespace)
                .unwrap_or((line.trim(), ""))
        }))
    }

    #[test]
    fn a_register_written_before_it_is_read_is_dead() {
        assert_eq!(dead("ldr w8, [x0, x1]\nadd w9, w8, #1"), Some(8));
        assert_eq!(dead("ldr w8, [x8]\nadd w9, w8, #1"), Some(9));
        assert_eq!(dead("str w8, [x9]\nmov w0, w8\nret"), Some(0));
        assert_eq!(dead("ldp x8, x9, [sp]\nret"), Some(9));
        assert_eq!(dead("ldp x29, x30, [sp], #32\nret"), Some(16));
        assert_eq!(dead("ldr x8, [x9], #8\nret"), Some(8));
        assert_eq!(dead("movk x8, #3, lsl #16\nret"), Some(16));
    }

    #[test]
    fn reads_count_in_addresses_shifts_and_stores() {
        assert_eq!(dead("add x16, x16, w17, sxtw #2\nret"), None);
        assert_eq!(dead("stp x16, x17, [x0]\nbl f"), None);
        assert_eq!(dead("str q0, [x16]\nbl f"), Some(17));
        assert_eq!(dead("cmp ip0, ip1\nbl f"), None);
    }

    #[test]
    fn unknown_ways_end_the_search() {
        assert_eq!(dead("cbz x0, .LBB0_1\nmov w8, #1"), None);
        assert_eq!(dead("blr x8\nmov w9, #1"), None);
        assert_eq!(dead("somemacro\nmov w9, #1"), None);
        assert_eq!(dead("b .LBB0_4"), None);
        assert_eq!(dead("b memcpy"), Some(16));
        assert_eq!(dead("b.eq f"), None);
        assert_eq!(dead("casal w8, w9, [x0]\nmov w1, #1"), None);
    }

    #[test]
    fn any_spelling_of_a_register_counts_as_its_mention() {
        assert!(mentions("add w16, w1, #1", 16));
        assert!(mentions("br\tX16", 16));
        assert!(mentions("bl __llvm_slsblr_thunk_x16", 16));
        assert!(mentions("mov x0, ip0", 16));
        assert!(!mentions("mov x0, #16", 16));
        assert!(!mentions("ldr x1, [x160]", 16));
        assert!(!mentions("mov x1, x6", 16));
    }
}
