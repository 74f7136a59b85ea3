//! C++'s Mersenne twister (`std::mt19937`). LLVM uses it for temporal traces. Random numbers are mapped to ranges as
//! libstdc++ does, because Debian's LLVM is built with libstdc++.

const STATE_LEN: usize = 624;
const MIDDLE: usize = 397;

/// The random number generator, with its state.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    state: [u32; STATE_LEN],
    next: usize,
}

impl Default for Mt19937 {
    fn default() -> Self {
        Self::new(5489)
    }
}

impl Mt19937 {
    /// Makes a generator with this seed.
    pub fn new(seed: u32) -> Self {
        let mut state = [0u32; STATE_LEN];
        let mut last = seed;
        for (slot, index) in state.iter_mut().zip(0u32..) {
            if index > 0 {
                last = (last ^ (last >> 30))
                    .wrapping_mul(1_812_433_253)
                    .wrapping_add(index);
            }
            *slot = last;
        }
        Mt19937 {
            state,
            next: STATE_LEN,
        }
    }

    fn refill(&mut self) {
        for index in 0..STATE_LEN {
            let at = |offset: usize| self.state[(index + offset) % STATE_LEN];
            let mixed = (at(0) & 0x8000_0000) | (at(1) & 0x7fff_ffff);
            let odd = if mixed & 1 == 0 { 0 } else { 0x9908_b0df };
            self.state[index] = at(MIDDLE) ^ (mixed >> 1) ^ odd;
        }
        self.next = 0;
    }

    /// Returns the next random number of 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next >= STATE_LEN {
            self.refill();
        }
        let mut value = self.state[self.next];
        self.next += 1;
        value ^= value >> 11;
        value ^= (value << 7) & 0x9d2c_5680;
        value ^= (value << 15) & 0xefc6_0000;
        value ^ (value >> 18)
    }

    /// Returns a random number from 0 to `max`, as libstdc++'s `std::uniform_int_distribution<uint64_t>(0, max)`
    /// computes it from this 32-bit generator.
    pub fn uniform(&mut self, max: u64) -> u64 {
        const RANGE: u64 = u32::MAX as u64;
        if max < RANGE {
            return u64::from(self.below(u32::try_from(max + 1).unwrap_or(u32::MAX)));
        }
        if max == RANGE {
            return u64::from(self.next_u32());
        }
        // Draw the high 32 bits, which are at most the high 32 bits of `max`, then the low 32 bits. If the result is
        // above `max`, draw all bits again.
        loop {
            let high = self.uniform(max >> 32) << 32;
            let (value, carried) = high.overflowing_add(u64::from(self.next_u32()));
            if !carried && value <= max {
                return value;
            }
        }
    }

    /// Returns a random number that is at least 0 and below 1, as libstdc++'s
    /// `std::uniform_real_distribution<float>(0, 1)` computes it from this 32-bit generator.
    pub fn unit(&mut self) -> f32 {
        const RANGE: f32 = 4_294_967_296.0;
        let drawn = self.next_u32() as f32;
        // The conversion to a float rounds the largest numbers up to 2^32. Divided by 2^32, they give 1, which is
        // outside the range. So 1 is replaced by the largest float below 1.
        (drawn / RANGE).min(1.0_f32.next_down())
    }

    /// Returns a random number below `bound`, by Lemire's multiplication method (libstdc++ since GCC 11).
    fn below(&mut self, bound: u32) -> u32 {
        let mut product = u64::from(self.next_u32()) * u64::from(bound);
        let low = |product: u64| product & u64::from(u32::MAX);
        if low(product) < u64::from(bound) {
            let threshold = u64::from(bound.wrapping_neg() % bound);
            while low(product) < threshold {
                product = u64::from(self.next_u32()) * u64::from(bound);
            }
        }
        u32::try_from(product >> 32).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_standard_one() {
        // The C++ standard ([rand.predef]) states the 10000th number of a default `mt19937`.
        let mut random = Mt19937::default();
        let last = (0..10_000).map(|_| random.next_u32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
