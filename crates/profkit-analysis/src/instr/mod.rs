//! Reads instrumentation profiles of any form: detects the form, describes the header, selects records by name, and
//! sums up records.
mod layout;
mod reader;
mod select;
mod totals;

pub use layout::{ProfileLayout, SectionPlace, layouts};
pub use reader::{Form, InstrFacts, InstrReader, not_an_instr_profile, text_has_records};
pub use select::read_selected;
pub use totals::{SHARES, Share, Totals, ValueTotals, counter_sum, numbers, sort_records};
