//! Lies to what reads programs, libraries and debug files (the target `binary`), in each format: each word of a real file is
//! replaced by numbers that are too large or too small, and files are built in which many parts share one large part. Memory
//! and processor time are bounded.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking"
)]

mod elf;

use elf::Elf;
use profkit_fuzz::TARGETS;
use profkit_testkit::{
    ByteBuilder, CountingAllocator, Endian, fixture, peak_allocation, short_or_whole,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The memory that SECURITY.md promises: this many times the file's size, and [`FLOOR`] more.
const RATIO: usize = 132;
const FLOOR: usize = 64 << 20;
/// The processor time for a byte of a file, in a build without optimisation, and the time for the smallest file.
const PER_BYTE: Duration = Duration::from_micros(40);
const LEAST: Duration = Duration::from_secs(3);

/// Files of each format that are read.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let mut files: Vec<(&str, Vec<u8>)> = [
        "debug_info/clang-22-dwarf-4.elf",
        "debug_info/clang-22-dwarf-5.elf",
        "debug_info/module.ko",
        "debug_info/module-zlib.ko",
        "heap/heap.debug",
        "perf/walked",
        "correlation/elf-binary.image",
        "correlation/elf-debug-info.image",
        "correlation/s390x-binary.image",
        "correlation/powerpc-debug-info.image",
        "correlation/pe.image",
        "correlation/macho.image",
    ]
    .into_iter()
    .map(|name| (name, fixture(name)))
    .collect();
    files.push((
        "a universal file",
        universal(&fixture("correlation/macho.image")),
    ));
    files.push(("an object for Windows", coff()));
    files.push(("a library", library(&coff())));
    files
}

/// A universal Mach-O file with this image for x86-64, twice.
fn universal(image: &[u8]) -> Vec<u8> {
    const START: u32 = 0x1000;
    let size = u32::try_from(image.len()).expect("a small file");
    let mut file = ByteBuilder::new(Endian::Big);
    file.u32(0xcafe_babe).u32(2);
    for (subtype, number) in [(3, 0), (8, 1)] {
        let start = START + number * size.next_multiple_of(START);
        file.u32(0x0100_0007)
            .u32(subtype)
            .u32(start)
            .u32(size)
            .u32(12);
    }
    let mut bytes = file.finish();
    for number in 0..2 {
        let start = START + number * size.next_multiple_of(START);
        bytes.resize(usize::try_from(start).expect("a small file"), 0);
        bytes.extend(image);
    }
    bytes
}

/// An object file for Windows with code, a function with a long name, and one with a short name.
fn coff() -> Vec<u8> {
    let mut file = ByteBuilder::new(Endian::Little);
    file.u16(0x8664).u16(1).u32(0).u32(64).u32(2).u16(0).u16(0);
    file.bytes(b".text\0\0\0").u32(0).u32(0).u32(4).u32(60);
    file.u32(0).u32(0).u16(0).u16(0).u32(0x6050_0020);
    file.bytes([0x31, 0xc0, 0xc3, 0x90]);
    file.bytes(b"short\0\0\0")
        .u32(0)
        .u16(1)
        .u16(0x20)
        .u8(2)
        .u8(0);
    file.u32(0).u32(4).u32(2).u16(1).u16(0x20).u8(2).u8(0);
    file.u32(4 + 21).bytes(b"a_function_long_name\0");
    file.finish()
}

fn library(member: &[u8]) -> Vec<u8> {
    let header = format!(
        "{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        "one.obj/",
        0,
        0,
        0,
        644,
        member.len()
    );
    [b"!<arch>\n", header.as_bytes(), member].concat()
}

/// What reading a file took.
struct Cost {
    memory: usize,
    time: Duration,
}

/// Reads a file with one thread, so that its memory and its time are those of this thread.
fn cost(data: &[u8]) -> Result<Cost, String> {
    let target = TARGETS.iter().find(|target| target.name == "binary");
    let run = target.expect("the target").run;
    let before = processor_time();
    let (outcome, memory) = peak_allocation(|| catch_unwind(AssertUnwindSafe(|| run(data))));
    outcome.map_err(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&words| words.to_owned()));
        words.unwrap_or_else(|| "it panicked".to_owned())
    })?;
    let cost = Cost {
        memory,
        time: processor_time() - before,
    };
    if cost.memory > RATIO * data.len() + FLOOR {
        return Err(format!("{memory} bytes held for {} bytes", data.len()));
    }
    let most = LEAST + PER_BYTE * u32::try_from(data.len()).expect("a small file");
    if cost.time > most {
        let time = cost.time;
        return Err(format!(
            "{time:?} for {} bytes, expected at most {most:?}",
            data.len()
        ));
    }
    Ok(cost)
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

fn with_one_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(run)
}

#[test]
fn no_word_of_a_file_is_believed() {
    // A run that is not whole takes each N-th word only.
    let every = short_or_whole(23, 1);
    let failures = with_one_thread(|| {
        let (mut failures, mut count) = (Vec::new(), 0);
        for (number, (name, whole)) in files().into_iter().enumerate() {
            cost(&whole).unwrap_or_else(|why| panic!("{name}: {why}"));
            let len = u32::try_from(whole.len()).expect("a small file");
            let lies = [
                0,
                1,
                0x7fff_ffff,
                u32::MAX,
                len,
                len / 2,
                0x8000_0000,
                0xffff,
            ];
            for (word, at) in (0..whole.len() - 3).step_by(4).enumerate() {
                // The rest of a fixture of Mach-O is padding.
                if (word + number) % every != 0
                    || whole[at..].iter().take(64).all(|&byte| byte == 0)
                {
                    continue;
                }
                // In turn, so that neighbours get others.
                for lie in [lies[word % 8], lies[(word / 8 + 3) % 8]] {
                    for bytes in [lie.to_le_bytes(), lie.to_be_bytes()] {
                        let mut data = whole.clone();
                        data[at..at + 4].copy_from_slice(&bytes);
                        count += 1;
                        if let Err(why) = cost(&data) {
                            failures.push(format!("{name}: {bytes:02x?} at {at:#x}: {why}"));
                        }
                    }
                }
            }
        }
        println!("{count} files");
        failures
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn many_parts_that_share_a_large_one_cost_no_more_than_the_file() {
    let failures = with_one_thread(|| {
        let mut failures = Vec::new();
        for (name, build) in elf::HOSTILE {
            for size in [1 << 10, 8 << 10, short_or_whole(32 << 10, 128 << 10)] {
                let data: Vec<u8> = build(size);
                match cost(&data) {
                    Ok(cost) => println!(
                        "{name}, {} bytes: {} bytes held, {:?}",
                        data.len(),
                        cost.memory,
                        cost.time
                    ),
                    Err(why) => {
                        failures.push(format!("{name}, {} bytes: {why}", data.len()));
                        break;
                    }
                }
            }
        }
        failures
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What the files above are made of is understood: else they would test nothing.
#[test]
fn the_files_are_files() {
    use object::{Object as _, ObjectSymbol as _};
    let image = coff();
    let file = object::File::parse(&*image).expect("an object");
    let names: Vec<_> = file
        .symbols()
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    assert_eq!(names, ["short", "a_function_long_name"]);
    let universal = universal(&fixture("correlation/macho.image"));
    let fat = object::read::macho::MachOFatFile32::parse(&*universal).expect("a universal file");
    assert_eq!(fat.arches().len(), 2);
    let plain = Elf::new()
        .section(".text", 1, 6, 0x1000, vec![0xc3; 16])
        .finish();
    assert!(
        object::File::parse(&*plain)
            .expect("an ELF file")
            .section_by_name(".text")
            .is_some()
    );
}

/// C++ has names of functions that are longer than 4,096 bytes.
#[test]
fn a_long_name_of_a_symbol_is_read() {
    let (_, build) = elf::HOSTILE[0];
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), build(10_000)).expect("written");
    let symbols = profkit_object::code_symbols::read_code_symbols(file.path()).expect("symbols");
    let longest = symbols.iter().map(|symbol| symbol.name.len()).max();
    assert_eq!(longest, Some(10_000));
}
