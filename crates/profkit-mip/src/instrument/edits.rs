//! Inserts and replaces parts of a text by offset.

/// Insertions and replacements in any order. Insertions at one offset keep theirs.
#[derive(Debug, Default)]
pub(super) struct Edits {
    list: Vec<Edit>,
}

#[derive(Debug)]
struct Edit {
    offset: usize,
    replaces: usize,
    text: Vec<u8>,
}

impl Edits {
    pub(super) fn insert(&mut self, offset: usize, text: &[u8]) {
        self.list.push(Edit {
            offset,
            replaces: 0,
            text: text.to_vec(),
        });
    }

    pub(super) fn replace(&mut self, offset: usize, end: usize, text: &[u8]) {
        self.list.push(Edit {
            offset,
            replaces: end.saturating_sub(offset),
            text: text.to_vec(),
        });
    }

    pub(super) fn apply(mut self, text: &[u8]) -> Vec<u8> {
        self.list
            .sort_by_key(|edit| (edit.offset, edit.replaces > 0));
        let added: usize = self.list.iter().map(|edit| edit.text.len()).sum();
        let mut out = Vec::with_capacity(text.len() + added);
        let mut at = 0;
        for edit in &self.list {
            out.extend_from_slice(text.get(at..edit.offset).unwrap_or_default());
            out.extend_from_slice(&edit.text);
            at = edit.offset + edit.replaces;
        }
        out.extend_from_slice(text.get(at..).unwrap_or_default());
        out
    }
}
