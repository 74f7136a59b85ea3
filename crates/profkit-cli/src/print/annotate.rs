//! `--annotate`: messages in the form that a build server shows beside a job.
use crate::exit::Result;
use crate::print;
use clap::{Args, ValueEnum};
use profkit_report::annotations::Annotations;

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AnnotateArgs {
    /// Write problems to standard error also in the form that a build server shows beside the job
    ///
    /// github: workflow commands (::error, ::warning), at most ten of each, for files that are dropped or damaged, bounds
    /// that do not hold, and functions whose counts are stale. Standard output stays as it is.
    #[arg(long, value_enum, value_name = "SERVER")]
    annotate: Option<Annotate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Annotate {
    /// GitHub Actions
    Github,
}

impl AnnotateArgs {
    /// Writes annotations, if the option is given. They go to standard error, so that profiles and JSON on standard
    /// output stay clean. GitHub reads annotations from standard error too.
    pub fn write(self, fill: impl FnOnce(&mut Annotations)) {
        let Some(Annotate::Github) = self.annotate else {
            return;
        };
        let mut list = Annotations::default();
        fill(&mut list);
        list.lines().into_iter().for_each(print::say);
    }

    /// Writes an annotation about a bound that does not hold; `None` if it holds.
    pub fn gate(self, title: &str, reason: Option<&str>) {
        self.write(|list| {
            if let Some(reason) = reason {
                list.error(title, reason);
            }
        });
    }

    pub fn failure(self, title: &str, result: Result) -> Result {
        if let Err(failure) = &result {
            self.write(|list| {
                let messages = failure.messages().iter();
                messages.for_each(|message| list.error(title, message));
            });
        }
        result
    }
}
