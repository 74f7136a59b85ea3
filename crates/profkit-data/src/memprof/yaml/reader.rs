//! Reads MemProf profiles from YAML.
use crate::memprof::block::{Field, MemInfoBlock};
use crate::memprof::data_access::{DataAccess, DataRecord, Datum};
use crate::memprof::profile::{AllocSite, CallSite, Frame, MemProfile, StackId, guid};
use crate::names::NAME_SEPARATOR;
use crate::yaml::{self, Events, Place, malformed, shown};
use crate::{Result, Structure};
use rustc_hash::FxHashSet;

/// Whether a text should be read as a MemProf profile. As in LLVM, every text that begins with `---` is read as one.
pub fn is_yaml(data: &[u8]) -> bool {
    data.starts_with(b"---")
}

/// Reads a profile.
///
/// # Errors
/// An error if the text is not YAML or not a MemProf profile. The error states the line and column.
pub fn parse(data: &[u8]) -> Result<MemProfile> {
    yaml::parse(data, Structure::MemProfYaml, document)
}

fn document(mut events: Events<'_>) -> Result<MemProfile> {
    let mut profile = MemProfile::default();
    events.mapping("the document", |events, key, _| {
        match key {
            "HeapProfileRecords" => {
                events.list("HeapProfileRecords", |events| record(events, &mut profile))?;
            }
            "DataAccessProfiles" => profile.data_access = Some(data_access(events)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    events.end()?;
    Ok(profile)
}

/// Reads a function: either the name of the function, or the hash of the name as a hexadecimal number with the prefix
/// `0x`. Returns the hash. `what` names the function in errors.
fn function(events: &mut Events<'_>, profile: &mut MemProfile, what: &'static str) -> Result<u64> {
    let scalar = events.scalar(what)?;
    let text = &*scalar.text;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits(text) {
        return Err(
            malformed(scalar.place, format!("{what} must not be a decimal number"))
                .found(shown(text))
                .expected("a hash with the prefix 0x, or the name of a function"),
        );
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16)
            .ok()
            .filter(|_| !hex.starts_with('+'))
            .ok_or_else(|| {
                malformed(
                    scalar.place,
                    format!("{what} is not a hexadecimal number of at most 64 bits"),
                )
                .found(shown(text))
            }),
        None => {
            let function = guid(text.as_bytes());
            let name = crate::memprof::canonical_name(text.as_bytes());
            profile
                .names
                .entry(function)
                .or_insert_with(|| name.to_vec());
            Ok(function)
        }
    }
}

fn record(events: &mut Events<'_>, profile: &mut MemProfile) -> Result<()> {
    let mut found = None;
    let mut alloc_sites = Vec::new();
    let mut call_sites = Vec::new();
    let place = events.mapping("a record", |events, key, _| {
        match key {
            "GUID" => found = Some(function(events, profile, "GUID")?),
            "AllocSites" => events.list("AllocSites", |events| {
                alloc_sites.push(alloc_site(events, profile)?);
                Ok(())
            })?,
            "CallSites" => events.list("CallSites", |events| {
                call_sites.push(call_site(events, profile)?);
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let function =
        found.ok_or_else(|| malformed(place, "a record has no function").expected("GUID"))?;
    let record = profile.record_mut(function);
    record.alloc_sites.append(&mut alloc_sites);
    record.call_sites.append(&mut call_sites);
    Ok(())
}

fn alloc_site(events: &mut Events<'_>, profile: &mut MemProfile) -> Result<AllocSite> {
    let (mut stack, mut block) = (None, None);
    let place = events.mapping("an allocation", |events, key, _| {
        match key {
            "Callstack" => stack = Some(frames(events, profile, "Callstack")?),
            "MemInfoBlock" => block = Some(mem_info_block(events)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |key: &'static str| malformed(place, "an allocation lacks a key").expected(key);
    Ok(AllocSite {
        stack: stack.ok_or_else(|| missing("Callstack"))?,
        block: block.ok_or_else(|| missing("MemInfoBlock"))?,
        histogram: Vec::new(),
    })
}

fn mem_info_block(events: &mut Events<'_>) -> Result<MemInfoBlock> {
    let mut block = MemInfoBlock::default();
    events.mapping("MemInfoBlock", |events, key, _| {
        let Some(field) = Field::ALL.into_iter().find(|field| field.name() == key) else {
            return Ok(false);
        };
        block.set(field, events.number(field.name(), field.max())?);
        Ok(true)
    })?;
    Ok(block)
}

fn call_site(events: &mut Events<'_>, profile: &mut MemProfile) -> Result<CallSite> {
    let mut stack = None;
    let mut callees = Vec::new();
    let place = events.mapping("a call site", |events, key, _| {
        match key {
            "Frames" => stack = Some(frames(events, profile, "Frames")?),
            "CalleeGuids" => events.list("CalleeGuids", |events| {
                callees.push(function(events, profile, "CalleeGuids")?);
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let stack =
        stack.ok_or_else(|| malformed(place, "a call site lacks a key").expected("Frames"))?;
    Ok(CallSite { stack, callees })
}

fn frames(
    events: &mut Events<'_>,
    profile: &mut MemProfile,
    what: &'static str,
) -> Result<StackId> {
    let mut stack = Vec::new();
    events.list(what, |events| {
        let frame = frame(events, profile)?;
        stack.push(profile.add_frame(frame));
        Ok(())
    })?;
    Ok(profile.add_stack(&stack))
}

fn frame(events: &mut Events<'_>, profile: &mut MemProfile) -> Result<Frame> {
    let mut read = Frame::default();
    let mut seen = [false; 4];
    const KEYS: [&str; 4] = ["Function", "LineOffset", "Column", "IsInlineFrame"];
    let place = events.mapping("a frame", |events, key, _| {
        match key {
            "Function" => read.function = function(events, profile, "Function")?,
            "LineOffset" => read.line_offset = events.number32("LineOffset")?,
            "Column" => read.column = events.number32("Column")?,
            "IsInlineFrame" => {
                let scalar = events.scalar("IsInlineFrame")?;
                read.is_inline = match &*scalar.text {
                    "true" | "True" | "TRUE" => true,
                    "false" | "False" | "FALSE" => false,
                    other => {
                        return Err(malformed(
                            scalar.place,
                            "IsInlineFrame is neither true nor false",
                        )
                        .found(shown(other))
                        .expected("true or false"));
                    }
                };
            }
            _ => return Ok(false),
        }
        let known = KEYS.iter().position(|known| *known == key);
        if let Some(seen) = known.and_then(|at| seen.get_mut(at)) {
            *seen = true;
        }
        Ok(true)
    })?;
    match KEYS.iter().zip(seen).find(|&(_, seen)| !seen) {
        Some((key, _)) => Err(malformed(place, "a frame lacks a key").expected(key)),
        None => Ok(read),
    }
}

fn data_access(events: &mut Events<'_>) -> Result<DataAccess> {
    let mut data = DataAccess::default();
    let mut sampled = FxHashSet::default();
    let mut cold = FxHashSet::default();
    events.mapping("DataAccessProfiles", |events, key, _| {
        match key {
            "SampledRecords" => events.list("SampledRecords", |events| {
                let (record, place) = data_record(events)?;
                if !sampled.insert(record.datum.clone()) {
                    return Err(malformed(place, "a symbol or literal has two records")
                        .expected("one record with the sum of both"));
                }
                data.records.push(record);
                Ok(())
            })?,
            "KnownColdSymbols" => events.list("KnownColdSymbols", |events| {
                let symbol = symbol(events)?;
                if cold.insert(Datum::Symbol(symbol.clone())) {
                    data.cold_symbols.push(symbol);
                }
                Ok(())
            })?,
            "KnownColdStrHashes" => events.list("KnownColdStrHashes", |events| {
                let hash = events.number("KnownColdStrHashes", u64::MAX)?;
                if cold.insert(Datum::Literal(hash)) {
                    data.cold_hashes.push(hash);
                }
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(data)
}

/// Reads the name of a symbol and removes its suffixes, as LLVM's writer of data accesses does.
fn symbol(events: &mut Events<'_>) -> Result<Vec<u8>> {
    let name = string(events, "a symbol")?;
    Ok(canonical_symbol(&name).to_vec())
}

/// Reads a string that a table of names can hold: the string must not be empty and must not contain the separator of
/// names. `what` names the string in errors.
fn string(events: &mut Events<'_>, what: &'static str) -> Result<Vec<u8>> {
    let scalar = events.scalar(what)?;
    let bytes = scalar.text.as_bytes();
    if bytes.is_empty() || bytes.contains(&NAME_SEPARATOR) {
        return Err(malformed(
            scalar.place,
            format!("{what} is empty or contains the character \\x01"),
        ));
    }
    Ok(bytes.to_vec())
}

/// Removes the suffixes of a symbol, as `InstrProfSymtab::getCanonicalName` does: everything from the first dot on. If
/// the symbol contains `.__uniq.`, everything from the first dot after `.__uniq.` is removed instead.
fn canonical_symbol(name: &[u8]) -> &[u8] {
    const UNIQ: &[u8] = b".__uniq.";
    let kept = name
        .windows(UNIQ.len())
        .position(|window| window == UNIQ)
        .map_or(0, |at| at + UNIQ.len());
    let rest = name.get(kept..).unwrap_or_default();
    match rest.iter().position(|&byte| byte == b'.') {
        Some(dot) if kept + dot > 0 => name.get(..kept + dot).unwrap_or(name),
        _ => name,
    }
}

fn data_record(events: &mut Events<'_>) -> Result<(DataRecord, Place)> {
    let (mut datum, mut count) = (None, None);
    let mut locations = Vec::new();
    let place = events.mapping("a sampled record", |events, key, _| {
        match key {
            "Symbol" => datum = Some(Datum::Symbol(symbol(events)?)),
            "Hash" => datum = Some(Datum::Literal(events.number("Hash", u64::MAX)?)),
            "AccessCount" => count = Some(events.number("AccessCount", u64::MAX)?),
            "Locations" => events.list("Locations", |events| {
                let mut location = (Vec::new(), 0);
                let at = events.mapping("a location", |events, key, _| {
                    match key {
                        "FileName" => {
                            location.0 = string(events, "FileName")?;
                        }
                        "Line" => location.1 = events.number32("Line")?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                if location.0.is_empty() {
                    return Err(malformed(at, "a location lacks a key").expected("FileName"));
                }
                locations.push(location);
                Ok(())
            })?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing =
        |key: &'static str| malformed(place, "a sampled record lacks a key").expected(key);
    let record = DataRecord {
        datum: datum.ok_or_else(|| missing("Symbol or Hash"))?,
        access_count: count.ok_or_else(|| missing("AccessCount"))?,
        locations,
    };
    Ok((record, place))
}
