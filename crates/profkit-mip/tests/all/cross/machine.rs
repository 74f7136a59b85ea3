//! The machines for which programs are compiled, and the tools that build and run these programs.
use profkit_mip::instrument::Target;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Machine {
    pub target: Target,
    /// The options of clang that choose this machine.
    pub clang: &'static [&'static str],
    pub gcc: &'static str,
    pub gcc_options: &'static [&'static str],
    pub qemu: &'static str,
    pub libraries: &'static str,
}

pub const AARCH64: Machine = Machine {
    target: Target::Aarch64Elf,
    clang: &["--target=aarch64-linux-gnu"],
    gcc: "aarch64-linux-gnu-gcc-12",
    gcc_options: &[],
    qemu: "qemu-aarch64",
    libraries: "/usr/aarch64-linux-gnu",
};

pub const ARM: Machine = Machine {
    target: Target::ArmElf,
    clang: &["--target=armv7-linux-gnueabihf", "-marm"],
    gcc: "arm-linux-gnueabihf-gcc-12",
    gcc_options: &["-marm"],
    qemu: "qemu-arm",
    libraries: "/usr/arm-linux-gnueabihf",
};

pub const THUMB: Machine = Machine {
    clang: &["--target=armv7-linux-gnueabihf", "-mthumb"],
    gcc_options: &["-mthumb"],
    ..ARM
};

/// The compiler, assembler and linker of a build.
#[derive(Clone, Copy)]
pub enum Tools {
    /// clang and lld.
    Clang(u32),
    /// gcc, GNU as and GNU ld.
    Gcc,
}

impl Machine {
    pub fn works(&self, tools: Tools, sources: &[PathBuf]) -> Result<(), String> {
        // All releases of clang use this linker. qemu runs the programs.
        for tool in ["ld.lld-22", self.qemu] {
            if find(tool).is_none() {
                return Err(format!("{tool} is not installed"));
            }
        }
        for source in sources {
            let options = match tools {
                Tools::Clang(_) => &[self.clang, &["-fuse-ld=lld-22"]].concat(),
                Tools::Gcc => self.gcc_options,
            };
            let program = self.compiler(tools, source).get_program().to_owned();
            if is_cxx(source) {
                profkit_testkit::links_cxx(program, options)?;
            } else {
                profkit_testkit::links_c(program, options)?;
            }
        }
        Ok(())
    }

    pub fn compiler(&self, tools: Tools, source: &Path) -> Command {
        let mut command = match tools {
            Tools::Clang(release) if is_cxx(source) => Command::new(format!("clang++-{release}")),
            Tools::Clang(release) => Command::new(format!("clang-{release}")),
            Tools::Gcc if is_cxx(source) => Command::new(self.gcc.replace("gcc", "g++")),
            Tools::Gcc => Command::new(self.gcc),
        };
        command.args(match tools {
            Tools::Clang(_) => self.clang,
            Tools::Gcc => self.gcc_options,
        });
        command.arg("-w");
        command
    }

    pub fn run(
        &self,
        program: &Path,
        records: &Path,
        log: Option<(&Path, std::ops::Range<u64>)>,
    ) -> Vec<u8> {
        let mut command = Command::new(self.qemu);
        command.args(["-L", self.libraries]);
        if let Some((log, text)) = log {
            // qemu translates each instruction as a block of its own, and logs the address of each block that it runs.
            command
                .args(["-singlestep", "-d", "exec,nochain", "-D"])
                .arg(log);
            command.args([
                "-dfilter",
                &format!("{:#x}..{:#x}", text.start, text.end - 1),
            ]);
        }
        command.arg(program).env("RECORDS", records);
        let output = command.output().unwrap();
        let code = output.status.code();
        assert!(
            code.is_some_and(|code| code < 128),
            "{}: {output:?}",
            program.display()
        );
        let mut all = output.stdout;
        let _ = write!(all, "\nexit code {code:?}\n");
        all
    }
}

fn is_cxx(source: &Path) -> bool {
    source
        .extension()
        .is_some_and(|extension| extension == "cpp")
}

pub fn find(tool: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(tool))
        .find(|path| path.is_file())
}

pub fn source(name: &str) -> PathBuf {
    profkit_testkit::repo_root()
        .join("tests/programs")
        .join(name)
}

pub fn succeed(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // The inserted code must not cause any message of an assembler or linker.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
    output.stdout
}

pub struct Build<'b> {
    pub machine: &'b Machine,
    pub tools: Tools,
    pub options: &'b [&'b str],
    pub link: &'b [&'b str],
    pub sources: &'b [PathBuf],
    pub folder: &'b Path,
}

impl Build<'_> {
    /// Returns the assembly that the compiler makes of each source file.
    pub fn assembly(&self) -> Vec<Vec<u8>> {
        let compile = |source: &PathBuf| {
            let mut command = self.machine.compiler(self.tools, source);
            succeed(
                command
                    .args(self.options)
                    .arg("-S")
                    .arg(source)
                    .args(["-o", "-"]),
            )
        };
        self.sources.iter().map(compile).collect()
    }

    pub fn link(&self, assembly: &[&[u8]], name: &str) -> PathBuf {
        let program = self.folder.join(name);
        // The first source file decides whether the program is linked as C or as C++.
        let mut link = self.machine.compiler(self.tools, &self.sources[0]);
        if matches!(self.tools, Tools::Clang(_)) {
            link.arg("-fuse-ld=lld-22");
        }
        link.args(self.link)
            .args(["-Wl,--build-id=sha1", "-o"])
            .arg(&program);
        for (number, text) in assembly.iter().enumerate() {
            let file = self.folder.join(format!("{name}{number}.s"));
            std::fs::write(&file, text).unwrap();
            let object = file.with_extension("o");
            let mut assemble = self.machine.compiler(self.tools, &file);
            succeed(
                assemble
                    .args(self.options)
                    .arg("-c")
                    .arg(&file)
                    .arg("-o")
                    .arg(&object),
            );
            link.arg(&object);
        }
        if name != "plain" {
            let runtime = self.folder.join("mip_records.o");
            let source = source("mip_records.c");
            let mut compile = self.machine.compiler(self.tools, &source);
            succeed(
                compile
                    .args(["-O1", "-fPIC", "-c"])
                    .arg(&source)
                    .arg("-o")
                    .arg(&runtime),
            );
            link.arg(&runtime);
        }
        succeed(&mut link);
        program
    }
}
