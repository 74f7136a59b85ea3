//! Code that the commands on MIP profiles share: opens profiles, creates them from binaries or maps, and finds source
//! locations.
use crate::choice::choices;
use crate::exit::{Failure, Result};
use crate::print;
use clap::Args;
use profkit_data::ErrorKind;
use profkit_data::ids::BuildId;
use profkit_data::mip::{
    MipForm, MipProfile, MipWriteOptions, ProfileVersion, write as write_profile,
};
use profkit_merge::files::{Content, Input, Output, Staged};
use profkit_mip::create::{self, CreateOptions, create};
use std::path::{Path, PathBuf};

choices! {
    /// The words of `--format-version`.
    pub VERSIONS: ProfileVersion =
        "8" => ProfileVersion::V8,
            "The format of LLVM's unreleased MIP tool, for profiles that were created from maps of that format";
        "9" => ProfileVersion::V9, "profkit's own format";
}

#[derive(Clone, Debug, Default, Args)]
pub struct ImageArgs {
    /// Take source locations from this program or debug file, instead of from the binary itself
    #[arg(long, value_name = "FILE")]
    pub debug: Option<PathBuf>,

    /// The architecture to use in a universal Mach-O file: arm64, x86_64, …
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
}

impl ImageArgs {
    fn options(&self) -> CreateOptions {
        CreateOptions::default()
            .debug(self.debug.clone())
            .arch(self.arch.clone())
    }
}

#[derive(Debug)]
pub struct MipFile {
    pub name: String,
    pub profile: MipProfile,
    pub version: ProfileVersion,
}

pub fn open(path: &Path) -> Result<MipFile> {
    of(&crate::io::open(path)?)
}

/// Opens a profile, its YAML, or a map. A map becomes an empty profile. Returns the name of the file too.
pub fn open_any(path: &Path) -> Result<(String, MipProfile, MipForm)> {
    let input = crate::io::open(path)?;
    let opened = MipProfile::open(&input).map_err(|error| failure(input.name(), &error));
    opened.map(|(profile, form)| (input.name().to_owned(), profile, form))
}

pub fn of(input: &Input) -> Result<MipFile> {
    let opened = MipProfile::parse_versioned(input);
    let (profile, version) = opened.map_err(|error| failure(input.name(), &error))?;
    Ok(MipFile {
        name: input.name().to_owned(),
        profile,
        version,
    })
}

fn failure(name: &str, error: &profkit_data::Error) -> Failure {
    let failure = Failure::file(name, error);
    if error.kind() == ErrorKind::BadMagic {
        return failure.with_hint(format_args!(
            "`profkit doctor {name}` says what the file is and which command reads it"
        ));
    }
    failure
}

pub fn stage(path: &Path, profile: &MipProfile, version: ProfileVersion) -> Result<Staged> {
    let output = Output::new(path, Content::Binary)?;
    let mut bytes = Vec::new();
    write_profile(
        profile,
        &MipWriteOptions::new().version(version),
        &mut bytes,
    )
    .map_err(|error| Failure::file(profkit_data::path_text(path), &error))?;
    Ok(output.stage(|sink| sink.put(&bytes))?)
}

#[derive(Debug)]
pub struct NewProfile {
    pub profile: MipProfile,
    pub notes: Vec<String>,
    /// Messages about functions that were left out.
    pub dropped: Vec<String>,
}

pub fn make(path: &Path, args: &ImageArgs, build_id: Option<BuildId>) -> Result<NewProfile> {
    let made = create(path, &args.options().build_id(build_id))?;
    let name = profkit_data::path_text(path);
    let dropped = made.dropped.iter();
    Ok(NewProfile {
        notes: made.notes.iter().map(ToString::to_string).collect(),
        dropped: dropped
            .map(|error| format!("{name}: left out: {error}"))
            .collect(),
        profile: made.profile,
    })
}

pub fn locate(profile: &mut MipProfile, path: &Path, arch: Option<&str>) -> Result<()> {
    let located = create::locate(profile, path, arch)?;
    for note in located.apply(profile) {
        print::say(format_args!("warning: {note}"));
    }
    Ok(())
}
