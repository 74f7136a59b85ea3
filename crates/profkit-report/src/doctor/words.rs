//! Diagnoses in words: what a file is, and which command to run next.
use crate::quoted;
use crate::show::text::describe;
use profkit_analysis::doctor::{Advice, Diagnosis, Member, MipContents, Verdict, What};
use profkit_data::sample::SampleEncoding;
use profkit_data::sample::gcov::GcovVersion;
use std::ffi::OsStr;
use std::path::Path;

/// Describes what a file is.
pub fn what(what: &What) -> String {
    match what {
        What::Missing => "no such file".to_owned(),
        What::Unreadable => "not readable".to_owned(),
        What::Empty => "empty file".to_owned(),
        What::Unknown => "not a profile of a known kind".to_owned(),
        What::ObjectFile => format!("{OBJECT_FILE}, not a profile"),
        What::Text => "text, but no profile that can be read".to_owned(),
        What::Instr(facts) => describe(facts),
        What::BrokenRaw(version) => format!("raw profile{}", version_text(*version)),
        What::BrokenIndexed => "indexed profile".to_owned(),
        What::Part(None) => "part of a merge".to_owned(),
        What::Part(Some(1)) => "part of a merge, 1 input".to_owned(),
        What::Part(Some(inputs)) => format!("part of a merge, {inputs} inputs"),
        What::HeapRaw(version) => {
            format!("raw heap profile (MemProf){}", version_text(*version))
        }
        What::Other(kind) => format!("{}, not a profile", without_article(kind.description())),
        What::MipYaml => "MIP profile, YAML".to_owned(),
        What::HeapYaml => "heap profile (MemProf), YAML".to_owned(),
        What::Sample {
            encoding,
            version,
            gcov,
        } => sample(*encoding, *version, *gcov),
        What::Mip {
            kind,
            version,
            contents,
        } => {
            let Some(kind) = kind else {
                return "MIP file".to_owned();
            };
            let file = format!("MIP {} version {version}", kind.name());
            match contents {
                MipContents::Nothing => file,
                MipContents::Runs(1) => format!("{file}, 1 run"),
                MipContents::Runs(runs) => format!("{file}, {runs} runs"),
                MipContents::Functions(functions) => format!("{file}, {functions} functions"),
                MipContents::Covered { functions, covered } => {
                    format!("{file}, {covered} of {functions} functions covered")
                }
            }
        }
    }
}

/// The verdict in words.
pub fn verdict(diagnosis: &Diagnosis) -> &'static str {
    match diagnosis.verdict {
        Verdict::Sound => "sound",
        Verdict::Damaged => "DAMAGED",
        Verdict::Unsupported => "not supported so far",
        Verdict::NeedsProgram => "needs its program",
        Verdict::Foreign => "not a profile",
        Verdict::Unreadable if diagnosis.what == What::Missing => "does not exist",
        Verdict::Unreadable => "cannot be read",
    }
}

/// The kind and the build of a file in a few words: "raw profile version 10 of build 5fe60682…".
pub fn short(diagnosis: &Diagnosis) -> String {
    let ids = &diagnosis.binary_ids;
    let mut text = short_kind(&diagnosis.what);
    if let Some(id) = ids.first() {
        let id: String = id.to_string().chars().take(12).collect();
        text += &format!(" of build {id}…");
    }
    if ids.len() > 1 {
        text += &format!(" and {} more", ids.len() - 1);
    }
    text
}

/// Does the same as [`what`], but without the releases that wrote the file, the machine, and the words "not a profile".
fn short_kind(kind: &What) -> String {
    match kind {
        What::ObjectFile => OBJECT_FILE.to_owned(),
        What::Other(kind) => without_article(kind.description()).to_owned(),
        What::Instr(facts) => {
            format!("{} profile{}", facts.form, version_text(facts.version))
        }
        What::Sample {
            encoding: Some(SampleEncoding::CompactBinary),
            version,
            ..
        } => compact_binary(*version),
        _ => what(kind),
    }
}

const OBJECT_FILE: &str = "program or object file";

fn compact_binary(version: u64) -> String {
    format!("sample profile, compact binary version {version}")
}

fn without_article(description: &str) -> &str {
    let articles = ["a ", "an "];
    let name = articles
        .iter()
        .find_map(|article| description.strip_prefix(article));
    name.unwrap_or(description)
}

fn version_text(version: Option<impl std::fmt::Display>) -> String {
    version.map_or(String::new(), |version| format!(" version {version}"))
}

/// The releases of GCC that read a version of its sample profiles. `None` for the versions of Google's GCC.
pub fn gcc_releases(version: GcovVersion) -> Option<&'static str> {
    match version {
        GcovVersion::V1 => Some("GCC 5 to 11"),
        GcovVersion::V2 => Some("GCC 12 to 15"),
        GcovVersion::V3 => Some("GCC 16"),
        GcovVersion::Gcc46 | GcovVersion::Gcc47 => None,
    }
}

fn sample(encoding: Option<SampleEncoding>, version: u64, gcov: Option<GcovVersion>) -> String {
    match (encoding, gcov) {
        (Some(SampleEncoding::Text), _) => "sample profile, text".to_owned(),
        (Some(SampleEncoding::Binary), _) => format!("sample profile, binary version {version}"),
        (Some(SampleEncoding::CompactBinary), _) => {
            format!("{} (LLVM 7 to 16)", compact_binary(version))
        }
        (Some(SampleEncoding::ExtBinary), _) => {
            format!("sample profile, extensible binary version {version}")
        }
        (_, Some(version)) => {
            let gcc = gcc_releases(version).map(|releases| format!(" ({releases})"));
            let gcc = gcc.unwrap_or_default();
            format!("GCC's sample profile version {version}{gcc}")
        }
        _ => "sample profile".to_owned(),
    }
}

/// The names of files, quoted for a shell and separated by blanks.
pub fn joined(members: &[Member]) -> String {
    let names: Vec<_> = members.iter().map(|member| quoted(&member.name)).collect();
    names.join(" ")
}

/// Whether a command that writes this file would replace one of the files that it reads.
fn is_among(output: &str, name: &str, all: &str) -> bool {
    let is_it =
        |word: &str| Path::new(word.trim_matches('\'')).file_name() == Some(OsStr::new(output));
    is_it(name) || all.split(' ').any(is_it)
}

/// Returns a command to run next, and its purpose. `first` is the name of the first file, `all` are those of all files,
/// quoted for a shell; `list` stands before a command that names all. `complete` is a complete profile of the program.
pub fn command(
    advice: Advice,
    first: &str,
    (all, list): (&str, &str),
    complete: Option<&str>,
) -> (String, &'static str) {
    let name = quoted(first);
    let archive = first.split_once('!').map_or(first, |(archive, _)| archive);
    let (template, purpose) = template(advice);
    let mut command = String::new();
    for piece in template.split(['{', '}']) {
        let output = piece.strip_prefix(" -o ").map(str::trim_end);
        match piece {
            _ if output.is_some_and(|output| is_among(output, &name, all)) => {
                let output = output.unwrap_or_default();
                command += &format!(" -o new-{output}");
            }
            "name" => command += &name,
            "all" => command = format!("{list}{command}{all}"),
            "archive" => command += &quoted(archive),
            "program" => command += &program(&name),
            "complete" => {
                command += &complete.map_or_else(|| "COMPLETE.profraw".to_owned(), quoted);
            }
            text => command += text,
        }
    }
    (command, purpose)
}

/// A command and its purpose. `{name}`, `{all}`, `{complete}`, `{archive}` and `{program}` stand for quoted names.
fn template(advice: Advice) -> (&'static str, &'static str) {
    match advice {
        Advice::RunProgram => (
            "LLVM_PROFILE_FILE=new.profraw {program} && profkit doctor new.profraw",
            "a program that was built with -fprofile-generate writes its profile when it ends",
        ),
        Advice::RunMipProgram => (
            "LLVM_MIP_PROFILE_FILENAME=new.mipraw {program} && profkit mip merge -p new.mip --binary {name} new.mipraw",
            "a program that was built with profkit mip cc writes its profile when it ends",
        ),
        Advice::ShowHeap => (
            "profkit show {name} --binaries PROGRAM",
            "with the program and libraries that ran",
        ),
        Advice::RunAgain => (
            "LLVM_PROFILE_FILE=again.profraw ./PROGRAM",
            "run the program again: nothing of this file can be kept",
        ),
        Advice::HeapRunAgain => (
            "MEMPROF_OPTIONS=log_path=again ./PROGRAM",
            "run the program again: nothing of this file can be kept",
        ),
        Advice::MergeAgain => (
            "profkit merge *.profraw -o merged.profdata",
            "merge the raw profiles again: nothing of this file can be kept",
        ),
        Advice::Correlate => (
            "profkit merge {all} --binaries PROGRAM -o merged.profdata",
            "the program that ran, or its debug info, has the list of functions that the profile lacks",
        ),
        Advice::KeepSoundHeap => (
            "profkit merge {all} --binaries PROGRAM -o merged.profdata",
            "keeps the sound dumps, and reports the rest; the program that ran has the names of their functions",
        ),
        Advice::KeepSound => (
            "profkit merge {all} -o merged.profdata",
            "keeps the sound parts, and reports the rest",
        ),
        Advice::KeepWithComplete => (
            "profkit merge {complete} {all} -o merged.profdata",
            "names of functions are lost: a complete profile of the same program has them",
        ),
        Advice::Show => ("profkit show {name}", "shows what is in it"),
        Advice::ShowHot => (
            "profkit show --top 20 {name}",
            "shows the hottest functions",
        ),
        Advice::MergeArchive => (
            "profkit merge {archive} -o merged.profdata",
            "merges all profiles of the archive",
        ),
        Advice::ForOlderRelease => (
            "profkit merge --llvm 19 {all} -o merged.profdata",
            "makes a profile for an older LLVM, here 19",
        ),
        Advice::ForCompiler => (
            "profkit merge {all} -o merged.profdata",
            "makes a profile for a compiler",
        ),
        Advice::ConvertSamples { from_text: true } => (
            "profkit convert {name} -o samples.profdata",
            "writes it in another encoding",
        ),
        Advice::ConvertSamples { from_text: false } => (
            "profkit convert {name} -o samples.proftext",
            "writes it in another encoding",
        ),
        Advice::MergeSamples => (
            "profkit merge {all} -o samples.profdata",
            "makes one profile for a compiler",
        ),
        Advice::MipRunAgain => (
            "LLVM_MIP_PROFILE_FILENAME=again.mipraw ./PROGRAM",
            "run the program again: nothing of this file can be kept",
        ),
        Advice::MipMerge => (
            "profkit mip merge -p program.mip --binary PROGRAM {all}",
            "merges it into the profile of its build",
        ),
        Advice::MipExtractMap => (
            "objcopy --dump-section __llvm_mipmap=again.mipmap PROGRAM",
            "extract the map from the unstripped program again",
        ),
        Advice::MipCreate => (
            "profkit mip create -p program.mip {name}",
            "makes an empty profile to merge raw files into",
        ),
        Advice::MipMergeAgain => (
            "profkit mip merge -p again.mip --binary PROGRAM *.mipraw",
            "merge the raw files again: nothing of this file can be kept",
        ),
        Advice::MipShow => (
            "profkit mip show -p {name}",
            "shows the results of the runs, function by function",
        ),
        Advice::MipConvert => (
            "profkit mip yaml2mip -p program.mip {name}",
            "turns it into the binary form, which other commands read",
        ),
    }
}

/// Returns a program in the form that a shell needs to start it: `./` is put before a name without a folder.
fn program(quoted: &str) -> String {
    if quoted.contains('/') {
        quoted.to_owned()
    } else {
        format!("./{quoted}")
    }
}
