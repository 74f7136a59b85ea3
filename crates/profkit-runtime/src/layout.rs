//! The layouts of function records and file headers in each raw version. docs/formats/raw.md has the tables.
use core::mem::size_of;

/// The size in bytes of a pointer in a function record.
const POINTER: usize = size_of::<usize>();

/// The raw versions for which there is a runtime: those of LLVM 13 to 23.
pub const VERSIONS: [u32; 5] = [7, 8, 9, 10, 11];

#[must_use]
pub fn is_known(version: u32) -> bool {
    for known in VERSIONS {
        if known == version {
            return true;
        }
    }
    false
}

/// The version of the raw profiles that the code of this object file writes.
pub const RAW: u32 = if cfg!(profkit_raw = "7") {
    7
} else if cfg!(profkit_raw = "8") {
    8
} else if cfg!(profkit_raw = "9") {
    9
} else if cfg!(profkit_raw = "11") {
    11
} else {
    10
};

/// The layout of the raw version that this object file writes.
pub const LAYOUT: Layout = Layout::of(RAW);

/// The offset of `NameRef`, the hash of the function's name, in every version.
pub const NAME_REF: usize = 0;
/// The offset of `FuncHash`, the hash of the function's code, in every version.
pub const FUNC_HASH: usize = 8;
/// The offset of `CounterPtr`: an address in version 7, later a distance from the record.
pub const COUNTER_PTR: usize = 16;
/// The largest number of values that a raw file can have for one value site.
pub const VALUES_PER_SITE: usize = 255;
/// The index of the value kind "indirect call targets". Its values are addresses.
pub const KIND_CALL: usize = 0;
/// The index of the value kind "virtual tables". Its values are addresses.
pub const KIND_VTABLE: usize = 2;
/// The largest number of value kinds in any version.
pub const KINDS_MAX: usize = 3;
/// The offset in bytes of the virtual table's address in its entry.
pub const VTABLE_POINTER: usize = 8;
/// The size in bytes of the entry of a virtual table.
pub const VTABLE_SIZE: usize = if POINTER == 8 { 24 } else { 16 };
/// The number of 8-byte words in the longest header of any version.
pub const HEADER_MAX: usize = 19;

/// The offsets in a function record of one raw version, and the sizes of record and header, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub version: u32,
    pub stride: usize,
    pub bitmap_ptr: usize,
    pub function: usize,
    pub values: usize,
    pub num_counters: usize,
    pub num_sites: usize,
    pub kinds: usize,
    pub num_bitmap: usize,
    pub header_words: usize,
}

impl Layout {
    #[must_use]
    pub const fn of(version: u32) -> Self {
        let (pointers, kinds, header_words) = match version {
            0..=8 => (3, 2, 11),
            9 => (4, 2, 14),
            10 => (4, 3, 16),
            _ => (5, 3, 19),
        };
        let num_counters = COUNTER_PTR + pointers * POINTER;
        let num_sites = num_counters + 4;
        // If there are three value kinds, the numbers of their sites take six bytes. Two more bytes follow: padding, or
        // in version 11 the wave size of a GPU.
        let num_bitmap = num_sites + if kinds == 3 { 8 } else { 4 };
        let end = if version < 9 { num_sites + 4 } else { num_bitmap + 4 };
        Self {
            version,
            stride: (end + 7) & !7,
            bitmap_ptr: if version < 9 {
                0
            } else {
                COUNTER_PTR + (pointers - 3) * POINTER
            },
            function: COUNTER_PTR + (pointers - 2) * POINTER,
            values: COUNTER_PTR + (pointers - 1) * POINTER,
            num_counters,
            num_sites,
            kinds,
            num_bitmap: if version < 9 { 0 } else { num_bitmap },
            header_words,
        }
    }
}

#[must_use]
pub const fn padding(size: usize) -> usize {
    size.wrapping_neg() & 7
}

/// Sizes up to 8 and powers of two up to 512 stay. Others up to 512 become the power of two below plus one, larger ones
/// 513.
#[must_use]
pub const fn representative_size(size: u64) -> u64 {
    if size <= 8 {
        size
    } else if size > 512 {
        513
    } else if size & (size - 1) == 0 {
        size
    } else {
        (1 << (63 - size.leading_zeros())) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{padding, representative_size, Layout};

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn layouts_are_those_of_the_compilers() {
        for (version, expected) in [
            (7, [48, 0, 24, 32, 40, 44, 0, 11]),
            (8, [48, 0, 24, 32, 40, 44, 0, 11]),
            (9, [64, 24, 32, 40, 48, 52, 56, 14]),
            (10, [64, 24, 32, 40, 48, 52, 60, 16]),
            (11, [72, 32, 40, 48, 56, 60, 68, 19]),
        ] {
            let l = Layout::of(version);
            let found = [
                l.stride,
                l.bitmap_ptr,
                l.function,
                l.values,
                l.num_counters,
                l.num_sites,
                l.num_bitmap,
                l.header_words,
            ];
            assert_eq!(found, expected, "version {version}");
        }
    }

    #[test]
    fn sizes_of_memory_operations_are_grouped() {
        for (size, expected) in [
            (0, 0), (8, 8), (9, 9), (15, 9), (16, 16), (17, 17), (31, 17), (511, 257), (512, 512), (513, 513), (u64::MAX, 513),
        ] {
            assert_eq!(representative_size(size), expected, "{size}");
        }
    }

    #[test]
    fn sections_are_padded_to_words() {
        assert_eq!([0, 1, 7, 8, 9].map(padding), [0, 7, 1, 0, 7]);
    }
}
