//! `profkit doctor`: what files are, which LLVM releases can use them, what is wrong with them, and what to do next.
mod json;
mod text;
mod words;

use crate::exit::{self, Failure, Status, system_hint};
use crate::print::{Format, stdout_for};
use clap::Args;
use profkit_analysis::doctor::{Diagnosis, Verdict, examine, unreadable};
use profkit_data::detect::{FileKind, detect};
use profkit_merge::files::{Input, ReadError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Every record is decoded, names are inflated and hashed, and hash tables and summaries are
checked against the records. In folders, only profiles are examined: files that are profiles
by content, or by name (.profraw, .profdata, .proftext, .memprofraw, .afdo, .mipraw, .mipmap,
.mip).

The exit code is 1 if a file is damaged, missing or not a profile.

Examples:
  profkit doctor default.profraw
  profkit doctor --format json /ci/profiles | jq '.files[] | select(.verdict != \"sound\")'";

/// Arguments of `profkit doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Profiles, or folders of profiles; - is standard input
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Output format; docs/formats/doctor-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// The number of files per verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    sound: u64,
    damaged: u64,
    unsupported: u64,
    unreadable: u64,
    /// The number of files in folders that were skipped, because they are not profiles.
    passed_over: u64,
}

/// Examines files and folders.
///
/// # Errors
/// If standard output cannot be written. Faults of files are not errors of this function: they are printed.
pub fn run(args: &DoctorArgs) -> exit::Result {
    let mut reporter = Reporter {
        format: args.format,
        out: stdout_for(args.format),
        counts: Counts::default(),
        files: 0,
    };
    reporter
        .all(&args.paths)
        .map_err(|error| Failure::print(&error))?;
    Ok(match reporter.counts.damaged + reporter.counts.unreadable {
        0 => Status::Done,
        _ => Status::InputBad,
    })
}

struct Reporter<W> {
    format: Format,
    out: W,
    counts: Counts,
    files: u64,
}

impl<W: io::Write> Reporter<W> {
    fn all(&mut self, paths: &[PathBuf]) -> io::Result<()> {
        if self.format == Format::Json {
            json::begin(&mut self.out)?;
        }
        for path in paths {
            if path.is_dir() {
                self.folder(path)?;
            } else {
                self.file(path)?;
            }
        }
        match self.format {
            Format::Json => json::end(&mut self.out, self.counts)?,
            Format::Text => text::end(&mut self.out, self.counts)?,
        }
        self.out.flush()
    }

    /// Examines the files and subfolders of a folder, sorted by name with files first. Links to folders are not
    /// followed.
    fn folder(&mut self, folder: &Path) -> io::Result<()> {
        let entries = std::fs::read_dir(folder).and_then(|entries| {
            let entries = entries.map(|entry| {
                let entry = entry?;
                Ok((entry.file_type()?.is_dir(), entry.path()))
            });
            entries.collect::<io::Result<Vec<_>>>()
        });
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                let diagnosis = unreadable(&error, system_hint(folder, &error));
                return self.report(&profkit_data::path_text(folder), &diagnosis);
            }
        };
        entries.sort();
        for (is_folder, path) in entries {
            if is_folder {
                self.folder(&path)?;
            } else if is_candidate(&path) {
                self.file(&path)?;
            } else {
                self.counts.passed_over += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        match Input::open(path) {
            Ok(input) => self.report(input.name(), &examine(&input)),
            Err(ReadError { name, error }) => {
                self.report(&name, &unreadable(&error, system_hint(path, &error)))
            }
        }
    }

    fn report(&mut self, name: &str, diagnosis: &Diagnosis) -> io::Result<()> {
        *match diagnosis.verdict {
            Verdict::Sound => &mut self.counts.sound,
            Verdict::Damaged => &mut self.counts.damaged,
            Verdict::Unsupported => &mut self.counts.unsupported,
            Verdict::Unreadable => &mut self.counts.unreadable,
        } += 1;
        let first = self.files == 0;
        self.files += 1;
        match self.format {
            Format::Json => json::file(&mut self.out, name, diagnosis, first),
            Format::Text => text::file(&mut self.out, name, diagnosis, first),
        }
    }
}

/// Whether a file in a folder is examined. All files with the extension of a profile are examined, and other files if
/// they begin with the magic of a profile.
fn is_candidate(path: &Path) -> bool {
    const EXTENSIONS: [&str; 8] = [
        "afdo",
        "profraw",
        "profdata",
        "proftext",
        "memprofraw",
        "mipraw",
        "mipmap",
        "mip",
    ];
    if path
        .extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
    {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .and_then(|_| std::fs::File::open(path).ok())
        .and_then(|file| file.take(64).read_to_end(&mut head).ok());
    let kind = detect(&head);
    // A file without the extension of a profile is examined only if it begins with the magic of a profile. Text
    // profiles and MIP maps have no magic, so they are examined only if they have the extension.
    read.is_some() && kind.family().is_some() && !kind.is_text() && kind != FileKind::MipMap
}
