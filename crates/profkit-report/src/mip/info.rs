//! The output of `profkit mip info`: the numbers of functions and blocks, and how many of them were run.
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
        MipInfo {
            schema: "profkit-mip-info",
            schema_version: 2,
            format_version: version.number(),
            build_id: match &profile.identity {
                Identity::BuildId(id) if !id.0.is_empty() => Some(id.to_string()),
                _ => None,
            },
            module_hash: match &profile.identity {
                Identity::ModuleHash(hash) => Some(*hash),
                Identity::BuildId(_) => None,
            },
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

    /// Prints text for people.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn text(&self, out: &mut impl Write) -> io::Result<()> {
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
            writeln!(out, "{what}: {number}")?;
        }
        writeln!(out, "Profile Type: {}", self.modes.join(", "))?;
        writeln!(out, "Image: {}", self.identity)
    }
}
