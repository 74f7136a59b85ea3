//! The parts of discriminators in line tables (LLVM's `DebugInfoMetadata.h`, `Discriminator.h`).
//!
//! A discriminator has three parts. From the lowest bits up, these are the base, the number of copies of the code, and
//! the index of this copy. Each part begins with one bit. If this bit is 1, the part is 0 and has no more bits.
//! Otherwise five bits follow, which are the low bits of the part, and then one more bit. If that bit is 1, seven more
//! bits of the part follow. If the lowest three bits of a discriminator are set, it belongs to a pseudo probe and does
//! not have these parts.

/// The lowest three bits of a discriminator that belongs to a pseudo probe.
const PROBE: u32 = 0b111;
/// The bit that is set in the discriminator of a pseudo probe if the discriminator also contains a base.
const PROBE_HAS_BASE: u32 = 1 << 28;

/// Returns the value of the lowest part of a discriminator.
fn part(value: u32) -> u32 {
    if value & 1 != 0 {
        return 0;
    }
    let rest = value >> 1;
    if rest & 0x20 == 0 {
        rest & 0x1f
    } else {
        ((rest >> 1) & 0xfe0) | (rest & 0x1f)
    }
}

/// Returns a discriminator without its lowest part.
fn next(value: u32) -> u32 {
    if value & 1 != 0 {
        value >> 1
    } else {
        value >> if value & 0x40 == 0 { 7 } else { 14 }
    }
}

/// Returns the base of a discriminator, which distinguishes several blocks of code on one line.
pub fn base_discriminator(discriminator: u32) -> u32 {
    if discriminator & PROBE == PROBE {
        return if discriminator & PROBE_HAS_BASE == 0 {
            discriminator >> 3 & 0xffff
        } else {
            discriminator >> 16 & 0b111
        };
    }
    part(discriminator)
}

/// Returns the number of copies of the code that has this discriminator, for example after unrolling a loop. It is at
/// least 1.
pub fn duplication_factor(discriminator: u32) -> u32 {
    if discriminator & PROBE == PROBE {
        return 1;
    }
    part(next(discriminator)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read() {
        // Bases 0, 3 and 33; duplicated 4 times.
        assert_eq!(base_discriminator(1), 0);
        assert_eq!(base_discriminator(3 << 1), 3);
        assert_eq!(base_discriminator((1 | 1 << 5 | 1 << 6) << 1), 33);
        assert_eq!(duplication_factor(0), 1);
        assert_eq!(duplication_factor(4 << 2 | 1), 4);
        assert_eq!(duplication_factor((4 << 1) << 7 | 3 << 1), 4);
        // A probe with index 9.
        assert_eq!(base_discriminator(9 << 3 | 7), 9);
        assert_eq!(base_discriminator(1 << 28 | 5 << 16 | 9 << 3 | 7), 5);
        assert_eq!(duplication_factor(9 << 3 | 7), 1);
    }
}
