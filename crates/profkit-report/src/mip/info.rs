//! The output of `profkit mip info`: the numbers of functions and blocks, and how many of them were run.
use super::image;
use crate::document::write_json;
use crate::{Answer, Document};
use profkit_data::mip::{Identity, MipProfile, ProfileVersion};
use serde::Serialize;
use std::io::{self, Write};

/// The numbers of a MIP profile. [docs/formats/mip-json.md] describes the JSON.
///
/// [docs/formats/mip-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/mip-json.md
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MipInfo {
    schema: &'static str,
    schema_version: u32,
    /// The version of the file.
    pub format_version: u32,
    /// The build id of the image; `None` if it is not known.
    pub build_id: Option<String>,
    /// The module hash of the image; `None` if the profile has none.
    pub module_hash: Option<u32>,
    /// The names of the modes.
    pub modes: Vec<&'static str>,
    /// The number of runs.
    pub runs: u64,
    /// The number of functions.
    pub functions: u64,
    /// The number of functions that were entered.
    pub covered_functions: u64,
    /// The number of blocks. The entry of a function counts as a block too.
    pub blocks: u64,
    /// The number of blocks that were run.
    pub covered_blocks: u64,
    /// The number of call edges.
    pub call_edges: u64,
    /// The number of functions with a source location.
    pub located_functions: u64,
    #[serde(skip)]
    identity: Identity,
}

impl MipInfo {
    /// Counts what is in a profile, which was read from a file of this version.
    pub fn new(profile: &MipProfile, version: ProfileVersion) -> Self {
        let functions = profile.functions.iter();
        let located = functions.filter(|function| function.location.is_some());
        let (functions, covered_functions) = profile.function_counts();
        // The list of blocks does not have the entries of functions.
        let (blocks, covered_blocks) = profile.block_counts();
        let (build_id, module_hash) = image(&profile.identity);
        MipInfo {
            schema: "profkit-mip-info",
            schema_version: 2,
            format_version: version.number(),
            build_id,
            module_hash,
            modes: profile.modes().names().collect(),
            runs: profile.runs,
            functions,
            covered_functions,
            blocks: functions + blocks,
            covered_blocks: covered_functions + covered_blocks,
            call_edges: profile.edges.len() as u64,
            located_functions: located.count() as u64,
            identity: profile.identity.clone(),
        }
    }
}

impl Answer for MipInfo {
    fn document(&self) -> Document {
        let mut document = Document::default();
        for (what, number) in [
            ("Total Raw Profile Count", self.runs),
            ("Total Machine Functions", self.functions),
            ("Profiled Machine Functions", self.covered_functions),
            ("Total Machine Basic Blocks", self.blocks),
            ("Covered Machine Basic Blocks", self.covered_blocks),
            ("Total Call Edges", self.call_edges),
            ("Functions With Source Location", self.located_functions),
            ("Format Version", self.format_version.into()),
        ] {
            document.line(format_args!("{what}: {number}"));
        }
        document.line(format_args!("Profile Type: {}", self.modes.join(", ")));
        document.line(format_args!("Image: {}", self.identity));
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, self)
    }
}
