//! Profiles of a Linux kernel. The tests use a program that is linked to the addresses of a kernel. It is recorded as
//! if it were a kernel that was loaded at other addresses.
use crate::support::{counts_of_recording, profile_of_only as profile, simulated};
use profkit_perf::collect::{Counts, Numbering};
use profkit_perf::text::{TextOptions, read_text, write_addresses};
use profkit_testkit::simulate::{PerfEvent, PerfMap, PerfSink, Program, Simulation};
use profkit_testkit::{PerfWriter, links_c, or_skip, require_or_skip};
use std::io;
use std::process::Command;

/// The address to which the program that stands for the kernel is linked.
const LINKED: u64 = 0xffff_ffff_8100_0000;

const SOURCE: &str = "
__asm__(\".text\\n.globl _text\\n_text:\\n\");
static volatile int seen[64];
__attribute__((noinline)) static int odd(int x) { seen[x & 63] += x; return x * 3 + 1; }
__attribute__((noinline)) static int even(int x) { return x / 2 + seen[x & 63]; }
__attribute__((noinline)) int step(int x) {
  if (x & 1)
    return odd(x);
  for (int i = 0; i < 8; i++)
    x += seen[i];
  return even(x);
}
int main(void) {
  int x = 7;
  for (int i = 0; i < 1000; i++)
    x = step(x + i);
  return x;
}
";

/// Records a program as the kernel, loaded `moved` bytes after the address to which it was linked.
struct AsKernel {
    writer: PerfWriter,
    program: String,
    moved: u64,
}

impl AsKernel {
    fn address(&self, address: u64) -> u64 {
        // Only code of the program that stands for the kernel has the highest bit set in its address.
        if address >> 63 == 1 {
            address + self.moved
        } else {
            address
        }
    }
}

impl PerfSink for AsKernel {
    fn event(&mut self, event: &PerfEvent<'_>) -> io::Result<()> {
        match event {
            PerfEvent::Map(map) if map.path == self.program => {
                let text = LINKED + self.moved;
                self.writer.event(&PerfEvent::Map(&PerfMap {
                    pid: u32::MAX,
                    start: text,
                    offset: text,
                    path: "[kernel.kallsyms]_text".to_owned(),
                    ..(*map).clone()
                }))
            }
            PerfEvent::Sample(sample) => {
                let mut sample = (*sample).clone();
                sample.in_kernel = true;
                sample.address = self.address(sample.address);
                for (from, to, _) in &mut sample.branches {
                    (*from, *to) = (self.address(*from), self.address(*to));
                }
                self.writer.event(&PerfEvent::Sample(&sample))
            }
            other => self.writer.event(other),
        }
    }
}

fn counts(program: &Program, moved: u64) -> Counts {
    let simulation = Simulation::new(3).depth(16);
    let mut sink = AsKernel {
        writer: simulation.writer(),
        program: program.path.to_string_lossy().into_owned(),
        moved,
    };
    simulated(program, &simulation, 1000, &mut sink);
    counts_of_recording(&sink.writer.file())
}

#[test]
fn a_kernel_has_the_same_profile_wherever_it_was_loaded() {
    let llvm = require_or_skip!(22);
    or_skip!(links_c(llvm.clang(), &[]));
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("kernel.c");
    std::fs::write(&source, SOURCE).expect("written");
    let with_id = folder.path().join("with-id");
    let without_id = folder.path().join("vmlinux-6.1");
    for (output, id) in [
        (&with_id, "-Wl,--build-id=sha1"),
        (&without_id, "-Wl,--build-id=none"),
    ] {
        let run = Command::new(llvm.clang())
            .args(["-O2", "-g", "-fdebug-info-for-profiling", "-mcmodel=kernel"])
            .args([
                "-fno-pic",
                "-no-pie",
                "-ffreestanding",
                "-nostdlib",
                "-static",
            ])
            .args(["-Wl,-e,main", "-Wl,-z,noseparate-code", id])
            .arg(format!("-Wl,-Ttext={LINKED:#x}"))
            .arg(&source)
            .arg("-o")
            .arg(output)
            .status();
        assert!(run.expect("clang runs").success());
        let program = Program::open(output);
        let moved = counts(&program, 0x1560_0000);
        let found = moved.binaries.iter().find(|it| it.key.kernel);
        let found = found.expect("the kernel has counts");
        assert_eq!(found.key.numbering, Numbering::FromText);
        let still = counts(&program, 0);
        assert_eq!(moved, still);
        let text = profile(output, &moved);
        for function in ["step:", "odd:", "even:", "main:"] {
            assert!(text.contains(function), "{text}");
        }
        // The text does not depend on where a machine loaded the kernel, so those of several can be added.
        let mut addresses = Vec::new();
        write_addresses(&moved, &mut addresses).expect("written");
        let read = read_text(&addresses, TextOptions::default()).expect("our own text");
        assert_eq!(read, still);
        assert_eq!(profile(output, &read), text);
    }
}
