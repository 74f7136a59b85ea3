//! Makes `tests/fixtures` anew: small real profiles from every release in every mode.
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mip::succeed;
use anyhow::{Context, Result, bail, ensure};
use profkit_testkit::matrix::{Compiler, Mode, RawSet, Set, all_sets};
use profkit_testkit::simulate::{Program, Simulation, Step};
use profkit_testkit::{
    HEAP_FLAGS, Llvm, RELEASES, fixture_path, has_heap_runtime, links_c, repo_root,
};

/// The index of the run whose raw profile is kept, for each program.
const KEPT_RUN: usize = 1;

/// The releases whose front-end profiles are merged in the README. Their functions have the same hashes (formats.md
/// B.1).
const README_RELEASES: [u32; 4] = [14, 16, 19, 22];

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Also make those that differ each time: recordings of perf, heap profiles with their times
    #[arg(long)]
    timed: bool,
}

/// Rewrites the folders in [`FOLDERS`], and `MANIFEST`, which says for each file how and by which tool it was made. The same
/// tools write the same bytes in every checkout, so that what changes has changed for a reason.
pub fn run(arguments: &Arguments) -> Result<()> {
    complete(arguments)?;
    let mut writer = Writer::new(arguments.timed)?;
    for set in all_sets().into_iter().filter(is_kept) {
        let built = set.build().map_err(|why| anyhow::anyhow!("{set}: {why}"))?;
        one_set(&mut writer, &built)?;
    }
    samples(&mut writer)?;
    readme(&mut writer)?;
    for made in commands() {
        writer.make(&made)?;
    }
    walked(&mut writer)?;
    writer.add(
        "correlation/binaries.index",
        b"profkit binaries 2\n5024 1700000000000000000 7 13 0a1b2c3d4e /builds/app\n17 1700000000000000001 9 - - /builds/notes\n",
        "written by hand",
    )?;
    for (name, bytes) in profkit_testkit::llvm_24::llvm_24_fixtures() {
        let how = "written by crates/profkit-testkit/src/llvm_24, not by LLVM's tools: what no release writes yet";
        writer.add(&format!("llvm-24/{name}"), &bytes, how)?;
    }
    writer.finish()
}

/// The commands that make fixtures besides those of LLVM's releases, and the packages that have them.
const NEEDS: [(&str, &str); 14] = [
    ("create_gcov", "autofdo"),
    ("gcc-12", "gcc-12"),
    ("gzip", "gzip"),
    ("ld.lld-22", "lld-22"),
    ("ld64.lld-22", "lld-22"),
    ("lld-link-22", "lld-22"),
    ("llvm-objcopy-22", "llvm-22"),
    ("nm", "binutils"),
    ("perf", "linux-perf"),
    ("setarch", "util-linux"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("zip", "zip"),
    ("zstd", "zstd"),
];

/// A fixture that cannot be made would be lost, because whole folders are replaced: all that is missing is said before
/// anything is made.
fn complete(arguments: &Arguments) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |command: &str| std::env::split_paths(&path).any(|one| one.join(command).is_file());
    let packages: BTreeSet<&str> = NEEDS
        .into_iter()
        .filter(|&(command, _)| !has(command) && (command != "perf" || arguments.timed))
        .map(|(_, package)| package)
        .collect();
    let mut missing = Vec::new();
    if !packages.is_empty() {
        let packages: Vec<&str> = packages.into_iter().collect();
        missing.push(format!("{0} (apt-get install {0})", packages.join(" ")));
    }
    for release in RELEASES {
        let Some(llvm) = Llvm::find(release) else {
            missing.push(format!(
                "clang, llvm-profdata and llvm-cov of LLVM {release} (apt-get install clang-{release} llvm-{release}, or \
                 .ci/llvms for the releases that Debian lacks)"
            ));
            continue;
        };
        if release == 22 {
            let linked = links_c(llvm.clang(), &["-m32"]);
            missing.extend(
                linked
                    .err()
                    .map(|why| format!("{why} (apt-get install g++-multilib)")),
            );
            missing.extend(has_heap_runtime(&llvm).err());
        }
    }
    if !has("rustc") {
        missing.push("rustc (rustup)".to_owned());
    }
    if !missing.is_empty() {
        bail!("not installed:\n  {}", missing.join("\n  "));
    }
    Ok(())
}

/// `PATH`, and after it the folder of the releases that Debian lacks: the lines of shell name tools without folders.
fn path_with_releases() -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let laid = RELEASES
        .into_iter()
        .filter_map(|release| Some(Llvm::find(release)?.clang().parent()?.to_owned()));
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(laid).collect();
    std::env::join_paths(folders).context("the folders of the LLVM releases")
}

/// Whether the profiles of a set are kept. Of the releases that Debian lacks, those with a version of the raw or the indexed
/// format that no other release writes, in a few modes.
fn is_kept(set: &Set) -> bool {
    let Compiler::Clang(release) = set.compiler else {
        return true;
    };
    // Those of one release are among the fixtures of `commands`.
    if set.mode == Mode::ColdFunctions {
        return false;
    }
    let modes: &[Mode] = match release {
        17 => &[Mode::Fe, Mode::Temporal, Mode::BlockCoverage],
        18 => &[Mode::Ir, Mode::Mcdc],
        20 | 21 => &[],
        23 => &[
            Mode::Fe,
            Mode::Ir,
            Mode::CsIr,
            Mode::FunctionEntry,
            Mode::Temporal,
            Mode::Mcdc,
            Mode::Vtables,
        ],
        _ => return true,
    };
    let program = match set.mode {
        Mode::Mcdc => "conditions",
        Mode::Vtables => "shapes",
        _ => "plain",
    };
    modes.contains(&set.mode) && set.program.name == program
}

/// A fixture that a few lines of shell make.
struct Made {
    name: String,
    /// The file of `OUT` that becomes the fixture.
    file: String,
    lines: String,
}

impl Made {
    /// Whether its bytes differ each time: perf interrupts a program at other places, and the heap profile has the times of
    /// allocations.
    fn is_timed(&self) -> bool {
        self.lines.contains("perf record") || self.lines.contains("memprof")
    }
}

/// The fixtures that lines of shell make, in this order. They are run in tests/programs. `OUT` is a scratch folder of all of
/// them, `FIXTURES` the folder of the new fixtures.
fn commands() -> Vec<Made> {
    let mut made = Vec::new();
    let mut add = |name: String, file: &str, lines: String| {
        made.push(Made {
            name,
            file: file.to_owned(),
            lines,
        });
    };
    // Both profiles with a heap profile are made from raw files, because LLVM 22 loses that of an indexed input.
    let heap = format!(
        "clang-22 -O1 {} -no-pie -Wl,--build-id heap.c -o OUT/program\n\
         rm -f OUT/raw* && MEMPROF_OPTIONS=log_path=OUT/raw OUT/program && mv OUT/raw.* OUT/raw.memprofraw\n\
         llvm-profdata-22 merge --profiled-binary=OUT/program OUT/raw.memprofraw",
        HEAP_FLAGS.join(" ")
    );
    for (name, more) in [
        ("heap", ""),
        ("ir-plain", " FIXTURES/raw/clang-22-ir-plain.profraw"),
    ] {
        add(
            format!("indexed/clang-22-memprof-{name}.profdata"),
            "out",
            format!("{heap}{more} -o OUT/out"),
        );
    }
    // Which functions ran of those that a sample profile calls cold.
    let cold = "printf 'main:2000:1\\n 1: 1000\\n' > OUT/samples\n\
                clang-22 -O2 -gmlt -fdebug-compilation-dir=/src -fdebug-info-for-profiling \
                -fprofile-generate-cold-function-coverage \
                -fprofile-sample-use=OUT/samples -mllvm -pgo-treat-unknown-as-cold plain.c plain_more.c -o OUT/program\n\
                LLVM_PROFILE_FILE=OUT/raw setarch -R OUT/program 3 50 > OUT/printed";
    add(
        "raw/clang-22-cold-functions.profraw".into(),
        "raw",
        cold.into(),
    );
    add(
        "indexed/clang-22-cold-functions.profdata".into(),
        "out",
        "llvm-profdata-22 merge FIXTURES/raw/clang-22-cold-functions.profraw -o OUT/out".into(),
    );
    // Profiles of a host and of devices. Their names tell which is which. Those of devices contain an address of the heap,
    // whose start depends on the size of the environment.
    for (release, devices) in [
        (22, &["amdgcn-amd-amdhsa", "nvptx64-nvidia-cuda"][..]),
        (23, &["gfx90a", "gfx90a.1"]),
    ] {
        let lines = format!(
            "clang-{release} -O1 -fprofile-generate -Wl,--build-id offload.c -o OUT/program\n\
             cd OUT && env -i LLVM_PROFILE_FILE=default.profraw setarch -R ./program {} > printed",
            devices.join(" ")
        );
        let devices = devices.iter().map(|device| format!("{device}."));
        for before in [String::new()].into_iter().chain(devices) {
            let name = format!("{before}default.profraw");
            add(
                format!("offload/clang-{release}/{name}"),
                &name,
                lines.clone(),
            );
        }
    }
    add(
        "offload/clang-23/gfx90a.profdata".into(),
        "out",
        "llvm-profdata-23 merge FIXTURES/offload/clang-23/gfx90a.default.profraw \
         FIXTURES/offload/clang-23/gfx90a.1.default.profraw -o OUT/out"
            .into(),
    );
    // Linked at address 0, so that a test can look up all addresses.
    for (version, more) in [("4", "-gz=zlib"), ("5", "-fdebug-info-for-profiling")] {
        let lines = format!(
            "clang-22 -O2 -gdwarf-{version} {more} -ffile-prefix-map=$PWD=/src -nostdlib -static -fuse-ld=lld \
             -Wl,--image-base=0,-z,noseparate-code inlined.c -o OUT/program"
        );
        add(
            format!("debug_info/clang-22-dwarf-{version}.elf"),
            "program",
            lines,
        );
    }
    let module = "clang-22 -O2 -g -mcmodel=kernel -fno-pic -ffreestanding -fno-asynchronous-unwind-tables \
                  -ffile-prefix-map=$PWD=/src -c module.c -o OUT/object\n\
                  ld.lld-22 -r --build-id=sha1 OUT/object -o OUT/module";
    add("debug_info/module.ko".into(), "module", module.into());
    let compress = format!(
        "{module}\nllvm-objcopy-22 --compress-debug-sections=zlib OUT/module OUT/compressed"
    );
    add("debug_info/module-zlib.ko".into(), "compressed", compress);
    // Linked files of every object format whose raw profiles contain only counters.
    let elf = "ld.lld-22 -shared --build-id=sha1 OUT/object -o OUT/image";
    let pe = "lld-link-22 /Brepro /nodefaultlib /entry:start /subsystem:console /build-id /include:counters_begin \
              /include:counters_end OUT/object /out:OUT/image";
    let macho = "ld64.lld-22 -arch x86_64 -platform_version macos 13.0 13.0 -dylib -fixup_chains -install_name image \
                 -oso_prefix OUT/ OUT/object -o OUT/image";
    for (name, target, more, link) in [
        ("elf-binary", "x86_64-linux-gnu", "binary -fPIC", elf),
        (
            "elf-debug-info",
            "x86_64-linux-gnu",
            "debug-info -fPIC",
            elf,
        ),
        ("s390x-binary", "s390x-linux-gnu", "binary -fPIC", elf),
        (
            "powerpc-debug-info",
            "powerpc-linux-gnu",
            "debug-info -fPIC -gdwarf-4",
            elf,
        ),
        ("pe", "x86_64-pc-windows-msvc", "binary -gdwarf", pe),
        ("macho", "x86_64-apple-macos13", "binary -fPIC", macho),
    ] {
        let compile = format!(
            "clang-22 --target={target} -O1 -g -ffile-prefix-map=$PWD=/src -fprofile-generate -mllvm -disable-vp=true \
             -mllvm -profile-correlate={more} -c correlated.c -o OUT/object"
        );
        add(
            format!("correlation/{name}.image"),
            "image",
            format!("{compile}\n{link}"),
        );
    }
    add(
        "assembly/hand.s".into(),
        "out.s",
        "cp hand.s OUT/out.s".into(),
    );
    for (name, compiler) in [
        (
            "gcc-12-x86_64-elf",
            "gcc-12 -O2 -g1 -ffile-prefix-map=$PWD=/src",
        ),
        (
            "clang-22-x86_64-elf",
            "clang-22 --target=x86_64-linux-gnu -O1",
        ),
        (
            "clang-22-aarch64-elf",
            "clang-22 --target=aarch64-linux-gnu -O1",
        ),
        (
            "clang-22-armv7-elf",
            "clang-22 --target=armv7-linux-gnueabihf -O1",
        ),
        (
            "clang-22-x86_64-macho",
            "clang-22 --target=x86_64-apple-macos -O1",
        ),
        (
            "clang-22-arm64-macho",
            "clang-22 --target=arm64-apple-macos -O1",
        ),
    ] {
        add(
            format!("assembly/{name}.s"),
            "out.s",
            format!("{compiler} -S inlined.c -o OUT/out.s"),
        );
    }
    // The counts are invented: each function ran from its start to its end, the first 1000 times, the second 2000 times,
    // and so on. Addresses are distances from the address at which the program is loaded.
    let ranges = "gcc-12 -O2 -gdwarf-4 -no-pie -nostdlib -static inlined.c -o OUT/program\n\
        nm -S OUT/program | grep -i ' t ' | while read start size rest; do n=$((n + 1000)); \
        printf '%x-%x:%d\\n' $((0x$start - 0x400000)) $((0x$start - 0x400000 + 0x$size - 1)) $n; done > OUT/ranges\n\
        (wc -l < OUT/ranges; cat OUT/ranges; echo 0; echo 0) > OUT/samples";
    for (name, version) in [("v1", "1"), ("v407", "875575082")] {
        let create = format!(
            "create_gcov -binary=OUT/program -profile=OUT/samples -gcov=OUT/profile -profiler=text -gcov_version={version}"
        );
        add(
            format!("gcov/create_gcov-{name}.afdo"),
            "profile",
            format!("{ranges}\n{create}"),
        );
    }
    // Real runs, sampled by perf without branch stacks. The samples differ each time.
    let station = "station/arithmetic.cpp station/main.cpp station/ordering.cpp station/run.cpp station/settings.cpp \
                   station/textual.cpp -o OUT/program";
    for (name, arguments) in [("one", "run 300000 1"), ("two", "run 100000 2")] {
        let lines = format!(
            "clang++-22 -O2 -gdwarf-4 -fdebug-info-for-profiling -fno-pie -no-pie {station}\n\
             perf record -q -e cpu-clock -F 2000 -o OUT/perf.data OUT/program {arguments}\n\
             create_gcov --binary=OUT/program --profile=OUT/perf.data --gcov=OUT/profile --use_lbr=false \
             -gcov_version=875575082"
        );
        add(format!("gcov/perf-{name}-v407.afdo"), "profile", lines);
    }
    // As a file, and in the form that perf writes to a pipe, compressed and with call chains. The program writes to
    // standard output too, but the pipe must contain only the recording.
    let program = "sh -c 'exec OUT/program \"$@\" >OUT/output' sh run 100000 1";
    for (name, record) in [
        (
            "file",
            format!("perf record -q -e cpu-clock:u -F 997 -o OUT/recording {program}"),
        ),
        (
            "pipe-zstd",
            format!(
                "perf record -q -z -g -e cpu-clock:u,page-faults:u -F 997 -o - {program} 2>&1 >OUT/recording"
            ),
        ),
    ] {
        let compile = format!("clang++-22 -O2 -fno-omit-frame-pointer {station}");
        add(
            format!("perf/{name}.data"),
            "recording",
            format!("{compile}\n{record}"),
        );
    }
    // With a map of its basic blocks.
    let walked = "clang-22 -O2 -fbasic-block-address-map -fuse-ld=lld -Wl,-z,noseparate-code,--build-id=sha1 walked.c \
                  -o OUT/walked";
    add("perf/walked".into(), "walked", walked.into());
    for (release, option) in [
        (13, "-fbasic-block-sections=labels"),
        (15, "-fbasic-block-sections=labels"),
        (19, "-fbasic-block-address-map"),
        (22, "-fbasic-block-address-map"),
    ] {
        let lines = format!(
            "clang-{release} -O2 {option} -nostdlib -static --ld-path=/usr/bin/ld.lld-22 \
             -Wl,--image-base=0,-z,noseparate-code inlined.c -o OUT/program\n\
             llvm-objcopy-22 --dump-section=.llvm_bb_addr_map=OUT/section OUT/program OUT/copy"
        );
        add(
            format!("block_maps/clang-{release}.bbaddrmap"),
            "section",
            lines,
        );
    }
    // Files that contain profiles.
    let tar = "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644";
    for (name, command) in [
        ("1.profraw.gz", "gzip -nk 1.profraw"),
        ("2.profraw.xz", "xz -k 2.profraw"),
        ("2.profraw.zst", "zstd -q 2.profraw"),
        ("runs.tar", "TAR -cf runs.tar 1.profraw 2.profraw"),
        ("runs.tar.gz", "gzip -nk runs.tar"),
        ("runs.tar.xz", "xz -k runs.tar"),
        ("runs.tar.zst", "zstd -q runs.tar"),
        (
            "nested.tar",
            "TAR -cf nested.tar 1.profraw.gz 2.profraw.xz 2.profraw.zst",
        ),
        (
            "runs.zip",
            "touch -d 1990-01-01T00:00Z *.profraw* && TZ=UTC zip -qX runs.zip 1.profraw 2.profraw.xz",
        ),
    ] {
        let lines = format!(
            "cp FIXTURES/readme/clang-14.profraw OUT/1.profraw && cp FIXTURES/readme/clang-22.profraw OUT/2.profraw\n\
             cd OUT && {}",
            command.replace("TAR", tar)
        );
        add(format!("stored/{name}"), name, lines);
    }
    made
}

/// Writes a recording with branch stacks of a simulated run of perf/walked.
fn walked(writer: &mut Writer) -> Result<()> {
    const PATH: &str = "/opt/walked";
    let mut program = Program::open(&writer.fresh.path().join("perf/walked"));
    program.path = PATH.into();
    let simulation = Simulation::new(1).depth(16);
    let mut recording = simulation.writer();
    let steps = [
        Step::Start {
            pid: 10,
            program: 0,
        },
        Step::Samples(60),
    ];
    simulation.run(&[program], &steps, &mut recording)?;
    let how = format!(
        "profkit_testkit::simulate: 60 samples of perf/walked, which the recording calls {PATH}"
    );
    writer.add("perf/walked.data", &recording.file(), &how)?;
    Ok(())
}

/// Writes sample profiles in every encoding of every release, from texts that this repository has.
fn samples(writer: &mut Writer) -> Result<()> {
    let folder = repo_root().join("tests/programs/samples");
    // The other releases write the same bytes as one of these, but for the order of contexts, which is that of a hash table.
    for llvm in [13, 14, 15, 16, 19, 22].into_iter().filter_map(Llvm::find) {
        let release = llvm.release();
        for source in ["nested", "contexts", "probes"] {
            let input = folder.join(format!("{source}.txt"));
            let mut encodings = vec![
                ("text", "--text"),
                ("ext", "--extbinary"),
                ("ext-md5", "--extbinary --use-md5"),
                ("ext-compressed", "--extbinary --compress-all-sections"),
            ];
            // These encodings can store neither contexts nor checksums. Only the text `nested` has none.
            if source == "nested" {
                encodings.push(("binary", "--binary"));
                encodings.push(("ext-split", "--extbinary --split-layout"));
                if release < 17 {
                    encodings.push(("compact", "--compbinary"));
                }
            }
            // LLVM 13 does not know checksums of inlined functions. LLVM 19 does not have the option for the split
            // layout.
            if release == 13 && source == "probes" {
                encodings.clear();
            }
            encodings.retain(|(name, _)| release >= 22 || *name != "ext-split");
            for (name, options) in encodings {
                let mut words = vec!["--sample"];
                words.extend(options.split_whitespace());
                let bytes = merged(&llvm, &words, &input)
                    .with_context(|| format!("{source} as {name} by LLVM {release}"))?;
                writer.add(
                    &format!("sample/llvm-{release}-{source}-{name}.sampleprof"),
                    &bytes,
                    &format!(
                        "llvm-profdata-{release} merge --sample {options} samples/{source}.txt"
                    ),
                )?;
            }
        }
    }
    Ok(())
}

fn one_set(writer: &mut Writer, built: &RawSet) -> Result<()> {
    let set = built.set;
    let steps = build_steps(set);
    let raw = built.run_at_fixed_addresses(KEPT_RUN);
    let raw_path = writer.add(&format!("raw/{set}.profraw"), &raw, &steps)?;
    let release = match set.compiler {
        Compiler::Clang(release) => release,
        Compiler::Rustc => 22,
    };
    let llvm = Llvm::find(release).with_context(|| format!("LLVM {release}"))?;
    let how = format!("llvm-profdata-{release} merge raw/{set}.profraw");
    let indexed = merged(&llvm, &[], &raw_path)?;
    writer.add(&format!("indexed/{set}.profdata"), &indexed, &how)?;
    if set.mode == Mode::Ir || release == 22 {
        let text = merged(&llvm, &["--text"], &raw_path)?;
        writer.add(
            &format!("text/{set}.proftext"),
            &text,
            &format!("{how} --text"),
        )?;
    }
    Ok(())
}

/// The commands of a set without those that run the program, because these are the same for all sets.
fn build_steps(set: Set) -> String {
    let mut steps = set.describe();
    steps.retain(|step| !step.starts_with("LLVM_PROFILE_FILE=OUT/run-"));
    steps.join("\n")
}

fn merged(llvm: &Llvm, options: &[&str], input: &Path) -> Result<Vec<u8>> {
    let output = tempfile::NamedTempFile::new()?;
    let status = Command::new(llvm.profdata())
        .arg("merge")
        .args(options)
        .arg(input)
        .arg("-o")
        .arg(output.path())
        .status()?;
    ensure!(status.success(), "{}: {status}", llvm.profdata().display());
    Ok(std::fs::read(output.path())?)
}

/// Writes front-end profiles of one program from four releases, and one profile that is cut in the middle of its names.
fn readme(writer: &mut Writer) -> Result<()> {
    let mut last = Vec::new();
    for (run, release) in README_RELEASES.into_iter().enumerate() {
        let set = Set::new(Compiler::Clang(release), Mode::Fe, "plain");
        let built = set.build().map_err(|why| anyhow::anyhow!("{set}: {why}"))?;
        let how = build_steps(set);
        last = built.run_at_fixed_addresses(run % 3);
        writer.add(&format!("readme/clang-{release}.profraw"), &last, &how)?;
        if release == 22 {
            let cut = built.run_at_fixed_addresses(1);
            // The names are the last section of this file, because it has no value data. Half of the names are cut off.
            let names_size = usize::try_from(header_word(&cut, NAMES_SIZE_WORD)?)?;
            let kept = cut.len() - names_size.next_multiple_of(8) + names_size / 2;
            writer.add(
                "readme/clang-22-truncated.profraw",
                &cut[..kept],
                &format!(
                    "{how}\nits second run, cut to {kept} of {} bytes",
                    cut.len()
                ),
            )?;
        }
    }
    ensure!(
        !last.is_empty(),
        "no release of {README_RELEASES:?} is installed"
    );
    Ok(())
}

/// The index of the word `NamesSize` in the header of raw version 10 (formats.md A.3).
const NAMES_SIZE_WORD: usize = 9;

fn header_word(raw: &[u8], index: usize) -> Result<u64> {
    let bytes = raw.get(index * 8..index * 8 + 8).context("a raw header")?;
    Ok(u64::from_le_bytes(bytes.try_into()?))
}

/// Collects the files and the manifest, and replaces the old folders at the end.
struct Writer {
    /// Whether fixtures are made that differ each time. If not, those that are there stay.
    timed: bool,
    path: OsString,
    fresh: tempfile::TempDir,
    scratch: tempfile::TempDir,
    manifest: String,
    total: usize,
}

/// The folders below `tests/fixtures` that this task writes.
const FOLDERS: [&str; 14] = [
    "raw",
    "indexed",
    "text",
    "debug_info",
    "correlation",
    "assembly",
    "readme",
    "gcov",
    "perf",
    "block_maps",
    "sample",
    "stored",
    "offload",
    "llvm-24",
];

impl Writer {
    fn new(timed: bool) -> Result<Writer> {
        let root = fixture_path("");
        std::fs::create_dir_all(&root)?;
        Ok(Writer {
            timed,
            path: path_with_releases()?,
            fresh: tempfile::tempdir_in(&root)?,
            scratch: tempfile::tempdir()?,
            manifest: "Written by `cargo xtask fixtures`: each file, its size, and the commands that made it, in tests/programs.\n\
                       OUT is a scratch folder. The program then ran as `setarch -R OUT/program 3 50`, at the same \
                       addresses each time\n(readme/clang-14 with `1 10`, clang-19 with `8 200`, clang-22 with `1 10`). FIXTURES is this folder.\n"
                .to_owned(),
            total: 0,
        })
    }

    fn add(&mut self, name: &str, bytes: &[u8], how: &str) -> Result<PathBuf> {
        let path = self.fresh.path().join(name);
        std::fs::create_dir_all(path.parent().context("a folder")?)?;
        std::fs::write(&path, bytes)?;
        writeln!(self.manifest, "\n{name} ({} bytes)", bytes.len())?;
        for line in how.lines() {
            writeln!(self.manifest, "    {line}")?;
        }
        self.total += bytes.len();
        Ok(path)
    }

    /// Adds a file of the scratch folder that lines of shell make.
    fn make(&mut self, made: &Made) -> Result<()> {
        let Made { name, file, lines } = made;
        let old = fixture_path(name);
        if made.is_timed() && !self.timed && old.is_file() {
            return self.add(name, &std::fs::read(old)?, lines).map(drop);
        }
        let [out, fresh] =
            [&self.scratch, &self.fresh].map(|folder| folder.path().display().to_string());
        let expanded = lines.replace("OUT", &out).replace("FIXTURES", &fresh);
        succeed(
            Command::new("bash")
                .args(["-ec", &expanded])
                .env("PATH", &self.path)
                .current_dir(repo_root().join("tests/programs")),
        )
        .with_context(|| name.clone())?;
        let bytes = std::fs::read(self.scratch.path().join(file))?;
        self.add(name, &bytes, lines).map(drop)
    }

    fn finish(self) -> Result<()> {
        let root = fixture_path("");
        for folder in FOLDERS {
            let old = root.join(folder);
            if old.exists() {
                std::fs::remove_dir_all(&old)?;
            }
            std::fs::rename(self.fresh.path().join(folder), &old)?;
        }
        std::fs::write(root.join("MANIFEST"), self.manifest)?;
        eprintln!("{} KiB of fixtures", self.total.div_ceil(1024));
        Ok(())
    }
}
