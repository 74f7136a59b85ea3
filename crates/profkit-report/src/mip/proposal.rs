//! What the tool `llvm-mipdata` prints, which was proposed for LLVM together with MIP and never released.
use super::place;
use profkit_data::mip::{Function, FunctionId, MipProfile};
use std::io::{self, Write};

/// The number of blocks in a line.
const BLOCKS_PER_LINE: usize = 8;
const RED: &str = "\x1b[31m";
const CYAN: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// Prints the functions of a profile as `llvm-mipdata show` does. Names are those of the linker. If `coloured` is true,
/// blocks have colours.
pub fn show(
    profile: &MipProfile,
    wanted: &dyn Fn(&Function) -> bool,
    coloured: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for function in &profile.functions {
        if !wanted(function) {
            continue;
        }
        out.write_all(&function.name)?;
        writeln!(out)?;
        if let Some(frame) = profile.tables.frames(function.location).next() {
            writeln!(out, "  Source Info: {}", place(&frame))?;
        }
        writeln!(
            out,
            "  Call Count: {}",
            function.calls.max(function.called_runs)
        )?;
        if function.order_sum > 0 {
            writeln!(out, "  Order Sum: {}", function.order_sum)?;
        }
        if !function.blocks.is_empty() {
            write!(out, "  Block Coverage:")?;
            let others = function.blocks.iter().map(|block| block.runs > 0);
            let blocks = std::iter::once(function.is_covered()).chain(others);
            for (index, hot) in blocks.enumerate() {
                if index % BLOCKS_PER_LINE == 0 {
                    write!(out, "\n    ")?;
                }
                let (colour, text) = if hot { (RED, " HOT ") } else { (CYAN, " COLD") };
                match coloured {
                    true => write!(out, "{colour}{text}{PLAIN}")?,
                    false => write!(out, "{text}")?,
                }
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Prints the figures of a profile as `llvm-mipdata info` does.
pub fn info(profile: &MipProfile, out: &mut dyn Write) -> io::Result<()> {
    let runs = profile.functions.iter().map(|function| function.raw_runs);
    let (functions, covered) = profile.function_counts();
    // The list of blocks does not have the entries of functions.
    let (blocks, covered_blocks) = profile.block_counts();
    for (what, number) in [
        ("Total Raw Profile Count", runs.max().unwrap_or(0)),
        ("Total Machine Functions", functions),
        ("Profiled Machine Functions", covered),
        ("Total Machine Basic Blocks", functions + blocks),
        ("Covered Machine Basic Blocks", covered + covered_blocks),
        ("Total Call Edges", profile.edges.len() as u64),
    ] {
        writeln!(out, "{what}: {number}")?;
    }
    Ok(())
}

/// Prints the names of functions, one in a line, as `llvm-mipdata order` does.
pub fn names(profile: &MipProfile, order: &[FunctionId], out: &mut dyn Write) -> io::Result<()> {
    for &id in order {
        out.write_all(&profile.functions[id].name)?;
        writeln!(out)?;
    }
    Ok(())
}
