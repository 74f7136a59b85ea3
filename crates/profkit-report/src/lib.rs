//! Internal to profkit, without a promise of stability: programs depend on the crate `profkit`.
//!
//! Turns the results of [`profkit_analysis`] into the forms that front ends show: pictures, JSON documents, texts and
//! numbers for people. Nothing here opens files; long outputs go to a writer that the front end supplies.
//!
//! ```
//! use profkit_report::{grouped, percent, plural, size};
//!
//! assert_eq!(grouped(1234567), "1,234,567");
//! assert_eq!(plural(2, "function"), "2 functions");
//! assert_eq!(percent(1, 3), "33.3%");
//! ```
#![forbid(unsafe_code)]

pub mod annotations;
mod bars;
mod console;
pub mod diff;
pub mod doctor;
mod document;
pub mod flame;
pub mod flame_graph;
pub mod flame_svg;
pub mod fold;
mod folded;
pub mod formats;
mod grouping;
pub mod heap;
pub mod layout;
mod loss;
mod markdown;
pub mod matching;
pub mod merge;
pub mod mip;
mod numbers;
pub mod order;
pub mod overlap;
pub mod recording;
mod rows;
pub mod sampling;
pub mod show;
mod steps;
mod table;
pub mod typed;
pub mod verify;

pub use bars::BarStyle;
pub use console::{Console, Look, Style};
pub use document::{Answer, Document, Rows};
pub use grouping::Grouping;
pub(crate) use loss::numbered;
pub use numbers::{grouped, percent, percent_beside, plural, quoted, share_percent, size, tenths};
pub use rows::{GROUP_COLUMNS, RowForm, RowWriter, group_json, group_word};
pub use steps::{read_step, seconds};
pub use table::{Cell, Table, cut_middle, shortened};
