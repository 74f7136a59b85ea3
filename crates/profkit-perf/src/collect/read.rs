//! Reads the counts of an input in any form.
use super::{CollectOptions, Counts, collect};
use crate::text::{TextOptions, read_text};
use crate::{Recording, Release};
use profkit_data::detect::{FileKind, detect};
use profkit_data::{Error, ErrorKind, Result};

/// Reads the counts of an input: a recording, or a text with samples or counts. If the recording is a folder, `parts`
/// are its files of records.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the input is a text although the options select samples or weight samples by their
/// period. [`ErrorKind::Unsupported`] also if the options select an event that the recording does not have. Otherwise
/// the errors of the readers.
pub fn read(data: &[u8], parts: &[&[u8]], options: &CollectOptions) -> Result<Counts> {
    read_releasing(data, parts, options, &|_| {})
}

/// Reads the counts of an input as [`read`] does. After a part of a recording was read, `release` is called with its
/// bytes, so that the caller can give their memory back. The same bytes may be read again, but not soon.
///
/// # Errors
/// The errors of [`read`].
pub fn read_releasing(
    data: &[u8],
    parts: &[&[u8]],
    options: &CollectOptions,
    release: &Release<'_>,
) -> Result<Counts> {
    let selection = &options.selection;
    if detect(data) != FileKind::PerfData {
        if !selection.is_all() {
            let text = "only the samples of a recording of perf can be selected by event, process, name or time";
            return Err(Error::new(ErrorKind::Unsupported, text).found("a text file"));
        }
        if options.by_period {
            let text = "only the samples of a recording of perf have periods";
            return Err(Error::new(ErrorKind::Unsupported, text)
                .found("a text file")
                .with_hint("leave out --by-period for this file"));
        }
        let text = TextOptions {
            stacks: options.stacks,
            traces: options.traces,
            context_memory: options.context_memory,
            ..TextOptions::default()
        };
        return read_text(data, text);
    }
    let recording = Recording::open_releasing(data, parts, release)?;
    let events = recording.events();
    let known = |name: &String| events.iter().any(|event| event.name == *name);
    if let Some(unknown) = selection.events.iter().find(|name| !known(name)) {
        let names: Vec<&str> = events.iter().map(|event| &*event.name).collect();
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("the recording has no event `{unknown}`"),
        )
        .found(names.join(", "))
        .with_hint("name one of the events that were found"));
    }
    Ok(collect(&recording, options))
}
