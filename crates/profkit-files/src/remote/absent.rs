//! What stands in the place of the client in a build without it.
use super::Object;
use crate::{InputData, ObjectVersion};
use std::io;
use std::ops::Range;
use std::path::Path;

fn absent<T>(uri: &str) -> io::Result<T> {
    let (program, _) = uri.split_once("://").unwrap_or_default();
    let program = match program {
        "s3" | "s3a" => format!("aws s3 cp '{uri}' ."),
        "gs" => format!("gcloud storage cp '{uri}' ."),
        _ => "the store's own program".to_owned(),
    };
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "this profkit was built without the feature `cloud`: build it with `cargo install --path crates/profkit-cli --features cloud`, or copy the file with {program}"
        ),
    ))
}

pub(crate) fn head(uri: &str) -> io::Result<Option<Object>> {
    absent(uri)
}

pub(crate) fn list(uri: &str) -> io::Result<Vec<Object>> {
    absent(uri)
}

pub(crate) fn get(object: &Object) -> io::Result<InputData<'static>> {
    absent(&object.uri)
}

pub(crate) fn front(object: &Object, _: u64) -> io::Result<Vec<u8>> {
    absent(&object.uri)
}

pub(crate) fn fronts(objects: &[&Object], _: u64) -> Vec<io::Result<Vec<u8>>> {
    objects.iter().map(|object| absent(&object.uri)).collect()
}

pub(crate) fn put(uri: &str, _: &Path) -> io::Result<()> {
    absent(uri)
}

pub(crate) fn range(uri: &str, _: Range<u64>) -> io::Result<Vec<u8>> {
    absent(uri)
}

pub(crate) fn read(uri: &str, _: u64) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
    absent(uri)
}

pub(crate) fn put_if(uri: &str, _: &[u8], _: Option<&ObjectVersion>) -> io::Result<bool> {
    absent(uri)
}

pub(crate) fn remove(uri: &str) -> io::Result<()> {
    absent(uri)
}

/// Never made: nothing is in a list of objects.
#[derive(Debug)]
pub(crate) struct Prefetch;

impl Prefetch {
    pub fn new(_: Vec<Object>) -> Self {
        Prefetch
    }

    pub fn take(&self, object: &Object) -> io::Result<InputData<'static>> {
        absent(&object.uri)
    }
}
