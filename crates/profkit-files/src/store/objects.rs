//! A folder in an object store as a store.
use super::{ObjectVersion, Store, StoredObject};
use crate::remote;
use std::io;
use std::ops::Range;

pub(super) struct RemoteStore {
    /// The address of the folder, without a separator at its end.
    uri: String,
}

impl RemoteStore {
    pub(super) fn new(uri: &str) -> Self {
        let uri = uri.trim_end_matches('/').to_owned();
        RemoteStore { uri }
    }
}

impl Store for RemoteStore {
    fn name_of(&self, object: &str) -> String {
        match object {
            "" => self.uri.clone(),
            _ => format!("{}/{object}", self.uri),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        let found = remote::list(&self.name_of(folder))?;
        let objects = found.into_iter().filter_map(|object| {
            let name = object.uri.strip_prefix(&self.uri)?.strip_prefix('/')?;
            Some(StoredObject {
                name: name.to_owned(),
                size: object.size,
                modified: object.modified,
            })
        });
        Ok(objects.collect())
    }

    fn read(&self, object: &str, most: u64) -> io::Result<Option<(Vec<u8>, ObjectVersion)>> {
        remote::read(&self.name_of(object), most)
    }

    fn read_range(&self, object: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        remote::range(&self.name_of(object), range)
    }

    fn create(&self, object: &str, bytes: &[u8]) -> io::Result<bool> {
        remote::put_if(&self.name_of(object), bytes, None)
    }

    fn swap(&self, object: &str, bytes: &[u8], old: Option<&ObjectVersion>) -> io::Result<bool> {
        remote::put_if(&self.name_of(object), bytes, old)
    }

    fn remove(&self, object: &str) -> io::Result<()> {
        remote::remove(&self.name_of(object))
    }
}
