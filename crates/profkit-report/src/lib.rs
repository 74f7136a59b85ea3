//! Answers of [`profkit_analysis`] in the forms that front ends show: pictures, JSON documents, numbers for people.
//! Nothing here reads files or prints.
//!
//! ```
//! use profkit_report::{grouped, percent, plural};
//!
//! assert_eq!(grouped(1234567), "1,234,567");
//! assert_eq!(plural(2, "function"), "2 functions");
//! assert_eq!(percent(1, 3), "33.3%");
//! ```
#![forbid(unsafe_code)]

pub mod flame_svg;
pub mod matching;
mod numbers;

pub use numbers::{grouped, percent, plural};
