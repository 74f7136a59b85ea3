//! Truncates small raw files at every byte, and flips every bit of them. Reading must give an error or records, never a
//! panic.
use super::*;

fn files() -> Vec<Vec<u8>> {
    let mut files: Vec<_> = (1..=11).map(bytes).collect();
    for (endian, width) in DIALECTS {
        let flags = variant::TEMPORAL | variant::BYTE_COVERAGE;
        let mut image = image(RawDialect {
            endian,
            width,
            version: 10,
            flags,
        });
        image.form.compress_names = true;
        files.push(image.to_bytes().unwrap());
    }
    let mut two = bytes(10);
    two.extend(bytes(10));
    files.push(two);
    files
}

fn try_all(file: &[u8]) -> usize {
    let (strict, _) = read_on(file, RawReadOptions::default());
    let (salvaged, _) = read_on(file, RawReadOptions::default().salvage(true));
    // Every record takes at least 24 bytes of the file. This limits the number of records even if damage makes the
    // reader read some bytes twice.
    assert!(salvaged.len() <= file.len(), "{} records", salvaged.len());
    assert!(salvaged.len() >= strict.len());
    strict.len()
}

#[test]
fn every_truncation() {
    for file in files() {
        let whole = try_all(&file);
        for len in 0..file.len() {
            assert!(try_all(&file[..len]) <= whole);
        }
    }
}

#[test]
fn every_flipped_bit() {
    for file in files() {
        let mut damaged = file.clone();
        for bit in 0..8 * file.len() {
            damaged[bit / 8] ^= 1 << (bit % 8);
            try_all(&damaged);
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
