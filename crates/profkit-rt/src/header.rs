//! Writes the header of one image's part of a raw file.
use profkit_abi::mip::{file_type, raw_header, MAGIC, VERSION};

/// The fields of a header that differ between images.
#[derive(Debug, Clone, Copy)]
pub struct Header {
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
}

const WIDTH: u16 = if cfg!(target_pointer_width = "64") {
    file_type::WIDTH_64
} else {
    file_type::WIDTH_32
};

impl Header {
    /// Returns the header as numbers of 32 bits in the byte order of the file. Two zeros follow it, which can pad the
    /// build id.
    #[must_use]
    pub fn words(&self) -> [u32; raw_header::SIZE / 4 + 2] {
        [
            MAGIC.to_le(),
            ((((file_type::RAW | WIDTH) as u32) << 16) | VERSION as u32).to_le(),
            self.modes.to_le(),
            self.build_id_length.to_le(),
            self.samples_size.to_le(),
            self.runs.to_le(),
            ((self.records_size & 0xffff_ffff) as u32).to_le(),
            ((self.records_size >> 32) as u32).to_le(),
            0,
            0,
        ]
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

    #[test]
    fn fields_stand_where_the_layout_says() {
        let bytes = Header {
            modes: 0x2221_2023,
            build_id_length: 0x2423_2220,
            samples_size: 0x3433_3230,
            runs: 0x4443_4240,
            records_size: 0x5756_5554_5352_5150,
        }
        .words()
        .map(u32::to_ne_bytes)
        .concat();
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
