//! Options that name binaries.
use super::debuginfod;
use crate::exit::{Failure, Result, must_exist};
use clap::Args;
use profkit_analysis::correlate::Binaries;
use profkit_object::debug_files::{DebugFolders, SYSTEM_DEBUG_FOLDER};
use profkit_object::index::{BinaryIndex, IndexCache};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Binaries")]
pub struct BinaryArgs {
    /// Programs, libraries and debug files that raw profiles need, or folders of them, matched by build id; may be repeated
    ///
    /// Raw profiles that hold only counters get their functions from these files: such profiles come from programs that
    /// were built with -mllvm -profile-correlate=binary or debug-info. Raw heap profiles are symbolised with these
    /// files. The functions of a recording of perf get their names from these files; binaries that are not among them are
    /// looked for at their paths in the recording, and used if they have the recorded build id. In a folder, all files below it are used; `.build-id` trees are searched by build id.
    #[arg(long, value_name = "FILE|FOLDER", action = clap::ArgAction::Append)]
    pub binaries: Vec<PathBuf>,

    /// Search this folder for the debug files of stripped binaries, as gdb does
    #[arg(long, value_name = "FOLDER", default_value = SYSTEM_DEBUG_FOLDER)]
    pub debug_file_directory: Vec<PathBuf>,

    /// Ask the debuginfod servers in DEBUGINFOD_URLS for binaries that --binaries does not find
    ///
    /// Downloaded files are kept in the cache of debuginfod-find (DEBUGINFOD_CACHE_PATH or ~/.cache/debuginfod_client);
    /// files in this cache are used without asking a server. DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME and
    /// DEBUGINFOD_MAXSIZE have the same meaning as for debuginfod-find.
    #[arg(long)]
    pub debuginfod: bool,

    /// The time limit for all downloads together, in seconds
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
    pub fn is_used(&self) -> bool {
        !self.binaries.is_empty() || self.debuginfod
    }

    /// Indexes the binaries. Problems with single files or with the cache are added to `notes`. With `progress`,
    /// downloads show their progress on a terminal.
    pub fn index(&self, notes: &mut Vec<String>, progress: bool) -> Result<Binaries> {
        let mut cache = match cache_file() {
            Some(file) if !self.no_index_cache => IndexCache::open(&file),
            _ => IndexCache::none(),
        };
        self.binaries.iter().try_for_each(|path| must_exist(path))?;
        let index = BinaryIndex::build(&self.binaries, &mut cache).map_err(|error| {
            let failure = Failure::input(format_args!(
                "{}: {}",
                profkit_data::path_text(&error.path),
                error.reason
            ));
            failure.with_hints(error.hint)
        })?;
        if let Err(error) = cache.save() {
            notes.push(format!(
                "cannot save the index of binaries, so the next run must build it again: {}",
                profkit_merge::files::system_text(&error)
            ));
        }
        for (path, reason) in index.unreadable.iter().take(MOST_NOTES) {
            notes.push(format!(
                "{}: skipped: {reason}",
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

const MOST_NOTES: usize = 10;

/// The file that holds the index: `profkit/binaries` in the user's cache folder.
fn cache_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match set("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(set("HOME")?).join(".cache"),
    };
    Some(folder.join("profkit").join("binaries"))
}
