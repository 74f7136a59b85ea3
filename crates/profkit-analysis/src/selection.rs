//! Selects functions by name.
use crate::names;
use profkit_data::sample::SampleName;
use regex::bytes::{Regex, RegexBuilder};

/// Selects functions of a profile by their names.
///
/// ```
/// use profkit_analysis::selection::Selection;
///
/// let mut selection = Selection::default();
/// selection.names.push("ns::parse".to_owned());
/// assert!(selection.selects(b"_ZN2ns5parseEi"));
/// assert!(!selection.selects(b"_ZN2ns6parserEv"));
/// selection.add_pattern("^ns::.*r\\(")?;
/// assert!(selection.selects(b"_ZN2ns6parserEv"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Whether all functions are selected. If true, the other fields are ignored.
    pub all: bool,
    /// Names of functions, in any spelling that [`names::is_named`] accepts.
    pub names: Vec<String>,
    /// Parts of names. A function is selected if its mangled or demangled name contains one of these texts.
    pub parts: Vec<String>,
    /// Regular expressions, of the crate `regex`. A function is selected if one of them matches anywhere in its mangled or demangled name.
    pub patterns: Vec<Regex>,
}

impl Selection {
    /// Selects all functions.
    pub fn everything() -> Self {
        Selection {
            all: true,
            ..Selection::default()
        }
    }

    /// Whether nothing can be selected.
    pub fn is_empty(&self) -> bool {
        !self.all && self.names.is_empty() && self.parts.is_empty() && self.patterns.is_empty()
    }

    /// Adds a regular expression to [`patterns`](Self::patterns). The expression matches bytes, because names need not
    /// be UTF-8.
    ///
    /// # Errors
    /// If the text is not a regular expression.
    pub fn add_pattern(&mut self, text: &str) -> Result<(), regex::Error> {
        let built = RegexBuilder::new(text).unicode(false).build()?;
        self.patterns.push(built);
        Ok(())
    }

    /// Whether the function with this name is selected.
    pub fn selects(&self, name: &[u8]) -> bool {
        self.all
            || self
                .names
                .iter()
                .any(|wanted| names::is_named(name, wanted))
            || self.has_part_of(name)
    }

    /// Whether a function of a sample profile is selected. If the profile holds only the hash of the function, the
    /// function is selected by this hash, or by a mangled name that has this hash.
    pub fn selects_sample(&self, name: SampleName<'_>) -> bool {
        match name {
            SampleName::Text(text) => self.selects(text),
            guid @ SampleName::Guid(_) => {
                self.all
                    || self.names.iter().any(|wanted| is_sample(name, wanted))
                    || self
                        .parts
                        .iter()
                        .any(|part| guid.to_string().contains(part.as_str()))
                    || self.matches(guid.to_string().as_bytes())
            }
        }
    }

    /// Whether a name contains one of [`parts`](Self::parts) or is matched by one of [`patterns`](Self::patterns).
    pub(crate) fn has_part_of(&self, name: &[u8]) -> bool {
        self.parts.iter().any(|part| names::contains(name, part)) || self.matches(name)
    }

    fn matches(&self, name: &[u8]) -> bool {
        let any = |text: &[u8]| self.patterns.iter().any(|pattern| pattern.is_match(text));
        !self.patterns.is_empty()
            && (any(name) || names::demangle(name).is_some_and(|name| any(name.as_bytes())))
    }
}

/// Whether `wanted` is the name or the hash of this function of a sample profile.
pub(crate) fn is_sample(name: SampleName<'_>, wanted: &str) -> bool {
    match name {
        SampleName::Text(name) => names::is_named(name, wanted),
        guid @ SampleName::Guid(_) => {
            guid.to_string() == wanted || guid.guid() == SampleName::Text(wanted.as_bytes()).guid()
        }
    }
}
