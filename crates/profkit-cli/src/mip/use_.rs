//! `profkit mip use`: turns a MIP profile into files that unmodified compilers can use.
use super::profile;
use crate::choice::{choice, choices};
use crate::exit::{Failure, Result, Status};
use crate::print::{self, Format};
use clap::{ArgGroup, Args};
use profkit_analysis::names::printable;
use profkit_data::mip::MipProfile;
use profkit_data::sample::{FormOptions, SampleForm};
use profkit_merge::files::{Content, Output, check_outputs};
use profkit_mip::use_::binary::{blocks_of, check_build, has_lines, no_debug_info, program_files};
use profkit_mip::use_::blocks::{BlockList, ListVersion, hot_blocks};
use profkit_mip::use_::sample::{MadeProfile, sample_profile};
use profkit_object::binary::BinaryFile;
use profkit_object::symbolize::Options;
use profkit_report::merge::{output_name, sample_losses};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  profkit mip use --blocks app.mip app -o clusters.txt
      built by: profkit mip cc --mode function,block -- clang -fbasic-block-address-map …
      then: clang -O2 -fbasic-block-sections=list=clusters.txt …
  profkit mip use --sample app.mip app -o app.prof
      built with -g -fdebug-info-for-profiling
      then: clang -O2 -g -fdebug-info-for-profiling -fprofile-sample-use=app.prof …";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("what").required(true))]
pub struct UseArgs {
    /// Write a list of executed blocks for clang's -fbasic-block-sections=list=
    #[arg(long, group = "what")]
    blocks: bool,

    /// Write a sample profile for -fprofile-sample-use
    #[arg(long, group = "what")]
    sample: bool,

    /// A MIP profile; --blocks needs one with block coverage
    #[arg(value_name = "PROFILE")]
    profile: PathBuf,

    /// The instrumented binary, not stripped; with --blocks the profile may be of an older build
    #[arg(value_name = "BINARY")]
    binary: PathBuf,

    /// Write the result to this file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The encoding of a sample profile; compbinary is for LLVM 7 to 16
    #[arg(
        long = "to",
        alias = "encoding",
        value_parser = choice(ENCODINGS),
        default_value = "text",
        value_name = "FORMAT"
    )]
    to: SampleForm,

    /// The LLVM release that reads the list of blocks (15 or later)
    #[arg(long, value_name = "N", default_value_t = 22)]
    llvm: u32,

    /// A file with the binary's debug info, if the build id and debug link of the binary do not lead to this file
    #[arg(long, value_name = "FILE")]
    debug: Option<PathBuf>,

    /// The form of the report on standard error
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

choices! {
    ENCODINGS: SampleForm =
        "text" => SampleForm::Text, "Text";
        "binary" => SampleForm::Binary, "Binary without sections";
        "compbinary" => SampleForm::CompactBinary, "Binary without sections, with hashes instead of names";
        "extbinary" => SampleForm::ExtBinary, "Extensible binary, with sections";
}

pub fn run(args: &UseArgs) -> Result {
    let read = [&args.profile, &args.binary].into_iter().chain(&args.debug);
    check_outputs(&[("the output", Some(&args.output))], read)?;
    let version = ListVersion::of_release(args.llvm).ok_or_else(|| {
        Failure::usage(format_args!(
            "--llvm {}: lists of basic blocks can be written only for LLVM 15 and later",
            args.llvm
        ))
    })?;
    let content = match args.to {
        SampleForm::Text => Content::Text,
        _ => Content::Binary,
    };
    if args.blocks && content == Content::Binary {
        return Err(Failure::usage("--to works only with --sample"));
    }
    let output = Output::new(&args.output, content)?;
    let profile = profile::open(&args.profile)?.profile;
    if args.blocks {
        blocks(args, &profile, version, output)
    } else {
        sample(args, &profile, output)
    }
}

fn blocks(args: &UseArgs, profile: &MipProfile, version: ListVersion, output: Output) -> Result {
    let file = open(&args.binary)?;
    let (current, ids) = blocks_of(&file).map_err(|error| failure(&args.binary, &error))?;
    let list = hot_blocks(profile, &current, &ids);
    let bytes = list.write(version);
    output.write(|sink| sink.put(&bytes))?;
    report_blocks(&list, args.format);
    Ok(Status::Done)
}

fn report_blocks(list: &BlockList<'_>, format: Format) {
    let (cold, cold_bytes) = (list.cold_blocks(), list.cold_bytes());
    let names = |names: &[&[u8]]| -> Vec<String> {
        names
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    };
    if format == Format::Json {
        let report = serde_json::json!({
            "schema": "profkit-mip-use-blocks",
            "schema_version": 1,
            "functions": list.functions.len(),
            "cold_blocks": cold,
            "cold_bytes": cold_bytes,
            "whole": list.whole,
            "never_called": list.never_called,
            "stale": names(&list.stale),
            "missing": names(&list.missing),
            "ambiguous": names(&list.ambiguous),
            "without_blocks": list.without_blocks,
            "without_ids": list.without_ids,
        });
        print::say(format_args!("{report:#}"));
        return;
    }
    print::say(format_args!(
        "{} functions split: {cold} cold blocks with {cold_bytes} bytes",
        list.functions.len()
    ));
    for (count, what) in [
        (list.whole, "without a cold block"),
        (list.never_called, "never called, and not listed"),
        (list.without_blocks, "without block coverage in the profile"),
        (list.without_ids, "without block ids in the binary"),
    ] {
        if count > 0 {
            print::say(format_args!("{count} functions {what}"));
        }
    }
    for (which, what) in [
        (
            &list.stale,
            "stale: their blocks differ from those in the profile",
        ),
        (&list.missing, "not in the binary"),
        (&list.ambiguous, "names that several functions have"),
    ] {
        if !which.is_empty() {
            print::say(format_args!(
                "{} {what}: {}",
                which.len(),
                first_names(which)
            ));
        }
    }
}

fn first_names(names: &[&[u8]]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| printable(name).into_owned())
        .collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

fn sample(args: &UseArgs, profile: &MipProfile, output: Output) -> Result {
    let file = open(&args.binary)?;
    let records = check_build(&file, profile).map_err(|error| failure(&args.binary, &error))?;
    let files = program_files(&args.binary, args.debug.as_deref())
        .map_err(|(name, error)| Failure::file(name, &error))?;
    let symbolizer = files
        .symbolizer(&Options::default().symbol_names(false))
        .map_err(|error| failure(&args.binary, &error))?;
    if !has_lines(symbolizer.debug_info()) {
        return Err(failure(&args.binary, &no_debug_info()));
    }
    let samples = sample_profile(profile, &symbolizer, records);
    let made = &samples.profile;
    let (form, mut bytes) = (args.to, Vec::new());
    let losses = form
        .write(made, &FormOptions::for_profile(made), &mut bytes)
        .map_err(|error| Failure::file(output.name(), &error))?;
    let losses = sample_losses(&losses, form, None);
    output.write(|sink| sink.put(&bytes))?;
    report_sample(&samples, profile, &losses, args);
    Ok(Status::Done)
}

fn report_sample(samples: &MadeProfile, profile: &MipProfile, losses: &[String], args: &UseArgs) {
    let called = profile
        .functions
        .iter()
        .filter(|function| function.is_covered())
        .count();
    if args.format == Format::Json {
        let report = serde_json::json!({
            "schema": "profkit-mip-use-samples",
            "schema_version": 1,
            "functions": samples.profile.functions().len(),
            "called": called,
            "without_lines": samples.without_lines,
            "without_start": samples.without_start,
            "edges_without_lines": samples.edges_without_lines,
            "losses": losses,
        });
        print::say(format_args!("{report:#}"));
        return;
    }
    let name = profkit_data::path_text(&args.output);
    for loss in losses {
        print::say(format_args!("warning: {}: {loss}", output_name(&name)));
    }
    print::say(format_args!(
        "{} functions in the sample profile, of {called} that were called",
        samples.profile.functions().len()
    ));
    for (count, what) in [
        (
            samples.without_lines,
            "functions have no lines in the debug info",
        ),
        (
            samples.without_start,
            "functions have no source line at their start: compile with -fdebug-info-for-profiling",
        ),
        (
            samples.edges_without_lines,
            "call edges have no source line",
        ),
    ] {
        if count > 0 {
            print::say(format_args!("{count} {what}"));
        }
    }
}

fn open(path: &Path) -> Result<BinaryFile> {
    BinaryFile::open(path)
        .map_err(|error| Failure::io("cannot be read", profkit_data::path_text(path), &error))
}

fn failure(path: &Path, error: &profkit_data::Error) -> Failure {
    Failure::file(profkit_data::path_text(path), error)
}
