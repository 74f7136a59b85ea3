//! Questions asked of profiles. Each module takes profiles or binaries and returns a value; front ends turn values into
//! text.
#![forbid(unsafe_code)]
