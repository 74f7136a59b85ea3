//! A profile as an HTML page, as call stacks for viewers of other tools, and as tables.
//!
//! ```
//! use profkit::analysis::instr::{InstrReader, InstrTable};
//! use profkit::page::{DEFAULT_SIZE_LIMIT, Page};
//!
//! let table = InstrTable::read(InstrReader::open(b":ir\nmain\n1\n1\n90\n")?);
//! let (mut page, faults) = Page::of_instr("app.proftext", 18, &table);
//! assert_eq!(faults.count, 0);
//! assert!(page.html(DEFAULT_SIZE_LIMIT).text.contains("main"));
//! # Ok::<(), profkit::Error>(())
//! ```
pub use profkit_page::{DEFAULT_SIZE_LIMIT, Html, PAGE_VERSION, Page};

/// Call stacks and tables.
pub mod export {
    pub use profkit_page::export::tables::{
        Column, ColumnData, NoTable, Property, StackColumn, Table, TableKind, Texts,
    };
    pub use profkit_page::export::{StackFile, StackFrame, StackUnit, Stacks};
}

/// Tables made profiles again.
pub mod import {
    pub use profkit_page::import::{
        Cells, ImportError, Imported, ImportedProfile, TableFile, addresses_of, is_branches,
        is_table, profile_of,
    };
}

/// Source files and lines for the page.
pub mod source {
    pub use profkit_page::source::{SourceFile, SourceFolder};
}
