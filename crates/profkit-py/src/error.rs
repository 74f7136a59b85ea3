//! Errors as Python's exceptions.
use profkit_cli::{Cause, Failure};
use profkit_merge::MergeError;
use profkit_merge::files::ListError;
use profkit_merge::part::PartError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyBytes};
use std::fmt::Display;
use std::io;

/// What an exception holds. Each field is an argument of `profkit.Error`.
#[derive(Debug, Default)]
pub struct Fault {
    message: String,
    kind: String,
    hint: Option<String>,
    offset: Option<u64>,
    structure: Option<String>,
    file: Option<String>,
    errno: Option<i32>,
    report: Option<Vec<u8>>,
}

impl Fault {
    pub fn new(kind: &str, message: impl Display) -> Self {
        Fault {
            kind: kind.to_owned(),
            message: message.to_string(),
            ..Fault::default()
        }
    }

    /// The reason why a command stopped, with its exit code and the report of a merge.
    pub fn of(failure: &Failure, code: u8, report: Option<Vec<u8>>) -> Self {
        let kind = match code {
            2 => "usage",
            3 => "gate",
            _ => "input",
        };
        let fault = Fault {
            hint: (!failure.hints().is_empty()).then(|| failure.hints().join("\n")),
            report,
            ..Fault::new(kind, failure.messages().join("\n"))
        };
        match failure.cause() {
            Some(Cause::Data(name, error)) => fault.within(name, error),
            Some(Cause::System(name, error)) => fault.by_system(name, error),
            Some(Cause::Merge(error)) => fault.by_merge(error),
            None => fault,
        }
    }

    pub fn merge(error: &MergeError) -> Self {
        let report = error.report().map(profkit_report::merge::MergeReport::new);
        Fault {
            hint: error.hint().map(str::to_owned),
            report: report.and_then(|report| serde_json::to_vec(&report).ok()),
            ..Fault::new("input", error)
        }
        .by_merge(error)
    }

    /// Inputs that cannot be found or read.
    pub fn list(error: &ListError) -> Self {
        let fault = Fault {
            hint: error.hint().map(str::to_owned),
            ..Fault::new(if error.is_usage() { "usage" } else { "input" }, error)
        };
        match error {
            ListError::Missing(missing) => match missing.first() {
                Some(first) => fault.by_system(&first.name, &first.error),
                None => fault,
            },
            _ => fault,
        }
    }

    fn within(self, name: &str, error: &profkit_data::Error) -> Self {
        Fault {
            kind: in_snake_case(&format!("{:?}", error.kind())),
            offset: error.offset(),
            structure: error.structure_text(),
            file: Some(name.to_owned()),
            ..self
        }
    }

    fn by_system(self, name: &str, error: &io::Error) -> Self {
        Fault {
            kind: "system".to_owned(),
            file: Some(name.to_owned()),
            errno: error.raw_os_error(),
            ..self
        }
    }

    fn by_merge(self, error: &MergeError) -> Self {
        let kind = match error {
            MergeError::Part(part) => match &**part {
                PartError::Damaged { name, error } => return self.within(name, error),
                PartError::Overlap { .. } => "overlap",
                PartError::OtherOptions { .. } => "other_options",
                PartError::TwoContents { .. } => "two_contents",
                PartError::NoId { .. } => "no_id",
                _ => "part",
            },
            MergeError::NoInputs => "no_inputs",
            MergeError::Groups(..) | MergeError::Kinds { .. } => "groups",
            MergeError::NothingLeft(_) => "nothing_left",
            _ => return self,
        };
        Fault {
            kind: kind.to_owned(),
            ..self
        }
    }

    /// Makes the exception.
    pub fn raise(self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|error| error)
    }

    fn exception(self, py: Python<'_>) -> PyResult<PyErr> {
        let class = match self.kind.as_str() {
            "system" => "FileError",
            _ => "Error",
        };
        let class = py.import("profkit._errors")?.getattr(class)?;
        let report = self.report.map(|report| PyBytes::new(py, &report));
        let more = [
            ("kind", self.kind.into_pyobject(py)?.into_any()),
            ("hint", self.hint.into_pyobject(py)?),
            ("offset", self.offset.into_pyobject(py)?),
            ("structure", self.structure.into_pyobject(py)?),
            ("file", self.file.into_pyobject(py)?),
            ("errno", self.errno.into_pyobject(py)?),
            ("report", report.into_pyobject(py)?),
        ];
        let more = more.into_py_dict(py)?;
        Ok(PyErr::from_value(class.call((self.message,), Some(&more))?))
    }
}

fn in_snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
