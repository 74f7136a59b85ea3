//! A lossless model of an assembly file: statements with their lines, and the section each stands in.
//!
//! The text itself is never rebuilt. Whoever changes a file inserts bytes at the offsets of statements; what is not
//! understood therefore stays as it was, and a file that gets no insertion is the same bytes.
//!
//! ```
//! use profkit_mip::asm::{Kind, Module, Scanned, Syntax};
//! let scanned = Scanned::new(b"foo: ret # all\n", &Syntax::X86_ELF);
//! let module = Module::parse(&scanned, &Syntax::X86_ELF);
//! assert!(matches!(module.statements[0].kind, Kind::Label(name) if name == b"foo"));
//! assert_eq!(module.statements[1].line, 1);
//! ```

mod arm;
mod module;
mod scan;
mod sections;
mod statement;
mod syntax;
#[cfg(test)]
mod tests;

pub use arm::{ArmSet, ArmState};
pub use module::Module;
pub use scan::Scanned;
pub use sections::{Section, SectionId, arguments};
pub use statement::{Context, Directive, Instruction, Kind, Statement, words};
pub use syntax::{ObjectFormat, Syntax};

use std::borrow::Cow;

/// The text of assembly for a message: one line of it, shortened.
pub fn excerpt(text: &[u8]) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii();
    match line.get(..LONGEST) {
        Some(start) => Cow::Owned(format!("{}…", String::from_utf8_lossy(start))),
        None => String::from_utf8_lossy(line),
    }
}
