//! Reads the notes of an ELF file. The linker stores the build id in one of them.
use profkit_abi::mip::raw_header;

const NT_GNU_BUILD_ID: u32 = 3;
/// The size in bytes of a note's header. The header contains the sizes of the name and of the description, and the
/// type.
const HEADER_SIZE: usize = 12;
const NAME: &[u8; 4] = b"GNU\0";

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => Some(u32::from_ne_bytes([a, b, c, d])),
        _ => None,
    }
}

/// Skips a name or description of `size` bytes and the padding after it, and returns the bytes after the padding.
/// Returns None if fewer than `size` bytes are left. The size must be checked before the padding is added, because the
/// sum could wrap around on a 32-bit machine.
fn after(bytes: &[u8], size: usize, mask: usize) -> Option<&[u8]> {
    if size > bytes.len() {
        return None;
    }
    // The padding after the last note may be missing.
    let padded = (size + mask) & !mask;
    Some(match bytes.get(padded..) {
        Some(rest) => rest,
        None => &[],
    })
}

/// Finds the build id among the notes of a segment. The notes are aligned to eight bytes if `aligned_to_eight` is true,
/// otherwise to four. Returns an empty slice if there is no build id. Cuts a build id that is too long for a raw file.
#[must_use]
pub fn build_id(mut notes: &[u8], aligned_to_eight: bool) -> &[u8] {
    let mask = if aligned_to_eight { 7 } else { 3 };
    loop {
        let (name, size, kind) = match (word(notes, 0), word(notes, 4), word(notes, 8)) {
            (Some(name), Some(size), Some(kind)) => (name as usize, size as usize, kind),
            _ => return &[],
        };
        let named = match notes.get(HEADER_SIZE..) {
            Some(named) => named,
            None => return &[],
        };
        let described = match after(named, name, mask) {
            Some(described) => described,
            None => return &[],
        };
        let next = match after(described, size, mask) {
            Some(next) => next,
            None => return &[],
        };
        if kind == NT_GNU_BUILD_ID
            && name == NAME.len()
            && word(named, 0) == Some(u32::from_ne_bytes(*NAME))
        {
            // `Ord::min` is not used, because it would add a landing pad, and with it an unwind table.
            let length = if size < raw_header::BUILD_ID_MAX {
                size
            } else {
                raw_header::BUILD_ID_MAX
            };
            return match described.get(..length) {
                Some(id) => id,
                None => &[],
            };
        }
        notes = next;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::build_id;
    use profkit_abi::mip::raw_header;
    use std::vec::Vec;

    /// Makes a note whose header contains these sizes, even if they are wrong.
    fn note(name_size: u32, size: u32, kind: u32, rest: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [name_size, size, kind] {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_others() {
        let mut notes = note(6, 5, 3, b"Other\0\0\0abcde\0\0\0");
        notes.extend(note(4, 4, 1, b"GNU\0abcd"));
        assert_eq!(build_id(&notes, false), b"");
        notes.extend(note(4, 5, 3, b"GNU\0build"));
        assert_eq!(build_id(&notes, false), b"build");
        // The notes above have no padding after the last description. Here it is added. The reader must accept both
        // forms.
        notes.extend(b"\0\0\0");
        assert_eq!(build_id(&notes, false), b"build");
    }

    #[test]
    fn notes_may_be_padded_to_eight_bytes() {
        let mut notes = note(4, 4, 5, b"GNU\0....abcd....");
        notes.extend(note(4, 2, 3, b"GNU\0....id"));
        assert_eq!(build_id(&notes, true), b"id");
        assert_eq!(build_id(&notes, false), b"");
    }

    #[test]
    fn sizes_that_the_segment_does_not_have_end_the_search() {
        for (name, size) in [
            (4, 6),
            (4, u32::MAX),
            (u32::MAX, 0),
            (u32::MAX - 2, 5),
            (9, 1),
            (4, u32::MAX - 3),
        ] {
            let mut notes = note(name, size, 3, b"GNU\0build");
            assert_eq!(build_id(&notes, false), b"", "{name} {size}");
            notes.truncate(12);
            assert_eq!(build_id(&notes, false), b"", "{name} {size}");
        }
        for length in 0..12 {
            assert_eq!(build_id(&note(4, 0, 3, b"")[..length], false), b"");
        }
    }

    #[test]
    fn a_build_id_is_cut_to_what_a_raw_file_can_have() {
        let long = [7; raw_header::BUILD_ID_MAX + 1];
        let size = u32::try_from(long.len()).expect("small");
        let mut notes = note(4, size, 3, b"GNU\0");
        notes.extend(long);
        assert_eq!(build_id(&notes, false), &long[..raw_header::BUILD_ID_MAX]);
    }
}
