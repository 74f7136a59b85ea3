//! The share of a part in a whole.

/// Returns `part` divided by `whole`, from 0 to 1; 0 if `whole` is 0.
pub fn share(part: impl Into<u128>, whole: impl Into<u128>) -> f64 {
    match whole.into() {
        0 => 0.0,
        whole => part.into() as f64 / whole as f64,
    }
}
