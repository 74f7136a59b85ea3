//! Writes the MemProf section of indexed profiles.
use super::radix::Layout;
use crate::MemProfSection;
use crate::hash_table::{ItemId, Lengths, TablePlan};
use crate::index_vec::{Id, IndexVec};
use crate::memprof::block::Schema;
use crate::memprof::data_access::DataAccess;
use crate::memprof::portable;
use crate::memprof::profile::{FRAME_LEN, FrameId, IdScheme, MemProfile, Record, StackId};
use crate::memprof::summary::MemProfSummary;
use crate::releases::Release;
use crate::{ErrorKind, Result};

/// Options for writing a MemProf section.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexedMemProfOptions {
    /// The version of the section to write, 0 to 4.
    pub version: u32,
    /// The fields of the memory info blocks to write.
    pub schema: Schema,
    /// The scheme by which frames and call stacks get their ids. The order of frames and call stacks in the section
    /// depends on these ids.
    pub ids: IdScheme,
    /// Whether a portable section (`portable`) is written after LLVM's tables.
    pub portable: bool,
}

impl IndexedMemProfOptions {
    /// Returns the options for a version of the MemProf section. The ids are those of the newest LLVM release that
    /// writes this version. With `full`, memory info blocks have all fields, otherwise those of [`Schema::hot_cold`].
    /// Versions 0 and 1 always have all fields.
    pub fn for_version(version: u32, full: bool) -> Self {
        let ids = match version {
            0 | 1 => IdScheme::Combined,
            _ => IdScheme::Blake3,
        };
        IndexedMemProfOptions {
            version,
            schema: if full || version < 2 {
                Schema::full()
            } else {
                Schema::hot_cold()
            },
            ids,
            portable: false,
        }
    }

    /// Returns the options that an LLVM release uses by default. Returns `None` for LLVM 14 and earlier, whose indexed
    /// profiles have no MemProf section.
    pub fn for_llvm(release: Release) -> Option<Self> {
        let (version, schema, ids) = match release.major {
            ..=14 => return None,
            15 => (0, Schema::first(19), IdScheme::Combined),
            16..=18 => (0, Schema::first(25), IdScheme::Combined),
            19 => (0, Schema::full(), IdScheme::Combined),
            _ => (3, Schema::hot_cold(), IdScheme::Blake3),
        };
        Some(IndexedMemProfOptions {
            version,
            schema,
            ids,
            portable: false,
        })
    }

    /// Sets the scheme by which frames and call stacks get their ids.
    #[must_use]
    pub fn ids(mut self, ids: IdScheme) -> Self {
        self.ids = ids;
        self
    }

    /// Sets whether a portable section is written.
    #[must_use]
    pub fn portable(mut self, portable: bool) -> Self {
        self.portable = portable;
        self
    }

    /// Sets the fields of the memory info blocks.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }
}

/// The offset in the file at which a section is assumed to be while it is encoded. The writer of the file later adjusts
/// the section to its real offset. The offset is divisible by 8. It is not 0, because 0 means "none" in the section's
/// tables.
const BASE: u64 = 64;

/// Encodes a profile as a MemProf section. The writer of indexed profiles moves the section to its position in the
/// file.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the version does not exist or the profile is too large for the tables.
pub fn encode(profile: &MemProfile, options: &IndexedMemProfOptions) -> Result<MemProfSection> {
    let mut writer = Writer {
        profile,
        options,
        out: Vec::new(),
        positions: IndexVec::new(),
        frame_ids: IndexVec::new(),
        stack_ids: IndexVec::new(),
    };
    match options.version {
        0..=2 => writer.tables()?,
        3 | 4 => writer.tree()?,
        other => {
            return Err(ErrorKind::CannotRepresent
                .error("there is no such version of the MemProf section")
                .found(other)
                .expected("0 to 4"));
        }
    }
    if options.portable {
        let len = writer.out.len();
        writer.out.resize(len.next_multiple_of(8), 0);
        writer.out.extend(portable::encode(profile)?);
    }
    Ok(MemProfSection {
        bytes: writer.out,
        offset: BASE,
    })
}

struct Writer<'a> {
    profile: &'a MemProfile,
    options: &'a IndexedMemProfOptions,
    out: Vec<u8>,
    positions: IndexVec<StackId, u32>,
    frame_ids: IndexVec<FrameId, u64>,
    stack_ids: IndexVec<StackId, u64>,
}

impl Writer<'_> {
    fn offset(&self) -> u64 {
        BASE + self.out.len() as u64
    }

    fn words(&mut self, words: &[u64]) {
        for word in words {
            self.out.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn patch(&mut self, first: usize, words: &[u64]) {
        let place = self.out.get_mut(8 * first..).unwrap_or_default();
        for (slot, word) in place.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn tables(&mut self) -> Result<()> {
        let version = self.options.version;
        (self.frame_ids, self.stack_ids) = self.profile.stored_ids(self.options.ids);
        let first = usize::from(version > 0);
        if version > 0 {
            self.words(&[u64::from(version)]);
        }
        let offsets = if version == 2 { 5 } else { 3 };
        self.words(&vec![0; offsets]);
        self.options.schema.encode(&mut self.out);
        let records = self.records()?;
        let frame_payload = self.offset();
        let frames = self.frame_table()?;
        let mut header = vec![records, frame_payload, frames];
        if version == 2 {
            header.push(self.offset());
            header.push(self.stack_table()?);
        }
        assert_eq!(header.len(), offsets, "offsets of the MemProf section");
        self.patch(first, &header);
        Ok(())
    }

    fn tree(&mut self) -> Result<()> {
        let version = self.options.version;
        self.words(&[u64::from(version), 0, 0, 0]);
        if version >= 4 {
            self.words(&[0]);
            MemProfSummary::of(self.profile).encode(&mut self.out);
        }
        self.options.schema.encode(&mut self.out);
        let layout = Layout::new(self.profile, self.options.ids)?;
        for &frame in &layout.frame_order {
            let frame = &self.profile.frames()[frame];
            self.out.extend_from_slice(&frame.encode());
        }
        let stacks = self.offset();
        for element in &layout.array {
            self.out.extend_from_slice(&element.to_le_bytes());
        }
        self.positions = layout.positions;
        let payload = self.offset();
        let records = self.records()?;
        let mut header = vec![stacks, payload, records];
        if version >= 4 {
            let data = self.profile.data_access.as_ref();
            match data.filter(|data| !DataAccess::is_empty(data)) {
                Some(data) => {
                    header.push(self.offset());
                    data.encode(&mut self.out);
                }
                None => header.push(0),
            }
        }
        let offsets = if version >= 4 { 4 } else { 3 };
        assert_eq!(header.len(), offsets, "offsets of the MemProf section");
        self.patch(1, &header);
        Ok(())
    }

    fn records(&mut self) -> Result<u64> {
        let profile = self.profile;
        let lengths: Vec<u64> = profile
            .records()
            .iter()
            .map(|record| self.record_len(record))
            .collect();
        let keys: Vec<u64> = profile
            .records()
            .iter()
            .map(|record| record.function)
            .collect();
        self.table(
            &keys,
            &lengths,
            Lengths::KeyAndData,
            |writer, index, out| {
                if let Some(record) = profile.records().get(index) {
                    writer.record(record, out);
                }
            },
        )
    }

    fn frame_table(&mut self) -> Result<u64> {
        let profile = self.profile;
        let keys = self.frame_ids.clone();
        let lengths = vec![FRAME_LEN as u64; keys.len()];
        let keys = keys.as_slice();
        self.table(keys, &lengths, Lengths::KeyAndData, |_, index, out| {
            let frame = &profile.frames()[FrameId::from_index(index)];
            out.extend_from_slice(&frame.encode());
        })
    }

    fn stack_table(&mut self) -> Result<u64> {
        let profile = self.profile;
        let keys = self.stack_ids.clone();
        let stacks = profile.stacks();
        let lengths: Vec<u64> = stacks.iter().map(|stack| 8 * stack.len() as u64).collect();
        self.table(
            keys.as_slice(),
            &lengths,
            Lengths::DataOnly { key: 8 },
            |writer, index, out| {
                for &frame in stacks[StackId::from_index(index)].iter() {
                    out.extend_from_slice(&writer.frame_ids[frame].to_le_bytes());
                }
            },
        )
    }

    /// Appends a hash table whose keys are 64-bit numbers. Each key is also used as its own hash. `data_lengths` has
    /// the length of the data of each item, and `data` appends the data of the item with the given index. Returns the
    /// offset of the table of buckets.
    fn table(
        &mut self,
        keys: &[u64],
        data_lengths: &[u64],
        lengths: Lengths,
        data: impl Fn(&Self, usize, &mut Vec<u8>),
    ) -> Result<u64> {
        let keys: IndexVec<ItemId, u64> = keys.iter().copied().collect();
        let data_lengths: IndexVec<ItemId, u64> = data_lengths.iter().copied().collect();
        let data_len = |item| data_lengths[item];
        let key = |item| keys[item];
        let plan = TablePlan::new(keys.iter().copied(), |item| (8, data_len(item)), lengths)?;
        let start = self.offset();
        let mut out = std::mem::take(&mut self.out);
        plan.encode_payload(
            0..plan.len(),
            |item| (key(item), 8, data_len(item)),
            |item, out| {
                out.extend_from_slice(&key(item).to_le_bytes());
                data(self, item.index(), out);
                Ok(())
            },
            &mut out,
        )?;
        plan.encode_index(start, &mut out);
        self.out = out;
        Ok(plan.index_offset(start))
    }

    fn stack_len(&self, stack: StackId) -> u64 {
        match self.options.version {
            0 | 1 => 8 + 8 * self.profile.frame_ids(stack).len() as u64,
            2 => 8,
            _ => 4,
        }
    }

    fn record_len(&self, record: &Record) -> u64 {
        let block_len = self.options.schema.block_len() as u64;
        let sites = record.alloc_sites.iter();
        let allocs: u64 = sites
            .map(|site| self.stack_len(site.stack) + block_len)
            .sum();
        let calls = record.call_sites.iter().map(|site| {
            let callees = match self.options.version {
                4 => 8 + 8 * site.callees.len() as u64,
                _ => 0,
            };
            self.stack_len(site.stack) + callees
        });
        16 + allocs + calls.sum::<u64>()
    }

    fn stack(&self, stack: StackId, out: &mut Vec<u8>) {
        match self.options.version {
            0 | 1 => {
                let frames = self.profile.frame_ids(stack);
                out.extend_from_slice(&(frames.len() as u64).to_le_bytes());
                for &frame in frames {
                    out.extend_from_slice(&self.frame_ids[frame].to_le_bytes());
                }
            }
            2 => {
                out.extend_from_slice(&self.stack_ids[stack].to_le_bytes());
            }
            _ => {
                out.extend_from_slice(&self.positions[stack].to_le_bytes());
            }
        }
    }

    fn record(&self, record: &Record, out: &mut Vec<u8>) {
        out.extend_from_slice(&(record.alloc_sites.len() as u64).to_le_bytes());
        for site in &record.alloc_sites {
            self.stack(site.stack, out);
            self.options.schema.write(&site.block, out);
        }
        out.extend_from_slice(&(record.call_sites.len() as u64).to_le_bytes());
        for site in &record.call_sites {
            self.stack(site.stack, out);
            if self.options.version >= 4 {
                out.extend_from_slice(&(site.callees.len() as u64).to_le_bytes());
                for callee in &site.callees {
                    out.extend_from_slice(&callee.to_le_bytes());
                }
            }
        }
    }
}
