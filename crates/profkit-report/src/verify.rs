//! The output of `profkit verify`. docs/formats/manifest.md describes the JSON.
use crate::diff::DiffReport;
use crate::document::write_json;
use crate::{Answer, Document, grouped, plural};
use profkit_analysis::manifest::Input;
use profkit_data::Error;
use serde_json::json;
use std::io::{self, Write};

/// The most inputs that a list names.
const MOST_NAMED: usize = 5;

/// How a profile and the one that was made again differ.
#[derive(Debug)]
pub struct VerifyReport<'a> {
    /// The name of the profile.
    pub profile: &'a str,
    /// The number of inputs of which it was made again.
    pub inputs: u64,
    /// The bytes of the profile, and of the one that was made again.
    pub bytes: [&'a [u8]; 2],
    /// The manifest; `None` if there is none.
    pub manifest: Option<ManifestCheck<'a>>,
    /// What changed in functions and counts; `None` if the bytes are the same, or one of the profiles cannot be compared.
    pub diff: Option<DiffReport<'a>>,
}

/// What of a manifest does not hold.
#[derive(Debug)]
pub struct ManifestCheck<'a> {
    /// The name of the manifest.
    pub name: &'a str,
    /// The version of profkit that wrote it, and the one that runs.
    pub versions: [&'a str; 2],
    /// The fault of the profile, if it is not the one of the manifest.
    pub mismatch: Option<Error>,
    /// The inputs of the manifest that were not given.
    pub missing: Vec<&'a Input>,
    /// The number of given inputs that the manifest does not have.
    pub others: u64,
    /// Files of options that are not those of the manifest.
    pub other_files: Vec<String>,
}

impl VerifyReport<'_> {
    /// Whether the bytes are the same.
    pub fn is_same(&self) -> bool {
        let [old, new] = self.bytes;
        old == new
    }

    /// The offset of the first byte that differs; `None` if none does.
    fn first_difference(&self) -> Option<usize> {
        let [old, new] = self.bytes;
        let shorter = old.len().min(new.len());
        let at = old.iter().zip(new).position(|(old, new)| old != new);
        at.or((old.len() != new.len()).then_some(shorter))
    }
}

impl ManifestCheck<'_> {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(error) = &self.mismatch {
            lines.push(format!("{}: {error}", self.name));
        }
        if !self.missing.is_empty() {
            let names = self.missing.iter().take(MOST_NAMED);
            let names: Vec<_> = names.map(|input| input.file.name.as_str()).collect();
            let more = match self.missing.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {} more", grouped(more)),
            };
            lines.push(format!(
                "not given, but in the manifest: {}: {}{more}",
                plural(self.missing.len() as u64, "input"),
                names.join(", ")
            ));
        }
        if self.others > 0 {
            lines.push(format!(
                "given, but not in the manifest: {}",
                plural(self.others, "input")
            ));
        }
        lines.extend(self.other_files.iter().cloned());
        let [wrote, runs] = self.versions;
        if wrote != runs {
            lines.push(format!(
                "the manifest is of profkit {wrote}, and this is {runs}"
            ));
        }
        lines
    }
}

impl Answer for VerifyReport<'_> {
    fn document(&self) -> Document {
        let mut document = Document::default();
        let is = if self.is_same() {
            "the same bytes"
        } else {
            "other bytes"
        };
        let inputs = plural(self.inputs, "input");
        document.title(self.profile, format_args!("{is}, made again of {inputs}"));
        for line in self.manifest.iter().flat_map(ManifestCheck::lines) {
            document.wrapped("  ", line);
        }
        let Some(first) = self.first_difference() else {
            return document;
        };
        let [old, new] = self.bytes;
        document.wrapped(
            "  ",
            format_args!(
                "{} and {} bytes; the first that differs is at {}",
                grouped(old.len()),
                grouped(new.len()),
                grouped(first)
            ),
        );
        if let Some(diff) = &self.diff {
            if diff.diff.moved == Some(0.0) {
                document.wrapped(
                    "  ",
                    "no share of the counts moved: all counts changed by one factor, or the difference is in what is no count, such as the version, build ids, values or traces",
                );
            }
            document.line("");
            document.append(diff.document());
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let manifest = self.manifest.as_ref().map(|check| {
            json!({
                "file": check.name,
                "profkit": check.versions[0],
                "profile_matches": check.mismatch.is_none(),
                "missing_inputs": check.missing,
                "other_inputs": check.others,
                "remarks": check.lines(),
            })
        });
        let document = json!({
            "schema": "profkit-verify",
            "schema_version": 1,
            "profile": self.profile,
            "same": self.is_same(),
            "inputs": self.inputs,
            "bytes": self.bytes.map(<[u8]>::len),
            "first_difference": self.first_difference(),
            "moved": self.diff.and_then(|diff| diff.diff.moved),
            "manifest": manifest,
        });
        write_json(out, &document)
    }
}
