//! Inputs that are objects in an object store: one by its address, those of a folder, those that match a pattern.
use super::{InputFile, InputList, is_named_as_archive};
use crate::candidate::{FRONT, front_may_be_profile, has_extension};
use crate::note::InputNote;
use crate::remote::{self, Object};
use crate::walk::FileId;
use std::io;
use std::path::Path;

impl InputList {
    /// Adds the object of this address, or the objects of the folder or that match the pattern.
    pub(super) fn add_objects(&mut self, input: &InputFile, uri: &str) -> io::Result<()> {
        let add = |list: &mut Self, object: Object, named, again| {
            let id = Some(FileId::of_object(&object.uri));
            let mut file = InputFile::new(object.path(), input.weight);
            file.object = Some(object);
            list.add_file(file, id, named, again);
        };
        if let Some(object) = remote::head(uri)? {
            if self.output == Some(FileId::of_object(uri)) {
                let name = input.name.clone();
                self.notes.push(InputNote::OutputIsInput { name });
            }
            add(self, object, true, false);
            return Ok(());
        }
        let again = self.folders.contains(&input.path);
        self.folders.push(input.path.clone());
        let found = objects_below(uri)?;
        let unknown: Vec<&Object> = found
            .iter()
            .filter(|object| !is_named_so(&object.path()))
            .collect();
        let fronts = remote::fronts(&unknown, FRONT);
        // An object whose beginning cannot be read stays in the list: the merge reports it.
        let others: Vec<String> = unknown
            .iter()
            .zip(fronts)
            .filter(|(_, front)| {
                front
                    .as_ref()
                    .is_ok_and(|bytes| !front_may_be_profile(bytes))
            })
            .map(|(object, _)| object.uri.clone())
            .collect();
        let mut others = others.into_iter().peekable();
        let before = self.files.len() + self.same.len();
        for object in found {
            if self.output == Some(FileId::of_object(&object.uri)) {
                let path = object.path();
                self.notes.push(InputNote::OutputInFolder { path });
            } else if others.next_if_eq(&object.uri).is_some() {
                self.skip(object.uri);
            } else {
                add(self, object, false, again);
            }
        }
        if self.files.len() + self.same.len() == before {
            let name = input.name.clone();
            self.notes.push(InputNote::EmptyFolder { name });
        }
        Ok(())
    }
}

/// The objects of a folder and its subfolders, or those that match a pattern.
fn objects_below(uri: &str) -> io::Result<Vec<Object>> {
    let pattern = uri.contains(['*', '?', '[']);
    let folder = match uri.find(['*', '?', '[']) {
        Some(first) => uri
            .get(..first)
            .and_then(|text| text.rsplit_once('/'))
            .map_or(uri, |(folder, _)| folder),
        None => uri.trim_end_matches('/'),
    };
    let mut found = remote::list(folder)?;
    if pattern {
        let pattern = glob::Pattern::new(uri).map_err(io::Error::other)?;
        let options = glob::MatchOptions {
            require_literal_separator: true,
            ..glob::MatchOptions::default()
        };
        found.retain(|object| pattern.matches_with(&object.uri, options));
    }
    if found.is_empty() {
        let why = match pattern {
            true => "no object matches this pattern",
            false => "the store has no object and no folder of this name",
        };
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    Ok(found)
}

fn is_named_so(path: &Path) -> bool {
    is_named_as_archive(path) || has_extension(path)
}
