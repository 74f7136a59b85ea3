//! Makes the name of the raw file from a pattern, by the rules of LLVM's runtime.
use crate::memory::numbered;

/// The size in bytes of the longest name, including its terminating zero (`PATH_MAX` of Linux).
pub const NAME_MAX: usize = 4096;

/// The longest name within a folder (`NAME_MAX` of Linux). That of a temporary file may need to be shortened.
const LAST_PART_MAX: usize = 255;

pub struct Name {
    bytes: [u8; NAME_MAX],
    length: usize,
    /// Whether bytes were left out because the text would have been too long.
    pub too_long: bool,
}

impl Name {
    /// An empty text.
    pub const EMPTY: Self = Self {
        bytes: [0; NAME_MAX],
        length: 0,
        too_long: false,
    };

    pub fn clear(&mut self) {
        self.cut(0);
        self.too_long = false;
    }

    #[inline(never)]
    pub fn cut(&mut self, length: usize) {
        if let Some(place) = self.bytes.get_mut(length) {
            *place = 0;
            self.length = length;
        }
    }

    #[inline(never)]
    pub fn push(&mut self, byte: u8) {
        // The last byte stays zero.
        if self.length + 1 < NAME_MAX {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = 0;
            }
        } else {
            self.too_long = true;
        }
    }

    #[inline(never)]
    pub fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.push(byte);
        }
    }

    #[inline(never)]
    pub fn decimal(&mut self, number: u64) {
        let mut digits = [0; 20];
        self.extend(decimal(number, &mut digits));
    }

    pub fn set(&mut self, at: usize, byte: u8) {
        if let Some(place) = self.bytes.get_mut(at) {
            *place = byte;
        }
    }

    #[inline(never)]
    pub fn copy(&mut self, other: &Name) {
        self.clear();
        self.extend(other.as_bytes());
        self.too_long = other.too_long;
    }

    pub fn hexadecimal(&mut self, bytes: &[u8]) {
        for byte in bytes {
            for digit in [byte >> 4, byte & 15] {
                self.push(if digit < 10 { b'0' + digit } else { b'a' - 10 + digit });
            }
        }
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self.bytes.get(..self.length) {
            Some(bytes) => bytes,
            None => &[],
        }
    }

    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    #[must_use]
    pub fn folder_length(&self) -> usize {
        let mut length = 0;
        for (at, &byte) in numbered(self.as_bytes()) {
            if byte == b'/' {
                length = at + 1;
            }
        }
        length
    }

    /// The name of a temporary file beside `name`, with the number `process` unless that is 0. A name that would be too
    /// long is shortened, with a hash of all of it.
    pub fn temporary_of(&mut self, name: &Name, process: u32) {
        const END: &[u8] = b".profkit.tmp";
        const NUMBER: usize = ".4294967295".len();
        self.clear();
        let bytes = name.as_bytes();
        let room = name.folder_length() + LAST_PART_MAX - END.len();
        let mut number = process;
        if number == 0 && bytes.len() > room {
            number = 1;
            for &byte in bytes {
                number = number.wrapping_mul(0x0100_0193) ^ u32::from(byte);
            }
        }
        if number == 0 {
            self.extend(bytes);
        } else {
            self.extend(match bytes.get(..room - NUMBER) {
                Some(short) => short,
                None => bytes,
            });
            self.push(b'.');
            self.decimal(u64::from(number));
        }
        self.extend(END);
    }

    /// The file of a process that cannot use the pool `name`: its id is before the extension.
    pub fn own_of(&mut self, name: &Name, process: u32) {
        self.clear();
        let bytes = name.as_bytes();
        let mut dot = bytes.len();
        for (at, &byte) in numbered(bytes) {
            if at > name.folder_length() && byte == b'.' {
                dot = at;
            }
        }
        for (at, &byte) in numbered(bytes) {
            if at == dot {
                self.push(b'.');
                self.decimal(u64::from(process));
            }
            self.push(byte);
        }
        if dot == bytes.len() {
            self.push(b'.');
            self.decimal(u64::from(process));
        }
    }
}

pub fn decimal(number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut left = number;
    let mut start = digits.len();
    for place in digits.iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
        start -= 1;
        if left == 0 {
            break;
        }
    }
    match digits.get(start..) {
        Some(digits) => digits,
        None => &[],
    }
}

#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub process: u32,
    pub host: &'a [u8],
    /// The folder for temporary files; empty if the environment names none.
    pub folder: &'a [u8],
    pub signature: u64,
    /// The build id of the image; empty if it has none.
    pub build_id: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Whether the counts are added to those in the file (`%m`).
    pub pool: bool,
    /// Whether the counters are in the file while the program runs (`%c`).
    pub continuous: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadPattern {
    TwoPools,
    NoFolder,
    NoBuildId,
}

struct Directive<'a> {
    letter: u8,
    /// The number before the letter; 0 if there is none. Only the directive `%m` may have one.
    number: u32,
    rest: &'a [u8],
}

/// Reads a directive after its percent sign.
fn directive(pattern: &[u8]) -> Option<Directive<'_>> {
    let mut number = 0_u32;
    let mut rest = pattern;
    while let [letter, after @ ..] = rest {
        rest = after;
        if let b'0'..=b'9' = letter {
            number = number.saturating_mul(10).saturating_add(u32::from(letter - b'0'));
            continue;
        }
        let numbered = after.len() + 1 != pattern.len();
        return match letter {
            b'm' => Some(Directive { letter: *letter, number, rest }),
            b'p' | b'h' | b't' | b'b' | b'c' if !numbered => Some(Directive { letter: *letter, number, rest }),
            _ => None,
        };
    }
    None
}

pub fn expand(pattern: &[u8], facts: &Facts<'_>, name: &mut Name) -> Result<Asked, BadPattern> {
    let mut asked = Asked {
        pool: false,
        continuous: false,
    };
    let mut rest = pattern;
    // A pattern without any known directive is the name itself, even if it contains percent signs.
    let mut known = false;
    while let [byte, after @ ..] = rest {
        known |= *byte == b'%' && directive(after).is_some();
        rest = after;
    }
    name.clear();
    if !known {
        name.extend(pattern);
        return Ok(asked);
    }
    rest = pattern;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            name.push(*byte);
            continue;
        }
        let Directive { letter, number, rest: next } = match directive(after) {
            Some(found) => found,
            None => {
                // Both the percent sign and the letter of an unknown directive are dropped.
                if let [_, after @ ..] = after {
                    rest = after;
                }
                continue;
            }
        };
        rest = next;
        match letter {
            b'p' => name.decimal(u64::from(facts.process)),
            b'h' => name.extend(facts.host),
            b't' => {
                if facts.folder.is_empty() {
                    return Err(BadPattern::NoFolder);
                }
                name.extend(facts.folder);
                name.push(b'/');
            }
            b'm' => {
                if asked.pool {
                    return Err(BadPattern::TwoPools);
                }
                asked.pool = true;
                name.decimal(facts.signature);
                name.push(b'_');
                name.decimal(u64::from(if number == 0 { 0 } else { facts.process % number }));
            }
            b'b' => {
                if facts.build_id.is_empty() {
                    return Err(BadPattern::NoBuildId);
                }
                name.hexadecimal(facts.build_id);
            }
            _ => asked.continuous = true,
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::{expand, Asked, BadPattern, Facts, Name, NAME_MAX};
    use std::string::{String, ToString};

    const FACTS: Facts<'static> = Facts {
        process: 4711,
        host: b"box",
        folder: b"/tmp",
        signature: 12345,
        build_id: &[0xab, 0x01],
    };

    fn expanded(pattern: &str) -> Result<(String, bool, bool), BadPattern> {
        let mut name = Name::EMPTY;
        expand(pattern.as_bytes(), &FACTS, &mut name).map(|Asked { pool, continuous }| {
            (String::from_utf8_lossy(name.as_bytes()).to_string(), pool, continuous)
        })
    }

    #[test]
    fn patterns_are_expanded_like_those_of_llvm() {
        for (pattern, name, pool, continuous) in [
            ("a.profraw", "a.profraw", false, false),
            ("a-%p.profraw", "a-4711.profraw", false, false),
            ("%h/%p", "box/4711", false, false),
            ("%tx", "/tmp/x", false, false),
            ("%m", "12345_0", true, false),
            ("%4m", "12345_3", true, false),
            ("%20m", "12345_11", true, false),
            ("%0m", "12345_0", true, false),
            ("%99999999999m", "12345_4711", true, false),
            ("%5p", "%5p", false, false),
            ("%5p%h", "pbox", false, false),
            ("%b", "ab01", false, false),
            ("%c%p", "4711", false, true),
            ("%c", "", false, true),
            ("%x", "%x", false, false),
            ("100%", "100%", false, false),
            ("%%", "%%", false, false),
            ("%x%p", "4711", false, false),
            ("%p%", "4711", false, false),
        ] {
            let expected = Ok((name.to_string(), pool, continuous));
            assert_eq!(expanded(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_used() {
        assert_eq!(expanded("%m%m"), Err(BadPattern::TwoPools));
        let mut name = Name::EMPTY;
        let facts = Facts {
            folder: b"",
            build_id: b"",
            ..FACTS
        };
        assert_eq!(expand(b"%t", &facts, &mut name), Err(BadPattern::NoFolder));
        assert_eq!(expand(b"%b", &facts, &mut name), Err(BadPattern::NoBuildId));
    }

    #[test]
    fn a_name_that_is_too_long_is_noticed_and_stays_terminated() {
        let mut name = Name::EMPTY;
        name.extend(&[b'x'; 10_000]);
        assert!(name.too_long);
        assert_eq!(name.as_bytes().len(), NAME_MAX - 1);
        assert_eq!(name.bytes[NAME_MAX - 1], 0);
        name.clear();
        name.push(b'a');
        assert!(!name.too_long && name.as_bytes() == b"a");
    }

    #[test]
    fn names_of_temporary_and_own_files() {
        let mut name = Name::EMPTY;
        let mut other = Name::EMPTY;
        name.extend(b"out.d/pool");
        other.own_of(&name, 7);
        assert_eq!(other.as_bytes(), b"out.d/pool.7");
        name.extend(b".profraw");
        other.own_of(&name, 7);
        assert_eq!(other.as_bytes(), b"out.d/pool.7.profraw");
        other.temporary_of(&name, 7);
        assert_eq!(other.as_bytes(), b"out.d/pool.profraw.7.profkit.tmp");
        other.temporary_of(&name, 0);
        assert_eq!(other.as_bytes(), b"out.d/pool.profraw.profkit.tmp");
        // Names of the greatest length that have the same beginning get different temporary files.
        name.clear();
        name.extend(b"out.d/");
        name.extend(&[b'x'; 254]);
        name.push(b'a');
        other.temporary_of(&name, u32::MAX);
        assert_eq!(other.as_bytes().len() - other.folder_length(), 255);
        other.temporary_of(&name, 0);
        assert!(other.as_bytes().len() - other.folder_length() <= 255);
        let of_a = other.as_bytes().to_vec();
        name.cut(name.as_bytes().len() - 1);
        name.push(b'b');
        other.temporary_of(&name, 0);
        assert_ne!(other.as_bytes(), of_a);
    }
}
