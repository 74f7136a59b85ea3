//! Stores many small inputs in one file. The repository contains the corpus of each fuzz target in this form.
//!
//! The file is a zlib stream. It contains the inputs sorted by their bytes. Before each input stands its length in four
//! bytes, little-endian.
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{self, Read, Write};

/// Stores inputs in one file. The file does not depend on the order of the inputs.
///
/// # Panics
/// If an input has 4 GiB or more.
pub fn pack(mut inputs: Vec<Vec<u8>>) -> Vec<u8> {
    inputs.sort();
    inputs.dedup();
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for input in inputs {
        let length = u32::try_from(input.len()).expect("a small input");
        let written = encoder.write_all(&length.to_le_bytes());
        written
            .and_then(|()| encoder.write_all(&input))
            .expect("writing to memory never fails");
    }
    encoder.finish().expect("writing to memory never fails")
}

/// Returns the inputs that are stored in a file.
///
/// # Errors
/// If the file is damaged.
pub fn unpack(bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut whole = Vec::new();
    ZlibDecoder::new(bytes).read_to_end(&mut whole)?;
    let mut rest = whole.as_slice();
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let mut length = [0; 4];
        rest.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        let (input, after) = rest
            .split_at_checked(length)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        inputs.push(input.to_vec());
        rest = after;
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_come_back_sorted_and_once() {
        let inputs = [&b"text"[..], b"", b"\xff\0", b"text"].map(<[u8]>::to_vec);
        let packed = pack(inputs.to_vec());
        let unpacked = unpack(&packed).unwrap();
        assert_eq!(unpacked, [&b""[..], b"text", b"\xff\0"]);
        assert_eq!(pack(unpacked), packed);
        assert!(unpack(&packed[..packed.len() - 6]).is_err());
    }
}
