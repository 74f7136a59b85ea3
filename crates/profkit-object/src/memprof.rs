//! Frames of MemProf stacks by LLVM's rules (`RawMemProfReader::symbolizeAndFilterStackFrames`).
//!
//! Names come from debug info alone: an address that only the symbol table knows has no frames. Neither has one in the
//! run-time library's allocation functions.
use crate::binary::{BinaryFile, Image};
use crate::symbolize::{DebugInfo, Frame, Locations, Options, ProgramFiles};
use object::{Object, ObjectSegment};
use profkit_data::Result;

/// The files of the run-time library whose frames are left out.
const RUNTIME_FILES: [&[u8]; 3] = [
    b"memprof_malloc_linux.cpp",
    b"memprof_interceptors.cpp",
    b"memprof_new_delete.cpp",
];

/// What is known of the addresses of one module.
#[derive(Debug)]
pub struct ModuleFrames {
    locations: Locations,
    debug_info: DebugInfo,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In the run-time library: left out.
    Runtime,
    /// Unknown to the debug info: left out, and worth telling.
    Unknown,
    /// It has frames.
    Frames,
}

impl ModuleFrames {
    /// Symbolises addresses of a program or library, as it was linked.
    ///
    /// # Errors
    /// If a file is damaged, or has several architectures.
    pub fn new(files: &ProgramFiles, addresses: &[u64]) -> Result<Self> {
        let symbolizer = files.symbolizer(&Options::default().symbol_names(false))?;
        Ok(ModuleFrames {
            locations: symbolizer.symbolize(addresses),
            debug_info: symbolizer.debug_info(),
        })
    }

    /// Where the frames come from.
    pub fn debug_info(&self) -> DebugInfo {
        self.debug_info
    }

    /// What the address with this index is.
    pub fn answer(&self, address: usize) -> Answer {
        let Some(leaf) = self.locations.stack(address).next() else {
            return Answer::Unknown;
        };
        let named_by_debug_info =
            leaf.function.is_some() && (leaf.file.is_some() || leaf.function_line != 0);
        if !named_by_debug_info
            || matches!(self.debug_info, DebugInfo::SymbolsOnly | DebugInfo::Nothing)
        {
            return Answer::Unknown;
        }
        let file = leaf.file.unwrap_or_default();
        let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
        match RUNTIME_FILES.contains(&name) {
            true => Answer::Runtime,
            false => Answer::Frames,
        }
    }

    /// The inlined frames of the address with this index, innermost first.
    pub fn frames(&self, address: usize) -> impl Iterator<Item = Frame<'_>> {
        self.locations.stack(address)
    }

    /// What of the debug info could not be read.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }
}

/// The address that the byte at an offset of the file is linked at, if it is mapped.
pub fn linked_address(image: &Image<'_>, file_offset: u64) -> Option<u64> {
    image.segments().find_map(|segment| {
        let (start, len) = segment.file_range();
        // Mappings are whole pages, so that an address may lie behind the segment's last byte.
        let within = file_offset.checked_sub(start & !0xfff)?;
        (within < (start & 0xfff) + len.next_multiple_of(0x1000))
            .then(|| (segment.address() & !0xfff).wrapping_add(within))
    })
}

/// Whether a mapping of code, as raw profiles without build ids state it, can be one of this program: offset in the file
/// and bytes, in whole pages.
pub fn fits_mapping(file: &BinaryFile, file_offset: u64, len: u64) -> Result<bool> {
    let page = |number: u64| number.next_multiple_of(0x1000);
    Ok(file.images()?.iter().any(|image| {
        image.segments().any(|segment| {
            let (start, size) = segment.file_range();
            let executable = match segment.flags() {
                object::SegmentFlags::Elf { p_flags, .. } => (p_flags & object::elf::PF_X).0 != 0,
                _ => true,
            };
            executable && start & !0xfff == file_offset && page((start & 0xfff) + size) == page(len)
        })
    }))
}
