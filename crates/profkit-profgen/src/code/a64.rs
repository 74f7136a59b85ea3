//! Instructions of AArch64.
use super::{Flow, Instruction};

/// Decodes what begins before `end`. Each word of four bytes is taken as an instruction.
pub fn decode(bytes: &[u8], start: u64, end: u64) -> Box<[Instruction]> {
    let len = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
    let (words, _) = bytes.get(..len).unwrap_or(bytes).as_chunks::<4>();
    let addresses = (start..).step_by(4);
    words
        .iter()
        .zip(addresses)
        .map(|(word, address)| Instruction {
            address,
            size: 4,
            // Instructions are little-endian on big-endian machines too.
            flow: flow(u32::from_le_bytes(*word)),
        })
        .collect()
}

fn flow(word: u32) -> Flow {
    let is = |mask: u32, value: u32| word & mask == value;
    if is(0xfc00_0000, 0x9400_0000) {
        return Flow::Call;
    }
    if is(0xfc00_0000, 0x1400_0000) {
        return Flow::Jump;
    }
    // The conditional branches `b.cond`, `bc.cond`, `cbz`, `cbnz`, `tbz` and `tbnz`.
    if is(0xff00_0000, 0x5400_0000) || is(0x7e00_0000, 0x3400_0000) || is(0x7e00_0000, 0x3600_0000)
    {
        return Flow::Branch;
    }
    // Branches to an address in a register, also with pointer authentication.
    if is(0xfe00_0000, 0xd600_0000) {
        return match word >> 21 & 0b1111 {
            0b0000 | 0b1000 => Flow::IndirectJump,
            0b0001 | 0b1001 => Flow::Call,
            0b0010 | 0b0100 => Flow::Return,
            _ => Flow::Next,
        };
    }
    Flow::Next
}

/// The target of a direct jump, branch or call. `bytes` are those of the instruction.
pub fn target(bytes: &[u8], address: u64) -> Option<u64> {
    let word = u32::from_le_bytes(*bytes.first_chunk()?);
    // The distance in instructions: its number of bits, and the lowest of them.
    let (bits, lowest) = match flow(word) {
        Flow::Jump => (26, 0),
        Flow::Call if word >> 26 == 0b10_0101 => (26, 0),
        Flow::Branch if word & 0x7e00_0000 == 0x3600_0000 => (14, 5),
        Flow::Branch => (19, 5),
        _ => return None,
    };
    let distance = (word >> lowest).cast_signed() << (32 - bits) >> (32 - bits);
    Some(address.wrapping_add_signed(i64::from(distance) * 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_branches_have_targets() {
        let cases = [
            (0x9400_0001, Some(0x1004)), // bl +4
            (0x97ff_ffff, Some(0xffc)),  // bl -4
            (0x1400_0002, Some(0x1008)), // b +8
            (0x54ff_ffe0, Some(0xffc)),  // b.eq -4
            (0xb400_0040, Some(0x1008)), // cbz +8
            (0x3703_ffe0, Some(0x8ffc)), // tbnz +32764
            (0x3707_ffe0, Some(0xffc)),  // tbnz -4
            (0xd61f_0200, None),         // br
            (0xd63f_0200, None),         // blr
            (0xd65f_03c0, None),         // ret
            (0xd503_201f, None),         // nop
        ];
        for (word, expected) in cases {
            let found = target(&u32::to_le_bytes(word), 0x1000);
            assert_eq!(found, expected, "{word:#x}");
        }
    }

    #[test]
    fn instructions_are_told_apart() {
        let cases = [
            (0x9400_0001, Flow::Call),         // bl
            (0x1400_0001, Flow::Jump),         // b
            (0x5400_0020, Flow::Branch),       // b.eq
            (0xb400_0040, Flow::Branch),       // cbz
            (0x3700_0040, Flow::Branch),       // tbnz
            (0xd61f_0200, Flow::IndirectJump), // br
            (0xd63f_0200, Flow::Call),         // blr
            (0xd73f_0a11, Flow::Call),         // blraa
            (0xd65f_03c0, Flow::Return),       // ret
            (0xd65f_0bff, Flow::Return),       // retaa
            (0xd69f_03e0, Flow::Return),       // eret
            (0xd503_201f, Flow::Next),         // nop
            (0xd400_0001, Flow::Next),         // svc
        ];
        let bytes: Vec<u8> = cases
            .iter()
            .flat_map(|(word, _)| u32::to_le_bytes(*word))
            .collect();
        let list = decode(&bytes, 0x1000, 0x1000 + bytes.len() as u64);
        let found: Vec<_> = list.iter().map(|one| one.flow).collect();
        assert_eq!(found, cases.map(|(_, flow)| flow));
        assert_eq!(list.last().map(|one| one.address), Some(0x1030));
    }
}
