//! Reports which raw profile belongs to which binary, as text and as JSON.
use crate::Document;
use profkit_analysis::correlate::{Assignment, Plan};
use profkit_data::numbers::plural;
use serde::Serialize;

const MOST_NAMED: usize = 3;

/// The report of a correlation plan: which binary or debug file supplies the metadata of each raw profile.
#[derive(Clone, Debug, Serialize)]
pub struct CorrelationReport {
    /// The number of inputs that need no binary.
    pub complete_inputs: u64,
    /// The number of inputs that hold only counters, so that they need a binary.
    pub bare_inputs: u64,
    /// One entry per program.
    pub programs: Vec<ProgramReport>,
}

/// The profiles of one program, and the binary that belongs to them.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramReport {
    /// The build ids that the profiles state.
    pub build_ids: Vec<String>,
    /// The source of the metadata of the functions: `binary` or `debug-info`.
    pub metadata: &'static str,
    /// The inputs that hold the program's profiles.
    pub inputs: Vec<String>,
    /// The file that supplies the function records: a binary or a debug file. `None` if none can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// The number of functions in the file `binary`; `None` if there is no such file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<u64>,
    /// Warnings about the file `binary`, in LLVM's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The number of further warnings, which `warnings` does not list.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_warnings: u64,
    /// The reason why no binary can be used; `None` if one is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A hint about the next step for the user; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl CorrelationReport {
    /// Makes the report of a plan. `name` returns the name of an input.
    pub fn new<'a>(plan: &Plan, name: impl Fn(usize) -> &'a str) -> Self {
        let program = |assignment: &Assignment| {
            let outcome = assignment.outcome.as_ref();
            let matched = outcome.ok();
            let error = outcome.err();
            let inputs = assignment.inputs.iter();
            ProgramReport {
                build_ids: assignment.ids.iter().map(ToString::to_string).collect(),
                metadata: if assignment.debug_info {
                    "debug-info"
                } else {
                    "binary"
                },
                inputs: inputs.map(|&input| name(input).to_owned()).collect(),
                binary: matched.map(|matched| profkit_data::path_text(&matched.path)),
                functions: matched.map(|matched| matched.functions as u64),
                warnings: matched.map_or(Vec::new(), |matched| {
                    let warnings = matched.warnings.list.iter();
                    warnings.map(ToString::to_string).collect()
                }),
                more_warnings: matched.map_or(0, |matched| matched.warnings.suppressed),
                error: error.map(ToString::to_string),
                hint: error.and_then(|error| error.hint().map(str::to_owned)),
            }
        };
        CorrelationReport {
            complete_inputs: plan.complete_inputs,
            bare_inputs: plan.bare_inputs,
            programs: plan.assignments.iter().map(program).collect(),
        }
    }

    /// The text for people.
    pub fn document(&self) -> Document {
        let mut document = Document::default();
        for program in &self.programs {
            let ids = match program.build_ids.as_slice() {
                [] => "no build id".to_owned(),
                ids => ids.join(", "),
            };
            let (named, more) = program
                .inputs
                .split_at(program.inputs.len().min(MOST_NAMED));
            let more = match more.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            document.line(format_args!("{ids}: {}{more}", named.join(", ")));
            if let Some(binary) = &program.binary {
                let (functions, metadata) = (program.functions.unwrap_or(0), program.metadata);
                document.line(format_args!(
                    "    {binary} ({}, {metadata})",
                    plural(functions, "function")
                ));
            } else {
                let error = program.error.as_deref().unwrap_or("no binary");
                document.line(format_args!("    no binary: {error}"));
                if let Some(hint) = &program.hint {
                    document.line(format_args!("    hint: {hint}"));
                }
            }
            for warning in &program.warnings {
                document.line(format_args!("    warning: {warning}"));
            }
            if let more @ 1.. = program.more_warnings {
                document.line(format_args!("    warning: and {more} more"));
            }
        }
        let joined = self
            .programs
            .iter()
            .filter(|program| program.binary.is_some());
        document.line(format_args!(
            "binaries found for {} of {} programs; {} inputs need a binary, {} do not",
            joined.count(),
            self.programs.len(),
            self.bare_inputs,
            self.complete_inputs
        ));
        document
    }
}
