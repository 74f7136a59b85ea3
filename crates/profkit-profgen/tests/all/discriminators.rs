//! Discriminators of GCC. No GCC 16 is at hand: a program's assembly gets the discriminators that its layout describes.
use profkit_object::code_symbols::code_symbols;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::text::{TextOptions, read_text};
use profkit_profgen::{Discriminators, LineOptions, Program, autofdo_profile, make_profile};
use profkit_testkit::{links_c, or_skip, succeed};
use std::collections::BTreeMap;
use std::process::Command;

/// The base, the multiplicity and the number of the copy.
fn gcc_16((base, multiplicity, copy): (u32, u32, u32)) -> u32 {
    base | multiplicity << 8 | copy << 15
}

#[test]
fn counts_for_gcc_16_are_those_of_the_source() {
    let compiler = "x86_64-linux-gnu-gcc";
    or_skip!(links_c(compiler, &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let source = "int work(int n) {\n  return n * 77 + (n ^ 5) * (n - 9);\n}\n\
        int main(int argc, char **argv) { (void)argv; return work(argc); }\n";
    std::fs::write(path("p.c"), source).expect("the source");
    let run = |arguments: &[&str]| {
        succeed(
            Command::new(compiler)
                .args(arguments)
                .current_dir(folder.path()),
        );
    };
    run(&[
        "-O1",
        "-g",
        "-fno-inline",
        "-fno-var-tracking",
        "-S",
        "p.c",
        "-o",
        "p.s",
    ]);
    let text = std::fs::read_to_string(path("p.s")).expect("assembly");
    // An instruction of four statements, a copy, another block of the line, and the last possible copy.
    let wanted = [(1, 4, 0), (1, 0, 1), (2, 0, 0), (1, 2, 2047)];
    let mut next = wanted.into_iter();
    let mut lines = Vec::new();
    for line in text.lines() {
        let of_line = line.trim_start().starts_with(".loc 1 2 ");
        match of_line.then(|| next.next()).flatten() {
            Some(parts) => lines.push(format!(
                "\t.loc 1 2 1 discriminator {}\n\tnop",
                gcc_16(parts)
            )),
            // Each of the others would have its own discriminator.
            None if of_line => {}
            None => lines.push(line.to_owned()),
        }
    }
    assert!(next.next().is_none(), "{text}");
    std::fs::write(path("p.s"), lines.join("\n") + "\n").expect("assembly");
    run(&["-no-pie", "p.s", "-o", "p"]);
    let files = ProgramFiles::open(&path("p"), &DebugFolders::default()).expect("the program");
    let program = Program::open(&files).expect("a program");
    let symbols = code_symbols(&files.program().expect("the program")).expect("symbols");
    let work = symbols.iter().find(|it| it.name == b"work").expect("work");
    let ranges = format!(
        "F {:x} {:x} 1000\n",
        work.address,
        work.address + work.size - 1
    );
    let counts = read_text(ranges.as_bytes(), TextOptions::default()).expect("counts");
    let counted = &counts.binaries[0];
    let sums = [(&counted.sums, counted.key.numbering)];
    let found = |discriminators: Discriminators, as_autofdo: bool| -> BTreeMap<u32, u64> {
        let made = if as_autofdo {
            autofdo_profile(&program, &symbols, &sums, discriminators, false)
        } else {
            let mut options = LineOptions::default();
            options.discriminators = discriminators;
            make_profile(&program, &sums, &options).expect("a profile")
        };
        let profile = made.profile;
        let name = |index: usize| {
            profile
                .names
                .get(profile.functions()[index].samples.name)
                .to_string()
        };
        let index = (0..profile.functions().len()).find(|&index| name(index) == "work");
        let body = &profile.functions()[index.expect("work")].samples.body;
        let of_line = body.iter().filter(|line| line.location.line == 1);
        of_line
            .map(|line| (line.location.discriminator, line.samples))
            .collect()
    };
    for as_autofdo in [false, true] {
        // The base 1: four statements, a copy, and a copy of two statements.
        let expected = BTreeMap::from([(1, 7000), (2, 1000)]);
        assert_eq!(
            found(Discriminators::Gcc16, as_autofdo),
            expected,
            "{as_autofdo}"
        );
        // Earlier releases do not copy discriminators, so none of their bits has a meaning.
        let whole = wanted.map(|parts| (gcc_16(parts), 1000));
        assert_eq!(
            found(Discriminators::Whole, as_autofdo),
            BTreeMap::from(whole)
        );
    }
}
