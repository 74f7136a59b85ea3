//! The data of an image that its raw file contains.
use crate::header::{build_id_padding, BuildId, Header};
use crate::image::{self, Range};
use crate::stream::{Sink, Stream};
use core::ptr::addr_of;
use profkit_abi::mip::raw_header;

/// The data of one image that a raw file contains.
#[repr(C)]
pub struct Part {
    pub header: Header,
    pub records: Range,
    pub samples: Range,
    pub build_id: BuildId,
    /// The bitwise AND of all sets of mode flags in the image.
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub common_modes: u32,
}

impl Part {
    /// Data that were not found yet.
    pub const UNUSED: Self = Self {
        header: Header::UNUSED,
        records: Range::NONE,
        samples: Range::NONE,
        build_id: BuildId::NONE,
        #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
        common_modes: 0,
    };

    /// Finds the data of this image.
    #[inline(always)]
    pub fn find(&mut self) {
        self.records = image::records();
        self.samples = image::ring();
        self.build_id = image::build_id().into();
    }

    /// Fills the header with what was found.
    #[inline(always)]
    pub fn fill_header(&mut self) {
        let mut all = 0;
        #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
        let mut common = u32::MAX;
        for &set in image::modes() {
            all |= set;
            #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
            {
                common &= set;
            }
        }
        #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
        {
            self.common_modes = common;
        }
        self.header.kind = Header::KIND;
        self.header.modes = all;
        self.header.build_id_length = self.build_id.length() as u32;
        self.header.samples_size = self.samples.length() as u32;
        self.header.runs = 1;
        self.header.records_size = self.records.length() as u64;
    }

    /// Finds the data of this image.
    #[cfg(any(profkit_rt_small, profkit_rt_api))]
    pub fn of_image() -> Self {
        let mut part = Self::UNUSED;
        part.find();
        part
    }

    /// The size of the raw file in bytes.
    #[cfg(profkit_rt_api)]
    pub fn size(&self) -> usize {
        let id = self.build_id.length();
        raw_header::SIZE
            + id
            + build_id_padding(id)
            + self.records.length()
            + self.samples.length()
            + raw_header::CHECKSUM_SIZE
    }

    /// Writes the header, records, samples and checksum of the image. Returns the first error of the sink, or 0.
    #[cfg(any(profkit_rt_small, profkit_rt_api))]
    pub fn emit<S: Sink>(mut self, stream: &mut Stream<S>) -> i32 {
        self.fill_header();
        // Because of the copy, the other fields need no memory.
        let header = self.header;
        write_head(&header, self.build_id, stream);
        self.records.emit(stream);
        self.samples.emit(stream);
        stream.finish_with_checksum()
    }
}

/// Writes a header and the build id to a stream.
pub fn write_head<S: Sink>(header: &Header, id: BuildId, stream: &mut Stream<S>) {
    // SAFETY: all bytes of the header are initialized. The build id is readable. Its padding is shorter than that of the
    // header.
    unsafe {
        stream.extend_from(addr_of!(*header).cast(), raw_header::SIZE);
        stream.extend_from(id.as_ptr(), id.length());
        stream.extend_from(addr_of!(header.padding).cast(), build_id_padding(id.length()));
    }
}
