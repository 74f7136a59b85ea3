//! Fuzzes the reader of debug info.
use profkit_object::symbolize::{Inputs, Options, Symbolizer};

/// Symbolises many addresses of a binary, and then the same addresses in reverse order. Both must give the same stacks.
///
/// # Panics
/// If a stack has more frames than the whole result, or if the order of the addresses changes a stack.
pub(crate) fn symbolize(data: &[u8]) {
    let addresses: Vec<u64> = (0x1200..0x1400).chain([u64::MAX, 1 << 40]).collect();
    let reversed: Vec<u64> = addresses.iter().rev().copied().collect();
    for options in [Options::default(), Options::default().symbol_names(false)] {
        let inputs = Inputs::new(data).debug_file(Some(data)).package(Some(data));
        let Ok(symbolizer) = Symbolizer::new(&inputs, &options) else {
            return;
        };
        let (one, other) = (
            symbolizer.symbolize(&addresses),
            symbolizer.symbolize(&reversed),
        );
        for (index, mirrored) in (0..addresses.len()).zip((0..addresses.len()).rev()) {
            assert!(one.stack(index).take(one.frame_count() + 1).count() <= one.frame_count());
            assert!(
                one.stack(index).eq(other.stack(mirrored)),
                "address {:#x}",
                addresses[index]
            );
        }
    }
}
