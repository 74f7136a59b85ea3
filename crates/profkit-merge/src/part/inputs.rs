//! The inputs of parts: which are the same, and their order.
use super::PartError;
use super::decode::Decoded;
use super::key::Key;
use profkit_data::Weight;
use profkit_files::{InputData, Inputs};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::io;
use twox_hash::XxHash3_64;

/// An input of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    /// Its name in reports, with `/` between folders on every system. Inputs have the order of their names.
    pub(crate) name: String,
    /// The hash of its id ([`Inputs::id`]).
    pub(crate) id: u64,
    /// The digest of its bytes and weight; 0 if it could not be read.
    pub(crate) content: u64,
}

/// The digest of an input: equal for equal bytes with equal weights.
pub(crate) fn content_of(bytes: &[u8], weight: Weight) -> u64 {
    let digest = XxHash3_64::oneshot(bytes);
    if weight.is_one() {
        return digest;
    }
    XxHash3_64::oneshot(format!("{weight} {digest}").as_bytes())
}

pub(crate) fn id_of(id: &str) -> u64 {
    XxHash3_64::oneshot(id.as_bytes())
}

/// The inputs of a part that is somewhere else.
pub(crate) struct StoredInputs(pub(super) Vec<Entry>);

impl StoredInputs {
    /// The inputs of a whole part, whose checksums are checked. `None` if the part was not made with the default options.
    pub(crate) fn of_part(bytes: &[u8]) -> profkit_data::Result<Option<Self>> {
        let part = Decoded::parse(bytes)?;
        let is_default = part.key == Key::of_default(part.family);
        Ok(is_default.then_some(StoredInputs(part.entries)))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|entry| entry.id)
    }

    /// The ids, with the digests of the contents.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|entry| (entry.id, entry.content))
    }
}

/// Inputs that were read before: their names.
pub(crate) struct Names<'a>(pub(crate) &'a [Entry]);

impl Inputs for Names<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn name(&self, index: usize) -> Cow<'_, str> {
        self.0.get(index).map_or("", |entry| &entry.name).into()
    }

    fn open<'s>(&'s self, _: usize, _: &mut Vec<u8>) -> io::Result<InputData<'s>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The inputs that were taken so far, by their ids.
#[derive(Default)]
pub(crate) struct Taken(FxHashMap<u64, Entry>);

/// What is to be done with inputs whose sum is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    New,
    /// All of them were taken before.
    Repeated,
}

impl Taken {
    /// Takes the inputs of a sum that is named so, unless all are there.
    pub(crate) fn take(&mut self, name: &str, entries: &[Entry]) -> Result<Found, PartError> {
        let there = |entry: &&Entry| self.0.contains_key(&entry.id);
        let shared: Vec<&Entry> = entries.iter().filter(there).collect();
        for entry in &shared {
            let other = self.0.get(&entry.id);
            if let Some(other) = other.filter(|other| other.content != entry.content) {
                return Err(PartError::TwoContents {
                    name: entry.name.clone(),
                    other: other.name.clone(),
                });
            }
        }
        if !shared.is_empty() && shared.len() < entries.len() {
            let first = shared.iter().take(PartError::MOST_NAMED);
            return Err(PartError::Overlap {
                name: name.to_owned(),
                shared: shared.len() as u64,
                first: first.map(|entry| entry.name.clone()).collect(),
            });
        }
        if !shared.is_empty() {
            return Ok(Found::Repeated);
        }
        if self.0.len() + entries.len() > PartError::MOST_INPUTS {
            return Err(PartError::TooMany);
        }
        let entries = entries.iter().map(|entry| (entry.id, entry.clone()));
        self.0.extend(entries);
        Ok(Found::New)
    }
}

/// The inputs of several sums in one order, and for each sum the new numbers of its inputs.
pub(crate) fn unite(sums: &[&[Entry]]) -> (Vec<Entry>, Vec<Vec<usize>>) {
    let mut all: Vec<(&Entry, usize, usize)> = Vec::new();
    for (sum, entries) in sums.iter().enumerate() {
        all.extend(
            (0..)
                .zip(*entries)
                .map(|(index, entry)| (entry, sum, index)),
        );
    }
    all.sort_unstable();
    let mut numbers: Vec<Vec<usize>> = sums.iter().map(|entries| vec![0; entries.len()]).collect();
    for (number, &(_, sum, index)) in all.iter().enumerate() {
        let place = numbers.get_mut(sum).and_then(|sum| sum.get_mut(index));
        place.into_iter().for_each(|place| *place = number);
    }
    let entries = all.into_iter().map(|(entry, ..)| entry.clone());
    (entries.collect(), numbers)
}
