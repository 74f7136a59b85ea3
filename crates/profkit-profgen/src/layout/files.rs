//! The output files that compilers and linkers read.
use super::{FunctionLayout, Layout};
use crate::layout::MappedFunction;
use std::io::Write as _;

/// Only LLVM 17 and later write these block maps, and can read version 1 of the list for
/// `-fbasic-block-sections=list=`.
const LIST_1: u8 = 2;

impl Layout<'_> {
    fn parts(&self) -> impl Iterator<Item = (&FunctionLayout, &MappedFunction)> {
        self.functions.iter().filter_map(|layout| {
            let function = self.code.functions.get(layout.function)?;
            Some((layout, function))
        })
    }

    /// The list for `-fbasic-block-sections=list=`, in version 0 (LLVM 13 to 16) or 1: the blocks that ran, in their
    /// order. With `verbose`, comments state the scores.
    pub fn cc_profile(&self, verbose: bool) -> Vec<u8> {
        let old = self.code.version < LIST_1;
        let mut out = Vec::new();
        if !old {
            out.extend_from_slice(b"v1\n");
        }
        for (layout, function) in self.parts() {
            if verbose {
                // Writing to memory does not fail.
                let _ = writeln!(
                    out,
                    "#ext-tsp score: [intra: {:.1} -> {:.1}]",
                    layout.score_before, layout.score_after
                );
                let _ = writeln!(out, "#entry-freq {}", layout.entered);
            }
            let separator: &[u8] = if old { b"/" } else { b" " };
            out.extend_from_slice(if old { b"!" } else { b"f " });
            out.extend_from_slice(&function.names.join(separator));
            out.extend_from_slice(if old { b"\n!!" } else { b"\nc " });
            let ids = layout
                .hot
                .iter()
                .filter_map(|&block| function.blocks.get(block));
            let ids: Vec<String> = ids.map(|block| block.id.to_string()).collect();
            out.extend_from_slice(ids.join(" ").as_bytes());
            out.push(b'\n');
        }
        out
    }

    /// The list for lld's `--symbol-ordering-file`: the functions that ran, then their parts that did not.
    pub fn ld_profile(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let layouts = || {
            self.order.iter().filter_map(|&index| {
                let layout = self.functions.get(index)?;
                Some((layout, self.code.functions.get(layout.function)?))
            })
        };
        for (_, function) in layouts() {
            for name in &function.names {
                out.extend_from_slice(name);
                out.push(b'\n');
            }
        }
        for (_, function) in layouts().filter(|(layout, _)| layout.cold > 0) {
            for name in &function.names {
                out.extend_from_slice(name);
                out.extend_from_slice(b".cold\n");
            }
        }
        out
    }
}
