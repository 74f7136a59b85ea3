//! Instrumentation profiles of any form: opened by content, what their headers say, and sums over their records.
mod reader;
mod totals;

pub use reader::{Form, InstrFacts, InstrReader, not_an_instr_profile};
pub use totals::{Hottest, Totals, ValueTotals, counter_sum};
