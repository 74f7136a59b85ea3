//! Frames of MemProf stacks by LLVM's rules (`RawMemProfReader::symbolizeAndFilterStackFrames`).
//!
//! Names come from debug info alone: an address that only the symbol table knows has no frames. Neither has one in the
//! run-time library's allocation functions. Where that library has no debug info, as distributions package it, LLVM leaves
//! these out for want of frames; the symbol table then distinguishes them from functions that matter.
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

/// Allocation functions that the run-time library defines, as their symbols begin after the interceptors' prefix: those
/// of C, `operator new` and `operator new[]`.
const RUNTIME_SYMBOLS: [&[u8]; 14] = [
    b"malloc",
    b"calloc",
    b"realloc",
    b"reallocarray",
    b"aligned_alloc",
    b"memalign",
    b"__libc_memalign",
    b"posix_memalign",
    b"valloc",
    b"pvalloc",
    b"strdup",
    b"__strdup",
    b"_Znwm",
    b"_Znam",
];

/// What the names of interceptors begin with.
const INTERCEPTOR_PREFIXES: [&[u8]; 2] = [b"___interceptor_", b"__interceptor_"];

/// Whether a symbol is of an allocation function of the run-time library.
fn is_runtime_symbol(name: &[u8]) -> bool {
    let mut prefixes = INTERCEPTOR_PREFIXES.iter();
    let plain = prefixes.find_map(|prefix| name.strip_prefix(*prefix));
    let plain = plain.unwrap_or(name);
    RUNTIME_SYMBOLS.contains(&plain) || plain.starts_with(b"_Znwm") || plain.starts_with(b"_Znam")
}

/// What is known of the addresses of one module.
///
/// ```
/// use profkit_object::debug_files::DebugFolders;
/// use profkit_object::memprof::{Answer, ModuleFrames};
/// use profkit_object::symbolize::ProgramFiles;
///
/// let program = std::env::current_exe()?;
/// let files = ProgramFiles::open(&program, &DebugFolders::default())?;
/// // No code is at the last address.
/// let frames = ModuleFrames::new(&files, &[u64::MAX])?;
/// assert_eq!(frames.answer(0, true), Answer::Unknown);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

    /// What the address with this index is. The innermost address of a stack is in the run-time library. Its symbol
    /// shows that if there is no debug info of it.
    pub fn answer(&self, address: usize, innermost: bool) -> Answer {
        let Some(leaf) = self.locations.stack(address).next() else {
            return Answer::Unknown;
        };
        let named_by_debug_info =
            leaf.function.is_some() && (leaf.file.is_some() || leaf.function_line != 0);
        if !named_by_debug_info
            || matches!(self.debug_info, DebugInfo::SymbolsOnly | DebugInfo::Nothing)
        {
            return match leaf.function {
                Some(name) if innermost && is_runtime_symbol(name) => Answer::Runtime,
                _ => Answer::Unknown,
            };
        }
        let file = leaf.file.unwrap_or_default();
        let name = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
        if RUNTIME_FILES.contains(&name) {
            Answer::Runtime
        } else {
            Answer::Frames
        }
    }

    /// The function of an address that has no frames, as the symbol table has it.
    pub fn symbol(&self, address: usize) -> Option<&[u8]> {
        self.locations.stack(address).next()?.function
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
        // Mappings are whole pages, so that an address may lie after the segment's last byte.
        let within = file_offset.checked_sub(start & !0xfff)?;
        (within < (start & 0xfff) + len.next_multiple_of(0x1000))
            .then(|| (segment.address() & !0xfff).wrapping_add(within))
    })
}

/// Bytes in whole pages; more than there can be stays as it is.
pub fn whole_pages(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(0x1000).unwrap_or(bytes)
}

/// A mapping of code: offset in the file and bytes, in whole pages.
pub type CodeMapping = (u64, u64);

/// The mappings of a program's code, as raw profiles without build ids state them.
pub fn code_mappings(file: &BinaryFile) -> Result<Vec<CodeMapping>> {
    let mut mappings = Vec::new();
    for image in file.images()? {
        for segment in image.segments() {
            let (start, size) = segment.file_range();
            let executable = match segment.flags() {
                object::SegmentFlags::Elf { p_flags, .. } => (p_flags & object::elf::PF_X).0 != 0,
                _ => true,
            };
            if executable {
                mappings.push((
                    start & !0xfff,
                    whole_pages(size.saturating_add(start & 0xfff)),
                ));
            }
        }
    }
    Ok(mappings)
}
