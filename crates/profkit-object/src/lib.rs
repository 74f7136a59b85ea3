//! Binaries and debug info, as far as profiles need them: build ids, the sections and DWARF that raw profiles without
//! metadata are joined to (correlation), and source locations of addresses (symbolising).
#![deny(missing_docs)]
