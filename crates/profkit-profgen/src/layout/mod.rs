//! The order of basic blocks and functions, computed from sampled branches. The results are the inputs of
//! `-fbasic-block-sections=list=` (clang) and `--symbol-ordering-file` (lld), as Propeller makes them.
//!
//! The steps are: [`CodeMap::read`] finds the basic blocks of a program. [`Flow::new`] counts how often control went
//! from one block to another. [`Layout::new`] orders the blocks of each function, so that code that runs in sequence is
//! placed in sequence (extended TSP), and orders the functions, so that callers are near their callees.
//! [`Layout::cc_profile`] and [`Layout::ld_profile`] write the results.
//!
//! The algorithms are described in the sources of google/autofdo and google/llvm-propeller, and in the paper "Improved
//! Basic Block Reordering" by Newell and Pupyrev (2020).
mod chains;
mod code;
mod files;
mod flow;
mod functions;
mod mip;
mod select;

pub use code::{CodeMap, LeftOut, MappedFunction};
pub use flow::{Flow, FlowLosses};
pub use functions::FunctionOrder;
pub use mip::by_calls;
pub use select::counts_of;

use chains::{BlockSize, Jump, order_blocks, score};
use profkit_data::{Error, ErrorKind, Result};

/// How code is ordered.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LayoutOptions {
    /// The order of functions.
    pub functions: FunctionOrder,
}

/// The order of the blocks of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionLayout {
    /// The index of the function in [`CodeMap::functions`].
    pub function: usize,
    /// The blocks that ran, in the new order, as indices of the function's blocks. The entry is the first.
    pub hot: Vec<usize>,
    /// The number of blocks that did not run. They are placed in a section of their own.
    pub cold: usize,
    /// How often the function was entered in the samples.
    pub entered: u64,
    /// The extended-TSP score of the blocks that ran, in the order of the program.
    pub score_before: f64,
    /// The extended-TSP score of the blocks that ran, in the new order.
    pub score_after: f64,
}

/// The new order of a program's code.
#[derive(Clone, Debug)]
pub struct Layout<'code> {
    code: &'code CodeMap,
    /// The functions that ran, sorted by address.
    pub functions: Vec<FunctionLayout>,
    /// The new order of the functions, as indices of [`functions`](Self::functions).
    pub order: Vec<usize>,
    /// The numbers of branches and ranges that were left out.
    pub losses: FlowLosses,
}

/// With more branches into the middle of blocks, in percent, the program is not the recorded one; processors record a
/// few.
const MOST_INTO_MIDDLE: u64 = 30;
/// With more ranges that do not follow the blocks, in percent, the program is not the recorded one.
const MOST_BROKEN: u64 = 10;
/// If fewer than one in this many branches touches a known block, the program is not the recorded one.
const FEWEST_MAPPED: u64 = 2000;

impl<'code> Layout<'code> {
    /// The code that is ordered.
    pub fn code(&self) -> &'code CodeMap {
        self.code
    }

    /// Orders the code of a program.
    ///
    /// # Errors
    /// [`ErrorKind::Empty`] if no branch of the program was sampled. [`ErrorKind::CannotCorrelate`] if the branches do
    /// not fit the blocks of the program, because another build of it was recorded.
    pub fn new(code: &'code CodeMap, flow: &Flow, options: LayoutOptions) -> Result<Self> {
        // After this check, at least one branch begins or ends in a known block, so at least one function ran.
        check(flow)?;
        let functions: Vec<FunctionLayout> = (0..code.functions.len())
            .filter_map(|function| lay_out(code, flow, function))
            .collect();
        let order = functions::order(code, flow, &functions, options.functions);
        Ok(Layout {
            code,
            functions,
            order,
            losses: flow.losses,
        })
    }
}

fn check(flow: &Flow) -> Result<()> {
    let losses = &flow.losses;
    if losses.branches == 0 {
        return Err(
            Error::new(ErrorKind::Empty, "no branch of the program was recorded")
                .with_hint("record with branch stacks: `perf record -b`"),
        );
    }
    let percent = |part: u64| u128::from(part) * 100 / u128::from(losses.branches);
    let known = losses.branches - losses.outside.min(losses.branches);
    let other = |what: String, expected: String| {
        Err(Error::new(ErrorKind::CannotCorrelate, what)
            .expected(expected)
            .with_hint("give the very program that was recorded; after a new build, record again"))
    };
    let too_many = |part: u64, whole: u64, most: u64| {
        u128::from(part) * 100 > u128::from(most) * u128::from(whole)
    };
    if too_many(losses.into_middle, known, MOST_INTO_MIDDLE)
        || too_many(losses.broken_ranges, losses.ranges, MOST_BROKEN)
    {
        return other(
            format!(
                "the recording does not fit the program: branches into the middle of basic blocks: {} of {known}; runs of \
                 code between two branches that do not follow the blocks: {} of {}",
                losses.into_middle, losses.broken_ranges, losses.ranges
            ),
            format!("at most {MOST_INTO_MIDDLE} % and {MOST_BROKEN} %"),
        );
    }
    if known < losses.branches / FEWEST_MAPPED || known == 0 {
        return other(
            format!(
                "the recording does not fit the program: {} % of the branches begin and end outside of the functions whose blocks the program describes",
                percent(losses.outside)
            ),
            "branches in the functions of its section .llvm_bb_addr_map".to_owned(),
        );
    }
    Ok(())
}

/// Orders the blocks of a function. `None` if it did not run.
fn lay_out(code: &CodeMap, flow: &Flow, function: usize) -> Option<FunctionLayout> {
    let mapped = code.functions.get(function)?;
    let first = mapped.first;
    let weight = |block: usize| flow.weights.get(first + block).copied().unwrap_or(0);
    let blocks = mapped.blocks.len();
    if (0..blocks).all(|block| weight(block) == 0) {
        return None;
    }
    let pads = mapped.blocks.iter().zip(0..);
    // LLVM requires all landing pads of a function to be in one section.
    let any_pad = pads
        .clone()
        .any(|(block, index)| block.flags.is_landing_pad() && weight(index) > 0);
    let hot: Vec<usize> = pads
        .filter(|(block, index)| {
            *index == 0 || weight(*index) > 0 || any_pad && block.flags.is_landing_pad()
        })
        .map(|(_, index)| index)
        .collect();
    let sizes: Vec<BlockSize> = hot
        .iter()
        .filter_map(|&block| {
            let size = mapped.blocks.get(block)?.size;
            Some(BlockSize {
                size,
                weight: weight(block),
            })
        })
        .collect();
    // The position of a block in the list of hot blocks.
    let rank = |block: usize| hot.binary_search(&block).ok();
    let jumps: Vec<Jump> = flow
        .jumps_within(first, blocks)
        .filter_map(|edge| {
            Some(Jump {
                from: rank(edge.from - first)?,
                to: rank(edge.to - first)?,
                weight: edge.weight,
                call: edge.kind == flow::Kind::Call,
            })
        })
        .collect();
    let order = order_blocks(&sizes, &jumps);
    let before: Vec<usize> = (0..hot.len()).collect();
    Some(FunctionLayout {
        function,
        cold: blocks - hot.len(),
        entered: flow.entered.get(first).copied().unwrap_or(0),
        score_before: score(&sizes, &jumps, &before),
        score_after: score(&sizes, &jumps, &order),
        hot: order
            .into_iter()
            .filter_map(|rank| hot.get(rank).copied())
            .collect(),
    })
}

#[cfg(test)]
mod tests;
