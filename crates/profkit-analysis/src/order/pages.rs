//! Computes how many pages of code the start of a program touches.
use profkit_data::mip::{Function, FunctionId, MipProfile};

/// The alignment of functions in a new layout, in bytes: compilers align functions to 16 bytes on x86-64.
const FUNCTION_ALIGN: u64 = 16;

/// The size of the called functions in bytes, and in pages before and after they are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The number of functions.
    pub functions: usize,
    /// The sum of the sizes of the called functions, in bytes.
    pub bytes: u64,
    /// The number of pages that contain bytes of the called functions in the layout of the linked binary.
    pub pages_before: u64,
    /// The number of pages that the called functions would need if they followed each other from the start of a page,
    /// each aligned to 16 bytes.
    pub pages_after: u64,
}

/// Computes the size of the functions in `order`: in bytes, in pages of the linked binary, and in pages if the
/// functions were placed in this order.
pub fn footprint(profile: &MipProfile, order: &[FunctionId], page_size: u64) -> Footprint {
    let page_size = page_size.max(1);
    let functions = || order.iter().map(|&id| &profile.functions[id]);
    let mut pages: Vec<(u64, u64)> = functions()
        .filter(|function| function.size > 0)
        .map(|function| pages_of(function, page_size))
        .collect();
    pages.sort_unstable();
    // The last page that was examined, and the number of touched pages up to that page.
    let (mut counted, mut pages_before) = (None, 0_u64);
    for (first, last) in pages {
        let from = counted.map_or(first, |counted: u64| first.max(counted.saturating_add(1)));
        if from <= last {
            pages_before = pages_before.saturating_add(last - from).saturating_add(1);
            counted = Some(last);
        }
    }
    let end = functions().fold(0_u64, |end, function| {
        end.next_multiple_of(FUNCTION_ALIGN)
            .saturating_add(function.size.into())
    });
    Footprint {
        functions: order.len(),
        bytes: functions().map(|function| u64::from(function.size)).sum(),
        pages_before,
        pages_after: end.div_ceil(page_size),
    }
}

/// Returns the first and the last page of a function. An address relative to a section may be negative (two's
/// complement).
fn pages_of(function: &Function, page_size: u64) -> (u64, u64) {
    let start = function.address.wrapping_add(1 << 63);
    let last = start.saturating_add(u64::from(function.size).saturating_sub(1));
    (start / page_size, last / page_size)
}
