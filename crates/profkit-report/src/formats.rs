//! The formats that profkit reads and writes, as text.
use profkit_abi::{indexed, mip, raw};
use std::sync::OnceLock;

/// The text of `--version`: profkit's version, and for each kind of profile the versions that it reads and writes.
pub fn long_version() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{}\n\
             instrumentation profiles: reads raw {}-{}, indexed {}-{} and text (LLVM 3.5 to 23); writes indexed 3-{} and text (LLVM 3.8 to 23)\n\
             sample profiles: reads and writes text, binary, compact binary (LLVM 7 to 16), extensible binary (LLVM 10 to 23; 104 and 105 are read) and GCC's .afdo\n\
             heap profiles: reads raw 1-5; reads and writes MemProf sections 0-4 of indexed profiles and YAML (LLVM 14 to 23)\n\
             MIP profiles: reads and writes versions {} and {} and YAML",
            env!("CARGO_PKG_VERSION"),
            raw::VERSION_FIRST,
            raw::VERSION_LAST,
            indexed::VERSION_FIRST,
            indexed::VERSION_LAST,
            indexed::VERSION_LAST,
            mip::v8::VERSION,
            mip::VERSION,
        )
    })
}
