//! Writes functions that are joined as text. Their texts are made in the order of the buckets, in which the inputs are read,
//! and put in the order of the names when all are in memory.
use super::chunk::Function;
use super::write::changed;
use super::{Joined, Side, Source, Unjoinable};
use crate::driver::Threads;
use profkit_data::bytes::Sink;
use profkit_data::ids::NameRef;
use profkit_data::instr::InstrProfile;
use profkit_data::instr::text::{Names, TextOptions, TextWriter, is_readable, sort_by_name};
use profkit_data::{ErrorKind, Result};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The number of parts per thread, so that all threads are busy until the end.
const PARTS_PER_THREAD: usize = 4;

/// The texts of the functions of a range of buckets.
#[derive(Debug, Default)]
struct Part {
    text: Vec<u8>,
    /// For each function, where its text begins, and the length of its name, with which it begins.
    functions: Vec<(u64, usize)>,
    unreadable: u64,
}

/// A text profile with functions that are joined. The texts of its functions are in memory.
#[derive(Debug, Default)]
pub struct JoinedText {
    head: Vec<u8>,
    parts: Vec<Part>,
    records: u64,
}

impl JoinedText {
    /// Makes the text that [`write`](profkit_data::instr::text::write) writes. `profile` has everything but the functions.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`] for [`TextOptions::sparse`], because whether a function ran is not known when its name is
    /// written with a value, and for [`TextOptions::foreign_names`]. [`ErrorKind::WriteFailed`] if the inputs are not the same as when they were merged.
    pub fn new(
        joined: &Joined<'_>,
        profile: &InstrProfile,
        options: &TextOptions,
        threads: &Threads,
    ) -> Result<Self> {
        if options.sparse || options.foreign_names || joined.write.sparse {
            return Err(ErrorKind::CannotRepresent
                .error("the text of functions that are joined can be neither sparse nor have foreign names"));
        }
        let sides = joined.join.sides().ok_or_else(changed)?;
        let vtables: FxHashMap<NameRef, &[u8]> = profile
            .vtable_names
            .iter()
            .map(|name| (NameRef::of(name), name.as_slice()))
            .collect();
        let names = |wanted: NameRef| {
            let own = sides.iter().flat_map(|side| side.names_of(wanted));
            // In a damaged profile, several names may have one hash.
            own.filter(|name| joined.is_written(name, options))
                .max()
                .or_else(|| vtables.get(&wanted).copied())
        };
        let count = threads.count() * PARTS_PER_THREAD;
        let bound = |part: usize| joined.buckets * part / count;
        let parts = threads.run(count, |part| {
            joined.text_of(&sides, bound(part)..bound(part + 1), options, &names)
        });
        let mut head = Vec::new();
        let mut writer = TextWriter::new(&mut head);
        writer.head(profile, options, &names)?;
        writer.finish()?;
        Ok(JoinedText {
            head,
            parts: parts.into_iter().collect::<Result<_>>()?,
            records: joined.records,
        })
    }

    /// The number of records, with those of [`unreadable_names`](Self::unreadable_names).
    pub fn record_count(&self) -> u64 {
        self.records
    }

    /// The number of functions that are left out because a reader of the text would not find their names again.
    pub fn unreadable_names(&self) -> u64 {
        self.parts.iter().map(|part| part.unreadable).sum()
    }

    /// Writes the text.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<()> {
        let count = self.parts.iter().map(|part| part.functions.len()).sum();
        let mut functions = Vec::with_capacity(count);
        for part in &self.parts {
            let ends = part.functions.iter().skip(1).map(|&(start, _)| start);
            let ends = ends.chain([part.text.len() as u64]);
            for (&(start, name), end) in part.functions.iter().zip(ends) {
                let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                let text = bounds.and_then(|(start, end)| part.text.get(start..end));
                functions.push((0, (text.unwrap_or_default(), name)));
            }
        }
        sort_by_name(&mut functions, |&(text, name)| {
            text.get(..name).unwrap_or_default()
        });
        let mut writer = TextWriter::new(sink);
        writer.append(&self.head)?;
        for (_, (text, _)) in functions {
            writer.append(text)?;
        }
        writer.finish()
    }
}

impl Joined<'_> {
    fn is_written(&self, name: &[u8], options: &TextOptions) -> bool {
        let filter = self.join.filter.as_deref();
        filter.is_none_or(|keep| keep(name)) && (!options.readable || is_readable(name))
    }

    fn text_of(
        &self,
        sides: &[Side<'_>],
        buckets: Range<usize>,
        options: &TextOptions,
        names: &Names<'_>,
    ) -> Result<Part> {
        let mut part = Part::default();
        let Part {
            text,
            functions,
            unreadable,
        } = &mut part;
        let mut writer = TextWriter::new(text);
        let filter = self.join.filter.as_deref();
        let mut failed = None;
        let walked = self.join.walk(sides, buckets, self.buckets, |chunk| {
            for found in chunk.functions() {
                let name = found.entry.key;
                if filter.is_some_and(|keep| !keep(name)) {
                    continue;
                }
                if options.readable && !is_readable(name) {
                    *unreadable += 1;
                    continue;
                }
                functions.push((writer.position(), name.len()));
                let written = match found.function {
                    Function::Plain(record) => {
                        writer.function(name, [record].into_iter(), options, names)
                    }
                    Function::Table(function) => {
                        writer.function(name, function.records(), options, names)
                    }
                };
                written.map_err(|error| {
                    failed = Some(error);
                    Unjoinable
                })?;
            }
            Ok(())
        });
        walked.map_err(|Unjoinable| failed.unwrap_or_else(changed))?;
        writer.finish()?;
        Ok(part)
    }
}

impl<'d> Side<'d> {
    /// The names of the functions of the input whose names have a hash.
    fn names_of(&self, wanted: NameRef) -> impl Iterator<Item = &'d [u8]> {
        let mask = self.bucket_count() as u64 - 1;
        let number = usize::try_from(wanted.0 & mask).unwrap_or(0);
        let (mut bucket, records) = match &self.source {
            Source::Indexed { table, .. } => (table.bucket(number).ok().flatten(), None),
            Source::Text { text, index } => (None, Some((*text, index.bucket(number)))),
        };
        let items = std::iter::from_fn(move || bucket.as_mut()?.next_item().ok()?);
        let items = items.map(|item| (item.hash, item.key));
        let records = records
            .into_iter()
            .flat_map(|(text, records)| records.iter().map(move |one| (one.hash, one.name(text))));
        let all = items.chain(records);
        all.filter(move |&(hash, _)| hash == wanted.0)
            .map(|(_, name)| name)
    }
}
