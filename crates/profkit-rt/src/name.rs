//! Makes the name of the raw file from a pattern. Directives in the pattern are replaced, so that no two images or
//! processes overwrite each other's files.

use crate::header::BuildId;
use core::ptr::addr_of;

/// The size in bytes of the longest name, including its terminating zero.
pub const NAME_MAX: u32 = 1024;
/// The size of a buffer. A message with the longest name fits, and the name of a temporary file.
const CAPACITY: usize = 1280;

/// A zero-terminated text that is being built. If it becomes longer than the buffer, the rest is dropped.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Text {
    length: u32,
    bytes: [u8; CAPACITY],
}

impl Text {
    /// A text without any bytes.
    pub const EMPTY: Self = Self {
        length: 0,
        bytes: [0; CAPACITY],
    };

    /// The number of bytes, without the terminating zero.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The bytes of the text, without the terminating zero.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the length is always less than CAPACITY, which `push` ensures.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr(), self.length as usize) }
    }

    /// A pointer to the zero-terminated text.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Removes the bytes from `length` on, if there are any.
    pub fn cut(&mut self, length: u32) {
        if length < self.length {
            // SAFETY: the length is less than the size of the array.
            unsafe { *self.bytes.as_mut_ptr().add(length as usize) = 0 };
            self.length = length;
        }
    }

    /// Appends a byte to the name, and keeps a zero byte after it. Does nothing if the array is full.
    #[inline(never)]
    pub fn push(&mut self, byte: u8) {
        let length = self.length as usize;
        if length < CAPACITY - 1 {
            // SAFETY: the length plus one is less than CAPACITY.
            unsafe {
                let end = self.bytes.as_mut_ptr().add(length);
                *end = byte;
                *end.add(1) = 0;
            }
            self.length += 1;
        }
    }

    /// # Safety
    /// The caller must pass a zero-terminated text that is not in this buffer.
    #[inline(never)]
    pub unsafe fn extend(&mut self, mut text: *const u8) {
        // SAFETY: the caller promises that the text is zero-terminated.
        unsafe {
            while *text != 0 {
                self.push(*text);
                text = text.add(1);
            }
        }
    }

    /// # Safety
    /// The same as for [`extend`](Self::extend).
    #[inline(never)]
    pub unsafe fn set(&mut self, text: *const u8) {
        self.length = 0;
        // SAFETY: the caller promises what `extend` requires.
        unsafe { self.extend(text) };
    }

    /// Appends a number in decimal.
    #[inline(never)]
    pub fn decimal(&mut self, number: u32) {
        let rest = number / 10;
        if rest != 0 {
            self.decimal(rest);
        }
        self.push(b'0' + (number % 10) as u8);
    }
}

/// The name of an image's raw file, the pattern of the name, and the values that replace the directives in the pattern.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Names {
    /// The build id of the image.
    pub build_id: BuildId,
    /// An address inside the image. The address distinguishes images that have no build id.
    pub address: usize,
    /// The id of the process.
    pub process: u32,
    /// Whether the image is the program itself and not a shared library.
    pub program: bool,
    /// Whether the process is a forked child, whose file needs another name unless both use a pool.
    pub forked: bool,
    /// Whether the records cannot be added to a pool, so that each process needs a file of its own.
    pub no_pool: bool,
    /// Whether [`name`](Self::name) is that of a merge pool.
    pub pool: bool,
    /// The name of the raw file.
    pub name: Text,
    /// A buffer for the name of the folder, then that of the temporary file, then a message.
    pub other: Text,
    /// The pattern of the name.
    pub pattern: Text,
}

impl Names {
    /// No name and no pattern.
    pub const NONE: Self = Self {
        build_id: BuildId::NONE,
        address: 0,
        process: 0,
        program: false,
        forked: false,
        no_pool: false,
        pool: false,
        name: Text::EMPTY,
        other: Text::EMPTY,
        pattern: Text::EMPTY,
    };

    /// Whether the name or the pattern does not fit into [`NAME_MAX`] bytes.
    #[must_use]
    pub fn are_too_long(&self) -> bool {
        self.name.length() >= NAME_MAX || self.pattern.length() >= NAME_MAX
    }

    /// Appends the build id in hexadecimal; without one, a fixed word, and for a library the bytes of its address.
    #[inline(never)]
    fn push_build_id(&mut self) {
        let mut id = self.build_id.as_ptr();
        let mut length = self.build_id.length();
        // SAFETY: the text is zero-terminated. The build id and the address are readable.
        unsafe {
            if length == 0 {
                self.name.extend(b"noid\0".as_ptr());
                if !self.program {
                    id = addr_of!(self.address).cast();
                    length = core::mem::size_of::<usize>();
                }
            }
            for at in 0..length {
                let mut digits = u32::from(*id.add(at));
                // Each round appends the digit in bits 4 to 7, and moves the low digit there.
                for _ in 0..2 {
                    let [digit, ..] = (digits >> 4 & 15).to_le_bytes();
                    self.name.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
                    digits <<= 4;
                }
            }
        }
    }

    /// Replaces `%p`, `%h`, `%m`, `%1m` to `%9m` and `%%`; other percent signs stay. If that does not distinguish all
    /// processes and images, the build id of a library, or the process id of a child or without a pool, is inserted
    /// before the extension.
    #[inline(never)]
    pub fn expand(&mut self) {
        // Whether the name distinguishes images and processes.
        let mut image = self.program;
        let mut process = false;
        self.pool = false;
        self.name.cut(0);
        let mut at = self.pattern.as_ptr();
        // SAFETY: the pattern is zero-terminated, and nothing after a zero is read.
        unsafe {
            while *at != 0 {
                let byte = *at;
                at = at.add(1);
                if byte == b'%' {
                    let mut end = at;
                    let mut slots = u32::from((*at).wrapping_sub(b'0'));
                    if slots.wrapping_sub(1) < 9 {
                        end = end.add(1);
                    } else {
                        slots = 0;
                    }
                    let letter = *end;
                    end = end.add(1);
                    if letter == b'm' || (letter == b'h' && slots == 0) {
                        image = true;
                        self.pool |= letter == b'm';
                        self.push_build_id();
                        if slots != 0 {
                            self.name.push(b'_');
                            self.name.decimal(self.process % slots);
                        }
                        at = end;
                        continue;
                    }
                    if slots == 0 {
                        if letter == b'p' {
                            process = true;
                            // A library may be loaded again in this process, which must not replace what it did before.
                            self.pool |= !self.program;
                            self.name.decimal(self.process);
                            at = end;
                            continue;
                        }
                        if letter == b'%' {
                            at = end;
                        }
                    }
                }
                self.name.push(byte);
            }
        }
        let alone = if self.pool { self.no_pool } else { self.forked };
        self.pool &= !self.no_pool;
        process |= !alone;
        if !(image && process) {
            self.insert(image, process);
        }
    }

    fn insert(&mut self, image: bool, process: bool) {
        let mut extension = self.name.length();
        let mut at = extension;
        // A dot at the start of a file name does not begin an extension.
        while at > 1 {
            at -= 1;
            // SAFETY: `at` is less than the length of the name, and at least 1.
            let (byte, before) = unsafe {
                let byte = self.name.as_ptr().add(at as usize);
                (*byte, *byte.sub(1))
            };
            if byte == b'/' {
                break;
            }
            if byte == b'.' && before != b'/' {
                extension = at;
                break;
            }
        }
        // SAFETY: the name is zero-terminated, and the extension is in it.
        unsafe { self.other.set(self.name.as_ptr().add(extension as usize)) };
        self.name.cut(extension);
        if !image {
            self.name.push(b'.');
            self.push_build_id();
        }
        if !process {
            self.name.push(b'.');
            self.name.decimal(self.process);
        }
        // SAFETY: a `Text` is always zero-terminated.
        unsafe { self.name.extend(self.other.as_ptr()) };
    }

    /// Sets `other` to the name of the folder of the raw file.
    #[inline(never)]
    pub fn set_folder(&mut self) {
        let name = self.name.as_ptr();
        let mut length = self.name.length();
        // SAFETY: the length is at most that of the name. A `Text` is always zero-terminated.
        unsafe {
            self.other.set(name);
            while length != 0 && *name.add(length as usize - 1) != b'/' {
                length -= 1;
            }
        }
        self.other.cut(length);
        // Without a slash, the result is `.`, the current folder; otherwise the dot names the folder before it.
        self.other.push(b'.');
    }

    /// Sets `other` to the name of a temporary file in the folder of the raw file.
    pub fn set_temporary(&mut self, number: u32) {
        // SAFETY: a `Text` is always zero-terminated, and so is the appended text.
        unsafe {
            self.other.set(self.name.as_ptr());
            self.other.extend(b".tmp\0".as_ptr());
        }
        self.other.decimal(self.process);
        self.other.push(b'.');
        self.other.decimal(number);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Names, Text, CAPACITY, NAME_MAX};
    use proptest::prelude::*;
    use std::string::String;
    use std::vec;

    /// The number of bytes in the longest name.
    const LONGEST: usize = NAME_MAX as usize - 1;

    #[derive(Debug, Clone, Copy)]
    struct Facts {
        process: u32,
        build_id: &'static [u8],
        program: bool,
        address: usize,
        forked: bool,
        no_pool: bool,
    }

    const PROGRAM: Facts = Facts {
        process: 4711,
        build_id: &[0xab, 0x01],
        program: true,
        address: 0x12,
        forked: false,
        no_pool: false,
    };
    const LIBRARY: Facts = Facts {
        program: false,
        ..PROGRAM
    };
    const CHILD: Facts = Facts {
        forked: true,
        ..PROGRAM
    };
    const NO_POOL: Facts = Facts {
        no_pool: true,
        ..PROGRAM
    };

    fn names_of(pattern: &[u8], facts: &Facts) -> Names {
        let mut names = Names {
            build_id: facts.build_id.into(),
            address: facts.address,
            process: facts.process,
            program: facts.program,
            forked: facts.forked,
            no_pool: facts.no_pool,
            ..Names::NONE
        };
        for &byte in pattern {
            names.pattern.push(byte);
        }
        names.expand();
        names
    }

    fn expand(pattern: &str, facts: &Facts) -> (String, bool) {
        let names = names_of(pattern.as_bytes(), facts);
        assert!(!names.are_too_long());
        (String::from_utf8(names.name.as_bytes().to_vec()).expect("text"), names.pool)
    }

    #[test]
    fn patterns() {
        for (pattern, facts, expected, pool) in [
            ("default.mipraw", PROGRAM, "default.mipraw", false),
            ("default.mipraw", LIBRARY, "default.ab01.mipraw", false),
            ("default.mipraw", CHILD, "default.4711.mipraw", false),
            ("default.mipraw", Facts { forked: true, ..LIBRARY }, "default.ab01.4711.mipraw", false),
            ("a/b.c/%p", PROGRAM, "a/b.c/4711", false),
            ("a/b.c/x", LIBRARY, "a/b.c/x.ab01", false),
            ("/.x", LIBRARY, "/.x.ab01", false),
            (".x", CHILD, ".x.4711", false),
            ("%h-%p.raw", LIBRARY, "ab01-4711.raw", true),
            ("%h-%p.raw", Facts { no_pool: true, ..LIBRARY }, "ab01-4711.raw", false),
            ("%h-%p.raw", PROGRAM, "ab01-4711.raw", false),
            ("%h-%p.raw", CHILD, "ab01-4711.raw", false),
            ("%h.raw", CHILD, "ab01.4711.raw", false),
            ("%m.raw", PROGRAM, "ab01.raw", true),
            ("%m.raw", LIBRARY, "ab01.raw", true),
            ("%m.raw", CHILD, "ab01.raw", true),
            ("%m.raw", NO_POOL, "ab01.4711.raw", false),
            ("%m-%p.raw", NO_POOL, "ab01-4711.raw", false),
            ("x.raw", NO_POOL, "x.raw", false),
            ("%2m.raw", Facts { forked: true, ..NO_POOL }, "ab01_1.4711.raw", false),
            ("%4m.raw", PROGRAM, "ab01_3.raw", true),
            ("100%%.%q%", PROGRAM, "100%.%q%", false),
            ("%2p%0m", PROGRAM, "%2p%0m", false),
            ("%9m%:m.%", LIBRARY, "ab01_4%:m.%", true),
            ("a%.b", CHILD, "a%.4711.b", false),
            ("%5%p", PROGRAM, "%54711", false),
            ("%h/.%p", LIBRARY, "ab01/.4711", true),
            ("%h", Facts { build_id: &[], ..PROGRAM }, "noid", false),
        ] {
            assert_eq!(expand(pattern, &facts), (expected.into(), pool), "{pattern} {facts:?}");
        }
    }

    #[test]
    fn a_library_without_a_build_id_is_named_by_its_address() {
        let facts = Facts { build_id: &[], ..LIBRARY };
        let (name, pool) = expand("x.raw", &facts);
        let address: String = facts.address.to_ne_bytes().iter().map(|byte| std::format!("{byte:02x}")).collect();
        assert_eq!((name, pool), (std::format!("x.noid{address}.raw"), false));
    }

    #[test]
    fn folders_and_temporary_names() {
        let mut names = names_of(b"a/b/c.raw", &Facts { process: 12, ..PROGRAM });
        names.set_folder();
        assert_eq!(names.other.as_bytes(), b"a/b/.");
        names.set_temporary(3);
        assert_eq!(names.other.as_bytes(), b"a/b/c.raw.tmp12.3");
        let mut names = names_of(b"c.raw", &PROGRAM);
        names.set_folder();
        assert_eq!(names.other.as_bytes(), b".");
    }

    #[test]
    fn a_long_name_is_noticed_and_stays_terminated() {
        let names = names_of(&vec![b'x'; LONGEST + 1], &PROGRAM);
        assert!(names.are_too_long());
        assert!(!names_of(&vec![b'x'; LONGEST], &PROGRAM).are_too_long());
        assert!(names_of(&vec![b'x'; LONGEST], &CHILD).are_too_long());
        let names = names_of(&[b"./x.".as_slice(), &vec![b'x'; 2 * CAPACITY]].concat(), &CHILD);
        assert!(names.are_too_long());
        assert_eq!(names.name.as_bytes().len(), CAPACITY - 1);
        assert_eq!(names.name.bytes[CAPACITY - 1], 0);
        // A pattern that was cut is an error, even if its name would be short enough.
        let names = names_of(&b"%%".repeat(LONGEST), &PROGRAM);
        assert!(names.name.length() < NAME_MAX && names.are_too_long());
    }

    #[test]
    fn numbers_and_cuts() {
        let mut text = Text::EMPTY;
        for number in [0, 9, 10, 4711, u32::MAX] {
            text.decimal(number);
            text.push(b' ');
        }
        assert_eq!(text.as_bytes(), b"0 9 10 4711 4294967295 ");
        text.cut(50);
        text.cut(3);
        assert_eq!((text.as_bytes(), text.bytes[3]), (b"0 9".as_slice(), 0));
    }

    proptest! {
        #[test]
        fn any_pattern_is_expanded_without_harm(pattern in proptest::collection::vec(1_u8.., 0..1500), forked: bool, no_pool: bool, program: bool) {
            let names = names_of(&pattern, &Facts { forked, no_pool, program, ..PROGRAM });
            prop_assert_eq!(names.name.bytes[names.name.as_bytes().len()], 0);
        }
    }
}
