//! Reads and writes name tables. Names are not copied when a table is read, and a table is written in LLVM's order.
use super::super::model::{SampleProfile, Samples};
use super::super::names::{NameId, SampleName, SampleNames};
use super::numbers;
use crate::bytes::Cursor;
use crate::ids::NameRef;
use crate::index_vec::{Id, IndexVec};
use crate::{Error, ErrorKind, Result};

/// Returns the text that an error states as the expected value if an index is outside a table of `len` entries.
pub(in crate::sample) fn index_below(len: usize) -> String {
    match len {
        0 => "no index, because the table is empty".to_owned(),
        _ => format!("below {len}"),
    }
}

/// The name table of a file. The file refers to a name by its index in this table.
#[derive(Clone, Debug, Default)]
pub(in crate::sample) struct NameTable {
    entries: Vec<Entry>,
    is_md5: bool,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Guid(u64),
    /// A name as text: the position of its first byte in the section, and its length.
    Text(u64, u32),
}

impl NameTable {
    /// Reads the number of names, then the names, each ended by a zero byte. `base` is the offset of the section in the
    /// file. If the table is damaged, the names before the damage are kept.
    pub(in crate::sample) fn read_plain(
        &mut self,
        cursor: &mut Cursor<'_>,
        base: u64,
    ) -> Result<()> {
        let count = numbers::count(
            cursor,
            1,
            "the name table claims more names than its bytes can hold",
        );
        // If the stated number of names is wrong, the names that the file contains are still read.
        let (count, claim) = match count {
            Ok(count) => (count, None),
            Err(error) => (cursor.remaining(), Some(error)),
        };
        let start = cursor.offset() - base;
        let bytes = cursor.rest();
        let mut from = 0;
        self.entries.reserve(count.min(bytes.len() / 4));
        for zero in memchr::memchr_iter(0, bytes).take(count) {
            let len = u32::try_from(zero - from).map_err(|_| too_long(cursor.offset()))?;
            self.entries.push(Entry::Text(start + from as u64, len));
            from = zero + 1;
        }
        cursor.take(from)?;
        match claim {
            Some(error) => Err(error),
            None if self.entries.len() < count => Err(ErrorKind::Truncated
                .error("the name table ends inside a name")
                .at(cursor.offset())
                .found(format_args!("{}", self.entries.len()))
                .expected(format_args!("{count} complete names"))),
            None => Ok(()),
        }
    }

    /// Reads the number of names, then their MD5 hashes. With `fixed`, each hash has eight bytes; otherwise it is
    /// ULEB128.
    pub(in crate::sample) fn read_md5(
        &mut self,
        cursor: &mut Cursor<'_>,
        fixed: bool,
    ) -> Result<()> {
        self.is_md5 = true;
        let least = if fixed { 8 } else { 1 };
        let count = numbers::count(
            cursor,
            least,
            "the name table claims more names than its bytes can hold",
        )?;
        self.entries.reserve(count);
        for _ in 0..count {
            let guid = if fixed {
                cursor.u64()?
            } else {
                cursor.uleb128()?
            };
            self.entries.push(Entry::Guid(guid));
        }
        Ok(())
    }

    /// Appends hashes of eight bytes each, up to the end of the bytes.
    pub(in crate::sample) fn read_hashes(&mut self, mut hashes: Cursor<'_>) -> Result<()> {
        self.is_md5 = true;
        self.entries.reserve(hashes.remaining() / 8);
        while !hashes.is_empty() {
            self.entries.push(Entry::Guid(hashes.u64()?));
        }
        Ok(())
    }

    pub(in crate::sample) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the name at an index of the table; `None` if the table is too short. `section` must be the bytes from
    /// which the table was read.
    pub(in crate::sample) fn get<'data>(
        &self,
        index: usize,
        section: &'data [u8],
    ) -> Option<SampleName<'data>> {
        Some(match *self.entries.get(index)? {
            Entry::Guid(guid) => SampleName::Guid(NameRef(guid)),
            Entry::Text(start, len) => {
                let start = usize::try_from(start).ok()?;
                SampleName::Text(section.get(start..start.checked_add(len as usize)?)?)
            }
        })
    }

    /// Returns the index of a name in the table, or of the name's hash if the table has hashes; `None` if the table
    /// does not have the name. `section` must be the bytes from which the table was read.
    pub(in crate::sample) fn find(&self, name: &[u8], section: &[u8]) -> Option<usize> {
        if self.is_md5 {
            let guid = NameRef::of(name).0;
            return self
                .entries
                .iter()
                .position(|entry| matches!(entry, Entry::Guid(found) if *found == guid));
        }
        // All names are compared, because the table may not be sorted: LLVM writes sorted tables, but other writers
        // may not.
        self.entries.iter().position(|entry| {
            let &Entry::Text(start, len) = entry else {
                return false;
            };
            len as usize == name.len()
                && usize::try_from(start)
                    .is_ok_and(|start| section.get(start..start + name.len()) == Some(name))
        })
    }
}

#[cold]
fn too_long(offset: u64) -> Error {
    ErrorKind::LimitExceeded
        .error("a name is longer than 4 GiB")
        .at(offset)
}

/// Converts indexes in the name table of a file to the ids of the names in a profile. A name is added to the profile
/// when it is first requested.
pub(in crate::sample) struct Mapping<'a> {
    pub(in crate::sample) table: &'a NameTable,
    pub(in crate::sample) section: &'a [u8],
    /// For each name of the table, the index of its id; [`UNKNOWN`] if it was not requested yet.
    ids: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a> Mapping<'a> {
    pub(in crate::sample) fn new(table: &'a NameTable, section: &'a [u8]) -> Self {
        Mapping {
            table,
            section,
            ids: vec![UNKNOWN; table.len()],
        }
    }

    /// Adds all names of the table to the profile at once, for a reader that reads all functions: nearly every name of a
    /// table is used.
    pub(in crate::sample) fn of_all(
        table: &'a NameTable,
        section: &'a [u8],
        names: &mut SampleNames,
    ) -> Self {
        let mut ids = Vec::with_capacity(table.len());
        let list = (0..table.len())
            .map(|index| table.get(index, section).unwrap_or(SampleName::Text(b"")));
        // If there are too many names, the first function that has one of the missing names is reported.
        let _ = names.insert_list(list, |id| {
            ids.push(u32::try_from(id.index()).unwrap_or(UNKNOWN))
        });
        ids.resize(table.len(), UNKNOWN);
        Mapping {
            table,
            section,
            ids,
        }
    }

    /// Reads the index of a name in the name table. Returns the id of the name in the profile.
    #[inline]
    pub(in crate::sample) fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        names: &mut SampleNames,
    ) -> Result<NameId> {
        let start = cursor.offset();
        let index = cursor.uleb128()?;
        let known = usize::try_from(index)
            .ok()
            .and_then(|index| self.ids.get(index));
        match known {
            Some(&UNKNOWN) => self.add(index, start, names),
            Some(&id) => Ok(NameId::from_index(id as usize)),
            None => Err(ErrorKind::OutOfTable
                .error("the index of a name is beyond the name table")
                .at(start)
                .found(index)
                .expected(index_below(self.ids.len()))),
        }
    }

    /// Converts an index in the name table to the id of the name in the profile. The index must already be checked
    /// against the size of the name table.
    pub(in crate::sample) fn id(&mut self, index: u32, names: &mut SampleNames) -> Result<NameId> {
        match self.ids.get(index as usize) {
            Some(&id) if id != UNKNOWN => Ok(NameId::from_index(id as usize)),
            _ => self.add(u64::from(index), 0, names),
        }
    }

    fn add(&mut self, index: u64, start: u64, names: &mut SampleNames) -> Result<NameId> {
        let refuse = || {
            ErrorKind::LimitExceeded
                .error("there are too many names")
                .at(start)
        };
        let index = usize::try_from(index).map_err(|_| refuse())?;
        let name = self.table.get(index, self.section).ok_or_else(refuse)?;
        let id = names.insert(name).ok_or_else(refuse)?;
        if let Some(slot) = self.ids.get_mut(index) {
            *slot = u32::try_from(id.index()).unwrap_or(UNKNOWN);
        }
        Ok(id)
    }
}

/// The names that the functions of a profile use, in LLVM's order, and the indexes of these names in the name table of
/// the file.
pub(in crate::sample) struct NamePlan {
    pub(in crate::sample) order: Vec<NameId>,
    index: IndexVec<NameId, u32>,
}

impl NamePlan {
    pub(in crate::sample) fn new(
        profile: &SampleProfile,
        ranks: &IndexVec<NameId, u32>,
        vtables: bool,
    ) -> Self {
        let mut used = IndexVec::parallel_to(ranks, false);
        let mut mark = |name: NameId| {
            if let Some(used) = used.get_mut(name) {
                *used = true;
            }
        };
        for function in profile.functions() {
            for frame in &function.callers {
                mark(frame.name);
            }
            mark_all(&function.samples, vtables, &mut mark);
        }
        let mut order = vec![None; ranks.len()];
        for ((id, &rank), &used) in ranks.entries().zip(&used) {
            if let (true, Some(slot)) = (used, order.get_mut(rank as usize)) {
                *slot = Some(id);
            }
        }
        let order: Vec<NameId> = order.into_iter().flatten().collect();
        let mut index = IndexVec::parallel_to(ranks, 0);
        for (number, &id) in (0u32..).zip(&order) {
            index[id] = number;
        }
        NamePlan { order, index }
    }

    #[inline]
    pub(in crate::sample) fn number(&self, name: NameId) -> u32 {
        self.index.get(name).copied().unwrap_or(0)
    }

    /// Appends the name table: each name is ended by a zero byte. If only the hash of a name is known, the hash is
    /// written as a decimal number, as LLVM does.
    pub(in crate::sample) fn put_plain(&self, out: &mut Vec<u8>, names: &SampleNames) {
        numbers::put(out, self.order.len() as u64);
        let mut buffer = itoa::Buffer::new();
        for &id in &self.order {
            match names.get(id) {
                SampleName::Guid(guid) => out.extend_from_slice(buffer.format(guid.0).as_bytes()),
                SampleName::Text(text) => out.extend_from_slice(text),
            }
            out.push(0);
        }
    }
}

fn mark_all(samples: &Samples, vtables: bool, mark: &mut impl FnMut(NameId)) {
    mark(samples.name);
    for target in &samples.targets {
        mark(target.name);
    }
    if vtables {
        for target in &samples.vtables {
            mark(target.name);
        }
    }
    for inlined in &samples.inlined {
        mark_all(&inlined.samples, vtables, mark);
    }
}
