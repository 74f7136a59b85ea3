//! Drops functions until the encoded profile is small enough (LLVM's `DefaultFunctionPruningStrategy` in
//! `SampleProfWriter.cpp`).
use super::SampleProfile;
use crate::Result;
use rustc_hash::FxHashSet;

/// Drops the functions with the fewest samples. `size` is the encoded size of the profile and `limit` the maximum size.
/// The share of functions that is kept is (`limit` / `size`)², and at least one function is dropped. Returns the number
/// of functions that remain in the profile.
#[expect(
    clippy::cast_possible_truncation,
    reason = "LLVM calculates in floating point, and profkit must drop the same functions"
)]
fn prune_to(profile: &mut SampleProfile, size: u64, limit: u64) -> usize {
    let count = profile.functions().len();
    let ratio = limit as f64 / size as f64;
    let kept = (count as f64 * ratio * ratio).round() as usize;
    let removed = count.saturating_sub(kept).max(1);
    let order = profile.llvm_order(&profile.names.ranks());
    let start = order.len().saturating_sub(removed);
    let dropped: FxHashSet<u32> = order.into_iter().skip(start).collect();
    let mut index = 0;
    profile.retain(|_| {
        let keep = !dropped.contains(&index);
        index += 1;
        keep
    });
    profile.functions().len()
}

/// An encoded profile that is at most as large as a given limit.
#[derive(Debug)]
pub struct Limited<L> {
    /// The encoded profile; `None` if even a profile with one function is too large.
    pub bytes: Option<Vec<u8>>,
    /// The parts that were left out because the encoding cannot hold them.
    pub losses: L,
    /// The number of functions that were dropped.
    pub dropped: u64,
}

/// Encodes a profile with the function `write`. If the result has more than `limit` bytes, the functions with the
/// fewest samples are dropped until the encoded profile fits.
pub fn encode_within<L>(
    profile: &mut SampleProfile,
    limit: Option<u64>,
    mut write: impl FnMut(&SampleProfile, &mut Vec<u8>) -> Result<L>,
) -> Result<Limited<L>> {
    let mut bytes = Vec::new();
    let mut dropped = 0;
    loop {
        bytes.clear();
        let losses = write(profile, &mut bytes)?;
        let size = bytes.len() as u64;
        let Some(limit) = limit.filter(|&limit| size > limit) else {
            let bytes = Some(bytes);
            return Ok(Limited {
                bytes,
                losses,
                dropped,
            });
        };
        let before = profile.functions().len();
        let left = prune_to(profile, size, limit);
        dropped += (before - left) as u64;
        if left == 0 {
            return Ok(Limited {
                bytes: None,
                losses,
                dropped,
            });
        }
    }
}

/// Adds symbols to the symbol list of a profile. `list` is a text with one symbol per line. Blanks around a symbol are
/// removed.
pub fn add_symbols(profile: &mut SampleProfile, list: &[u8]) {
    let blank = |byte: &u8| b" \t\n\x0b\x0c\r".contains(byte);
    for line in list.split(|&byte| byte == b'\n') {
        let start = line.iter().position(|byte| !blank(byte));
        let end = line.iter().rposition(|byte| !blank(byte));
        if let (Some(start), Some(end)) = (start, end) {
            let symbol = line.get(start..=end).unwrap_or_default();
            profile.symbols.insert(symbol.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::SampleName;
    use crate::sample::{read, text};

    #[test]
    fn functions_with_the_fewest_samples_go_first() {
        let mut profile = SampleProfile::new();
        read(b"hot:200:1\n 1: 200\ncold:2:1\n 1: 2\n", &mut profile, 1);
        let write = |profile: &SampleProfile, bytes: &mut Vec<u8>| {
            text::write(profile, &text::TextOptions::default(), bytes)
        };
        let whole = encode_within(&mut profile, None, write).unwrap();
        let len = whole.bytes.unwrap().len() as u64;
        assert_eq!(whole.dropped, 0);
        let smaller = encode_within(&mut profile, Some(len - 1), write).unwrap();
        assert_eq!(
            smaller.bytes.as_deref(),
            Some(b"hot:200:1\n 1: 200\n".as_slice())
        );
        assert_eq!(smaller.dropped, 1);
        let nothing = encode_within(&mut profile, Some(3), write).unwrap();
        assert!(nothing.bytes.is_none());
    }

    #[test]
    fn symbols_have_no_blanks_around_them() {
        let mut profile = SampleProfile::new();
        add_symbols(&mut profile, b" main\t\r\n\n \nf g\x0b");
        let symbols: Vec<&[u8]> = profile.symbols.iter().map(AsRef::as_ref).collect();
        assert_eq!(symbols, [b"f g".as_slice(), b"main"]);
    }

    #[test]
    fn pruning_drops_the_coldest_functions() {
        let mut profile = SampleProfile::new();
        read(
            b"a:1:1\n 1: 1\nb:2:1\n 1: 2\nc:3:1\n 1: 3\nd:4:1\n 1: 4\n",
            &mut profile,
            1,
        );
        // If the limit is half of the size, a quarter of the functions is kept.
        assert_eq!(prune_to(&mut profile, 100, 50), 1);
        assert_eq!(profile.functions().len(), 1);
        assert_eq!(
            profile.names.get(profile.functions()[0].samples.name),
            SampleName::Text(b"d")
        );
    }
}
