//! clang's `-fprofile-instr-generate` as the oracle of calls and coverage.
use super::{mip_counts, mip_profile, succeed};
use anyhow::{Context, Result, bail};
use profkit_testkit::Llvm;
use profkit_testkit::program::counts::{self, Comparison, Counts};
use profkit_testkit::program::{MipMode, Program, Setting, WEAK_FUNCTION, outcome};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nothing is inlined and no call becomes a jump: then every count of clang's is one of MIP's.
pub const NOT_INLINED: [&str; 3] = ["-O0", "-fprofile-instr-generate", "-fno-inline"];

/// The counts in raw profiles of clang's.
///
/// # Errors
/// If `llvm-profdata-22` fails.
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

/// Fails if MIP counts something that clang does not, and with `exact` also if it counts less.
///
/// # Errors
/// The functions that differ.
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

/// A generated program with both instrumentations at once, where nothing is inlined: the number of functions, all of
/// whose calls are equal.
///
/// # Errors
/// If it does not build or run, or a count differs.
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
    // Every file has a data record of a weak function, all of one counter, which is added up as often.
    clang.remove(WEAK_FUNCTION);
    let found = counts::compare(&clang, &mip_counts(profkit, &profile, false)?);
    judge(&found, true)?;
    if found.equal == 0 {
        bail!("no function was compared");
    }
    Ok(found.equal as u64)
}
