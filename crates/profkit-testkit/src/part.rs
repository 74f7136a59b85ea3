//! Parts of merges with other sections.
use std::io::Read;
use twox_hash::XxHash3_64;

const TABLE_AT: usize = 16;
const ENTRY_LEN: usize = 36;

/// Changes the sections of a part, each with its tag and its bytes before compression. They are then stored uncompressed,
/// with right checksums. `None` if the bytes are no part.
pub fn change_part(part: &[u8], mut change: impl FnMut(u16, &mut Vec<u8>)) -> Option<Vec<u8>> {
    let number = |at: usize| {
        let bytes = part.get(at..at + 8)?;
        usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    let count = usize::from(u16::from_le_bytes([*part.get(14)?, *part.get(15)?]));
    let mut file = part.get(..TABLE_AT + count * ENTRY_LEN)?.to_vec();
    for section in 0..count {
        let at = TABLE_AT + section * ENTRY_LEN;
        let (offset, stored, raw) = (number(at + 4)?, number(at + 12)?, number(at + 20)?);
        let stored = part.get(offset..offset.checked_add(stored)?)?;
        let mut bytes = Vec::new();
        match part.get(at + 2)? & 1 {
            0 => bytes.extend_from_slice(stored),
            _ => {
                let inflated = flate2::read::DeflateDecoder::new(stored);
                inflated.take(raw as u64).read_to_end(&mut bytes).ok()?;
            }
        }
        change(u16::from_le_bytes([part[at], part[at + 1]]), &mut bytes);
        let offset = file.len() as u64;
        let len = bytes.len() as u64;
        file[at + 2] &= !1;
        for (place, number) in [
            (4, offset),
            (12, len),
            (20, len),
            (28, XxHash3_64::oneshot(&bytes)),
        ] {
            file[at + place..at + place + 8].copy_from_slice(&number.to_le_bytes());
        }
        file.extend(bytes);
    }
    Some(file)
}
