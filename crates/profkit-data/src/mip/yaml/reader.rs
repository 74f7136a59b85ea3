//! Reads MIP profiles from YAML.
use super::super::inference::Inference;
use super::super::model::{
    Block, CallEdge, EntryKind, Function, FunctionId, Identity, MipProfile, Modes, Width,
};
use super::super::profile::ProfileVersion;
use crate::ids::{BuildId, NameRef};
use crate::tables::{Frame, StackFlags};
use crate::yaml::{self, Events, Place, malformed, shown};
use crate::{ErrorKind, Result, Structure};
use std::borrow::Cow;

/// Reads a profile. Also returns the version of its YAML dialect.
///
/// # Errors
/// An error if the text is not YAML or not a profile. The error states the line and column.
pub fn parse(data: &[u8]) -> Result<(MipProfile, ProfileVersion)> {
    yaml::parse(data, Structure::MipYaml, document)
}

struct Document {
    profile: MipProfile,
    version: ProfileVersion,
    modes: Modes,
    edges: Vec<CallEdge>,
    /// The callers of the call edges, as the text states them. They are looked up in the profile after all functions
    /// were read.
    callers: Vec<Caller>,
}

/// The caller of a call edge, as the text states it.
struct Caller {
    edge: usize,
    number: u32,
    name: Option<Vec<u8>>,
    place: Place,
}

fn document(mut events: Events<'_>) -> Result<(MipProfile, ProfileVersion)> {
    let mut document = Document {
        profile: MipProfile {
            identity: Identity::ModuleHash(0),
            ..MipProfile::default()
        },
        version: ProfileVersion::V8,
        modes: Modes::default(),
        callers: Vec::new(),
        edges: Vec::new(),
    };
    let mut header = false;
    let mut profiles = false;
    let start = events.mapping("the document", |events, key, place| {
        match key {
            "Header" if profiles => {
                return Err(malformed(place, "the header comes after the profiles"));
            }
            "Header" => {
                header = true;
                document.header(events)?;
            }
            "Profiles" => {
                profiles = true;
                if !header {
                    return Err(malformed(place, "there is no header before the profiles"));
                }
                events.list("Profiles", |events| document.function(events))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !header || !profiles {
        let missing = if header { "Profiles" } else { "Header" };
        return Err(malformed(start, "a key is missing").expected(missing));
    }
    events.end()?;
    document.finish()
}

impl Document {
    fn header(&mut self, events: &mut Events<'_>) -> Result<()> {
        let mut identity = false;
        let mut kind = false;
        let start = events.mapping("Header", |events, key, _| {
            match key {
                "Version" => {
                    let scalar = events.scalar("Version")?;
                    self.version = match &*scalar.text {
                        "8" => ProfileVersion::V8,
                        "9" => ProfileVersion::V9,
                        other => {
                            return Err(malformed(scalar.place, "the version is not supported")
                                .found(shown(other))
                                .expected("8 or 9"));
                        }
                    };
                }
                "File Type" => {
                    kind = true;
                    self.file_type(events)?;
                }
                "Profile Type" => self.modes = modes(events)?,
                "Module Hash" => {
                    identity = true;
                    self.profile.identity = Identity::ModuleHash(events.number32("Module Hash")?);
                }
                "Build Id" if self.version == ProfileVersion::V9 => {
                    identity = true;
                    self.profile.identity = Identity::BuildId(build_id(events)?);
                }
                "Raw Section Address" if self.version == ProfileVersion::V9 => {
                    let address = events.number("Raw Section Address", u64::MAX)?;
                    self.profile.section_address = Some(address);
                }
                "Raw Section Size" if self.version == ProfileVersion::V9 => {
                    let size = events.number("Raw Section Size", u64::MAX - 1)?;
                    self.profile.section_size = Some(size);
                }
                "Run Count" if self.version == ProfileVersion::V9 => {
                    self.profile.runs = events.number("Run Count", u64::MAX)?
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if !identity || !kind {
            let missing = if kind {
                "Module Hash or Build Id"
            } else {
                "File Type"
            };
            return Err(malformed(start, "a key of Header is missing").expected(missing));
        }
        Ok(())
    }

    fn file_type(&mut self, events: &mut Events<'_>) -> Result<()> {
        let mut profile = false;
        events.list("File Type", |events| {
            let scalar = events.scalar("File Type")?;
            match &*scalar.text {
                ".mip" => profile = true,
                "64 bit" => self.profile.width = Some(Width::Bits64),
                "32 bit" => self.profile.width = Some(Width::Bits32),
                other => {
                    return Err(malformed(scalar.place, "File Type has an unknown value")
                        .found(shown(other))
                        .expected(".mip, 64 bit or 32 bit"));
                }
            }
            Ok(())
        })?;
        if !profile {
            return Err(ErrorKind::Malformed
                .error("File Type is not the type of a profile")
                .at_line(1, 1)
                .expected(".mip"));
        }
        Ok(())
    }

    fn function(&mut self, events: &mut Events<'_>) -> Result<()> {
        let callee = self.profile.functions.next_id();
        let nine = self.version == ProfileVersion::V9;
        let mut function = Function {
            modes: self.modes,
            ..Function::default()
        };
        let mut name = false;
        let mut signature = None;
        let mut lists = Vec::new();
        let start = events.mapping("a function", |events, key, place| {
            match key {
                "Function Name" => {
                    name = true;
                    function.name = events.bytes("Function Name")?;
                }
                "Function Signature" => {
                    signature = Some((events.number("Function Signature", u64::MAX)?, place));
                }
                "Profile Type" if nine => function.modes = modes(events)?,
                "Raw Profile Data Address" => {
                    function.record_offset = events.number("Raw Profile Data Address", u64::MAX)?;
                }
                "Encoded Function Address" if self.profile.section_address.is_none() => {
                    function.address = events.number("Encoded Function Address", u64::MAX)?;
                }
                "Function Address" if self.profile.section_address.is_some() => {
                    function.address = events.number("Function Address", u64::MAX)?;
                }
                "Function Size" => function.size = events.number32("Function Size")?,
                "Control Flow Graph Signature" => {
                    function.signature = events.number32("Control Flow Graph Signature")?;
                }
                "Run Count" if nine => {
                    function.raw_runs = events.number("Run Count", u64::MAX)?;
                }
                "Raw Profile Count" => {
                    let most = if nine { u64::MAX } else { u32::MAX.into() };
                    function.called_runs = events.number("Raw Profile Count", most)?;
                }
                "Function Call Count" => {
                    function.calls = events.number("Function Call Count", u64::MAX)?;
                }
                "Function Call Count Is Lower Bound" if nine => {
                    function.calls_at_least = truth(events, "Function Call Count Is Lower Bound")?;
                }
                "Function Order Sum" => {
                    function.order_sum = events.number("Function Order Sum", u64::MAX)?;
                }
                "Function Order Count" if nine => {
                    function.order_runs = events.number("Function Order Count", u64::MAX)?;
                }
                "Function Order Minimum" if nine => {
                    let minimum =
                        events.number("Function Order Minimum", u64::from(u32::MAX) - 1)?;
                    function.order_min = u32::try_from(minimum).ok();
                }
                "Basic Block Profiles" => {
                    lists = blocks(events, nine, place, &mut function.blocks)?;
                }
                "Call Edges" => events.list("Call Edges", |events| self.edge(events, callee))?,
                "Source Info" if nine => function.location = self.source(events)?,
                // YAML of version 8 has a source location for each function. The location is skipped, because a version
                // 8 profile has no source locations.
                "Source Info" => {
                    events.mapping("Source Info", |events, key, _| {
                        events.scalar("Source Info")?;
                        Ok(matches!(key, "File Name" | "Function Name" | "Line"))
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if !name {
            return Err(
                malformed(start, "a key of a function is missing").expected("Function Name")
            );
        }
        let expected = NameRef::of(&function.name);
        if let Some((found, place)) = signature
            && NameRef(found) != expected
        {
            return Err(
                malformed(place, "Function Signature is not the hash of the name")
                    .found(NameRef(found))
                    .expected(expected),
            );
        }
        if function.modes.entry().is_none() {
            return Err(malformed(
                start,
                "the parts of Profile Type are not a valid combination",
            )
            .expected("Function Coverage, or Function Timestamp and Function Call Count"));
        }
        if function.modes.contains(Modes::INFERRED) {
            let inference = Inference::new(lists.iter().map(Vec::as_slice));
            inference
                .check(function.blocks.len(), function.modes)
                .map_err(|error| {
                    let found = malformed(start, "the blocks of a function are inferred wrongly");
                    found.found(error.message())
                })?;
            function.inference = Some(Box::new(inference));
        } else if lists.iter().any(|list| !list.is_empty()) {
            return Err(malformed(
                start,
                "a block of a function without inferred blocks is inferred",
            )
            .expected("Inferred Blocks in Profile Type, or no Inferred From"));
        }
        if !nine {
            if function.modes.entry() == Some(EntryKind::Coverage) {
                function.called_runs = function.called_runs.max(function.calls.min(1));
                function.calls = 0;
            }
            if function.order_sum > 0 {
                function.order_runs = function.called_runs;
            }
        }
        self.profile.functions.push(function);
        Ok(())
    }

    fn edge(&mut self, events: &mut Events<'_>, callee: FunctionId) -> Result<()> {
        let mut caller = None;
        let mut edge = CallEdge {
            caller: None,
            call_site: 0,
            callee,
            weight: 0,
        };
        let mut name = None;
        let mut relative = false;
        let start = events.mapping("a call edge", |events, key, _| {
            match key {
                "Caller Index" => caller = Some(events.number32("Caller Index")?),
                "Caller Name" => name = Some(events.bytes("Caller Name")?),
                "Call Site" => edge.call_site = events.number32("Call Site")?,
                "Section Relative Source Address" => {
                    relative = true;
                    edge.call_site = events.number32("Section Relative Source Address")?;
                }
                "Weight" => edge.weight = events.number("Weight", u64::MAX)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if relative == caller.is_some() {
            return Err(malformed(
                start,
                "a call edge must state its caller in exactly one way",
            )
            .expected("either Caller Index and Call Site, or Section Relative Source Address"));
        }
        if let Some(number) = caller {
            self.callers.push(Caller {
                edge: self.edges.len(),
                number,
                name,
                place: start,
            });
        }
        self.edges.push(edge);
        Ok(())
    }

    fn source(&mut self, events: &mut Events<'_>) -> Result<Option<crate::tables::StackId>> {
        let mut frames = Vec::new();
        events.list("Source Info", |events| {
            let mut frame = (Vec::new(), None, 0, 0, StackFlags::default());
            events.mapping("a frame", |events, key, _| {
                match key {
                    "Function Name" => frame.0 = events.bytes("Function Name")?,
                    "File Name" => frame.1 = Some(events.bytes("File Name")?),
                    "Line" => frame.2 = events.number32("Line")?,
                    "Column" => frame.3 = events.number32("Column")?,
                    "Flags" => {
                        let flags = events.number("Flags", 3)?;
                        frame.4 = StackFlags(u32::try_from(flags).unwrap_or(0));
                    }
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            frames.push(frame);
            Ok(())
        })?;
        let frames: Vec<_> = frames
            .iter()
            .map(|(function, path, line, column, flags)| Frame {
                function,
                path: path.as_deref().map(Cow::Borrowed),
                line: *line,
                column: *column,
                flags: *flags,
            })
            .collect();
        self.profile.tables.intern_stack(&frames)
    }

    fn finish(mut self) -> Result<(MipProfile, ProfileVersion)> {
        let functions = &self.profile.functions;
        for Caller {
            edge,
            number,
            name,
            place,
        } in &self.callers
        {
            let same_name = |id: &FunctionId| {
                name.as_ref()
                    .is_none_or(|name| *name == functions[*id].name)
            };
            let Some(caller) = functions.id(*number).filter(same_name) else {
                return Err(
                    malformed(*place, "the caller of a call edge is not in the profile")
                        .found(format_args!(
                            "index {number}, {}",
                            shown(&String::from_utf8_lossy(
                                name.as_deref().unwrap_or_default()
                            ))
                        ))
                        .expected("index and name of a function of the profile, counted from 0"),
                );
            };
            if let Some(edge) = self.edges.get_mut(*edge) {
                edge.caller = Some(caller);
            }
        }
        self.edges.sort_unstable();
        let same = |one: &CallEdge, two: &CallEdge| {
            (one.caller, one.call_site, one.callee) == (two.caller, two.call_site, two.callee)
        };
        if self
            .edges
            .windows(2)
            .any(|pair| matches!(pair, [one, two] if same(one, two)))
        {
            return Err(ErrorKind::Malformed
                .error("a call edge occurs twice")
                .at_line(1, 1));
        }
        self.profile.edges = self.edges;
        if self.version == ProfileVersion::V8 {
            let most = functions.iter().map(|function| function.called_runs).max();
            self.profile.runs = most.unwrap_or(0);
            let runs = self.profile.runs;
            for function in &mut self.profile.functions {
                function.raw_runs = runs;
            }
        }
        Ok((self.profile, self.version))
    }
}

fn modes(events: &mut Events<'_>) -> Result<Modes> {
    let mut modes = Modes::default();
    events.list("Profile Type", |events| {
        let scalar = events.scalar("Profile Type")?;
        let flag = Modes::of_name(&scalar.text).ok_or_else(|| {
            malformed(scalar.place, "Profile Type has an unknown value")
                .found(shown(&scalar.text))
                .expected("Function Coverage, Block Coverage, Function Timestamp, Function Call Count, Return Address, Unary Counter, Function Part or Inferred Blocks")
        })?;
        modes = modes.union(flag);
        Ok(())
    })?;
    Ok(modes)
}

fn build_id(events: &mut Events<'_>) -> Result<BuildId> {
    let scalar = events.scalar("Build Id")?;
    let digits = scalar.text.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
    });
    match bytes.collect::<Option<Vec<u8>>>() {
        Some(bytes) if rest.is_empty() => Ok(BuildId(bytes)),
        _ => Err(malformed(scalar.place, "Build Id is not hexadecimal")
            .found(shown(&scalar.text))
            .expected("pairs of hexadecimal digits")),
    }
}

fn truth(events: &mut Events<'_>, key: &'static str) -> Result<bool> {
    let scalar = events.scalar(key)?;
    match &*scalar.text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(
            malformed(scalar.place, format!("{key} is neither true nor false"))
                .found(shown(other))
                .expected("true or false"),
        ),
    }
}

/// Reads the blocks of a function. The first block is the entry block, which is left out. `nine` states whether the
/// dialect is that of version 9; `place` is the position of the function. Returns for each block, the entry block first,
/// from which blocks it is inferred.
fn blocks(
    events: &mut Events<'_>,
    nine: bool,
    place: Place,
    blocks: &mut Vec<Block>,
) -> Result<Vec<Vec<u32>>> {
    let mut entry = None;
    let mut lists = Vec::new();
    events.list("Basic Block Profiles", |events| {
        let mut block = Block::default();
        let mut covered = false;
        let mut runs = None;
        let mut list = Vec::new();
        let start = events.mapping("a block", |events, key, _| {
            match key {
                "Offset" => block.offset = events.number32("Offset")?,
                "Covered" => {
                    covered = truth(events, "Covered")?;
                }
                "Raw Profile Count" if nine => {
                    runs = Some(events.number("Raw Profile Count", u64::MAX)?);
                }
                "Inferred From" if nine => events.list("Inferred From", |events| {
                    list.push(events.number32("Inferred From")?);
                    Ok(())
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        block.runs = runs.unwrap_or(u64::from(covered));
        if (block.runs > 0) != covered {
            return Err(malformed(
                start,
                "Covered and Raw Profile Count of a block contradict each other",
            ));
        }
        lists.push(list);
        if entry.is_none() {
            entry = Some(block.offset);
        } else {
            blocks.push(block);
        }
        Ok(())
    })?;
    if entry.is_some_and(|offset| offset != 0) {
        return Err(malformed(place, "the first block is not the entry block")
            .found(format_args!("offset {:#x}", entry.unwrap_or(0)))
            .expected("0x0"));
    }
    Ok(lists)
}
