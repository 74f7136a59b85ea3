//! The data of an image that its raw file contains.
use crate::header::{build_id_padding, Header};
use crate::image::{self, Range};
use crate::stream::{Sink, Stream};
use profkit_abi::mip::raw_header;

/// The data of one image that a raw file contains.
pub struct Part {
    pub records: Range,
    pub samples: Range,
    /// The build id of the image; empty if there is none.
    pub build_id: &'static [u8],
    pub modes: &'static [u32],
}

impl Part {
    /// Finds the data of this image.
    #[cfg_attr(not(any(profkit_rt_small, profkit_rt_api)), inline(never))]
    pub fn of_image() -> Self {
        Self {
            records: image::records(),
            samples: image::ring(),
            build_id: image::build_id(),
            modes: image::modes(),
        }
    }

    /// The size of the raw file in bytes.
    #[cfg(profkit_rt_api)]
    pub fn size(&self) -> usize {
        let id = self.build_id.len();
        raw_header::SIZE
            + id
            + build_id_padding(id)
            + self.records.length()
            + self.samples.length()
            + raw_header::CHECKSUM_SIZE
    }

    /// Writes the header and the build id to a stream.
    #[cfg_attr(not(any(profkit_rt_small, profkit_rt_api)), inline(never))]
    pub fn head<S: Sink>(&self, stream: &mut Stream<S>, runs: u32) {
        let id = self.build_id;
        let mut modes = 0;
        for &set in self.modes {
            modes |= set;
        }
        let header = Header {
            modes,
            build_id_length: id.len() as u32,
            samples_size: self.samples.length() as u32,
            runs,
            records_size: self.records.length() as u64,
        };
        let words = header.words();
        let start = words.as_ptr().cast::<u8>();
        // SAFETY: the header is followed by eight bytes, and the padding is shorter.
        unsafe {
            stream.extend_from(start, raw_header::SIZE);
            stream.extend(id);
            stream.extend_from(start.add(raw_header::SIZE), build_id_padding(id.len()));
        }
    }

    /// Writes the header, records, samples and checksum of the image. Returns the first error of the sink, or 0.
    pub fn emit<S: Sink>(&self, stream: &mut Stream<S>) -> i32 {
        self.head(stream, 1);
        // SAFETY: the ranges are sections of this image, which are readable.
        unsafe {
            stream.extend_from(self.records.address() as *const u8, self.records.length());
            stream.extend_from(self.samples.address() as *const u8, self.samples.length());
        }
        stream.finish_with_checksum()
    }
}
