//! Folded stacks: a line per stack, in the form that flame graph tools read.
use super::Stacks;
use profkit_report::flame::frame_name;
use std::io::{self, Write};

impl Stacks {
    /// Writes a line per stack: the function names separated by `;`, outermost first, then a space and a number. A
    /// stack may have several numbers (such as allocations and bytes); the one that viewers show first is written.
    /// Stacks for which this number is 0 are left out.
    pub fn folded(&self, mut out: impl Write) -> io::Result<()> {
        for (stack, numbers) in &self.stacks {
            let number = numbers.get(self.first).copied().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let names: Vec<String> = stack
                .iter()
                .map(|&frame| frame_name(&self.frames[frame as usize].name))
                .collect();
            writeln!(out, "{} {number}", names.join(";"))?;
        }
        out.flush()
    }
}
