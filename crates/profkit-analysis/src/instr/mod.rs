//! Instrumentation profiles of any form: opened by content, what their headers say, records by name, and sums over them.
mod layout;
mod reader;
mod select;
mod totals;

pub use layout::{ProfileLayout, SectionPlace, layouts};
pub use reader::{Form, InstrFacts, InstrReader, not_an_instr_profile};
pub use select::read_selected;
pub use totals::{Hottest, Totals, ValueTotals, counter_sum};
