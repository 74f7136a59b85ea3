//! Read, merge, explain and write every profile that LLVM-based compilers produce or consume.
#![forbid(unsafe_code)]
pub use {profkit_analysis as analysis, profkit_llvm as llvm, profkit_mip as mip};
pub use {profkit_data as data, profkit_merge as merge, profkit_object as object};
