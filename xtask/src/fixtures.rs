//! Makes `tests/fixtures` anew: small real profiles from every installed release in every mode.
mod walked;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use profkit_testkit::matrix::{Compiler, Mode, RawSet, Set, all_sets};
use profkit_testkit::{Llvm, fixture_path, heap_dump, repo_root};

/// The index of the run whose raw profile is kept, for each program.
const KEPT_RUN: usize = 1;

/// The releases whose front-end profiles are merged in the README. Their functions have the same hashes (formats.md
/// B.1).
const README_RELEASES: [u32; 4] = [14, 16, 19, 22];

/// Rewrites the folders in [`FOLDERS`], and `MANIFEST`, which says for each file how and by which tool it was made.
pub fn run() -> Result<()> {
    let mut writer = Writer::new()?;
    for set in all_sets() {
        match set.build() {
            Ok(built) => one_set(&mut writer, &built)?,
            Err(why) => eprintln!("left out {set}: {why}"),
        }
    }
    memprof(&mut writer)?;
    debug_info(&mut writer)?;
    modules(&mut writer)?;
    correlation(&mut writer)?;
    samples(&mut writer)?;
    assembly(&mut writer)?;
    readme(&mut writer)?;
    gcov(&mut writer)?;
    gcov_of_perf(&mut writer)?;
    recordings(&mut writer)?;
    walked::walked(&mut writer)?;
    block_maps(&mut writer)?;
    stored(&mut writer)?;
    llvm_23(&mut writer)?;
    writer.finish()
}

/// Writes profiles of LLVM 23. Its tools are not installed, so the test support writes the files byte by byte.
fn llvm_23(writer: &mut Writer) -> Result<()> {
    for (name, bytes) in profkit_testkit::llvm_23::llvm_23_fixtures() {
        writer.add(&format!("llvm-23/{name}"), &bytes, LLVM_23)?;
    }
    Ok(())
}

const LLVM_23: &str = "written by crates/profkit-testkit/src/llvm_23, not by LLVM's tools";

/// Writes files that contain profiles: compressed files, archives, and archives of compressed files.
fn stored(writer: &mut Writer) -> Result<()> {
    const TAR: &str = "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644";
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    let releases = [("1", 14), ("2", 22)];
    for (name, release) in releases {
        let profile = fixture_path(format!("readme/clang-{release}.profraw"));
        std::fs::copy(profile, folder.join(format!("{name}.profraw")))?;
    }
    for (name, command) in [
        ("1.profraw.gz", "gzip -nk 1.profraw".to_owned()),
        ("2.profraw.xz", "xz -k 2.profraw".to_owned()),
        ("2.profraw.zst", "zstd -q 2.profraw".to_owned()),
        ("runs.tar", format!("{TAR} -cf runs.tar 1.profraw 2.profraw")),
        ("runs.tar.gz", "gzip -nk runs.tar".to_owned()),
        ("runs.tar.xz", "xz -k runs.tar".to_owned()),
        ("runs.tar.zst", "zstd -q runs.tar".to_owned()),
        ("nested.tar", format!("{TAR} -cf nested.tar 1.profraw.gz 2.profraw.xz 2.profraw.zst")),
        (
            "runs.zip",
            "touch -d 1990-01-01T00:00Z *.profraw* && TZ=UTC zip -qX runs.zip 1.profraw 2.profraw.xz".to_owned(),
        ),
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(folder);
        ensure!(shell.status()?.success(), "{command}");
        let bytes = std::fs::read(folder.join(name))?;
        let how = format!("1.profraw is readme/clang-14.profraw, 2.profraw is readme/clang-22.profraw\n{command}");
        writer.add(&format!("stored/{name}"), &bytes, &how)?;
    }
    Ok(())
}

/// Writes the section `.llvm_bb_addr_map` of one program, in each version that a compiler writes.
fn block_maps(writer: &mut Writer) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    for (release, option) in [
        (13, "-fbasic-block-sections=labels"),
        (15, "-fbasic-block-sections=labels"),
        (19, "-fbasic-block-address-map"),
        (22, "-fbasic-block-address-map"),
    ] {
        let llvm = Llvm::find(release).with_context(|| format!("LLVM {release}"))?;
        let options = format!(
            "-O2 {option} -nostdlib -static --ld-path=/usr/bin/ld.lld-22 -Wl,--image-base=0,-z,noseparate-code inlined.c"
        );
        let (program, section) = (
            scratch.path().join("program"),
            scratch.path().join("section"),
        );
        let mut compile = Command::new(llvm.clang());
        compile
            .args(options.split_whitespace())
            .arg("-o")
            .arg(&program)
            .current_dir(repo_root().join("tests/programs"));
        ensure!(compile.status()?.success(), "{compile:?}");
        let mut dump = Command::new("llvm-objcopy-22");
        let mut what = std::ffi::OsString::from("--dump-section=.llvm_bb_addr_map=");
        what.push(&section);
        dump.arg(what)
            .arg(&program)
            .arg(scratch.path().join("copy"));
        ensure!(dump.status()?.success(), "{dump:?}");
        writer.add(
            &format!("block_maps/clang-{release}.bbaddrmap"),
            &std::fs::read(&section)?,
            &format!("clang-{release} {options} -o OUT/program\nllvm-objcopy-22 --dump-section=.llvm_bb_addr_map=FILE OUT/program OUT/copy"),
        )?;
    }
    Ok(())
}

/// Writes a small program with debug info, once with DWARF 4 and once with DWARF 5. It is linked at address 0, so that
/// a test can look up all its addresses.
fn debug_info(writer: &mut Writer) -> Result<()> {
    let llvm = Llvm::find(22).context("LLVM 22")?;
    let scratch = tempfile::tempdir()?;
    for (version, more) in [("4", "-gz=zlib"), ("5", "-fdebug-info-for-profiling")] {
        let program = scratch.path().join("program");
        let options = format!(
            "-O2 -gdwarf-{version} {more} -ffile-prefix-map=$PWD=/src -nostdlib -static -fuse-ld=lld \
             -Wl,--image-base=0,-z,noseparate-code inlined.c"
        );
        let folder = repo_root().join("tests/programs");
        let mut compile = Command::new(llvm.clang());
        compile.args(
            options
                .replace("$PWD", &folder.to_string_lossy())
                .split_whitespace(),
        );
        compile.arg("-o").arg(&program).current_dir(&folder);
        ensure!(compile.status()?.success(), "{compile:?}");
        let name = format!("debug_info/clang-22-dwarf-{version}.elf");
        writer.add(
            &name,
            &std::fs::read(&program)?,
            &format!("clang-22 {options} -o OUT/program"),
        )?;
    }
    Ok(())
}

/// Writes a kernel module twice: with uncompressed and with compressed debug info.
fn modules(writer: &mut Writer) -> Result<()> {
    let llvm = Llvm::find(22).context("LLVM 22")?;
    let scratch = tempfile::tempdir()?;
    let file = |name: &str| scratch.path().join(name);
    let folder = repo_root().join("tests/programs");
    let options = "-O2 -g -mcmodel=kernel -fno-pic -ffreestanding -fno-asynchronous-unwind-tables \
                   -ffile-prefix-map=$PWD=/src -c module.c";
    let mut compile = Command::new(llvm.clang());
    compile.args(
        options
            .replace("$PWD", &folder.to_string_lossy())
            .split_whitespace(),
    );
    compile.arg("-o").arg(file("object")).current_dir(&folder);
    ensure!(compile.status()?.success(), "{compile:?}");
    let mut link = Command::new("ld.lld-22");
    link.args(["-r", "--build-id=sha1"]).arg(file("object"));
    link.arg("-o").arg(file("module"));
    ensure!(link.status()?.success(), "{link:?}");
    let mut compress = Command::new("llvm-objcopy-22");
    compress.arg("--compress-debug-sections=zlib");
    compress.arg(file("module")).arg(file("compressed"));
    ensure!(compress.status()?.success(), "{compress:?}");
    let made = format!(
        "clang-22 {options} -o OUT/object\nld.lld-22 -r --build-id=sha1 OUT/object -o OUT/module"
    );
    let bytes = std::fs::read(file("module"))?;
    writer.add("debug_info/module.ko", &bytes, &made)?;
    let made =
        format!("{made}\nllvm-objcopy-22 --compress-debug-sections=zlib OUT/module OUT/compressed");
    let bytes = std::fs::read(file("compressed"))?;
    writer.add("debug_info/module-zlib.ko", &bytes, &made)?;
    Ok(())
}

/// Writes GCC's sample profiles of a program, made by Debian's autofdo package. The counts are invented: each function
/// ran from its start to its end, the first 1000 times, the second 2000 times, and so on.
fn gcov(writer: &mut Writer) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let file = |name: &str| scratch.path().join(name);
    let compile = "gcc-12 -O2 -gdwarf-4 -no-pie -nostdlib -static inlined.c";
    let mut words = compile.split(' ');
    let mut gcc = Command::new(words.next().unwrap_or_default());
    gcc.args(words).arg("-o").arg(file("program"));
    gcc.current_dir(repo_root().join("tests/programs"));
    ensure!(gcc.status()?.success(), "{gcc:?}");
    let symbols = Command::new("nm")
        .arg("-S")
        .arg(file("program"))
        .output()?
        .stdout;
    let mut ranges = Vec::new();
    for line in String::from_utf8(symbols)?.lines() {
        if let [start, size, "t" | "T", _] = line.split(' ').collect::<Vec<_>>()[..] {
            let start = u64::from_str_radix(start, 16)?;
            ranges.push((start, start + u64::from_str_radix(size, 16)? - 1));
        }
    }
    // The addresses are distances from the address at which the program is loaded.
    let base = 0x40_0000;
    let mut samples = format!("{}\n", ranges.len());
    for (number, (start, end)) in (1u64..).zip(&ranges) {
        let _ = writeln!(
            samples,
            "{:x}-{:x}:{}",
            start - base,
            end - base,
            number * 1000
        );
    }
    samples.push_str("0\n0\n");
    std::fs::write(file("samples"), samples)?;
    for (name, version) in [("v1", "1"), ("v407", "875575082")] {
        let mut create = Command::new("create_gcov");
        create.arg(format!("-binary={}", file("program").display()));
        create.arg(format!("-profile={}", file("samples").display()));
        create.arg(format!("-gcov={}", file(name).display()));
        create.args(["-profiler=text", &format!("-gcov_version={version}")]);
        ensure!(create.output()?.status.success(), "{create:?}");
        let how = format!(
            "{compile} -o OUT/program\n    create_gcov -binary=OUT/program -profile=OUT/samples -profiler=text -gcov_version={version}"
        );
        writer.add(
            &format!("gcov/create_gcov-{name}.afdo"),
            &std::fs::read(file(name))?,
            &how,
        )?;
    }
    Ok(())
}

/// Writes GCC's sample profiles of two real runs of `tests/programs/station`, sampled by `perf` without branch stacks.
/// The samples differ each time.
fn gcov_of_perf(writer: &mut Writer) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let file = |name: &str| scratch.path().join(name).display().to_string();
    let compile = "clang++-22 -O2 -gdwarf-4 -fdebug-info-for-profiling -fno-pie -no-pie station/arithmetic.cpp \
                   station/main.cpp station/ordering.cpp station/run.cpp station/settings.cpp station/textual.cpp";
    let run = |command: &str| -> Result<()> {
        let command = command.replace("OUT/", &file(""));
        let mut words = command.split_whitespace();
        let mut tool = Command::new(words.next().unwrap_or_default());
        tool.args(words)
            .current_dir(repo_root().join("tests/programs"));
        ensure!(tool.output()?.status.success(), "{tool:?}");
        Ok(())
    };
    let compile = format!("{compile} -o OUT/program");
    run(&compile)?;
    for (name, arguments) in [("one", "run 300000 1"), ("two", "run 100000 2")] {
        // The program ends with exit code 0.
        let record =
            format!("perf record -q -e cpu-clock -F 2000 -o OUT/perf.data OUT/program {arguments}");
        let create = "create_gcov --binary=OUT/program --profile=OUT/perf.data --gcov=OUT/profile --use_lbr=false \
                      -gcov_version=875575082";
        run(&record)?;
        run(create)?;
        writer.add(
            &format!("gcov/perf-{name}-v407.afdo"),
            &std::fs::read(file("profile"))?,
            &format!("{compile}\n    {record}\n    {create}"),
        )?;
    }
    Ok(())
}

/// Writes recordings of a real run of `tests/programs/station`: as a file, and in the form that perf writes to a pipe,
/// compressed and with call chains. The samples differ each time.
fn recordings(writer: &mut Writer) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let out = scratch.path().display().to_string();
    let compile = "clang++-22 -O2 -fno-omit-frame-pointer station/arithmetic.cpp station/main.cpp station/ordering.cpp \
                   station/run.cpp station/settings.cpp station/textual.cpp -o OUT/program";
    let run = |command: &str| -> Result<()> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &command.replace("OUT/", &format!("{out}/"))])
            .current_dir(repo_root().join("tests/programs"));
        ensure!(shell.output()?.status.success(), "{shell:?}");
        Ok(())
    };
    run(compile)?;
    for (name, record) in [
        (
            "file",
            "perf record -q -e cpu-clock:u -F 997 -o OUT/recording OUT/program run 100000 1",
        ),
        (
            "pipe-zstd",
            "perf record -q -z -g -e cpu-clock:u,page-faults:u -F 997 -o - OUT/program run 100000 1 2>&1 >OUT/recording",
        ),
    ] {
        // The program writes to standard output too, but the pipe must contain only the recording.
        let record = record.replace(
            "OUT/program run",
            "sh -c 'exec OUT/program \"$@\" >OUT/output' sh run",
        );
        run(&record)?;
        writer.add(
            &format!("perf/{name}.data"),
            &std::fs::read(scratch.path().join("recording"))?,
            &format!("{compile}\n    {record}"),
        )?;
    }
    Ok(())
}

/// Writes linked files of every object format whose raw profiles contain only counters.
fn correlation(writer: &mut Writer) -> Result<()> {
    let folder = repo_root().join("tests/programs");
    let scratch = tempfile::tempdir()?;
    let elf = "ld.lld-22 -shared --build-id=sha1 OUT/object -o OUT/image";
    let pe = "lld-link-22 /Brepro /nodefaultlib /entry:start /subsystem:console /build-id /include:counters_begin \
              /include:counters_end OUT/object /out:OUT/image";
    let macho = "ld64.lld-22 -arch x86_64 -platform_version macos 13.0 13.0 -dylib -fixup_chains -install_name image OUT/object -o OUT/image";
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
        for command in [compile.as_str(), link] {
            let command = command
                .replace("OUT", &scratch.path().to_string_lossy())
                .replace("$PWD", &folder.to_string_lossy());
            let mut words = command.split_whitespace();
            let mut run = Command::new(words.next().context("a tool")?);
            run.args(words).current_dir(&folder);
            ensure!(run.status()?.success(), "{run:?}");
        }
        let image = std::fs::read(scratch.path().join("image"))?;
        writer.add(
            &format!("correlation/{name}.image"),
            &image,
            &format!("{compile}\n{link}"),
        )?;
    }
    writer.add(
        "correlation/binaries.index",
        b"profkit binaries 1\n5024 1700000000000000000 13 0a1b2c3d4e /builds/app\n17 1700000000000000001 - - /builds/notes\n",
        "written by hand",
    )?;
    Ok(())
}

/// Writes sample profiles in every encoding of every release, from texts that this repository has.
fn samples(writer: &mut Writer) -> Result<()> {
    let folder = repo_root().join("tests/programs/samples");
    for llvm in Llvm::installed() {
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

/// Writes assembly from compilers and assembly written by hand, for the fuzz target of the instrumenter.
fn assembly(writer: &mut Writer) -> Result<()> {
    let folder = repo_root().join("tests/programs");
    writer.add(
        "assembly/hand.s",
        &std::fs::read(folder.join("hand.s"))?,
        "written by hand: hand.s",
    )?;
    let scratch = tempfile::tempdir()?;
    let commands = [
        ("gcc-12-x86_64-elf", "gcc-12 -O2 -g1 -S inlined.c"),
        (
            "clang-22-x86_64-elf",
            "clang-22 --target=x86_64-linux-gnu -O1 -S inlined.c",
        ),
        (
            "clang-22-aarch64-elf",
            "clang-22 --target=aarch64-linux-gnu -O1 -S inlined.c",
        ),
        (
            "clang-22-armv7-elf",
            "clang-22 --target=armv7-linux-gnueabihf -O1 -S inlined.c",
        ),
        (
            "clang-22-x86_64-macho",
            "clang-22 --target=x86_64-apple-macos -O1 -S inlined.c",
        ),
        (
            "clang-22-arm64-macho",
            "clang-22 --target=arm64-apple-macos -O1 -S inlined.c",
        ),
    ];
    for (name, command) in commands {
        let output = scratch.path().join("out.s");
        let mut words = command.split_whitespace();
        let mut compile = Command::new(words.next().context("a compiler")?);
        compile
            .args(words)
            .arg("-o")
            .arg(&output)
            .current_dir(&folder);
        ensure!(compile.status()?.success(), "{compile:?}");
        writer.add(
            &format!("assembly/{name}.s"),
            &std::fs::read(&output)?,
            &format!("{command} -o OUT/out.s"),
        )?;
    }
    Ok(())
}

/// Writes indexed profiles with a MemProf section: one with only this section, and one that has counters too.
fn memprof(writer: &mut Writer) -> Result<()> {
    let llvm = Llvm::find(22).context("LLVM 22")?;
    let scratch = tempfile::tempdir()?;
    let program = scratch.path().join("program");
    let mut compile = Command::new(llvm.clang());
    compile.current_dir(repo_root().join("tests/programs"));
    compile.args([
        "-O1",
        "-fmemory-profile",
        "-gmlt",
        "-fdebug-info-for-profiling",
    ]);
    compile.args([
        "-fno-omit-frame-pointer",
        "-mno-omit-leaf-frame-pointer",
        "-no-pie",
    ]);
    compile
        .args(["-Wl,--build-id", "heap.c", "-o"])
        .arg(&program);
    ensure!(compile.status()?.success(), "{compile:?}");
    heap_dump(&mut Command::new(&program), scratch.path(), "raw")?;
    let raw = scratch.path().join("raw.memprofraw");
    // Both profiles are made from raw files, because LLVM 22 loses the MemProf data of an indexed input.
    let option = format!("--profiled-binary={}", program.display());
    let alone = merged(&llvm, &[&option], &raw)?;
    let compile = "clang-22 -O1 -fmemory-profile -gmlt … heap.c -o OUT/program";
    let merge = "llvm-profdata-22 merge --profiled-binary=OUT/program OUT/raw.memprofraw";
    writer.add(
        "indexed/clang-22-memprof-heap.profdata",
        &alone,
        &format!("{compile}\n{merge}"),
    )?;
    let counters = writer.fresh.path().join("raw/clang-22-ir-plain.profraw");
    let both = merged(&llvm, &[&option, &counters.to_string_lossy()], &raw)?;
    writer.add(
        "indexed/clang-22-memprof-ir-plain.profdata",
        &both,
        &format!("{compile}\n{merge} raw/clang-22-ir-plain.profraw"),
    )?;
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
    fresh: tempfile::TempDir,
    manifest: String,
    total: usize,
}

/// The folders below `tests/fixtures` that this task writes.
const FOLDERS: [&str; 13] = [
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
    "llvm-23",
];

impl Writer {
    fn new() -> Result<Writer> {
        let root = fixture_path("");
        std::fs::create_dir_all(&root)?;
        Ok(Writer {
            fresh: tempfile::tempdir_in(&root)?,
            manifest: "Written by `cargo xtask fixtures`: each file, its size, and the commands that made it, in tests/programs.\n\
                       OUT is a scratch folder. The program then ran as `setarch -R OUT/program 3 50`, at the same \
                       addresses each time\n(readme/clang-14 with `1 10`, clang-19 with `8 200`, clang-22 with `1 10`).\n"
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
