//! The effect of 32-bit Arm instructions on the core registers and the flags, as far as probes need it.
//!
//! An unknown instruction is assumed to read everything and to overwrite nothing. So if an instruction is missing in
//! the lists, a probe may be longer, because it saves registers. A value in a register is never lost.
use super::mnemonic::{Mnemonic, MnemonicKind, without_condition};

/// Bit N is set if register N is in the set; bit 16 stands for the flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers(u32);

impl Registers {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(0x1_ffff);
    pub(super) const FLAGS: Self = Self(1 << 16);
    /// r0 to r3, in which a function gets arguments and returns results.
    pub(super) const ARGUMENTS: Self = Self(0b1111);
    /// r0 to r7, which short T32 instructions can name.
    pub(super) const LOW: Self = Self(0xff);
    /// r4 to r11, which a function preserves for its caller.
    pub(super) const PRESERVED: Self = Self(0xff0);
    pub(super) const SP: Self = Self(1 << 13);
    pub(super) const LR: Self = Self(1 << 14);
    /// r12, which linkers may overwrite at calls.
    pub(super) const IP: Self = Self(1 << 12);
    /// The frame pointers r7 and r11; r9, which some platforms reserve; r8 and r10, in which Swift passes arguments.
    pub(super) const SPECIAL: Self = Self(1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11);

    pub(super) const fn one(number: u8) -> Self {
        Self(1 << number)
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The numbers of the registers r0 to r14, those of the short T32 instructions first.
    pub(super) fn numbers(self) -> impl Iterator<Item = u8> {
        (0..15).filter(move |&number| self.contains(Self::one(number)))
    }
}

pub(super) fn number(name: &str) -> Option<u8> {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "sb" => return Some(9),
        "sl" => return Some(10),
        "fp" => return Some(11),
        "ip" => return Some(12),
        "sp" => return Some(13),
        "lr" => return Some(14),
        "pc" => return Some(15),
        _ => {}
    }
    // a1 to a4 and v1 to v8 are other names of r0 to r3 and of r4 to r11.
    let (letter, digits) = lower.split_at_checked(1)?;
    if digits.is_empty() || digits.len() > 2 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u8 = digits.parse().ok()?;
    match letter {
        "r" => Some(number).filter(|&number| number < 16),
        "a" => number.checked_sub(1).filter(|&number| number < 4),
        "v" => number
            .checked_add(3)
            .filter(|&number| (4..12).contains(&number)),
        _ => None,
    }
}

/// The registers that a text names, with those inside ranges such as `{r4-r7, lr}`.
pub(super) fn named(text: &str) -> Registers {
    let is_part =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '$');
    let mut set = Registers::NONE;
    let (mut from, mut last): (Option<u8>, Option<u8>) = (None, None);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if is_part(letter) {
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after;
            last = number(word);
            if let Some(number) = last {
                for number in from.unwrap_or(number)..=number {
                    set = set.union(Registers::one(number));
                }
            }
            from = None;
        } else {
            if letter == '-' {
                from = last;
            } else if !letter.is_whitespace() {
                from = None;
            }
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    set
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) reads: Registers,
    /// The registers that are overwritten whenever the instruction is reached.
    pub(super) overwrites: Registers,
    /// The registers that may be changed.
    pub(super) changes: Registers,
}

const UNKNOWN: Effect = Effect {
    reads: Registers::ALL,
    overwrites: Registers::NONE,
    changes: Registers::NONE,
};

/// The operands, split at the commas outside of brackets and braces.
fn operands(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_u32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default().trim());
    parts
}

/// Returns the effect of an instruction that does not change the flow of control. The mnemonic is in lower case.
pub(super) fn effect(word: &str, rest: &str) -> Effect {
    let all = named(rest);
    if is_it(word) {
        return Effect {
            reads: Registers::FLAGS,
            ..Effect::reading(Registers::NONE)
        };
    }
    if word.starts_with('v') {
        return vector(word, rest);
    }
    let Some(parsed) = Mnemonic::parse(word) else {
        return UNKNOWN;
    };
    let parts = operands(rest);
    let first = parts.first().copied().unwrap_or_default();
    let after = |count: usize| {
        parts
            .iter()
            .skip(count)
            .fold(Registers::NONE, |set, part| set.union(named(part)))
    };
    let destination = |place: usize| {
        let name = parts.get(place).copied().unwrap_or_default();
        number(name).map_or(Registers::NONE, Registers::one)
    };
    let (mut reads, changes) = match parsed.kind() {
        MnemonicKind::Arithmetic if parts.len() < 3 => (all, destination(0)),
        MnemonicKind::Arithmetic => (after(1), destination(0)),
        // A stack pointer or an odd form of operands is not looked into.
        MnemonicKind::WritesFirst if parts.len() < 2 => (all, Registers::NONE),
        MnemonicKind::WritesFirst => (after(1), destination(0)),
        // In A32, `ldrd r0, [r2]` means r0 and r1.
        MnemonicKind::WritesTwo if parts.len() < 3 => {
            let Some(pair) = pair(first) else {
                return UNKNOWN;
            };
            (after(1), pair)
        }
        MnemonicKind::WritesTwo => (after(2), destination(0).union(destination(1))),
        MnemonicKind::Reads if parsed.base == "strd" => {
            let Some(pair) = pair(first) else {
                return UNKNOWN;
            };
            (all.union(pair), Registers::NONE)
        }
        MnemonicKind::Reads => (all, Registers::NONE),
        MnemonicKind::LoadsMany => {
            let list = parts.last().copied().unwrap_or_default();
            if list.ends_with('^') {
                return UNKNOWN;
            }
            let base = if parts.len() > 1 {
                named(first)
            } else {
                Registers::SP
            };
            (base, named(list))
        }
        MnemonicKind::Branch if parsed.base == "svc" => return UNKNOWN,
        MnemonicKind::Branch => (all, Registers::NONE),
    };
    if parsed.base == "push" {
        reads = reads.union(Registers::SP);
    }
    // The instructions that read the carry flag. Those with a shift by `rrx` are among them.
    if parsed.conditional
        || matches!(parsed.base, "adc" | "sbc" | "rsc" | "rrx")
        || rest.to_ascii_lowercase().contains("rrx")
    {
        reads = reads.union(Registers::FLAGS);
    }
    let all_flags = matches!(parsed.base, "cmp" | "cmn")
        || parsed.sets_flags
            && matches!(parsed.base, "add" | "adc" | "sub" | "sbc" | "rsb" | "rsc");
    let overwrites = if parsed.conditional {
        Registers::NONE
    } else if all_flags {
        changes.union(Registers::FLAGS)
    } else {
        changes
    };
    Effect {
        reads,
        overwrites,
        changes,
    }
}

/// A register and the next one.
fn pair(first: &str) -> Option<Registers> {
    let number = number(first).filter(|&number| number < 14)?;
    Some(Registers::one(number).union(Registers::one(number + 1)))
}

impl Effect {
    fn reading(reads: Registers) -> Self {
        Effect {
            reads,
            overwrites: Registers::NONE,
            changes: Registers::NONE,
        }
    }
}

/// Vector instructions only read core registers, but for moves out of vector registers.
fn vector(word: &str, rest: &str) -> Effect {
    let stem = word.split('.').next().unwrap_or_default();
    let conditional = without_condition(stem).is_some();
    let mut effect = Effect::reading(named(rest));
    if conditional {
        effect.reads = effect.reads.union(Registers::FLAGS);
    }
    let parts = operands(rest);
    let first = parts.first().copied().unwrap_or_default();
    if stem == "vmrs" {
        if first.to_ascii_lowercase().starts_with("apsr") {
            effect.overwrites = Registers::FLAGS;
        } else if let Some(number) = number(first) {
            effect.overwrites = Registers::one(number);
            effect.changes = effect.overwrites;
            effect.reads = Registers::NONE;
        }
    } else if stem == "vmov" && number(first).is_some() {
        let targets = parts.iter().map_while(|part| number(part));
        let targets = targets.fold(Registers::NONE, |set, number| {
            set.union(Registers::one(number))
        });
        // Nothing but vector registers may follow.
        let sources = parts.iter().skip_while(|part| number(part).is_some());
        effect.reads = sources.fold(Registers::NONE, |set, part| set.union(named(part)));
        effect.overwrites = targets;
        effect.changes = targets;
    }
    effect
}

/// Whether a mnemonic begins an IT block: `it`, or `it` with up to three letters `t` and `e`.
pub(super) fn is_it(word: &str) -> bool {
    word.strip_prefix("it")
        .is_some_and(|rest| rest.len() < 4 && rest.bytes().all(|byte| matches!(byte, b't' | b'e')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &str) -> Registers {
        let flags = if names.contains("flags") {
            Registers::FLAGS
        } else {
            Registers::NONE
        };
        named(names).union(flags)
    }

    #[test]
    fn effects() {
        for (text, reads, overwrites) in [
            ("add r0, r1, r2, lsl #2", "r1 r2", "r0"),
            ("adds r0, #1", "r0", "r0 flags"),
            ("addeq r0, r1, r2", "r1 r2 flags", ""),
            ("adc r0, r1, r2", "r1 r2 flags", "r0"),
            ("mov r0, r1", "r1", "r0"),
            ("movs r0, #1", "", "r0"),
            ("movt r0, #1", "r0", ""),
            ("ldr r0, [r1, r2, lsl #2]!", "r1 r2", "r0"),
            ("ldr r0, [r1], #4", "r1", "r0"),
            ("ldrd r0, r1, [r2]", "r2", "r0 r1"),
            ("ldrd r0, [r2]", "r2", "r0 r1"),
            ("str r0, [r1]", "r0 r1", ""),
            ("strd r0, [r2, #8]", "r0 r1 r2", ""),
            ("push {r4-r7, lr}", "r4 r5 r6 r7 lr sp", ""),
            ("pop {r4, r5, r12}", "sp", "r4 r5 r12"),
            ("ldmia r3!, {r0, r1}", "r3", "r0 r1"),
            ("cmp r0, r1", "r0 r1", "flags"),
            ("tst r0, r1", "r0 r1", ""),
            ("umull r0, r1, r2, r3", "r2 r3", "r0 r1"),
            ("umlal r0, r1, r2, r3", "r0 r1 r2 r3", ""),
            ("vmov r0, r1, d0", "", "r0 r1"),
            ("vmov s0, r0", "r0", ""),
            ("vmov.32 r0, d0[0]", "", "r0"),
            ("vmrs APSR_nzcv, fpscr", "", "flags"),
            ("vldr d0, [r1, #8]", "r1", ""),
            ("vsubpl.f64 d9, d9, d8", "flags", ""),
            ("itte ne", "flags", ""),
        ] {
            let (word, rest) = text.split_once(' ').unwrap();
            let effect = effect(word, rest);
            assert_eq!(effect.reads, set(reads), "{text}");
            assert_eq!(effect.overwrites, set(overwrites), "{text}");
        }
        assert_eq!(effect("sadd16", "r0, r1, r2"), UNKNOWN);
        assert_eq!(effect("svc", "#0"), UNKNOWN);
    }

    #[test]
    fn names_of_registers() {
        assert_eq!(named("{r4-r6, fp, lr}"), set("r4, r5, r6, r11, r14"));
        assert_eq!(named("[r0, -r1]"), set("r0, r1"));
        assert_eq!(named("a1, v1, sl"), set("r0, r4, r10"));
        assert_eq!(named("#16, .Lr3, s4, d5"), Registers::NONE);
    }
}
