//! Makes the name of the raw file from a pattern. Directives in the pattern are replaced, so that no two images or
//! processes overwrite each other's files.

/// The size in bytes of the longest name, including its terminating zero.
pub const NAME_MAX: usize = 1024;

/// The values that replace the directives in a pattern.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The id of the process.
    pub process: u32,
    /// The build id of the image; empty if it has none.
    pub build_id: &'a [u8],
    /// Whether the image is the program itself and not a shared library.
    pub program: bool,
    /// An address inside the image. The address distinguishes images that have no build id.
    pub address: usize,
    /// Whether the process is a forked child. Its file must then have a different name from its parent's file, unless
    /// both use a pool.
    pub forked: bool,
    /// Whether the records cannot be added to a pool, so that each process needs a file of its own.
    pub no_pool: bool,
}

/// Returns a byte of a pattern; 0 after its end.
fn byte_at(pattern: &[u8], at: usize) -> u8 {
    match pattern.get(at) {
        Some(&byte) => byte,
        None => 0,
    }
}

/// A zero-terminated file name that is being built.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Name {
    length: usize,
    /// Whether the name is that of a merge pool.
    pub pool: bool,
    /// Whether the name distinguishes images.
    image: bool,
    /// Whether the name distinguishes processes.
    process: bool,
    /// Whether the name was longer than the buffer.
    pub too_long: bool,
    bytes: [u8; NAME_MAX],
}

impl Default for Name {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Name {
    /// A name without any bytes.
    pub const EMPTY: Self = Self {
        length: 0,
        pool: false,
        image: false,
        process: false,
        too_long: false,
        bytes: [0; NAME_MAX],
    };

    /// Removes all bytes of the name.
    pub fn clear(&mut self) {
        self.length = 0;
        self.too_long = false;
    }

    /// The bytes of the name, without the terminating zero.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the length is always less than NAME_MAX, which `push` ensures.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr(), self.length) }
    }

    /// A pointer to the zero-terminated name.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Appends a byte. The last byte of the array always stays zero.
    #[inline(never)]
    pub fn push(&mut self, byte: u8) {
        if self.length + 1 >= NAME_MAX {
            self.too_long = true;
            return;
        }
        // SAFETY: the length plus one is less than NAME_MAX.
        unsafe {
            let end = self.bytes.as_mut_ptr().add(self.length);
            *end = byte;
            *end.add(1) = 0;
        }
        self.length += 1;
    }

    /// Appends bytes to the name.
    #[inline(never)]
    pub fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    /// Appends a number in decimal.
    #[inline(never)]
    pub fn decimal(&mut self, number: u32) {
        if number >= 10 {
            self.decimal(number / 10);
        }
        self.push(b'0' + (number % 10) as u8);
    }

    fn hex_digit(&mut self, digit: u8) {
        self.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
    }

    /// Appends the build id as hexadecimal digits. For an image without build id, a fixed word is appended; for a
    /// shared library also its address, so that the names of two libraries differ.
    #[inline(never)]
    fn build_id(&mut self, facts: &Facts<'_>) {
        for &byte in facts.build_id {
            self.hex_digit(byte >> 4);
            self.hex_digit(byte & 15);
        }
        if facts.build_id.is_empty() {
            self.extend(b"noid");
            let mut address = if facts.program { 0 } else { facts.address };
            while address != 0 {
                // In each round, the lowest hexadecimal digit of the address is appended, and the address is shifted
                // right by that digit.
                let [lowest, ..] = address.to_le_bytes();
                self.hex_digit(lowest & 15);
                address >>= 4;
            }
        }
    }

    /// Makes this the name for `pattern`. The directives are `%p`, `%h`, `%m`, `%1m` to `%9m` and `%%`. A percent sign
    /// before any other character is copied together with the character. If the directives do not distinguish all
    /// processes and images, text is inserted before the extension: the build id for a shared library; the process id
    /// for a forked child, or if a pool cannot be used.
    #[inline(never)]
    pub fn expand(&mut self, pattern: &[u8], facts: &Facts<'_>) {
        self.pool = false;
        self.image = facts.program;
        self.process = false;
        // The first round finds the directives and where the extension begins. If text must be inserted, a second round
        // inserts it there.
        let mut insert = usize::MAX;
        loop {
            self.clear();
            // A dot at the start of a file name does not begin an extension.
            let mut extension = pattern.len();
            let mut before = b'/';
            let mut at = 0;
            loop {
                if at == insert {
                    if !self.image {
                        self.push(b'.');
                        self.build_id(facts);
                    }
                    if !self.process {
                        self.push(b'.');
                        self.decimal(facts.process);
                    }
                }
                if at >= pattern.len() {
                    break;
                }
                let byte = byte_at(pattern, at);
                if byte == b'/' {
                    extension = pattern.len();
                }
                if byte == b'.' && before != b'/' {
                    extension = at;
                }
                before = byte;
                at += 1;
                if byte == b'%' {
                    at = self.directive(pattern, at, facts);
                } else {
                    self.push(byte);
                }
            }
            let has_pool = self.pool;
            self.pool = has_pool && !facts.no_pool;
            self.process |= if has_pool { self.pool } else { !facts.forked };
            if insert != usize::MAX || (self.image && self.process) {
                return;
            }
            insert = extension;
        }
    }

    /// Expands the directive whose percent sign is before offset `at` of the pattern. Returns the offset after the
    /// directive.
    #[inline(never)]
    fn directive(&mut self, pattern: &[u8], at: usize, facts: &Facts<'_>) -> usize {
        let mut slots = u32::from(byte_at(pattern, at).wrapping_sub(b'0'));
        if slots > 9 {
            slots = 0;
        }
        let end = at + usize::from(slots != 0);
        let letter = byte_at(pattern, end);
        if letter == b'm' || (letter == b'h' && slots == 0) {
            self.image = true;
            self.build_id(facts);
            self.pool |= letter == b'm';
            if slots != 0 {
                self.push(b'_');
                self.decimal(facts.process % slots);
            }
        } else if letter == b'p' && slots == 0 {
            self.process = true;
            self.decimal(facts.process);
        } else {
            self.push(b'%');
            if letter != b'%' || slots != 0 {
                return at;
            }
        }
        end + 1
    }

    /// Sets this name to the name of the folder that contains `file`.
    #[inline(never)]
    pub fn folder_of(&mut self, file: &Self) {
        self.clear();
        self.extend(file.as_bytes());
        while self.length != 0 && byte_at(&self.bytes, self.length - 1) != b'/' {
            self.length -= 1;
        }
        // An empty name is that of the current folder. Otherwise the dot is that of the folder before the slash.
        self.push(b'.');
    }

    /// Sets this name to the name of a temporary file in the folder of `file`.
    #[inline(never)]
    pub fn temporary_of(&mut self, file: &Self, process: u32, number: u32) {
        self.clear();
        self.extend(file.as_bytes());
        self.extend(b".tmp");
        self.decimal(process);
        self.push(b'.');
        self.decimal(number);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{Facts, Name, NAME_MAX};
    use proptest::prelude::*;
    use std::string::String;
    use std::vec;

    const PROGRAM: Facts<'static> = Facts {
        process: 4711,
        build_id: &[0xab, 0x01],
        program: true,
        address: 0x12,
        forked: false,
        no_pool: false,
    };
    const LIBRARY: Facts<'static> = Facts {
        program: false,
        ..PROGRAM
    };
    const CHILD: Facts<'static> = Facts {
        forked: true,
        ..PROGRAM
    };
    const NO_POOL: Facts<'static> = Facts {
        no_pool: true,
        ..PROGRAM
    };

    fn expand(pattern: &str, facts: &Facts<'_>) -> (String, bool) {
        let mut name = Name::EMPTY;
        name.expand(pattern.as_bytes(), facts);
        assert!(!name.too_long);
        (String::from_utf8(name.as_bytes().to_vec()).expect("text"), name.pool)
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
            ("%h-%p.raw", LIBRARY, "ab01-4711.raw", false),
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
            ("%h", Facts { build_id: &[], ..PROGRAM }, "noid", false),
            ("x.raw", Facts { build_id: &[], ..LIBRARY }, "x.noid21.raw", false),
        ] {
            assert_eq!(expand(pattern, &facts), (expected.into(), pool), "{pattern} {facts:?}");
        }
    }

    #[test]
    fn folders_and_temporary_names() {
        let mut name = Name::EMPTY;
        name.expand(b"a/b/c.raw", &PROGRAM);
        let mut other = Name::EMPTY;
        other.folder_of(&name);
        assert_eq!(other.as_bytes(), b"a/b/.");
        other.temporary_of(&name, 12, 3);
        assert_eq!(other.as_bytes(), b"a/b/c.raw.tmp12.3");
        let mut name = Name::EMPTY;
        name.expand(b"c.raw", &PROGRAM);
        other.folder_of(&name);
        assert_eq!(other.as_bytes(), b".");
    }

    #[test]
    fn a_long_name_is_noticed_and_stays_terminated() {
        let mut name = Name::EMPTY;
        name.expand(&vec![b'x'; NAME_MAX], &PROGRAM);
        assert!(name.too_long);
        assert_eq!(name.bytes[NAME_MAX - 1], 0);
        let mut name = Name::EMPTY;
        name.expand(&vec![b'x'; NAME_MAX - 1], &PROGRAM);
        assert!(!name.too_long);
        let mut name = Name::EMPTY;
        name.expand(&vec![b'x'; NAME_MAX - 1], &CHILD);
        assert!(name.too_long);
    }

    proptest! {
        #[test]
        fn any_pattern_is_expanded_without_harm(pattern in proptest::collection::vec(any::<u8>(), 0..1200), forked: bool, no_pool: bool, program: bool) {
            let mut name = Name::EMPTY;
            name.expand(&pattern, &Facts { forked, no_pool, program, ..PROGRAM });
            prop_assert_eq!(name.bytes[name.length], 0);
        }
    }
}
