//! Fuzz targets. Each is a function that takes any bytes and panics if a rule does not hold. `tests/smoke.rs` runs all
//! of [`TARGETS`] on a corpus, and on thousands of mutations of it with a fixed seed. `cargo test` runs this file, and
//! `cargo xtask fuzz-smoke` runs it with more mutations. A fuzzing engine only has to call one of the functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a fuzz target reports what it found by panicking"
)]

mod assembly;
mod binary;
mod block_map;
mod bolt;
mod compare;
mod correlate;
mod gcov;
mod index;
mod indexed;
mod list;
mod memprof;
mod merge;
mod mip;
mod names;
mod page;
mod part;
mod perf;
mod probes;
mod profgen;
mod sample;
mod source;
mod stored;
mod symbolize;
mod text;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target.
    pub name: &'static str,
    /// The function of the target. It panics if a rule does not hold.
    pub run: fn(&[u8]),
    /// The file extensions of the fixtures that are the target's corpus.
    pub seeds: &'static [&'static str],
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "raw",
        run: source::raw,
        seeds: &["profraw"],
    },
    Target {
        name: "indexed",
        run: indexed::indexed,
        seeds: &["profdata"],
    },
    Target {
        name: "text",
        run: text::text,
        seeds: &["proftext"],
    },
    Target {
        name: "merge",
        run: merge::merge,
        seeds: &["profraw", "profdata", "proftext"],
    },
    Target {
        name: "part",
        run: part::part,
        seeds: &["profraw", "profdata", "proftext", "pkpart", "sampleprof"],
    },
    Target {
        name: "perf",
        run: perf::perf,
        seeds: &["data"],
    },
    Target {
        name: "perf_text",
        run: perf::perf_text,
        seeds: &[],
    },
    Target {
        name: "profgen_text",
        run: profgen::profgen_text,
        seeds: &[],
    },
    Target {
        name: "profgen_binary",
        run: profgen::profgen_binary,
        seeds: &["elf"],
    },
    Target {
        name: "profgen_module",
        run: profgen::profgen_module,
        seeds: &["ko"],
    },
    Target {
        name: "profgen_recording",
        run: profgen::profgen_recording,
        seeds: &[],
    },
    Target {
        name: "bolt_text",
        run: bolt::bolt_text,
        seeds: &[],
    },
    Target {
        name: "bolt_binary",
        run: bolt::bolt_binary,
        seeds: &["elf"],
    },
    Target {
        name: "probes",
        run: probes::probes,
        seeds: &[],
    },
    Target {
        name: "list",
        run: list::list,
        seeds: &["list"],
    },
    Target {
        name: "names",
        run: names::names,
        seeds: &["s"],
    },
    Target {
        name: "binary",
        run: binary::binary,
        seeds: &["elf", "image", "ko", "debug"],
    },
    Target {
        name: "symbolize",
        run: symbolize::symbolize,
        seeds: &["elf"],
    },
    Target {
        name: "correlate",
        run: correlate::correlate,
        seeds: &["image"],
    },
    Target {
        name: "index_cache",
        run: index::index_cache,
        // It indexes its bytes, too.
        seeds: &["index", "image"],
    },
    Target {
        name: "memprof_raw",
        run: memprof::raw,
        seeds: &["memprofraw"],
    },
    Target {
        name: "memprof_indexed",
        run: memprof::indexed,
        seeds: &["profdata"],
    },
    Target {
        name: "memprof_portable",
        run: memprof::portable_section,
        seeds: &[],
    },
    Target {
        name: "memprof_yaml",
        run: memprof::yaml_text,
        seeds: &["yaml"],
    },
    Target {
        name: "mip_raw",
        run: mip::raw,
        seeds: &["mipraw"],
    },
    Target {
        name: "mip_map",
        run: mip::map,
        seeds: &["mipmap"],
    },
    Target {
        name: "mip_profile",
        run: mip::profile,
        seeds: &["mip"],
    },
    Target {
        name: "mip_yaml",
        run: mip::yaml,
        seeds: &["yaml"],
    },
    Target {
        name: "detect",
        run: source::detect,
        // Of the kinds with hundreds of fixtures, and of files that are no profiles, there is one each among its regressions.
        seeds: &[
            "afdo",
            "data",
            "elf",
            "gz",
            "image",
            "memprofraw",
            "mip",
            "mipmap",
            "mipraw",
            "pkpart",
            "prof",
            "s",
            "tar",
            "xz",
            "yaml",
            "zip",
            "zst",
        ],
    },
    Target {
        name: "assembly",
        run: assembly::assembly,
        seeds: &["s"],
    },
    Target {
        name: "block_map",
        run: block_map::block_map,
        seeds: &["bbaddrmap"],
    },
    Target {
        name: "gcov",
        run: gcov::gcov,
        seeds: &["afdo"],
    },
    Target {
        name: "sample",
        run: sample::sample,
        seeds: &["sampleprof"],
    },
    Target {
        name: "sample_merge",
        run: sample::merge,
        seeds: &["sampleprof", "afdo"],
    },
    Target {
        name: "overlap",
        run: compare::overlap,
        seeds: &[
            "profraw",
            "profdata",
            "proftext",
            "sampleprof",
            "mip",
            "yaml",
        ],
    },
    Target {
        name: "page",
        run: page::page,
        seeds: &["profdata", "proftext", "sampleprof", "mip"],
    },
    Target {
        name: "diff",
        run: compare::diff,
        seeds: &["profraw", "profdata", "proftext", "sampleprof", "mip"],
    },
    Target {
        name: "stored",
        run: stored::stored,
        seeds: &["gz", "xz", "zst", "tar", "zip"],
    },
    Target {
        name: "order",
        run: compare::order,
        seeds: &["profraw", "profdata", "proftext", "mip", "list"],
    },
];
