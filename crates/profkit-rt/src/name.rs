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

// These functions replace methods of `Option`. The compiler would add landing pads for those methods, and each landing
// pad adds an entry to the unwind table.

fn byte_or_zero(byte: Option<&u8>) -> u8 {
    match byte {
        Some(&byte) => byte,
        None => 0,
    }
}

fn part(bytes: Option<&[u8]>) -> &[u8] {
    match bytes {
        Some(bytes) => bytes,
        None => &[],
    }
}

/// The kinds of directives that occur in a pattern.
#[derive(Default)]
struct Found {
    process: bool,
    image: bool,
    pool: bool,
}

/// A zero-terminated file name that is being built.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    bytes: [u8; NAME_MAX],
    length: usize,
    /// Whether the pattern contains a directive for a merge pool.
    pub pool: bool,
    /// Whether the name was longer than the buffer.
    pub too_long: bool,
}

impl Default for Name {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Name {
    /// A name without any bytes.
    pub const EMPTY: Self = Self {
        bytes: [0; NAME_MAX],
        length: 0,
        pool: false,
        too_long: false,
    };

    /// Removes all bytes of the name.
    pub fn clear(&mut self) {
        self.length = 0;
        self.pool = false;
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
    pub fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    /// Appends a number in decimal.
    pub fn decimal(&mut self, number: u32) {
        if number >= 10 {
            self.decimal(number / 10);
        }
        self.push(b'0' + (number % 10) as u8);
    }

    fn hex_digit(&mut self, digit: u8) {
        self.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
    }

    /// Appends the build id as hexadecimal digits. For an image without a build id, appends a fixed word. A shared
    /// library without a build id also gets its address, so that the names of two libraries differ.
    fn build_id(&mut self, facts: &Facts<'_>) {
        for &byte in facts.build_id {
            self.hex_digit(byte >> 4);
            self.hex_digit(byte & 15);
        }
        if facts.build_id.is_empty() {
            self.extend(b"noid");
            if !facts.program {
                let mut address = facts.address;
                while address != 0 {
                    // Each round appends the lowest hexadecimal digit of the address, and then removes this digit.
                    let [lowest, ..] = address.to_le_bytes();
                    self.hex_digit(lowest & 15);
                    address >>= 4;
                }
            }
        }
    }

    /// Expands `pattern` into this empty name. The directives are `%p`, `%h`, `%m`, `%1m` to `%9m` and `%%`. A percent
    /// sign before any other character is copied together with the character. If the directives do not distinguish all
    /// processes and images, text is inserted before the extension: the build id for a shared library; the process id
    /// for a forked child, or if a pool cannot be used.
    pub fn expand(&mut self, pattern: &[u8], facts: &Facts<'_>) {
        // Finds the start of the file name's extension in the pattern. A dot at the start of a file name begins no
        // extension.
        let mut found = Found::default();
        let mut extension = pattern.len();
        let mut before = b'/';
        let mut at = 0;
        while let Some(&byte) = pattern.get(at) {
            if byte == b'/' {
                extension = pattern.len();
            } else if byte == b'.' && before != b'/' {
                extension = at;
            }
            before = byte;
            at += 1;
        }
        self.expand_part(pattern, facts, &mut found);
        self.pool = found.pool && !facts.no_pool;
        let image = found.image || facts.program;
        let process = found.process || !(facts.forked || found.pool) || self.pool;
        if image && process {
            return;
        }
        self.length = 0;
        self.expand_part(part(pattern.get(..extension)), facts, &mut found);
        if !image {
            self.push(b'.');
            self.build_id(facts);
        }
        if !process {
            self.push(b'.');
            self.decimal(facts.process);
        }
        self.expand_part(part(pattern.get(extension..)), facts, &mut found);
    }

    fn expand_part(&mut self, pattern: &[u8], facts: &Facts<'_>, found: &mut Found) {
        let mut rest = pattern.iter();
        while let Some(&byte) = rest.next() {
            if byte != b'%' {
                self.push(byte);
                continue;
            }
            let literal = rest.clone();
            let mut slots = 0;
            let mut letter = byte_or_zero(rest.next());
            if letter > b'0' && letter <= b'9' {
                slots = u32::from(letter - b'0');
                letter = byte_or_zero(rest.next());
            }
            match letter {
                b'p' if slots == 0 => {
                    found.process = true;
                    self.decimal(facts.process);
                }
                b'h' if slots == 0 => {
                    found.image = true;
                    self.build_id(facts);
                }
                b'm' => {
                    found.image = true;
                    found.pool = true;
                    self.build_id(facts);
                    if slots != 0 {
                        self.push(b'_');
                        self.decimal(facts.process % slots);
                    }
                }
                b'%' if slots == 0 => self.push(b'%'),
                _ => {
                    self.push(b'%');
                    rest = literal;
                }
            }
        }
    }

    /// Sets this name to the name of the folder that contains `file`.
    pub fn folder_of(&mut self, file: &Self) {
        self.length = 0;
        let mut slash = 0;
        let mut length = 0;
        for &byte in file.as_bytes() {
            length += 1;
            if byte == b'/' {
                slash = length;
            }
        }
        self.extend(part(file.as_bytes().get(..slash)));
        if slash == 0 {
            self.push(b'.');
        }
    }

    /// Sets this name to the name of a temporary file in the folder of `file`.
    pub fn temporary_of(&mut self, file: &Self, process: u32, number: u32) {
        self.length = 0;
        self.too_long = false;
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
        assert_eq!(other.as_bytes(), b"a/b/");
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
