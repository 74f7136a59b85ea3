//! Everything of an indexed profile but its functions: the header, the summaries, and the sections after the function table.
use super::encoder::Summaries;
use super::header::{self, IndexedHeader};
use super::sections;
use super::writer::IndexedWriteOptions;
use crate::Result;
use crate::bytes::assert_planned;
use crate::hash_table::index_offset;
use crate::ids::BuildId;
use crate::instr::{HeapSection, InstrKind, InstrProfile, Losses, MemProfSection, TemporalTraces};
use crate::memprof_section as memprof;
use profkit_abi::{indexed, variant};

/// Everything of an indexed profile but its functions. The offsets of all sections are known as soon as the length of the
/// items of the function table and its number of buckets are.
#[derive(Debug)]
pub struct IndexedFrame<'p> {
    version: u32,
    header: IndexedHeader,
    binary_ids: Option<Vec<u8>>,
    vtable_names: Option<Vec<u8>>,
    traces: Option<&'p TemporalTraces>,
    memprof: Option<Vec<u8>>,
    total_len: u64,
    pub(super) losses: Losses,
}

impl<'p> IndexedFrame<'p> {
    /// Plans the file of a profile, whose tables of functions are not looked at. `size` is the length in bytes of the items
    /// of the function table, and its number of buckets.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) for a MemProf section that contradicts itself.
    pub fn new(
        profile: &'p InstrProfile,
        options: &IndexedWriteOptions,
        size: (u64, usize),
    ) -> Result<Self> {
        let version = options.version;
        let mut losses = Losses::default();
        let traces = Some(&profile.traces)
            .filter(|traces| {
                !traces.traces.is_empty() || profile.kind.contains(InstrKind::TEMPORAL)
            })
            .filter(|traces| {
                let known = version >= header::TRACES.since;
                losses.traces = if known { 0 } else { traces.traces.len() as u64 };
                known
            });
        let memprof = profile.memprof.as_ref().filter(|section| {
            let known = version >= header::MEMPROF.since
                // A MemProf section whose version cannot be read is not counted as a loss. The code that places the
                // section in the file reports the error.
                && section
                    .version()
                    .is_none_or(|version| options.known_memprof.contains(&version));
            losses.memprof = !known;
            known
        });
        let binary_ids = binary_ids(profile, version, &mut losses);
        let vtable_names = if version >= header::VTABLES_SINCE {
            Some(sections::encode_vtable_names(&profile.vtable_names))
        } else {
            losses.vtable_names = profile.vtable_names.len() as u64;
            None
        };
        let mut frame = IndexedFrame {
            version,
            header: IndexedHeader {
                version_word: version_word(profile, options, traces, memprof, &mut losses),
                ..IndexedHeader::default()
            },
            binary_ids,
            vtable_names,
            traces,
            memprof: None,
            total_len: 0,
            losses,
        };
        let memprof = memprof.map(HeapSection::encoded).transpose()?;
        frame.place(memprof.as_deref(), size)?;
        Ok(frame)
    }

    fn place(
        &mut self,
        memprof: Option<&MemProfSection>,
        (payload_len, buckets): (u64, usize),
    ) -> Result<()> {
        self.header.hash_offset = index_offset(self.table_offset(), payload_len);
        let mut offset = self.header.hash_offset + 16 + 8 * buckets as u64;
        if let Some(section) = memprof {
            self.header.memprof_offset = offset;
            let moved = memprof::relocate(section, offset)?;
            offset += moved.len() as u64;
            self.memprof = Some(moved);
        }
        if let Some(ids) = &self.binary_ids {
            self.header.binary_ids_offset = offset;
            offset += ids.len() as u64;
        }
        if let Some(names) = &self.vtable_names {
            self.header.vtable_names_offset = offset;
            offset += names.len() as u64;
        }
        if let Some(traces) = self.traces {
            self.header.traces_offset = offset;
            offset += sections::traces_len(traces);
        }
        self.total_len = offset;
        Ok(())
    }

    /// The offset in the file at which the items of the function table begin.
    pub fn table_offset(&self) -> u64 {
        let summary = sections::summary_len(indexed::SUMMARY_CUTOFFS.len());
        let summaries = match self.version {
            ..header::SUMMARY_SINCE => 0,
            _ if self.header.has_flag(variant::CSIR) => 2,
            _ => 1,
        };
        self.header.encoded_len() + summaries * summary
    }

    /// The length of the whole output file in bytes.
    pub fn total_len(&self) -> u64 {
        self.total_len
    }

    /// The parts of the profile that are left out, because the version cannot hold them.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Appends the header and the summaries to `out`.
    pub fn encode_head(&self, summaries: Summaries, out: &mut Vec<u8>) {
        let before = out.len();
        let mut header = self.header;
        let Summaries {
            plain,
            context_sensitive,
        } = summaries;
        if self.version < header::SUMMARY_SINCE {
            header.max_function_count = plain
                .max_function_count()
                .max(context_sensitive.max_function_count());
        }
        header.encode(out);
        if self.version >= header::SUMMARY_SINCE {
            sections::encode_summary(&plain.finish(), out);
            if self.header.has_flag(variant::CSIR) {
                sections::encode_summary(&context_sensitive.finish(), out);
            }
        }
        let written = (out.len() - before) as u64;
        assert_planned(
            "header and summaries of the indexed profile",
            self.table_offset(),
            written,
        );
    }

    /// Appends the sections after the function table.
    pub fn encode_sections(&self, out: &mut Vec<u8>) {
        for section in [&self.memprof, &self.binary_ids, &self.vtable_names] {
            out.extend_from_slice(section.as_deref().unwrap_or_default());
        }
        if let Some(traces) = self.traces {
            sections::encode_traces(traces, out);
        }
    }
}

fn binary_ids(profile: &InstrProfile, version: u32, losses: &mut Losses) -> Option<Vec<u8>> {
    if version < header::BINARY_IDS.since {
        losses.binary_ids = profile.binary_ids.len() as u64;
        return None;
    }
    let mut ids: Vec<BuildId> = profile.binary_ids.clone();
    ids.sort_unstable();
    ids.dedup();
    Some(sections::encode_binary_ids(&ids))
}

/// Computes the version word. It holds the version, the flags that the intended LLVM release knows, and a flag for each
/// optional section that is written. Stores the flags that the release does not know in `losses`.
fn version_word(
    profile: &InstrProfile,
    options: &IndexedWriteOptions,
    traces: Option<&TemporalTraces>,
    memprof: Option<&HeapSection>,
    losses: &mut Losses,
) -> u64 {
    let sections = InstrKind::MEMPROF | InstrKind::TEMPORAL;
    let wanted = profile.kind.without(sections).version_flags();
    let mut flags = wanted & options.known_flags;
    let lost = InstrKind::from_version_word(wanted & !options.known_flags);
    losses.flags = lost.without(InstrKind::FRONT_END);
    if traces.is_some() {
        flags |= variant::TEMPORAL;
    }
    if memprof.is_some() {
        flags |= variant::MEMPROF;
    }
    flags | u64::from(options.version)
}
