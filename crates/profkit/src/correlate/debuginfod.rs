//! Asking debuginfod servers: this release has no client. What its callers need is here, so that they say so.
use profkit_data::Error;
use profkit_data::ids::BuildId;
use std::path::PathBuf;

/// No client: there is no value of this type.
#[derive(Debug)]
pub struct Client(std::convert::Infallible);

impl Client {
    /// Never called: there is no client.
    ///
    /// # Errors
    /// None.
    pub fn debug_info(&self, _: &BuildId) -> Result<PathBuf, Error> {
        match self.0 {}
    }
}

/// The client that the environment asks for.
///
/// # Errors
/// Always: this release has none.
pub fn from_environment() -> Result<Client, String> {
    Err("--debuginfod is not supported by this release of profkit: fetch the file with debuginfod-find, or name a folder of binaries".to_owned())
}
