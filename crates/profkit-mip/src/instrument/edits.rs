//! Insertions into a text, by offset.

/// Insertions, in any order; those at one offset appear in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Edits {
    list: Vec<(usize, Vec<u8>)>,
}

impl Edits {
    /// Inserts before the byte at an offset.
    pub(super) fn insert(&mut self, offset: usize, text: &[u8]) {
        self.list.push((offset, text.to_vec()));
    }

    /// The text with everything inserted.
    pub(super) fn apply(mut self, text: &[u8]) -> Vec<u8> {
        self.list.sort_by_key(|(offset, _)| *offset);
        let added: usize = self.list.iter().map(|(_, text)| text.len()).sum();
        let mut out = Vec::with_capacity(text.len() + added);
        let mut at = 0;
        for (offset, insertion) in &self.list {
            out.extend_from_slice(text.get(at..*offset).unwrap_or_default());
            out.extend_from_slice(insertion);
            at = *offset;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        out
    }
}
