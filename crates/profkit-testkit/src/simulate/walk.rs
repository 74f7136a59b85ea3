//! Walks through the code of the programs of one process, and keeps the latest branches, as a processor does in its
//! branch stack.
use super::code::Flow;
use super::program::Program;
use crate::Rng;
use std::collections::VecDeque;

/// The addresses and sizes of code that belongs to no program of the simulation: the C library and the kernel.
pub(super) const LIBRARY: u64 = 0x7fff_f000_0000;
pub(super) const LIBRARY_SIZE: u64 = 0x20_0000;
pub(super) const KERNEL: u64 = 0xffff_ffff_8100_0000;
pub(super) const KERNEL_SIZE: u64 = 0x200_0000;

/// The largest number of nested calls. The next constant is the largest number of branches without a return to the C
/// library. If a walk exceeds one of the two limits, it ends and starts again, as after an exception.
const DEPTH: usize = 200;
const BRANCHES: u32 = 200_000;

/// A place in the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The index of the module; `None` for code that belongs to no program of the simulation.
    pub module: Option<usize>,
    /// The address in the program's file.
    pub address: u64,
    /// The address in the memory of the process.
    pub memory: u64,
}

impl Place {
    fn foreign(memory: u64) -> Self {
        Place {
            module: None,
            address: memory,
            memory,
        }
    }
}

/// A branch that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub from: Place,
    pub to: Place,
    pub flags: u64,
}

/// A program in the memory of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    /// The index of the program.
    pub program: usize,
    /// The number that is added to an address in the file to get the address in memory.
    pub bias: u64,
}

/// A process. A copy of it serves as a forked process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub pid: u32,
    pub modules: Vec<Module>,
    /// The place of the instruction that the simulated process executes next.
    pub at: Place,
    /// The return addresses. That of the innermost function is last.
    pub stack: Vec<Place>,
    /// The branches that the processor remembers. The newest branch is first.
    pub taken: VecDeque<Taken>,
    branches: u32,
}

/// The data that all processes share.
#[derive(Debug)]
pub(super) struct World<'w> {
    pub programs: &'w [Program],
    pub seed: u64,
    pub depth: usize,
    pub kernel: bool,
    /// Whether `main` is treated like any other function.
    pub anywhere: bool,
}

pub(super) fn mix(value: u64) -> u64 {
    Rng::new(value).bits()
}

impl Process {
    /// Makes a process that is about to execute a function of its first program.
    pub fn new(world: &World<'_>, pid: u32, program: usize, rng: &mut Rng) -> Self {
        let mut process = Process {
            pid,
            modules: Vec::new(),
            at: Place::foreign(LIBRARY),
            stack: Vec::new(),
            taken: VecDeque::new(),
            branches: 0,
        };
        process.load(world, program, rng);
        process.begin(world, rng);
        process
    }

    /// Loads a program, and returns the index of the module.
    pub fn load(&mut self, world: &World<'_>, program: usize, rng: &mut Rng) -> usize {
        let page = (rng.below(0x1_0000) as u64) * 0x1000;
        let slot = self.modules.len() as u64;
        let bias = if !world.programs[program].relocatable {
            0
        } else if slot == 0 {
            0x5555_0000_0000 + page
        } else {
            0x7f10_0000_0000 + slot * 0x1_0000_0000 + page
        };
        self.modules.push(Module { program, bias });
        self.modules.len() - 1
    }

    fn place(&self, module: usize, address: u64) -> Place {
        Place {
            module: Some(module),
            address,
            memory: address.wrapping_add(self.modules[module].bias),
        }
    }

    fn take(&mut self, world: &World<'_>, from: Place, to: Place, rng: &mut Rng) {
        // One branch in 32 is marked as mispredicted.
        let predicted = if rng.below(32) == 0 { 1 } else { 2 };
        let cycles = 1 + rng.below(60) as u64;
        self.taken.truncate(world.depth.saturating_sub(1));
        self.taken.push_front(Taken {
            from,
            to,
            flags: predicted | cycles << 4,
        });
        self.branches += 1;
    }

    /// Chooses the function at which a process enters its program: `main`, or any function of a library. Some functions
    /// are chosen much more often than others.
    fn entry(&self, world: &World<'_>, rng: &mut Rng) -> Place {
        let program = &world.programs[self.modules[0].program];
        let main = program.main.filter(|_| !world.anywhere);
        let function = main.unwrap_or_else(|| {
            let count = program.functions.len();
            let (first, second) = (1 + rng.below(count), 1 + rng.below(count));
            let rank = rng.below(first * second / count + 1);
            let drawn = mix(world.seed ^ rank as u64);
            usize::try_from(drawn % count as u64).expect("below the number of functions")
        });
        self.place(0, program.functions[function].address)
    }

    /// Starts a new walk without remembered branches, as if another thread ran.
    fn begin(&mut self, world: &World<'_>, rng: &mut Rng) {
        self.stack.clear();
        self.taken.clear();
        self.branches = 0;
        self.at = self.entry(world, rng);
    }

    /// Continues at an entry of the program, by two branches through the C library.
    fn return_to_outside(&mut self, world: &World<'_>, from: Place, rng: &mut Rng) {
        self.take(world, from, Place::foreign(LIBRARY + 0x100), rng);
        let entry = self.entry(world, rng);
        self.take(world, Place::foreign(LIBRARY + 0x140), entry, rng);
        self.branches = 0;
        self.at = entry;
    }

    /// Returns from a function.
    fn pop(&mut self, world: &World<'_>, from: Place, rng: &mut Rng) {
        let Some(to) = self.stack.pop() else {
            return self.return_to_outside(world, from, rng);
        };
        let ends = to.module.is_some_and(|module| {
            let program = &world.programs[self.modules[module].program];
            !program.is_same_function(to.address - 1, to.address)
        });
        if ends {
            // The compiler knew that the called function does not return, so the code after the call belongs to another
            // function. The walk must not return there; it starts again.
            return self.begin(world, rng);
        }
        self.take(world, from, to, rng);
        self.at = to;
    }

    /// Chooses one of the functions that a place calls through a pointer. Each place has one to three such functions,
    /// and calls the first most often.
    fn callee(&self, world: &World<'_>, site: u64, rng: &mut Rng) -> Place {
        let own = mix(site);
        let rank = if rng.below(4) > 0 { 0 } else { rng.below(3) } as u64;
        let drawn = mix(own ^ (rank % (1 + own % 3)));
        // One call in eight goes to a module chosen at random.
        let module = if self.modules.len() > 1 && rng.below(8) == 0 {
            rng.below(self.modules.len())
        } else {
            0
        };
        let functions = &world.programs[self.modules[module].program].functions;
        let function = usize::try_from((drawn >> 12) % functions.len() as u64)
            .expect("below the number of functions");
        self.place(module, functions[function].address)
    }

    /// Calls a function outside of the program. The function belongs to another module or to the C library. A function
    /// of the C library returns immediately.
    fn leave(&mut self, world: &World<'_>, from: Place, site: u64, rng: &mut Rng) {
        let own = mix(site);
        if self.modules.len() > 1 && own & 1 == 0 {
            let to = self.callee(world, site, rng);
            if to.module != from.module {
                self.take(world, from, to, rng);
                self.at = to;
                return;
            }
        }
        let function = LIBRARY + 0x1000 + (own >> 8) % 0x1000 * 16;
        self.take(world, from, Place::foreign(function), rng);
        self.pop(world, Place::foreign(function + 0x2c), rng);
    }

    /// Adds branches into, within and out of the kernel. Control continues at `to`.
    fn visit_kernel(&mut self, world: &World<'_>, from: Place, to: Place, rng: &mut Rng) {
        let own = KERNEL + (mix(from.address) & 0xff_fff0);
        self.take(world, from, Place::foreign(own), rng);
        self.take(
            world,
            Place::foreign(own + 0x33),
            Place::foreign(own + 0x80),
            rng,
        );
        self.take(world, Place::foreign(own + 0x91), to, rng);
    }

    /// Decides whether a conditional branch is taken. Each place has its own probability. Backward branches are taken
    /// often.
    fn decides(site: u64, backward: bool, rng: &mut Rng) -> bool {
        const BACKWARD: [usize; 4] = [40, 52, 60, 62];
        const FORWARD: [usize; 4] = [1, 8, 40, 62];
        let kind = usize::try_from(mix(site) & 3).unwrap_or(0);
        let likely = if backward {
            BACKWARD[kind]
        } else {
            FORWARD[kind]
        };
        rng.below(64) < likely
    }

    /// Walks to the next branch instruction, and executes it.
    pub fn step(&mut self, world: &World<'_>, rng: &mut Rng) {
        if self.branches > BRANCHES || self.stack.len() > DEPTH {
            return self.begin(world, rng);
        }
        let Some(module) = self.at.module else {
            return self.begin(world, rng);
        };
        if world.kernel && rng.below(1000) == 0 {
            self.visit_kernel(world, self.at, self.at, rng);
        }
        let program = &world.programs[self.modules[module].program];
        let Some(block) = program.block(self.at.address) else {
            return self.begin(world, rng);
        };
        let from = self.place(module, block.last);
        let next = self.place(module, block.next);
        let site = world.seed ^ block.last ^ (self.modules[module].program as u64) << 48;
        match block.flow {
            Flow::Conditional(target) => {
                if Self::decides(site, target <= block.last, rng) {
                    let to = self.place(module, target);
                    self.take(world, from, to, rng);
                    self.at = to;
                } else {
                    self.at = next;
                }
            }
            Flow::Jump(target) => {
                let to = self.place(module, target);
                self.take(world, from, to, rng);
                self.at = to;
            }
            Flow::Call(target) => {
                let to = self.place(module, target);
                self.stack.push(next);
                self.take(world, from, to, rng);
                self.at = to;
            }
            Flow::IndirectCall => {
                self.stack.push(next);
                let to = self.callee(world, site, rng);
                self.take(world, from, to, rng);
                self.at = to;
            }
            Flow::IndirectJump if block.stub => self.leave(world, from, site, rng),
            Flow::IndirectJump => {
                let targets = program.jump_targets(block.last);
                let to = if targets.is_empty() {
                    self.callee(world, site, rng)
                } else {
                    self.place(module, targets[rng.below(targets.len())])
                };
                self.take(world, from, to, rng);
                self.at = to;
            }
            Flow::Return => self.pop(world, from, rng),
            Flow::System => {
                if world.kernel {
                    self.visit_kernel(world, from, next, rng);
                }
                self.at = next;
            }
            Flow::Next | Flow::Trap => self.begin(world, rng),
        }
    }
}
