//! Simulates recordings of branch stacks, for tests on machines whose processor cannot record them. The simulation
//! decodes the code of a real program and walks through it.
//!
//! Each conditional branch is taken with its own probability. Calls and returns use a stack. Each indirect call chooses
//! among a few functions. The result is a recording that a processor could have made of the program, so llvm-profgen
//! and other tools accept it. The same seed gives the same recording.
mod code;
mod program;
mod sink;
mod walk;

pub use code::Machine;
pub use program::{CodeSegment, Program, ProgramFunction};
pub use sink::{PerfEvent, PerfFile, PerfMap, PerfScript, PerfSink};

use crate::{PerfSample, PerfWriter, Rng};
use std::collections::BTreeMap;
use std::io;
use walk::{KERNEL, KERNEL_SIZE, LIBRARY, LIBRARY_SIZE, Place, Process, World};

/// The values in a call chain that state that the entries after them belong to the kernel or to the program.
const KERNEL_MARKER: u64 = 0u64.wrapping_sub(128);
const USER_MARKER: u64 = 0u64.wrapping_sub(512);
/// The largest number of frames in a call chain.
const FRAMES: usize = 127;

/// An action of a simulation. Programs are given by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A process starts and runs a program.
    Start {
        /// The process.
        pid: u32,
        /// The program.
        program: usize,
    },
    /// A process forks. The child continues at the same place as the parent.
    Fork {
        /// The parent.
        pid: u32,
        /// The child.
        child: u32,
    },
    /// A process starts another program. All its mappings end.
    Exec {
        /// The process.
        pid: u32,
        /// The program.
        program: usize,
    },
    /// A process loads a library with `dlopen`.
    Open {
        /// The process.
        pid: u32,
        /// The library.
        program: usize,
    },
    /// A process ends.
    Exit {
        /// The process.
        pid: u32,
    },
    /// All processes run. This number of samples is taken, from one process after the other.
    Samples(u64),
    /// This number of records is lost.
    Lost(u64),
}

/// A place in a program: the index of the program, and the address in its file. `None` for code that belongs to no
/// program of the simulation.
pub type Spot = Option<(usize, u64)>;

/// The facts about what was recorded. The simulation counts them itself, without a reader of recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// The number of samples.
    pub samples: u64,
    /// The number of entries in the branch stacks of all samples.
    pub entries: u64,
    /// The number of times that each branch occurs in a branch stack. Only branches with at least one end in a program
    /// are counted.
    pub branches: BTreeMap<(Spot, Spot), u64>,
    /// The number of times that each range of code was executed between two branches. A range is given by the program,
    /// its first instruction and its last instruction.
    pub ranges: BTreeMap<(usize, u64, u64), u64>,
}

/// The settings of a simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    seed: u64,
    depth: usize,
    every: usize,
    chains: bool,
    kernel: bool,
    truth: bool,
    anywhere: bool,
}

impl Simulation {
    /// Makes settings with branch stacks of 32 entries, one sample per about 50 branches, no call chains and no kernel.
    pub fn new(seed: u64) -> Self {
        Simulation {
            seed,
            depth: 32,
            every: 50,
            chains: false,
            kernel: false,
            truth: true,
            anywhere: false,
        }
    }

    /// Sets the number of branches that the processor remembers.
    #[must_use]
    pub fn depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the mean number of branch instructions between two samples. Branches that are not taken count too.
    #[must_use]
    pub fn every(mut self, every: usize) -> Self {
        self.every = every;
        self
    }

    /// Sets whether samples have call chains.
    #[must_use]
    pub fn chains(mut self, chains: bool) -> Self {
        self.chains = chains;
        self
    }

    /// Sets whether the code of the kernel is recorded too.
    #[must_use]
    pub fn kernel(mut self, kernel: bool) -> Self {
        self.kernel = kernel;
        self
    }

    /// Sets whether [`run`](Self::run) counts what it records. Without that, large recordings are made faster.
    #[must_use]
    pub fn truth(mut self, truth: bool) -> Self {
        self.truth = truth;
        self
    }

    /// Sets whether a process may enter its program at any function, as if the program were a library, even if the
    /// program has a `main`.
    #[must_use]
    pub fn anywhere(mut self, anywhere: bool) -> Self {
        self.anywhere = anywhere;
        self
    }

    /// Returns a writer for the recording. It can be passed to [`PerfFile::new`] or to [`run`](Self::run).
    pub fn writer(&self) -> PerfWriter {
        sink::writer(self.chains)
    }

    /// Returns the size in bytes of a sample in a file, if its branch stack is full and it has no call chain.
    pub fn sample_size(&self) -> u64 {
        8 + 6 * 8 + 8 + 24 * self.depth as u64
    }

    /// Simulates the steps, one after the other.
    ///
    /// # Errors
    /// If the recording cannot be written.
    ///
    /// # Panics
    /// If a step names a process that does not run, or if samples are to be taken while no process runs.
    pub fn run(
        &self,
        programs: &[Program],
        steps: &[Step],
        sink: &mut dyn PerfSink,
    ) -> io::Result<Truth> {
        let mut run = Run {
            simulation: self,
            world: World {
                programs,
                seed: self.seed,
                depth: self.depth,
                kernel: self.kernel,
                anywhere: self.anywhere,
            },
            processes: Vec::new(),
            rng: Rng::new(self.seed),
            time: 1_000_000_000,
            sink,
            truth: Truth::default(),
        };
        if self.kernel {
            run.map(
                u32::MAX,
                KERNEL,
                KERNEL_SIZE,
                KERNEL,
                "[kernel.kallsyms]_text",
                &[],
            )?;
        }
        for &step in steps {
            run.step(step)?;
        }
        Ok(run.truth)
    }
}

struct Run<'r> {
    simulation: &'r Simulation,
    world: World<'r>,
    processes: Vec<Process>,
    rng: Rng,
    time: u64,
    sink: &'r mut dyn PerfSink,
    truth: Truth,
}

impl Run<'_> {
    fn now(&mut self) -> u64 {
        self.time += 1000;
        self.time
    }

    fn map(
        &mut self,
        pid: u32,
        start: u64,
        len: u64,
        offset: u64,
        path: &str,
        build_id: &[u8],
    ) -> io::Result<()> {
        let time = self.now();
        self.sink.event(&PerfEvent::Map(&PerfMap {
            pid,
            time,
            start,
            len,
            offset,
            path: path.to_owned(),
            build_id: build_id.to_vec(),
        }))
    }

    fn map_module(&mut self, process: usize, module: usize) -> io::Result<()> {
        let pid = self.processes[process].pid;
        let module = self.processes[process].modules[module];
        let program = &self.world.programs[module.program];
        let path = program.path.to_string_lossy().into_owned();
        for segment in &program.segments {
            let start = segment.address.wrapping_add(module.bias);
            self.map(
                pid,
                start,
                segment.size,
                segment.offset,
                &path,
                &program.build_id,
            )?;
        }
        Ok(())
    }

    /// Adds the events of a process that has started its program: its name and its mappings.
    fn enter(&mut self, process: usize) -> io::Result<()> {
        let pid = self.processes[process].pid;
        let program = &self.world.programs[self.processes[process].modules[0].program];
        let name = program
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let time = self.now();
        self.sink.event(&PerfEvent::Name {
            pid,
            time,
            name: name.get(..15).unwrap_or(&name),
            exec: true,
        })?;
        self.map_module(process, 0)?;
        self.map(pid, LIBRARY, LIBRARY_SIZE, 0, "/usr/lib/libc.so.6", &[])
    }

    fn find(&self, pid: u32) -> usize {
        let found = self.processes.iter().position(|it| it.pid == pid);
        found.unwrap_or_else(|| panic!("process {pid} does not run"))
    }

    fn step(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Start { pid, program } => {
                let process = Process::new(&self.world, pid, program, &mut self.rng);
                self.processes.push(process);
                self.enter(self.processes.len() - 1)
            }
            Step::Exec { pid, program } => {
                let at = self.find(pid);
                self.processes[at] = Process::new(&self.world, pid, program, &mut self.rng);
                self.enter(at)
            }
            Step::Fork { pid, child } => {
                let mut process = self.processes[self.find(pid)].clone();
                process.pid = child;
                self.processes.push(process);
                let time = self.now();
                self.sink.event(&PerfEvent::Fork {
                    pid: child,
                    parent: pid,
                    time,
                })
            }
            Step::Open { pid, program } => {
                let at = self.find(pid);
                let module = self.processes[at].load(&self.world, program, &mut self.rng);
                self.map_module(at, module)
            }
            Step::Exit { pid } => {
                let at = self.find(pid);
                self.processes.remove(at);
                let time = self.now();
                self.sink.event(&PerfEvent::Exit { pid, time })
            }
            Step::Lost(count) => {
                let time = self.now();
                self.sink.event(&PerfEvent::Lost { count, time })
            }
            Step::Samples(count) => {
                let mut sample = PerfSample::default();
                for number in 0..count {
                    let turn = number % self.processes.len() as u64;
                    self.sample(usize::try_from(turn).expect("an index"), &mut sample)?;
                }
                Ok(())
            }
        }
    }

    fn sample(&mut self, process: usize, sample: &mut PerfSample) -> io::Result<()> {
        let time = self.now();
        let process = &mut self.processes[process];
        for _ in 0..=self.rng.below(2 * self.simulation.every) {
            process.step(&self.world, &mut self.rng);
        }
        while process.taken.is_empty() {
            process.step(&self.world, &mut self.rng);
        }
        sample.pid = process.pid;
        sample.time = time;
        sample.in_kernel = self.world.kernel && self.rng.below(20) == 0;
        sample.address = if sample.in_kernel {
            KERNEL + 0x4_0000 + self.rng.below(64) as u64 * 16
        } else {
            process.at.memory
        };
        sample.chain.clear();
        if self.simulation.chains {
            if sample.in_kernel {
                sample.chain.extend([KERNEL_MARKER, sample.address]);
            }
            let outward = process.stack.iter().rev().take(FRAMES);
            sample.chain.extend([USER_MARKER, process.at.memory]);
            sample.chain.extend(outward.map(|frame| frame.memory));
        }
        sample.branches.clear();
        let taken = process.taken.iter();
        sample
            .branches
            .extend(taken.map(|it| (it.from.memory, it.to.memory, it.flags)));
        self.truth.samples += 1;
        self.truth.entries += process.taken.len() as u64;
        if self.simulation.truth {
            self.truth.add(process);
        }
        self.sink.event(&PerfEvent::Sample(sample))
    }
}

impl Truth {
    fn add(&mut self, process: &Process) {
        let spot = |place: Place| {
            let module = process.modules[place.module?];
            Some((module.program, place.address))
        };
        let mut newer: Option<Place> = None;
        for taken in &process.taken {
            let (from, to) = (spot(taken.from), spot(taken.to));
            if from.is_some() || to.is_some() {
                *self.branches.entry((from, to)).or_default() += 1;
            }
            if let (Some((program, start)), Some(end)) = (to, newer)
                && end.module == taken.to.module
            {
                *self
                    .ranges
                    .entry((program, start, end.address))
                    .or_default() += 1;
            }
            newer = Some(taken.from);
        }
    }
}
