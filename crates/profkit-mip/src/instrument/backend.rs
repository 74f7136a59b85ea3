//! What the instrumenter needs to know about a target, and what the target's back end does.
use super::functions::Function;
use super::labels::Labels;
use super::options::Options;
use crate::asm::{Instruction, Kind, Module, Syntax};
use std::fmt;

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// Continues with the next instruction.
    Next,
    /// Calls, and continues with the next instruction after the return.
    Call,
    /// Always jumps to a label.
    Jump(&'a [u8]),
    /// Jumps to a label, or continues with the next instruction.
    Branch(&'a [u8]),
    /// Jumps to an address from a register or a table.
    Indirect,
    /// Returns, traps, or leaves the function in another way.
    Leave,
}

/// Where a probe goes.
#[derive(Clone, Copy, Debug)]
pub struct Site<'m, 'a> {
    /// The assembly file that the function is in.
    pub module: &'m Module<'a>,
    /// The function that the probe records.
    pub function: &'m Function<'a>,
    /// Names of its labels.
    pub labels: Labels,
    /// Index of the statement before which the probe goes.
    pub statement: usize,
    /// The options of the instrumenter.
    pub options: &'m Options,
}

impl Site<'_, '_> {
    /// Whether the probe lies between `.cfi_startproc` and `.cfi_endproc`, so that a push needs a directive for the
    /// unwinder.
    pub fn in_frame(&self) -> bool {
        self.function
            .statements(self.module)
            .take_while(|(index, _)| *index < self.statement)
            .any(|(_, statement)| {
                matches!(statement.kind, Kind::Directive(d) if d.name == b".cfi_startproc")
            })
    }

    /// Whether Intel syntax is on where the probe goes.
    pub fn intel(&self) -> bool {
        self.module
            .statements
            .get(self.statement)
            .is_some_and(|statement| statement.context.intel)
    }
}

/// The code of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Code inside the function: statements with the target's separator between them, without a line break.
    pub inline: String,
    /// Code out of the way: lines that follow the code of the section.
    pub cold: Option<String>,
}

/// The probes of a function's non-entry blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockProbes {
    /// For each block: the statement before which its probe goes, and the probe.
    pub probes: Vec<(usize, String)>,
    /// Statements of the function and its jump tables that must be replaced because the code grows.
    pub replaced: Vec<(usize, String)>,
}

/// The back end of one target.
pub trait Backend: fmt::Debug + Sync {
    /// Its assembly syntax and object format.
    fn syntax(&self) -> &'static Syntax;

    /// Whether its addresses have 64 bits.
    fn is_64_bit(&self) -> bool;

    /// The reason why a mode is not available, if it is not.
    ///
    /// # Errors
    /// The reason, worded to follow the file's name.
    fn supports(&self, options: &Options) -> Result<(), String>;

    /// The flow of control after an instruction.
    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a>;

    /// Whether it is a landing pad for indirect calls, which must stay the first instruction (`endbr64`, `bti c`).
    fn is_landing(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether this is a no-op instruction, like those in a patchable function entry.
    fn is_nop(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether it is a profiler's hook that must stay at the function's start (`call __fentry__`).
    fn is_entry_hook(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether two instructions at a function's start set up its frame in the way that debuggers look for, so that
    /// the entry probe goes after them. The probe must be right there too.
    fn is_frame_setup(
        &self,
        _first: &Instruction<'_>,
        _second: &Instruction<'_>,
        _options: &Options,
    ) -> bool {
        false
    }

    /// Whether it is a prefix alone, which belongs to the next instruction (`lock` on a line of its own).
    fn is_prefix(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether it is a branch whose range does not grow with the distance, so that probes in between could put its
    /// target out of reach (`loop`, `jrcxz`).
    fn is_short_branch(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether a compiler adds this instruction after the inline assembly of a naked function.
    fn is_filler(&self, instruction: &Instruction<'_>) -> bool {
        self.is_nop(instruction) || self.flow(instruction) == Flow::Leave
    }

    /// The probe at a function's entry.
    ///
    /// # Errors
    /// Why this function cannot have one.
    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String>;

    /// The probes of the non-entry blocks of one part of a function; part 0 is the function itself. `starts` are the
    /// statements that the blocks begin with. The byte of the first block follows the entry's part of the record; the
    /// others follow in the order of `starts`.
    ///
    /// # Errors
    /// Why the function cannot have them.
    fn blocks(
        &self,
        site: &Site<'_, '_>,
        part: usize,
        starts: &[usize],
    ) -> Result<BlockProbes, String>;

    /// Lines that an object needs once, such as helper functions in COMDAT groups. They are appended to the file.
    fn once(&self, options: &Options) -> String;
}
