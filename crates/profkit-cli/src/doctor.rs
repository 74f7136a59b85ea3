//! `profkit doctor`: what files are, which LLVM releases can use them, what is wrong with them, and what to do next.
use crate::choice::choice;
use crate::exit::{self, Failure, Status, system_hint};
use crate::merge::progress::Progress;
use crate::print::{AnnotateArgs, FORMATS, Format, notes, plural, say, stdout_for};
use clap::{Args, ValueEnum};
use profkit_analysis::doctor::{Diagnosis, Group, Groups, Survey};
use profkit_data::path_text;
use profkit_merge::Threads;
use profkit_report::annotations::Annotations;
use profkit_report::doctor::{self, json};
use profkit_report::quoted;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Every record is decoded, names are inflated and hashed, and hash tables and summaries are
checked against the records. In folders and archives, only profiles are examined: files that
are profiles by content, or by name (.profraw, .profdata, .proftext, .memprofraw, .afdo,
.mipraw, .mipmap, .mip, and these with .gz, .zst or .xz). Like files are one group: the same
kind, version and build, and the same damage. --each and the JSON have every file.

The exit code is 1 if a file is damaged, missing or not a profile, or if no profile is found.

Examples:
  profkit doctor default.profraw
  profkit doctor runs/ --only bad
  profkit doctor runs/ --group 2 | profkit merge -f - -o merged.profdata
  profkit doctor runs/ --annotate github
  profkit doctor --format json /ci/profiles | jq '.files[] | select(.verdict != \"sound\")'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// Profiles, folders or archives of profiles; - is standard input
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// Print one block per file instead of one per group of like files
    #[arg(long)]
    pub each: bool,

    /// Print only the paths of the files of this group, one per line, as profkit merge -f - reads them
    #[arg(long, value_name = "N", conflicts_with_all = ["each", "only", "format"])]
    pub group: Option<NonZeroUsize>,

    /// Print only files of this kind; the totals still count all files
    #[arg(long, value_enum, value_name = "WHICH")]
    pub only: Option<Only>,

    /// Output format; docs/formats/doctor-json.md describes the JSON
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    pub format: Format,

    #[command(flatten)]
    pub annotate: AnnotateArgs,

    /// Threads to use; by default one per core
    #[arg(short = 'j', long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Only {
    /// Files that are damaged, cannot be read or are not profiles
    Bad,
}

pub fn run(args: &DoctorArgs) -> exit::Result {
    report(args).map_err(|error| Failure::print(&error))
}

fn report(args: &DoctorArgs) -> io::Result<Status> {
    let survey = Survey::new(&args.paths);
    let progress = Progress::new(survey.len(), true);
    notes(survey.notes());
    let mut out = stdout_for(args.format);
    let mut groups = Groups::default();
    let mut printed = 0;
    let mut annotations = Annotations::default();
    if args.format == Format::Json {
        json::begin(&mut out)?;
    }
    let mut each = |name: &str, diagnosis: Diagnosis| {
        annotations.file(name, &diagnosis);
        if args.format.is_for_people() && !args.each {
            groups.add(name, diagnosis);
            return Ok(());
        }
        if args.only.is_some() && !diagnosis.verdict.is_bad() {
            return Ok(());
        }
        printed += 1;
        match args.format {
            Format::Json => json::file(&mut out, name, &diagnosis, printed == 1),
            _ => {
                if printed > 1 {
                    writeln!(out)?;
                }
                doctor::file(name, &diagnosis).print(&mut out)
            }
        }
    };
    let hint = |path: &_, error: &_| system_hint(path, error);
    let threads = Threads::new(args.threads);
    let counts = survey.examine(&threads, &hint, &|bytes| progress.step(bytes), &mut each)?;
    progress.finish(threads.count());
    let is_selected = |group: &Group| args.only.is_none() || group.is_bad();
    let groups = groups.finish();
    if let Some(number) = args.group {
        let group = groups.get(number.get() - 1);
        if group.is_none() {
            let are = if groups.len() == 1 { "is" } else { "are" };
            let all = plural(groups.len() as u64, "group");
            say(format_args!(
                "error: --group {number}: there {are} only {all}"
            ));
        }
        for name in group.iter().flat_map(|group| &group.names) {
            writeln!(out, "{name}")?;
        }
        out.flush()?;
        return Ok(match group {
            Some(_) => Status::Done,
            None => Status::InputBad,
        });
    }
    let paths: Vec<_> = args
        .paths
        .iter()
        .map(|path| quoted(&path_text(path)))
        .collect();
    let paths = paths.join(" ");
    for group in groups.into_iter().filter(is_selected) {
        if printed > 0 {
            writeln!(out)?;
        }
        printed += 1;
        doctor::group(&group, counts, &paths).print(&mut out)?;
    }
    match args.format {
        Format::Json => json::end(&mut out, counts)?,
        _ => doctor::end(counts, printed > 0).print(&mut out)?,
    }
    out.flush()?;
    args.annotate.write(|list| *list = annotations);
    Ok(match (counts.files(), counts.bad()) {
        (1.., 0) => Status::Done,
        _ => Status::InputBad,
    })
}
