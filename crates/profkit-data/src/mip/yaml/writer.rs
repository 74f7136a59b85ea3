//! Writes MIP profiles as YAML.
use super::super::losses::Losses;
use super::super::model::{Function, Identity, MipProfile, Modes, Width};
use super::super::profile::{MipWriteOptions, ProfileVersion};
use super::super::profile_v8::call_count;
use crate::bytes::Sink;
use crate::ids::NameRef;
use crate::tables::StackFlags;
use crate::{ErrorKind, Result, Structure};
use std::fmt::Write as _;

/// The number of bytes that are collected before they are written to the sink.
const BATCH: usize = 1 << 16;

/// Writes a profile in the YAML dialect of a version. Version 9 can hold everything. Data that version 8 cannot hold are
/// left out and counted in the losses.
///
/// ```
/// use profkit_data::mip::{MipProfile, MipWriteOptions, yaml};
///
/// let profile = MipProfile { section_address: Some(0x4000), ..MipProfile::default() };
/// let mut text = Vec::new();
/// yaml::write(&profile, &MipWriteOptions::new(), &mut text)?;
/// let (read, _) = yaml::parse(&text)?;
/// assert_eq!(read, profile);
/// # Ok::<(), profkit_data::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if version 8 cannot hold data that must not be left out, and the errors of the sink.
pub fn write(
    profile: &MipProfile,
    options: &MipWriteOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    let version = options.version;
    let mut writer = Writer {
        profile,
        version,
        uniform: profile
            .functions
            .iter()
            .all(|function| function.modes == profile.modes()),
        out: String::new(),
    };
    writer.header()?;
    let mut edges = profile.edges_by_callee();
    for (id, function) in profile.functions.entries() {
        // Writing to a `String` never fails.
        let _ = writer.function(function, edges.of(id));
        if writer.out.len() >= BATCH {
            sink.put(writer.out.as_bytes())?;
            writer.out.clear();
        }
    }
    writer.out.push_str("...\n");
    sink.put(writer.out.as_bytes())?;
    Ok(match version {
        ProfileVersion::V8 => Losses::of_version_8(profile, |function| {
            // Version 8 can state a location completely only if the location has one frame without column and flags.
            let mut frames = profile.tables.frames(function.location);
            let first = frames.next();
            first.is_some_and(|frame| frame.column == 0 && frame.flags == StackFlags::default())
                && frames.next().is_none()
        }),
        ProfileVersion::V9 => Losses::default(),
    })
}

struct Writer<'a> {
    profile: &'a MipProfile,
    version: ProfileVersion,
    uniform: bool,
    out: String,
}

impl Writer<'_> {
    fn header(&mut self) -> Result<()> {
        let profile = self.profile;
        let out = &mut self.out;
        out.push_str("---\nHeader:\n");
        let nine = self.version == ProfileVersion::V9;
        if nine {
            out.push_str("  Version:         9\n");
        }
        let width = match profile.width {
            None => "",
            Some(Width::Bits64) => ", 64 bit",
            Some(Width::Bits32) => ", 32 bit",
        };
        let modes: Vec<_> = profile.modes().names().collect();
        let _ = writeln!(out, "  File Type:       [ .mip{width} ]");
        let _ = writeln!(out, "  Profile Type:    [ {} ]", modes.join(", "));
        match &profile.identity {
            Identity::ModuleHash(hash) => {
                let _ = writeln!(out, "  Module Hash:     {}", hex((*hash).into()));
            }
            Identity::BuildId(id) if nine => {
                let _ = writeln!(out, "  Build Id:        '{id}'");
            }
            Identity::BuildId(_) => {
                return Err(ErrorKind::CannotRepresent
                    .error("version 8 cannot hold a build id")
                    .within(Structure::MipYaml));
            }
        }
        if nine {
            if let Some(address) = profile.section_address {
                let _ = writeln!(out, "  Raw Section Address: {}", hex(address));
            }
            if let Some(size) = profile.section_size {
                let _ = writeln!(out, "  Raw Section Size: {}", hex(size));
            }
            let _ = writeln!(out, "  Run Count:       {}", profile.runs);
        }
        if profile.functions.is_empty() {
            out.push_str("Profiles:          []\n");
        } else {
            out.push_str("Profiles:\n");
        }
        Ok(())
    }

    fn function(
        &mut self,
        function: &Function,
        edges: &[super::super::model::CallEdge],
    ) -> std::fmt::Result {
        let profile = self.profile;
        let nine = self.version == ProfileVersion::V9;
        let out = &mut self.out;
        let NameRef(hash) = NameRef::of(&function.name);
        writeln!(out, "  - Function Name:   {}", text(&function.name))?;
        writeln!(out, "    Function Signature: {}", hex(hash))?;
        if nine && !self.uniform {
            let modes: Vec<_> = function.modes.names().collect();
            writeln!(out, "    Profile Type:    [ {} ]", modes.join(", "))?;
        }
        writeln!(
            out,
            "    Raw Profile Data Address: {}",
            hex(function.record_offset)
        )?;
        let address = if profile.section_address.is_some() {
            "Function Address"
        } else {
            "Encoded Function Address"
        };
        writeln!(out, "    {address}: {}", hex(function.address))?;
        writeln!(out, "    Function Size:   {}", hex(function.size.into()))?;
        writeln!(
            out,
            "    Control Flow Graph Signature: {}",
            hex(function.signature.into())
        )?;
        if nine {
            writeln!(out, "    Run Count:       {}", function.raw_runs)?;
        }
        writeln!(out, "    Raw Profile Count: {}", function.called_runs)?;
        let calls = if nine {
            function.calls
        } else {
            call_count(function)
        };
        writeln!(out, "    Function Call Count: {calls}")?;
        if nine && function.calls_at_least {
            out.push_str("    Function Call Count Is Lower Bound: true\n");
        }
        writeln!(out, "    Function Order Sum: {}", function.order_sum)?;
        if nine {
            writeln!(out, "    Function Order Count: {}", function.order_runs)?;
            if let Some(minimum) = function.order_min {
                writeln!(out, "    Function Order Minimum: {minimum}")?;
            }
        }
        out.push_str("    Basic Block Profiles:\n");
        let entry = (0, function.called_runs);
        let blocks = function
            .blocks
            .iter()
            .map(|block| (block.offset, block.runs));
        for (number, (offset, runs)) in std::iter::once(entry).chain(blocks).enumerate() {
            writeln!(out, "      - Offset:          {}", hex(offset.into()))?;
            writeln!(out, "        Covered:         {}", runs > 0)?;
            if nine {
                writeln!(out, "        Raw Profile Count: {runs}")?;
                let list = function.inference.as_ref().map(|it| it.list(number));
                let list: Vec<String> = list.into_iter().flatten().map(u32::to_string).collect();
                if !list.is_empty() {
                    writeln!(out, "        Inferred From:   [ {} ]", list.join(", "))?;
                }
            }
        }
        if edges.is_empty() {
            out.push_str("    Call Edges:      []\n");
        } else {
            out.push_str("    Call Edges:\n");
        }
        for edge in edges {
            match edge.caller {
                Some(caller) => {
                    let name = &profile.functions[caller].name;
                    writeln!(out, "      - Caller Index:    {}", caller.index())?;
                    writeln!(out, "        Caller Name:     {}", text(name))?;
                    writeln!(
                        out,
                        "        Call Site:       {}",
                        hex(edge.call_site.into())
                    )?;
                }
                None => {
                    let source = hex(edge.call_site.into());
                    writeln!(out, "      - Section Relative Source Address: {source}")?;
                }
            }
            writeln!(out, "        Weight:          {}", edge.weight)?;
        }
        if !nine && let Some(frame) = profile.tables.frames(function.location).next() {
            out.push_str("    Source Info:\n");
            writeln!(
                out,
                "      File Name:       {}",
                text(frame.path.as_deref().unwrap_or_default())
            )?;
            writeln!(out, "      Function Name:   {}", text(frame.function))?;
            writeln!(out, "      Line:            {}", frame.line)?;
        } else if function.location.is_some() {
            out.push_str("    Source Info:\n");
            for frame in profile.tables.frames(function.location) {
                writeln!(out, "      - Function Name:   {}", text(frame.function))?;
                if let Some(path) = &frame.path {
                    writeln!(out, "        File Name:       {}", text(path))?;
                }
                writeln!(out, "        Line:            {}", frame.line)?;
                writeln!(out, "        Column:          {}", frame.column)?;
                if frame.flags != StackFlags::default() {
                    writeln!(
                        out,
                        "        Flags:           {}",
                        hex(frame.flags.0.into())
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn hex(value: u64) -> String {
    format!("0x{value:X}")
}

/// Formats a text as a YAML scalar. The scalar has double quotes only if YAML would read a different text without them.
/// If the bytes are not UTF-8, the scalar has the tag `!bytes`, and each byte is written as the character whose code
/// point is the value of the byte.
fn text(bytes: &[u8]) -> String {
    let plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$/+@".contains(byte) || *byte == b'-';
    let starts = bytes
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_/".contains(byte));
    let word = !matches!(
        bytes.to_ascii_lowercase().as_slice(),
        b"null" | b"true" | b"false" | b"yes" | b"no" | b"on" | b"off" | b"y" | b"n"
    );
    let valid = std::str::from_utf8(bytes);
    let mut out = String::with_capacity(bytes.len() + 2);
    match valid {
        Ok(text) if starts && word && bytes.iter().all(plain) => return text.to_owned(),
        Ok(text) => {
            out.push('"');
            text.chars().for_each(|letter| quote(letter, &mut out));
        }
        Err(_) => {
            out.push_str("!bytes \"");
            bytes
                .iter()
                .for_each(|&byte| quote(char::from(byte), &mut out));
        }
    }
    out.push('"');
    out
}

fn quote(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        ' '..='~' => out.push(letter),
        _ => {
            let number = u32::from(letter);
            let _ = match number {
                0..=0xff => write!(out, "\\x{number:02X}"),
                0x100..=0xffff => write!(out, "\\u{number:04X}"),
                _ => write!(out, "\\U{number:08X}"),
            };
        }
    }
}

impl Modes {
    pub(super) fn of_name(name: &str) -> Option<Modes> {
        let mut names = super::super::model::MODE_NAMES.iter();
        names
            .find(|(_, known)| *known == name)
            .map(|&(flag, _)| flag)
    }
}
