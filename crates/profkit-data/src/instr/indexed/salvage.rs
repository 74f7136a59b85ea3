//! Reads the intact parts of a damaged indexed profile.
use super::header::{self, IndexedHeader};
use super::reader::IndexedProfile;
use super::sections;
use crate::bytes::{Bytes, Cursor};
use crate::hash_table::{HashTable, Lengths};
use crate::memprof_section as memprof;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::variant;
use std::sync::OnceLock;

#[derive(Clone, Debug, Default)]
pub(super) struct Damage {
    /// Whether the function table's table of buckets cannot be read. The functions are then read one after the other
    /// without it.
    pub(super) walk: bool,
    pub(super) memprof: bool,
    /// Whether the end of the file cuts off some functions of the function table.
    items: bool,
    sections: Vec<Structure>,
    /// The minimum length in bytes that the file must have had before it was cut off; 0 if the file is not cut off.
    least_len: u64,
    /// Why the table of buckets cannot be read; `None` if it can be read or is cut off.
    table: Option<Error>,
    index_unread: bool,
    /// The errors of sections that are damaged but not cut off.
    faults: Vec<Error>,
}

impl Damage {
    pub(super) fn is_none(&self) -> bool {
        !self.walk && self.sections.is_empty() && self.faults.is_empty()
    }

    fn cut(&mut self, section: Structure, least_len: u64) {
        self.sections.push(section);
        self.least_len = self.least_len.max(least_len);
    }

    /// Lists what is lost. `names` is the number of functions that were read. `errors` is the number of errors that
    /// were already reported. `stopped` is the offset at which the walk over the function table ended; `None` if the
    /// functions were read with the table of buckets. `table` is what is wrong with the function table, if its table of
    /// buckets can be read.
    pub(super) fn losses(
        &self,
        data: &[u8],
        names: u64,
        stopped: Option<u64>,
        errors: u64,
        table: Option<&Error>,
    ) -> Vec<Error> {
        let mut losses = self.faults.clone();
        if !self.sections.is_empty() {
            losses.push(self.cut_error(data, names, stopped));
        } else if let Some(error) = self.table.as_ref().or(table) {
            match errors {
                0 => losses.push(error.clone().with_hint(format!(
                    "{names} functions were read without the table of buckets, and none seems to be lost"
                ))),
                _ if self.index_unread => losses.push(error.clone()),
                // The damage of the table of buckets needs no error of its own, because errors were already reported
                // while the functions were read.
                _ => {}
            }
        }
        losses
    }

    #[cold]
    fn cut_error(&self, data: &[u8], names: u64, stopped: Option<u64>) -> Error {
        let mut lost: Vec<String> = self
            .sections
            .iter()
            .map(|section| format!("the {section}"))
            .collect();
        let mut kept = String::new();
        let mut at = data.len() as u64;
        if self.items {
            kept = match names {
                0 => "no function is complete; ".to_owned(),
                1 => "1 function is complete; ".to_owned(),
                _ => format!("{names} functions are complete; "),
            };
            let functions = if names == 0 {
                "all functions"
            } else {
                "the functions after them"
            };
            lost.insert(0, functions.to_owned());
            at = stopped.unwrap_or(at);
        }
        let lost = match lost.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        };
        ErrorKind::Truncated
            .error(format!("the file is cut off ({kept}lost: {lost})"))
            .at(at)
            .within(Structure::IndexedProfile)
            .found(Bytes(data.len()))
            .expected(format_args!("at least {}", Bytes(self.least_len)))
            .with_hint("copy the file again or merge its inputs again: data at its end are lost")
    }
}

impl IndexedProfile<'_> {
    /// Whether damage was found when the file was opened. A damaged file can be opened only with [the option to
    /// salvage](super::IndexedReadOptions::salvage).
    pub fn is_damaged(&self) -> bool {
        !self.damage.is_none() || self.table_error().is_some()
    }

    /// What is wrong with the function table, whose table of buckets can be read. It is looked for when this is asked
    /// for the first time, because that takes a pass over the file.
    pub(super) fn table_error(&self) -> Option<&Error> {
        if !self.looks_for_damage || self.damage.walk {
            return None;
        }
        let checked = self.table_error.get_or_init(|| {
            let damaged = !self.table.scan(|_| true);
            let error = damaged.then(|| self.table.check().err()).flatten();
            error.map(|error| Box::new(error.within(Structure::IndexedProfile)))
        });
        checked.as_deref()
    }

    /// Whether the functions must be read one after the other without the table of buckets.
    pub(super) fn walks(&self) -> bool {
        self.damage.walk || self.table_error().is_some()
    }
}

pub(super) fn salvage(data: &[u8], table_is_checked: bool) -> Result<IndexedProfile<'_>> {
    let header = IndexedHeader::parse(data)?;
    let (summary, cs_summary, payload) = IndexedProfile::read_summaries(data, &header)?;
    let mut damage = Damage::default();
    let table = table(data, &header, payload, &mut damage);
    let memprof_lost = memprof_is_lost(data, &header, &mut damage);
    damage.memprof = memprof_lost;
    let mut section = |section: &header::Section, offset: u64, name| {
        let open = section.open(data, header.version(), offset);
        open.unwrap_or_else(|_| {
            damage.cut(name, offset.saturating_add(8));
            None
        })
    };
    let mut binary_ids = section(
        &header::BINARY_IDS,
        header.binary_ids_offset,
        Structure::BuildIds,
    );
    let mut vtable_names = section(
        &header::VTABLE_NAMES,
        header.vtable_names_offset,
        Structure::VTableNames,
    );
    let traces = if header.has_flag(variant::TEMPORAL) {
        section(
            &header::TRACES,
            header.traces_offset,
            Structure::TemporalTraces,
        )
    } else {
        None
    };
    if let Some(mut cursor) = binary_ids {
        let read = sections::binary_ids_window(&mut cursor);
        binary_ids = windowed(
            data,
            &header,
            cursor,
            read,
            Structure::BuildIds,
            &mut damage,
        );
    }
    if let Some(mut cursor) = vtable_names {
        let mut window = cursor;
        let read = window.u64().and_then(|len| window.window(len));
        cursor = window;
        // Keep the section together with its length field, because the code that reads the section later expects this
        // field.
        vtable_names = windowed(
            data,
            &header,
            cursor,
            read,
            Structure::VTableNames,
            &mut damage,
        )
        .and(vtable_names);
    }
    Ok(IndexedProfile {
        data,
        header,
        summary,
        cs_summary,
        table,
        binary_ids,
        vtable_names,
        traces,
        damage: Box::new(damage),
        looks_for_damage: !table_is_checked,
        table_error: OnceLock::new(),
        as_llvm: false,
    })
}

/// Returns the contents of a section that begins with its own length. If the section cannot be read, records this in
/// `damage` and returns `None`. `cursor` is at the position after the length. `read` is the result of reading the
/// section.
fn windowed<'data>(
    data: &'data [u8],
    header: &IndexedHeader,
    cursor: Cursor<'data>,
    read: Result<Cursor<'data>>,
    section: Structure,
    damage: &mut Damage,
) -> Option<Cursor<'data>> {
    let error = match read {
        Ok(window) => return Some(window),
        Err(error) => error,
    };
    // The error means either that the file is cut off inside this section or that the section is damaged. If a later
    // section begins inside the file, the file is not cut off here, so the section is damaged.
    let end = data.len() as u64;
    let followed = starts(header).any(|start| (cursor.offset() + 1..=end).contains(&start));
    if followed || error.kind() == ErrorKind::BadHeader {
        let error = error.within(section).within(Structure::IndexedProfile);
        damage.faults.push(error);
    } else {
        damage.cut(section, end + 1);
    }
    None
}

fn starts(header: &IndexedHeader) -> impl Iterator<Item = u64> {
    let word = |section: &header::Section, has: bool, offset| {
        (has && header.version() >= section.since).then_some(offset)
    };
    [
        word(
            &header::MEMPROF,
            header.has_flag(variant::MEMPROF),
            header.memprof_offset,
        ),
        word(&header::BINARY_IDS, true, header.binary_ids_offset),
        word(&header::VTABLE_NAMES, true, header.vtable_names_offset),
        word(
            &header::TRACES,
            header.has_flag(variant::TEMPORAL),
            header.traces_offset,
        ),
    ]
    .into_iter()
    .flatten()
}

fn table<'data>(
    data: &'data [u8],
    header: &IndexedHeader,
    payload: u64,
    damage: &mut Damage,
) -> HashTable<'data> {
    let file_end = data.len() as u64;
    let index = header.hash_offset;
    let error = match HashTable::parse(data, payload, index, Lengths::KeyAndData) {
        Ok(table) => return table,
        Err(error) => error,
    };
    damage.walk = true;
    let in_file = (payload..=file_end).contains(&index);
    let next = starts(header)
        .filter(|&start| start > payload.max(if in_file { index } else { 0 }))
        .min();
    let followed = next.is_some_and(|next| next <= file_end);
    if error.kind() == ErrorKind::Truncated && !followed {
        damage.items = !in_file;
        damage.cut(
            Structure::HashTableIndex,
            index.saturating_add(INDEX_HEADER_LEN + 8),
        );
    } else {
        let error = error.at(header::HASH_OFFSET_AT);
        damage.index_unread = true;
        damage.table = Some(error.within(Structure::IndexedProfile));
    }
    let end = match (in_file, damage.items) {
        (true, _) => Some(index),
        (false, true) => None,
        (false, false) => Some(next.unwrap_or(file_end)),
    };
    HashTable::without_index(data, payload, end, Lengths::KeyAndData)
}

/// The length of the two numbers at the start of the table of buckets: the number of buckets and the number of
/// functions.
const INDEX_HEADER_LEN: u64 = 16;

fn memprof_is_lost(data: &[u8], header: &IndexedHeader, damage: &mut Damage) -> bool {
    if !header.has_flag(variant::MEMPROF) || header.version() < header::MEMPROF.since {
        return false;
    }
    let start = header.memprof_offset;
    let file_end = data.len() as u64;
    let next = starts(header).filter(|&next| next > start).min();
    let least = next.unwrap_or_else(|| start.saturating_add(8));
    if least > file_end {
        damage.cut(Structure::MemProfSection, least);
        return true;
    }
    // In version 8 the MemProf section is the last one, so no later section shows where it ends. The tables inside the
    // section show whether it is complete.
    let section = usize::try_from(start)
        .ok()
        .and_then(|start| data.get(start..));
    let (None, Some(bytes)) = (next, section) else {
        return false;
    };
    let section = crate::instr::MemProfSection {
        bytes: bytes.to_vec(),
        offset: start,
    };
    let moved = memprof::relocate(&section, start.saturating_add(8));
    let lost = moved.is_err_and(|error| error.kind() != ErrorKind::UnsupportedVersion);
    if lost {
        damage.cut(Structure::MemProfSection, file_end + 1);
    }
    lost
}
