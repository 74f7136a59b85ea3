//! Profiles in the shapes of real programs, as large as wanted.
//!
//! The numbers of [`ALL`] were printed by `cargo xtask bench --shapes`, which builds the programs, runs them, and reads their
//! profiles (`measure.rs`). A generated function draws each of its properties on its own: what a real program correlates,
//! such as long names and many counters, is lost.
pub mod measure;

use super::Place;
use super::inputs::scramble;
use super::programs::example;
use anyhow::Result;
use profkit_abi::variant;
use profkit_data::bytes::Endian;
use profkit_data::ids::FuncHash;
use profkit_data::instr::raw::{PointerWidth, RawDialect, RawImage, RawImageRecord};
use profkit_data::instr::{ValueData, ValueEntry};
use std::fmt::Write as _;

/// A property over all functions or counters, sorted: the values at [`POINTS`].
pub type Spread = [u32; POINTS.len()];

/// The places of the values of a [`Spread`], per thousand.
pub const POINTS: [u32; 10] = [0, 100, 250, 500, 750, 900, 950, 990, 999, 1000];

/// How names are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mangling {
    /// Words and underscores.
    C,
    /// The names of C++ in the Itanium ABI.
    Cxx,
    /// The names of Rust, version 0.
    Rust,
}

/// What the functions of a program are like.
#[derive(Debug)]
pub struct Shape {
    pub name: &'static str,
    /// The flag lines of a text profile.
    pub header: &'static str,
    pub mangling: Mangling,
    /// How many functions the benchmarks generate.
    pub functions: u64,
    /// The length of names in bytes.
    pub names: Spread,
    /// Counters per function.
    pub counters: Spread,
    /// The share of functions that never ran, per thousand.
    pub idle: u32,
    /// Of the functions that ran, the share of counters that are zero, per thousand.
    pub zeros: u32,
    /// How many bits the counters have that are not zero.
    pub bits: Spread,
    /// Value sites per function: of calls, and of memory intrinsics.
    pub sites: [Spread; 2],
    /// Values per site.
    pub targets: [Spread; 2],
}

const NONE: [Spread; 2] = [[0; POINTS.len()]; 2];

/// The shapes. All but the last one are those of real programs.
pub const ALL: &[Shape] = &[
    // zstd with clang's coverage, 2,206 functions, after its workload.
    Shape {
        name: "c",
        header: "",
        mangling: Mangling::C,
        functions: 200_000,
        names: [4, 18, 22, 29, 38, 46, 52, 60, 67, 71],
        counters: [1, 1, 1, 2, 6, 14, 24, 53, 143, 433],
        idle: 695,
        zeros: 645,
        bits: [1, 2, 2, 5, 8, 17, 19, 21, 22, 23],
        sites: NONE,
        targets: NONE,
    },
    // re2 with -O2 -fprofile-generate, 571 functions, after its workload.
    Shape {
        name: "c++-ir",
        header: ":ir\n",
        mangling: Mangling::Cxx,
        functions: 200_000,
        names: [4, 27, 36, 51, 77, 143, 209, 263, 322, 352],
        counters: [1, 1, 2, 5, 10, 22, 40, 71, 136, 201],
        idle: 469,
        zeros: 528,
        bits: [1, 6, 8, 11, 14, 17, 18, 21, 22, 23],
        sites: [
            [0, 0, 0, 0, 0, 0, 0, 1, 4, 5],
            [0, 0, 0, 0, 0, 1, 2, 3, 10, 14],
        ],
        targets: [
            [0, 0, 0, 0, 1, 2, 2, 2, 2, 4],
            [0, 0, 0, 0, 1, 4, 5, 7, 9, 11],
        ],
    },
    // profkit's example llvm_symbolizer, a development build with -Cinstrument-coverage, 4740 functions, after 5,000
    // addresses of its own.
    Shape {
        name: "rust",
        header: "",
        mangling: Mangling::Rust,
        functions: 200_000,
        names: [38, 74, 100, 160, 208, 288, 459, 681, 768, 780],
        counters: [1, 1, 1, 1, 2, 5, 8, 19, 99, 188],
        idle: 804,
        zeros: 477,
        bits: [1, 1, 2, 3, 9, 16, 16, 17, 18, 20],
        sites: NONE,
        targets: NONE,
    },
    // Names: the functions that libLLVM.so.22.1 exports. Counters: re2 with clang's coverage, 741 functions, after its workload.
    Shape {
        name: "c++-library",
        header: "",
        mangling: Mangling::Cxx,
        functions: 200_000,
        names: [8, 27, 42, 63, 93, 138, 171, 261, 360, 501],
        counters: [1, 1, 1, 1, 4, 14, 23, 59, 93, 93],
        idle: 312,
        zeros: 408,
        bits: [1, 7, 9, 11, 15, 17, 19, 23, 25, 25],
        sites: NONE,
        targets: NONE,
    },
    // No program: many functions, short names, and counts of all sizes.
    Shape {
        name: "tiny",
        header: ":ir\n",
        mangling: Mangling::C,
        functions: 400_000,
        names: [2, 5, 6, 7, 7, 7, 7, 7, 7, 7],
        counters: [1, 1, 2, 5, 7, 8, 8, 8, 8, 8],
        idle: 0,
        zeros: 400,
        bits: [1, 1, 3, 8, 15, 20, 23, 27, 30, 32],
        sites: NONE,
        targets: NONE,
    },
];

/// Random numbers that depend on nothing but where they begin.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A value of a spread. Between two of its points values are equally likely.
    fn of(&mut self, spread: &Spread) -> u32 {
        const STEPS: u64 = 1 << 16;
        let place = self.below(1000 * STEPS);
        let after = POINTS.partition_point(|&point| u64::from(point) * STEPS <= place);
        let after = after.clamp(1, POINTS.len() - 1);
        let [low, high] = [after - 1, after].map(|index| u64::from(spread[index]));
        let [start, end] = [after - 1, after].map(|index| u64::from(POINTS[index]) * STEPS);
        let value = low + ((high - low) * (place - start) + (end - start) / 2) / (end - start);
        u32::try_from(value).unwrap_or(u32::MAX)
    }
}

/// A function of a generated program in one of its runs.
#[derive(Debug, Default)]
struct Function {
    name: String,
    hash: u64,
    counts: Vec<u64>,
    values: ValueData,
}

impl Shape {
    /// The function with this number of so many. The `run` changes counts and nothing else.
    fn function(&self, number: u64, functions: u64, run: u64) -> Function {
        let mut fixed = Random(number << 8);
        let mut varying = Random(number << 8 ^ run << 48 ^ 0x80);
        let name = self.function_name(number);
        let hash = fixed.next() >> 4;
        let counters = fixed.of(&self.counters);
        let idle = fixed.below(1000) < u64::from(self.idle);
        let counts: Vec<u64> = (0..counters)
            .map(|_| {
                let zero = fixed.below(1000) < u64::from(self.zeros);
                let bits = fixed.of(&self.bits).clamp(1, 48);
                let low = varying.next() & ((1 << (bits - 1)) - 1);
                if idle || zero {
                    0
                } else {
                    1 << (bits - 1) | low
                }
            })
            .collect();
        let mut values = ValueData::default();
        for (kind, (sites, targets)) in (0..).zip(self.sites.iter().zip(&self.targets)) {
            let Some(data) = values.kind_mut(kind) else {
                continue;
            };
            for _ in 0..fixed.of(sites) {
                let seen = u64::from(fixed.of(targets));
                let first = fixed.below(functions);
                let entries = (0..if idle { 0 } else { seen }).map(|target| ValueEntry {
                    value: if kind == 0 {
                        (first + target) % functions
                    } else {
                        first % 512 + target
                    },
                    count: varying.below(100_000) + 1,
                });
                data.push_site(entries);
            }
        }
        Function {
            name,
            hash,
            counts,
            values,
        }
    }

    /// The name of a function, which no other function has.
    fn function_name(&self, number: u64) -> String {
        const WORDS: [&str; 16] = [
            "get",
            "set",
            "init",
            "parse",
            "table",
            "string",
            "buffer",
            "context",
            "compress",
            "iterator",
            "allocate",
            "serialize",
            "collection",
            "instruction",
            "transformation",
            "specialization",
        ];
        let mut random = Random(number << 8 ^ 0x40);
        let length = random.of(&self.names) as usize;
        let mut word = || WORDS[usize::try_from(random.below(16)).unwrap_or(0)];
        let own = format!("f{number:x}");
        match self.mangling {
            Mangling::C => {
                let mut name = String::new();
                while name.len() + own.len() < length {
                    name.push_str(word());
                    name.push('_');
                }
                name.truncate(length.saturating_sub(own.len()));
                name + &own
            }
            Mangling::Cxx => nested("_ZN", "Ev", &own, length, word),
            Mangling::Rust => {
                let rest = length.saturating_sub(40);
                let mut path = String::new();
                let mut parents = 0;
                while path.len() < rest {
                    let word = word();
                    path.push_str(&format!("{}{word}", word.len()));
                    parents += 1;
                }
                format!(
                    "_RNv{}Cs8yTqKtRrNa5_7example{path}{}{own}",
                    "Nt".repeat(parents),
                    own.len()
                )
            }
        }
    }
}

/// A mangled name of about this length: identifiers, each after its own length. The last one fills what is missing.
fn nested(
    start: &str,
    end: &str,
    own: &str,
    length: usize,
    mut word: impl FnMut() -> &'static str,
) -> String {
    let mut name = start.to_owned();
    let rest = |name: &str| length.saturating_sub(name.len() + end.len() + own.len() + 2);
    while rest(&name) > 16 {
        let word = word();
        name.push_str(&format!("{}{word}", word.len()));
    }
    let filler = "_".repeat(rest(&name));
    let last = format!("{own}{filler}");
    format!("{name}{}{last}{end}", last.len())
}

/// Two profiles of a shape with different counts, as text and indexed.
pub fn merged(place: &Place) -> Result<()> {
    example(place, "profkit-data", "bare_loop")?;
    let shape = place.shape()?;
    for run in 1..=2 {
        place.once(&format!("{run}.profdata"), || {
            place.write(
                &format!("{run}.proftext"),
                shape.text(shape.count(place), run),
            )?;
            place.run(&format!(
                "llvm-profdata-22 merge {run}.proftext -o {run}.profdata"
            ))
        })?;
    }
    Ok(())
}

/// The raw profiles of many runs of one program, and a list of them.
pub fn raws(place: &Place) -> Result<()> {
    example(place, "profkit-data", "bare_loop")?;
    let shape = place.shape()?;
    place.once("raw.list", || {
        let runs = place.size(100, 3);
        for run in 0..runs {
            place.write(
                &format!("raw/{run}.profraw"),
                shape.raw(shape.count(place) / 20, run)?,
            )?;
        }
        place.run("ls raw/* > raw.list")
    })
}

impl Shape {
    fn count(&self, place: &Place) -> u64 {
        place.size(self.functions, 200)
    }

    /// The name of a function in the middle of the profile.
    pub fn some_name(&self, place: &Place) -> String {
        self.function_name(self.count(place) / 2)
    }

    fn text(&self, functions: u64, run: u64) -> String {
        let mut text = self.header.to_owned();
        for number in 0..functions {
            let function = self.function(number, functions, run);
            let _ = writeln!(
                text,
                "{}\n{}\n{}",
                function.name,
                function.hash,
                function.counts.len()
            );
            for count in &function.counts {
                let _ = writeln!(text, "{count}");
            }
            self.write_values(&function.values, &mut text);
            text.push('\n');
        }
        text
    }

    fn write_values(&self, values: &ValueData, text: &mut String) {
        let kinds = || values.kinds().filter(|(_, sites)| sites.site_count() > 0);
        if kinds().next().is_some() {
            let _ = writeln!(text, "{}", kinds().count());
        }
        for (kind, sites) in kinds() {
            let _ = writeln!(text, "{kind}\n{}", sites.site_count());
            for site in sites.sites() {
                let _ = writeln!(text, "{}", site.len());
                for ValueEntry { value, count } in site {
                    let _ = match kind {
                        0 => writeln!(text, "{}:{count}", self.function_name(*value)),
                        _ => writeln!(text, "{value}:{count}"),
                    };
                }
            }
        }
    }

    /// A raw profile as clang 22 writes it. Functions have the addresses by which call targets are found.
    fn raw(&self, functions: u64, run: u64) -> Result<Vec<u8>> {
        let flags = if self.header.is_empty() {
            0
        } else {
            variant::IR
        };
        let mut image = RawImage::new(RawDialect {
            endian: Endian::Little,
            width: PointerWidth::Bits64,
            version: 10,
            flags,
        });
        let address = |number: u64| 0x1000_0000 + number * 16;
        for number in 0..functions {
            let mut function = self.function(number, functions, run);
            for (_, sites) in function.values.kinds_mut().take(1) {
                for entry in sites.entries_mut() {
                    entry.value = address(entry.value);
                }
            }
            image.records.push(RawImageRecord {
                name: function.name.into_bytes(),
                func_hash: FuncHash(function.hash),
                counts: function.counts,
                address: address(number),
                values: function.values,
                ..RawImageRecord::default()
            });
        }
        image.form.compress_names = true;
        Ok(image.to_bytes()?)
    }
}
