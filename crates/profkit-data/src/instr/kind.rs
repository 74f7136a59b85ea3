use profkit_abi::variant;
use std::fmt;

/// The kind of an instrumentation profile: whether the front end or an IR pass placed the counters, what they count,
/// and which optional data the file has. The type is a set of bits with the same values as LLVM's `InstrProfKind`
/// (`InstrProf.h`).
///
/// The empty set means that the kind is unknown, as in a text profile without header lines. LLVM shows a profile of
/// unknown kind as a front-end profile and merges it with a profile of any other kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct InstrKind(u32);

impl InstrKind {
    /// The profile does not state its kind (`InstrProfKind::Unknown`).
    pub const UNKNOWN: Self = InstrKind(0);
    /// The counters were placed by clang's front end.
    pub const FRONT_END: Self = InstrKind(1);
    /// The counters were placed in LLVM IR.
    pub const IR: Self = InstrKind(1 << 1);
    /// The entry block of every function has a counter.
    pub const ENTRY_FIRST: Self = InstrKind(1 << 2);
    /// The profile is context-sensitive: the program was instrumented a second time, after inlining.
    pub const CONTEXT_SENSITIVE: Self = InstrKind(1 << 3);
    /// Each counter is a single byte that shows only whether its code ran.
    pub const SINGLE_BYTE_COVERAGE: Self = InstrKind(1 << 4);
    /// Counters were placed only at function entries.
    pub const FUNCTION_ENTRY_ONLY: Self = InstrKind(1 << 5);
    /// The file has a MemProf section.
    pub const MEMPROF: Self = InstrKind(1 << 6);
    /// The file has temporal traces: the order in which functions were first called.
    pub const TEMPORAL: Self = InstrKind(1 << 7);
    /// Loop entries have counters.
    pub const LOOP_ENTRIES: Self = InstrKind(1 << 8);

    const BITS: [(Self, u64, &'static str); 9] = [
        (Self::FRONT_END, 0, "front-end"),
        (Self::IR, variant::IR, "IR"),
        (Self::ENTRY_FIRST, variant::ENTRY_FIRST, "entry-first"),
        (Self::CONTEXT_SENSITIVE, variant::CSIR, "context-sensitive"),
        (
            Self::SINGLE_BYTE_COVERAGE,
            variant::BYTE_COVERAGE,
            "single-byte coverage",
        ),
        (
            Self::FUNCTION_ENTRY_ONLY,
            variant::FUNCTION_ENTRY_ONLY,
            "function-entry only",
        ),
        (Self::MEMPROF, variant::MEMPROF, "MemProf"),
        (Self::TEMPORAL, variant::TEMPORAL, "temporal"),
        (Self::LOOP_ENTRIES, variant::LOOP_ENTRIES, "loop entries"),
    ];

    /// Returns the kind that the version word of a raw or indexed file states (`getProfileKindFromVersion`). Without
    /// the IR bit, the profile is a front-end profile.
    pub fn from_version_word(word: u64) -> Self {
        let set = Self::BITS
            .iter()
            .filter(|(_, flag, _)| word & flag != 0)
            .map(|&(kind, ..)| kind);
        let kind = set.fold(Self::UNKNOWN, |all, one| all | one);
        if word & variant::IR == 0 {
            kind | Self::FRONT_END
        } else {
            kind
        }
    }

    /// Returns the flags that an indexed file of this kind has in its version word.
    pub fn version_flags(self) -> u64 {
        Self::BITS
            .iter()
            .filter(|(kind, ..)| self.contains(*kind))
            .fold(0, |word, (_, flag, _)| word | flag)
    }

    /// Whether this kind has all bits of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether this kind has any bit of `other`.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns this kind of profile without the bits of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        InstrKind(self.0 & !other.0)
    }

    /// Returns the number of bits that are set.
    pub fn count(self) -> u64 {
        u64::from(self.0.count_ones())
    }

    /// The bits of the kind: those of LLVM's `InstrProfKind`.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The kind with these bits; `None` if one of them has no meaning.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let all = Self::BITS.iter().fold(0, |all, (kind, ..)| all | kind.0);
        (bits & !all == 0).then_some(InstrKind(bits))
    }

    /// Whether the kind of the profile is unknown.
    pub fn is_unknown(self) -> bool {
        self.0 == 0
    }

    /// Whether the first counter of a function counts its calls (in profiles of coverage: whether it was called). In IR,
    /// counters are placed where they cost least, which may be inside a loop, unless the profile says otherwise.
    pub fn counts_calls(self) -> bool {
        !self.is_ir() || self.intersects(Self::ENTRY_FIRST | Self::FUNCTION_ENTRY_ONLY)
    }

    /// Whether counters count executions. Those of single-byte coverage only say whether code ran.
    pub fn counts_executions(self) -> bool {
        !self.contains(Self::SINGLE_BYTE_COVERAGE)
    }

    /// Whether the counters were placed in LLVM IR.
    pub fn is_ir(self) -> bool {
        self.contains(Self::IR)
    }
}

impl std::ops::BitOr for InstrKind {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        InstrKind(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for InstrKind {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl InstrKind {
    /// Returns the names of the parts of the kind, for example `IR` and `single-byte coverage`; only `unknown` if the kind
    /// is not known.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let unknown = self.is_unknown().then_some("unknown");
        let parts = Self::BITS
            .into_iter()
            .filter(move |&(kind, ..)| self.contains(kind));
        unknown.into_iter().chain(parts.map(|(.., name)| name))
    }
}

impl InstrKind {
    /// The kind with these [names](Self::names); `None` if one of them is no such name.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let part = |name: &str| {
            let mut bits = Self::BITS.into_iter();
            match name {
                "unknown" => Some(Self::UNKNOWN),
                name => bits.find(|&(.., one)| one == name).map(|(kind, ..)| kind),
            }
        };
        names
            .into_iter()
            .try_fold(Self::UNKNOWN, |all, name| Some(all | part(name)?))
    }
}

impl fmt::Display for InstrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.names().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for InstrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstrKind({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_counters_that_count_calls() {
        assert!(InstrKind::UNKNOWN.counts_calls() && InstrKind::FRONT_END.counts_calls());
        assert!(!InstrKind::IR.counts_calls());
        assert!(!(InstrKind::IR | InstrKind::CONTEXT_SENSITIVE).counts_calls());
        assert!((InstrKind::IR | InstrKind::ENTRY_FIRST).counts_calls());
        assert!((InstrKind::IR | InstrKind::FUNCTION_ENTRY_ONLY).counts_calls());
    }

    #[test]
    fn version_words_and_kinds_agree() {
        let coverage = InstrKind::from_version_word(0x3100_0000_0000_000a);
        assert_eq!(
            coverage.to_string(),
            "IR, single-byte coverage, function-entry only"
        );
        assert_eq!(coverage.version_flags(), 0x3100_0000_0000_0000);
        assert_eq!(InstrKind::from_version_word(10), InstrKind::FRONT_END);
        assert_eq!(InstrKind::FRONT_END.version_flags(), 0);
    }
}
