//! What source locations cost.
use super::profile::HeapProfile;
use profkit_data::tables::{Frame as TableFrame, StackFlags, Tables};
use std::borrow::Cow;

/// What the source locations of all contexts take, in three forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocationSizes {
    /// How many call stacks there are.
    pub stacks: u64,
    /// Bytes in portable tables ([`profkit_data::tables`]).
    pub table_bytes: u64,
    /// Bytes with each frame once, and stacks as lists of their numbers.
    pub frame_bytes: u64,
    /// Bytes with each frame of each stack in plain text.
    pub plain_bytes: u64,
}

impl HeapProfile {
    /// What the source locations of all contexts take; `None` if the file has none.
    pub fn location_sizes(&self) -> Option<LocationSizes> {
        sizes(self)
    }
}

/// What the source locations of all contexts cost in portable tables, and as plain text.
fn sizes(heap: &HeapProfile) -> Option<LocationSizes> {
    let profile = &heap.profile;
    let locations = &heap.locations;
    if locations.is_empty() {
        return None;
    }
    let mut tables = Tables::default();
    let mut plain = 0usize;
    // Each frame once, stacks as lists of their numbers.
    let text = |number: usize| {
        let frame = profile.frames().get(number)?;
        let name = heap.name(frame.function).map_or(0, <[u8]>::len);
        // Function, file, and four bytes each for line and column.
        Some(name + locations.get(number)?.file.len() + 2 + 8)
    };
    let mut once: usize = (0..profile.frames().len()).filter_map(text).sum();
    for (_, stack) in profile.stacks() {
        let mut frames = Vec::with_capacity(stack.len());
        for &number in stack {
            let frame = profile.frames().get(number as usize)?;
            let place = locations.get(number as usize)?;
            let function = heap.name(frame.function).unwrap_or_default();
            plain += text(number as usize)?;
            frames.push(TableFrame {
                function,
                path: Some(Cow::Borrowed(place.file.as_slice())),
                line: place.line,
                column: place.column,
                flags: StackFlags::default(),
            });
        }
        once += 4 + 4 * stack.len();
        tables.intern_stack(&frames).ok()?;
    }
    Some(LocationSizes {
        stacks: profile.stack_count() as u64,
        table_bytes: (tables.strings.encoded_len()
            + tables.paths.encoded_len()
            + tables.stacks.encoded_len()) as u64
            + 4 * profile.stack_count() as u64,
        frame_bytes: once as u64,
        plain_bytes: plain as u64,
    })
}
