//! Tests the correlation of real programs. They are built by clang 16, 19 and 22, with the function records in the
//! binary or in debug info, as PIE and as shared library, with lld and GNU ld. The result must be the same, byte for
//! byte, as that of the llvm-profdata of the release.
use profkit_testkit::{Llvm, has_profile_runtime, or_skip, require_or_skip, skip, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const APP: &str = "
int twice(int x);
static int helper(int x) { return x > 2 ? x * 2 : x + 1; }
int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s += helper(i); return s; }
int main(int argc, char **argv) { (void)argv; return twice(sum(argc + 3)) > 1000; }
";
const LIBRARY: &str = "
int twice(int x) { if (x < 0) return 0; int r = 0; while (x--) r += 2; return r; }
int unused(int x) { return x * 3; }
";

/// Where metadata are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Binary,
    DebugInfo,
}

/// A program with its library, compiled in one of the ways under test, and the raw profiles that the program and the
/// library write in one run.
struct Built {
    folder: TempDir,
    llvm: Llvm,
    kind: Kind,
}

impl Built {
    fn new(llvm: &Llvm, kind: Kind, linker: &str, more: &[&str]) -> Option<Self> {
        let release = llvm.release();
        let option = match (kind, release) {
            // Binary correlation came with LLVM 18.
            (Kind::Binary, ..=17) => return None,
            (Kind::DebugInfo, ..=17) => "-debug-info-correlate",
            (Kind::Binary, _) => "-profile-correlate=binary",
            (Kind::DebugInfo, _) => "-profile-correlate=debug-info",
        };
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("app.c"), APP).unwrap();
        fs::write(folder.path().join("library.c"), LIBRARY).unwrap();
        let clang = |args: &[&str]| {
            let mut command = Command::new(llvm.clang());
            command.args(["-O1", "-g", "-fprofile-generate", "-mllvm", option]);
            command.args(["-mllvm", "-disable-vp=true", "-Wl,--build-id=sha1"]);
            command.args([linker]).args(more).args(args);
            succeed(command.current_dir(folder.path()));
        };
        clang(&["-shared", "-fPIC", "library.c", "-o", "liblibrary.so"]);
        clang(&[
            "-fPIE",
            "-pie",
            "app.c",
            "-L.",
            "-llibrary",
            "-Wl,-rpath,$ORIGIN",
            "-o",
            "app",
        ]);
        let mut run = Command::new(folder.path().join("app"));
        run.env("LLVM_PROFILE_FILE", folder.path().join("%m.profraw"));
        succeed(&mut run);
        Some(Built {
            folder,
            llvm: llvm.clone(),
            kind,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The raw profiles, each with the binary that wrote it.
    fn raws(&self) -> Vec<(PathBuf, PathBuf)> {
        let mut raws: Vec<_> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|name| name == "profraw"))
            .collect();
        raws.sort();
        let with_binary = |raw: PathBuf| {
            let bytes = fs::read(&raw).unwrap();
            let profile = profkit_data::instr::raw::RawProfile::parse(&bytes).unwrap();
            let ids = profile.binary_ids().unwrap();
            let binary = ["app", "liblibrary.so"]
                .into_iter()
                .map(|name| self.path(name))
                .find(|path| ids.contains(&id_of(path)));
            (raw, binary.expect("the binary of a raw profile"))
        };
        raws.into_iter().map(with_binary).collect()
    }

    fn option(&self, binary: &Path) -> String {
        let option = match self.kind {
            Kind::Binary => "binary-file",
            Kind::DebugInfo => "debug-info",
        };
        format!("--{option}={}", binary.display())
    }

    fn llvm_merge(&self, args: &[&str]) -> (Vec<u8>, Output) {
        self.merge(Command::new(self.llvm.profdata()).arg("merge").args(args))
    }

    fn merge(&self, command: &mut Command) -> (Vec<u8>, Output) {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let output = command.arg("-o").arg(&out).current_dir(self.folder.path());
        let output = output.output().unwrap();
        (fs::read(&out).unwrap_or_default(), output)
    }

    fn profkit(&self, args: &[&str]) -> (Vec<u8>, Output) {
        let release = self.llvm.release().to_string();
        self.merge(profkit(&["merge", "--llvm", &release]).args(args))
    }
}

fn profkit(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
    command.args(args).env("XDG_CACHE_HOME", "/nonexistent");
    command
}

fn id_of(path: &Path) -> profkit_data::ids::BuildId {
    let file = profkit_object::binary::BinaryFile::open(path).unwrap();
    let image = file.image(|_| true).unwrap();
    profkit_object::build_id::build_id(&image).unwrap().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn linkers() -> Vec<&'static str> {
    match Path::new("/usr/bin/ld.lld-22").exists() {
        true => vec!["-fuse-ld=bfd", "-fuse-ld=/usr/bin/ld.lld-22"],
        false => {
            skip("lld-22 is not installed");
            vec!["-fuse-ld=bfd"]
        }
    }
}

/// Makes all comparisons with LLVM's tool for one build.
fn compare(built: &Built) {
    let raws = built.raws();
    assert_eq!(raws.len(), 2, "the program and its library");
    let folder = built.folder.path();
    let mut singles = Vec::new();
    for (index, (raw, binary)) in raws.iter().enumerate() {
        let context = format!(
            "{} {:?} {}",
            built.llvm.release(),
            built.kind,
            binary.display()
        );
        let option = built.option(binary);
        let (theirs, said) = built.llvm_merge(&[&option, text(raw)]);
        assert!(
            said.status.success() && theirs.len() > 500,
            "{context}: {said:?}"
        );
        // `--binaries` names either the right binary or the folder that holds the program and the library.
        for binaries in [binary.as_path(), folder] {
            let (ours, said) = built.profkit(&[text(raw), "--binaries", text(binaries)]);
            assert!(said.status.success(), "{context}: {said:?}");
            assert_eq!(ours, theirs, "{context}, --binaries {}", binaries.display());
        }
        if built.llvm.release() == 22 {
            let (ours, ours_said) =
                built.merge(profkit(&["llvm-profdata", "merge"]).args([&option, text(raw)]));
            assert_eq!(ours, theirs, "{context}, personality");
            assert_eq!(
                ours_said.stderr,
                said_by(built, &option, raw).stderr,
                "{context}"
            );
        }
        let single = folder.join(format!("single-{index}.profdata"));
        fs::write(&single, theirs).unwrap();
        singles.push(single);
    }
    let singles: Vec<_> = singles.iter().map(|path| text(path)).collect();
    let (both, said) = built.llvm_merge(&singles);
    assert!(said.status.success(), "{said:?}");
    let inputs: Vec<_> = raws.iter().map(|(raw, _)| text(raw)).collect();
    let args = [&inputs[..], &["--binaries", text(folder)]].concat();
    let (ours, said) = built.profkit(&args);
    assert_eq!(ours, both, "both at once: {said:?}");
}

fn said_by(built: &Built, option: &str, raw: &Path) -> Output {
    built.llvm_merge(&[option, text(raw)]).1
}

#[test]
fn every_release_kind_and_linker_gives_llvms_bytes() {
    for release in [16, 19, 22] {
        let llvm = require_or_skip!(release, continue);
        or_skip!(has_profile_runtime(&llvm), continue);
        for linker in linkers() {
            for kind in [Kind::Binary, Kind::DebugInfo] {
                if let Some(built) = Built::new(&llvm, kind, linker, &[]) {
                    compare(&built);
                }
            }
        }
    }
}

#[test]
fn dwarf_4_compressed_and_split_debug_info_are_read() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    let lld = *linkers().last().unwrap();
    for (linker, more) in [
        ("-fuse-ld=bfd", "-gdwarf-4"),
        ("-fuse-ld=bfd", "-gz=zlib"),
        (lld, "-gz=zstd"),
    ] {
        let built = Built::new(&llvm, Kind::DebugInfo, linker, &[more]);
        compare(&built.unwrap());
    }
    // LLVM's tool does not read split debug info. Therefore the result is compared with that of the same program
    // without split debug info.
    for dwarf in ["-gdwarf-4", "-gdwarf-5"] {
        let linker = "-fuse-ld=bfd";
        let whole = Built::new(&llvm, Kind::DebugInfo, linker, &[dwarf]).unwrap();
        let split = Built::new(&llvm, Kind::DebugInfo, linker, &[dwarf, "-gsplit-dwarf"]).unwrap();
        let functions = |built: &Built| {
            let raws = built.raws();
            let folder = text(built.folder.path());
            let (bytes, said) =
                built.profkit(&[text(&raws[0].0), text(&raws[1].0), "--binaries", folder]);
            assert!(said.status.success(), "{said:?}");
            let file = built.path("shown.profdata");
            fs::write(&file, bytes).unwrap();
            let mut show = Command::new(llvm.profdata());
            show.args(["show", "--all-functions", "--counts"])
                .arg(&file);
            succeed(&mut show).stdout
        };
        let expected = functions(&whole);
        assert_eq!(functions(&split), expected, "{dwarf} in .dwo files");
        // The split debug info is packed into a .dwp file for each binary, and the .dwo files are removed.
        for name in ["app", "liblibrary.so"] {
            let mut dwp = Command::new("/usr/lib/llvm-22/bin/llvm-dwp");
            succeed(
                dwp.args(["-e", name, "-o", &format!("{name}.dwp")])
                    .current_dir(split.folder.path()),
            );
        }
        for entry in fs::read_dir(split.folder.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|name| name == "dwo") {
                fs::remove_file(path).unwrap();
            }
        }
        assert_eq!(functions(&split), expected, "{dwarf} in .dwp files");
        for name in ["app.dwp", "liblibrary.so.dwp"] {
            fs::remove_file(split.path(name)).unwrap();
        }
        let (_, said) = split.profkit(&[
            text(&split.raws()[0].0),
            "--binaries",
            text(split.folder.path()),
        ]);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("1 missing split debug files"), "{said}");
    }
}

/// Correlates with a stripped program and its debug file, in all the places where debug files are, and returns what is
/// said when there is none.
fn correlate_stripped(llvm: &Llvm, kind: Kind) -> String {
    let objcopy = "/usr/lib/llvm-22/bin/llvm-objcopy";
    let built = Built::new(llvm, kind, "-fuse-ld=bfd", &[]).unwrap();
    let (raw, binary) = built.raws().remove(0);
    let (theirs, _) = built.llvm_merge(&[&built.option(&binary), text(&raw)]);
    let store = built.path("store");
    let id = id_of(&binary).to_string();
    let tree = store.join("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&tree).unwrap();
    let debug = tree.join(format!("{}.debug", &id[2..]));
    let stripped = store.join("stripped");
    succeed(
        Command::new(objcopy)
            .arg("--only-keep-debug")
            .arg(&binary)
            .arg(&debug),
    );
    succeed(
        Command::new(objcopy)
            .arg("--strip-all")
            .arg(&binary)
            .arg(&stripped),
    );
    let folders = |folder: &Path| {
        let folder = text(folder).to_owned();
        built.profkit(&[
            text(&raw),
            "--binaries",
            text(&stripped),
            "--debug-file-directory",
            &folder,
        ])
    };
    let (ours, said) = folders(&store.join("debug"));
    assert_eq!(ours, theirs, "{said:?}");
    // `--binaries` names only the tree of debug files, without the program.
    let (ours, said) = built.profkit(&[text(&raw), "--binaries", text(&store.join("debug"))]);
    assert_eq!(ours, theirs, "{said:?}");
    let (_, said) = folders(&store.join("nothing"));
    let message = String::from_utf8_lossy(&said.stderr).replace(text(built.folder.path()), "[TMP]");
    let message = message
        .replace(text(raw.file_name().unwrap().as_ref()), "RAW")
        .replace(&id, "ID");
    // A link to the debug file, which stands beside the program.
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    succeed(Command::new(objcopy).arg(link).arg(&stripped));
    fs::rename(&debug, store.join(debug.file_name().unwrap())).unwrap();
    let (ours, said) = folders(&store.join("nothing"));
    assert_eq!(ours, theirs, "{said:?}");
    message
}

#[test]
fn stripped_programs_are_found_through_their_debug_files_or_refused() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    insta::assert_snapshot!(correlate_stripped(&llvm, Kind::Binary), @"
    ID: [TMP]/RAW
        no binary: [TMP]/store/stripped: the binary has no section __llvm_covdata
        hint: the binary was stripped, or built without -mllvm -profile-correlate=…: give the file that the linker wrote, before strip, or its debug file
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: [TMP]/RAW: dropped: the binary has no section __llvm_covdata ([TMP]/store/stripped)
    hint: the binary was stripped, or built without -mllvm -profile-correlate=…: give the file that the linker wrote, before strip, or its debug file
    error: the only input could not be used
    ");
    insta::assert_snapshot!(correlate_stripped(&llvm, Kind::DebugInfo), @"
    ID: [TMP]/RAW
        no binary: [TMP]/store/stripped: the binary has no debug info
        hint: the binary was stripped, or built without -g: give its debug file with --binaries, or the folder of debug files with --debug-file-directory
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: [TMP]/RAW: dropped: the binary has no debug info ([TMP]/store/stripped)
    hint: the binary was stripped, or built without -g: give its debug file with --binaries, or the folder of debug files with --debug-file-directory
    error: the only input could not be used
    ");
}

/// Builds, with a release's clang, a program whose profile has functions and counters of front-end instrumentation, and
/// runs it. Returns its raw profile.
fn front_end(llvm: &Llvm, folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = folder.join(name);
    let raw = folder.join(format!("{name}.profraw"));
    let mut clang = Command::new(llvm.clang());
    clang.args(["-g", "-O1", "-fprofile-instr-generate", "-Wl,--build-id"]);
    clang.args(options).arg("-o").arg(&program);
    succeed(clang.arg(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/programs/conditions.c"
    )));
    succeed(Command::new(&program).env("LLVM_PROFILE_FILE", &raw));
    raw
}

#[test]
fn front_end_instrumentation_finds_its_functions_in_debug_info() {
    for release in [19, 22] {
        let llvm = require_or_skip!(release);
        or_skip!(has_profile_runtime(&llvm));
        let folder = TempDir::new().unwrap();
        let options = ["-mllvm", "-profile-correlate=debug-info"];
        let raw = front_end(&llvm, folder.path(), "program", &options);
        let program = folder.path().join("program");
        let bytes = fs::read(&raw).unwrap();
        let profile = profkit_data::instr::raw::RawProfile::parse(&bytes).unwrap();
        assert!(profile.needs_correlation());
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        let mut merge = Command::new(llvm.profdata());
        merge
            .arg("merge")
            .arg(format!("--debug-info={}", text(&program)));
        succeed(merge.arg(&raw).arg("-o").arg(&theirs));
        let release = release.to_string();
        let mut correlate = profkit(&["merge", "--llvm", &release, text(&raw)]);
        correlate.arg("--binaries").arg(&program);
        let output = correlate.arg("-o").arg(&ours).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            fs::read(&ours).unwrap(),
            fs::read(&theirs).unwrap(),
            "{said}"
        );
        assert!(said.contains("program (4 functions, debug-info)"), "{said}");
    }
}

#[test]
fn mc_dc_bitmaps_are_kept_under_binary_correlation() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    let folder = TempDir::new().unwrap();
    let coverage = ["-fcoverage-mapping", "-fcoverage-mcdc"];
    let plain = front_end(&llvm, folder.path(), "plain", &coverage);
    let correlate = [&coverage[..], &["-mllvm", "-profile-correlate=binary"]].concat();
    let bare = front_end(&llvm, folder.path(), "bare", &correlate);
    let merged = |raw: &Path| {
        let mut merge = profkit(&["merge", "--text", "-q", text(raw), "-o", "-", "--binaries"]);
        let output = merge.arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(merged(&plain).contains("# Bitmap Byte Values:"));
    assert_eq!(merged(&bare), merged(&plain));
    // LLVM's tool drops them, and so does its personality.
    let theirs = folder.path().join("theirs");
    let ours = folder.path().join("ours");
    let option = format!("--binary-file={}", text(&folder.path().join("bare")));
    let mut llvm_merge = Command::new(llvm.profdata());
    succeed(
        llvm_merge
            .args(["merge", &option])
            .arg(&bare)
            .arg("-o")
            .arg(&theirs),
    );
    succeed(
        profkit(&["llvm-profdata", "merge", &option])
            .arg(&bare)
            .arg("-o")
            .arg(&ours),
    );
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
}

#[test]
fn wrong_missing_and_contradicting_binaries_are_told() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    let built = Built::new(
        &llvm,
        Kind::Binary,
        "-fuse-ld=bfd",
        &["-Wl,--build-id=0x1234"],
    )
    .unwrap();
    let folder = built.folder.path();
    // Finds the raw profile of the program, which has 6 counters. The other raw profile is that of the library.
    let bytes = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|name| name == "profraw"))
        .map(|path| fs::read(path).unwrap())
        .find(|bytes| {
            let profile = profkit_data::instr::raw::RawProfile::parse(bytes).unwrap();
            profile.header().num_counters == 6
        })
        .unwrap();
    fs::write(folder.join("raw"), &bytes).unwrap();
    let said = |args: &[&str]| {
        let mut command = profkit(&["correlate", "raw", "-o", "out.profdata"]);
        let output = command.args(args).current_dir(folder).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let mut all = String::new();
    let mut told = |what: &str, args: &[&str]| {
        all.push_str(&format!("-- {what}\n{}", said(args)));
    };
    fs::write(folder.join("twin.c"), APP.replace("sum(", "total(")).unwrap();
    succeed(
        Command::new(llvm.clang())
            .args([
                "-O1",
                "-fprofile-generate",
                "-mllvm",
                "-profile-correlate=binary",
            ])
            .args(["-mllvm", "-disable-vp=true", "-L.", "-llibrary"])
            .args(["-Wl,--build-id=0x1234", "twin.c", "-o", "twin"])
            .current_dir(folder),
    );
    told(
        "two programs under one id",
        &["--binaries", "app", "--binaries", "twin"],
    );
    let objcopy = "/usr/lib/llvm-22/bin/llvm-objcopy";
    succeed(
        Command::new(objcopy)
            .args(["--strip-all", "app", "stripped"])
            .current_dir(folder),
    );
    told("stripped", &["--binaries", "stripped"]);
    fs::write(folder.join("other.c"), "int main(void) { return 0; }").unwrap();
    succeed(
        Command::new(llvm.clang())
            .args([
                "-fprofile-generate",
                "-Wl,--build-id=0xabcd",
                "other.c",
                "-o",
                "other",
            ])
            .current_dir(folder),
    );
    told("another id", &["--binaries", "other"]);
    fs::copy(folder.join("other"), folder.join("renamed")).unwrap();
    // A binary with the build id of the program, but with different counters.
    succeed(
        Command::new(llvm.clang())
            .args(["-fprofile-generate", "-mllvm", "-profile-correlate=binary"])
            .args(["-Wl,--build-id=0x1234", "other.c", "-o", "wrong"])
            .current_dir(folder),
    );
    told("another build under the same id", &["--binaries", "wrong"]);
    // A profile without build id: its section of ids is empty.
    let mut bare = bytes[..128].to_vec();
    bare[16..24].fill(0);
    bare.extend(&bytes[128 + 16..]);
    fs::write(folder.join("raw"), &bare).unwrap();
    told(
        "no id, two binaries",
        &["--binaries", "app", "--binaries", "liblibrary.so"],
    );
    let mut cut = bytes.clone();
    cut.truncate(bytes.len() - 12);
    fs::write(folder.join("raw"), &cut).unwrap();
    told("cut profile", &["--binaries", "app"]);
    insta::assert_snapshot!(all, @"
    -- two programs under one id
    1234: raw
        no binary: 1234: two binaries state the same build id, but describe different functions: found app and twin
        hint: leave out the binary that did not write the profile; ids that are set by hand (--build-id=0x…) must differ
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: dropped: two binaries state the same build id, but describe different functions (1234): found app and twin
    hint: leave out the binary that did not write the profile; ids that are set by hand (--build-id=0x…) must differ
    error: the only input could not be used
    -- stripped
    1234: raw
        no binary: stripped: the binary has no section __llvm_covdata
        hint: the binary was stripped, or built without -mllvm -profile-correlate=…: give the file that the linker wrote, before strip, or its debug file
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: dropped: the binary has no section __llvm_covdata (stripped)
    hint: the binary was stripped, or built without -mllvm -profile-correlate=…: give the file that the linker wrote, before strip, or its debug file
    error: the only input could not be used
    -- another id
    1234: raw
        no binary: none of the binaries has the profile's build id: found abcd in other, expected 1234
        hint: give the binary that wrote the profile, or a folder that contains it; a rebuilt binary has another build id
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: dropped: none of the binaries has the profile's build id: found abcd in other, expected 1234
    hint: give the binary that wrote the profile, or a folder that contains it; a rebuilt binary has another build id
    error: the only input could not be used
    -- another build under the same id
    1234: raw
        no binary: wrong: the counter section of the binary does not have the size of the profile's counters: found 8 bytes of counters, expected 48 bytes
        hint: the binary is of another build, even if its build id is right: give the binary that ran
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: dropped: the counter section of the binary does not have the size of the profile's counters (wrong): found 8 bytes of counters, expected 48 bytes
    hint: the binary is of another build, even if its build id is right: give the binary that ran
    error: the only input could not be used
    -- no id, two binaries
    no build id: raw
        no binary: the profile states no build id, so it is not known which binary wrote it: found 2 binaries: app, liblibrary.so
        hint: merge it alone, with --binaries and the binary that wrote it; profiles of programs that are linked with --build-id do not need this
    binaries found for 0 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: dropped: the profile states no build id, so it is not known which binary wrote it: found 2 binaries: app, liblibrary.so
    hint: merge it alone, with --binaries and the binary that wrote it; profiles of programs that are linked with --build-id do not need this
    error: the only input could not be used
    -- cut profile
    1234: raw
        app (2 functions, binary)
    binaries found for 1 of 1 programs; 1 inputs need a binary, 0 do not
    warning: raw: repaired: the file ends within a section (counters, at offset 0x90): found 36 bytes left, expected 48 bytes
    warning: raw: repaired: the counters of 1 function are cut off (at offset 0x90)
    hint: the file is cut off or damaged: copy it again, or run the program again and let it end normally
    hint: the program was stopped while it wrote, or the disk was full: run it again

    wrote out.profdata (664 bytes, indexed version 13): 1 function from 1 file (180 bytes)

    Files
      kept      0
      repaired  1  100.0%

    Functions
      written              1
      dropped from inputs  1
    ");
    fs::write(folder.join("raw"), &bare).unwrap();
    let one = said(&["--binaries", "app"]);
    assert!(one.contains("binaries found for 1 of 1 programs"), "{one}");
}

/// The build ids depend on the path of the test's folder. Everything else in the report is the same in every run.
#[test]
fn match_counts_what_a_changed_program_loses() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    let built = Built::new(&llvm, Kind::Binary, "-fuse-ld=bfd", &[]).unwrap();
    let folder = built.folder.path();
    let raws = built.raws();
    let (bytes, said) = built.profkit(&[text(&raws[0].0), text(&raws[1].0), "--binaries", "."]);
    assert!(said.status.success(), "{said:?}");
    fs::write(folder.join("old.profdata"), bytes).unwrap();
    // In the new program, `helper` is gone and `sum` has changed. `main` and the library are as before.
    let source = APP
        .replace("s += helper(i)", "if (i & 1) s += twice(i);")
        .replace(
            "static int helper(int x) { return x > 2 ? x * 2 : x + 1; }",
            "int added(int x) { return x; }",
        );
    fs::write(folder.join("new.c"), source).unwrap();
    let clang = |args: &[&str]| {
        let mut command = Command::new(llvm.clang());
        command.args(["-O1", "-L.", "-llibrary"]).args(args);
        succeed(command.current_dir(folder));
    };
    clang(&["-fprofile-generate", "new.c", "-o", "new"]);
    clang(&["app.c", "-o", "plain"]);
    let matched = |args: &[&str]| {
        let mut command = profkit(&["match", "old.profdata"]);
        let output = command.args(args).current_dir(folder).output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code(), text)
    };
    let (code, same) = matched(&["app", "liblibrary.so", "--fail-under", "100"]);
    assert_eq!(code, Some(0), "{same}");
    let (code, lost) = matched(&["new", "liblibrary.so", "--fail-under", "99"]);
    assert_eq!(code, Some(3), "{lost}");
    for line in [
        "gate: 68.4%",
        "Hot functions lost",
        "31.6%  ######  changed  main (same name, other hash)",
    ] {
        assert!(lost.contains(line), "{line}: {lost}");
    }
    let (code, symbols) = matched(&["plain"]);
    assert_eq!(code, Some(0));
    assert!(symbols.contains("symbols only"), "{symbols}");
    let (_, json) = matched(&["new", "liblibrary.so", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "profkit-match");
    assert_eq!(json["schema_version"], 5);
    assert_eq!(json["hot_lost"][0]["outcome"], "changed");
    assert!(json["functions"]["changed"].as_u64() >= Some(1), "{json}");
    // The merged profile has the build ids of both raw profiles.
    assert_eq!(json["build_ids"].as_array().map(Vec::len), Some(2));
    let builds = |index: usize| &json["binaries"][index]["same_build"];
    assert_eq!((builds(0), builds(1)), (&false.into(), &true.into()));
    assert!(lost.contains("the profile is of another build"), "{lost}");
}

#[test]
fn programs_of_32_bits_are_correlated_like_llvm_does() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    for kind in [Kind::Binary, Kind::DebugInfo] {
        compare(&Built::new(&llvm, kind, "-fuse-ld=bfd", &["-m32"]).unwrap());
    }
}

#[test]
fn show_takes_functions_from_binaries() {
    let llvm = require_or_skip!(22);
    or_skip!(has_profile_runtime(&llvm));
    let built = Built::new(&llvm, Kind::Binary, "-fuse-ld=bfd", &[]).unwrap();
    let folder = built.folder.path();
    let show = |args: &[&str]| {
        let mut command = profkit(&["show", "--functions", "--counts", "--format", "json"]);
        let output = command.args(args).current_dir(folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), json["functions"].clone(), said)
    };
    for (raw, binary) in built.raws() {
        let (merged, _) = built.profkit(&[text(&raw), "--binaries", "."]);
        fs::write(folder.join("merged.profdata"), merged).unwrap();
        let by_name = |functions: serde_json::Value| {
            let mut functions = functions.as_array().unwrap().clone();
            functions.sort_by_key(|function| function["function"].to_string());
            functions
        };
        let (_, expected, _) = show(&["merged.profdata"]);
        for binaries in [text(&binary), "."] {
            let (code, functions, said) = show(&[text(&raw), "--binaries", binaries]);
            assert_eq!((code, said.as_str()), (Some(0), ""));
            assert_eq!(by_name(functions), by_name(expected.clone()));
        }
        let (code, _, said) = show(&[text(&raw), "--binaries", "app.c"]);
        assert_eq!(code, Some(1));
        assert!(said.contains("app.c: the file is not an ELF"), "{said}");
    }
    fs::create_dir(folder.join("empty")).unwrap();
    let (code, _, said) = show(&[text(&built.raws()[0].0), "--binaries", "empty"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("none of the binaries has the profile's build id"),
        "{said}"
    );
}
