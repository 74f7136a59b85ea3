//! Folded stacks: a line per stack, in the form that flame graph tools read.
use super::Stacks;
use std::io::{self, Write};

impl Stacks {
    /// Writes a line per stack: the function names separated by `;`, outermost first, then a space and the number that
    /// viewers show first. Stacks without this number are left out.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn folded(&self, mut out: impl Write) -> io::Result<()> {
        for (stack, numbers) in &self.stacks {
            let number = numbers.get(self.first).copied().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let names: Vec<String> = stack
                .iter()
                .map(|&frame| self.frames[frame as usize].name.replace(';', ":"))
                .collect();
            writeln!(out, "{} {number}", names.join(";"))?;
        }
        out.flush()
    }
}
