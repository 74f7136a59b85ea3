//! Truncates a file of each kind at every byte, and flips every bit of it. Reading must give an error with a location,
//! or data that can be written and read again.
use super::*;
use profkit_testkit::mip::with_checksum;

fn located(error: &Error) {
    let _ = message(error);
}

fn each_damage(whole: &[u8], checked: bool, read: impl Fn(&[u8])) {
    for end in 0..=whole.len() {
        read(&whole[..end]);
    }
    for bit in 0..8 * whole.len() {
        let mut data = whole.to_vec();
        data[bit / 8] ^= 1 << (bit % 8);
        read(&data);
        if checked {
            read(&with_checksum(data));
        }
    }
}

fn map(data: &[u8]) {
    match created(data, &ImageFacts::new()) {
        Err(error) => located(&error),
        Ok(created) => {
            created.dropped.iter().for_each(located);
            let bytes = encoded(&created.profile, ProfileVersion::V9);
            assert_eq!(MipProfile::parse(&bytes).unwrap(), created.profile);
        }
    }
}

fn raw(data: &[u8]) {
    for part in RawParts::new(data) {
        match part {
            Err(error) => located(&error),
            Ok(part) => {
                part.damage.iter().for_each(located);
                assert!(part.records.len() as u64 <= part.records_size);
            }
        }
    }
}

fn profile(data: &[u8]) {
    match MipProfile::parse(data) {
        Err(error) => located(&error),
        Ok(profile) => {
            let bytes = encoded(&profile, ProfileVersion::V9);
            assert_eq!(MipProfile::parse(&bytes).unwrap(), profile);
        }
    }
}

#[test]
fn maps() {
    each_damage(V8_MAP, false, map);
    each_damage(&mixed_image().map().finish(), false, map);
}

#[test]
fn raws() {
    each_damage(V8_RAW, false, raw);
    let image = mixed_image();
    let one = image.raw_with(&image.records(), 1, &[(0, 7)]).finish();
    each_damage(&one, true, raw);
    each_damage(&[&one[..], &one].concat(), false, raw);
}

#[test]
fn profiles() {
    let eight = created(V8_MAP, &ImageFacts::new()).unwrap().profile;
    each_damage(&encoded(&eight, ProfileVersion::V8), false, profile);
    each_damage(&encoded(&full(), ProfileVersion::V9), true, profile);
}
