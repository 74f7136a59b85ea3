//! Finds the indexed version to write. Readers derive the hashing scheme of functions from this version, so it must
//! imply the scheme of the inputs' function hashes. Also finds inputs whose hashes do not fit each other.
//!
//! A compiler that reads a front-end profile decides by the *version* of the indexed file how it must hash functions
//! (docs/formats, `FrontEndScheme`). A raw file has only a raw version, which several LLVM releases may share. If all
//! releases with this raw version use the same scheme, the indexed version to write is one that implies this scheme. If
//! the schemes of these releases differ, the other inputs decide which of the schemes is used. If the other inputs do
//! not decide it, the newest scheme is assumed.
use crate::error::{Difference, GroupConflict, Members};
use crate::report::{Action, Event, Reason};
use profkit_abi::{indexed, variant};
use profkit_data::instr::InstrKind;
use profkit_data::releases::{
    FrontEndScheme, HashOrigin, IrScheme, RELEASES, Release, display_compilers,
};
use profkit_files::Inputs;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

#[derive(Clone, Debug, Default)]
pub(crate) struct Generations {
    pub(crate) origins: BTreeMap<HashOrigin, Members>,
    /// The newest indexed version that an input without functions suggests; `None` if there are no such inputs. These
    /// inputs have no hashes, so their version counts only if no input has functions.
    pub(crate) without_functions: Option<u32>,
}

impl Generations {
    pub(crate) fn note(
        &mut self,
        input: usize,
        kind: InstrKind,
        version_word: u64,
        is_raw: bool,
        has_functions: bool,
    ) {
        let version = u32::try_from(version_word & variant::VERSION_MASK).unwrap_or(0);
        let front_end = kind.contains(InstrKind::FRONT_END);
        if version != 0 && (front_end || kind.contains(InstrKind::IR)) {
            let origin = HashOrigin {
                front_end,
                is_raw,
                version,
            };
            if has_functions {
                self.origins.entry(origin).or_default().add(input);
            } else if front_end {
                let (fitting, _) = origin.front_end_version();
                self.without_functions = self.without_functions.max(Some(fitting));
            }
        }
    }

    pub(crate) fn absorb(&mut self, other: Generations) {
        self.without_functions = self.without_functions.max(other.without_functions);
        for (origin, members) in other.origins {
            self.origins.entry(origin).or_default().absorb(&members);
        }
    }

    /// The origins of front-end or IR profiles: each with the compilers that may have made its inputs, and these
    /// inputs.
    fn of_level(
        &self,
        front_end: bool,
    ) -> impl Iterator<Item = (HashOrigin, RangeInclusive<Release>, &Members)> {
        let level = self.origins.iter();
        level
            .filter(move |(origin, _)| origin.front_end == front_end)
            .map(|(origin, members)| (*origin, origin.compilers(), members))
    }

    /// The oldest and the newest hashing scheme that all front-end (or IR) profiles may have; `None` without such
    /// inputs. The compiler of an input is often known only as a range of releases. If the first is newer than the
    /// second, the inputs have no scheme in common.
    fn schemes(&self, front_end: bool) -> Option<(u8, u8)> {
        let schemes = self.of_level(front_end).map(|(origin, clangs, _)| {
            (origin.scheme(*clangs.start()), origin.scheme(*clangs.end()))
        });
        schemes.reduce(|(least, most), (low, high)| (least.max(low), most.min(high)))
    }
}

impl Generations {
    /// The oldest scheme that all IR profiles may have; `None` without IR profiles.
    pub(crate) fn oldest_ir_scheme(&self) -> Option<IrScheme> {
        let oldest = self.of_level(false).filter_map(|(_, compilers, _)| {
            let facts = compilers.start().facts()?;
            Some(facts.ir_scheme())
        });
        oldest.max()
    }
}

/// Checks that compilers may have named and hashed the functions of all inputs in the same way.
pub(crate) fn check(
    generations: &Generations,
    inputs: &dyn Inputs,
) -> Result<(), Box<GroupConflict>> {
    for front_end in [true, false] {
        let Some((least, most)) = generations
            .schemes(front_end)
            .filter(|(least, most)| least > most)
        else {
            continue;
        };
        let group = |is_old: bool| {
            let (mut members, mut compilers) = (Members::default(), None);
            for (origin, clangs, some) in generations.of_level(front_end) {
                let (low, high) = (origin.scheme(*clangs.start()), origin.scheme(*clangs.end()));
                if is_old && high < least || !is_old && low > most {
                    members.absorb(some);
                    compilers = Some(unite(compilers, clangs));
                }
            }
            let clangs = compilers.map_or(String::new(), |range| display_compilers(&range));
            let level = if front_end { "front-end" } else { "IR" };
            members.group(format!("{level} profile of LLVM {clangs}"), inputs)
        };
        let mut groups = vec![group(true), group(false)];
        groups.sort_by_key(|group| Reverse(group.count));
        return Err(Box::new(GroupConflict {
            difference: Difference::Hashes,
            message: "profiles of compilers that name or hash functions differently cannot be merged with each other",
            groups,
            hint: "merge the files of each compiler separately, because a compiler uses only functions with its own names and hashes",
        }));
    }
    Ok(())
}

fn unite(
    one: Option<RangeInclusive<Release>>,
    two: RangeInclusive<Release>,
) -> RangeInclusive<Release> {
    match one {
        Some(one) => *one.start().min(two.start())..=*one.end().max(two.end()),
        None => two,
    }
}

pub(crate) struct Suggestion {
    pub(crate) version: u32,
    pub(crate) notes: Vec<Event>,
}

pub(crate) fn suggest(generations: &Generations) -> Suggestion {
    let mut notes = Vec::new();
    let mut origins: BTreeMap<u32, (usize, RangeInclusive<Release>)> = BTreeMap::new();
    let same = generations
        .of_level(true)
        .map(|(_, clangs, _)| (*clangs.start(), *clangs.end()))
        .reduce(|one, two| (one.0.max(two.0), one.1.min(two.1)))
        .filter(|(first, last)| first <= last);
    for (origin, clangs, members) in generations.of_level(true) {
        let (mut fitting, ambiguous) = origin.front_end_version();
        if ambiguous {
            let newest = fitting;
            // If all releases in the range `same` use one scheme, the inputs of this origin have it.
            let schemes = same.map(|(first, last)| (origin.scheme(first), origin.scheme(last)));
            if let Some((_, scheme)) = schemes.filter(|(first, last)| first == last) {
                fitting = newest_of_scheme(newest, scheme);
            }
            notes.push(ambiguous_note(
                members.first(),
                origin.version,
                newest,
                fitting,
            ));
        }
        let all = origins
            .entry(fitting)
            .or_insert((members.first(), clangs.clone()));
        *all = (
            all.0.min(members.first()),
            unite(Some(all.1.clone()), clangs),
        );
    }
    let Some((&newest, (_, newest_clangs))) = origins.last_key_value() else {
        let alone = generations.origins.is_empty();
        let without_functions = generations.without_functions.filter(|_| alone);
        return Suggestion {
            version: without_functions.unwrap_or(indexed::VERSION_DEFAULT),
            notes,
        };
    };
    let scheme = FrontEndScheme::of_indexed_version(newest);
    for (&version, (input, clangs)) in &origins {
        if FrontEndScheme::of_indexed_version(version) != scheme {
            let message = format!(
                "the function hashes of this input come from an older clang ({}) than those of the other inputs ({}); each compiler ignores the functions that it hashes differently",
                display_compilers(clangs),
                display_compilers(newest_clangs)
            );
            let (action, reason) = (Action::Kept, Reason::HashGenerations);
            let note = Event::new(*input, action, reason, message);
            notes.push(note.hint("merge the files of each compiler separately"));
        }
    }
    Suggestion {
        version: newest,
        notes,
    }
}

/// Returns the releases of clang that use the hashing scheme of indexed front-end profiles of this version.
fn clangs_of(version: u32) -> RangeInclusive<Release> {
    let (front_end, is_raw) = (true, false);
    let origin = HashOrigin {
        front_end,
        is_raw,
        version,
    };
    origin.compilers()
}

/// The newest indexed version up to `version` whose readers hash functions by this scheme.
fn newest_of_scheme(version: u32, scheme: u8) -> u32 {
    (1..=version)
        .rev()
        .find(|&version| FrontEndScheme::of_indexed_version(version) as u8 == scheme)
        .unwrap_or(version)
}

fn ambiguous_note(input: usize, raw: u32, newest: u32, fitting: u32) -> Event {
    if fitting < newest {
        let message = format!(
            "raw version {raw} does not show which clang computed the function hashes; because of the other inputs, clang {} is assumed",
            display_compilers(&clangs_of(fitting))
        );
        return Event::new(input, Action::Kept, Reason::HashGenerations, message);
    }
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
            "raw version {raw} does not show which clang computed the function hashes; the newest clang is assumed, which uses indexed version {fitting}"
        ),
    )
    .hint(format!(
        "if LLVM {} built the program, write the profile for that release",
        others.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generations(kind: InstrKind, inputs: &[(bool, u32)]) -> Generations {
        let mut generations = Generations::default();
        for (input, &(is_raw, version)) in inputs.iter().enumerate() {
            generations.note(input, kind, u64::from(version), is_raw, true);
        }
        generations
    }

    fn suggestion(inputs: &[(bool, u32)]) -> (u32, Vec<String>) {
        let suggestion = suggest(&generations(InstrKind::FRONT_END, inputs));
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
        insta::assert_snapshot!(notes.join("\n"), @": kept, but raw version 10 does not show which clang computed the function hashes; the newest clang is assumed, which uses indexed version 13");
        assert_eq!(suggestion(&[(true, 5)]).0, 7);
        assert_eq!(suggestion(&[(true, 4)]).0, 5);
    }

    #[test]
    fn inputs_without_functions_have_a_say_only_among_themselves() {
        let mut mixed = generations(InstrKind::FRONT_END, &[(false, 13)]);
        let with_old = |mixed: &mut Generations| {
            mixed.note(7, InstrKind::FRONT_END, 12, false, false);
        };
        with_old(&mut mixed);
        assert!(check(&mixed, &&[("a", Vec::new())][..]).is_ok());
        assert_eq!(suggest(&mixed).version, 13);
        let mut alone = Generations::default();
        with_old(&mut alone);
        assert_eq!(suggest(&alone).version, 12);
    }

    #[test]
    fn a_mix_of_generations_is_noted_with_both_sides() {
        let (version, notes) = suggestion(&[(false, 12), (false, 13), (true, 8)]);
        assert_eq!(version, 13);
        insta::assert_snapshot!(notes.join("\n"), @"
        : kept, but the function hashes of this input come from an older clang (14 to 17) than those of the other inputs (22 or later); each compiler ignores the functions that it hashes differently
        : kept, but the function hashes of this input come from an older clang (12 to 21) than those of the other inputs (22 or later); each compiler ignores the functions that it hashes differently
        ");
    }

    #[test]
    fn another_input_may_tell_what_a_raw_version_cannot() {
        assert_eq!(suggestion(&[(true, 10), (false, 13)]).0, 13);
        let (version, notes) = suggestion(&[(true, 10), (false, 12)]);
        assert_eq!(version, 12);
        insta::assert_snapshot!(notes.join("\n"), @": kept, but raw version 10 does not show which clang computed the function hashes; because of the other inputs, clang 12 to 21 is assumed");
    }

    #[test]
    fn compilers_that_cannot_be_the_same_are_a_conflict() {
        let names = ["a", "b", "c"].map(|name| (name, Vec::new()));
        let conflict = |kind, inputs: &[(bool, u32)]| {
            let found = check(&generations(kind, inputs), &&names[..]);
            found.err().map(|conflict| conflict.to_string())
        };
        let (fe, ir) = (InstrKind::FRONT_END, InstrKind::IR);
        insta::assert_snapshot!(conflict(ir, &[(true, 7), (true, 10), (true, 10)]).unwrap(), @"profiles of compilers that name or hash functions differently cannot be merged with each other: 2 IR profiles of LLVM 19 to 22 (b, c); 1 IR profile of LLVM 13 (a)");
        insta::assert_snapshot!(conflict(fe, &[(true, 7), (false, 13)]).unwrap(), @"profiles of compilers that name or hash functions differently cannot be merged with each other: 1 front-end profile of LLVM 13 (a); 1 front-end profile of LLVM 22 or later (b)");
        // If releases with different schemes write the same raw version, an input of this raw version fits each of
        // these schemes. An indexed IR profile fits the schemes of all compilers up to the release that wrote it,
        // because its version only shows which tool wrote it.
        assert_eq!(conflict(fe, &[(true, 10), (false, 12)]), None);
        assert_eq!(conflict(fe, &[(true, 10), (false, 13)]), None);
        assert!(conflict(fe, &[(true, 10), (false, 12), (false, 13)]).is_some());
        assert_eq!(conflict(ir, &[(true, 7), (true, 8), (false, 13)]), None);
        assert!(conflict(ir, &[(true, 10), (false, 9)]).is_some());
        assert_eq!(conflict(ir, &[(true, 9), (true, 10), (false, 13)]), None);
    }
}
