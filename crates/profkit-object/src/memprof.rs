//! Symbolises the stacks of MemProf profiles by LLVM's rules (`RawMemProfReader::symbolizeAndFilterStackFrames`).
//!
//! Names come only from debug info: an address that only the symbol table covers has no frames. Addresses in allocation
//! functions of the run-time library have no frames either. Distributions package that library without debug info, so
//! LLVM finds no frames in the library. The symbol table then shows which addresses belong to the library and which to
//! the program.
use crate::binary::{BinaryFile, Image};
use crate::symbolize::{DebugInfo, Frame, Locations, Options, ProgramFiles};
use object::{Object, ObjectSegment};
use profkit_data::Result;

/// The source files of MemProf's run-time library. Frames in these files are left out.
const RUNTIME_FILES: [&[u8]; 3] = [
    b"memprof_malloc_linux.cpp",
    b"memprof_interceptors.cpp",
    b"memprof_new_delete.cpp",
];

/// The allocation functions in MemProf's run-time library: the symbols of C functions, and the beginnings of the
/// symbols of `operator new` and `operator new[]`. A prefix of an interceptor may come before the name.
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

/// The prefixes that mark a symbol as an interceptor: a function that replaces a function such as `malloc`.
const INTERCEPTOR_PREFIXES: [&[u8]; 2] = [b"___interceptor_", b"__interceptor_"];

/// Whether a symbol belongs to an allocation function of MemProf's run-time library.
fn is_runtime_symbol(name: &[u8]) -> bool {
    let mut prefixes = INTERCEPTOR_PREFIXES.iter();
    let plain = prefixes.find_map(|prefix| name.strip_prefix(*prefix));
    let plain = plain.unwrap_or(name);
    RUNTIME_SYMBOLS.contains(&plain) || plain.starts_with(b"_Znwm") || plain.starts_with(b"_Znam")
}

/// The frames at addresses of one module (a program or library).
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

/// The result of symbolising an address of a MemProf profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The address is in the run-time library. The address has no frames.
    Runtime,
    /// The debug info does not cover the address. The address has no frames, and callers should report it.
    Unknown,
    /// The address has frames, because the debug info covers it.
    Frames,
}

impl ModuleFrames {
    /// Symbolises addresses of a program or library. The addresses are those that the linker assigned.
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

    /// Returns the kind of file from which the frames come.
    pub fn debug_info(&self) -> DebugInfo {
        self.debug_info
    }

    /// Returns the result for the address with this index. `innermost` is whether the address is the innermost of a
    /// call stack. An innermost address without debug info belongs to the run-time library if its symbol is one of that
    /// library's allocation functions.
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

    /// Returns the symbol that contains the address with this index; `None` if the symbol is not known. Callers need
    /// the symbol for addresses without frames.
    pub fn symbol(&self, address: usize) -> Option<&[u8]> {
        self.locations.stack(address).next()?.function
    }

    /// Returns the frames of the address with this index, innermost first.
    pub fn frames(&self, address: usize) -> impl Iterator<Item = Frame<'_>> {
        self.locations.stack(address)
    }

    /// Returns the table of source locations, which also contains the warnings about unreadable debug info.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }
}

/// Returns the address that the linker assigned to the byte at `file_offset`. `None` if the byte is not mapped into
/// memory.
pub fn linked_address(image: &Image<'_>, file_offset: u64) -> Option<u64> {
    image.segments().find_map(|segment| {
        let (start, len) = segment.file_range();
        // Whole pages are mapped, so an address may be after the last byte of the segment.
        let within = file_offset.checked_sub(start & !0xfff)?;
        (within < (start & 0xfff) + len.next_multiple_of(0x1000))
            .then(|| (segment.address() & !0xfff).wrapping_add(within))
    })
}

/// Rounds a size up to whole pages. A size that would overflow does not change.
pub fn whole_pages(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(0x1000).unwrap_or(bytes)
}

/// A mapping of code: its offset in the file and its size, both in bytes. Both are multiples of the page size.
pub type CodeMapping = (u64, u64);

/// Returns the mappings of a program's code. They are compared with the mappings in a raw profile without build ids, to
/// find the program of the profile.
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
