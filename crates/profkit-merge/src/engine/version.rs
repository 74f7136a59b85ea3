//! Which indexed version fits what the inputs carry.
//!
//! A compiler that reads a front-end profile takes the *version* of the indexed file for the way in which functions
//! were hashed (docs/formats, `FrontEndScheme`). A raw file knows its raw version only, which several releases share,
//! so that the version is the newest whose scheme every release that writes that raw version uses.
use crate::report::{Action, Event, Reason};
use profkit_abi::{indexed, variant};
use profkit_data::instr::InstrKind;
use profkit_data::instr::releases::{FrontEndScheme, RELEASES};
use std::collections::BTreeMap;

/// Where front-end inputs come from: raw (true) or indexed, and the version; with the first such input.
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

/// The oldest version that profkit writes; versions 1 to 4 carry the same scheme.
const OLDEST_WRITTEN: u32 = 3;

/// A version and what to say about it.
pub(crate) struct Suggestion {
    pub(crate) version: u32,
    pub(crate) notes: Vec<Event>,
}

/// The indexed version that carries the scheme of a raw version's releases: the newest that the oldest such release
/// writes, or where schemes differ among them (raw 4, 5 and 10) that of the newest release. `true` if they differ.
fn of_raw(version: u32) -> (u32, bool) {
    let releases = || RELEASES.iter().filter(|facts| facts.reads_raw(version));
    let newest = releases().map(|facts| facts.indexed).max();
    let Some(newest) = newest else {
        // Raw 3, 6 and 11 and later have no release of their own in the table, or one that we cannot write.
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
    // All agree: what the oldest reads, all read.
    let oldest = releases().map(|facts| facts.indexed).min();
    (
        oldest.unwrap_or(newest).clamp(OLDEST_WRITTEN, newest),
        false,
    )
}

pub(crate) fn suggest(generations: &Generations) -> Suggestion {
    let mut notes = Vec::new();
    let mut versions: BTreeMap<u32, usize> = BTreeMap::new();
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
        let first = versions.entry(fitting).or_insert(input);
        *first = (*first).min(input);
    }
    let Some(&newest) = versions.keys().last() else {
        return Suggestion {
            version: indexed::VERSION_LAST,
            notes,
        };
    };
    let scheme = FrontEndScheme::of_indexed_version(newest);
    for (&version, &input) in &versions {
        if FrontEndScheme::of_indexed_version(version) != scheme {
            notes.push(
                Event::new(
                    input,
                    Action::Kept,
                    Reason::HashGenerations,
                    "its front-end hashes are of another generation of clang than those of other inputs",
                )
                .sides(
                    format_args!("hashes as of indexed version {version}"),
                    format_args!("as of version {newest}"),
                )
                .hint("a compiler can use only one generation of a profile: merge files of each compiler separately"),
            );
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
        insta::assert_snapshot!(notes.join("\n"), @": kept: raw version 10 does not tell which clang hashed the functions; indexed version 13 is right for the newest");
        assert_eq!(suggestion(&[(true, 5)]).0, 7);
        assert_eq!(suggestion(&[(true, 4)]).0, 5);
    }

    #[test]
    fn a_mix_of_generations_is_noted_with_both_sides() {
        let (version, notes) = suggestion(&[(false, 12), (false, 13), (true, 8)]);
        assert_eq!(version, 13);
        insta::assert_snapshot!(notes.join("\n"), @"
        : kept: its front-end hashes are of another generation of clang than those of other inputs: found hashes as of indexed version 7, expected as of version 13
        : kept: its front-end hashes are of another generation of clang than those of other inputs: found hashes as of indexed version 12, expected as of version 13
        ");
    }
}
