//! The parts of discriminators in line tables (LLVM's `DebugInfoMetadata.h`, `Discriminator.h`).
//!
//! A discriminator has three parts, the lowest first: the base, how often the code was duplicated, and the number of the
//! copy. A part is 0 if its lowest bit is 1; it then takes one bit. Otherwise five bits of the part follow and, if the next
//! bit is set, seven more. Discriminators whose lowest three bits are set are those of pseudo probes instead.

/// The lowest bits of the discriminators of pseudo probes.
const PROBE: u32 = 0b111;
/// The bit in discriminators of pseudo probes that says that they have a base of their own.
const PROBE_HAS_BASE: u32 = 1 << 28;

/// Reads the lowest part.
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

/// Removes the lowest part.
fn next(value: u32) -> u32 {
    if value & 1 != 0 {
        value >> 1
    } else {
        value >> if value & 0x40 == 0 { 7 } else { 14 }
    }
}

/// Returns the base of a discriminator, which tells blocks of one line apart.
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

/// Returns how often the code of a discriminator was duplicated, for example by unrolling a loop: 1 or more.
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
