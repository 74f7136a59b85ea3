//! How functions are grouped: by their names, or by the source files in debug info.
use profkit_analysis::names;
use profkit_analysis::ranking::GroupBy;
use profkit_data::ids::NameRef;
use profkit_data::sample::SampleName;
use profkit_object::symbolize::Declarations;

/// How functions are grouped.
#[derive(Clone, Copy, Debug)]
pub struct Grouping<'a> {
    /// Whether functions are grouped by source file, crate or namespace.
    pub by: GroupBy,
    /// The source files of functions by debug info, which go before those in names; `None` without a binary.
    pub declarations: Option<&'a Declarations>,
}

impl From<GroupBy> for Grouping<'_> {
    /// Groups by names alone.
    fn from(by: GroupBy) -> Self {
        let declarations = None;
        Grouping { by, declarations }
    }
}

impl<'a> Grouping<'a> {
    /// The group of a function; `None` if the group is not known. Control characters in a file path are escaped.
    pub fn of(self, name: &[u8]) -> Option<String> {
        let declared = self.files().and_then(|files| files.find(name));
        match declared {
            Some(declared) => Some(names::printable(declared.file).into_owned()),
            None => self.by.of(name),
        }
    }

    /// The group of a function whose name is known only by its hash; `None` if the group is not known.
    pub fn of_hash(self, hash: NameRef) -> Option<String> {
        let declared = self.files()?.find_hash(hash)?;
        Some(names::printable(declared.file).into_owned())
    }

    /// The group of a function of a sample profile; `None` if the group is not known.
    pub fn of_sample(self, name: SampleName<'_>) -> Option<String> {
        match name {
            SampleName::Text(name) => self.of(name),
            SampleName::Guid(hash) => self.of_hash(hash),
        }
    }

    fn files(self) -> Option<&'a Declarations> {
        self.declarations.filter(|_| self.by == GroupBy::File)
    }

    /// What stands for the group of functions without one, and why it is not known.
    pub(crate) fn unknown(self) -> (&'static str, Option<&'static str>) {
        match (self.by, self.declarations) {
            (GroupBy::File, None) => (
                "(not known)",
                Some(
                    "a profile has the source files of local (static) functions only; with --binaries PROGRAM, those of all functions come from debug info",
                ),
            ),
            (GroupBy::File, Some(_)) => (
                "(not known)",
                Some(
                    "the debug info of the binaries does not have these functions, or has functions of the same name in several files",
                ),
            ),
            (GroupBy::Crate, _) => ("(not of Rust)", None),
            (GroupBy::Namespace, _) => ("(no namespace)", None),
        }
    }
}
