//! The data of an image that its raw file contains.
use crate::header::{build_id_padding, BuildId, Header};
use crate::image::{self, Range};
use crate::stream::{Sink, Stream};
use core::ptr::addr_of;
use profkit_abi::mip::raw_header;

#[repr(C)]
pub struct Part {
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub header: Header,
    pub records: Range,
    pub samples: Range,
    #[cfg(any(profkit_rt_small, profkit_rt_api))]
    build_id: BuildId,
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub common_modes: u32,
}

impl Part {
    /// Data that were not found yet.
    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    pub const UNUSED: Self = Self {
        header: Header::UNUSED,
        records: Range::NONE,
        samples: Range::NONE,
        common_modes: 0,
    };

    #[cfg(not(any(profkit_rt_small, profkit_rt_api)))]
    #[inline(always)]
    pub fn find(&mut self, build_id_length: usize) {
        self.records = image::records();
        self.samples = image::ring();
        let (mut all, mut common) = (0, u32::MAX);
        for &set in image::modes() {
            all |= set;
            common &= set;
        }
        self.common_modes = common;
        self.header = self.header_with(all, build_id_length);
    }

    #[cfg(any(profkit_rt_small, profkit_rt_api))]
    pub fn of_image() -> Self {
        Self {
            records: image::records(),
            samples: image::ring(),
            build_id: image::build_id().into(),
        }
    }

    #[inline(always)]
    fn header_with(&self, modes: u32, build_id_length: usize) -> Header {
        Header {
            kind: Header::KIND,
            modes,
            build_id_length: build_id_length as u32,
            samples_size: self.samples.length() as u32,
            runs: 1,
            records_size: self.records.length() as u64,
            padding: 0,
        }
    }

    /// The size of the raw file in bytes.
    #[cfg(profkit_rt_api)]
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size_with(self.build_id.length())
    }

    /// The size of the raw file in bytes, with a build id of `id` bytes.
    #[cfg(not(profkit_rt_small))]
    #[inline(always)]
    pub fn size_with(&self, id: usize) -> usize {
        raw_header::SIZE
            + id
            + build_id_padding(id)
            + self.records.length()
            + self.samples.length()
            + raw_header::CHECKSUM_SIZE
    }

    #[cfg(any(profkit_rt_small, profkit_rt_api))]
    pub fn emit<S: Sink>(&self, stream: &mut Stream<S>) -> i32 {
        let mut modes = 0;
        for &set in image::modes() {
            modes |= set;
        }
        write_head(&self.header_with(modes, self.build_id.length()), self.build_id, stream);
        self.records.emit(stream);
        self.samples.emit(stream);
        stream.finish_with_checksum()
    }
}

pub fn write_head<S: Sink>(header: &Header, id: BuildId, stream: &mut Stream<S>) {
    // SAFETY: all bytes of the header are initialized. The build id is readable. The field `padding` has at least as
    // many zeros as the padding after the build id needs.
    unsafe {
        stream.extend_from(addr_of!(*header).cast(), raw_header::SIZE);
        stream.extend_from(id.as_ptr(), id.length());
        stream.extend_from(addr_of!(header.padding).cast(), build_id_padding(id.length()));
    }
}
