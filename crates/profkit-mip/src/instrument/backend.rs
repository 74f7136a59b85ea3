//! The interface between the instrumenter and the back ends of the targets.
use super::functions::Function;
use super::labels::Labels;
use super::options::{Mode, Options};
use crate::asm::{Instruction, Kind, Module, Syntax};
use std::fmt;

/// The effect of an instruction on the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// Control always continues with the next instruction.
    Next,
    /// The instruction is a call. Control continues with the next instruction after the return.
    Call,
    /// The instruction always jumps to a label.
    Jump(&'a [u8]),
    /// The instruction jumps to a label, or control continues with the next instruction. The label is empty if the
    /// instruction leaves the function, such as a conditional return.
    Branch(&'a [u8]),
    /// The instruction jumps to an address from a register or a table.
    Indirect,
    /// The instruction returns, traps, or leaves the function in another way.
    Leave,
}

/// The place of a probe in an assembly file.
#[derive(Clone, Copy, Debug)]
pub struct Site<'m, 'a> {
    /// The assembly file that contains the function.
    pub module: &'m Module<'a>,
    /// The function whose execution the probe records.
    pub function: &'m Function<'a>,
    /// The names of the labels that belong to the function.
    pub labels: Labels,
    /// The index of the statement before which the probe is inserted.
    pub statement: usize,
    /// The options of the instrumenter.
    pub options: &'m Options,
}

impl Site<'_, '_> {
    /// Whether each push must be described to the unwinder, because `.cfi_startproc` is in effect.
    pub fn in_frame(&self) -> bool {
        self.function
            .statements(self.module)
            .take_while(|(index, _)| *index < self.statement)
            .any(|(_, statement)| {
                matches!(statement.kind, Kind::Directive(d) if d.name == b".cfi_startproc")
            })
    }

    /// Whether Intel syntax is enabled at the place of the probe.
    pub fn intel(&self) -> bool {
        self.module
            .statements
            .get(self.statement)
            .is_some_and(|statement| statement.context.intel)
    }
}

/// The assembly code of a probe for the entry of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// The code in the function: statements with the target's separator, without line breaks.
    pub inline: String,
    /// Rarely executed code, as lines after all other code of the section.
    pub cold: Option<String>,
}

/// The probes for all blocks of a function except the entry block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockProbes {
    /// For each block, the index of the statement after the probe, and the text of the probe.
    pub probes: Vec<(usize, String)>,
    /// The statements of the function and its jump tables that must be replaced because the code becomes longer: for
    /// each, its index and its new text.
    pub replaced: Vec<(usize, String)>,
}

/// The back end of one target. It recognises instructions and makes the code of probes.
pub trait Backend: fmt::Debug + Sync {
    /// The assembly syntax and object format of the target.
    fn syntax(&self) -> &'static Syntax;

    /// Whether addresses of the target have 64 bits.
    fn is_64_bit(&self) -> bool {
        true
    }

    /// Checks whether the target supports the mode in the options.
    ///
    /// # Errors
    /// The reason why the target does not support the mode, as a text that can follow the name of the file.
    fn supports(&self, options: &Options) -> Result<(), String> {
        match options.mode {
            Mode::Calls {
                return_addresses: Some(0),
            } => Err("cannot have a table of 0 return addresses".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns the effect of an instruction on the flow of control.
    fn flow<'a>(&self, instruction: &Instruction<'a>) -> Flow<'a>;

    /// Whether the instruction is a landing pad for indirect calls, which must remain the first instruction of a
    /// function (`endbr64`, `bti c`).
    fn is_landing(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether this is a no-op instruction, like those in a patchable function entry.
    fn is_nop(&self, instruction: &Instruction<'_>) -> bool;

    /// Whether the instruction is a profiler's call that must remain at the start of the function (`call __fentry__`).
    fn is_entry_hook(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether two instructions set up the frame as debuggers recognise it. The probe then comes after them, and must
    /// work there.
    fn is_frame_setup(
        &self,
        _first: &Instruction<'_>,
        _second: &Instruction<'_>,
        _options: &Options,
    ) -> bool {
        false
    }

    /// Whether the statement is only a prefix for the next instruction, such as `lock` on a line of its own.
    fn is_prefix(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether the instruction jumps to an address that it computes from its own, so that the table or the branches
    /// directly after it must stay there (`tbb [pc, r0]`, `addls pc, pc, r0, lsl #2`).
    fn counts_from_itself(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// Whether a call is executed only under a condition (`bleq`).
    fn is_conditional(&self, _call: &Instruction<'_>) -> bool {
        false
    }

    /// A branch that the assembler cannot extend (`loop`, `jrcxz`): probes could put its target out of reach.
    fn is_short_branch(&self, _instruction: &Instruction<'_>) -> bool {
        false
    }

    /// What compilers add to a naked function after its inline assembly, such as a no-op or a return.
    fn is_filler(&self, instruction: &Instruction<'_>) -> bool {
        self.is_nop(instruction) || self.flow(instruction) == Flow::Leave
    }

    /// Makes the probe for the entry of a function.
    ///
    /// # Errors
    /// The reason why this function cannot have a probe.
    fn entry(&self, site: &Site<'_, '_>) -> Result<Sequence, String>;

    /// Makes the probes for the blocks of one part of a function. Part 0 is the function's main code, whose entry block
    /// gets no block probe. `starts` are the indices of the statements at which the blocks begin. In the record, the
    /// bytes of the blocks follow the bytes of the entry, in the order of `starts`.
    ///
    /// # Errors
    /// The reason why the function cannot have block probes.
    fn blocks(
        &self,
        site: &Site<'_, '_>,
        part: usize,
        starts: &[usize],
    ) -> Result<BlockProbes, String>;

    /// The lines that an object needs once, such as helper functions in COMDAT groups.
    fn once(&self, options: &Options) -> String;
}
