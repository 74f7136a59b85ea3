//! `profkit match` of heap profiles: which allocation contexts binaries still have.
use super::{MatchArgs, programs_of};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, must_exist};
use crate::memprof::heap::Heap;
use crate::print;
use profkit_analysis::heap::{FrameRule, HeapMatch, ProgramFrames, is_heap_alone};
use profkit_analysis::names::Spelling;
use profkit_data::detect::{FileKind, detect};
use profkit_data::path_text;
use profkit_merge::files::Input;
use profkit_object::debug_files::DebugFolders;
use profkit_report::heap::{HeapMatchReport, HeapView};
use profkit_report::quoted;

/// Whether a profile is compared as a heap profile: it is nothing else, or it was asked for.
pub fn is_heap(args: &MatchArgs, input: &Input) -> bool {
    args.memory || is_heap_profile(input)
}

/// Whether a file is a heap profile and nothing else.
pub fn is_heap_profile(data: &[u8]) -> bool {
    detect(data).is_memprof() || is_heap_alone(data)
}

pub fn compare(args: &MatchArgs, input: &Input) -> exit::Result {
    let is_raw = detect(input) == FileKind::MemProfRaw;
    let binaries = match is_raw {
        true => programs_of(args),
        false => BinaryArgs::default(),
    };
    let shown = Heap::open(&binaries, input, FrameRule::Compiler).map_err(|failure| match is_raw {
        true => {
            let profile = quoted(input.name());
            failure.with_hint(format_args!(
                "a raw heap profile holds addresses, which only the build that ran can explain: name it too, or write a profile with functions first: `profkit merge {profile} --binaries PROGRAM --portable -o heap.profdata`"
            ))
        }
        false => failure,
    })?;
    let folders = DebugFolders {
        folders: args.debug_file_directory.clone(),
    };
    let mut programs = ProgramFrames::wanted_by(&shown.heap.profile);
    for path in &args.binaries {
        must_exist(path)?;
        let opened = programs.open(path, &folders);
        opened.map_err(|error| Failure::file(path_text(path), &error))?;
    }
    if programs.programs.is_empty() {
        let failure =
            Failure::input("none of the binaries has debug info, by which frames are found");
        let reasons = programs.skipped.iter().take(3);
        let reasons = reasons.map(|(path, reason)| format!("{path}: {reason}"));
        return Err(reasons.fold(failure, Failure::with_hint));
    }
    let mut heap = shown;
    // The names that the binaries have make the report readable.
    heap.heap.complete(&programs);
    let result = HeapMatch::new(&heap.heap, &programs);
    let spelling = match args.mangled {
        true => Spelling::Mangled,
        false => Spelling::default(),
    };
    let report = HeapMatchReport {
        view: HeapView {
            whole_stacks: true,
            ..heap.view(input, spelling)
        },
        programs: &programs,
        result: &result,
        top: args.top,
    };
    print::answer(&report, args.format)?;
    let reason = args.fail_under.and_then(|least| report.gate(least));
    args.annotate.write(|list| {
        *list = report.annotations();
        if let Some(reason) = &reason {
            list.error("profkit match: --fail-under", reason);
        }
    });
    match exit::gate(args.format, ("--fail-under", args.fail_under), reason)? {
        Some(status) => Ok(status),
        None => Heap::finish(&[(input, &heap)]),
    }
}
