//! Tests the correlation of object formats and machines that do not run here. The binaries are made by real linkers;
//! the raw profiles are made by profkit's writer. Where llvm-profdata-22 can correlate a file, profkit must write the
//! same bytes.
use profkit_abi::variant;
use profkit_data::bytes::Endian;
use profkit_data::ids::FuncHash;
use profkit_data::instr::raw::{
    PointerWidth, RawDialect, RawForm, RawImage, RawImageRecord, RawProfile,
};
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_object::correlate::{CounterSection, machine};
use profkit_testkit::{Llvm, require_or_skip, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const APP: &str = "
int __llvm_profile_runtime;
int twice(int x) { return x < 0 ? 0 : x * 2; }
int start(void) { int s = 0; for (int i = 0; i < 9; i++) s += twice(i); return s; }
";
/// The variables that the run-time library puts before and after the counters of a Windows program.
const FRAME: &str = "
__attribute__((section(\".lprfc$A\"))) char counters_begin = 0;
__attribute__((section(\".lprfc$Z\"))) char counters_end = 0;
";

/// A folder with the source of the program, and with a source that stands for the run-time library (`FRAME`).
struct Place {
    folder: TempDir,
    llvm: Llvm,
}

impl Place {
    fn new(llvm: Llvm) -> Self {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("app.c"), APP).unwrap();
        fs::write(folder.path().join("frame.c"), FRAME).unwrap();
        Place { folder, llvm }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(args).env("XDG_CACHE_HOME", "/nonexistent");
        let output = command.current_dir(self.folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program:?} {args:?}: {said}");
        output
    }

    fn compile(&self, target: &str, kind: &str, more: &[&str]) {
        let (target, kind) = (
            format!("--target={target}"),
            format!("-profile-correlate={kind}"),
        );
        let args = [
            &target,
            "-g",
            "-O1",
            "-c",
            "-fprofile-generate",
            "-mllvm",
            &kind,
        ];
        let rest = ["-mllvm", "-disable-vp=true", "app.c", "-o", "app.o"];
        self.run(self.llvm.clang(), &[&args[..], more, &rest].concat());
    }

    /// Writes the raw profile that a run of this binary would have written. Its counters are 0, 1, 2 and so on.
    fn write_raw(&self, binary: &str, kind: &str) {
        let file = BinaryFile::open(&self.path(binary)).unwrap();
        let image = file.image(|_| true).unwrap();
        let (endian, width) = machine(&image);
        let counters = CounterSection::of(&image).unwrap();
        let len = counters.end - counters.start;
        let flags = match kind {
            "debug-info" => variant::IR | variant::DBG_CORRELATE,
            _ => variant::IR,
        };
        let mut writer = RawImage::new(dialect(endian, width, flags));
        writer.binary_ids.extend(build_id(&image).unwrap());
        assert_eq!(writer.binary_ids.len(), 1);
        writer.records = vec![RawImageRecord {
            name: b"any".to_vec(),
            func_hash: FuncHash(1),
            counts: (0..len.div_ceil(8)).collect(),
            ..RawImageRecord::default()
        }];
        writer.form = RawForm {
            correlate: true,
            ..RawForm::default()
        };
        let mut raw = writer.to_bytes().unwrap();
        if matches!(image, object::File::Pe64(_)) {
            // In a Windows program, the first byte of the counter section belongs to the run-time library and is not in
            // the raw profile. The counters are aligned to 8 bytes in memory, so 7 bytes of padding precede them in the
            // raw profile. The first 8 bytes are those of a counter with the value 0. To get the 7 bytes of padding,
            // the first byte is moved to the end.
            let section = RawProfile::parse(&raw).unwrap().sections().counters;
            let (start, len) = (
                usize::try_from(section.offset).unwrap(),
                section.bytes.len(),
            );
            raw[start..start + len].rotate_left(1);
        }
        fs::write(self.path("raw"), raw).unwrap();
    }

    fn llvm_merge(&self, option: &str) -> Vec<u8> {
        self.run(
            self.llvm.profdata(),
            &["merge", option, "raw", "-o", "theirs"],
        );
        fs::read(self.path("theirs")).unwrap()
    }

    fn merge(&self, binaries: &str) -> Vec<u8> {
        let args = [
            "merge",
            "--llvm",
            "22",
            "raw",
            "--binaries",
            binaries,
            "-o",
            "ours",
        ];
        self.run(Path::new(env!("CARGO_BIN_EXE_profkit")), &args);
        fs::read(self.path("ours")).unwrap()
    }

    /// Returns a profile as text, which does not contain its build ids.
    fn text(&self, profile: &str) -> String {
        let said = self.run(
            self.llvm.profdata(),
            &["merge", "--text", profile, "-o", "-"],
        );
        String::from_utf8(said.stdout).unwrap()
    }
}

fn dialect(endian: Endian, width: PointerWidth, flags: u64) -> RawDialect {
    RawDialect {
        endian,
        width,
        version: 10,
        flags,
    }
}

/// Returns the path of a tool of LLVM 22 that [`Llvm`] does not have.
fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new("/usr/lib/llvm-22/bin").join(name);
    if !path.exists() {
        skip(&format!("{name} of LLVM 22 is not installed"));
        return None;
    }
    Some(path)
}

#[test]
fn a_windows_program_is_correlated_like_llvm_does() {
    let place = Place::new(require_or_skip!(22));
    let Some(lld) = tool("lld-link") else { return };
    place.compile("x86_64-pc-windows-msvc", "binary", &[]);
    let frame = [
        "--target=x86_64-pc-windows-msvc",
        "-c",
        "frame.c",
        "-o",
        "frame.o",
    ];
    place.run(place.llvm.clang(), &frame);
    let link = [
        "/nodefaultlib",
        "/entry:start",
        "/subsystem:console",
        "/build-id",
    ];
    let keep = ["/include:counters_begin", "/include:counters_end"];
    place.run(
        &lld,
        &[&link[..], &keep, &["app.o", "frame.o", "/out:app.exe"]].concat(),
    );
    place.write_raw("app.exe", "binary");
    let theirs = place.llvm_merge("--binary-file=app.exe");
    let personality = [
        "llvm-profdata",
        "merge",
        "--binary-file=app.exe",
        "raw",
        "-o",
        "ours",
    ];
    place.run(Path::new(env!("CARGO_BIN_EXE_profkit")), &personality);
    assert_eq!(fs::read(place.path("ours")).unwrap(), theirs);
    assert_eq!(place.merge("."), theirs);
    // The profile has exactly the three counters of the program. The byte of the run-time library and the padding after
    // it are not taken for counters.
    let text = place.text("ours");
    assert!(text.contains("\n# Num Counters:\n2\n"), "{text}");
    assert!(
        text.ends_with("# Counter Values:\n1\n\n") || text.contains("\n2\n3\n"),
        "{text}"
    );
}

#[test]
fn both_byte_orders_and_widths_are_correlated_like_llvm_does() {
    let place = Place::new(require_or_skip!(22));
    let Some(lld) = tool("ld.lld") else { return };
    for (target, big, narrow) in [
        ("s390x-linux-gnu", true, false),
        ("powerpc-linux-gnu", true, true),
        ("i686-linux-gnu", false, true),
        ("aarch64-linux-gnu", false, false),
    ] {
        let mut of_debug_info = String::new();
        for (kind, option) in [
            ("debug-info", "--debug-info=app.so"),
            ("binary", "--binary-file=app.so"),
        ] {
            place.compile(target, kind, &["-fPIC"]);
            place.run(
                &lld,
                &["-shared", "--build-id=sha1", "app.o", "-o", "app.so"],
            );
            place.write_raw("app.so", kind);
            let raw = fs::read(place.path("raw")).unwrap();
            let dialect = RawProfile::parse(&raw).unwrap().dialect();
            assert_eq!(dialect.endian == Endian::Big, big, "{target}");
            assert_eq!(dialect.width == PointerWidth::Bits32, narrow, "{target}");
            let ours = place.merge("app.so");
            let said = place.text("ours");
            assert!(said.contains("twice\n"), "{target} {kind}: {said}");
            if big && kind == "binary" {
                // If the byte order of the program is not that of this machine, LLVM swaps the bytes of the records in
                // the binary twice and then rejects them. Our result from the binary is therefore compared with our
                // result from the debug info of the same program.
                assert_eq!(said, of_debug_info, "{target} {kind}");
                continue;
            }
            assert_eq!(ours, place.llvm_merge(option), "{target} {kind}");
            of_debug_info = said;
        }
    }
}

#[test]
fn macho_files_are_correlated_with_chained_and_other_fixups_and_bundles() {
    let place = Place::new(require_or_skip!(22));
    let (Some(lld), Some(dsymutil)) = (tool("ld64.lld"), tool("dsymutil")) else {
        return;
    };
    for arch in ["x86_64", "arm64"] {
        let target = format!("{arch}-apple-macos13");
        for fixups in ["-fixup_chains", "-no_fixup_chains"] {
            let link = |kind: &str| {
                place.compile(&target, kind, &[]);
                let platform = ["-arch", arch, "-platform_version", "macos", "13.0", "13.0"];
                let rest = ["-dylib", fixups, "app.o", "-o", "app.dylib"];
                place.run(&lld, &[&platform[..], &rest].concat());
                place.write_raw("app.dylib", kind);
            };
            // For Mach-O, LLVM correlates only by debug info, not by sections.
            link("debug-info");
            place.run(&dsymutil, &["app.dylib", "-o", "app.dylib.dSYM"]);
            let theirs = place.llvm_merge("--debug-info=app.dylib.dSYM");
            for binaries in ["app.dylib", "app.dylib.dSYM"] {
                assert_eq!(place.merge(binaries), theirs, "{arch} {fixups} {binaries}");
            }
            let expected = place.text("ours");
            assert!(
                expected.contains("_twice\n") || expected.contains("twice\n"),
                "{expected}"
            );
            fs::remove_dir_all(place.path("app.dylib.dSYM")).unwrap();
            link("binary");
            place.merge("app.dylib");
            assert_eq!(place.text("ours"), expected, "{arch} {fixups}");
        }
    }
}

/// The raw profile has no records and names. They are in sections of the binary that are loaded at run time.
#[test]
fn loaded_sections_of_an_unstripped_program_serve_too() {
    let place = Place::new(require_or_skip!(22));
    let source = APP
        .replace("int __llvm_profile_runtime;", "")
        .replace("start", "main");
    fs::write(place.path("main.c"), source).unwrap();
    for more in ["-m64", "-m32"] {
        let args = [
            "-O1",
            "-fprofile-generate",
            "-Wl,--build-id=sha1",
            "-mllvm",
            "-disable-vp=true",
        ];
        place.run(
            place.llvm.clang(),
            &[&args[..], &[more, "main.c", "-o", "app"]].concat(),
        );
        let mut run = Command::new(place.path("app"));
        // The exit code of the program is a computed value, so it is not checked.
        run.env("LLVM_PROFILE_FILE", place.path("whole"))
            .status()
            .unwrap();
        place.run(place.llvm.profdata(), &["merge", "whole", "-o", "theirs"]);
        let whole = fs::read(place.path("whole")).unwrap();
        let profile = RawProfile::parse(&whole).unwrap();
        let mut bare = whole[..profile.header().len].to_vec();
        // Clears these words of the header: the number of records, the padding before and after the counters, the size
        // of the names, and the deltas of counters and names.
        for word in [3, 4, 6, 9, 10, 12] {
            bare[word * 8..word * 8 + 8].fill(0);
        }
        bare.extend(profile.sections().binary_ids.bytes);
        bare.extend(profile.sections().counters.bytes);
        fs::write(place.path("raw"), bare).unwrap();
        assert_eq!(
            place.merge("app"),
            fs::read(place.path("theirs")).unwrap(),
            "{more}"
        );
    }
}
