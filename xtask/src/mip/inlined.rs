//! Explains why an optimised program calls a function less often than its source does. The evidence is the compiler's
//! report about inlining and about recursion that became a loop, and the debug info of the linked program.
use super::succeed;
use anyhow::{Context, Result, bail};
use profkit_testkit::program::counts::Comparison;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Options for clang with which [`Evidence::of`] finds evidence. `li` is a part of the names of two passes, `inline`
/// and `tailcallelim`.
pub const FLAGS: [&str; 3] = [
    "-g",
    "-fsave-optimization-record",
    "-foptimization-record-passes=li",
];

/// Which evidence is enough to explain that a function was called less often than its source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// Only evidence that the source demands inlining, for builds with `-fno-inline`.
    Forced,
    /// Evidence of any inlining, and of recursion that became a loop.
    Any,
}

/// The names of functions, by what the compiler did with them.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The functions that have an inlined copy in the debug info.
    copied: BTreeSet<String>,
    /// The functions of which at least one call was inlined, as the inliner reports.
    inlined: BTreeSet<String>,
    /// Functions that were inlined because of the attribute `always_inline`, which `-fno-inline` does not overrule.
    always: BTreeSet<String>,
    /// Functions in which a recursive call became a jump.
    looped: BTreeSet<String>,
}

impl Evidence {
    /// Collects the evidence from a program and from the tree in which it was built.
    ///
    /// # Errors
    /// If there is no debug info or no optimisation record.
    pub fn of(binary: &Path, tree: &Path) -> Result<Evidence> {
        let text = succeed(
            Command::new("llvm-dwarfdump-22")
                .arg("--debug-info")
                .arg(binary),
        )?;
        let mut made = Evidence {
            copied: of_dump(&text),
            ..Evidence::default()
        };
        let mut records = 0;
        let mut folders = vec![tree.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name().to_string_lossy().ends_with(".opt.yaml") {
                    made.add_record(&std::fs::read_to_string(entry.path())?);
                    records += 1;
                }
            }
        }
        if records == 0 || !text.contains("DW_TAG_compile_unit") {
            bail!(
                "{} was not compiled with {}",
                binary.display(),
                FLAGS.join(" ")
            );
        }
        Ok(made)
    }

    /// Adds the evidence from a file that `-fsave-optimization-record` wrote.
    fn add_record(&mut self, text: &str) {
        for remark in text.split("--- !").filter(|one| one.starts_with("Passed")) {
            let value = |key: &str| {
                let line = remark
                    .lines()
                    .find_map(|line| line.trim_start_matches([' ', '-']).strip_prefix(key))?;
                Some(line.trim().trim_matches('\'').to_owned())
            };
            match value("Pass:").as_deref() {
                Some("inline") => {
                    let callee = value("Callee:");
                    if value("Name:").as_deref() == Some("AlwaysInline") {
                        self.always.extend(callee.clone());
                    }
                    self.inlined.extend(callee);
                }
                Some("tailcallelim") => self.looped.extend(value("Function:")),
                _ => {}
            }
        }
    }

    fn reason(&self, name: &str, accepted: Accepted) -> Option<&'static str> {
        let has = |names: &BTreeSet<String>| names.contains(name);
        if has(&self.always) {
            Some("always_inline, by the compiler's record")
        } else if accepted == Accepted::Forced {
            None
        } else if has(&self.copied) {
            Some("an inlined copy in the debug info")
        } else if has(&self.inlined) {
            Some("inlined, by the compiler's record")
        } else if has(&self.looped) {
            Some("its call of itself is a loop")
        } else {
            None
        }
    }
}

/// Returns the names of the functions that have inlined copies, from the output of `llvm-dwarfdump`.
fn of_dump(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        if line.contains("DW_TAG_") {
            inside = line.contains("DW_TAG_inlined_subroutine");
        } else if inside
            && line.trim_start().starts_with("DW_AT_abstract_origin")
            && let Some((_, name)) = line.split_once(" \"")
            && let Some((name, _)) = name.rsplit_once('"')
        {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Lists every function whose calls or coverage MIP and clang report differently, each with the reason.
///
/// # Errors
/// The functions for which there is no reason.
pub fn explain(found: &Comparison, evidence: &Evidence, accepted: Accepted) -> Result<String> {
    let mut list = String::new();
    let mut unexplained = Vec::new();
    let partly = found.partly_inlined.iter().map(|(name, clang, mip)| {
        let counts = format!("clang {clang:?}, MIP {mip:?}");
        (name, counts)
    });
    let away = found.inlined_away.iter();
    let away = away.map(|name| (name, "clang has a count, MIP no function".to_owned()));
    for (name, what) in partly.chain(away) {
        match evidence.reason(name, accepted) {
            Some(reason) => writeln!(list, "{name}: {what}: {reason}").context("a string")?,
            None => unexplained.push(format!("  {name}: {what}")),
        }
    }
    if unexplained.is_empty() {
        Ok(list)
    } else {
        bail!("no reason is known of:\n{}", unexplained.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = "\
0x0000002a:   DW_TAG_subprogram
                DW_AT_name\t(\"whole\")

0x0000003a:     DW_TAG_inlined_subroutine
                  DW_AT_abstract_origin\t(0x00000023 \"_ZN1a1bEv\")
                  DW_AT_low_pc\t(0x0000000000000010)

0x0000004a:       DW_TAG_formal_parameter
                    DW_AT_abstract_origin\t(0x00000029 \"parameter\")
";

    const RECORD: &str = "\
--- !Passed
Pass:            inline
Name:            Inlined
Function:        around
Args:
  - String:          ''''
  - Callee:          small
...
--- !Missed
Pass:            inline
Function:        around
Args:
  - Callee:          large
...
--- !Passed
Pass:            tailcallelim
Name:            tailcall-recursion
Function:        again
...
--- !Passed
Pass:            inline
Name:            AlwaysInline
Function:        around
Args:
  - String:          ''''
  - Callee:          forced
...
";

    #[test]
    fn each_difference_wants_a_reason() {
        let mut evidence = Evidence {
            copied: of_dump(DUMP),
            ..Evidence::default()
        };
        evidence.add_record(RECORD);
        let mut found = Comparison {
            inlined_away: vec!["_ZN1a1bEv".to_owned(), "small".to_owned()],
            partly_inlined: vec![("again".to_owned(), vec![9], vec![2])],
            ..Comparison::default()
        };
        assert_eq!(
            explain(&found, &evidence, Accepted::Any).expect("reasons"),
            "again: clang [9], MIP [2]: its call of itself is a loop\n\
             _ZN1a1bEv: clang has a count, MIP no function: an inlined copy in the debug info\n\
             small: clang has a count, MIP no function: inlined, by the compiler's record\n"
        );
        for name in ["whole", "large", "around"] {
            found.partly_inlined = vec![(name.to_owned(), vec![3], vec![2])];
            found.inlined_away.clear();
            let error = explain(&found, &evidence, Accepted::Any).expect_err("no reason");
            assert_eq!(
                error.to_string(),
                format!("no reason is known of:\n  {name}: clang [3], MIP [2]")
            );
        }
        found.partly_inlined.clear();
        found.inlined_away = vec!["forced".to_owned()];
        assert_eq!(
            explain(&found, &evidence, Accepted::Forced).expect("the attribute"),
            "forced: clang has a count, MIP no function: always_inline, by the compiler's record\n"
        );
        found.inlined_away.push("small".to_owned());
        let error = explain(&found, &evidence, Accepted::Forced).expect_err("only inlined");
        assert_eq!(
            error.to_string(),
            "no reason is known of:\n  small: clang has a count, MIP no function"
        );
    }
}
