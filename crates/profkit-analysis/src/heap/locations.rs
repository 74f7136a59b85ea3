//! Compares how many bytes source locations need in different forms.
use super::profile::HeapProfile;
use profkit_data::memprof::FrameId;
use profkit_data::tables::{Frame as TableFrame, StackFlags, Tables};
use std::borrow::Cow;

/// The size of the source locations of all contexts, for three ways to store them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LocationSizes {
    /// The number of call stacks.
    pub stacks: u64,
    /// The number of bytes in portable tables (`profkit_data::tables`).
    pub table_bytes: u64,
    /// The number of bytes if each frame is stored once, and a stack is a list of indexes of frames.
    pub frame_bytes: u64,
    /// The number of bytes if each frame of each stack is stored as plain text.
    pub plain_bytes: u64,
}

impl HeapProfile {
    /// The size of the source locations of all contexts; `None` if the file has none.
    pub fn location_sizes(&self) -> Option<LocationSizes> {
        sizes(self)
    }
}

/// Computes the size of the source locations for each of the three ways to store them. `None` if the profile has no
/// source locations.
fn sizes(heap: &HeapProfile) -> Option<LocationSizes> {
    let profile = &heap.profile;
    let locations = &profile.locations;
    if locations.is_empty() {
        return None;
    }
    let mut tables = Tables::default();
    let mut plain = 0usize;
    // Returns the size of one frame as plain text, in bytes.
    let text = |id: FrameId| {
        let frame = &profile.frames()[id];
        let name = heap.name(frame.function).map_or(0, <[u8]>::len);
        // A frame consists of the function and the file, each with one byte that ends it, and four bytes each for line
        // and column.
        Some(name + locations.get(frame)?.file.len() + 2 + 8)
    };
    let mut once: usize = profile.frames().ids().filter_map(text).sum();
    for stack in profile.stacks() {
        let mut frames = Vec::with_capacity(stack.len());
        for &id in stack.iter() {
            let frame = &profile.frames()[id];
            let Some(place) = locations.get(frame) else {
                if heap.binaries.contains_key(frame) {
                    continue;
                }
                return None;
            };
            let function = heap.name(frame.function).unwrap_or_default();
            plain += text(id)?;
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
        stacks: profile.stacks().len() as u64,
        table_bytes: (tables.strings.encoded_len()
            + tables.paths.encoded_len()
            + tables.stacks.encoded_len()) as u64
            + 4 * profile.stacks().len() as u64,
        frame_bytes: once as u64,
        plain_bytes: plain as u64,
    })
}
