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
    /// The number of pages before that contain bytes of the hottest functions, which together have 99 % of all calls: how
    /// many pages the processor must be able to address at a time. `None` if calls are not counted.
    pub hot_pages_before: Option<u64>,
    /// The number of such pages in the new order.
    pub hot_pages_after: Option<u64>,
}

/// The share of all calls that the hottest functions have, in percent.
const HOT_PERCENT: u128 = 99;

/// Computes the size of the functions in `order`: in bytes, in pages of the linked binary, and in pages if the
/// functions were placed in this order.
pub fn footprint(profile: &MipProfile, order: &[FunctionId], page_size: u64) -> Footprint {
    let page_size = page_size.max(1);
    let functions = || order.iter().map(|&id| &profile.functions[id]);
    let pages = functions()
        .filter(|function| function.size > 0)
        .map(|function| pages_of(function, page_size))
        .collect();
    let pages_before = distinct(pages);
    let end = functions().fold(0_u64, |end, function| {
        end.next_multiple_of(FUNCTION_ALIGN)
            .saturating_add(function.size.into())
    });
    let hot = hot_pages(profile, order, page_size);
    Footprint {
        functions: order.len(),
        bytes: functions().map(|function| u64::from(function.size)).sum(),
        pages_before,
        pages_after: end.div_ceil(page_size),
        hot_pages_before: hot.map(|(before, _)| before),
        hot_pages_after: hot.map(|(_, after)| after),
    }
}

/// The number of pages of the hottest functions, before and after. `None` if there are no calls.
fn hot_pages(profile: &MipProfile, order: &[FunctionId], page_size: u64) -> Option<(u64, u64)> {
    let mut start = 0_u64;
    // For each function, its calls, its pages before and after, and its address, so that the choice among functions with
    // equal calls does not depend on the order.
    let mut placed = Vec::with_capacity(order.len());
    for &id in order {
        let function = &profile.functions[id];
        start = start.next_multiple_of(FUNCTION_ALIGN);
        let end = start.saturating_add(function.size.into());
        let last = end.saturating_sub(1).max(start);
        let after = (start / page_size, last / page_size);
        let before = pages_of(function, page_size);
        placed.push((function.calls, before, after, function.address));
        start = end;
    }
    placed.sort_by_key(|&(calls, _, _, address)| (std::cmp::Reverse(calls), address));
    let all: u128 = placed.iter().map(|&(calls, ..)| u128::from(calls)).sum();
    if all == 0 {
        return None;
    }
    let mut sum = 0_u128;
    let hot = placed.iter().take_while(|&&(calls, ..)| {
        let is_needed = sum * 100 < all * HOT_PERCENT;
        sum += u128::from(calls);
        is_needed
    });
    let (before, after) = hot.map(|&(_, before, after, _)| (before, after)).unzip();
    Some((distinct(before), distinct(after)))
}

/// The number of pages in ranges that may overlap. A range has its first and last page.
fn distinct(mut pages: Vec<(u64, u64)>) -> u64 {
    pages.sort_unstable();
    // The last page that was examined, and the number of touched pages up to that page.
    let (mut counted, mut sum) = (None, 0_u64);
    for (first, last) in pages {
        let from = counted.map_or(first, |counted: u64| first.max(counted.saturating_add(1)));
        if from <= last {
            sum = sum.saturating_add(last - from).saturating_add(1);
            counted = Some(last);
        }
    }
    sum
}

/// Returns the first and the last page of a function. An address relative to a section may be negative (two's
/// complement).
fn pages_of(function: &Function, page_size: u64) -> (u64, u64) {
    let start = function.address.wrapping_add(1 << 63);
    let last = start.saturating_add(u64::from(function.size).saturating_sub(1));
    (start / page_size, last / page_size)
}
