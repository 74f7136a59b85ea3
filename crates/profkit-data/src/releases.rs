//! The versions of each format that every LLVM release writes and reads. This is the only table of these versions;
//! [docs/formats/raw.md] and indexed.md describe their history.
//!
//! The rows of releases 13, 14, 15, 16, 19 and 22 are tested against LLVM's tools. The other rows come from LLVM's
//! sources.
//!
//! [docs/formats/raw.md]: https://github.com/profkit/profkit/blob/main/docs/formats/raw.md
use profkit_abi::variant;
use std::fmt;
use std::ops::RangeInclusive;

/// An LLVM release. Up to LLVM 3.9 it has a major and a minor number, from LLVM 4 on only a major number.
///
/// ```
/// use profkit_data::releases::Release;
///
/// let release: Release = "16.0.6".parse()?;
/// let facts = release.facts().expect("a known release");
/// assert!(facts.reads_indexed(9) && !facts.reads_indexed(13));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The major version number of the LLVM release.
    pub major: u8,
    /// The minor version number. From LLVM 4 on, the number is always 0, because minor releases no longer change
    /// formats.
    pub minor: u8,
}

/// The versions that one LLVM release writes and reads. The `llvm-profdata` of a release reads only the raw version of
/// the same release, but it reads the indexed version of the release and all older ones. The release's clang accepts
/// the same indexed versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseFacts {
    /// The LLVM release.
    pub release: Release,
    /// The raw version that the release's run-time library writes and its llvm-profdata reads.
    pub raw: u32,
    /// The indexed version that the release's llvm-profdata writes. This is also the newest version that the release
    /// reads.
    pub indexed: u32,
}

/// The scheme by which clang's front end numbers and hashes the regions of a function. A compiler can use a front-end
/// profile only if the compiler that instrumented the program has the same scheme. The version of the *indexed* file
/// shows clang which scheme the profile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrontEndScheme {
    /// The scheme of indexed versions 1 to 4 (LLVM 3.5 to 5).
    V1,
    /// The scheme of indexed version 5 (LLVM 6 to 10). More kinds of statements affect the hash.
    V2,
    /// The scheme of indexed version 6 (LLVM 11). The hash is computed differently.
    V3,
    /// The scheme of indexed versions 7 to 12 (LLVM 12 to 21). Logical operators (`&&`, `||`) have counters too.
    V3Logical,
    /// The scheme of indexed version 13 and later (LLVM 22).
    V4,
}

/// The scheme by which the middle end (`-fprofile-generate`) names and hashes functions. A compiler can use an IR
/// profile only if the compiler that instrumented the program has the same scheme. Even with the same scheme, the hash
/// of a function differs between two releases if they optimise the function differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IrScheme {
    /// LLVM 3.9 to 11: the hash is computed from branches and indirect calls.
    V1,
    /// LLVM 12 to 17: the hash is also computed from memory operations (LLVM's D84782).
    V2,
    /// LLVM 18 and later: local functions are named `file;function` instead of `file:function` (LLVM's D156569).
    V3,
}

/// All LLVM releases, oldest first.
pub const RELEASES: [ReleaseFacts; 25] = [
    facts(3, 5, 1, 1),
    facts(3, 6, 1, 2),
    facts(3, 7, 1, 2),
    facts(3, 8, 2, 3),
    facts(3, 9, 4, 4),
    facts(4, 0, 4, 4),
    facts(5, 0, 4, 4),
    facts(6, 0, 4, 5),
    facts(7, 0, 4, 5),
    facts(8, 0, 4, 5),
    facts(9, 0, 5, 5),
    facts(10, 0, 5, 5),
    facts(11, 0, 5, 6),
    facts(12, 0, 5, 7),
    facts(13, 0, 7, 7),
    facts(14, 0, 8, 7),
    facts(15, 0, 8, 8),
    facts(16, 0, 8, 9),
    facts(17, 0, 8, 10),
    facts(18, 0, 9, 11),
    facts(19, 0, 10, 12),
    facts(20, 0, 10, 12),
    facts(21, 0, 10, 12),
    facts(22, 0, 10, 13),
    facts(23, 0, 11, 14),
];

const fn facts(major: u8, minor: u8, raw: u32, indexed: u32) -> ReleaseFacts {
    ReleaseFacts {
        release: Release { major, minor },
        raw,
        indexed,
    }
}

impl Release {
    /// Makes the release with this major number, which must be 4 or greater.
    pub const fn new(major: u8) -> Self {
        Release { major, minor: 0 }
    }

    /// Returns the versions that the release writes and reads; `None` if the release is not in the table.
    pub fn facts(self) -> Option<&'static ReleaseFacts> {
        RELEASES.iter().find(|facts| facts.release == self)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.major)?;
        if self.minor > 0 {
            write!(f, ".{}", self.minor)?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Release {
    type Err = crate::Error;

    /// Parses a release, such as `22`, `3.9` or the full version `22.1.8`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = || {
            let mut parts = text.split('.');
            let major: u8 = parts.next()?.parse().ok()?;
            let minor = match parts.next() {
                Some(minor) => minor.parse::<u8>().ok()?,
                None => 0,
            };
            let minor = if major < 4 { minor } else { 0 };
            Release { major, minor }.facts()
        };
        known().map(|facts| facts.release).ok_or_else(|| {
            crate::Error::new(crate::ErrorKind::Unsupported, "not a known LLVM release")
                .found(format_args!("\"{}\"", text.escape_debug()))
                .expected("3.5 to 3.9 or 4 to 23")
        })
    }
}

impl ReleaseFacts {
    /// Whether the llvm-profdata of this release reads raw files of this version.
    pub fn reads_raw(&self, version: u32) -> bool {
        version == self.raw
    }

    /// Whether the llvm-profdata and the clang of this release read indexed files of this version.
    pub fn reads_indexed(&self, version: u32) -> bool {
        (1..=self.indexed).contains(&version)
    }

    /// The scheme by which the release's clang numbers and hashes the regions of a function.
    pub fn front_end_scheme(&self) -> FrontEndScheme {
        FrontEndScheme::of_indexed_version(self.indexed)
    }

    /// The scheme by which the release's middle end names and hashes functions.
    pub fn ir_scheme(&self) -> IrScheme {
        match self.release.major {
            0..=11 => IrScheme::V1,
            12..=17 => IrScheme::V2,
            _ => IrScheme::V3,
        }
    }
}

impl FrontEndScheme {
    /// Returns the scheme that clang assumes for an indexed file of this version (`getPGOHashVersion` in clang's
    /// `CodeGenPGO.cpp`).
    pub fn of_indexed_version(version: u32) -> Self {
        match version {
            0..=4 => FrontEndScheme::V1,
            5 => FrontEndScheme::V2,
            6 => FrontEndScheme::V3,
            7..=12 => FrontEndScheme::V3Logical,
            _ => FrontEndScheme::V4,
        }
    }
}

/// The facts that a file states about the compilers that named and hashed its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HashOrigin {
    /// Whether the front end instrumented the program, and not the middle end (IR).
    pub front_end: bool,
    /// Whether the file is a raw profile, and not an indexed one.
    pub is_raw: bool,
    /// The version of the file.
    pub version: u32,
}

/// Version 3, the oldest indexed version that profkit writes. Versions 1 to 4 imply the same hashing scheme, so version
/// 3 can stand for each of them.
const OLDEST_WRITTEN: u32 = 3;

impl HashOrigin {
    /// Returns the releases of the compilers that may have made the function hashes. For a raw profile, these are the
    /// releases that write its version. For an indexed front-end profile, they are the releases that use the hashing
    /// scheme of its version. For an indexed IR profile, they are all releases up to the newest one that writes its
    /// version. From indexed version 11 on, this range includes releases with each of the IR schemes.
    pub fn compilers(&self) -> RangeInclusive<Release> {
        let (oldest, newest) = (RELEASES[0].release, RELEASES[RELEASES.len() - 1].release);
        match (self.is_raw, self.front_end) {
            (true, _) => raw_writers(self.version).unwrap_or(match self.version {
                // No release has raw version 3 or 6, and the table has no release with raw version 12 or later.
                3 => Release { major: 3, minor: 8 }..=Release { major: 3, minor: 9 },
                6 => Release::new(12)..=Release::new(13),
                _ => newest..=newest,
            }),
            (false, true) => {
                let scheme = FrontEndScheme::of_indexed_version(self.version);
                let releases = RELEASES.iter();
                let mut same = releases.filter(|facts| facts.front_end_scheme() == scheme);
                let first = same.next().map_or(oldest, |facts| facts.release);
                first..=same.next_back().map_or(first, |facts| facts.release)
            }
            (false, false) => {
                let writers = indexed_writers(self.version);
                oldest..=writers.map_or(newest, |writers| *writers.end())
            }
        }
    }

    /// Returns the number of the scheme that a release uses: the scheme of its front end if `front_end` is set,
    /// otherwise that of its middle end. Newer schemes have larger numbers.
    pub fn scheme(&self, release: Release) -> u8 {
        let facts = release.facts();
        if self.front_end {
            facts.map_or(0, |facts| facts.front_end_scheme() as u8)
        } else {
            facts.map_or(0, |facts| facts.ir_scheme() as u8)
        }
    }

    /// Returns the indexed version that implies the hashing scheme of a front-end profile, and whether the scheme is
    /// uncertain:
    /// - Indexed profile: the version of the file, but at most 13.
    /// - Raw profile whose raw version is written only by releases with the same scheme: the newest indexed version
    ///   that the oldest of these releases reads.
    /// - Raw profile whose raw version is written by releases with different schemes (raw versions 4, 5 and 10): the
    ///   newest indexed version that any of these releases reads. Only here the scheme is uncertain.
    /// - Raw profile whose raw version no release writes: 4 if the raw version is less than 7, otherwise 13.
    pub fn front_end_version(&self) -> (u32, bool) {
        let last = profkit_abi::indexed::VERSION_DEFAULT;
        if !self.is_raw {
            return (self.version.min(last), false);
        }
        let releases = || {
            RELEASES
                .iter()
                .filter(|facts| facts.reads_raw(self.version))
        };
        let Some(newest) = releases().map(|facts| facts.indexed).max() else {
            return (if self.version < 7 { 4 } else { last }, false);
        };
        let newest = newest.clamp(OLDEST_WRITTEN, last);
        let scheme = FrontEndScheme::of_indexed_version(newest);
        if releases().any(|facts| facts.front_end_scheme() != scheme) {
            return (newest, true);
        }
        // All these releases use the same scheme, so the indexed version that the oldest release reads is right for all
        // of them.
        let oldest = releases().map(|facts| facts.indexed).min();
        let version = oldest.unwrap_or(newest).clamp(OLDEST_WRITTEN, newest);
        (version, false)
    }
}

/// Returns the first and the last LLVM release whose run-time library writes this raw version; `None` if no release
/// writes it (versions 3 and 6 existed only between releases).
pub fn raw_writers(version: u32) -> Option<RangeInclusive<Release>> {
    writers(|facts| facts.raw == version)
}

/// Returns the first and the last LLVM release whose llvm-profdata writes this indexed version; `None` if there is
/// none.
pub fn indexed_writers(version: u32) -> Option<RangeInclusive<Release>> {
    writers(|facts| facts.indexed == version)
}

fn writers(wrote: impl Fn(&ReleaseFacts) -> bool) -> Option<RangeInclusive<Release>> {
    let mut releases = RELEASES
        .iter()
        .filter(|facts| wrote(facts))
        .map(|facts| facts.release);
    let first = releases.next()?;
    Some(first..=releases.next_back().unwrap_or(first))
}

/// Returns the first LLVM release that can set all variant flags that are set in a version word. A file with these
/// flags cannot come from an older release. Returns `None` if the word has no flag whose first release is known.
pub fn first_release_of_flags(version_word: u64) -> Option<Release> {
    const FIRST: [(u64, Release); 9] = [
        (variant::IR, Release { major: 3, minor: 9 }),
        (variant::CSIR, Release::new(9)),
        (variant::ENTRY_FIRST, Release::new(11)),
        (variant::DBG_CORRELATE, Release::new(14)),
        (variant::BYTE_COVERAGE, Release::new(14)),
        (variant::FUNCTION_ENTRY_ONLY, Release::new(14)),
        (variant::MEMPROF, Release::new(15)),
        (variant::TEMPORAL, Release::new(17)),
        (variant::LOOP_ENTRIES, Release::new(20)),
    ];
    FIRST
        .iter()
        .filter(|(flag, _)| version_word & flag != 0)
        .map(|&(_, release)| release)
        .max()
}

/// The parts of a text profile that not every LLVM release reads. A release refuses a text with a part that it does not
/// know. \[T\] with the llvm-profdata of LLVM 13 to 23; what came before is from LLVM's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextPart {
    /// `:csir`, the flag of context-sensitive profiles.
    ContextSensitive,
    /// `:entry_first`.
    EntryFirst,
    /// `:temporal_prof_traces` and the traces.
    Traces,
    /// `:single_byte_coverage`. Releases before that know only the flag of indexed profiles.
    SingleByteCoverage,
    /// The bitmap of a record (`$`).
    Bitmap,
    /// The values of virtual tables.
    VTables,
    /// `:instrument_loop_entries`.
    LoopEntries,
}

impl TextPart {
    /// All parts, the oldest first.
    pub const ALL: [TextPart; 7] = [
        TextPart::ContextSensitive,
        TextPart::EntryFirst,
        TextPart::Traces,
        TextPart::SingleByteCoverage,
        TextPart::Bitmap,
        TextPart::VTables,
        TextPart::LoopEntries,
    ];

    /// The first release whose llvm-profdata reads the part.
    pub const fn since(self) -> Release {
        Release::new(match self {
            TextPart::ContextSensitive => 9,
            TextPart::EntryFirst => 11,
            TextPart::Traces => 17,
            TextPart::SingleByteCoverage | TextPart::Bitmap => 18,
            TextPart::VTables => 19,
            TextPart::LoopEntries => 20,
        })
    }
}

/// Formats a range of releases for people: `LLVM 14 to 17`, or `LLVM 18`.
pub fn display_range(range: &RangeInclusive<Release>) -> String {
    if range.start() == range.end() {
        format!("LLVM {}", range.start())
    } else {
        format!("LLVM {} to {}", range.start(), range.end())
    }
}

/// Formats a range of releases for people, without the word LLVM: `14 to 17`, `14 or before`, `22 or later`.
pub fn display_compilers(range: &RangeInclusive<Release>) -> String {
    let (first, last) = (range.start(), range.end());
    let is =
        |facts: Option<&ReleaseFacts>, release| facts.map(|facts| facts.release) == Some(release);
    if first == last {
        first.to_string()
    } else if is(RELEASES.last(), *last) {
        format!("{first} or later")
    } else if is(RELEASES.first(), *first) {
        format!("{last} or before")
    } else {
        format!("{first} to {last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_never_fall_from_release_to_release() {
        for pair in RELEASES.windows(2) {
            assert!(pair[0].release < pair[1].release);
            assert!(pair[0].raw <= pair[1].raw && pair[0].indexed <= pair[1].indexed);
        }
    }

    #[test]
    fn writers_of_a_version() {
        let raw = |version| raw_writers(version).map(|range| display_range(&range));
        assert_eq!(raw(8).as_deref(), Some("LLVM 14 to 17"));
        assert_eq!(raw(9).as_deref(), Some("LLVM 18"));
        assert_eq!(raw(6), None);
        let indexed = |version| indexed_writers(version).map(|range| display_range(&range));
        assert_eq!(indexed(2).as_deref(), Some("LLVM 3.6 to 3.7"));
        assert_eq!(indexed(12).as_deref(), Some("LLVM 19 to 21"));
    }

    #[test]
    fn schemes_change_at_5_6_7_and_13() {
        let changes: Vec<_> = (1..=14)
            .filter(|&version| {
                FrontEndScheme::of_indexed_version(version)
                    != FrontEndScheme::of_indexed_version(version - 1)
            })
            .collect();
        assert_eq!(changes, [5, 6, 7, 13]);
        let llvm_22 = Release::new(22).facts().unwrap();
        assert_eq!(llvm_22.front_end_scheme(), FrontEndScheme::V4);
    }

    #[test]
    fn release_numbers_parse_with_and_without_their_tail() {
        assert_eq!("22".parse(), Ok(Release::new(22)));
        assert_eq!("22.1.8".parse(), Ok(Release::new(22)));
        assert_eq!("3.9".parse(), Ok(Release { major: 3, minor: 9 }));
        insta::assert_snapshot!("3.4".parse::<Release>().unwrap_err(), @r#"not a known LLVM release: found "3.4", expected 3.5 to 3.9 or 4 to 23"#);
        insta::assert_snapshot!("new".parse::<Release>().unwrap_err(), @r#"not a known LLVM release: found "new", expected 3.5 to 3.9 or 4 to 23"#);
    }

    #[test]
    fn flags_tell_the_oldest_possible_release() {
        assert_eq!(
            first_release_of_flags(variant::IR | variant::TEMPORAL | 8),
            Some(Release::new(17))
        );
        assert_eq!(first_release_of_flags(8), None);
    }
}
