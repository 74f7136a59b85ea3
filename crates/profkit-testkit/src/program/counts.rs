//! Compares the counts of functions by MIP with the counts by clang's `-fprofile-instr-generate`.
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

/// The counts of functions by symbol name. If several functions have the same name, their counts are sorted.
pub type Counts = BTreeMap<String, Vec<u64>>;

/// Parses the counts that `llvm-profdata show --all-functions` prints. It prints local functions as `FILE:NAME` or
/// `FILE;NAME`; only the name is kept.
///
/// # Errors
/// If a function has no count.
pub fn of_llvm_text(text: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    let mut name = None;
    for line in text.lines() {
        if let Some(count) = line.trim().strip_prefix("Function count: ") {
            let name: String = name.take().context("a function count without a function")?;
            let count = count.parse().with_context(|| line.to_owned())?;
            counts.entry(name).or_default().push(count);
        } else if let Some(named) = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with(' '))
            .and_then(|rest| rest.strip_suffix(':'))
        {
            let bare = named.rsplit([':', ';']).next().unwrap_or(named);
            name = Some(bare.to_owned());
        }
    }
    if counts.is_empty() {
        bail!("no function in llvm-profdata's text");
    }
    Ok(sorted(counts))
}

/// Sorts the counts of functions with the same name.
pub fn sorted(mut counts: Counts) -> Counts {
    for of_name in counts.values_mut() {
        of_name.sort_unstable();
    }
    counts
}

/// The result of a comparison of MIP's counts with clang's.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of functions whose counts are equal.
    pub equal: usize,
    /// The functions that MIP counts and clang does not: thunks, constructors of globals, and so on.
    pub uncounted: Vec<String>,
    /// The functions that clang counts but that have no code of their own, because they were inlined or replaced.
    pub inlined_away: Vec<String>,
    /// The functions for which MIP counts fewer calls than clang, because some calls were inlined. For coverage, the
    /// functions that clang counts as entered and MIP does not. Each has clang's counts and MIP's counts.
    pub partly_inlined: Vec<(String, Vec<u64>, Vec<u64>)>,
    /// The functions for which MIP counts more calls than clang, which is an error. Each has clang's counts and MIP's
    /// counts.
    pub wrong: Vec<(String, Vec<u64>, Vec<u64>)>,
}

/// Compares clang's counts with those of MIP. If several functions have the same name, the largest count of clang is
/// compared with the largest of MIP, then the second largest with the second largest, and so on.
pub fn compare(clang: &Counts, mip: &Counts) -> Comparison {
    let mut found = Comparison::default();
    for (name, ours) in mip {
        let Some(theirs) = clang.get(name) else {
            found.uncounted.push(name.clone());
            continue;
        };
        if ours == theirs {
            found.equal += ours.len();
            continue;
        }
        // clang also counts functions that were inlined everywhere and then removed; MIP does not. So clang can have
        // counts for this name that MIP does not have.
        let mut left = theirs.clone();
        let matched = ours.iter().all(|count| {
            let at = left.iter().position(|other| other == count);
            at.map(|at| left.remove(at)).is_some()
        });
        let entry = (name.clone(), theirs.clone(), ours.clone());
        if matched {
            found.equal += ours.len();
        } else if ours.len() <= theirs.len()
            && ours
                .iter()
                .rev()
                .zip(theirs.iter().rev())
                .all(|(ours, theirs)| ours <= theirs)
        {
            found.partly_inlined.push(entry);
        } else {
            found.wrong.push(entry);
        }
    }
    for (name, theirs) in clang {
        if !mip.contains_key(name) && theirs.iter().any(|count| *count > 0) {
            found.inlined_away.push(name.clone());
        }
    }
    found
}

/// Replaces every count that is not 0 by 1, as in coverage.
pub fn covered(counts: &Counts) -> Counts {
    let of_one = |of_name: &Vec<u64>| of_name.iter().map(|count| (*count).min(1)).collect();
    sorted(
        counts
            .iter()
            .map(|(name, of_name)| (name.clone(), of_one(of_name)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(entries: &[(&str, &[u64])]) -> Counts {
        entries
            .iter()
            .map(|(name, of_name)| ((*name).to_owned(), of_name.to_vec()))
            .collect()
    }

    #[test]
    fn reads_what_llvm_profdata_prints() {
        let text = "Counters:\n  main:\n    Hash: 0x18\n    Counters: 1\n    Function count: 1\n  \
                    a.c:twice:\n    Hash: 0x1\n    Counters: 1\n    Function count: 7\n  \
                    b.c;twice:\n    Hash: 0x1\n    Counters: 1\n    Function count: 3\nInstrumentation level: Front-end\n";
        assert_eq!(
            of_llvm_text(text).expect("the text is sound"),
            counts(&[("main", &[1]), ("twice", &[3, 7])])
        );
        assert!(of_llvm_text("Total functions: 0\n").is_err());
    }

    #[test]
    fn tells_inlined_functions_from_wrong_counts() {
        let clang = counts(&[
            ("a", &[1]),
            ("b", &[0, 5]),
            ("c", &[9]),
            ("d", &[4]),
            ("e", &[2]),
        ]);
        let mip = counts(&[
            ("a", &[1]),
            ("b", &[5]),
            ("c", &[3]),
            ("e", &[3]),
            ("thunk", &[1]),
        ]);
        let found = compare(&clang, &mip);
        assert_eq!(found.equal, 2);
        assert_eq!(found.uncounted, ["thunk"]);
        assert_eq!(found.inlined_away, ["d"]);
        assert_eq!(found.partly_inlined.len(), 1);
        assert_eq!(found.wrong, [("e".to_owned(), vec![2], vec![3])]);
        let found = compare(&covered(&clang), &covered(&mip));
        assert!(found.wrong.is_empty() && found.partly_inlined.is_empty());
    }
}
