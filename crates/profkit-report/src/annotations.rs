//! Annotations of a job on a build server: messages that the server shows beside the job.
use profkit_analysis::doctor::Diagnosis;
use profkit_analysis::names::printable;
use profkit_merge::{Action, Report};
use std::collections::BTreeMap;
use std::fmt;

/// The largest number of annotations of one level. GitHub shows no more than ten of each level per step.
const MOST: usize = 10;

/// How serious an annotation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The command fails because of what the message reports.
    Error,
    /// The command goes on, but a part of the data is lost or stale.
    Warning,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// How serious it is.
    pub level: Level,
    /// The path of the file that the message is about. `None` if the message is not about one file.
    pub file: Option<String>,
    /// A few words that say what happened.
    pub title: String,
    /// The message.
    pub text: String,
}

/// The annotations of a run. [`lines`](Self::lines) writes them as [workflow commands of
/// GitHub](https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions), one per line, errors
/// first. If a level has more annotations than GitHub shows, the last line of this level gives the number of
/// annotations that are left out.
///
/// ```
/// use profkit_report::annotations::{Annotation, Annotations, Level};
///
/// let mut list = Annotations::default();
/// list.push(Annotation {
///     level: Level::Warning,
///     file: Some("a,b.profraw".to_owned()),
///     title: "dropped".to_owned(),
///     text: "100% lost".to_owned(),
/// });
/// assert_eq!(list.lines(), ["::warning file=a%2Cb.profraw,title=dropped::100%25 lost"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    list: BTreeMap<Level, Vec<Annotation>>,
    more: BTreeMap<Level, u64>,
}

impl Annotations {
    /// The lines of all annotations.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (level, list) in &self.list {
            let more = self.more.get(level).copied().unwrap_or(0);
            // If GitHub would not show all annotations, the last line is kept free for the number of those left out.
            let shown = if more > 0 { MOST - 1 } else { MOST };
            lines.extend(list.iter().take(shown).map(ToString::to_string));
            if more > 0 {
                let rest = Annotation {
                    level: *level,
                    file: None,
                    title: "profkit".to_owned(),
                    text: format!("and {} more: the log has them", crate::grouped(more + 1)),
                };
                lines.push(rest.to_string());
            }
        }
        lines
    }

    /// Adds an annotation.
    pub fn push(&mut self, annotation: Annotation) {
        let list = self.list.entry(annotation.level).or_default();
        if list.len() < MOST {
            list.push(annotation);
        } else {
            *self.more.entry(annotation.level).or_default() += 1;
        }
    }

    /// Adds the annotations of another list.
    pub fn extend(&mut self, other: Annotations) {
        for annotation in other.list.into_values().flatten() {
            self.push(annotation);
        }
        for (level, more) in other.more {
            *self.more.entry(level).or_default() += more;
        }
    }

    /// Adds an error that is not about one file, such as a bound that is not met.
    pub fn error(&mut self, title: &str, text: impl fmt::Display) {
        self.push(Annotation {
            level: Level::Error,
            file: None,
            title: title.to_owned(),
            text: text.to_string(),
        });
    }

    /// Adds one warning for each input of a merge that was dropped or repaired, about its first event.
    pub fn merge(&mut self, report: &Report) {
        let mut inputs: BTreeMap<usize, (Annotation, u64)> = BTreeMap::new();
        for event in report.events.iter().filter(|event| !event.reason.is_note()) {
            if let Some((_, more)) = inputs.get_mut(&event.input) {
                *more += 1;
                continue;
            }
            let what = match (event.action, &event.function) {
                (Action::Dropped, None) => "file dropped",
                (Action::Dropped, Some(_)) => "function dropped",
                (Action::Repaired, _) => "repaired",
                (Action::Kept, _) => "kept",
            };
            let mut text = event.to_string();
            if let Some(hint) = &event.hint {
                text += &format!("\nhint: {hint}");
            }
            let annotation = Annotation {
                level: Level::Warning,
                file: Some(event.file.clone()),
                title: format!("profkit merge: {what}"),
                text,
            };
            inputs.insert(event.input, (annotation, 0));
        }
        for (mut annotation, more) in inputs.into_values() {
            if more > 0 {
                let more = crate::plural(more, "other message");
                annotation.text += &format!("\n{more} about this file");
            }
            self.push(annotation);
        }
    }

    /// Adds an error for a file if doctor found that it is damaged, unreadable or not a profile.
    pub fn file(&mut self, name: &str, diagnosis: &Diagnosis) {
        if !diagnosis.verdict.is_bad() {
            return;
        }
        let fault = diagnosis.damage.first.first();
        let mut text = fault.map_or_else(|| crate::doctor::short(diagnosis), ToString::to_string);
        if let Some(hint) = fault.and_then(|fault| fault.hint()) {
            text += &format!("\nhint: {hint}");
        }
        let verdict = crate::doctor::verdict(diagnosis).to_lowercase();
        self.push(Annotation {
            level: Level::Error,
            file: Some(name.to_owned()),
            title: format!("profkit doctor: {verdict}"),
            text,
        });
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        write!(f, "::{level} ")?;
        if let Some(file) = &self.file {
            write!(f, "file={},", property(file))?;
        }
        write!(f, "title={}::{}", property(&self.title), data(&self.text))
    }
}

/// Escapes the message of a workflow command. GitHub has no escape for control characters other than line breaks, so
/// these are replaced by visible text, as in output to a terminal.
fn data(text: &str) -> String {
    let lines: Vec<_> = text
        .split('\n')
        .map(|line| printable(line.as_bytes()).replace('%', "%25"))
        .collect();
    lines.join("%0A")
}

/// Escapes the value of a property of a workflow command, which ends at a comma or a colon.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(file: &str, text: &str) -> Annotation {
        Annotation {
            level: Level::Warning,
            file: Some(file.to_owned()),
            title: "a: b, c".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn text_from_files_never_ends_a_command_or_begins_another() {
        let evil = warning(
            "C:\\a,title=x::y\n::error::z",
            "50%0A\r\n::error::\u{1b}[2Jno",
        );
        assert_eq!(
            evil.to_string(),
            "::warning file=C%3A\\a%2Ctitle=x%3A%3Ay%0A%3A%3Aerror%3A%3Az,title=a%3A b%2C c::50%250A\\r%0A::error::\\u{1b}[2Jno"
        );
    }

    #[test]
    fn errors_come_first_and_no_level_has_more_than_github_shows() {
        let mut list = Annotations::default();
        for number in 0..25 {
            list.push(warning(&number.to_string(), "x"));
        }
        list.error("gate", "3 of 4");
        let lines = list.lines();
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[0], "::error title=gate::3 of 4");
        assert_eq!(lines[9], "::warning file=8,title=a%3A b%2C c::x");
        assert_eq!(
            lines[10],
            "::warning title=profkit::and 16 more: the log has them"
        );
    }

    #[test]
    fn an_input_of_a_merge_has_one_annotation() {
        let cut = text_with_bad_records();
        let inputs: [(&str, &[u8]); 2] = [("cut,1.proftext", &cut), ("ok", b"b\n1\n1\n1\n")];
        let merged = profkit_merge::merge_instr(&inputs[..], &profkit_merge::MergeOptions::new());
        let mut list = Annotations::default();
        list.merge(&merged.unwrap().report);
        let text = list.lines().join("\n");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("::warning file=cut%2C1.proftext,title=profkit merge%3A "),
            "{text}"
        );
        assert!(text.contains("about this file"), "{text}");
    }

    /// A text profile with one sound record and two bad ones.
    fn text_with_bad_records() -> Vec<u8> {
        b"a\n1\n1\n1\n\nx\n1\n1\n99999999999999999999\n\ny\n1\n1\n99999999999999999999\n".to_vec()
    }
}
