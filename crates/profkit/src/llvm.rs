//! LLVM's tools inside your process.
//!
//! ```
//! use profkit::llvm::{Io, profdata};
//!
//! let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
//! let arguments = ["llvm-profdata", "show", "missing.profdata"].map(Into::into).to_vec();
//! let exit_code = profdata::run(arguments, &mut Io::new(&mut std::io::empty(), &mut stdout, &mut stderr));
//! assert_eq!(exit_code, 1);
//! assert!(String::from_utf8_lossy(&stderr).starts_with("error: missing.profdata: "));
//! ```
pub use profkit_llvm::{Io, PROFDATA, PROFGEN, Tool};

/// `llvm-profdata`.
pub mod profdata {
    pub use profkit_llvm::profdata::run;
}

/// `llvm-profgen`.
pub mod profgen {
    pub use profkit_llvm::profgen::run;
}
