//! Random programs.
use super::check::{check, options};
use super::machine::{Build, Machine, Tools};
use profkit_mip::instrument::{Mode, Target};
use profkit_testkit::program::{Program, Size};

pub fn check_generated(machine: &Machine, seeds: std::ops::Range<u64>, modes: &[(Mode, bool)]) {
    for seed in seeds {
        let folder = tempfile::tempdir().unwrap();
        let program = Program::generate(
            seed,
            Size {
                files: 2,
                functions: 6,
            },
        );
        let is_wide = |(_, text): &(String, String)| text.contains("__int128");
        if machine.target == Target::ArmElf && program.sources().iter().any(is_wide) {
            // 32-bit targets do not have the type `__int128`.
            continue;
        }
        let sources = program.write_to(folder.path()).unwrap();
        let turn = seed as usize;
        let tools = [Tools::Clang(22), Tools::Gcc, Tools::Clang(16)][turn % 3];
        profkit_testkit::or_skip!(machine.works(tools, &sources), continue);
        let level = ["-O2", "-O0", "-Os", "-O3", "-O1"][turn % 5];
        let (mode, blocks) = modes[turn % modes.len()];
        let fixed: &[&str] = match tools {
            Tools::Clang(_) => &["-fno-pie", "-ffunction-sections"],
            Tools::Gcc => &["-fno-pie"],
        };
        let compile = [fixed, &[level, "-mno-outline-atomics"]].concat();
        let compile = if matches!(machine.target, Target::ArmElf) {
            &compile[..compile.len() - 1]
        } else {
            &compile
        };
        eprintln!("seed {seed}: {compile:?} {mode:?} blocks: {blocks}");
        let build = Build {
            machine,
            tools,
            options: compile,
            link: &["-no-pie", "-lm", "-Wl,--gc-sections"],
            sources: &sources,
            folder: folder.path(),
        };
        check(&build, &options(mode, blocks));
    }
}
