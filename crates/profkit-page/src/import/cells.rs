//! The cells of a column, whatever file they come from.
use std::collections::HashMap;

/// A column. A cell without a value is `None`.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Texts: for each row the number of its text, from 1; 0 if it has none.
    Texts {
        /// The number of the text of each row.
        numbers: Vec<u32>,
        /// The texts.
        texts: Vec<String>,
    },
    /// Whole numbers.
    Numbers(Vec<Option<u64>>),
    /// Numbers with a sign or a fraction, which engines make of sums.
    Floats(Vec<Option<f64>>),
    /// Something else, with the name of its type.
    Other(String, usize),
}

/// Collects texts; equal ones are stored once.
#[derive(Debug, Default)]
pub(super) struct TextBuilder {
    numbers: Vec<u32>,
    texts: Vec<String>,
    known: HashMap<String, u32>,
}

impl TextBuilder {
    pub(super) fn push(&mut self, text: Option<&str>) {
        let number = text.map_or(0, |text| match self.known.get(text) {
            Some(&number) => number,
            None => {
                self.texts.push(text.to_owned());
                // A column with 2^32 different texts does not fit into memory.
                let number = u32::try_from(self.texts.len()).unwrap_or(0);
                self.known.insert(text.to_owned(), number);
                number
            }
        });
        self.numbers.push(number);
    }

    pub(super) fn finish(self) -> Cells {
        Cells::Texts {
            numbers: self.numbers,
            texts: self.texts,
        }
    }
}

/// The largest number up to which all whole numbers are exact in a float of 64 bits.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Cells {
    /// The number of rows.
    pub fn len(&self) -> usize {
        match self {
            Cells::Texts { numbers, .. } => numbers.len(),
            Cells::Numbers(rows) => rows.len(),
            Cells::Floats(rows) => rows.len(),
            Cells::Other(_, rows) => *rows,
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text of a row; `None` if it has none.
    ///
    /// # Errors
    /// If the column has no texts.
    pub fn text(&self, row: usize) -> Result<Option<&str>, String> {
        match self {
            Cells::Texts { numbers, texts } => {
                let number = numbers.get(row).copied().unwrap_or(0) as usize;
                let text = number.checked_sub(1).and_then(|index| texts.get(index));
                Ok(text.map(String::as_str).filter(|text| !text.is_empty()))
            }
            other => Err(format!("found {}, expected text", other.type_name())),
        }
    }

    /// The number of a row; `None` if it has none. Texts are read as decimal numbers, or as hexadecimal ones after `0x`.
    ///
    /// # Errors
    /// If the cell is not a whole number from 0 to 2^64−1.
    pub fn number(&self, row: usize) -> Result<Option<u64>, String> {
        let wrong =
            |found: String| format!("found {found}, expected a whole number from 0 to 2^64-1");
        match self {
            Cells::Numbers(rows) => Ok(rows.get(row).copied().flatten()),
            Cells::Floats(rows) => {
                let Some(found) = rows.get(row).copied().flatten() else {
                    return Ok(None);
                };
                if found.fract() != 0.0 || found < 0.0 {
                    return Err(wrong(found.to_string()));
                }
                if found > EXACT {
                    return Err(format!(
                        "found {found}, a floating-point number that is not exact: cast the column to an unsigned integer of 64 bits (UBIGINT, UInt64)"
                    ));
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is a whole number from 0 to 2^53"
                )]
                Ok(Some(found as u64))
            }
            Cells::Texts { .. } => {
                let Some(text) = self.text(row)? else {
                    return Ok(None);
                };
                let number = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                let number = number
                    .map_err(|_| wrong(format!("`{}`", profkit_data::printable(text.as_bytes()))));
                number.map(Some)
            }
            Cells::Other(..) => Err(wrong(self.type_name().to_owned())),
        }
    }

    fn type_name(&self) -> &str {
        match self {
            Cells::Texts { .. } => "text",
            Cells::Numbers(_) => "numbers",
            Cells::Floats(_) => "floating-point numbers",
            Cells::Other(name, _) => name,
        }
    }
}
