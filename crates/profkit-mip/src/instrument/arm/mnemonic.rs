//! Takes the mnemonics of 32-bit Arm apart: `addseq.w` is `add` that sets flags, if equal.

/// A mnemonic in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mnemonic<'text> {
    /// The name without condition, `s` and width.
    pub(super) base: &'text str,
    /// Whether the instruction is executed only under a condition.
    pub(super) conditional: bool,
    pub(super) sets_flags: bool,
}

/// Arithmetic: the first operand is overwritten; with two operands it is read too. All can have an `s`.
const ARITHMETIC: &[&str] = &[
    "adc", "add", "and", "asr", "bic", "eor", "lsl", "lsr", "mul", "orn", "orr", "ror", "rsb",
    "rsc", "sbc", "sub",
];
/// These overwrite their first operand, never read it, and can have an `s`.
const MOVES: &[&str] = &["mov", "mvn", "mla", "neg", "rrx"];
/// These overwrite their first operand, never read it, and never set flags.
const OTHERS: &[&str] = &[
    "adr", "clz", "ldr", "ldrb", "ldrex", "ldrexb", "ldrexh", "ldrh", "ldrsb", "ldrsh", "lda",
    "ldaex", "mls", "movw", "rbit", "rev", "rev16", "revsh", "sbfx", "sdiv", "smlabb", "smlabt",
    "smlatb", "smlatt", "smlawb", "smlawt", "smmla", "smmlar", "smmls", "smmlsr", "smmul",
    "smmulr", "smulbb", "smulbt", "smultb", "smultt", "smulwb", "smulwt", "ssat", "strex",
    "strexb", "strexh", "stlex", "sxtb", "sxth", "ubfx", "udiv", "usad8", "usat", "uxtb", "uxth",
];
/// These overwrite their first two operands. The first four can have an `s`.
const PAIRS: &[&str] = &["smull", "umull", "ldrd", "ldrexd"];
/// These change no register that they do not read.
const READERS: &[&str] = &[
    "bfc", "bfi", "cmn", "cmp", "movt", "pld", "pldw", "pli", "push", "smlal", "stm", "stmda",
    "stmdb", "stmea", "stmfd", "stmia", "stmib", "str", "strb", "strd", "strh", "stl", "teq",
    "tst", "umaal", "umlal", "yield", "nop", "dmb", "dsb", "isb", "sev", "wfe",
];
const LOADS_OF_MANY: &[&str] = &[
    "ldm", "ldmda", "ldmdb", "ldmea", "ldmfd", "ldmia", "ldmib", "pop",
];
const BRANCHES: &[&str] = &[
    "b", "bl", "blx", "bx", "bxj", "cbnz", "cbz", "tbb", "tbh", "udf", "bkpt", "hlt", "svc",
];

const WITH_FLAGS: &[&[&str]] = &[ARITHMETIC, MOVES, &["smull", "umull", "smlal", "umlal"]];
const ALL: &[&[&str]] = &[
    ARITHMETIC,
    MOVES,
    OTHERS,
    PAIRS,
    READERS,
    LOADS_OF_MANY,
    BRANCHES,
];

fn is_in(lists: &[&[&str]], name: &str) -> bool {
    lists.iter().any(|list| list.contains(&name))
}

pub(in crate::instrument) fn is_condition(name: &[u8]) -> bool {
    matches!(
        name,
        b"eq"
            | b"ne"
            | b"cs"
            | b"hs"
            | b"cc"
            | b"lo"
            | b"mi"
            | b"pl"
            | b"vs"
            | b"vc"
            | b"hi"
            | b"ls"
            | b"ge"
            | b"lt"
            | b"gt"
            | b"le"
    )
}

/// Removes a condition from the end of a name.
pub(super) fn without_condition(name: &str) -> Option<&str> {
    let at = name.len().checked_sub(2)?;
    let (base, condition) = (name.get(..at)?, name.get(at..)?);
    (is_condition(condition.as_bytes()) || condition == "al").then_some(base)
}

fn without_s(name: &str) -> Option<&str> {
    name.strip_suffix('s')
        .filter(|base| is_in(WITH_FLAGS, base))
}

/// The condition at the end of a mnemonic of the lists, or of a vector instruction; empty if there is none.
pub(super) fn condition(word: &str) -> &str {
    let name = if word.starts_with('v') {
        word.split('.').next().unwrap_or_default()
    } else if Mnemonic::parse(word).is_some_and(|parsed| parsed.conditional) {
        without_width(word)
    } else {
        return "";
    };
    match without_condition(name) {
        Some(base) => name.get(base.len()..).unwrap_or_default(),
        None => "",
    }
}

/// The name without `.n` or `.w`.
pub(super) fn without_width(name: &str) -> &str {
    name.strip_suffix(".n")
        .or_else(|| name.strip_suffix(".w"))
        .unwrap_or(name)
}

impl<'text> Mnemonic<'text> {
    /// Takes a mnemonic in lower case apart. `None` if it is not in the lists of this module.
    pub(super) fn parse(word: &'text str) -> Option<Self> {
        let name = without_width(word);
        let made = |base, conditional, sets_flags| {
            Some(Mnemonic {
                base,
                conditional,
                sets_flags,
            })
        };
        if is_in(ALL, name) {
            return made(name, false, false);
        }
        if let Some(base) = without_s(name) {
            return made(base, false, true);
        }
        let rest = without_condition(name)?;
        if is_in(ALL, rest) {
            return made(rest, true, false);
        }
        let base = without_s(rest)?;
        made(base, true, true)
    }

    pub(super) fn kind(&self) -> MnemonicKind {
        let is = |list: &[&str]| list.contains(&self.base);
        if is(ARITHMETIC) {
            MnemonicKind::Arithmetic
        } else if is(MOVES) || is(OTHERS) {
            MnemonicKind::WritesFirst
        } else if is(PAIRS) {
            MnemonicKind::WritesTwo
        } else if is(READERS) {
            MnemonicKind::Reads
        } else if is(LOADS_OF_MANY) {
            MnemonicKind::LoadsMany
        } else {
            MnemonicKind::Branch
        }
    }
}

/// What an instruction does with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MnemonicKind {
    /// It overwrites its first operand, and reads it too if there are fewer than three.
    Arithmetic,
    WritesFirst,
    WritesTwo,
    /// It changes no register that it does not read.
    Reads,
    /// It overwrites the registers in braces.
    LoadsMany,
    Branch,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_flags_and_widths_are_taken_off() {
        for (word, base, conditional, sets_flags) in [
            ("add", "add", false, false),
            ("adds", "add", false, true),
            ("addseq.w", "add", true, true),
            ("bls", "b", true, false),
            ("bleq", "bl", true, false),
            ("blt", "b", true, false),
            ("blls", "bl", true, false),
            ("bics", "bic", false, true),
            ("mls", "mls", false, false),
            ("movs", "mov", false, true),
            ("movcs", "mov", true, false),
            ("teq", "teq", false, false),
            ("strhs", "str", true, false),
            ("ldrhne", "ldrh", true, false),
            ("ldmls", "ldm", true, false),
            ("popeq", "pop", true, false),
            ("umulls", "umull", false, true),
            ("sbcs", "sbc", false, true),
            ("subcs", "sub", true, false),
            ("b.n", "b", false, false),
            ("bxeq", "bx", true, false),
        ] {
            let expected = Mnemonic {
                base,
                conditional,
                sets_flags,
            };
            assert_eq!(Mnemonic::parse(word), Some(expected), "{word}");
        }
        for unknown in ["vadd.f32", "sadd16", "mrc", "ldreqb", ""] {
            assert_eq!(Mnemonic::parse(unknown), None, "{unknown}");
        }
    }
}
