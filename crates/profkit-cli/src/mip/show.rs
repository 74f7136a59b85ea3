//! `profkit mip show`: the results of the runs, function by function.
use super::profile::{ImageArgs, Located, Opened, locate, open, pattern};
use crate::exit::{Failure, Result, Status};
use crate::print;
use crate::print::{Console, Format, stdout_for};
use clap::Args;
use profkit_analysis::names::display;
use profkit_data::mip::{CallEdge, EntryKind, Function, FunctionId, Identity, MipProfile, Modes};
use profkit_data::tables::Frame;
use profkit_report::Style;
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Source locations come from the profile, or from the file that --debug names.

Examples:
  profkit mip show -p program.mip
  profkit mip show -p program.mip --debug program -r '^ns::'
  profkit mip show -p program.mip --format json | jq '.functions[] | select(.called_runs > 0)'";

/// The number of blocks per line.
const BLOCKS_PER_LINE: usize = 8;

/// Arguments of `profkit mip show`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// The profile
    #[arg(short, long, value_name = "FILE")]
    profile: PathBuf,

    /// Show only functions whose symbol has a match of this regular expression
    #[arg(short, long, value_name = "REGEX")]
    regex: Option<String>,

    #[command(flatten)]
    image: ImageArgs,

    /// Print mangled names, as the linker knows them
    #[arg(long)]
    mangled: bool,

    /// Output format; docs/formats/mip-json.md describes the JSON
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

/// Runs `profkit mip show`.
///
/// # Errors
/// If the profile or the debug info cannot be read, or if the output cannot be printed.
pub fn run(args: &ShowArgs) -> Result {
    let regex = pattern(args.regex.as_deref())?;
    let opened = open(&args.profile)?;
    let located = match &args.image.debug {
        None => None,
        Some(file) => {
            let located = locate(&opened.profile, file, args.image.arch.as_deref())?;
            for note in &located.notes {
                // A failed write is ignored: stderr is closed.
                let _ = writeln!(print::stderr(), "warning: {note}");
            }
            Some(located)
        }
    };
    let view = View {
        opened: &opened,
        located,
        wanted: &|function| {
            regex
                .as_ref()
                .is_none_or(|regex| regex.is_match(&function.name))
        },
        mangled: args.mangled,
    };
    let mut out = stdout_for(args.format);
    match args.format {
        Format::Text => view.text(&mut out),
        Format::Json => view.json(&mut out),
    }
    .and_then(|()| out.flush())
    .map_err(|error| Failure::print(&error))?;
    Ok(Status::Done)
}

struct View<'a> {
    opened: &'a Opened,
    located: Option<Located>,
    wanted: &'a dyn Fn(&Function) -> bool,
    mangled: bool,
}

impl View<'_> {
    fn profile(&self) -> &MipProfile {
        &self.opened.profile
    }

    /// Returns the source location where a function begins, as frames. The innermost frame comes first.
    fn frames(&self, id: FunctionId) -> Vec<Frame<'_>> {
        let profile = self.profile();
        match &self.located {
            Some(located) => {
                let stack = located.stacks.get(id).copied().flatten();
                located.tables.frames(stack).collect()
            }
            None => {
                let stack = profile.functions[id].location;
                profile.tables.frames(stack).collect()
            }
        }
    }

    fn text(&self, out: &mut Console<impl Write>) -> io::Result<()> {
        let profile = self.profile();
        let mut edges = profile.edges_by_callee();
        for (id, function) in profile.functions.entries() {
            if !(self.wanted)(function) {
                continue;
            }
            writeln!(out, "{}", display(&function.name, self.mangled))?;
            if let Some(frame) = self.frames(id).first() {
                writeln!(out, "  Source Info: {}", place(frame))?;
            }
            if function.is_part() {
                writeln!(out, "  Part of another function; never called directly")?;
                self.blocks(function, out)?;
                writeln!(out)?;
                continue;
            }
            let covered = if function.is_covered() { "yes" } else { "no" };
            writeln!(
                out,
                "  Covered: {covered}, in {} of {} runs",
                function.called_runs, function.raw_runs
            )?;
            match function.modes.entry() {
                Some(EntryKind::Calls) => writeln!(out, "  Call Count: {}", function.calls)?,
                // A unary counter ends at eight calls per run, so the true number may be larger.
                Some(EntryKind::Unary) if function.calls >= 8 => {
                    writeln!(out, "  Call Count: at least {}", function.calls)?;
                }
                Some(EntryKind::Unary) => writeln!(out, "  Call Count: {}", function.calls)?,
                _ => {}
            }
            if function.order_sum > 0 {
                writeln!(out, "  Order Sum: {}", function.order_sum)?;
                write!(out, "  Order Mean: {}", mean(function))?;
                match function.order_min {
                    Some(first) => writeln!(out, ", first {first}")?,
                    None => writeln!(out)?,
                }
            }
            if !function.blocks.is_empty() && function.modes.contains(Modes::BLOCK_COVERAGE) {
                self.blocks(function, out)?;
            }
            let edges = edges.of(id);
            if !edges.is_empty() {
                writeln!(out, "  Callers:")?;
            }
            for edge in edges {
                writeln!(out, "    {}", self.caller(edge))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn blocks(&self, function: &Function, out: &mut Console<impl Write>) -> io::Result<()> {
        write!(out, "  Block Coverage:")?;
        let blocks = function.blocks.iter().map(|block| block.runs > 0);
        let entry = (!function.is_part()).then(|| function.is_covered());
        for (index, hot) in entry.into_iter().chain(blocks).enumerate() {
            if index % BLOCKS_PER_LINE == 0 {
                write!(out, "\n    ")?;
            }
            if hot {
                out.styled(Style::Hot, " HOT ")?;
            } else {
                out.styled(Style::Cold, " COLD")?;
            }
        }
        writeln!(out)
    }

    fn caller(&self, edge: &CallEdge) -> String {
        match edge.caller {
            Some(caller) => {
                let name = display(&self.profile().functions[caller].name, self.mangled);
                format!("{name}+{:#x}: {}", edge.call_site, edge.weight)
            }
            None => format!("elsewhere: {}", edge.weight),
        }
    }

    fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let profile = self.profile();
        let mut edges = profile.edges_by_callee();
        let mut functions = Vec::new();
        for (id, function) in profile.functions.entries() {
            let edges = edges.of(id);
            if !(self.wanted)(function) {
                continue;
            }
            functions.push(self.json_function(id, function, edges));
        }
        let json = JsonFile {
            schema: "profkit-mip-show",
            schema_version: 2,
            file: &self.opened.name,
            format_version: match self.opened.version {
                profkit_data::mip::ProfileVersion::V8 => 8,
                profkit_data::mip::ProfileVersion::V9 => 9,
            },
            build_id: match &profile.identity {
                Identity::BuildId(id) if !id.0.is_empty() => Some(id.to_string()),
                _ => None,
            },
            module_hash: match &profile.identity {
                Identity::ModuleHash(hash) => Some(*hash),
                Identity::BuildId(_) => None,
            },
            runs: profile.runs,
            functions,
        };
        serde_json::to_writer_pretty(&mut *out, &json)?;
        writeln!(out)
    }

    fn json_function<'a>(
        &'a self,
        id: FunctionId,
        function: &'a Function,
        edges: &[CallEdge],
    ) -> JsonFunction {
        let profile = self.profile();
        let name =
            |id: FunctionId| String::from_utf8_lossy(&profile.functions[id].name).into_owned();
        let frames = self.frames(id);
        JsonFunction {
            name: String::from_utf8_lossy(&function.name).into_owned(),
            demangled: profkit_analysis::names::demangle(&function.name),
            address: function.address,
            address_is_relative: profile.section_address.is_none(),
            size: function.size,
            signature: function.signature,
            modes: function.modes.names().collect(),
            raw_runs: function.raw_runs,
            called_runs: function.called_runs,
            calls: (function.modes.entry() != Some(EntryKind::Coverage)).then_some(function.calls),
            order_sum: function.order_sum,
            order_runs: function.order_runs,
            order_min: function.order_min,
            blocks: function
                .blocks
                .iter()
                .map(|block| JsonBlock {
                    offset: block.offset,
                    runs: block.runs,
                })
                .collect(),
            callers: edges
                .iter()
                .map(|edge| JsonEdge {
                    caller: edge.caller.map(name),
                    call_site: edge.call_site,
                    weight: edge.weight,
                })
                .collect(),
            source: frames
                .iter()
                .map(|frame| JsonFrame {
                    function: String::from_utf8_lossy(frame.function).into_owned(),
                    file: frame
                        .path
                        .as_deref()
                        .map(|path| String::from_utf8_lossy(path).into_owned()),
                    line: frame.line,
                    column: frame.column,
                })
                .collect(),
        }
    }
}

/// The text `file:line` for a frame.
pub(super) fn place(frame: &Frame<'_>) -> String {
    let path = frame.path.as_deref().unwrap_or(b"??");
    format!("{}:{}", display(path, true), frame.line)
}

/// The mean position of a function's first call, with one decimal, rounded down.
fn mean(function: &Function) -> String {
    let tenths = u128::from(function.order_sum) * 10 / u128::from(function.order_runs.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[derive(Serialize)]
struct JsonFile<'a> {
    schema: &'static str,
    schema_version: u32,
    file: &'a str,
    format_version: u32,
    build_id: Option<String>,
    module_hash: Option<u32>,
    runs: u64,
    functions: Vec<JsonFunction>,
}

#[derive(Serialize)]
struct JsonFunction {
    name: String,
    demangled: Option<String>,
    address: u64,
    address_is_relative: bool,
    size: u32,
    signature: u32,
    modes: Vec<&'static str>,
    raw_runs: u64,
    called_runs: u64,
    calls: Option<u64>,
    order_sum: u64,
    order_runs: u64,
    order_min: Option<u32>,
    blocks: Vec<JsonBlock>,
    callers: Vec<JsonEdge>,
    source: Vec<JsonFrame>,
}

#[derive(Serialize)]
struct JsonBlock {
    offset: u32,
    runs: u64,
}

#[derive(Serialize)]
struct JsonEdge {
    caller: Option<String>,
    call_site: u32,
    weight: u64,
}

#[derive(Serialize)]
struct JsonFrame {
    function: String,
    file: Option<String>,
    line: u32,
    column: u32,
}
