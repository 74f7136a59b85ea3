//! Asking debuginfod servers, in builds with the feature of that name.

/// No client: this build was made without it.
#[cfg(not(feature = "debuginfod"))]
#[derive(Debug)]
pub struct Client(std::convert::Infallible);

#[cfg(not(feature = "debuginfod"))]
impl Client {
    /// Never called: there is no client.
    pub fn debug_info(
        &self,
        _: &profkit_data::ids::BuildId,
    ) -> Result<std::path::PathBuf, profkit_data::Error> {
        match self.0 {}
    }
}

/// What a build without the client says.
#[cfg(not(feature = "debuginfod"))]
pub const NOT_BUILT: &str = "this build of profkit has no debuginfod client; build it with cargo build --features debuginfod";

/// The client that the environment asks for.
///
/// # Errors
/// Always: this build has no client.
#[cfg(not(feature = "debuginfod"))]
pub fn from_environment() -> Result<Client, String> {
    Err(NOT_BUILT.to_owned())
}
