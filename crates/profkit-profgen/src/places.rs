//! The addresses of places in a binary, as recordings and texts state them.
use object::{
    BinaryFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SegmentFlags,
};
use profkit_object::binary::Image;
use profkit_object::bounds::named;
use profkit_perf::collect::Numbering;

/// The size of a page in bytes. llvm-profgen rounds the address of a segment down to a multiple of this size.
pub(crate) const PAGE: u64 = 0x1000;

/// The map from offsets in the file of a binary to addresses.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub(crate) segments: Vec<Segment>,
}

impl Places {
    /// The address of an offset in the file. `None` if no code is at that offset.
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let inside = offset.checked_sub(segment.offset)?;
            (inside < segment.size).then(|| segment.address.wrapping_add(inside))
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub offset: u64,
    pub size: u64,
    pub address: u64,
}

/// What is needed to find the address of a place in a binary, however the place is stated.
#[derive(Clone, Debug, Default)]
pub(crate) struct BinaryPlaces {
    pub places: Places,
    /// The address of the first segment with code, rounded down to a page; of a PE file, the image base.
    pub base: u64,
    /// The addresses of `_text` and `_stext`, from which places in a kernel count.
    kernel_text: Option<u64>,
    kernel_stext: Option<u64>,
    /// The address of the section `.text`. Places in a kernel module are distances from it.
    text: Option<u64>,
}

/// Returns the image base of a PE file; `None` for another file.
pub(crate) fn image_base(image: &Image<'_>) -> Option<u64> {
    match image.format() {
        BinaryFormat::Pe | BinaryFormat::Coff => Some(image.relative_address_base()),
        _ => None,
    }
}

impl BinaryPlaces {
    pub fn of(image: &Image<'_>) -> Self {
        let segments = segments(image);
        let first = segments.first().map_or(0, |segment| segment.address);
        let mut places = BinaryPlaces {
            places: Places { segments },
            base: image_base(image).unwrap_or(first & !(PAGE - 1)),
            text: image
                .section_by_name(".text")
                .map(|section| section.address()),
            ..BinaryPlaces::default()
        };
        places.find_kernel(image);
        places
    }

    /// The places of a running kernel, whose `_text` and `_stext` are at these addresses.
    pub fn of_kernel(kernel_text: Option<u64>, kernel_stext: Option<u64>) -> Self {
        BinaryPlaces {
            kernel_text,
            kernel_stext,
            ..BinaryPlaces::default()
        }
    }

    /// Looks for the symbols from which places in a kernel count, in a kernel or its debug file.
    pub fn find_kernel(&mut self, image: &Image<'_>) {
        for (symbol, name) in named(image, image.symbols()).map_while(Result::ok) {
            match name {
                b"_text" => self.kernel_text = Some(symbol.address()),
                b"_stext" => self.kernel_stext = Some(symbol.address()),
                _ => {}
            }
        }
    }

    /// Returns the address of a place in the binary; `None` if there is no code at the place.
    pub fn address(&self, numbering: Numbering, place: u64) -> Option<u64> {
        match numbering {
            Numbering::Address => Some(place),
            Numbering::FromBase => Some(place.wrapping_add(self.base)),
            Numbering::FileOffset => self.places.address(place),
            Numbering::FromText => Some(place.wrapping_add(self.kernel_text?)),
            Numbering::FromStext => Some(place.wrapping_add(self.kernel_stext?)),
            Numbering::FromModule => Some(place.wrapping_add(self.text?)),
        }
    }
}

/// The segments with code, or the sections where segments are not marked.
fn segments(image: &Image<'_>) -> Vec<Segment> {
    let of_segments = image.segments().filter_map(|segment| {
        let SegmentFlags::Elf { p_flags, .. } = segment.flags() else {
            return None;
        };
        let (offset, size) = segment.file_range();
        p_flags.contains(object::elf::PF_X).then_some(Segment {
            offset,
            size,
            address: segment.address(),
        })
    });
    let segments: Vec<Segment> = of_segments.collect();
    if !segments.is_empty() {
        return segments;
    }
    let text = image
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    let mut sections: Vec<Segment> = text
        .filter_map(|section| {
            let (offset, size) = section.file_range()?;
            Some(Segment {
                offset,
                size,
                address: section.address(),
            })
        })
        .collect();
    sections.sort_by_key(|section| section.address);
    sections
}
