//! The layout of data records and vtable records, for every version of the raw format and every pointer width.
//!
//! Fields are aligned as a C compiler aligns them, and records are aligned to 8 bytes (`INSTR_PROF_DATA_ALIGNMENT`).
//! The offsets are therefore computed from a list of the fields in file order.
use super::header::{PointerWidth, RawDialect, RawHeader};
use std::ops::Range;

/// The maximum number of value kinds for which a data record states a number of value sites.
pub const MAX_VALUE_KINDS: usize = profkit_abi::value_kind::COUNT;

/// The offsets of the fields in a data record (LLVM's `__llvm_profile_data`), in bytes. An offset is `None` if the
/// version does not have the field. The comment of each field states its width; a pointer has the pointer width of the
/// program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// The distance in bytes from the start of one data record to the start of the next.
    pub stride: usize,
    /// The pointer width of the program that wrote the file.
    pub width: PointerWidth,
    /// The offset of `NameSize`, the length of the name (4 bytes; versions 1 and 2).
    pub name_size: Option<usize>,
    /// The offset of `NamePtr`, the address of the name (a pointer; versions 1 and 2).
    pub name_ptr: Option<usize>,
    /// The offset of `NameRef`, the hash of the name (8 bytes; from version 3).
    pub name_ref: Option<usize>,
    /// The offset of `FuncHash`, the function hash (8 bytes).
    pub func_hash: usize,
    /// The offset of `CounterPtr`, the address of the counters (a pointer). From version 8 it is relative to the data
    /// record.
    pub counter_ptr: usize,
    /// The offset of `UniformCounterPtr`, a pointer relative to the data record (version 11).
    pub uniform_counter_ptr: Option<usize>,
    /// The offset of `BitmapPtr`, a pointer relative to the data record (from version 9).
    pub bitmap_ptr: Option<usize>,
    /// The offset of `FunctionPointer`, the address of the function (a pointer; from version 2).
    pub function_pointer: Option<usize>,
    /// The offset of `Values`, a pointer that has no meaning in a file (from version 2).
    pub values: Option<usize>,
    /// The offset of `NumCounters`, the number of counters (4 bytes).
    pub num_counters: usize,
    /// The offset of `NumValueSites`, an array with the number of value sites of each value kind (2 bytes each). The
    /// array has [`value_kinds`](Self::value_kinds) elements.
    pub num_value_sites: usize,
    /// The number of elements of `NumValueSites`, 0 to 3. There is one element for each value kind that the format of
    /// the file has.
    pub value_kinds: usize,
    /// The offset of `OffloadDeviceWaveSize` (2 bytes; version 11).
    pub offload_device_wave_size: Option<usize>,
    /// The offset of `NumBitmapBytes`, the length of the MC/DC bitmap (4 bytes; from version 9).
    pub num_bitmap_bytes: Option<usize>,
}

/// Computes the offsets of the fields of a record, one field after the other.
struct Placer {
    end: usize,
}

impl Placer {
    fn place(&mut self, size: usize) -> usize {
        let start = self.end.next_multiple_of(size);
        self.end = start + size;
        start
    }
}

const RECORD_ALIGNMENT: usize = 8;

impl RecordLayout {
    /// Returns the layout of the data records in a file with this header. Up to version 8, `ValueKindLast` in the
    /// header decides the number of value kinds. From version 9 the version alone decides it, as in LLVM's readers.
    pub fn of(header: &RawHeader) -> Self {
        let value_kinds = match header.dialect.version {
            1 => 0,
            2..=8 => usize::try_from(header.value_kind_last).map_or(2, |last| last.min(1) + 1),
            9 => 2,
            _ => 3,
        };
        Self::with_value_kinds(header.dialect, value_kinds)
    }

    /// Returns the layout of the data records that LLVM's releases wrote for a version. From LLVM 5 on, a record has
    /// fields for all value kinds of its version.
    pub fn for_dialect(dialect: RawDialect) -> Self {
        let value_kinds = match dialect.version {
            1 => 0,
            2..=9 => 2,
            _ => 3,
        };
        Self::with_value_kinds(dialect, value_kinds)
    }

    fn with_value_kinds(dialect: RawDialect, value_kinds: usize) -> Self {
        let RawDialect { version, width, .. } = dialect;
        let mut placer = Placer { end: 0 };
        let pointer = width.bytes();
        let old = version <= 2;
        let name_size = old.then(|| placer.place(4));
        let old_num_counters = old.then(|| placer.place(4));
        let name_ref = (!old).then(|| placer.place(8));
        let func_hash = placer.place(8);
        let name_ptr = old.then(|| placer.place(pointer));
        let counter_ptr = placer.place(pointer);
        let uniform_counter_ptr = (version >= 11).then(|| placer.place(pointer));
        let bitmap_ptr = (version >= 9).then(|| placer.place(pointer));
        let function_pointer = (version >= 2).then(|| placer.place(pointer));
        let values = (version >= 2).then(|| placer.place(pointer));
        let num_counters = old_num_counters.unwrap_or_else(|| placer.place(4));
        let num_value_sites = placer.end;
        for _ in 0..value_kinds {
            placer.place(2);
        }
        let offload_device_wave_size = (version >= 11).then(|| placer.place(2));
        let num_bitmap_bytes = (version >= 9).then(|| placer.place(4));
        RecordLayout {
            stride: placer.end.next_multiple_of(RECORD_ALIGNMENT),
            width,
            name_size,
            name_ptr,
            name_ref,
            func_hash,
            counter_ptr,
            uniform_counter_ptr,
            bitmap_ptr,
            function_pointer,
            values,
            num_counters,
            num_value_sites,
            value_kinds,
            offload_device_wave_size,
            num_bitmap_bytes,
        }
    }

    /// Returns the byte ranges of a data record whose contents depend on the address at which the system loads the
    /// program. These contents can differ between runs of the same program. The ranges are the fields FunctionPointer
    /// and Values, CounterPtr unless `relative_counters` is set, and NamePtr in versions 1 and 2.
    pub fn moving_fields(&self, relative_counters: bool) -> impl Iterator<Item = Range<usize>> {
        let pointer = self.width.bytes();
        let counter = (!relative_counters).then_some(self.counter_ptr);
        [self.name_ptr, counter, self.function_pointer, self.values]
            .into_iter()
            .flatten()
            .map(move |start| start..start + pointer)
    }
}

/// The offsets of the fields in a vtable record (LLVM's `VTableProfData`), in bytes. The fields are `VTableNameHash`
/// (u64), `VTablePointer` (a pointer) and `VTableSize` (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VTableLayout {
    /// The distance in bytes from the start of one vtable record to the start of the next.
    pub stride: usize,
    /// The offset of `VTableNameHash`, the hash of the vtable's name (8 bytes).
    pub name_hash: usize,
    /// The offset of `VTablePointer`, the address of the vtable (a pointer).
    pub pointer: usize,
    /// The offset of `VTableSize`, the length of the vtable (4 bytes).
    pub size: usize,
}

impl VTableLayout {
    /// Returns the layout of vtable records for a pointer width.
    pub fn of(width: PointerWidth) -> Self {
        let mut placer = Placer { end: 0 };
        let (name_hash, pointer, size) = (
            placer.place(8),
            placer.place(width.bytes()),
            placer.place(4),
        );
        VTableLayout {
            stride: placer.end.next_multiple_of(RECORD_ALIGNMENT),
            name_hash,
            pointer,
            size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Endian;

    fn layout(version: u32, width: PointerWidth, value_kind_last: u64) -> RecordLayout {
        let dialect = RawDialect {
            endian: Endian::Little,
            width,
            version,
            flags: 0,
        };
        let mut header = RawHeader::empty(dialect).unwrap();
        header.value_kind_last = value_kind_last;
        RecordLayout::of(&header)
    }

    #[test]
    fn strides_are_those_of_docs_formats_raw() {
        use PointerWidth::{Bits32, Bits64};
        let strides = |kind: u64, versions: &[u32]| -> Vec<(usize, usize)> {
            let stride = |version, width| layout(version, width, kind).stride;
            versions
                .iter()
                .map(|&v| (stride(v, Bits64), stride(v, Bits32)))
                .collect()
        };
        assert_eq!(
            strides(0, &[1, 2, 3, 4]),
            [(32, 24), (56, 40), (48, 40), (48, 40)]
        );
        assert_eq!(
            strides(1, &[4, 5, 6, 7, 8, 9]),
            [(48, 40), (48, 40), (48, 40), (48, 40), (48, 40), (64, 48)]
        );
        assert_eq!(strides(2, &[10, 11]), [(64, 48), (72, 56)]);
    }

    #[test]
    fn fields_of_version_10_lie_where_clang_puts_them() {
        let wide = layout(10, PointerWidth::Bits64, 2);
        assert_eq!(
            (
                wide.name_ref,
                wide.func_hash,
                wide.counter_ptr,
                wide.bitmap_ptr
            ),
            (Some(0), 8, 16, Some(24))
        );
        assert_eq!((wide.function_pointer, wide.values), (Some(32), Some(40)));
        assert_eq!(
            (
                wide.num_counters,
                wide.num_value_sites,
                wide.num_bitmap_bytes
            ),
            (48, 52, Some(60))
        );
        let narrow = layout(10, PointerWidth::Bits32, 2);
        assert_eq!(
            (
                narrow.counter_ptr,
                narrow.bitmap_ptr,
                narrow.function_pointer,
                narrow.values
            ),
            (16, Some(20), Some(24), Some(28))
        );
        assert_eq!(
            (
                narrow.num_counters,
                narrow.num_value_sites,
                narrow.num_bitmap_bytes
            ),
            (32, 36, Some(44))
        );
        let wave = layout(11, PointerWidth::Bits64, 2);
        assert_eq!(
            (wave.uniform_counter_ptr, wave.offload_device_wave_size),
            (Some(24), Some(66))
        );
    }

    #[test]
    fn what_moves_with_the_address_space_is_the_pointers() {
        let ranges = |version, relative| {
            let layout = layout(version, PointerWidth::Bits64, 1);
            layout.moving_fields(relative).collect::<Vec<_>>()
        };
        assert_eq!(ranges(10, true), [32..40, 40..48]);
        assert_eq!(ranges(5, false), [16..24, 24..32, 32..40]);
        assert_eq!(ranges(1, false), [16..24, 24..32]);
    }
}
