//! The encodings that the sections of parts have in common.
use crate::error::Members;
use profkit_data::bytes::Cursor;
use profkit_data::ids::BuildId;
use profkit_data::{Error, ErrorKind, Result};
use std::collections::BTreeSet;

/// A section, in the encodings that sections have in common.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    pub(super) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub(super) fn fixed(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    /// A text that may be missing.
    pub(super) fn text(&mut self, text: Option<&[u8]>) {
        self.flag(text.is_some());
        text.into_iter().for_each(|text| self.bytes(text));
    }

    /// A text of a sorted list: how many bytes it has in common with the last one, and the rest.
    pub(super) fn after(&mut self, last: &[u8], text: &[u8]) {
        let same = last.iter().zip(text).take_while(|(a, b)| a == b).count();
        self.count(same);
        self.bytes(text.get(same..).unwrap_or_default());
    }

    pub(super) fn build_ids<'i>(&mut self, ids: impl ExactSizeIterator<Item = &'i BuildId>) {
        self.count(ids.len());
        ids.for_each(|BuildId(id)| self.bytes(id));
    }

    pub(super) fn members(&mut self, members: &Members) {
        let (count, first) = members.parts();
        self.number(count);
        self.count(first.len());
        first.iter().for_each(|&input| self.count(input));
    }
}

/// The number of a value that is stored: its place in the list of all.
pub(super) fn code<T: PartialEq>(all: &[T], value: &T) -> u64 {
    let place = all.iter().position(|one| one == value);
    place.map_or(u64::MAX, |place| place as u64)
}

/// The bytes of a section.
pub(super) struct In<'a>(pub(super) Cursor<'a>);

impl In<'_> {
    pub(super) fn wrong(&self, message: &'static str) -> Error {
        ErrorKind::Malformed.error(message).at(self.0.offset())
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.wrong("the section has more bytes than it needs")),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        self.0.uleb128()
    }

    /// A number that others are added to. It has no more than 56 bits, so that the sums of a hostile part fit 64.
    pub(super) fn tally(&mut self) -> Result<u64> {
        let tally = self.number()?;
        match tally >> 56 {
            0 => Ok(tally),
            _ => Err(self.wrong("a number is too large to be true").found(tally)),
        }
    }

    /// A number of things that take at least `least` bytes of this section each.
    pub(super) fn count(&mut self, least: usize) -> Result<usize> {
        let count = self.number()?;
        let fits = usize::try_from(count).ok().filter(|count| {
            count
                .checked_mul(least)
                .is_some_and(|bytes| bytes <= self.0.remaining())
        });
        fits.ok_or_else(|| {
            self.wrong("a number is greater than the section")
                .found(count)
        })
    }

    /// A number that fits memory; nothing is allocated because of it.
    pub(super) fn size(&mut self) -> Result<usize> {
        let size = self.number()?;
        usize::try_from(size).map_err(|_| self.wrong("a size does not fit memory").found(size))
    }

    pub(super) fn small(&mut self) -> Result<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.wrong("a number has more than 32 bits").found(value))
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        match self.0.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.wrong("a flag is neither 0 nor 1").found(other)),
        }
    }

    pub(super) fn input(&mut self, inputs: usize) -> Result<usize> {
        let input = self.size()?;
        match input < inputs {
            true => Ok(input),
            false => Err(self
                .wrong("there is no input with this number")
                .found(input)),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>> {
        let len = self.count(1)?;
        self.0.take(len).map(<[u8]>::to_vec)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| self.wrong("a text is not UTF-8"))
    }

    pub(super) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        self.flag()?.then(|| read(self)).transpose()
    }

    /// Replaces a text by the next one of a sorted list.
    pub(super) fn after(&mut self, last: &mut Vec<u8>) -> Result<()> {
        let same = self.size()?;
        if same > last.len() {
            return Err(self.wrong("a name repeats more bytes than the last one has"));
        }
        let rest = self.count(1)?;
        last.truncate(same);
        last.extend_from_slice(self.0.take(rest)?);
        Ok(())
    }

    pub(super) fn build_ids(&mut self) -> Result<Vec<BuildId>> {
        let count = self.count(1)?;
        (0..count).map(|_| self.bytes().map(BuildId)).collect()
    }

    pub(super) fn members(&mut self, inputs: usize) -> Result<Members> {
        let number = self.tally()?;
        let count = self.count(1)?;
        let first = (0..count).map(|_| self.input(inputs));
        Ok(Members::of_parts(
            number,
            first.collect::<Result<BTreeSet<_>>>()?,
        ))
    }

    pub(super) fn known<T: Copy>(&mut self, all: &[T]) -> Result<T> {
        let code = self.size()?;
        let value = all.get(code).copied();
        value.ok_or_else(|| self.wrong("the number has no meaning").found(code))
    }
}
