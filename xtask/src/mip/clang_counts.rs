//! Uses the counts of clang's `-fprofile-instr-generate` to check MIP's calls and coverage.
use super::{mip_counts, mip_profile, succeed};
use anyhow::{Context, Result, bail};
use profkit_testkit::Llvm;
use profkit_testkit::program::counts::{self, Comparison, Counts};
use profkit_testkit::program::{MipMode, Program, Setting, WEAK_FUNCTION, outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for clang with which nothing is inlined and no call becomes a jump. Then MIP must have an equal count for
/// every count of clang.
pub const NOT_INLINED: [&str; 3] = ["-O0", "-fprofile-instr-generate", "-fno-inline"];

/// Reads the counts in raw profiles of clang.
pub fn counts_of_raws(raws: &[PathBuf], indexed: &Path) -> Result<Counts> {
    let llvm = Llvm::find(22).context("clang-22 and llvm-22 are not installed")?;
    succeed(
        Command::new(llvm.profdata())
            .args(["merge", "-o"])
            .arg(indexed)
            .args(raws),
    )?;
    counts::of_llvm_text(&succeed(
        Command::new(llvm.profdata())
            .args(["show", "--all-functions"])
            .arg(indexed),
    )?)
}

/// Fails if MIP counts more than clang does. With `exact`, also fails if MIP counts less.
pub fn judge(found: &Comparison, exact: bool) -> Result<()> {
    let list = |entries: &[(String, Vec<u64>, Vec<u64>)]| {
        let lines: Vec<String> = entries
            .iter()
            .take(20)
            .map(|(name, clang, mip)| format!("  {name}: clang {clang:?}, MIP {mip:?}"))
            .collect();
        lines.join("\n")
    };
    if !found.wrong.is_empty() {
        bail!("MIP counts what clang does not:\n{}", list(&found.wrong));
    }
    if exact && !found.partly_inlined.is_empty() {
        bail!("MIP misses calls:\n{}", list(&found.partly_inlined));
    }
    Ok(())
}

/// Builds and runs a generated program with both instrumentations, without inlining, and compares all counts of calls.
/// Returns the number of functions with equal counts.
pub fn compare_program(profkit: &Path, program: &Program, folder: &Path) -> Result<u64> {
    let setting = Setting {
        compiler: "clang-22".into(),
        flags: NOT_INLINED.map(str::to_owned).to_vec(),
    };
    let sources = program.write_to(folder)?;
    let made = folder.join("both");
    let mode = MipMode::named("calls").context("mode calls")?;
    setting.build(Some((profkit, mode)), folder, &sources, &made)?;
    let raw = folder.join("both.mipraw");
    let ran = outcome(&made, &[], &raw)?;
    if ran.code.is_none() {
        bail!("{} was killed", made.display());
    }
    let profile = folder.join("both.mip");
    mip_profile(profkit, &made, &[raw], &profile)?;
    let mut clang = counts_of_raws(
        &[folder.join("both.profraw")],
        &folder.join("both.profdata"),
    )?;
    // The weak function has a data record in every file, but all records share one counter. So clang's count is a
    // multiple of the real one, and is not compared.
    clang.remove(WEAK_FUNCTION);
    let found = counts::compare(&clang, &mip_counts(profkit, &profile, false)?);
    judge(&found, true)?;
    if found.equal == 0 {
        bail!("no function was compared");
    }
    Ok(found.equal as u64)
}
