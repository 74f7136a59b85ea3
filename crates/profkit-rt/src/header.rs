//! The header of one image's part of a raw file.
use profkit_abi::mip::{file_type, raw_header, MAGIC, VERSION};

/// A header as it stands in a raw file, in the byte order of the file.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Header {
    /// [`KIND`](Self::KIND).
    pub kind: u64,
    /// The bitwise OR of all mode flags in the image.
    pub modes: u32,
    /// The length of the build id in bytes.
    pub build_id_length: u32,
    /// The size of the return-address samples in bytes.
    pub samples_size: u32,
    /// The number of runs whose counts the records contain.
    pub runs: u32,
    /// The size of the records in bytes.
    pub records_size: u64,
    /// Zeros after the header, which pad the build id.
    pub padding: u64,
}

const _: () = assert!(core::mem::size_of::<Header>() == raw_header::SIZE + 8);
// The fields have the byte order of the machine, which must be little-endian as raw files are.
#[cfg(profkit_rt_object)]
const _: () = assert!(cfg!(target_endian = "little"));

const WIDTH: u16 = if cfg!(target_pointer_width = "64") {
    file_type::WIDTH_64
} else {
    file_type::WIDTH_32
};

impl Header {
    /// The magic number, the version and the type of all raw files.
    pub const KIND: u64 = MAGIC as u64 | (VERSION as u64) << 32 | ((file_type::RAW | WIDTH) as u64) << 48;

    /// A header that was not filled yet.
    pub const UNUSED: Self = Self {
        kind: 0,
        modes: 0,
        build_id_length: 0,
        samples_size: 0,
        runs: 0,
        records_size: 0,
        padding: 0,
    };
}

/// A build id, in the memory of the image; empty if there is none.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct BuildId {
    start: *const u8,
    length: usize,
}

impl BuildId {
    /// No build id.
    pub const NONE: Self = Self {
        start: core::ptr::null(),
        length: 0,
    };

    /// The number of bytes.
    #[must_use]
    pub fn length(self) -> usize {
        self.length
    }

    /// The address of the build id. If the build id is empty, the address must not be used.
    #[must_use]
    pub fn as_ptr(self) -> *const u8 {
        self.start
    }
}

impl From<&'static [u8]> for BuildId {
    fn from(bytes: &'static [u8]) -> Self {
        Self {
            start: bytes.as_ptr(),
            length: bytes.len(),
        }
    }
}

/// Returns the number of padding bytes after a build id of this length.
#[must_use]
pub fn build_id_padding(length: usize) -> usize {
    length.wrapping_neg() % raw_header::BUILD_ID_ALIGN
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{build_id_padding, Header};
    use profkit_abi::mip::raw_header;

    #[cfg(target_endian = "little")]
    #[test]
    fn fields_stand_where_the_layout_says() {
        let header = Header {
            modes: 0x2221_2023,
            build_id_length: 0x2423_2220,
            samples_size: 0x3433_3230,
            runs: 0x4443_4240,
            records_size: 0x5756_5554_5352_5150,
            kind: Header::KIND,
            padding: 0,
        };
        // SAFETY: the header has no padding between its fields.
        let bytes = unsafe { core::slice::from_raw_parts(core::ptr::addr_of!(header).cast::<u8>(), raw_header::SIZE + 8) };
        let at = |offset: usize, value: &[u8]| assert_eq!(&bytes[offset..offset + value.len()], value);
        at(raw_header::MAGIC, b"\xfbMIP");
        at(raw_header::VERSION, &[9, 0]);
        at(raw_header::FILE_TYPE, &[if cfg!(target_pointer_width = "64") { 0x11 } else { 0x21 }, 0]);
        at(raw_header::MODES, &0x2221_2023_u32.to_le_bytes());
        at(raw_header::BUILD_ID_LENGTH, &0x2423_2220_u32.to_le_bytes());
        at(raw_header::SAMPLES_SIZE, &0x3433_3230_u32.to_le_bytes());
        at(raw_header::RUNS, &0x4443_4240_u32.to_le_bytes());
        at(raw_header::RECORDS_SIZE, &0x5756_5554_5352_5150_u64.to_le_bytes());
    }

    #[test]
    fn padding() {
        assert_eq!([0, 1, 8, 20, 23].map(build_id_padding), [0, 7, 0, 4, 1]);
    }
}
