//! Computes the hash XXH3-64 with seed 0 and the default secret, for inputs longer than 16 bytes. The hashed part of a
//! raw file, which begins with its header, is always longer. The code was written from the algorithm's specification
//! (doc/xxhash_spec.md of the xxHash project).

/// The size of a stripe: the number of bytes that the accumulators process in one step.
pub const STRIPE: usize = 64;
/// The size of a block: the number of bytes between two scramblings of the accumulators.
pub const BLOCK: usize = 1024;
/// The length in bytes of the longest input that [`short`] can hash. A longer input needs [`Accumulators`].
pub const SHORT_MAX: usize = 240;

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

/// # Safety
/// The caller must ensure that eight bytes at `at` are readable.
unsafe fn word(at: *const u8) -> u64 {
    // SAFETY: the caller promises that eight bytes are readable; an array of bytes needs no alignment.
    u64::from_le_bytes(unsafe { at.cast::<[u8; 8]>().read() })
}

/// # Safety
/// The caller must pass an `at` of at most the length of the secret minus 8.
unsafe fn secret(at: usize) -> u64 {
    // SAFETY: the caller promises that `at` + 8 is not beyond the end of the secret.
    unsafe { word(SECRET.as_ptr().add(at)) }
}

/// Multiplies two numbers and returns the exclusive OR of the halves of the 128-bit product.
#[cfg(target_pointer_width = "64")]
// The casts to 64 bits take the halves of the product, which is intended.
#[allow(clippy::cast_possible_truncation)]
fn multiply_fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// The XOR of the halves of the product, from parts: 32-bit targets would need a library.
#[cfg(not(target_pointer_width = "64"))]
fn multiply_fold(a: u64, b: u64) -> u64 {
    const LOW: u64 = 0xffff_ffff;
    let low = (a & LOW) * (b & LOW);
    let middle = (a >> 32) * (b & LOW) + (low >> 32);
    let middle_2 = (a & LOW) * (b >> 32) + (middle & LOW);
    let high = (a >> 32) * (b >> 32) + (middle >> 32) + (middle_2 >> 32);
    high ^ ((middle_2 << 32) | (low & LOW))
}

#[inline(never)]
fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(AVALANCHE);
    hash ^ (hash >> 32)
}

/// Mixes `count` times 16 bytes with as many bytes of the secret from offset `secret_at` on, and adds the results to
/// `hash`.
///
/// # Safety
/// The caller must ensure that 16 * `count` bytes at `at` are readable, and that the secret has as many bytes from
/// `secret_at` on.
#[inline(never)]
unsafe fn mix(mut hash: u64, mut at: *const u8, mut secret_at: usize, count: usize) -> u64 {
    for _ in 0..count {
        // SAFETY: the caller promises that the bytes are readable and within the secret.
        unsafe {
            let (low, high) = (word(at) ^ secret(secret_at), word(at.add(8)) ^ secret(secret_at + 8));
            hash = hash.wrapping_add(multiply_fold(low, high));
            at = at.add(16);
        }
        secret_at += 16;
    }
    hash
}

/// Returns the hash of a short input: 17 to [`SHORT_MAX`] bytes. For fewer bytes the result is not the hash.
///
/// # Safety
/// The caller must ensure that `length` bytes at `input` are readable, and 16 bytes before them and after them, and that
/// `length` is at most [`SHORT_MAX`].
pub unsafe fn short(input: *const u8, length: usize) -> u64 {
    let mut hash = (length as u64).wrapping_mul(PRIME64_1);
    // SAFETY: the bytes of the input and of the secret are within their bounds, as the comments below say.
    unsafe {
        let mut last = input.wrapping_add(length).wrapping_sub(16);
        if length > 128 {
            // Mix the first 128 bytes, then up to 7 units of 16 bytes that begin after them, then the last 16 bytes.
            // The largest offsets in the secret are 3 + 16 * 6 and 119.
            hash = avalanche(mix(hash, input, 0, 8));
            hash = mix(hash, input.add(128), 3, length / 16 - 8);
            hash = mix(hash, last, 136 - 17, 1);
        } else {
            // Pairs of 16 bytes, one from each end of the input. There are at most four pairs. Both parts of a pair are
            // inside the input, or in the 16 bytes around it if the input is shorter than 16 bytes.
            let mut first = input;
            let mut secret_at = 0;
            while secret_at < length {
                hash = mix(hash, first, secret_at, 1);
                hash = mix(hash, last, secret_at + 16, 1);
                first = first.add(16);
                last = last.wrapping_sub(16);
                secret_at += 32;
            }
        }
    }
    avalanche(hash)
}

/// The state of the hash of a long input.
#[derive(Debug, Clone, Copy)]
pub struct Accumulators([u64; 8]);

impl Accumulators {
    /// The state of a hash before any input was processed.
    const NEW: [u64; 8] = [
        PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1,
    ];

    /// Accumulators that are not used yet.
    pub const UNUSED: Self = Self([0; 8]);

    /// Sets the accumulators to the state of a hash that has not processed any input.
    pub fn start(&mut self) {
        static NEW: [u64; 8] = Accumulators::NEW;
        let mut from = NEW.as_ptr();
        for value in &mut self.0 {
            // Volatile accesses keep the compiler from replacing the loop by a copy of 64 bytes, which would be more
            // code.
            // SAFETY: the two arrays have the same length.
            unsafe {
                *value = from.read_volatile();
                from = from.add(1);
            }
        }
    }

    /// Mixes `count` stripes with the secret, and adds the results to the accumulators. The first stripe is mixed with
    /// the secret from offset `secret_at` on, and each further stripe 8 bytes later. After the stripes of a whole
    /// block, the accumulators are scrambled.
    ///
    /// # Safety
    /// The caller must ensure that `count` stripes at `stripe` are readable, and that the secret has [`STRIPE`] bytes
    /// at the offset of each. `count` is at most the number of stripes in a block.
    #[inline(never)]
    pub unsafe fn stripes(&mut self, mut stripe: *const u8, mut secret_at: usize, count: usize) {
        let accumulators = self.0.as_mut_ptr();
        for _ in 0..count {
            for lane in 0..8 {
                // SAFETY: lane < 8 and lane ^ 1 < 8, and the caller promises that the stripe and 64 bytes of the secret
                // are readable.
                unsafe {
                    let value = word(stripe);
                    let key = value ^ secret(secret_at + 8 * lane);
                    let other = accumulators.add(lane ^ 1);
                    *other = (*other).wrapping_add(value);
                    let own = accumulators.add(lane);
                    *own = (*own).wrapping_add((key & 0xffff_ffff).wrapping_mul(key >> 32));
                    stripe = stripe.add(8);
                }
            }
            secret_at += 8;
        }
        if count == BLOCK / STRIPE {
            // The offset in the secret is 128 now, which is 64 bytes before the end of the secret.
            for value in &mut self.0 {
                *value ^= *value >> 47;
                // SAFETY: the last of the eight numbers is at offset 128 + 8 * 7, at the end of the secret.
                *value ^= unsafe { secret(secret_at) };
                *value = value.wrapping_mul(PRIME32_1);
                secret_at += 8;
            }
        }
    }

    /// Adds a complete block that is not the end of the input to the accumulators, then scrambles them.
    ///
    /// # Safety
    /// The caller must ensure that [`BLOCK`] bytes at `block` are readable.
    pub unsafe fn block(&mut self, block: *const u8) {
        // SAFETY: the caller promises that a block is readable. The secret has 64 bytes at the last offset, 8 * 15.
        unsafe { self.stripes(block, 0, BLOCK / STRIPE) };
    }

    /// Adds the last `length` bytes of an input of `total` bytes to the accumulators, and returns the hash. `length` is
    /// 1 to [`BLOCK`].
    ///
    /// # Safety
    /// The caller must ensure that `length` bytes at `rest` are readable. The [`STRIPE`] bytes before the end of these
    /// bytes must be readable too; the first of them may belong to the previous block.
    pub unsafe fn finish(&mut self, rest: *const u8, length: usize, total: u64) -> u64 {
        // SAFETY: the complete stripes end before the last byte, and the last stripe ends with the last byte. The secret
        // has 64 bytes from offset 121 on.
        unsafe {
            self.stripes(rest, 0, length.wrapping_sub(1) / STRIPE);
            self.stripes(rest.wrapping_add(length).wrapping_sub(STRIPE), 192 - 64 - 7, 1);
        }
        // The numbers in an input are little-endian, so the accumulators must be too.
        for value in &mut self.0 {
            *value = value.to_le();
        }
        let hash = total.wrapping_mul(PRIME64_1);
        // SAFETY: the accumulators have 64 bytes, and the secret has as many from offset 11 on.
        avalanche(unsafe { mix(hash, self.0.as_ptr().cast(), 11, 4) })
    }
}
