//! Reads hashes in Eytzinger order. LLVM 24 can write name tables, the tables of offsets that belong to them,
//! and symbol lists in this order.
//!
//! Eytzinger order is the order of a complete binary search tree, read level by level: the root is the first element,
//! and the children of element `i` are elements `2i + 1` and `2i + 2`.
use super::sections::Section;
use crate::bytes::{Bytes, Cursor};
use crate::sample::binary::names::NameTable;
use crate::{Error, ErrorKind, Result};
use profkit_abi::sample::flag;

const HASH_LEN: u64 = 8;
/// The offset that the table states for a function without samples.
const NO_OFFSET: u32 = u32::MAX;

/// The sizes of the first two parts of a name table in Eytzinger order. Each part is a search tree of its own. The
/// third part has the names that no function at the top level has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spans {
    nested: u64,
    flat: u64,
}

/// Reads a name table in Eytzinger order: the sizes of its three parts, then their hashes. The indexes of names count
/// from the start of the first part, across all parts.
///
/// # Errors
/// An error if the sizes do not fit the bytes; no names are read then. Also an error if the hashes of a part are not in
/// Eytzinger order; all names are kept then, because their indexes do not depend on the order.
pub(super) fn read_names(cursor: &mut Cursor<'_>, names: &mut NameTable) -> Result<Spans> {
    let start = cursor.offset();
    let mut sizes = [0; 3];
    for size in &mut sizes {
        *size = cursor.uleb128()?;
    }
    let [nested, flat, inlined] = sizes;
    let all = nested
        .checked_add(flat)
        .and_then(|sum| sum.checked_add(inlined));
    let available = cursor.remaining() as u64;
    if all.and_then(|all| all.checked_mul(HASH_LEN)) != Some(available) {
        return Err(Error::new(
            ErrorKind::Malformed,
            "the name table has another size than its header states",
        )
        .at(start)
        .found(Bytes(available))
        .expected(format_args!(
            "{HASH_LEN} bytes for each of {nested} nested, {flat} flat and {inlined} inlined names"
        )));
    }
    let mut order = Ok(());
    for size in sizes {
        let part = cursor.window(size * HASH_LEN)?;
        order = order.and(check_order(part));
        names.read_hashes(part)?;
    }
    order.map(|()| Spans { nested, flat })
}

/// Reads the hashes of a symbol list, and calls `add` for each hash.
///
/// # Errors
/// If the bytes are not whole hashes, or the hashes are not in Eytzinger order.
pub(super) fn read_symbols(mut cursor: Cursor<'_>, mut add: impl FnMut(u64)) -> Result<()> {
    let len = cursor.remaining() as u64;
    let whole = cursor.window(len - len % HASH_LEN)?;
    let mut hashes = whole;
    while !hashes.is_empty() {
        add(hashes.u64()?);
    }
    if !cursor.is_empty() {
        return Err(ErrorKind::Truncated
            .error("the last hash is cut off")
            .at(cursor.offset())
            .found(Bytes(cursor.remaining()))
            .expected(format_args!("{HASH_LEN} bytes")));
    }
    check_order(whole)
}

/// Checks that hashes are in Eytzinger order, that is, that they ascend if the tree is read from left to right.
fn check_order(hashes: Cursor<'_>) -> Result<()> {
    let (words, _) = hashes.rest().as_chunks::<8>();
    let mut before = None;
    for index in in_order(words.len()) {
        let Some(&word) = words.get(index) else { break };
        let hash = u64::from_le_bytes(word);
        if before.is_some_and(|before| before >= hash) {
            return Err(ErrorKind::Malformed
                .error("the hashes are not in Eytzinger order")
                .at(hashes.offset() + index as u64 * HASH_LEN)
                .found(format_args!("{hash:#018x}"))
                .expected(format_args!("above {:#018x}", before.unwrap_or(0))));
        }
        before = Some(hash);
    }
    Ok(())
}

/// Returns the positions of the `len` elements of a tree in Eytzinger order, beginning with the position of the
/// smallest element.
pub(super) fn in_order(len: usize) -> impl Iterator<Item = usize> {
    let leftmost = move |mut index: usize| {
        while let Some(child) = child(index).filter(|&child| child < len) {
            index = child;
        }
        index
    };
    let mut next = (len > 0).then(|| leftmost(0));
    std::iter::from_fn(move || {
        let index = next?;
        let right = child(index).and_then(|left| left.checked_add(1));
        next = match right.filter(|&right| right < len) {
            Some(right) => Some(leftmost(right)),
            None => {
                // The element has no right child. Go up while the current element is a right child, which has an even
                // position. The next element is the parent of the element where this ends.
                let mut up = index;
                while up != 0 && up % 2 == 0 {
                    up = (up - 1) / 2;
                }
                up.checked_sub(1).map(|up| up / 2)
            }
        };
        Some(index)
    })
}

fn child(index: usize) -> Option<usize> {
    index.checked_mul(2)?.checked_add(1)
}

/// Reads the table of offsets that belongs to a name table in Eytzinger order: an array with one offset for each
/// function. Returns, for each function with samples, the index of its name and its offset in the samples.
///
/// # Errors
/// An error if the name table is damaged or not in Eytzinger order (`spans` is `None`), if the array does not have one
/// element for each function, or if an offset is not below `samples`, the length of the section of samples.
pub(super) fn read_offsets(
    section: &Section,
    mut cursor: Cursor<'_>,
    spans: Option<Spans>,
    samples: usize,
) -> Result<Vec<(u64, u64)>> {
    let start = cursor.offset();
    let bad = |message: &'static str| ErrorKind::Malformed.error(message).at(start);
    let Some(Spans { nested, flat }) = spans else {
        return Err(
            bad("the table of offsets belongs to a name table in Eytzinger order")
                .found("a name table that is damaged or has another order"),
        );
    };
    let len = cursor.remaining() as u64;
    // In the split layout there are two sections of samples, and each has a table with the functions of one part of the
    // name table. Without the split layout, one table has the functions of both parts.
    let (first, functions) = match (section.has(flag::FLAT), len / 4 == nested) {
        (true, _) => (nested, flat),
        (false, true) => (0, nested),
        (false, false) => (0, nested + flat),
    };
    if len != 4 * functions {
        return Err(
            bad("the table of offsets does not have one offset per function")
                .found(Bytes(len))
                .expected(format_args!("4 bytes for each of {functions} functions")),
        );
    }
    let mut offsets = Vec::new();
    for number in first..first + functions {
        let at = cursor.offset();
        let offset = cursor.u32()?;
        if offset == NO_OFFSET {
            continue;
        }
        if u64::from(offset) >= samples as u64 {
            return Err(beyond_samples(at, offset.into(), samples));
        }
        offsets.push((number, offset.into()));
    }
    Ok(offsets)
}

#[cold]
pub(super) fn beyond_samples(at: u64, offset: u64, samples: usize) -> Error {
    ErrorKind::Malformed
        .error("a function's offset is beyond the samples")
        .at(at)
        .found(format_args!("{offset:#x}"))
        .expected(format_args!("below {samples:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_walked_from_left_to_right() {
        for len in 0..70 {
            let mut tree = vec![None; len];
            for (rank, index) in in_order(len).enumerate() {
                assert_eq!(tree[index].replace(rank), None, "visited once");
            }
            for (index, rank) in tree.iter().enumerate() {
                assert!(rank.is_some(), "{len} elements: {index} is not visited");
                if let Some(left) = tree.get(2 * index + 1) {
                    assert!(left < rank);
                }
                if let Some(right) = tree.get(2 * index + 2) {
                    assert!(right > rank);
                }
            }
        }
    }
}
