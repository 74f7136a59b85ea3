//! Printing for all commands: outputs that escape the control characters of file contents, have colours where the
//! terminal has them, and go through a pager if the text is long.
mod annotate;
mod outputs;
mod pager;

pub use annotate::AnnotateArgs;
pub use outputs::{answer, json_stderr, notes, say, stdout, stdout_for, tell, tell_as, wrote};
pub use profkit_report::{Console, grouped, plural};

use crate::call;
use crate::choice::choices;
use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use profkit_report::{BarStyle, Look, RowForm};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OutputArgs {
    /// Colour text: auto (on a terminal; NO_COLOR and CLICOLOR_FORCE change this), always or never
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_possible_values = true,
        help_heading = "Output"
    )]
    color: When,

    /// Print long texts on a terminal at once, without the pager ($PAGER, or less)
    #[arg(long, global = true, help_heading = "Output")]
    no_pager: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl When {
    fn set(self) {
        let choice = match self {
            When::Auto => ColorChoice::Auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Whether long texts go through a pager. The value is set when the command line is parsed. Before that, no text goes
/// through a pager.
static PAGES: OnceLock<bool> = OnceLock::new();

fn uses_pager() -> bool {
    PAGES.get().copied().unwrap_or(false)
}

impl OutputArgs {
    pub fn apply(self) {
        self.color.set();
        // The result can be ignored: the command line is parsed only once, so `PAGES` is not set yet.
        let _ = PAGES.set(!self.no_pager);
    }
}

/// Applies `--color` before the command line is parsed: help and messages about wrong options are printed during
/// parsing.
pub fn apply_colour(args: &[OsString]) {
    let args = args.iter().take_while(|arg| *arg != "--");
    let mut texts = args.filter_map(|arg| arg.to_str());
    while let Some(arg) = texts.next() {
        let value = match arg.strip_prefix("--color") {
            Some("") => texts.next(),
            Some(value) => value.strip_prefix('='),
            None => continue,
        };
        if let Some(when) = value.and_then(|value| When::from_str(value, false).ok()) {
            when.set();
        }
    }
}

fn stdout_look() -> Look {
    if call::is_active() {
        return Look::default();
    }
    let stdout = io::stdout();
    let width = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal());
    Look {
        colour: AutoStream::choice(&stdout) != ColorChoice::Never,
        width: width.map(|(width, _)| usize::from(width.0)),
        bars: bar_style(),
        ..Look::default()
    }
}

/// Returns how text on standard error looks. Messages are broken at the width of the terminal, and nothing is cut.
fn stderr_look() -> Look {
    if call::is_active() {
        return Look::default();
    }
    let stderr = io::stderr();
    let size = terminal_size::terminal_size_of(&stderr).filter(|_| stderr.is_terminal());
    Look {
        colour: AutoStream::choice(&stderr) != ColorChoice::Never,
        wrap: size.map(|(width, _)| usize::from(width.0)),
        ..Look::default()
    }
}

fn bar_style() -> BarStyle {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    if io::stdout().is_terminal() && (locale.contains("utf-8") || locale.contains("utf8")) {
        BarStyle::Blocks
    } else {
        BarStyle::Ascii
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Markdown,
    Json,
    Rows(RowForm),
}

choices! {
    /// The words of `--format` for answers without rows.
    pub FORMATS: Format =
        "text" => Format::Text, "For people";
        "markdown" => Format::Markdown, "For comments of pull requests and job summaries: at most 61 kB";
        "json" => Format::Json, "For programs";
}

choices! {
    /// The words of `--format` for answers with rows.
    pub ROW_FORMATS: Format =
        "text" => Format::Text, "For people";
        "markdown" => Format::Markdown, "For comments of pull requests and job summaries: at most 61 kB";
        "json" => Format::Json, "For programs: one document";
        "jsonl" => Format::Rows(RowForm::JsonLines), "For programs: a JSON object per row, one per line";
        "csv" => Format::Rows(RowForm::Csv),
            "For spreadsheets: the rows, with the names of the columns in the first line";
}

impl Format {
    /// The form of the rows; `None` for other formats.
    pub fn rows(self) -> Option<RowForm> {
        match self {
            Format::Rows(form) => Some(form),
            Format::Text | Format::Markdown | Format::Json => None,
        }
    }

    /// Whether people read the answer.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Text | Format::Markdown)
    }
}
