//! Reads instrumentation profiles of any form: describes the header, selects records by name, and sums up records.
mod in_place;
mod layout;
mod older;
mod reader;
mod select;
mod shares;
mod table;
mod totals;

pub(crate) use in_place::in_place;
pub use layout::{ProfileLayout, SectionPlace, layouts};
pub use older::{Fitted, fit_to_release, fits_release};
pub use profkit_data::instr::InstrReader;
pub use reader::{Form, InstrFacts};
pub use select::read_selected;
pub(crate) use shares::Sums;
pub use shares::{SHARES, Share};
pub use table::InstrTable;
pub use totals::{Totals, ValueTotals, counter_sum, numbers, sort_records};
