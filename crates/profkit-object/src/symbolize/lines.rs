//! Reads the rows of a line table that belong to the requested addresses, and the paths of its files.
use super::work::{ROW, Work};
use super::{MAX_PATH, MAX_PATHS_OF_UNIT, Slice};
use gimli::{ColumnType, Dwarf, LineProgramHeader, Unit};
use rustc_hash::FxHashMap;

/// A row of a line table, reduced to the columns that source locations need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    address: u64,
    pub(super) file: u64,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) discriminator: u32,
}

/// A sequence of rows with ascending addresses, which ends at the address `high`. `rows` is empty if the sequence
/// contains no requested address.
struct Sequence {
    low: u64,
    high: u64,
    rows: std::ops::Range<usize>,
}

/// The line table of a compile unit.
pub(super) struct Lines {
    rows: Vec<Row>,
    /// The sequences of the table, sorted by `high`.
    sequences: Vec<Sequence>,
    pub(super) error: Option<gimli::Error>,
    /// Whether the line program ended without an `end_sequence` row. The last sequence is then incomplete and is left
    /// out.
    pub(super) unterminated: bool,
}

impl Lines {
    /// Executes the unit's line program and keeps the sequences that contain one of the addresses in `asked`. These
    /// addresses must be sorted. If the program is damaged, the sequences before the damage are kept.
    pub(super) fn read(unit: &Unit<Slice<'_>>, asked: &[u64], work: &Work) -> Self {
        let mut lines = Lines {
            rows: Vec::new(),
            sequences: Vec::new(),
            error: None,
            unterminated: false,
        };
        if let Some(program) = unit.line_program.clone()
            && let Err(error) = lines.run(program.rows(), asked, work)
        {
            lines.error = Some(error);
        }
        lines.sequences.sort_by_key(|sequence| sequence.high);
        lines
    }

    fn run<'a, P: gimli::LineProgram<Slice<'a>>>(
        &mut self,
        mut program: gimli::LineRows<Slice<'a>, P>,
        asked: &[u64],
        work: &Work,
    ) -> gimli::Result<()> {
        let mut first = self.rows.len();
        while let Some((_, row)) = program.next_row()? {
            work.take(ROW)?;
            let address = row.address();
            if !row.end_sequence() {
                self.rows.push(Row {
                    address,
                    file: row.file_index(),
                    line: row.line().map_or(0, |line| narrow(line.get())),
                    column: match row.column() {
                        ColumnType::LeftEdge => 0,
                        ColumnType::Column(column) => narrow(column.get()),
                    },
                    discriminator: narrow(row.discriminator()),
                });
                continue;
            }
            if let Some(low) = self
                .rows
                .get(first)
                .map(|row| row.address)
                .filter(|&low| low < address)
            {
                let next = asked.partition_point(|&asked| asked < low);
                if asked.get(next).is_none_or(|&next| next >= address) {
                    self.rows.truncate(first);
                }
                self.sequences.push(Sequence {
                    low,
                    high: address,
                    rows: first..self.rows.len(),
                });
            } else {
                self.rows.truncate(first);
            }
            first = self.rows.len();
        }
        self.unterminated = self.rows.len() > first;
        self.rows.truncate(first);
        Ok(())
    }

    /// Finds the rows for addresses that are passed in ascending order.
    pub(super) fn cursor(&self) -> Cursor<'_> {
        Cursor {
            lines: self,
            until: 0,
            row: None,
        }
    }

    /// Returns the row for an address, and the first address after it for which another row may be right. The row is
    /// searched in the first sequence that ends after the address: it is the last row of this sequence that does not
    /// begin after the address.
    fn find(&self, address: u64) -> Option<(&Row, u64)> {
        let after = self
            .sequences
            .partition_point(|sequence| sequence.high <= address);
        let sequence = self
            .sequences
            .get(after)
            .filter(|sequence| sequence.low <= address)?;
        let rows = self.rows.get(sequence.rows.clone())?;
        let next = rows.partition_point(|row| row.address <= address);
        let until = rows.get(next).map_or(u64::MAX, |row| row.address);
        let row = rows.get(next.saturating_sub(1))?;
        Some((row, until.min(sequence.high)))
    }
}

/// Finds rows for addresses in ascending order: see [`Lines::cursor`].
pub(super) struct Cursor<'l> {
    lines: &'l Lines,
    /// The first address for which `row` may no longer be the right row.
    until: u64,
    row: Option<&'l Row>,
}

impl<'l> Cursor<'l> {
    pub(super) fn find(&mut self, address: u64) -> Option<&'l Row> {
        if address >= self.until {
            let found = self.lines.find(address);
            self.row = found.map(|(row, _)| row);
            self.until = found.map_or(0, |(_, until)| until);
        }
        self.row
    }
}

/// Converts a number to 32 bits. A larger number becomes the largest 32-bit number.
pub(super) fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The paths of the source files in a compile unit. Each path is made only once.
pub(super) struct Paths {
    /// For each file whose path was made: the index of the path, which the caller's function `keep` returned. `None` if
    /// the path could not be made or is too long.
    known: FxHashMap<u64, Option<u32>>,
    bytes: usize,
    /// Whether a path, or all paths together, exceeded the limits of this module.
    pub(super) too_long: bool,
}

impl Paths {
    pub(super) fn new() -> Self {
        Paths {
            known: FxHashMap::default(),
            bytes: 0,
            too_long: false,
        }
    }

    /// Returns the index of a file's path in the caller's table of strings. `file` is the index of the file in the
    /// unit's line table. A new path is passed to `keep`, which stores it and returns its index.
    pub(super) fn get(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        file: u64,
        keep: impl FnOnce(&[u8]) -> u32,
    ) -> Option<u32> {
        if let Some(known) = self.known.get(&file) {
            return *known;
        }
        let path = unit
            .line_program
            .as_ref()
            .and_then(|program| path(dwarf, unit, program.header(), file));
        let path = path.filter(|path| {
            self.bytes = self.bytes.saturating_add(path.len());
            let fits = path.len() <= MAX_PATH && self.bytes <= MAX_PATHS_OF_UNIT;
            self.too_long |= !fits;
            fits
        });
        let kept = path.map(|path| keep(&path));
        self.known.insert(file, kept);
        kept
    }
}

/// Joins the unit's directory, the file's directory and the file's name. If one of these three is absolute, those
/// before it are left out.
fn path(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    header: &LineProgramHeader<Slice<'_>>,
    file: u64,
) -> Option<Vec<u8>> {
    let version = header.version();
    // DWARF 5 numbers files and directories from 0, older versions from 1.
    let at = |index: u64| {
        usize::try_from(if version >= 5 {
            index
        } else {
            index.checked_sub(1)?
        })
        .ok()
    };
    let entry = header.file_names().get(at(file)?)?;
    let name = dwarf.attr_string(unit, entry.path_name()).ok()?;
    if is_absolute(&name) {
        return Some(limited(&name));
    }
    let index = entry.directory_index();
    let directory = at(index)
        .and_then(|place| header.include_directories().get(place))
        .and_then(|directory| dwarf.attr_string(unit, *directory).ok())
        .map_or(&[][..], |directory| directory.slice());
    let mut path = Vec::new();
    if let Some(compilation) = &unit.comp_dir
        && (version < 5 || index != 0)
        && !is_absolute(directory)
    {
        append(&mut path, compilation.slice());
    }
    append(&mut path, directory);
    append(&mut path, &name);
    Some(path)
}

/// Copies a part of a path. A part that is too long is cut, but remains long enough to show that the whole path exceeds
/// the limit.
fn limited(part: &[u8]) -> Vec<u8> {
    part.get(..part.len().min(MAX_PATH + 1))
        .unwrap_or_default()
        .to_vec()
}

/// Appends a component to a path, with exactly one separator before it.
fn append(path: &mut Vec<u8>, component: &[u8]) {
    if component.is_empty() {
        return;
    }
    let mut component = component;
    if path.last() == Some(&b'/') {
        while let Some(rest) = component.strip_prefix(b"/") {
            component = rest;
        }
    } else if !path.is_empty() && component.first() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(&limited(component));
}

/// Whether a path is absolute by the rules of any operating system.
fn is_absolute(path: &[u8]) -> bool {
    match path {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_joined_by_one_separator() {
        let joined = |parts: &[&str]| {
            let mut path = Vec::new();
            parts
                .iter()
                .for_each(|part| append(&mut path, part.as_bytes()));
            String::from_utf8(path).unwrap_or_default()
        };
        assert_eq!(joined(&["/home", "src", "a.c"]), "/home/src/a.c");
        assert_eq!(joined(&["/home/", "/src", "", "a.c"]), "/home/src/a.c");
        assert_eq!(joined(&["", "", "a.c"]), "a.c");
    }

    #[test]
    fn absolute_is_what_any_system_says() {
        assert!(is_absolute(b"/a") && is_absolute(b"C:\\a") && is_absolute(b"c:/a"));
        assert!(!is_absolute(b"a/b") && !is_absolute(b"") && !is_absolute(b"C:a"));
    }
}
