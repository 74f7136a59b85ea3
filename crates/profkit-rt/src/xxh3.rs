//! Computes the hash XXH3-64 with seed 0 and the default secret, for inputs longer than 16 bytes. Each part of a raw
//! file is longer than that. The code was written from the algorithm's specification (doc/xxhash_spec.md of the xxHash
//! project).

/// The size of a stripe: the number of bytes that the accumulators process in one step.
pub const STRIPE: usize = 64;
/// The size of a block: the number of bytes between two scramblings of the accumulators.
pub const BLOCK: usize = 1024;
/// The length in bytes of the longest input that [`short`] can hash. A longer input needs [`Accumulators`].
pub const SHORT_MAX: usize = 240;
/// The length in bytes of the shortest input that [`short`] can hash.
pub const SHORT_MIN: usize = 17;

const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d,
    0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0,
    0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0,
    0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b,
    0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac,
    0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51,
    0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34,
    0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49,
    0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8,
    0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b,
    0x40, 0x7e,
];

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;
const AVALANCHE: u64 = 0x1656_6791_9e37_79f9;

/// Reads a little-endian u64.
///
/// # Safety
/// The caller must ensure that eight bytes at `at` are readable.
unsafe fn word(at: *const u8) -> u64 {
    // SAFETY: the caller promises that eight bytes are readable; an array of bytes needs no alignment.
    u64::from_le_bytes(unsafe { at.cast::<[u8; 8]>().read() })
}

/// Returns eight bytes of the secret. All callers pass constants or loop counters that are at most the length of the
/// secret minus 8. A larger offset would be replaced by 0, which makes the access safe without a branch that could
/// panic.
fn secret(at: usize) -> u64 {
    let at = if at > SECRET.len() - 8 { 0 } else { at };
    // SAFETY: `at` + 8 is not beyond the end of the secret.
    unsafe { word(SECRET.as_ptr().add(at)) }
}

/// Multiplies two numbers and returns the exclusive OR of the two halves of the 128-bit product. The product is
/// computed from smaller products, because 32-bit targets would need a library for 128-bit multiplication.
fn multiply_fold(a: u64, b: u64) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    let low = (a & LOW) * (b & LOW);
    let middle = (a >> 32) * (b & LOW) + (low >> 32);
    let middle_2 = (a & LOW) * (b >> 32) + (middle & LOW);
    let high = (a >> 32) * (b >> 32) + (middle >> 32) + (middle_2 >> 32);
    high ^ ((middle_2 << 32) | (low & LOW))
}

fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(AVALANCHE);
    hash ^ (hash >> 32)
}

/// Mixes 16 bytes of the input with the secret.
///
/// # Safety
/// The caller must ensure that sixteen bytes at `at` are readable.
unsafe fn mix(at: *const u8, secret_at: usize) -> u64 {
    // SAFETY: the caller promises that sixteen bytes are readable.
    let (low, high) = unsafe { (word(at), word(at.add(8))) };
    multiply_fold(low ^ secret(secret_at), high ^ secret(secret_at + 8))
}

/// Returns the hash of a short input: [`SHORT_MIN`] to [`SHORT_MAX`] bytes.
///
/// # Safety
/// The caller must ensure that `length` bytes at `input` are readable, and that `length` is from [`SHORT_MIN`] to
/// [`SHORT_MAX`].
pub unsafe fn short(input: *const u8, length: usize) -> u64 {
    let mut hash = (length as u64).wrapping_mul(PRIME64_1);
    if length <= 128 {
        // Each round mixes two pieces of 16 bytes: one counted from the start of the input, one from its end.
        let mut pair = (length - 1) / 32;
        loop {
            // SAFETY: 16 * (pair + 1) <= length, because pair is at most (length - 1) / 32, and length > 16.
            let (first, last) = unsafe {
                (
                    mix(input.add(16 * pair), 32 * pair),
                    mix(input.add(length - 16 * (pair + 1)), 32 * pair + 16),
                )
            };
            hash = hash.wrapping_add(first).wrapping_add(last);
            if pair == 0 {
                break;
            }
            pair -= 1;
        }
        return avalanche(hash);
    }
    let mut at = 0;
    while at + 16 <= length {
        let secret_at = if at < 128 { at } else { at - 128 + 3 };
        // SAFETY: at + 16 <= length, so the bytes are within the input.
        hash = hash.wrapping_add(unsafe { mix(input.add(at), secret_at) });
        at += 16;
        if at == 128 {
            hash = avalanche(hash);
        }
    }
    // SAFETY: length > 128, so the bytes are within the input.
    avalanche(hash.wrapping_add(unsafe { mix(input.add(length - 16), 136 - 17) }))
}

/// The state of the hash of a long input.
#[derive(Debug, Clone, Copy)]
pub struct Accumulators([u64; 8]);

impl Default for Accumulators {
    fn default() -> Self {
        Self::NEW
    }
}

impl Accumulators {
    /// The state of a hash before any input was processed.
    pub const NEW: Self = Self([
        PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
    ]);

    /// Processes one stripe of the input: mixes it with the bytes of the secret from offset `secret_at` on, and adds
    /// the result to the accumulators.
    ///
    /// # Safety
    /// The caller must ensure that [`STRIPE`] bytes at `stripe` are readable.
    unsafe fn stripe(&mut self, stripe: *const u8, secret_at: usize) {
        let accumulators = self.0.as_mut_ptr();
        for lane in 0..8 {
            // SAFETY: lane < 8 and lane ^ 1 < 8, and the caller promises that the stripe is readable.
            unsafe {
                let value = word(stripe.add(8 * lane));
                let key = value ^ secret(secret_at + 8 * lane);
                let other = accumulators.add(lane ^ 1);
                *other = (*other).wrapping_add(value);
                let own = accumulators.add(lane);
                *own = (*own).wrapping_add((key & 0xffff_ffff).wrapping_mul(key >> 32));
            }
        }
    }

    /// Adds the first `count` stripes of a block to the accumulators.
    ///
    /// # Safety
    /// The caller must ensure that `count` stripes at `block` are readable, and that `count` is at most 16.
    unsafe fn stripes(&mut self, block: *const u8, count: usize) {
        for index in 0..count {
            // SAFETY: the caller promises that `count` stripes are readable.
            unsafe { self.stripe(block.add(STRIPE * index), 8 * index) };
        }
    }

    /// Adds a complete block that is not the end of the input to the accumulators, then scrambles them.
    ///
    /// # Safety
    /// The caller must ensure that [`BLOCK`] bytes at `block` are readable.
    pub unsafe fn block(&mut self, block: *const u8) {
        // SAFETY: the caller promises that a block is readable, and a block has 16 stripes.
        unsafe { self.stripes(block, BLOCK / STRIPE) };
        let mut secret_at = 128;
        for value in &mut self.0 {
            *value ^= *value >> 47;
            *value ^= secret(secret_at);
            *value = value.wrapping_mul(PRIME32_1);
            secret_at += 8;
        }
    }

    /// Adds the last `length` bytes of an input of `total` bytes to the accumulators, and returns the hash. `length` is
    /// 1 to [`BLOCK`].
    ///
    /// # Safety
    /// The caller must ensure that `length` bytes at `rest` are readable. The [`STRIPE`] bytes before the end of these
    /// bytes must be readable too; the first of them may belong to the previous block.
    pub unsafe fn finish(mut self, rest: *const u8, length: usize, total: u64) -> u64 {
        // SAFETY: the complete stripes end before the last byte, and the last stripe ends with the last byte.
        unsafe {
            self.stripes(rest, length.wrapping_sub(1) / STRIPE);
            self.stripe(rest.wrapping_add(length).wrapping_sub(STRIPE), 192 - 64 - 7);
        }
        let mut hash = total.wrapping_mul(PRIME64_1);
        let mut secret_at = 11;
        let [a, b, c, d, e, f, g, h] = self.0;
        for (low, high) in [(a, b), (c, d), (e, f), (g, h)] {
            hash = hash.wrapping_add(multiply_fold(low ^ secret(secret_at), high ^ secret(secret_at + 8)));
            secret_at += 16;
        }
        avalanche(hash)
    }
}
