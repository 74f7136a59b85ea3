//! Writes raw profiles of version 11.
use super::hash_of;
use crate::{ByteBuilder, Endian};

/// A function of a raw profile.
#[derive(Clone, Debug, Default)]
pub struct RawFunction {
    /// The name.
    pub name: &'static str,
    /// The function hash.
    pub hash: u64,
    /// The counters.
    pub counts: Vec<u64>,
    /// The uniform counters. Either there are none, or one for each counter.
    pub uniform: Vec<u64>,
    /// The number of threads in a wave.
    pub wave_size: u16,
    /// The bytes of the bitmap.
    pub bitmap: Vec<u8>,
}

/// Returns the bytes of a raw IR profile of version 11. The program that wrote it has pointers of `pointer` bytes. The
/// builder has labels for the sections (`data`, `counters`, `bitmap`, `uniform counters`, `names`), for header fields
/// (LLVM's names), and `NAME UniformCounterPtr` for each function.
pub fn raw_profile(functions: &[RawFunction], endian: Endian, pointer: usize) -> ByteBuilder {
    let mut file = ByteBuilder::new(endian);
    let magic = |letter: u8| u64::from_be_bytes([0xff, b'l', b'p', b'r', b'o', b'f', letter, 0x81]);
    file.u64(magic(if pointer == 8 { b'r' } else { b'R' }));
    file.u64(11 | 1 << 56);
    for field in FIELDS {
        file.label(field).u64(0);
    }
    assert_eq!(file.len(), 19 * 8);

    let counters: usize = functions.iter().map(|one| one.counts.len()).sum();
    let bitmap: usize = functions.iter().map(|one| one.bitmap.len()).sum();
    let uniform: usize = functions.iter().map(|one| one.uniform.len()).sum();
    let record = if pointer == 8 { 72 } else { 56 };
    // The distances of the sections from the first data record.
    let counters_at = functions.len() * record;
    let bitmap_at = counters_at + 8 * counters;
    let uniform_at = bitmap_at + bitmap.next_multiple_of(8);

    file.label("data");
    let (mut counter, mut bit, mut lane) = (counters_at, bitmap_at, uniform_at);
    for (index, function) in functions.iter().enumerate() {
        let own = index * record;
        let put = |file: &mut ByteBuilder, target: Option<usize>| {
            let distance = target.map_or(0, |target| (target - own) as u64);
            if pointer == 8 {
                file.u64(distance);
            } else {
                file.u32(u32::try_from(distance).expect("a short distance"));
            }
        };
        file.u64(hash_of(function.name)).u64(function.hash);
        put(&mut file, Some(counter));
        file.label(&format!("{} UniformCounterPtr", function.name));
        put(&mut file, (!function.uniform.is_empty()).then_some(lane));
        put(&mut file, (!function.bitmap.is_empty()).then_some(bit));
        // The fields FunctionPointer and Values, which are 0.
        put(&mut file, None);
        put(&mut file, None);
        file.u32(u32::try_from(function.counts.len()).expect("a few"));
        file.u16(0).u16(0).u16(0).u16(function.wave_size);
        file.u32(u32::try_from(function.bitmap.len()).expect("a few"));
        file.align(8);
        counter += 8 * function.counts.len();
        bit += function.bitmap.len();
        lane += 8 * function.uniform.len();
    }
    let put_all = |file: &mut ByteBuilder, counts: fn(&RawFunction) -> &[u64]| {
        for &count in functions.iter().flat_map(counts) {
            file.u64(count);
        }
    };
    put_all(file.label("counters"), |one| &one.counts);
    file.label("bitmap");
    for function in functions {
        file.bytes(&function.bitmap);
    }
    put_all(file.align(8).label("uniform counters"), |one| &one.uniform);
    let names: Vec<_> = functions.iter().map(|one| one.name).collect();
    let names = names.join("\u{1}");
    // The names are one chunk that is not compressed. Before it stand its length (one byte) and 0 as its compressed
    // length.
    file.label("names")
        .u8(u8::try_from(names.len()).expect("short names"));
    file.u8(0).bytes(&names).label("end of names").align(8);

    file.patch_u64("NumData", functions.len() as u64);
    file.patch_u64("NumCounters", counters as u64);
    file.patch_u64("NumBitmapBytes", bitmap as u64);
    let padding = bitmap.next_multiple_of(8) - bitmap;
    file.patch_u64("PaddingBytesAfterBitmapBytes", padding as u64);
    file.patch_u64("NumUniformCounters", uniform as u64);
    file.patch_u64("NamesSize", file.distance("names", "end of names"));
    file.patch_u64("CountersDelta", counters_at as u64);
    file.patch_u64("BitmapDelta", bitmap_at as u64);
    file.patch_u64("ValueKindLast", 2);
    if uniform > 0 {
        file.patch_u64("UniformCountersDelta", uniform_at as u64);
    }
    file
}

/// The names of the header fields after the magic number and the version.
const FIELDS: [&str; 17] = [
    "BinaryIdsSize",
    "NumData",
    "PaddingBytesBeforeCounters",
    "NumCounters",
    "PaddingBytesAfterCounters",
    "NumBitmapBytes",
    "PaddingBytesAfterBitmapBytes",
    "NumUniformCounters",
    "PaddingBytesAfterUniformCounters",
    "UniformCountersDelta",
    "NamesSize",
    "CountersDelta",
    "BitmapDelta",
    "NamesDelta",
    "NumVTables",
    "VNamesSize",
    "ValueKindLast",
];

pub(super) fn fixtures() -> Vec<(&'static str, Vec<u8>)> {
    let host = [
        RawFunction {
            name: "main",
            hash: 0x61,
            counts: vec![1, 40],
            ..RawFunction::default()
        },
        RawFunction {
            name: "decide",
            hash: 0x62,
            counts: vec![40, 10, 30],
            bitmap: vec![3, 0, 9],
            ..RawFunction::default()
        },
    ];
    let kernels = |second: [u64; 3]| {
        [
            RawFunction {
                name: "kernel",
                hash: 0x51,
                counts: vec![6400, 6400, 100],
                uniform: second.to_vec(),
                wave_size: 64,
                ..RawFunction::default()
            },
            RawFunction {
                name: "wide_kernel",
                hash: 0x52,
                counts: vec![64; 9],
                uniform: vec![64, 64, 0, 64, 57, 58, 64, 64, 64],
                wave_size: 32,
                ..RawFunction::default()
            },
        ]
    };
    let file = |functions: &[RawFunction]| raw_profile(functions, Endian::Little, 8).finish();
    vec![
        ("host.profraw", file(&host)),
        // In the first run, blocks 0 and 1 of `kernel` are uniform. In the second run, blocks 0 and 2 are.
        ("gpu-1.profraw", file(&kernels([6400, 5760, 89]))),
        ("gpu-2.profraw", file(&kernels([6400, 5759, 90]))),
    ]
}
