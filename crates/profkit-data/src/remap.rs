//! Changes function names by LLVM's remapping file (`SymbolRemapper` in `llvm-profdata.cpp`).
use rustc_hash::FxHashMap;
use std::fmt;

/// A table that gives the new name for an old name.
#[derive(Clone, Debug, Default)]
pub struct Remapping {
    names: FxHashMap<Vec<u8>, Vec<u8>>,
}

/// The error for a wrong line in a remapping file: the line does not have the form `old_symbol new_symbol`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemappingError {
    /// The number of the wrong line, counted from 1.
    pub line: u64,
    /// The text of the wrong line.
    pub found: String,
}

impl fmt::Display for RemappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unexpected line in remapping file at line {}: found `{}`, expected `old_symbol new_symbol`",
            self.line, self.found
        )
    }
}

impl std::error::Error for RemappingError {}

impl Remapping {
    /// Parses a remapping file. Each line has two names with one space between them. Empty lines and lines that begin
    /// with `#` are skipped. If a name has several mappings, the first one is used.
    ///
    /// # Errors
    /// An error with the number and the text of the first line that does not consist of two names with one space
    /// between them.
    pub fn parse(text: &[u8]) -> Result<Self, RemappingError> {
        let mut names = FxHashMap::default();
        for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let mut parts = line.split(|&byte| byte == b' ');
            match (parts.next(), parts.next(), parts.next()) {
                (Some(old), Some(new), None) if !old.is_empty() && !new.is_empty() => {
                    names.entry(old.to_vec()).or_insert_with(|| new.to_vec());
                }
                _ => {
                    return Err(RemappingError {
                        line: number,
                        found: String::from_utf8_lossy(line).into_owned(),
                    });
                }
            }
        }
        Ok(Remapping { names })
    }

    /// Returns the new name of a function; `None` if the function keeps its name.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.names.get(name).map(Vec::as_slice)
    }

    /// Returns all pairs of an old name and its new name, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.names.iter().map(|(old, new)| (&**old, &**new))
    }

    /// The number of old names that have a new name.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the table has no mappings.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_per_line_with_comments_and_carriage_returns() {
        let remapping = Remapping::parse(b"# names\n\n_Z1fv _Z1gv\r\n_Z1fv _Z1hv\na b").unwrap();
        assert_eq!(remapping.get(b"_Z1fv"), Some(b"_Z1gv".as_slice()));
        assert_eq!(remapping.get(b"a"), Some(b"b".as_slice()));
        assert_eq!(remapping.get(b"c"), None);
        assert_eq!(remapping.len(), 2);
    }

    #[test]
    fn any_other_line_is_an_error_with_its_number() {
        for text in ["a b\nc", "a b\n c", "a b\nc ", "a b\nc  d", "a b\nc d e"] {
            assert_eq!(
                Remapping::parse(text.as_bytes()).unwrap_err().line,
                2,
                "{text}"
            );
        }
        insta::assert_snapshot!(Remapping::parse(b"#\nonly_one\n").unwrap_err(), @"unexpected line in remapping file at line 2: found `only_one`, expected `old_symbol new_symbol`");
    }
}
