//! Inputs and outputs in object stores: `s3://BUCKET/KEY`, `gs://…`, `az://…`. Only the feature `cloud` brings the client.
#[cfg(not(feature = "cloud"))]
mod absent;
#[cfg(feature = "cloud")]
mod credentials;
#[cfg(feature = "cloud")]
mod prefetch;
#[cfg(feature = "cloud")]
mod store;

#[cfg(not(feature = "cloud"))]
pub(crate) use absent::{
    Prefetch, front, fronts, get, head, list, put, put_if, range, read, remove,
};
#[cfg(feature = "cloud")]
pub(crate) use prefetch::Prefetch;
#[cfg(feature = "cloud")]
pub(crate) use store::{front, fronts, get, head, list, put, put_if, range, read, remove};

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The schemes that are read as those of object stores, with the name that stands for them in messages.
const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss"];

/// An object as a listing or a request for its head shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// The whole address, such as `s3://runs/day-1/a.profraw`.
    pub uri: String,
    /// The size in bytes.
    pub size: u64,
    /// What the store changes with each new content. Reading asks for this content and no other.
    pub etag: Option<String>,
    /// When it was written.
    pub modified: Option<SystemTime>,
}

impl Object {
    /// The address as a path, as lists of inputs hold it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.uri)
    }
}

/// The address of an object if a path is one. There is no file of such a name on a system that joins equal separators.
pub(crate) fn uri(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let (scheme, rest) = text.split_once("://")?;
    (SCHEMES.contains(&scheme) && !rest.is_empty()).then_some(text)
}

/// Whether a path is the address of an object or a folder in an object store.
#[must_use]
pub fn is_remote(path: &Path) -> bool {
    uri(path).is_some()
}
