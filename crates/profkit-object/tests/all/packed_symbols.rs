//! Symbols in the section `.gnu_debugdata`, made as distributions make it: the program is stripped, and the symbols of
//! functions that are not dynamic are packed with xz.
use object::{Object as _, ObjectSection as _};
use profkit_data::ErrorKind;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::{DebugInfo, Options, ProgramFiles};
use profkit_testkit::{links_c, or_skip, skip, succeed};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SOURCE: &str = "#include <stdio.h>\n\
    static __attribute__((noinline)) int local(int n) { return n * n + 3; }\n\
    __attribute__((noinline)) int shared(int n) { return local(n) ^ n; }\n\
    __attribute__((noinline, visibility(\"hidden\"))) int hidden(int n) { return shared(n) + 1; }\n\
    int main(int argc, char **argv) { (void)argv; printf(\"%d\\n\", hidden(argc)); return 0; }\n";

fn none() -> DebugFolders {
    DebugFolders {
        folders: Vec::new(),
    }
}

/// The names of the functions that `nm` finds.
fn functions(arguments: &[&str], folder: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["--defined-only", "--format=posix"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("nm");
    let text = String::from_utf8(output.stdout).expect("names");
    let mut lines = text.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (name, kind) = (fields.next()?, fields.next()?);
        matches!(kind, "T" | "t" | "W").then(|| name.to_owned())
    });
    lines.by_ref().collect()
}

/// The name of the function at each address of the section `.text`.
fn names(program: &Path) -> Vec<String> {
    let bytes = std::fs::read(program).expect("the program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let text = file.section_by_name(".text").expect("code");
    let addresses: Vec<u64> = (text.address()..text.address() + text.size()).collect();
    let files = ProgramFiles::open(program, &none()).expect("files");
    let symbolizer = files.symbolizer(&Options::default()).expect("symbols");
    assert_eq!(symbolizer.debug_info(), DebugInfo::SymbolsOnly);
    let locations = symbolizer.symbolize(&addresses);
    let name = |index| {
        let frame = locations.stack(index).last();
        frame.map_or(String::new(), |frame| frame.function_text().into_owned())
    };
    (0..addresses.len()).map(name).collect()
}

#[test]
fn packed_symbols_are_those_of_the_unstripped_program() {
    for tool in ["objcopy", "strip", "nm", "xz"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return skip(&format!("{tool} is not installed"));
        }
    }
    or_skip!(links_c(Path::new("cc"), &[]));
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let run = |command: &str| {
        let mut words = command.split(' ');
        let mut tool = Command::new(words.next().expect("a tool"));
        succeed(tool.args(words).current_dir(folder.path()));
    };
    std::fs::write(path("program.c"), SOURCE).expect("the source");
    run("cc -O1 -rdynamic -Wl,--build-id program.c -o whole");
    let dynamic = functions(&["-D", "whole"], folder.path());
    let all = functions(&["whole"], folder.path());
    let kept: Vec<String> = all.difference(&dynamic).cloned().collect();
    assert!(kept.iter().any(|name| name == "local") && dynamic.contains("shared"));
    std::fs::write(path("kept"), kept.join("\n")).expect("the list");
    run("objcopy --only-keep-debug whole debug");
    run("objcopy -S --remove-section=.comment --keep-symbols=kept debug mini");
    run("strip --strip-all -o stripped whole");
    run("xz -k mini");
    run("objcopy --add-section=.gnu_debugdata=mini.xz stripped packed");
    let expected = names(&path("whole"));
    assert!(expected.iter().any(|name| name == "local"));
    assert_eq!(names(&path("packed")), expected);
    assert_ne!(names(&path("stripped")), expected);
    let files = ProgramFiles::open(&path("packed"), &none()).expect("files");
    assert!(files.has_packed_symbols() && files.debug_file().is_none());
    let plain = files.without_packed_symbols();
    assert!(plain.debug_image().expect("no file").is_none());
    // The program as it was before strip is not asked for packed symbols, and damage leaves the dynamic symbols.
    let mut packed = std::fs::read(path("mini.xz")).expect("packed");
    let middle = packed.len() / 2;
    packed[middle] ^= 0x55;
    std::fs::write(path("mini.xz"), &packed).expect("written");
    run("objcopy --add-section=.gnu_debugdata=mini.xz whole unneeded");
    run("objcopy --add-section=.gnu_debugdata=mini.xz stripped damaged");
    assert_eq!(names(&path("unneeded")), expected);
    assert_eq!(names(&path("damaged")), names(&path("stripped")));
    let files = ProgramFiles::open(&path("damaged"), &none()).expect("files");
    let problem = files.packed_problem().expect("a problem");
    assert_eq!(problem.kind(), ErrorKind::Malformed);
    assert!(problem.to_string().contains(".gnu_debugdata"), "{problem}");
}
