//! A large program with debug info. Compiling a hundred megabytes of code would take an hour. So only a few large
//! sources are compiled, and each object file is linked many times with renamed symbols. To a symboliser, each copy is
//! a compile unit of its own, with its own code, lines and functions.
use anyhow::{Context, Result, ensure};
use profkit_testkit::{Llvm, Rng};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of sources that are compiled. Each gives about 250 KB of code.
const SOURCES: usize = 6;
/// The number of copies of each object file that are linked.
const COPIES: usize = 18;
const FUNCTIONS: usize = 400;
/// The number of inlined helper functions. They call each other, some levels deep.
const STEPS: usize = 60;

/// Makes the program in `folder`, unless it exists already.
pub(super) fn make(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("program");
    if program.exists() {
        return Ok(program);
    }
    let llvm = Llvm::find(22).context("LLVM 22 is not installed")?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("steps.h"), header())?;
    let mut objects = Vec::new();
    for number in 0..SOURCES {
        eprintln!("compiling source {} of {SOURCES}", number + 1);
        std::fs::write(folder.join(format!("part{number}.cpp")), source(number))?;
        run(Command::new(llvm.clangxx())
            .args(["-O2", "-g", "-fdebug-info-for-profiling", "-c"])
            .arg(format!("part{number}.cpp"))
            .current_dir(folder))?;
        for copy in 0..COPIES {
            let name = format!("part{number}-{copy}.o");
            run(Command::new("llvm-objcopy-22")
                .arg(format!("--prefix-symbols=copy{copy}_"))
                .args([&format!("part{number}.o"), &name])
                .current_dir(folder))?;
            objects.push(name);
        }
    }
    std::fs::write(folder.join("main.c"), "int main(void) { return 0; }\n")?;
    run(Command::new(llvm.clang())
        .args(["-g", "-fuse-ld=lld", "main.c"])
        .args(&objects)
        .args(["-o", "unfinished"])
        .current_dir(folder))?;
    for object in objects {
        std::fs::remove_file(folder.join(object))?;
    }
    std::fs::rename(folder.join("unfinished"), &program)?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn header() -> String {
    let mut rng = Rng::new(1);
    let mut text = "#pragma once\nstruct Node { int kind; long weight; Node *next; unsigned char tag[16]; };\n\
                    static volatile long sink;\n"
        .to_owned();
    for step in 0..STEPS {
        let _ = write!(
            text,
            "static inline __attribute__((always_inline)) long step{step}(const Node *n, long a) {{\n  \
             long r = n->weight * {} + a;\n  if (n->kind == {step}) r ^= a >> {};\n",
            step + 3,
            step % 7 + 1
        );
        for _ in 0..rng.below(3).min(step / 3) {
            let other = step - 1 - rng.below(step.min(9));
            let _ = writeln!(
                text,
                "  if (r & {}) r += step{other}(n, r);",
                1 << (other % 9)
            );
        }
        text.push_str("  return r;\n}\n");
    }
    text
}

fn source(number: usize) -> String {
    let mut rng = Rng::new(number as u64 + 2);
    let mut text = format!("#include \"steps.h\"\nnamespace part{number} {{\n");
    for function in 0..FUNCTIONS {
        let _ = write!(
            text,
            "long work{function}(Node *list, long a) {{\n  long total = {function};\n  \
             for (Node *n = list; n; n = n->next) {{\n"
        );
        for _ in 0..4 {
            let step = rng.below(STEPS);
            let _ = writeln!(
                text,
                "    total += step{step}(n, a + total);\n    if (total > {}) sink = total;",
                step * 1000
            );
        }
        text.push_str("  }\n  return total;\n}\n");
    }
    text.push_str("}\n");
    text
}
