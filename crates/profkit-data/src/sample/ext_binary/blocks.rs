//! Lists the blocks of composite sections with their types and sizes (LLVM's `--show-composite-info-only`).
use super::composite::{each_block, inlined_count};
use super::reader::ExtBinaryProfile;
use super::tables::Tables;
use crate::bytes::{Cursor, Endian};
use crate::sample::binary::body::location;
use crate::sample::report::ReadReport;
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::sample::section;

/// A block of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The type of the block; 0 for a block of samples.
    pub kind: u64,
    /// The size of the block's payload in bytes.
    pub size: u64,
}

/// A function of a composite section, and the blocks that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionBlocks {
    /// The name of the function, or the hash of the name as a decimal number. In profiles with calling contexts, the
    /// callers precede the name: `main:3 @ helper`.
    pub name: Vec<u8>,
    /// The nesting depth of inlining: 0 for a function at the top level, 1 for a function that is inlined into it, and
    /// so on.
    pub depth: usize,
    /// The blocks of the function, in the order of the file.
    pub blocks: Vec<Block>,
}

impl ExtBinaryProfile<'_> {
    /// Returns the functions of all composite sections in the order of the file, each before the functions that are
    /// inlined into it; `None` if the file has no composite section.
    pub fn blocks(&self) -> Result<Option<Vec<FunctionBlocks>>> {
        let mut report = ReadReport {
            kind: self.kind(),
            ..ReadReport::default()
        };
        let is_composite = |kind: u64| kind == section::COMPOSITE;
        if !self.sections().iter().any(|it| is_composite(it.kind)) {
            return Ok(None);
        }
        let mut functions = Vec::new();
        let mut read = Ok(());
        self.with_tables(&mut report, |tables, _| {
            let mut sections = self.sections().iter().filter(|it| is_composite(it.kind));
            read = sections.try_for_each(|section| {
                let (bytes, base) = self.bytes(section)?;
                let cursor = &mut Cursor::new(&bytes, base, Endian::Little);
                while !cursor.is_empty() {
                    function(tables, cursor, 0, &mut functions)
                        .map_err(|error| error.within(Structure::SampleSection(section.kind)))?;
                }
                Ok(())
            });
        });
        match report.faults.into_iter().find(|error| !is_doubt(error)) {
            Some(error) => Err(error),
            None => read.map(|()| Some(functions)),
        }
    }
}

/// Whether an error means that the reader does not know the meaning of some samples. The list of blocks is complete in
/// spite of such an error.
fn is_doubt(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

fn function(
    tables: &Tables<'_>,
    cursor: &mut Cursor<'_>,
    depth: usize,
    functions: &mut Vec<FunctionBlocks>,
) -> Result<()> {
    let at = cursor.offset();
    let number = cursor.uleb128()?;
    let name = tables.written_name(number, depth == 0).ok_or_else(|| {
        ErrorKind::OutOfTable
            .error("a function has a name or calling context beyond its table")
            .at(at)
            .found(number)
    })?;
    let mut blocks = Vec::new();
    each_block(cursor, |_, kind, payload| {
        let size = payload.remaining() as u64;
        blocks.push(Block { kind, size });
        Ok(())
    })?;
    functions.push(FunctionBlocks {
        name,
        depth,
        blocks,
    });
    for _ in 0..inlined_count(cursor, depth)? {
        location(cursor, false)?;
        function(tables, cursor, depth + 1, functions)?;
    }
    Ok(())
}
