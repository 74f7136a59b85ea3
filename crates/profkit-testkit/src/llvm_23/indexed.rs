//! Writes indexed profiles of version 14.
use super::hash_of;
use crate::{ByteBuilder, Endian};
use std::collections::BTreeMap;

/// The form in which the bytes of bitmaps and of uniformity bits are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes23 {
    /// The bytes follow each other. After them come zero bytes up to a multiple of 8.
    Packed,
    /// Each byte is stored in a word of 8 bytes, as in version 13.
    Words,
}

/// A function of an indexed profile. It has one record for each function hash.
#[derive(Clone, Debug, Default)]
pub struct IndexedFunction {
    /// The name.
    pub name: &'static str,
    /// The records, in the order in which they are written to the file.
    pub records: Vec<IndexedRecord>,
}

/// A function record.
#[derive(Clone, Debug, Default)]
pub struct IndexedRecord {
    /// The function hash.
    pub hash: u64,
    /// The counters.
    pub counts: Vec<u64>,
    /// The bytes of the bitmap.
    pub bitmap: Vec<u8>,
    /// The uniformity bits.
    pub uniformity: Vec<u8>,
    /// The targets of the function's only indirect call, with their counts. If the list is empty, there is no such
    /// call.
    pub targets: Vec<(&'static str, u64)>,
}

const MAGIC: [u8; 8] = [0xff, b'l', b'p', b'r', b'o', b'f', b'i', 0x81];

/// Returns the bytes of an IR profile of version 14 with these functions. The builder has the label `table` for the
/// table of buckets. For each function it has the label `NAME` for the name and `NAME data` for the records.
pub fn indexed_profile(functions: &[IndexedFunction], bytes: Bytes23) -> ByteBuilder {
    let mut file = ByteBuilder::new(Endian::Little);
    file.bytes(MAGIC).u64(14 | 1 << 56).u64(0).u64(0);
    file.label("table offset").u64(0).u64(0);
    file.label("build ids offset").u64(0).u64(0);
    file.label("vtable names offset").u64(0);
    summary(&mut file, functions);
    table(&mut file, functions, bytes);
    let build_ids = file.label("build ids").u64(0).offset("build ids") as u64;
    let vtables = file.label("vtable names").u64(0).offset("vtable names") as u64;
    file.patch_u64("build ids offset", build_ids);
    file.patch_u64("vtable names offset", vtables);
    file
}

/// The cutoffs of the summary, in millionths of the sum of all counts.
const CUTOFFS: [u64; 16] = [
    10_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000,
    950_000, 990_000, 999_000, 999_900, 999_990, 999_999,
];

fn summary(file: &mut ByteBuilder, functions: &[IndexedFunction]) {
    let records = || functions.iter().flat_map(|function| &function.records);
    let counts = || records().flat_map(|record| &record.counts).copied();
    let first = records().filter_map(|record| record.counts.first());
    let inner = records().flat_map(|record| record.counts.iter().skip(1));
    let total: u64 = counts().sum();
    file.u64(6).u64(CUTOFFS.len() as u64);
    file.u64(records().count() as u64)
        .u64(counts().count() as u64);
    file.u64(first.copied().max().unwrap_or(0));
    file.u64(counts().max().unwrap_or(0));
    file.u64(inner.copied().max().unwrap_or(0));
    file.u64(total);
    let mut sorted: Vec<u64> = counts().collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    for cutoff in CUTOFFS {
        let wanted = u128::from(total) * u128::from(cutoff) / 1_000_000;
        let (mut sum, mut least, mut blocks) = (0, 0, 0u64);
        for (index, &count) in sorted.iter().enumerate() {
            // If several counts equal the smallest one, all of them are included.
            if sum >= wanted && (index == 0 || sorted[index - 1] != count) {
                break;
            }
            (sum, least, blocks) = (sum + u128::from(count), count, blocks + 1);
        }
        file.u64(cutoff).u64(least).u64(blocks);
    }
}

/// Distributes functions to `count` buckets. Each new function is inserted at the start of its bucket.
fn spread<'a>(
    functions: impl Iterator<Item = &'a IndexedFunction>,
    count: usize,
) -> Vec<Vec<&'a IndexedFunction>> {
    let mut buckets = vec![Vec::new(); count];
    for function in functions {
        let bucket = usize::try_from(hash_of(function.name) % count as u64);
        buckets[bucket.expect("a small number")].insert(0, function);
    }
    buckets
}

/// Returns the functions in the buckets of LLVM's hash table. LLVM inserts the names in their order into a table of 64
/// buckets, each at the start of its bucket. Then it moves them, in the order of this table, to a table of the final
/// size.
fn buckets(functions: &[IndexedFunction]) -> Vec<Vec<&IndexedFunction>> {
    let by_name: BTreeMap<_, _> = functions.iter().map(|one| (one.name, one)).collect();
    let wanted = match by_name.len() {
        0..=2 => 1,
        more => (more * 4 / 3 + 1).next_power_of_two(),
    };
    assert!(by_name.len() < 48, "the first table of 64 buckets must do");
    let first = spread(by_name.into_values(), 64);
    match wanted {
        64 => first,
        _ => spread(first.into_iter().flatten(), wanted),
    }
}

fn table(file: &mut ByteBuilder, functions: &[IndexedFunction], bytes: Bytes23) {
    let buckets = buckets(functions);
    let mut offsets = Vec::new();
    for bucket in &buckets {
        let start = file.len();
        offsets.push(if bucket.is_empty() { 0 } else { start as u64 });
        if !bucket.is_empty() {
            file.u16(u16::try_from(bucket.len()).expect("a few"));
        }
        for function in bucket {
            let mut data = ByteBuilder::new(Endian::Little);
            for one in &function.records {
                record(&mut data, one, bytes);
            }
            let data = data.finish();
            file.label(function.name).u64(hash_of(function.name));
            file.u64(function.name.len() as u64).u64(data.len() as u64);
            file.bytes(function.name)
                .label(&format!("{} data", function.name))
                .bytes(data);
        }
    }
    let start = file.align(8).label("table").offset("table") as u64;
    file.patch_u64("table offset", start);
    file.u64(buckets.len() as u64).u64(functions.len() as u64);
    for offset in offsets {
        file.u64(offset);
    }
}

fn record(data: &mut ByteBuilder, record: &IndexedRecord, form: Bytes23) {
    data.u64(record.hash).u64(record.counts.len() as u64);
    for &count in &record.counts {
        data.u64(count);
    }
    for bytes in [&record.bitmap, &record.uniformity] {
        data.u64(bytes.len() as u64);
        match form {
            Bytes23::Packed => {
                data.bytes(bytes).align(8);
            }
            Bytes23::Words => {
                for &byte in bytes {
                    data.u64(byte.into());
                }
            }
        }
    }
    if record.targets.is_empty() {
        data.u32(8).u32(0);
        return;
    }
    let targets = u32::try_from(record.targets.len()).expect("a few");
    // The value data begin with TotalSize and NumValueKinds. Next come the fields of the only value kind: Kind,
    // NumValueSites, one byte for the only site, and padding. The values with their counts come last.
    data.u32(8 + 16 + 16 * targets).u32(1);
    data.u32(0).u32(1);
    data.u8(u8::try_from(targets).expect("a few")).align(8);
    for &(name, count) in &record.targets {
        data.u64(hash_of(name)).u64(count);
    }
}

fn function(name: &'static str, records: &[IndexedRecord]) -> IndexedFunction {
    IndexedFunction {
        name,
        records: records.to_vec(),
    }
}

pub(super) fn fixtures() -> Vec<(&'static str, Vec<u8>)> {
    let bitmap = |hash, counts: &[u64], bitmap: &[u8]| IndexedRecord {
        hash,
        counts: counts.to_vec(),
        bitmap: bitmap.to_vec(),
        ..IndexedRecord::default()
    };
    let calls = IndexedRecord {
        hash: 0x44,
        counts: vec![900, 20],
        targets: vec![("one_byte", 700), ("nine_bytes", 200)],
        ..IndexedRecord::default()
    };
    let host = [
        function("one_byte", &[bitmap(0x11, &[5, 3], &[0b110])]),
        function(
            "eight_bytes",
            &[bitmap(0x22, &[7], &[1, 2, 3, 4, 5, 6, 7, 8])],
        ),
        function(
            "nine_bytes",
            &[bitmap(0x33, &[9, 1], &[255, 0, 0, 0, 0, 0, 0, 0, 128])],
        ),
        function("calls", &[calls]),
        function(
            "two_hashes",
            &[bitmap(0x1000, &[1], &[]), bitmap(0x1001, &[2, 3], &[4])],
        ),
    ];
    let gpu = |hash, counts: &[u64], uniformity: &[u8]| IndexedRecord {
        uniformity: uniformity.to_vec(),
        ..bitmap(hash, counts, &[])
    };
    let kernels = [
        function("kernel", &[gpu(0x51, &[6400, 6400, 50], &[0b011])]),
        function("wide_kernel", &[gpu(0x52, &[64; 9], &[0xff, 1])]),
        function("host_part", &[gpu(0x53, &[12], &[])]),
    ];
    let file = |functions: &[IndexedFunction], form| indexed_profile(functions, form).finish();
    vec![
        ("host.profdata", file(&host, Bytes23::Packed)),
        ("gpu.profdata", file(&kernels, Bytes23::Packed)),
        ("widened.bin", file(&host, Bytes23::Words)),
    ]
}
