//! A data record of a raw profile, decoded from its bytes.
use super::header::RawDialect;
use super::layout::{MAX_VALUE_KINDS, RecordLayout, VTableLayout};
use crate::ids::{FuncHash, NameRef};

/// How a data record refers to the name of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawName {
    /// `NameRef`: the low 64 bits of the MD5 of the name (from version 3).
    Ref(NameRef),
    /// `NamePtr` and `NameSize`: the address of the name in the program, and its length in bytes (versions 1 and 2).
    Pointer {
        /// `NamePtr`: the address of the name. `NamesDelta` in the header is the address of the names section.
        pointer: u64,
        /// `NameSize`: the length of the name in bytes.
        size: u32,
    },
}

/// A data record exactly as in the file, without checks. If the version does not have a field, the field is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// The index of the data record in its profile, from 0.
    pub index: usize,
    /// The reference to the name of the function.
    pub name: RawName,
    /// `FuncHash`: a hash of the function's control flow.
    pub func_hash: FuncHash,
    /// `CounterPtr`: up to version 7 the address of the counters, from version 8 the distance of the counters from the
    /// data record.
    pub counter_ptr: u64,
    /// `UniformCounterPtr`: the distance of the uniform counters from the data record (version 11).
    pub uniform_counter_ptr: u64,
    /// `BitmapPtr`: the distance of the MC/DC bitmap from the data record (from version 9).
    pub bitmap_ptr: u64,
    /// `FunctionPointer`: the address of the function in this run. It is 0 if the program never takes the function's
    /// address.
    pub function_pointer: u64,
    /// `NumCounters`: the number of counters.
    pub num_counters: u32,
    /// `NumValueSites`: the number of value sites for each value kind.
    pub num_value_sites: [u16; MAX_VALUE_KINDS],
    /// `OffloadDeviceWaveSize`: the number of threads in a wave of the GPU (version 11).
    pub offload_device_wave_size: u16,
    /// `NumBitmapBytes`: the length of the MC/DC bitmap in bytes (from version 9).
    pub num_bitmap_bytes: u32,
}

impl RawRecord {
    /// Decodes a data record from its [`stride`](RecordLayout::stride) bytes. Missing bytes count as 0.
    pub fn decode(bytes: &[u8], index: usize, dialect: RawDialect, layout: &RecordLayout) -> Self {
        let fields = Fields { bytes, dialect };
        let pointer = |offset: Option<usize>| offset.map_or(0, |offset| fields.pointer(offset));
        let name = match (layout.name_ref, layout.name_ptr, layout.name_size) {
            (None, Some(pointer), Some(size)) => RawName::Pointer {
                pointer: fields.pointer(pointer),
                size: fields.u32(size),
            },
            (name_ref, ..) => RawName::Ref(NameRef(name_ref.map_or(0, |at| fields.u64(at)))),
        };
        let mut num_value_sites = [0; MAX_VALUE_KINDS];
        for (kind, sites) in num_value_sites
            .iter_mut()
            .enumerate()
            .take(layout.value_kinds)
        {
            *sites = fields.u16(layout.num_value_sites + 2 * kind);
        }
        RawRecord {
            index,
            name,
            func_hash: FuncHash(fields.u64(layout.func_hash)),
            counter_ptr: fields.pointer(layout.counter_ptr),
            uniform_counter_ptr: pointer(layout.uniform_counter_ptr),
            bitmap_ptr: pointer(layout.bitmap_ptr),
            function_pointer: pointer(layout.function_pointer),
            num_counters: fields.u32(layout.num_counters),
            num_value_sites,
            offload_device_wave_size: layout
                .offload_device_wave_size
                .map_or(0, |at| fields.u16(at)),
            num_bitmap_bytes: layout.num_bitmap_bytes.map_or(0, |at| fields.u32(at)),
        }
    }

    /// Whether the record has value sites. Only then does the value data section have value data for the record. The
    /// section has the value data of all such records one after the other, in the order of the records.
    #[inline]
    pub fn has_value_data(&self) -> bool {
        self.num_value_sites.iter().any(|&sites| sites != 0)
    }
}

/// A vtable record of a raw profile (from version 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawVTable {
    /// `VTableNameHash`: the low 64 bits of the MD5 of the vtable's name.
    pub name_hash: NameRef,
    /// `VTablePointer`: the address of the vtable in this run.
    pub pointer: u64,
    /// `VTableSize`: the length of the vtable in bytes.
    pub size: u32,
}

impl RawVTable {
    pub(super) fn decode(bytes: &[u8], dialect: RawDialect) -> Self {
        let fields = Fields { bytes, dialect };
        let layout = VTableLayout::of(dialect.width);
        RawVTable {
            name_hash: NameRef(fields.u64(layout.name_hash)),
            pointer: fields.pointer(layout.pointer),
            size: fields.u32(layout.size),
        }
    }
}

struct Fields<'data> {
    bytes: &'data [u8],
    dialect: RawDialect,
}

impl Fields<'_> {
    #[inline]
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self.bytes.get(at..).and_then(|rest| rest.first_chunk());
        *bytes.unwrap_or(&[0; N])
    }

    #[inline]
    fn u16(&self, at: usize) -> u16 {
        self.dialect.endian.u16(self.array(at))
    }

    #[inline]
    fn u32(&self, at: usize) -> u32 {
        self.dialect.endian.u32(self.array(at))
    }

    #[inline]
    fn u64(&self, at: usize) -> u64 {
        self.dialect.endian.u64(self.array(at))
    }

    #[inline]
    fn pointer(&self, at: usize) -> u64 {
        match self.dialect.width.bytes() {
            4 => u64::from(self.u32(at)),
            _ => self.u64(at),
        }
    }
}
