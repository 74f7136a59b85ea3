//! Damages bytes at random. The same seed always gives the same damage.

/// A small random number generator (SplitMix64) for tests. Its numbers can be guessed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Makes a random number generator. Equal seeds give equal sequences.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a random number from 0 up to but not including `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = u128::from(self.bits()) * (bound as u128);
        usize::try_from(drawn >> 64).expect("the number is below `bound`, which is a usize")
    }
}

/// Numbers at which computations with sizes and counts often go wrong.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x00ff_ffff_ffff_ffff,
    0x0100_0000_0000_0001,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_fff8,
    0xffff_ffff_ffff_ffff,
];

/// Damages `data` in one to four ways: changes bits, bytes, words, or sizes to almost correct values; duplicates,
/// replaces or removes blocks and lines; cuts the data; or replaces a part of the data by a piece of `other`.
pub fn mutate(data: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        mutate_once(data, other, rng);
    }
}

fn mutate_once(data: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    let len = data.len();
    let at = rng.below(len);
    match rng.below(11) {
        // Most checks of a reader concern the header, so bits near the start are changed more often.
        0 | 1 => flip(data, rng.below(len.min(160)), rng.below(8)),
        2 => flip(data, at, rng.below(8)),
        3 => {
            if let Some(byte) = data.get_mut(at) {
                *byte = rng.bits().to_le_bytes()[0];
            }
        }
        4 | 5 => {
            let near = (len as u64).wrapping_add(rng.bits() % 17).wrapping_sub(8);
            let value = match rng.below(EDGES.len() + 2) {
                0 => near,
                1 => rng.bits() % (2 * len as u64 + 1),
                edge => EDGES[edge - 2],
            };
            let width = [2, 4, 8][rng.below(3)];
            let mut bytes = value.to_le_bytes()[..width].to_vec();
            if rng.below(4) == 0 {
                bytes.reverse();
            }
            let at = at - at % width;
            if let Some(word) = data.get_mut(at..at + width) {
                word.copy_from_slice(&bytes);
            }
        }
        6 => data.truncate(at),
        7 => {
            let size = rng.below(64.min(len - at));
            data.drain(at..at + size);
        }
        8 => {
            let size = rng.below(256.min(len - at));
            let piece = data[at..at + size].to_vec();
            let to = rng.below(len);
            data.splice(to..to, piece);
        }
        9 => {
            let from = rng.below(other.len());
            let size = rng.below(other.len() - from).min(256);
            let size = size.min(len - at);
            data[at..at + size].copy_from_slice(&other[from..from + size]);
        }
        _ => {
            // Replaces a line by another line, inserts a copy of a line, or removes a line. In a binary file, a line is
            // the piece between two bytes 0x0a.
            let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
            let (from, to) = (rng.below(lines.len()), rng.below(lines.len()));
            let mut changed = lines.clone();
            match rng.below(3) {
                0 => changed[to] = lines[from],
                1 => changed.insert(to, lines[from]),
                _ => drop(changed.remove(to)),
            }
            *data = changed.join(&b'\n');
        }
    }
}

fn flip(data: &mut [u8], at: usize, bit: usize) {
    if let Some(byte) = data.get_mut(at) {
        *byte ^= 1 << bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_everything_and_most_mutations_change_something() {
        let original: Vec<u8> = (0..=255).collect();
        let damaged = |seed| {
            let mut data = original.clone();
            mutate(&mut data, b"another file", &mut Rng::new(seed));
            data
        };
        let changed = (0..1000).filter(|&seed| damaged(seed) != original).count();
        assert!(changed > 900, "{changed}");
        assert!((0..1000).all(|seed| damaged(seed) == damaged(seed)));
    }

    #[test]
    fn an_empty_file_is_no_trouble() {
        for seed in 0..1000 {
            mutate(&mut Vec::new(), &[], &mut Rng::new(seed));
        }
    }
}
