//! Programs and debug info: build ids, functions, symbolising.
//!
//! # Symbolise addresses
//! [`ProgramFiles`](symbolize::ProgramFiles) opens a program and its debug files, and must live as long as the
//! [`Symbolizer`](symbolize::Symbolizer), which borrows them. Addresses are link-time addresses, as in the
//! symbol table of the program: subtract the load address from an address of a running process. The frames of an
//! address begin with the innermost inlined function. An address in no function has no frames. Without debug info, the
//! function is the symbol that contains the address. A symbol without a size (`_fini`) reaches up to the next symbol.
//! If the last symbol of all has no size, it has no end: every address after it gets its name.
//!
//! [`function_text`](symbolize::Frame::function_text) is the mangled name;
//! [`names::display`](crate::analysis::names::display) demangles it.
//!
//! ```no_run
//! # #[cfg(not(feature = "analysis"))] fn main() {}
//! # #[cfg(feature = "analysis")] fn main() -> profkit::Result<()> {
//! use profkit::analysis::names;
//! use profkit::object::debug_files::DebugFolders;
//! use profkit::object::symbolize::{Options, ProgramFiles};
//!
//! let files = ProgramFiles::open("a.out".as_ref(), &DebugFolders::default())?;
//! let symbolizer = files.symbolizer(&Options::default())?;
//! let locations = symbolizer.symbolize(&[0x1139, 0x1150]);
//! for frame in locations.stack(0) {
//!     let function = names::display(frame.function.unwrap_or(b"?"));
//!     println!("{function} at {}:{}", frame.file_text(), frame.line);
//! }
//! # Ok(())
//! # }
//! ```

/// Object files, opened in parts.
pub mod binary {
    pub use profkit_object::binary::{BinaryFile, Image, programs_in};
}

/// Build ids.
pub mod build_id {
    pub use profkit_object::build_id::{build_id, parse_build_id};
}

/// The counters of an instrumented program.
pub mod correlate {
    pub use profkit_object::correlate::{CounterSection, machine};
}

/// Where a program's debug info is.
pub mod debug_files {
    pub use profkit_object::debug_files::{
        DebugFolders, DebugLink, Located, Rejected, SYSTEM_DEBUG_FOLDER,
    };
}

/// The functions of a binary.
pub mod functions {
    pub use profkit_object::functions::{
        Function, FunctionList, Origin, functions, sampled_functions,
    };
}

/// Binaries by build id.
pub mod index {
    pub use profkit_object::index::{BinaryIndex, IndexCache, IndexError, IndexedBinary};
}

/// Addresses to functions and lines.
pub mod symbolize {
    pub use profkit_object::symbolize::{
        DebugInfo, Declaration, Declarations, DeclaringBinary, Frame, FrameId, InlinedFunctions,
        Inputs, Locations, Options, ProgramFiles, SplitFiles, Subprogram, Subprograms, Symbolizer,
        inlined_functions,
    };
}
