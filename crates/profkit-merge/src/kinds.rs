//! Decides which inputs may be merged with each other.
use crate::error::{Difference, GroupConflict, InputGroup, Members};
use profkit_data::detect::Family;
use profkit_data::instr::InstrKind;
use profkit_files::Inputs;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputKind {
    pub(crate) input: usize,
    pub(crate) kind: InstrKind,
    /// Whether the input has functions. The kind of an input without functions, such as a heap profile, says nothing
    /// about counters.
    pub(crate) has_functions: bool,
}

/// Checks that the inputs may be merged with each other, and returns the kind of the result. Text without a header fits
/// everything, and so does an input without functions: only if all inputs are without functions, their kinds decide. Plain and context-sensitive IR profiles fit each other, because every record says which it is. So do
/// entry-first and loop-entry profiles: LLVM joins the flags, and functions whose counters differ have different
/// hashes.
pub(crate) fn check(
    read: &[InputKind],
    inputs: &dyn Inputs,
) -> Result<InstrKind, Box<GroupConflict>> {
    const RULES: [(InstrKind, Difference, &str, &str); 3] = [
        (
            InstrKind::FRONT_END,
            Difference::Level,
            "front-end and IR profiles cannot be merged with each other",
            "merge the files of each kind separately; a binary can use a profile of only one of the two kinds",
        ),
        (
            InstrKind::SINGLE_BYTE_COVERAGE,
            Difference::Kind,
            "single-byte coverage and execution counts cannot be merged with each other",
            "merge the coverage files and the count files separately",
        ),
        (
            InstrKind::FUNCTION_ENTRY_ONLY,
            Difference::Kind,
            "profiles that cover only function entries cannot be merged with profiles that cover all blocks",
            "merge the files of each kind separately",
        ),
    ];
    if !read.iter().any(|one| one.has_functions) {
        return Ok(kind_without_functions(read));
    }
    let known = || {
        let fitting = read.iter().filter(|one| one.has_functions);
        fitting.filter(|one| !one.kind.is_unknown())
    };
    for (bit, difference, message, hint) in RULES {
        let (with, without): (Vec<&InputKind>, Vec<&InputKind>) =
            known().partition(|one| one.kind.contains(bit));
        if with.is_empty() || without.is_empty() {
            continue;
        }
        let mut groups = [with, without].map(|group| {
            let mut members = Members::default();
            group.iter().for_each(|one| members.add(one.input));
            let kind = group.first().map_or(InstrKind::UNKNOWN, |one| one.kind);
            members.group(format!("{kind} profile"), inputs)
        });
        groups.sort_by_key(|group| Reverse(group.count));
        return Err(Box::new(GroupConflict {
            difference,
            message,
            groups: groups.into(),
            hint,
        }));
    }
    Ok(known().fold(InstrKind::UNKNOWN, |all, one| all | one.kind))
}

/// The kind of a profile that no input gives functions to. Where inputs disagree, the result is not of the front end: a
/// binary file without functions has no mark that says so.
fn kind_without_functions(read: &[InputKind]) -> InstrKind {
    let kinds = read.iter().map(|one| one.kind);
    let all = kinds.fold(InstrKind::UNKNOWN, |all, one| all | one);
    if all.contains(InstrKind::IR) {
        all.without(InstrKind::FRONT_END)
    } else {
        all
    }
}

pub(crate) fn check_families(
    families: &BTreeMap<Family, Members>,
    own: &[Family],
    inputs: &dyn Inputs,
) -> Result<(), Box<GroupConflict>> {
    let mine = families
        .keys()
        .filter(|family| own.contains(family))
        .count();
    if mine == 0 || mine == families.len() {
        return Ok(());
    }
    let group = |(family, members): (&Family, &Members)| InputGroup {
        family: Some(*family),
        ..members.group(family.profile(), inputs)
    };
    let mut groups: Vec<_> = families.iter().map(group).collect();
    groups.sort_by_key(|group| Reverse(group.count));
    Err(Box::new(GroupConflict {
        difference: Difference::Family,
        message: "profiles of different families cannot be merged with each other",
        groups,
        hint: "merge the files of each family separately",
    }))
}

/// LLVM assigns no kind to a binary file without the IR bit (`getProfileKindFromVersion`); only `:fe` in text does.
pub(crate) fn llvm_kind(kind: InstrKind, version_word: u64) -> InstrKind {
    if version_word == 0 {
        kind
    } else {
        kind.without(InstrKind::FRONT_END)
    }
}

pub(crate) fn llvm_merge(into: &mut InstrKind, other: InstrKind) -> bool {
    if into.is_unknown() {
        *into = other;
        return true;
    }
    let front_end = |kind: InstrKind| kind.contains(InstrKind::FRONT_END);
    let others = [InstrKind::ENTRY_FIRST, InstrKind::LOOP_ENTRIES];
    let clash = |one: InstrKind, two: InstrKind| {
        one.contains(InstrKind::FUNCTION_ENTRY_ONLY)
            && others.iter().any(|&other| two.contains(other))
    };
    if front_end(*into) != front_end(other) || clash(*into, other) || clash(other, *into) {
        return false;
    }
    *into |= other;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    const FE: InstrKind = InstrKind::FRONT_END;
    const IR: InstrKind = InstrKind::IR;

    fn check_kinds(kinds: &[InstrKind]) -> Result<InstrKind, Box<GroupConflict>> {
        let names: Vec<_> = (0..kinds.len())
            .map(|index| (format!("{index}.profraw"), Weight::ONE, []))
            .collect();
        let names: &[(String, Weight, [u8; 0])] = &names;
        let read: Vec<_> = kinds
            .iter()
            .enumerate()
            .map(|(input, &kind)| InputKind {
                input,
                kind,
                has_functions: true,
            })
            .collect();
        struct Wrap<'a>(&'a [(String, Weight, [u8; 0])]);
        impl Inputs for Wrap<'_> {
            fn len(&self) -> usize {
                self.0.len()
            }
            fn name(&self, index: usize) -> std::borrow::Cow<'_, str> {
                self.0[index].0.as_str().into()
            }
            fn open<'s>(
                &'s self,
                _: usize,
                _: &mut Vec<u8>,
            ) -> std::io::Result<crate::InputData<'s>> {
                unreachable!("kinds are checked without bytes")
            }
        }
        check(&read, &Wrap(names))
    }

    #[test]
    fn the_odd_files_are_named_with_both_kinds() {
        let conflict = check_kinds(&[IR, IR, FE, IR]).unwrap_err();
        insta::assert_snapshot!(conflict, @"front-end and IR profiles cannot be merged with each other: 3 IR profiles (0.profraw, 1.profraw, 3.profraw); 1 front-end profile (2.profraw)");
        let bytes = IR | InstrKind::SINGLE_BYTE_COVERAGE;
        let conflict = check_kinds(&[bytes, bytes, IR, IR, IR]).unwrap_err();
        insta::assert_snapshot!(conflict, @"single-byte coverage and execution counts cannot be merged with each other: 3 IR profiles (2.profraw, 3.profraw, 4.profraw); 2 IR, single-byte coverage profiles (0.profraw, 1.profraw)");
        let entry = bytes | InstrKind::FUNCTION_ENTRY_ONLY;
        assert!(check_kinds(&[bytes, entry]).is_err());
    }

    #[test]
    fn a_profile_without_functions_fits_every_other() {
        let of = |input, kind, has_functions| InputKind {
            input,
            kind,
            has_functions,
        };
        let names: &[(&str, Vec<u8>)] = &[("a", Vec::new()), ("b", Vec::new())];
        let bytes = IR | InstrKind::SINGLE_BYTE_COVERAGE;
        for kind in [FE, IR, bytes, bytes | InstrKind::FUNCTION_ENTRY_ONLY] {
            for other in [FE, IR, bytes] {
                let read = [of(0, kind, true), of(1, other, false)];
                assert_eq!(check(&read, &names), Ok(kind));
            }
        }
        assert_eq!(check(&[of(0, FE, false), of(1, IR, false)], &names), Ok(IR));
        assert_eq!(check(&[of(0, FE, false), of(1, FE, false)], &names), Ok(FE));
    }

    #[test]
    fn what_llvm_can_merge_is_merged() {
        let unknown = InstrKind::UNKNOWN;
        let cs = IR | InstrKind::CONTEXT_SENSITIVE;
        let first = IR | InstrKind::ENTRY_FIRST;
        assert_eq!(check_kinds(&[unknown, FE]), Ok(FE));
        assert_eq!(check_kinds(&[unknown]), Ok(unknown));
        assert_eq!(check_kinds(&[IR, cs, unknown, first]), Ok(cs | first));
    }

    /// The expected values were measured: llvm-profdata-19 and -22 merged text files with one writer.
    #[test]
    fn llvm_looks_at_the_front_end_bit_alone() {
        let merge = |kinds: &[InstrKind]| {
            let mut into = InstrKind::UNKNOWN;
            kinds.iter().all(|&kind| llvm_merge(&mut into, kind))
        };
        let unknown = InstrKind::UNKNOWN;
        assert!(!merge(&[FE, IR]) && !merge(&[IR, FE]) && !merge(&[FE, unknown]));
        assert!(merge(&[unknown, FE]) && merge(&[unknown, IR]) && merge(&[IR, unknown]));
        assert!(merge(&[IR | InstrKind::SINGLE_BYTE_COVERAGE, IR]));
        assert_eq!(llvm_kind(FE, 10), unknown);
        assert_eq!(llvm_kind(FE, 0), FE);
    }
}
