//! `profkit doctor`: what files are, which LLVM releases can use them, what is wrong with them, and what to do next.
mod json;
mod text;
mod words;

use crate::exit::{self, Failure, Status, system_hint};
use crate::io::input_note;
use crate::print::{Format, stdout_for};
use clap::Args;
use profkit_analysis::doctor::{Diagnosis, Verdict, examine, is_candidate, unreadable};
use profkit_data::stored::ArchiveFormat;
use profkit_merge::Inputs;
use profkit_merge::files::{Input, InputList, InputNote, ReadError};
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Every record is decoded, names are inflated and hashed, and hash tables and summaries are
checked against the records. In folders, only profiles are examined: files that are profiles
by content, or by name (.profraw, .profdata, .proftext, .memprofraw, .afdo, .mipraw, .mipmap,
.mip; compressed ones too, as .profraw.gz), and archives (.tar, .tar.gz, .zip, …), of which all
files are examined.

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

    /// Examines a file, or each file of an archive.
    fn file(&mut self, path: &Path) -> io::Result<()> {
        let members = [path.as_os_str().to_owned()];
        if path.file_name().is_some_and(ArchiveFormat::is_named_so)
            && let Ok(members) = InputList::collect(&members, &[], None)
        {
            return self.members(path, &members);
        }
        match Input::open(path) {
            Ok(input) => self.bytes(input.name(), &input, input.problem()),
            Err(ReadError { name, error }) => {
                self.report(&name, &unreadable(&error, system_hint(path, &error)))
            }
        }
    }

    fn members(&mut self, path: &Path, members: &InputList) -> io::Result<()> {
        for index in 0..members.len() {
            let name = members.name(index);
            match members.open(index, &mut Vec::new()) {
                Ok(data) => self.bytes(&name, data.as_ref(), data.problem())?,
                Err(error) => {
                    self.report(&name, &unreadable(&error, system_hint(path, &error)))?;
                }
            }
        }
        for note in &members.notes {
            let (problem, hint) = match note {
                InputNote::DamagedArchive { problem, hint, .. } => (problem.clone(), *hint),
                _ => (
                    input_note(note),
                    "put profiles into it, or give another file",
                ),
            };
            let diagnosis = unreadable(&io::Error::other(problem), Some(hint.to_owned()));
            self.report(&profkit_data::path_text(path), &diagnosis)?;
        }
        Ok(())
    }

    fn bytes(&mut self, name: &str, data: &[u8], problem: Option<&str>) -> io::Result<()> {
        let mut diagnosis = examine(data);
        if let Some(problem) = problem {
            diagnosis.cut(problem);
        }
        self.report(name, &diagnosis)
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
