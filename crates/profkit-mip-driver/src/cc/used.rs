//! A profile as compilers and linkers use it (`-fmachine-profile-use=`): a sample profile and a list of executed blocks
//! for clang, and the order of functions for the linker.
use super::bounds;
use super::error::{Doing, Error, Result};
use super::parse::{Family, Parsed, Stop};
use super::run::Compiler;
use profkit_analysis::order::{OrderFile, by_mean, names};
use profkit_data::mip::{MipProfile, Modes};
use profkit_data::path_text;
use profkit_data::sample::{FormOptions, SampleForm};
use profkit_mip::use_::binary::{blocks_of, check_build, has_lines, program_files};
use profkit_mip::use_::blocks::{ListVersion, hot_blocks};
use profkit_mip::use_::sample::sample_profile;
use profkit_object::binary::BinaryFile;
use profkit_object::symbolize::Options;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A profile that a build uses.
#[derive(Clone, Debug)]
pub struct UsedProfile {
    /// The profile.
    pub profile: PathBuf,
    /// The instrumented program that the profile is of. `None`: it is searched beside the profile, under the name of the
    /// profile without its extension.
    pub binary: Option<PathBuf>,
}

/// The words with which a compiler uses a profile, and what cannot be used.
#[derive(Debug, Default)]
pub struct UseWords {
    pub words: Vec<OsString>,
    pub notes: Vec<String>,
}

impl UsedProfile {
    /// Writes the files that a compiler and its linker read to `folder`, and returns the words that name them.
    ///
    /// # Errors
    /// If the profile cannot be read, or the binary that was named is not that of the profile.
    pub fn words(&self, compiler: &Compiler, parsed: &Parsed, folder: &Path) -> Result<UseWords> {
        let name = path_text(&self.profile);
        let bytes = fs::read(&self.profile).map_err(Error::file(Doing::Read, &self.profile))?;
        let profile = MipProfile::parse(&bytes).map_err(|error| Error::Profile {
            name: name.clone(),
            error,
        })?;
        let mut made = UseWords::default();
        if compiler.family == Family::Clang {
            match self.program(&profile)? {
                Some((path, file)) => {
                    samples(&profile, &path, &file, folder, &mut made)?;
                    blocks(&profile, &path, &file, compiler, folder, &mut made)?;
                }
                None => made.notes.push(format!(
                    "{name}: the program that it is of is not beside it, so only the order of its functions is used; name the program with --binary"
                )),
            }
        }
        if parsed.stop != Stop::Assembly {
            order(&profile, compiler, parsed, folder, &mut made)?;
        }
        Ok(made)
    }

    /// Finds the program of the profile. A program beside the profile that is of another build is not used.
    fn program(&self, profile: &MipProfile) -> Result<Option<(PathBuf, BinaryFile)>> {
        let beside = || self.profile.with_extension("");
        let path = self.binary.clone().unwrap_or_else(beside);
        let opened = BinaryFile::open(&path).map_err(Error::file(Doing::Read, &path));
        let checked = opened.and_then(|file| {
            check_build(&file, profile).map_err(|error| Error::Profile {
                name: path_text(&path),
                error,
            })?;
            Ok(file)
        });
        match (checked, &self.binary) {
            (Ok(file), _) => Ok(Some((path, file))),
            (Err(error), Some(_)) => Err(error),
            (Err(_), None) => Ok(None),
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::file(Doing::Write, path))
}

fn word(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

fn samples(
    profile: &MipProfile,
    path: &Path,
    file: &BinaryFile,
    folder: &Path,
    made: &mut UseWords,
) -> Result<()> {
    let problem = |(name, error)| Error::Profile { name, error };
    let name = path_text(path);
    let records = check_build(file, profile).map_err(|error| problem((name.clone(), error)))?;
    let files = program_files(path, None).map_err(problem)?;
    let symbolizer = files
        .symbolizer(&Options::default().symbol_names(false))
        .map_err(|error| problem((name.clone(), error)))?;
    if !has_lines(symbolizer.debug_info()) {
        made.notes.push(format!(
            "{name}: it has no debug info, so the compiler gets no sample profile; compile it with -g -fdebug-info-for-profiling"
        ));
        return Ok(());
    }
    let samples = sample_profile(profile, &symbolizer, records).profile;
    let mut bytes = Vec::new();
    SampleForm::ExtBinary
        .write(&samples, &FormOptions::for_profile(&samples), &mut bytes)
        .map_err(|error| problem((name, error)))?;
    let to = folder.join("use.prof");
    write(&to, &bytes)?;
    made.words.push(word("-fprofile-sample-use=", &to));
    Ok(())
}

fn blocks(
    profile: &MipProfile,
    path: &Path,
    file: &BinaryFile,
    compiler: &Compiler,
    folder: &Path,
    made: &mut UseWords,
) -> Result<()> {
    let has_blocks = |modes: Modes| modes.contains(Modes::BLOCK_COVERAGE);
    if !has_blocks(profile.modes()) {
        return Ok(());
    }
    let name = path_text(path);
    let version = compiler.release()?.and_then(ListVersion::of_release);
    let (current, ids) = match (blocks_of(file), version) {
        (Ok(found), Some(_)) => found,
        (Err(error), _) => {
            made.notes.push(format!(
                "{name}: {error}, so the compiler gets no list of blocks; compile it with -fbasic-block-address-map"
            ));
            return Ok(());
        }
        (_, None) => {
            made.notes.push(
                "this compiler reads no list of blocks that profkit writes: clang 15 and later do"
                    .to_owned(),
            );
            return Ok(());
        }
    };
    let list = hot_blocks(profile, &current, &ids);
    let to = folder.join("use.blocks");
    write(&to, &list.write(version.unwrap_or(ListVersion::V1)))?;
    made.words.push(word("-fbasic-block-sections=list=", &to));
    Ok(())
}

fn order(
    profile: &MipProfile,
    compiler: &Compiler,
    parsed: &Parsed,
    folder: &Path,
    made: &mut UseWords,
) -> Result<()> {
    let order = by_mean(profile);
    if order.is_empty() {
        return Ok(());
    }
    made.words.push("-ffunction-sections".into());
    if parsed.stop != Stop::Link {
        return Ok(());
    }
    let linker = compiler.ask(&bounds::question(parsed))?;
    let (form, option) = if linker.contains("LLD") || linker.contains("mold") {
        (OrderFile::Lld, "-Wl,--symbol-ordering-file=")
    } else if linker.starts_with("GNU gold") {
        (OrderFile::Gold, "-Wl,--section-ordering-file=")
    } else if bounds::is_gnu_ld(&linker) {
        (OrderFile::GnuLd, "-Wl,-T,")
    } else {
        made.notes.push(
            "the linker is neither lld, gold nor GNU ld: it gets no order of functions".to_owned(),
        );
        return Ok(());
    };
    let to = folder.join("use.order");
    write(&to, &form.write(&names(profile, &order).names))?;
    made.words.push(word(option, &to));
    if form == OrderFile::Lld {
        // Functions that this build inlined everywhere are no mistake.
        made.words.push("-Wl,--no-warn-symbol-ordering".into());
    }
    Ok(())
}
