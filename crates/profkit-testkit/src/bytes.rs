//! Builds binary files for tests. Offsets in a file can get names (labels).
use std::collections::BTreeMap;

/// The byte order of appended numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    /// The least significant byte comes first.
    #[default]
    Little,
    /// The most significant byte comes first.
    Big,
}

/// Builds a binary file field by field, or changes named fields of a good file. So a test can describe a malformed file
/// as a good file with one wrong field.
///
/// ```
/// use profkit_testkit::{ByteBuilder, Endian};
/// let mut file = ByteBuilder::new(Endian::Little);
/// file.u32(7).label("size").u64(0).label("body").bytes(b"abc").label("end");
/// let size = file.distance("body", "end");
/// file.patch_u64("size", size);
/// assert_eq!(file.finish(), b"\x07\0\0\0\x03\0\0\0\0\0\0\0abc");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ByteBuilder {
    endian: Endian,
    data: Vec<u8>,
    labels: BTreeMap<String, usize>,
}

impl ByteBuilder {
    /// Makes an empty file.
    pub fn new(endian: Endian) -> Self {
        ByteBuilder {
            endian,
            ..Self::default()
        }
    }

    /// Makes a builder that starts with the bytes of a good file.
    pub fn from_bytes(endian: Endian, data: impl Into<Vec<u8>>) -> Self {
        ByteBuilder {
            endian,
            data: data.into(),
            labels: BTreeMap::new(),
        }
    }

    /// Appends one byte to the file.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.data.push(value);
        self
    }

    /// Appends two bytes to the file, in its byte order.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.bytes(bytes)
    }

    /// Appends four bytes to the file, in its byte order.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.bytes(bytes)
    }

    /// Appends eight bytes to the file, in its byte order.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.bytes(bytes)
    }

    /// Appends bytes unchanged to the file.
    pub fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.data.extend_from_slice(bytes.as_ref());
        self
    }

    /// Appends zero bytes to the file.
    pub fn zeros(&mut self, count: usize) -> &mut Self {
        self.data.resize(self.data.len() + count, 0);
        self
    }

    /// Appends zero bytes up to the next multiple of `alignment`.
    pub fn align(&mut self, alignment: usize) -> &mut Self {
        self.data
            .resize(self.data.len().next_multiple_of(alignment), 0);
        self
    }

    /// Gives a name to the current end of the file.
    ///
    /// # Panics
    /// If the name is already used.
    pub fn label(&mut self, name: &str) -> &mut Self {
        let offset = self.data.len();
        self.label_at(name, offset)
    }

    /// Gives a name to an offset. Tests need this for files that were not built with this builder.
    ///
    /// # Panics
    /// If the name is already used, or the offset is beyond the end.
    pub fn label_at(&mut self, name: &str, offset: usize) -> &mut Self {
        assert!(
            offset <= self.data.len(),
            "label {name} lies beyond the end of the file"
        );
        let old = self.labels.insert(name.to_owned(), offset);
        assert!(old.is_none(), "label {name} is used twice");
        self
    }

    /// Returns the offset of a label.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn offset(&self, label: &str) -> usize {
        *self.labels.get(label).unwrap_or_else(|| {
            panic!(
                "there is no label {label}; the labels are {:?}",
                self.labels.keys()
            )
        })
    }

    /// Returns the number of bytes from one label to a later one.
    ///
    /// # Panics
    /// If a label is missing or `to` is before `from`.
    pub fn distance(&self, from: &str, to: &str) -> u64 {
        let distance = self.offset(to).checked_sub(self.offset(from));
        distance.unwrap_or_else(|| panic!("label {to} is before label {from}")) as u64
    }

    /// Overwrites bytes at a label.
    ///
    /// # Panics
    /// If there is no such label or the bytes do not fit.
    pub fn patch(&mut self, label: &str, bytes: impl AsRef<[u8]>) -> &mut Self {
        let (offset, bytes) = (self.offset(label), bytes.as_ref());
        self.data
            .get_mut(offset..offset + bytes.len())
            .unwrap_or_else(|| {
                panic!("the patch at label {label} reaches beyond the end of the file")
            })
            .copy_from_slice(bytes);
        self
    }

    /// Overwrites one byte at a label.
    ///
    /// # Panics
    /// The same as [`patch`](Self::patch).
    pub fn patch_u8(&mut self, label: &str, value: u8) -> &mut Self {
        self.patch(label, [value])
    }

    /// Overwrites two bytes at a label.
    ///
    /// # Panics
    /// The same as [`patch`](Self::patch).
    pub fn patch_u16(&mut self, label: &str, value: u16) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.patch(label, bytes)
    }

    /// Overwrites four bytes at a label.
    ///
    /// # Panics
    /// The same as [`patch`](Self::patch).
    pub fn patch_u32(&mut self, label: &str, value: u32) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.patch(label, bytes)
    }

    /// Overwrites eight bytes at a label.
    ///
    /// # Panics
    /// The same as [`patch`](Self::patch).
    pub fn patch_u64(&mut self, label: &str, value: u64) -> &mut Self {
        let bytes = self.ordered(value.to_le_bytes());
        self.patch(label, bytes)
    }

    /// Removes everything after a label.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn cut_at(&mut self, label: &str) -> &mut Self {
        let offset = self.offset(label);
        self.data.truncate(offset);
        self
    }

    /// The number of bytes in the file so far.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether the file is still empty.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the bytes of the finished file.
    pub fn finish(&self) -> Vec<u8> {
        self.data.clone()
    }

    fn ordered<const N: usize>(&self, mut little: [u8; N]) -> [u8; N] {
        if self.endian == Endian::Big {
            little.reverse();
        }
        little
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_byte_orders_and_patches() {
        let mut file = ByteBuilder::new(Endian::Big);
        file.u16(0x0102).label("here").u32(0).align(8).u64(1);
        file.patch_u32("here", 0x0304_0506);
        assert_eq!(
            file.finish(),
            [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        );
        assert_eq!(file.cut_at("here").finish(), [1, 2]);
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn a_patch_must_fit() {
        ByteBuilder::new(Endian::Little)
            .u8(1)
            .label("end")
            .patch_u8("end", 1);
    }
}
