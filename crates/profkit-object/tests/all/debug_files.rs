//! Finds the debug files of programs whose debug info was split off by real tools.
use object::Object;
use profkit_object::binary::BinaryFile;
use profkit_object::build_id::build_id;
use profkit_object::debug_files::{
    DebugFolders, DebugLink, crc_of, dsym_files, dwo_file, dwp_file,
};
use profkit_testkit::require_or_skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(folder: &Path, program: &str, args: &[&str]) {
    let status = Command::new(program)
        .args(args)
        .current_dir(folder)
        .status();
    assert!(status.unwrap().success(), "{program} {args:?}");
}

/// Compiles a program with debug info into `folder`.
fn compile(folder: &Path, clang: &Path, extra: &[&str]) -> PathBuf {
    fs::write(folder.join("app.c"), "int main(void) { return 0; }\n").unwrap();
    let mut args = vec!["-g", "-Wl,--build-id=sha1", "app.c", "-o", "app"];
    args.extend(extra);
    run(folder, clang.to_str().unwrap(), &args);
    folder.join("app")
}

fn link_of(path: &Path) -> DebugLink {
    let file = BinaryFile::open(path).unwrap();
    let image = file.image(|_| true).unwrap();
    DebugLink::of(&image).unwrap()
}

fn tool(name: &str, release: u32) -> String {
    format!("/usr/lib/llvm-{release}/bin/{name}")
}

#[test]
fn separate_debug_files_are_found_by_id_and_by_link_and_checked() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let app = compile(dir, llvm.clang(), &[]);
    let objcopy = tool("llvm-objcopy", 22);
    run(dir, &objcopy, &["--only-keep-debug", "app", "app.debug"]);
    run(
        dir,
        &objcopy,
        &[
            "--strip-all",
            "--add-gnu-debuglink=app.debug",
            "app",
            "stripped",
        ],
    );
    let stripped = dir.join("stripped");
    let link = link_of(&stripped);
    assert_eq!(link.build_id, link_of(&app).build_id);
    assert_eq!(
        link.link.as_ref().unwrap().1,
        crc_of(&dir.join("app.debug")).unwrap()
    );

    let nowhere = DebugFolders {
        folders: vec![dir.join("nowhere")],
    };
    let located = nowhere.locate(&stripped, &link);
    assert_eq!(located.path, Some(dir.join("app.debug")));
    assert!(located.rejected.is_empty());

    // A file with the right name, but of another program.
    let other = dir.join("moved");
    fs::create_dir_all(other.join(".debug")).unwrap();
    fs::copy(&stripped, other.join("stripped")).unwrap();
    fs::write(other.join("app.debug"), b"something else").unwrap();
    let located = nowhere.locate(&other.join("stripped"), &link);
    assert_eq!(located.path, None);
    assert!(
        located.rejected[0].reason.starts_with("found checksum 0x"),
        "{located:?}"
    );
    fs::copy(dir.join("app.debug"), other.join(".debug/app.debug")).unwrap();
    let located = nowhere.locate(&other.join("stripped"), &link);
    assert_eq!(located.path, Some(other.join(".debug/app.debug")));

    // The path that is made from the build id is searched first. If the file at this path has another build id, it is
    // rejected.
    let tree = DebugFolders {
        folders: vec![dir.join("tree")],
    };
    let id = link.build_id.clone().unwrap();
    let path = DebugFolders::build_id_path(&dir.join("tree"), &id, ".debug").unwrap();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(dir.join("app.debug"), &path).unwrap();
    assert_eq!(
        tree.locate(&other.join("stripped"), &link).path,
        Some(path.clone())
    );
    run(
        dir,
        llvm.clang().to_str().unwrap(),
        &["-O2", "-Wl,--build-id=sha1", "app.c", "-o", "else"],
    );
    fs::copy(dir.join("else"), &path).unwrap();
    let located = tree.locate(&other.join("stripped"), &link);
    assert_eq!(located.path, Some(other.join(".debug/app.debug")));
    let wrong = link_of(&dir.join("else")).build_id.unwrap();
    assert_eq!(
        located.rejected[0].reason,
        format!("found build id {wrong}, expected {id}")
    );
}

#[test]
fn ids_survive_the_loss_of_section_headers() {
    let llvm = require_or_skip!(22);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let app = compile(dir, llvm.clang(), &[]);
    run(
        dir,
        &tool("llvm-objcopy", 22),
        &["--strip-sections", "app", "bare"],
    );
    let file = BinaryFile::open(&dir.join("bare")).unwrap();
    let image = file.image(|_| true).unwrap();
    assert_eq!(image.sections().count(), 0);
    let id = build_id(&image).unwrap();
    assert!(id.is_some());
    assert_eq!(id, link_of(&app).build_id);
}

#[test]
fn bundles_and_split_files_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let dwarf = dir.join("app.dSYM/Contents/Resources/DWARF");
    fs::create_dir_all(&dwarf).unwrap();
    fs::write(dwarf.join("app"), b"").unwrap();
    assert_eq!(dsym_files(&dir.join("app")), [dwarf.join("app")]);
    assert_eq!(dsym_files(&dir.join("app.dSYM")), [dwarf.join("app")]);
    assert!(dsym_files(&dir.join("other")).is_empty());

    assert_eq!(dwp_file(&dir.join("app")), None);
    fs::write(dir.join("app.dwp"), b"").unwrap();
    assert_eq!(dwp_file(&dir.join("app")), Some(dir.join("app.dwp")));

    fs::create_dir(dir.join("obj")).unwrap();
    fs::write(dir.join("obj/a.dwo"), b"").unwrap();
    let here = dir.as_os_str().as_encoded_bytes();
    assert_eq!(
        dwo_file(Path::new("/x/app"), here, b"obj/a.dwo"),
        Some(dir.join("obj/a.dwo"))
    );
    // After the build folder is removed, the `.dwo` file is found beside the program.
    assert_eq!(
        dwo_file(&dir.join("obj/app"), b"/gone", b"obj/a.dwo"),
        Some(dir.join("obj/a.dwo"))
    );
    assert_eq!(dwo_file(&dir.join("app"), b"/gone", b"b.dwo"), None);
}

#[test]
fn what_is_no_binary_is_called_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    let message = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let file = BinaryFile::open(&path).unwrap();
        file.images()
            .map(|images| images.len())
            .unwrap_err()
            .to_string()
    };
    insta::assert_snapshot!(message(b"int main;"), @"the file is not an ELF, PE, COFF or Mach-O file");
    insta::assert_snapshot!(message(b""), @"the file is not an ELF, PE, COFF or Mach-O file");
    insta::assert_snapshot!(message(b"!<arch>\n/               0           0     0     0       4         `\n\0\0\0\0"), @"the file is an archive of object files");
    insta::assert_snapshot!(message(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\0\0\0\0"), @"object file: Invalid ELF header size or alignment");
    let mut fat = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1];
    for word in [0x0100_0007u32, 3, 0x1000, 64, 12] {
        fat.extend(word.to_be_bytes());
    }
    insta::assert_snapshot!(message(&fat), @"universal header, at offset 0x1000: the part for an architecture lies outside the file: found 64 bytes at 4096, expected within 28 bytes");
    let error = BinaryFile::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::IsADirectory);
}
