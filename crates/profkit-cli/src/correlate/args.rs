//! Options that say where binaries are.
use super::debuginfod;
use crate::exit::{Failure, Result};
use clap::Args;
use profkit_analysis::correlate::Binaries;
use profkit_object::debug_files::{DebugFolders, SYSTEM_DEBUG_FOLDER};
use profkit_object::index::{BinaryIndex, IndexCache};
use std::path::PathBuf;
use std::time::Duration;

/// Where the binaries of raw profiles without metadata are.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Correlation")]
pub struct BinaryArgs {
    /// Take the functions of raw profiles that hold counters only from these binaries, matched by build id
    ///
    /// Programs, libraries, debug files, or folders of them (all files below them; `.build-id` trees are looked up). Such
    /// profiles are written by programs built with -mllvm -profile-correlate=binary or debug-info.
    #[arg(long, value_name = "FILE|FOLDER", num_args = 1.., action = clap::ArgAction::Append)]
    pub binaries: Vec<PathBuf>,

    /// Where debug files of stripped binaries are, as in gdb
    #[arg(long, value_name = "FOLDER", default_value = SYSTEM_DEBUG_FOLDER)]
    pub debug_file_directory: Vec<PathBuf>,

    /// Ask the debuginfod servers in DEBUGINFOD_URLS for binaries that --binaries does not find
    ///
    /// Files are kept in the cache of debuginfod-find, in DEBUGINFOD_CACHE_PATH or ~/.cache/debuginfod_client, and taken
    /// from there without asking. DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and DEBUGINFOD_MAXSIZE mean what they mean there.
    #[arg(long)]
    pub debuginfod: bool,

    /// How long all downloads together may take
    #[arg(
        long,
        value_name = "SECONDS",
        requires = "debuginfod",
        default_value_t = 600
    )]
    pub debuginfod_budget: u64,

    /// Do not read or write the index of binaries in the cache folder
    #[arg(long)]
    pub no_index_cache: bool,
}

impl BinaryArgs {
    /// Whether anything was asked for.
    pub fn is_used(&self) -> bool {
        !self.binaries.is_empty() || self.debuginfod
    }

    /// Indexes the binaries. What is odd goes into `notes`; `progress` of downloads is shown on a terminal.
    ///
    /// # Errors
    /// If a path that was named is not there or is no binary.
    pub fn index(&self, notes: &mut Vec<String>, progress: bool) -> Result<Binaries> {
        let mut cache = match cache_file() {
            Some(file) if !self.no_index_cache => IndexCache::open(&file),
            _ => IndexCache::none(),
        };
        let index = BinaryIndex::build(&self.binaries, &mut cache).map_err(|error| {
            let failure = Failure::input(format_args!(
                "{}: {}",
                profkit_data::path_text(&error.path),
                error.reason
            ));
            match error.hint {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        if let Err(error) = cache.save() {
            notes.push(format!(
                "the index of binaries cannot be kept for the next time: {}",
                profkit_merge::files::system_text(&error)
            ));
        }
        for (path, reason) in index.unreadable.iter().take(MOST_NOTES) {
            notes.push(format!(
                "{}: passed over: {reason}",
                profkit_data::path_text(path)
            ));
        }
        let servers = if self.debuginfod {
            let budget = Duration::from_secs(self.debuginfod_budget);
            let servers = debuginfod::from_environment(Some(budget), progress);
            Some(servers.map_err(Failure::usage)?)
        } else {
            None
        };
        Ok(Binaries {
            index,
            debug_folders: DebugFolders {
                folders: self.debug_file_directory.clone(),
            },
            servers,
        })
    }
}

/// How many files that cannot be read are named.
const MOST_NOTES: usize = 10;

/// Where the index is kept: `profkit/binaries` in the user's cache folder.
fn cache_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".cache"),
    };
    Some(folder.join("profkit").join("binaries"))
}
