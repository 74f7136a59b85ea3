//! Instrumentation profiles of any form: opened by content, what their headers say, and sums over their records.
mod layout;
mod reader;
mod totals;

pub use layout::{ProfileLayout, SectionPlace, layouts};
pub use reader::{Form, InstrFacts, InstrReader, not_an_instr_profile};
pub use totals::{Hottest, Totals, ValueTotals, counter_sum};
