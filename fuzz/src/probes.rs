//! Fuzzes the sections of pseudo probes.
use crate::source::located;
use profkit_data::bytes::Endian;
use profkit_profgen::probes::{ProbeMap, Sections, Wanted};

/// Reads any bytes as the two sections. The first four bytes are the size of the descriptions. An error must state its
/// position. Every probe must be found by its address and have a finite number of frames.
///
/// # Panics
/// If one of these rules does not hold.
pub(crate) fn probes(data: &[u8]) {
    let Some((size, data)) = data.split_first_chunk() else {
        return;
    };
    let size = usize::try_from(u32::from_le_bytes(*size)).expect("32 bits");
    let (descriptions, probes) = data.split_at(size.min(data.len()));
    for endian in [Endian::Little, Endian::Big] {
        let sections = Sections {
            descriptions,
            probes,
            endian,
        };
        let map = match ProbeMap::read(&sections, &Wanted::default()) {
            Ok(map) => map,
            Err(error) => {
                located(&error);
                continue;
            }
        };
        assert!(map.probes.len() * 3 + map.copies.len() * 10 <= probes.len());
        assert_eq!(map.between(0, u64::MAX).count(), map.probes.len());
        for (index, probe) in map.probes.iter().enumerate() {
            let mut here = map.between(probe.address, probe.address);
            // Many probes can have the same address, so only the first 16 of them are looked at.
            let found = here.by_ref().take(16).any(|(number, _)| number == index);
            assert!(found || here.next().is_some());
            let frames = map.frames(probe).take(data.len() + 1).count();
            assert!((1..=map.copies.len()).contains(&frames));
            if index > 1000 {
                break;
            }
        }
    }
}
