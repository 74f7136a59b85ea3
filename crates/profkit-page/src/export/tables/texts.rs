//! Columns of texts that differ in most rows: symbols, and their demangled names.
use super::ColumnData;
use profkit_analysis::names::{self, Spelling, printable};
use std::mem;
use std::sync::mpsc;

/// The number of rows of a block; the last block of a column may have fewer.
const BLOCK_ROWS: usize = 4096;

/// A column of texts that differ in most rows. An empty text means that the text is not known.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    blocks: Vec<Block>,
}

impl Texts {
    /// The number of rows.
    pub fn len(&self) -> usize {
        let before = self.blocks.len().saturating_sub(1) * BLOCK_ROWS;
        before + self.blocks.last().map_or(0, |block| block.ends.len())
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of all texts in bytes.
    #[cfg(feature = "arrow")]
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.text.len()).sum()
    }

    /// The text of a row; `None` if it is not known.
    pub fn get(&self, row: usize) -> Option<&str> {
        self.blocks.get(row / BLOCK_ROWS)?.get(row % BLOCK_ROWS)
    }

    /// The texts in the order of the rows.
    pub fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        self.blocks
            .iter()
            .flat_map(|block| (0..block.ends.len()).map(|row| block.get(row)))
    }
}

/// The texts of up to [`BLOCK_ROWS`] rows, stored one after the other.
#[derive(Clone, Debug, Default)]
struct Block {
    text: String,
    ends: Vec<usize>,
}

impl Block {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    fn get(&self, row: usize) -> Option<&str> {
        let to = *self.ends.get(row)?;
        let from = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(from..to).filter(|text| !text.is_empty())
    }
}

/// The symbols of up to [`BLOCK_ROWS`] rows, stored one after the other.
#[derive(Default)]
struct Symbols {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Symbols {
    fn push(&mut self, symbol: &[u8]) {
        self.bytes.extend_from_slice(symbol);
        self.ends.push(self.bytes.len());
    }

    /// Returns two blocks: the symbols with their control characters escaped, and the demangled names.
    fn spelled(&self) -> [Block; 2] {
        let mut spelled = [(); 2].map(|()| Block {
            text: String::with_capacity(self.bytes.len()),
            ends: Vec::with_capacity(self.ends.len()),
        });
        let mut from = 0;
        for &to in &self.ends {
            let symbol = &self.bytes[from..to];
            from = to;
            let [name, demangled] = &mut spelled;
            name.push(&printable(symbol));
            demangled.push(&names::spelled(symbol, Spelling::Demangled));
        }
        spelled
    }
}

/// Makes the columns of symbols and of demangled names. `read` calls its argument with the symbol of each row, in
/// order; meanwhile other threads demangle. An empty symbol has no text in either column.
pub(super) fn spelled(read: impl FnOnce(&mut dyn FnMut(&[u8]))) -> [ColumnData; 2] {
    let (sender, spelled) = mpsc::channel();
    rayon::in_place_scope(|scope| {
        let mut number = 0u32;
        let mut hand_over = |symbols: Symbols| {
            let (sender, of_block) = (sender.clone(), number);
            number += 1;
            scope.spawn(move |_| {
                // Sending cannot fail: the receiver outlives the scope.
                let _ = sender.send((of_block, symbols.spelled()));
            });
        };
        let mut symbols = Symbols::default();
        read(&mut |symbol| {
            symbols.push(symbol);
            if symbols.ends.len() == BLOCK_ROWS {
                hand_over(mem::take(&mut symbols));
            }
        });
        if !symbols.ends.is_empty() {
            hand_over(symbols);
        }
    });
    drop(sender);
    let mut blocks: Vec<(u32, [Block; 2])> = spelled.into_iter().collect();
    blocks.sort_unstable_by_key(|&(number, _)| number);
    let (names, demangled) = blocks
        .into_iter()
        .map(|(_, [name, demangled])| (name, demangled))
        .unzip();
    [names, demangled].map(|blocks| ColumnData::Texts(Texts { blocks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_order_over_the_bounds_of_blocks() {
        for rows in [
            0,
            1,
            BLOCK_ROWS - 1,
            BLOCK_ROWS,
            BLOCK_ROWS + 1,
            3 * BLOCK_ROWS + 7,
        ] {
            let columns = spelled(|push| {
                for row in 0..rows {
                    match row % 3 {
                        0 => push(format!("_Z3runILi{row}EEvv").as_bytes()),
                        1 => push(b""),
                        _ => push(b"a\xff"),
                    }
                }
            });
            let [ColumnData::Texts(names), ColumnData::Texts(demangled)] = columns else {
                panic!("columns of texts");
            };
            assert_eq!((names.len(), demangled.len()), (rows, rows));
            assert_eq!((names.iter().count(), names.is_empty()), (rows, rows == 0));
            for (row, (name, shown)) in names.iter().zip(demangled.iter()).enumerate() {
                assert_eq!((names.get(row), demangled.get(row)), (name, shown));
                let (wanted, wanted_shown) = match row % 3 {
                    0 => (
                        Some(format!("_Z3runILi{row}EEvv")),
                        Some(format!("void run<{row}>()")),
                    ),
                    1 => (None, None),
                    _ => (Some("a\\xff".to_owned()), Some("a\\xff".to_owned())),
                };
                assert_eq!(name, wanted.as_deref());
                assert_eq!(shown, wanted_shown.as_deref());
            }
            assert_eq!(names.get(rows), None);
        }
    }
}
