//! Finds the indexed version that implies the right hashing scheme for the inputs' function hashes.
//!
//! A compiler that reads a front-end profile decides by the *version* of the indexed file how it must hash functions
//! (docs/formats, `FrontEndScheme`). A raw file has only a raw version, which several LLVM releases with different
//! schemes may share. The indexed version to write is the newest whose scheme is that of all releases with the raw
//! version.
use crate::report::{Action, Event, Reason};
use profkit_abi::{indexed, variant};
use profkit_data::instr::InstrKind;
use profkit_data::instr::releases::{FrontEndScheme, RELEASES, Release, ReleaseFacts, raw_writers};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The origins of the front-end inputs. An origin is whether an input is raw, and its version. Each origin is stored
/// with the first input that has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generations {
    front_end: BTreeMap<(bool, u32), usize>,
    others: bool,
}

impl Generations {
    pub(crate) fn note(&mut self, input: usize, kind: InstrKind, version_word: u64, is_raw: bool) {
        let version = u32::try_from(version_word & variant::VERSION_MASK).unwrap_or(0);
        if !kind.contains(InstrKind::FRONT_END) || version == 0 {
            self.others = true;
            return;
        }
        let first = self.front_end.entry((is_raw, version)).or_insert(input);
        *first = (*first).min(input);
    }

    pub(crate) fn absorb(&mut self, other: Generations) {
        self.others |= other.others;
        for (key, input) in other.front_end {
            let first = self.front_end.entry(key).or_insert(input);
            *first = (*first).min(input);
        }
    }
}

/// The oldest indexed version that profkit writes. Versions 1 to 4 imply the same scheme.
const OLDEST_WRITTEN: u32 = 3;

/// The indexed version to write, and notes for the user.
pub(crate) struct Suggestion {
    pub(crate) version: u32,
    pub(crate) notes: Vec<Event>,
}

/// Returns the indexed version that implies the hashing scheme of a raw version. If all releases with this raw version
/// use one scheme, this is the newest indexed version that the oldest of these releases reads. If their schemes differ
/// (raw 4, 5 and 10), it is the indexed version of the newest release, and the second value is `true`.
fn of_raw(version: u32) -> (u32, bool) {
    let releases = || RELEASES.iter().filter(|facts| facts.reads_raw(version));
    let newest = releases().map(|facts| facts.indexed).max();
    let Some(newest) = newest else {
        // No release has raw version 3 or 6, and the table has no release with raw version 12 or later.
        return (
            if version < 7 {
                4
            } else {
                indexed::VERSION_LAST
            },
            false,
        );
    };
    let newest = newest.clamp(OLDEST_WRITTEN, indexed::VERSION_LAST);
    let scheme = FrontEndScheme::of_indexed_version(newest);
    let differ = releases().any(|facts| facts.front_end_scheme() != scheme);
    if differ {
        return (newest, true);
    }
    // All of these releases use one scheme, so the version that the oldest release reads is right for all of them.
    let oldest = releases().map(|facts| facts.indexed).min();
    (
        oldest.unwrap_or(newest).clamp(OLDEST_WRITTEN, newest),
        false,
    )
}

/// The inputs and clang releases that the hashes of one indexed version come from.
struct Origin {
    /// The first input whose hashes are those of this indexed version.
    input: usize,
    /// The clang releases that may have made the hashes.
    clangs: RangeInclusive<Release>,
}

impl Origin {
    fn unite(&mut self, other: &Origin) {
        self.input = self.input.min(other.input);
        let first = *self.clangs.start().min(other.clangs.start());
        self.clangs = first..=*self.clangs.end().max(other.clangs.end());
    }

    fn clang_text(&self) -> String {
        let (first, last) = (self.clangs.start(), self.clangs.end());
        let ends = |facts: Option<&ReleaseFacts>, release| {
            facts.map(|facts| facts.release) == Some(release)
        };
        if first == last {
            first.to_string()
        } else if ends(RELEASES.last(), *last) {
            format!("{first} or later")
        } else if ends(RELEASES.first(), *first) {
            format!("{last} or before")
        } else {
            format!("{first} to {last}")
        }
    }
}

/// Returns the clang releases that use the hashing scheme of an indexed version.
fn clangs_of(version: u32) -> RangeInclusive<Release> {
    let scheme = FrontEndScheme::of_indexed_version(version);
    let mut releases = RELEASES
        .iter()
        .filter(|facts| facts.front_end_scheme() == scheme)
        .map(|facts| facts.release);
    let first = releases.next().unwrap_or(RELEASES[0].release);
    first..=releases.next_back().unwrap_or(first)
}

pub(crate) fn suggest(generations: &Generations) -> Suggestion {
    let mut notes = Vec::new();
    let mut origins: BTreeMap<u32, Origin> = BTreeMap::new();
    for (&(is_raw, version), &input) in &generations.front_end {
        let fitting = if is_raw {
            let (fitting, ambiguous) = of_raw(version);
            if ambiguous {
                notes.push(ambiguous_note(input, version, fitting));
            }
            fitting
        } else {
            version.min(indexed::VERSION_LAST)
        };
        let writers = if is_raw { raw_writers(version) } else { None };
        let origin = Origin {
            input,
            clangs: writers.unwrap_or_else(|| clangs_of(fitting)),
        };
        origins
            .entry(fitting)
            .and_modify(|other| other.unite(&origin))
            .or_insert(origin);
    }
    let Some((&newest, newest_origin)) = origins.last_key_value() else {
        return Suggestion {
            version: indexed::VERSION_LAST,
            notes,
        };
    };
    let scheme = FrontEndScheme::of_indexed_version(newest);
    for (&version, origin) in &origins {
        if FrontEndScheme::of_indexed_version(version) != scheme {
            let message = format!(
                "its function hashes come from an older clang ({}) than those of the other inputs ({}); a compiler can use only one of the two",
                origin.clang_text(),
                newest_origin.clang_text()
            );
            let (action, reason) = (Action::Kept, Reason::HashGenerations);
            let note = Event::new(origin.input, action, reason, message);
            notes.push(note.hint("merge the files of each compiler separately"));
        }
    }
    Suggestion {
        version: newest,
        notes,
    }
}

fn ambiguous_note(input: usize, raw: u32, fitting: u32) -> Event {
    let others: Vec<String> = RELEASES
        .iter()
        .filter(|facts| {
            facts.reads_raw(raw)
                && facts.front_end_scheme() != FrontEndScheme::of_indexed_version(fitting)
        })
        .map(|facts| facts.release.to_string())
        .collect();
    Event::new(
        input,
        Action::Kept,
        Reason::HashGenerationUnknown,
        format!(
            "raw version {raw} does not tell which clang hashed the functions; indexed version {fitting} is right for the newest"
        ),
    )
    .hint(format!(
        "if the program was built by LLVM {}, use --llvm with that release",
        others.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(inputs: &[(bool, u32)]) -> (u32, Vec<String>) {
        let mut generations = Generations::default();
        for (input, &(is_raw, version)) in inputs.iter().enumerate() {
            generations.note(input, InstrKind::FRONT_END, u64::from(version), is_raw);
        }
        let suggestion = suggest(&generations);
        let notes = suggestion.notes.iter().map(ToString::to_string).collect();
        (suggestion.version, notes)
    }

    #[test]
    fn each_raw_version_gets_the_version_that_all_its_releases_read() {
        assert_eq!(suggestion(&[(true, 9)]), (11, vec![]));
        assert_eq!(suggestion(&[(true, 8)]), (7, vec![]));
        assert_eq!(suggestion(&[(true, 7)]), (7, vec![]));
        assert_eq!(suggestion(&[(true, 1)]), (3, vec![]));
        assert_eq!(suggestion(&[(true, 11)]), (13, vec![]));
        assert_eq!(suggestion(&[(false, 12)]), (12, vec![]));
        assert_eq!(suggestion(&[]), (13, vec![]));
    }

    #[test]
    fn what_a_raw_version_cannot_tell_is_noted() {
        let (version, notes) = suggestion(&[(true, 10)]);
        assert_eq!(version, 13);
        insta::assert_snapshot!(notes.join("\n"), @": kept, but raw version 10 does not tell which clang hashed the functions; indexed version 13 is right for the newest");
        assert_eq!(suggestion(&[(true, 5)]).0, 7);
        assert_eq!(suggestion(&[(true, 4)]).0, 5);
    }

    #[test]
    fn a_mix_of_generations_is_noted_with_both_sides() {
        let (version, notes) = suggestion(&[(false, 12), (false, 13), (true, 8)]);
        assert_eq!(version, 13);
        insta::assert_snapshot!(notes.join("\n"), @"
        : kept, but its function hashes come from an older clang (14 to 17) than those of the other inputs (22 or later); a compiler can use only one of the two
        : kept, but its function hashes come from an older clang (12 to 21) than those of the other inputs (22 or later); a compiler can use only one of the two
        ");
    }
}
