//! Requests to debuginfod servers, with their progress on a terminal.
use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use profkit_analysis::correlate::{
    BinaryServers, DownloadProgress, ServersError, servers_from_environment,
};
use std::io::IsTerminal;
use std::time::Duration;

/// Makes a client for debuginfod servers. The servers and limits come from the environment variables of debuginfod.
/// With `progress`, the client shows downloads on stderr if stderr is a terminal.
pub fn from_environment(
    budget: Option<Duration>,
    progress: bool,
) -> Result<Box<dyn BinaryServers>, String> {
    let progress =
        (progress && !crate::call::is_active() && std::io::stderr().is_terminal()).then(shown);
    servers_from_environment(budget, progress).map_err(|error| match error {
        ServersError::NotBuilt => "--debuginfod: this profkit was built without the cargo feature `debuginfod`: fetch the file with debuginfod-find, or name a folder of binaries".to_owned(),
        ServersError::Variable(text) => text,
    })
}

const DRAWS_PER_SECOND: u8 = 10;

fn shown() -> DownloadProgress {
    let bar =
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND));
    let bar = match ProgressStyle::with_template("{wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    };
    Box::new(move |url, got, total| {
        if total == Some(0) {
            bar.finish_and_clear();
            return;
        }
        if bar.is_finished() {
            bar.reset();
        }
        let of = total.map_or(String::new(), |total| format!(" of {}", HumanBytes(total)));
        bar.set_message(format!("{}{of} from {url}", HumanBytes(got)));
    })
}
