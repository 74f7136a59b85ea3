//! `profkit mip mip2yaml` and `yaml2mip`: convert profiles to YAML and back.
use super::profile::{ImageArgs, VERSIONS, locate, open, stage};
use crate::choice::choice;
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::plural;
use clap::Args;
use profkit_data::mip::{MipWriteOptions, ProfileVersion, yaml};
use profkit_merge::files::{Content, Output, check_outputs};
use std::path::PathBuf;

const TO_EXAMPLES: &str = "\
The keys are those of the profile's version; docs/formats/mip.md lists them.

Examples:
  profkit mip mip2yaml -p program.mip
  profkit mip mip2yaml -p program.mip --debug program -o program.yaml";

const FROM_EXAMPLES: &str = "\
Examples:
  profkit mip yaml2mip -p program.mip program.yaml
  sed 's/old/new/' program.yaml | profkit mip yaml2mip -p program.mip";

#[derive(Debug, Args)]
#[command(after_help = TO_EXAMPLES)]
pub struct ToYamlArgs {
    /// The profile
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    /// Write the YAML to this file; - is standard output
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    image: ImageArgs,
}

#[derive(Debug, Args)]
#[command(after_help = FROM_EXAMPLES)]
pub struct FromYamlArgs {
    /// The YAML file; - is standard input
    #[arg(default_value = "-", value_name = "YAML")]
    input: PathBuf,

    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    /// Version of the profile; by default the version that the keys of the YAML belong to
    #[arg(long, value_parser = choice(VERSIONS), value_name = "VERSION")]
    format_version: Option<ProfileVersion>,
}

pub fn to_yaml(args: &ToYamlArgs) -> Result {
    let read = [&args.profile].into_iter().chain(&args.image.debug);
    check_outputs(&[("the YAML", Some(&args.output))], read)?;
    let mut opened = open(&args.profile)?;
    if let Some(file) = &args.image.debug {
        locate(&mut opened.profile, file, args.image.arch.as_deref())?;
    }
    let output = Output::new(&args.output, Content::Text)?;
    let mut text = Vec::new();
    yaml::write(
        &opened.profile,
        &MipWriteOptions::new().version(opened.version),
        &mut text,
    )
    .map_err(|error| Failure::file(&opened.name, &error))?;
    output.write(|sink| sink.put(&text))?;
    Ok(Status::Done)
}

pub fn from_yaml(args: &FromYamlArgs) -> Result {
    check_outputs(&[("the profile", Some(&args.profile))], [&args.input])?;
    let input = crate::io::open(&args.input)?;
    let (profile, version) =
        yaml::parse(&input).map_err(|error| Failure::file(input.name(), &error))?;
    let version = args.format_version.unwrap_or(version);
    stage(&args.profile, &profile, version)?.finish()?;
    let name = profkit_data::path_text(&args.profile);
    let functions = plural(profile.functions.len() as u64, "function");
    print::say(format_args!("wrote {name}: a profile of {functions}"));
    Ok(Status::Done)
}
