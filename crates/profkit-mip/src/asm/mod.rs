//! Parses assembly files into statements, each with its line and its section.
//!
//! The instrumenter does not write the statements out again. It only inserts bytes at their offsets. So text that this
//! module cannot interpret stays as it is, and a file without insertions stays the same byte for byte.
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
pub use sections::{EXCEPTION_TABLE, Section, SectionId, arguments};
pub use statement::{Context, Directive, Instruction, Kind, Statement, words};
pub(crate) use statement::{is_name_byte, quoted};
pub use syntax::{ObjectFormat, Syntax};

use std::borrow::Cow;

/// Returns the first line of `text`, as messages show it: without blanks around it, and shortened if it is long.
pub fn excerpt(text: &[u8]) -> Cow<'_, str> {
    const LONGEST: usize = 60;
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii();
    match line.get(..LONGEST) {
        Some(start) => Cow::Owned(format!("{}…", String::from_utf8_lossy(start))),
        None => String::from_utf8_lossy(line),
    }
}
