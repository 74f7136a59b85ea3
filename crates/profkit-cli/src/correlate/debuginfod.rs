//! Asking debuginfod servers, if this program was built so.
#[cfg(not(feature = "debuginfod"))]
pub use none::{Artifact, Client, from_environment};
#[cfg(feature = "debuginfod")]
pub use some::{Artifact, Client, from_environment};

#[cfg(feature = "debuginfod")]
mod some {
    use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
    use profkit_object::debuginfod::Progress;
    pub use profkit_object::debuginfod::{Artifact, Client};
    use std::io::IsTerminal;
    use std::time::Duration;

    /// The client that the environment asks for, with progress on stderr if `progress` is wanted and that is a terminal.
    ///
    /// # Errors
    /// If a variable is wrong.
    pub fn from_environment(budget: Option<Duration>, progress: bool) -> Result<Client, String> {
        let mut client = Client::from_environment(|name| std::env::var_os(name))?;
        if let Some(budget) = budget {
            client = client.budget(budget);
        }
        if progress && std::io::stderr().is_terminal() {
            client = client.progress(shown());
        }
        Ok(client)
    }

    const DRAWS_A_SECOND: u8 = 10;

    /// A line that is there while bytes come.
    fn shown() -> Progress {
        let bar =
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_A_SECOND));
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
}

#[cfg(not(feature = "debuginfod"))]
mod none {
    use profkit_data::Error;
    use profkit_data::ids::BuildId;
    use std::path::PathBuf;
    use std::time::Duration;

    /// What to ask a server for.
    #[derive(Clone, Copy, Debug)]
    pub enum Artifact {
        /// The file with debug info.
        DebugInfo,
        /// The program.
        Executable,
    }

    /// No client: there is no value of this type.
    #[derive(Debug)]
    pub struct Client(std::convert::Infallible);

    impl Client {
        /// Never called: there is no client.
        ///
        /// # Errors
        /// None.
        pub fn find(&self, _: &BuildId, _: Artifact) -> Result<PathBuf, Error> {
            match self.0 {}
        }
    }

    /// The client that the environment asks for.
    ///
    /// # Errors
    /// Always: this program was built without one.
    pub fn from_environment(_: Option<Duration>, _: bool) -> Result<Client, String> {
        Err("--debuginfod: this program was built without a client (cargo feature `debuginfod`): fetch the file with debuginfod-find, or name a folder of binaries".to_owned())
    }
}
