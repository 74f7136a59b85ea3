//! Writes a static library with one object file in the format of GNU ar (System V): a symbol index, a name, the bytes.
//! A linker uses the object only if something refers to a symbol in the index.

const MAGIC: &[u8] = b"!<arch>\n";
const MEMBER: &str = "profkit_rt.o/";
const HEADER_SIZE: usize = 60;

/// Returns the bytes of a static library with this object file and these symbols.
pub fn archive(object: &[u8], symbols: &[&str]) -> Vec<u8> {
    let mut index_size = 4 + 4 * symbols.len();
    for symbol in symbols {
        index_size += symbol.len() + 1;
    }
    let index_padded = index_size.next_multiple_of(2);
    let member_at = MAGIC.len() + HEADER_SIZE + index_padded;
    let mut bytes = Vec::with_capacity(member_at + HEADER_SIZE + object.len() + 1);
    bytes.extend_from_slice(MAGIC);
    header(&mut bytes, "/", index_padded);
    let word = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    bytes.extend_from_slice(&word(symbols.len()));
    for _ in symbols {
        bytes.extend_from_slice(&word(member_at));
    }
    for symbol in symbols {
        bytes.extend_from_slice(symbol.as_bytes());
        bytes.push(0);
    }
    bytes.resize(member_at, 0);
    header(&mut bytes, MEMBER, object.len());
    bytes.extend_from_slice(object);
    if !bytes.len().is_multiple_of(2) {
        bytes.push(b'\n');
    }
    bytes
}

/// Writes the header of a member: name, time, owner, group, mode and size in columns of fixed width. Time and owner are
/// 0, so that the same input always gives the same bytes.
fn header(bytes: &mut Vec<u8>, name: &str, size: usize) {
    let mode = if name == MEMBER { "644" } else { "0" };
    let text = format!("{name:<16}{:<12}{:<6}{:<6}{mode:<8}{size:<10}`\n", 0, 0, 0);
    bytes.extend_from_slice(text.as_bytes());
}
