//! Diagnoses in words: what a file is, and which command to run next.
use profkit_analysis::doctor::{Advice, MipContents, What};
use profkit_data::sample::SampleEncoding;
use profkit_data::sample::gcov::GcovVersion;
use profkit_report::quoted;
use profkit_report::show::text::describe;

/// Describes what a file is.
pub fn what(what: &What) -> String {
    match what {
        What::Missing => "no such file".to_owned(),
        What::Unreadable => "not readable".to_owned(),
        What::Empty => "empty file".to_owned(),
        What::Unknown => "not a profile of a known kind".to_owned(),
        What::ObjectFile => "program or object file, not a profile".to_owned(),
        What::Text => "text, but no profile that can be read".to_owned(),
        What::Instr(facts) => describe(facts),
        What::BrokenRaw(version) => format!("raw profile{}", version_text(*version)),
        What::BrokenIndexed => "indexed profile".to_owned(),
        What::HeapRaw(version) => format!(
            "raw heap profile (MemProf){}; only the header is examined",
            version_text(*version)
        ),
        What::Other(kind) => format!("{}, not a profile", without_article(kind.description())),
        What::MipYaml => "MIP profile, YAML, not examined further".to_owned(),
        What::HeapYaml => "heap profile (MemProf), YAML, not examined further".to_owned(),
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

fn sample(encoding: Option<SampleEncoding>, version: u64, gcov: Option<GcovVersion>) -> String {
    match (encoding, gcov) {
        (Some(SampleEncoding::Text), _) => "sample profile, text".to_owned(),
        (Some(SampleEncoding::Binary), _) => format!("sample profile, binary version {version}"),
        (Some(SampleEncoding::CompactBinary), _) => {
            format!("sample profile, compact binary version {version} (LLVM 7 to 16)")
        }
        (Some(SampleEncoding::ExtBinary), _) => {
            format!("sample profile, extensible binary version {version}")
        }
        (_, Some(version)) => {
            let gcc = match version {
                GcovVersion::V1 => " (GCC 5 to 11)",
                GcovVersion::V2 => " (GCC 12 to 15)",
                GcovVersion::V3 => " (GCC 16)",
                _ => "",
            };
            format!("GCC's sample profile version {version}{gcc}")
        }
        _ => "sample profile".to_owned(),
    }
}

/// Returns a command to run next for the file `name`, and the purpose of the command.
pub fn command(advice: Advice, name: &str) -> (String, &'static str) {
    let name = quoted(name);
    match advice {
        Advice::RunProgram => (
            "profkit doctor default.profraw".to_owned(),
            "after the program has run: it writes this file unless LLVM_PROFILE_FILE names another",
        ),
        Advice::ShowHeap => (
            format!("profkit show {name} --binaries PROGRAM"),
            "with the program and libraries that ran",
        ),
        Advice::RunAgain => (
            "LLVM_PROFILE_FILE=again.profraw PROGRAM".to_owned(),
            "run the program again: nothing of this file can be kept",
        ),
        Advice::MergeAgain => (
            "profkit merge *.profraw -o merged.profdata".to_owned(),
            "merge the raw profiles again: nothing of this file can be kept",
        ),
        Advice::Correlate => (
            format!("profkit merge {name} --binaries PROGRAM -o merged.profdata"),
            "the program that ran, or its debug info, has the list of functions that the profile lacks",
        ),
        Advice::KeepSound => (
            format!("profkit merge {name} -o merged.profdata"),
            "keeps the sound parts, and reports the rest",
        ),
        Advice::ShowHot => (
            format!("profkit show --top 20 {name}"),
            "shows the hottest functions",
        ),
        Advice::ForOlderRelease => (
            format!("profkit merge --llvm 19 {name} -o merged.profdata"),
            "makes a profile for an older LLVM, here 19",
        ),
        Advice::ForCompiler => (
            format!("profkit merge {name} -o merged.profdata"),
            "makes a profile for a compiler",
        ),
        Advice::ConvertSamples { from_text } => {
            let to = if from_text {
                "samples.profdata"
            } else {
                "samples.proftext"
            };
            (
                format!("profkit convert {name} -o {to}"),
                "writes it in another encoding",
            )
        }
        Advice::MipRunAgain => (
            "LLVM_MIP_PROFILE_FILENAME=again.mipraw PROGRAM".to_owned(),
            "run the program again: nothing of this file can be kept",
        ),
        Advice::MipMerge => (
            format!("profkit mip merge -p program.mip --binary PROGRAM {name}"),
            "merges it into the profile of its build",
        ),
        Advice::MipExtractMap => (
            "objcopy --dump-section __llvm_mipmap=again.mipmap PROGRAM".to_owned(),
            "extract the map from the unstripped program again",
        ),
        Advice::MipCreate => (
            format!("profkit mip create -p program.mip {name}"),
            "makes an empty profile to merge raw files into",
        ),
        Advice::MipMergeAgain => (
            "profkit mip merge -p again.mip --binary PROGRAM *.mipraw".to_owned(),
            "merge the raw files again: nothing of this file can be kept",
        ),
        Advice::MipShow => (
            format!("profkit mip show -p {name}"),
            "shows the results of the runs, function by function",
        ),
    }
}
