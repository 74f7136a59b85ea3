//! Reads and writes profiles of version 8, layout B. This is the layout that the code of the original implementation
//! writes. The documentation of the original implementation describes a different layout.
use super::header::{Layout, MipKind};
use super::header_v8::HeaderV8;
use super::model::{Block, EntryKind, Function, Identity, MipProfile};
use crate::bytes::{Bytes, Cursor, Endian, Sink};
use crate::ids::NameRef;
use crate::{Error, ErrorKind, Result, Structure};
use memchr::memchr;
use rustc_hash::FxHashMap;

/// The size in bytes of a function without blocks, as the file stores it.
const FUNCTION: usize = 8 + 8 + 8 + 4 + 4 + 4 + 4 + 8 + 8 + 4;
const BLOCK: usize = 5;

pub(super) fn parse(data: &[u8]) -> Result<MipProfile> {
    let header = HeaderV8::parse(data, MipKind::Profile)?;
    if header.preamble.layout != Layout::V8B {
        return Err(Error::new(ErrorKind::Unsupported, "a profile of layout A is not supported: its only descriptions are drafts that contradict each other")
        .at(profkit_abi::mip::v8::header_a::OFFSET_TO_DATA as u64)
        .within(Structure::Header)
        .with_hint(
            "create the profile again from the map and the raw files",
        ));
    }
    let mut cursor = Cursor::new(data, 0, Endian::Little);
    cursor.take(header.size())?;
    let mut profile = MipProfile {
        identity: Identity::ModuleHash(header.module_hash),
        width: header.preamble.width,
        ..MipProfile::default()
    };
    let mut signatures = Vec::new();
    let count = cursor
        .u64()
        .map_err(|error| error.within(Structure::FunctionCount))?;
    let most = cursor.remaining() / FUNCTION;
    profile
        .functions
        .as_mut_vec()
        .reserve(usize::try_from(count).unwrap_or(most).min(most));
    for index in 0..count {
        let (function, signature) = read_function(&mut cursor, &header)
            .map_err(|error| error.within(Structure::FunctionNumber(index)))?;
        profile.runs = profile.runs.max(function.called_runs);
        profile.functions.push(function);
        signatures.push(signature);
    }
    // The file does not state how many runs the profile sums up. The number of runs that called a function is a lower
    // bound of this number. The largest of these lower bounds is used.
    for function in &mut profile.functions {
        function.raw_runs = profile.runs;
    }
    names(&mut cursor, profile.functions.as_mut_vec(), &signatures)
        .map_err(|error| error.within(Structure::Names))?;
    Ok(profile)
}

fn read_function(cursor: &mut Cursor<'_>, header: &HeaderV8) -> Result<(Function, u64)> {
    let signature = cursor.u64()?;
    let mut function = Function {
        modes: header.modes,
        record_offset: cursor.u64()?,
        address: cursor.u64()?,
        size: cursor.u32()?,
        signature: cursor.u32()?,
        ..Function::default()
    };
    let at = cursor.offset();
    let blocks = cursor.u32()? as usize;
    function.called_runs = u64::from(cursor.u32()?);
    function.calls = cursor.u64()?;
    function.order_sum = cursor.u64()?;
    let kind = header.modes.entry();
    if kind == Some(EntryKind::Coverage) {
        // If the record has plain coverage, the stored number of calls is 1 for an entered function and 0 otherwise.
        function.called_runs = function.called_runs.max(function.calls.min(1));
        function.calls = 0;
    }
    if function.order_sum > 0 {
        function.order_runs = function.called_runs;
    }
    let room = cursor.remaining() / BLOCK;
    if blocks > room {
        return Err(ErrorKind::Truncated
            .error("there are more blocks than the file has room for")
            .at(at)
            .found(blocks)
            .expected(format_args!("at most {room}")));
    }
    function.blocks.reserve(blocks);
    for _ in 0..blocks {
        let offset = cursor.u32()?;
        let at = cursor.offset();
        let covered = cursor.u8()?;
        if covered > 1 {
            return Err(ErrorKind::Malformed
                .error("a block's coverage is neither 0 nor 1")
                .at(at)
                .found(covered)
                .expected("0 or 1"));
        }
        function.blocks.push(Block {
            offset,
            runs: u64::from(covered),
        });
    }
    let at = cursor.offset();
    let edges = cursor.u32()?;
    if edges != 0 {
        return Err(ErrorKind::Unsupported
            .error("the profile has call edges, whose layout version 8 never defined")
            .at(at)
            .found(edges)
            .expected("0"));
    }
    Ok((function, signature))
}

fn names(cursor: &mut Cursor<'_>, functions: &mut [Function], signatures: &[u64]) -> Result<()> {
    let at = cursor.offset();
    let count = cursor.u64()?;
    let mut names = FxHashMap::default();
    for index in 0..count {
        let rest = cursor.rest();
        let Some(end) = memchr(0, rest) else {
            return Err(ErrorKind::Truncated
                .error("a name is not terminated")
                .at(cursor.offset())
                .found(format_args!("{index} whole names"))
                .expected(format_args!("{count} names, the number at offset {at:#x}")));
        };
        let name = cursor.take(end)?;
        cursor.u8()?;
        let NameRef(hash) = NameRef::of(name);
        names.insert(hash, name);
    }
    if !cursor.is_empty() {
        return Err(ErrorKind::Malformed
            .error("there are bytes after the names")
            .at(cursor.offset())
            .found(Bytes(cursor.remaining()))
            .expected("the end of the file"));
    }
    for (function, signature) in functions.iter_mut().zip(signatures) {
        let Some(name) = names.get(signature) else {
            return Err(ErrorKind::Malformed
                .error("no name has the hash that a function states")
                .at(at)
                .found(format_args!("the hash {signature:#018x}"))
                .expected("the hash of a name"));
        };
        function.name = name.to_vec();
    }
    Ok(())
}

/// Writes a profile in version 8. The profile must have been read from version 8 or made from a map of version 8.
pub(super) fn write(profile: &MipProfile, sink: &mut dyn Sink) -> Result<()> {
    let hash = match (&profile.identity, profile.section_address) {
        (Identity::ModuleHash(hash), None) => *hash,
        _ => {
            return Err(cannot("a build id").with_hint(
                "only a profile that was made from a version 8 map can be written as version 8",
            ));
        }
    };
    if !profile.edges.is_empty() {
        return Err(cannot("call edges"));
    }
    let modes = profile
        .functions
        .iter()
        .next()
        .map(|function| function.modes);
    let modes = modes.unwrap_or(super::model::Modes::FUNCTION_COVERAGE);
    if profile
        .functions
        .iter()
        .any(|function| function.modes != modes)
    {
        return Err(cannot("functions with different modes"));
    }
    if !matches!(modes.entry(), Some(EntryKind::Coverage | EntryKind::Calls)) {
        return Err(cannot("unary counters"));
    }
    sink.put(&HeaderV8::profile_bytes(modes, hash))?;
    sink.put(&(profile.functions.len() as u64).to_le_bytes())?;
    for function in &profile.functions {
        let NameRef(signature) = NameRef::of(&function.name);
        let blocks = u32::try_from(function.blocks.len()).map_err(|_| cannot("so many blocks"))?;
        let runs = u32::try_from(function.called_runs).map_err(|_| cannot("so many runs"))?;
        sink.put(&signature.to_le_bytes())?;
        sink.put(&function.record_offset.to_le_bytes())?;
        sink.put(&function.address.to_le_bytes())?;
        sink.put(&function.size.to_le_bytes())?;
        sink.put(&function.signature.to_le_bytes())?;
        sink.put(&blocks.to_le_bytes())?;
        sink.put(&runs.to_le_bytes())?;
        sink.put(&call_count(function).to_le_bytes())?;
        sink.put(&function.order_sum.to_le_bytes())?;
        for block in &function.blocks {
            sink.put(&block.offset.to_le_bytes())?;
            sink.put(&[u8::from(block.runs > 0)])?;
        }
        sink.put(&0u32.to_le_bytes())?;
    }
    let mut names: Vec<&[u8]> = profile
        .functions
        .iter()
        .map(|function| &function.name[..])
        .collect();
    names.sort_unstable();
    names.dedup();
    sink.put(&(names.len() as u64).to_le_bytes())?;
    for name in names {
        if name.contains(&0) {
            return Err(cannot("a name with a zero byte"));
        }
        sink.put(name)?;
        sink.put(&[0])?;
    }
    Ok(())
}

/// Returns the number of calls as version 8 stores it. With plain coverage the number is 1 if the function was entered,
/// otherwise 0.
pub(super) fn call_count(function: &Function) -> u64 {
    match function.modes.entry() {
        Some(EntryKind::Coverage) => u64::from(function.is_covered()),
        _ => function.calls,
    }
}

#[cold]
fn cannot(what: &'static str) -> Error {
    ErrorKind::CannotRepresent.error(format!("version 8 cannot hold {what}"))
}
