//! Reads the notes of an ELF file. The linker stores the build id in one of them.
use core::mem::size_of;
use profkit_abi::mip::raw_header;

const NT_GNU_BUILD_ID: u32 = 3;
/// The sizes of the name and of the description, and the type.
const HEADER_SIZE: usize = 12;
const NAME: &[u8; 4] = b"GNU\0";

/// Finds the build id in notes, which are aligned to eight bytes or four. One that is too long is cut.
#[must_use]
#[inline(never)]
pub fn build_id(notes: &[u8], aligned_to_eight: bool) -> &[u8] {
    let mask = if aligned_to_eight { 7 } else { 3 };
    let mut at = 0;
    // The note of a build id needs at least this many bytes.
    while at + HEADER_SIZE + NAME.len() <= notes.len() {
        // SAFETY: the header of a note and four more bytes are left; an array of bytes needs no alignment.
        let word = |index: usize| {
            u32::from_ne_bytes(unsafe { *notes.as_ptr().add(at).cast::<[u8; 4]>().add(index) })
        };
        let (name, size) = (word(0) as usize, word(1) as usize);
        // Both must be at most the size of all notes, a quarter of the memory, so that sums do not wrap around.
        if size_of::<usize>() == 4 && (name > notes.len() || size > notes.len()) {
            break;
        }
        let description = at + HEADER_SIZE + ((name + mask) & !mask);
        if description + size > notes.len() {
            break;
        }
        if word(2) == NT_GNU_BUILD_ID && name == NAME.len() && word(3) == u32::from_ne_bytes(*NAME)
        {
            let length = if size > raw_header::BUILD_ID_MAX {
                raw_header::BUILD_ID_MAX
            } else {
                size
            };
            // SAFETY: `size` bytes of the segment are left at the description.
            return unsafe { core::slice::from_raw_parts(notes.as_ptr().add(description), length) };
        }
        at = description + ((size + mask) & !mask);
    }
    &[]
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::build_id;
    use profkit_abi::mip::raw_header;
    use std::vec::Vec;

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
        // Here the last description has padding, unlike above.
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
