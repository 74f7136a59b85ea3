//! Converts MIP profiles to inputs for unmodified compilers: lists of hot blocks ([`blocks`]) and sample profiles
//! ([`sample`]).
pub mod binary;
pub mod blocks;
pub mod sample;

#[cfg(test)]
mod tests;
