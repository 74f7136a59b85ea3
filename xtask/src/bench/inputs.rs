//! Profiles that are generated as text, and raw profiles of generated programs.
use super::Place;
use anyhow::Result;
use profkit_testkit::Rng;
use profkit_testkit::mip::{MipFunction, MipImage};
use profkit_testkit::sample::{SampleOptions, SampleShape};
use std::fmt::Write as _;
use std::fs;

/// Maps each 64-bit number to another one that looks random. The map is a fixed permutation (the finaliser of
/// SplitMix64).
pub fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A name in rustc's older mangling, of about 130 bytes: words, the hash of a type, words, the hash of the function. The
/// hashes do not compress, so that raw files of 16,000 functions have 2 MB.
fn mangled(function: u64) -> String {
    const WORDS: [&str; 8] = [
        "collections",
        "iterator",
        "parser",
        "coverage",
        "serialize",
        "formatter",
        "visitor",
        "scheduler",
    ];
    let random = scramble(function);
    let word = |shift: u32| {
        let word = WORDS[usize::try_from(random >> shift & 7).unwrap_or(0)];
        format!("{}{word}", word.len())
    };
    let hash = scramble(random);
    let own = format!("f{function}");
    format!(
        "_ZN{}{}{}33h{:016x}{:016x}{}{}{own}17h{hash:016x}E",
        word(0),
        word(4),
        word(8),
        hash.rotate_left(32),
        scramble(hash),
        word(12),
        own.len()
    )
}

/// A raw profile of a program with three functions.
pub fn small_raw(place: &Place) -> Result<()> {
    place.once("small.profraw", || {
        place.write(
            "small.c",
            "static int twice(int x) { return x > 3 ? 2 * x : x; }\nint once(int x) { return x + 1; }\n\
             int main(int argc, char **argv) { (void)argv; return twice(once(argc)) == 40; }\n",
        )?;
        place.run(
            "clang-22 -fprofile-instr-generate -fcoverage-mapping -o small small.c
            LLVM_PROFILE_FILE=small.profraw ./small",
        )
    })
}

fn function_count(place: &Place) -> u64 {
    place.size(400_000, 200)
}

/// Two profiles of the same functions with different counts, as text and indexed.
pub fn functions(place: &Place) -> Result<()> {
    for seed in 1..=2 {
        place.once(&format!("{seed}.profdata"), || {
            let mut text = ":ir\n".to_owned();
            for function in 0..function_count(place) {
                let counters = function * 7919 % 8 + 1;
                let _ = writeln!(
                    text,
                    "{}\n{}\n{counters}",
                    mangled(function),
                    scramble(function) >> 4
                );
                for counter in 0..counters {
                    let random = scramble(seed << 40 ^ function << 4 ^ counter);
                    let count = match (random >> 32) % 3 {
                        0 => 0,
                        1 => random % 100,
                        _ => random % 1_000_000,
                    };
                    let _ = writeln!(text, "{count}");
                }
                text.push('\n');
            }
            place.write(&format!("{seed}.proftext"), text)?;
            place.run(&format!(
                "llvm-profdata-22 merge {seed}.proftext -o {seed}.profdata"
            ))
        })?;
    }
    Ok(())
}

/// The profiles of [`functions`], and a library whose symbols are these functions.
pub fn library(place: &Place) -> Result<()> {
    functions(place)?;
    place.once("functions.so", || {
        let mut source = ".text\n".to_owned();
        for name in (0..function_count(place)).map(mangled) {
            let _ = writeln!(
                source,
                ".globl {name}\n.type {name}, @function\n{name}: ret\n.size {name}, 1"
            );
        }
        place.write("functions.s", source)?;
        place.run("clang-22 -shared -nostdlib -o functions.so functions.s")
    })
}

/// A profile with temporal traces. Each trace has all functions, in groups of 200 whose order differs from trace to trace.
pub fn traces(place: &Place) -> Result<()> {
    const OWN: u64 = 200;
    place.once("traces.profdata", || {
        let (parts, traces) = (place.size(50, 2), place.size(100, 3));
        let mut text = format!(":ir\n:temporal_prof_traces\n{traces}\n{traces}\n");
        for trace in 0..traces {
            let mut order: Vec<u64> = (0..parts).collect();
            order.sort_by_key(|part| scramble(trace * parts + part));
            let names = order
                .into_iter()
                .flat_map(|part| part * OWN..(part + 1) * OWN)
                .map(mangled);
            let _ = writeln!(text, "1\n{},", names.collect::<Vec<_>>().join(","));
        }
        for function in 0..parts * OWN {
            let _ = writeln!(text, "{}\n1\n1\n1\n", mangled(function));
        }
        place.write("traces.proftext", text)?;
        place.run("llvm-profdata-22 merge traces.proftext -o traces.profdata")
    })
}

const NESTED: SampleOptions = SampleOptions {
    functions: 20_000,
    pool: 50_000,
    lines: 8,
    shape: SampleShape::Nested,
    one_program: true,
};

/// Sample profiles of runs of one program, and a list of them.
pub fn samples(place: &Place) -> Result<()> {
    let options = SampleOptions {
        functions: place.size(NESTED.functions, 80),
        pool: place.size(NESTED.pool, 200),
        ..NESTED
    };
    sample_runs(place, &options, "few", place.size(20, 3))
}

/// Many small sample profiles, and lists of some and of all of them.
pub fn many_samples(place: &Place) -> Result<()> {
    let options = SampleOptions {
        functions: place.size(800, 80),
        pool: place.size(2000, 200),
        ..NESTED
    };
    sample_runs(place, &options, "many", place.size(1000, 6))?;
    place.run("head -n $(($(wc -l < many.list) / 25 + 1)) many.list > some.list")
}

fn sample_runs(place: &Place, options: &SampleOptions, name: &str, runs: u64) -> Result<()> {
    place.once(&format!("{name}.list"), || {
        for run in 0..runs {
            let text = profkit_testkit::sample::sample_text(options, run);
            place.write("scratch.proftext", text)?;
            place.run(&format!(
                "mkdir -p {name}; llvm-profdata-22 merge --sample --extbinary scratch.proftext -o {name}/{run:03}"
            ))?;
        }
        place.run(&format!("ls {name}/* > {name}.list"))
    })
}

/// A large sample profile, as text and in the extensible binary encoding.
pub fn sample_text(place: &Place) -> Result<()> {
    let functions = place.size(200_000, 100);
    let options = SampleOptions {
        functions,
        pool: functions,
        lines: 4,
        one_program: false,
        ..NESTED
    };
    place.once("text.extbinary", || {
        place.write(
            "text.proftext",
            profkit_testkit::sample::sample_text(&options, 1),
        )?;
        place.run("llvm-profdata-22 merge --sample text.proftext -o text.extbinary")
    })
}

/// A MIP map, and raw files in which two thirds of the functions were called.
pub fn mip_raws(place: &Place, modes: u16) -> Result<()> {
    let (functions, files) = place.size((10_000, 10_000), (30, 5));
    let described =
        (0..functions).map(|index| MipFunction::new(format!("function_{index}"), modes, 0));
    let image = MipImage::new(&[0x5a; 20], described.collect());
    place.once("map.mipmap", || {
        let mut rng = Rng::new(1);
        let called: Vec<_> = (0..functions)
            .filter(|_| rng.below(3) > 0)
            .map(|index| {
                let ordinal = u32::try_from(index + 1).unwrap_or(1);
                (index, ordinal % 1000 + 1, ordinal)
            })
            .collect();
        let mut records = image.run(&called);
        fs::create_dir_all(place.folder.join("raw"))?;
        for file in 0..files {
            // The runs differ: each file has one more called function than the file before.
            let changed = image.layout().0.get(file % functions).copied().unwrap_or(0);
            if let Some(byte) = records.get_mut(changed) {
                *byte = 0;
            }
            place.write(&format!("raw/{file:05}.mipraw"), image.raw(&records))?;
        }
        place.write("map.mipmap", image.map().finish())
    })
}
