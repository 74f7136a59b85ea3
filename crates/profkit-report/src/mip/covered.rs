//! The output of `profkit mip covered`: the functions that a run entered.
use super::place;
use profkit_analysis::names::{printable, spelled};
use profkit_data::mip::{Function, MipProfile};
use profkit_data::tables::Frame;
use std::fmt;
use std::io::{self, Write};

/// What is printed for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoveredForm {
    /// Its name.
    Names,
    /// The names of the functions that are inlined at its start, and its name.
    Frames,
    /// The source files of these functions.
    Paths,
    /// The source files and lines of these functions.
    Lines,
}

/// A MIP profile, and the options for listing the functions that a run entered.
pub struct MipCovered<'a> {
    /// The profile.
    pub profile: &'a MipProfile,
    /// The filter that selects the functions to list.
    pub wanted: &'a dyn Fn(&Function) -> bool,
    /// What is printed for a function.
    pub form: CoveredForm,
    /// Whether names are printed mangled.
    pub mangled: bool,
}

/// The numbers of functions in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoveredCounts {
    /// The number of functions that a run entered.
    pub covered: u64,
    /// The number of listed functions whose source location was asked for and is not known.
    pub without_location: u64,
}

impl fmt::Debug for MipCovered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MipCovered").field(&self.form).finish()
    }
}

impl MipCovered<'_> {
    /// Whether a source location is asked for and the profile has none at all.
    pub fn lacks_locations(&self) -> bool {
        let mut functions = self.profile.functions.iter();
        matches!(self.form, CoveredForm::Paths | CoveredForm::Lines)
            && functions.all(|function| function.location.is_none())
    }

    /// Prints the list.
    pub fn text(&self, out: &mut impl Write) -> io::Result<CoveredCounts> {
        let mut counts = CoveredCounts::default();
        for function in &self.profile.functions {
            if !function.is_covered() || !(self.wanted)(function) {
                continue;
            }
            counts.covered += 1;
            let frames: Vec<_> = self.profile.tables.frames(function.location).collect();
            let is_located = self.form != CoveredForm::Names && !frames.is_empty();
            if is_located {
                for frame in &frames {
                    writeln!(out, "{}", self.line(frame))?;
                }
                continue;
            }
            counts.without_location += u64::from(self.form != CoveredForm::Names);
            if matches!(self.form, CoveredForm::Names | CoveredForm::Frames) {
                writeln!(out, "{}", spelled(&function.name, self.mangled.into()))?;
            }
        }
        Ok(counts)
    }

    fn line(&self, frame: &Frame<'_>) -> String {
        match self.form {
            CoveredForm::Lines => place(frame),
            CoveredForm::Paths => {
                let path = frame.path.as_deref().unwrap_or(b"??");
                printable(path).into_owned()
            }
            _ => spelled(frame.function, self.mangled.into()).into_owned(),
        }
    }
}
