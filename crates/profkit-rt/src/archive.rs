//! Writes a static library in the format of GNU ar (System V), or of macOS: a symbol index, and object files with their
//! names. A linker uses an object only if something refers to one of the object's symbols in the index.
extern crate std;

use std::format;
use std::vec::Vec;

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER_SIZE: usize = 60;
/// The size in bytes of the name in the header of a member.
const NAME_SIZE: usize = 16;

/// An object file of a static library.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    /// The name of the object file, without slashes and line breaks.
    pub name: &'a str,
    /// The object file.
    pub object: &'a [u8],
    /// The names of the symbols in the library's index by which a linker finds the object.
    pub symbols: &'a [&'a str],
}

/// Returns the bytes of a static library with these object files.
#[must_use]
pub fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let mut names = Vec::new();
    let mut count = 0;
    for member in members {
        for symbol in member.symbols {
            names.extend_from_slice(symbol.as_bytes());
            names.push(0);
            count += 1;
        }
    }
    // A header has room for 15 bytes. Longer names stand in a table, of which it has the offset.
    let mut long_names = Vec::new();
    let mut short_names = Vec::new();
    for member in members {
        if member.name.len() < NAME_SIZE {
            short_names.push(format!("{}/", member.name));
        } else {
            short_names.push(format!("/{}", long_names.len()));
            long_names.extend_from_slice(member.name.as_bytes());
            long_names.extend_from_slice(b"/\n");
        }
    }
    if long_names.len() % 2 != 0 {
        long_names.push(b'\n');
    }
    let index_size = 4 + 4 * count + names.len();
    let index_padded = index_size + index_size % 2;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    header(&mut bytes, "/", "0", index_padded);
    let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    bytes.extend_from_slice(&word(count));
    let mut at = MAGIC.len() + HEADER_SIZE + index_padded;
    if !long_names.is_empty() {
        at += HEADER_SIZE + long_names.len();
    }
    for member in members {
        for _ in member.symbols {
            bytes.extend_from_slice(&word(at));
        }
        at += HEADER_SIZE + member.object.len() + member.object.len() % 2;
    }
    bytes.extend_from_slice(&names);
    bytes.resize(MAGIC.len() + HEADER_SIZE + index_padded, 0);
    if !long_names.is_empty() {
        header(&mut bytes, "//", "0", long_names.len());
        bytes.extend_from_slice(&long_names);
    }
    for (member, name) in members.iter().zip(&short_names) {
        header(&mut bytes, name, "644", member.object.len());
        bytes.extend_from_slice(member.object);
        if bytes.len() % 2 != 0 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// The name of the symbol index in a library of macOS.
const DARWIN_INDEX: &str = "__.SYMDEF";
/// In a library of macOS, the contents of members begin at multiples of this number of bytes.
const DARWIN_ALIGN: usize = 8;

/// Returns the bytes of a static library for macOS. The names of symbols are those of C: they get an underscore.
#[must_use]
pub fn darwin_archive(members: &[Member<'_>]) -> Vec<u8> {
    let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let padded = |length: usize| (length + DARWIN_ALIGN - 1) / DARWIN_ALIGN * DARWIN_ALIGN;
    // The name stands between the header, whose size is no multiple of 8, and the content. At least one zero byte ends it.
    let named = |name: &str| padded(HEADER_SIZE + name.len() + 1) - HEADER_SIZE;
    let mut names = Vec::new();
    let mut count = 0;
    for member in members {
        for symbol in member.symbols {
            names.push(b'_');
            names.extend_from_slice(symbol.as_bytes());
            names.push(0);
            count += 1;
        }
    }
    names.resize(padded(names.len()), 0);
    // The index has the size of its entries, the entries, the size of the names, and the names. An entry has the offset
    // of a name and the offset of a member's header.
    let index_size = 4 + 8 * count + 4 + names.len();
    let mut at = MAGIC.len() + HEADER_SIZE + named(DARWIN_INDEX) + index_size;
    let mut index = Vec::new();
    index.extend_from_slice(&word(8 * count));
    let mut name_at = 0;
    for member in members {
        for symbol in member.symbols {
            index.extend_from_slice(&word(name_at));
            index.extend_from_slice(&word(at));
            name_at += symbol.len() + 2;
        }
        at += HEADER_SIZE + named(member.name) + padded(member.object.len());
    }
    index.extend_from_slice(&word(names.len()));
    index.extend_from_slice(&names);
    let mut bytes = Vec::new();
    bytes.extend_from_slice(MAGIC);
    let mut put = |name: &str, content: &[u8]| {
        let length = named(name);
        let size = length + padded(content.len());
        header(&mut bytes, &format!("#1/{}", length), "644", size);
        let start = bytes.len();
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(start + length, 0);
        bytes.extend_from_slice(content);
        bytes.resize(start + size, 0);
    };
    put(DARWIN_INDEX, &index);
    for member in members {
        put(member.name, member.object);
    }
    bytes
}

/// Columns of fixed width. Time and owner are 0, so that the same input always gives the same bytes.
fn header(bytes: &mut Vec<u8>, name: &str, mode: &str, size: usize) {
    let text = format!(
        "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        name, 0, 0, 0, mode, size
    );
    bytes.extend_from_slice(text.as_bytes());
}
