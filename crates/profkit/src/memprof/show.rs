//! `profkit show` of heap profiles: how many contexts and bytes, what is hot and cold, the contexts that matter most;
//! for people, as JSON, or as folded stacks for flame graphs.
use super::inputs::Loaded;
use super::symbolize::{IndexSource, SourceLocation};
use super::{is_memprof_input, load};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::io::{Input, printer};
use crate::merge::report::{grouped, plural};
use crate::show::{Format, names};
use clap::{Args, ValueEnum};
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::IndexedProfile;
use profkit_data::memprof::indexed::IndexedMemProf;
use profkit_data::memprof::{Field, Hotness, MemInfoBlock, MemProfile, StackId, Thresholds};
use profkit_data::tables::{Frame as TableFrame, StackFlags, Tables};
use profkit_data::{Error, ErrorKind};
use profkit_merge::{InputData, Inputs};
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Options of heap profiles.
#[derive(Debug, Args)]
#[command(next_help_heading = "Heap profiles")]
pub struct HeapArgs {
    /// Show the heap profile of an indexed profile, not its counters
    #[arg(long)]
    pub memory: bool,

    /// How many contexts are shown
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Which contexts come first
    #[arg(long, value_enum, default_value_t, value_name = "ORDER")]
    pub by: Order,

    /// Print folded stacks for flame graphs instead, with this as their weight
    ///
    /// One line a call stack: functions from the outermost one, separated by semicolons, and a number.
    #[arg(long, value_enum, value_name = "WEIGHT")]
    pub folded: Option<Weight>,

    /// Cold contexts have fewer accesses for each byte and second lived
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().cold_density)]
    pub cold_density: f32,

    /// Cold contexts live at least so many seconds on average
    #[arg(long, value_name = "SECONDS", default_value_t = Thresholds::default().cold_lifetime)]
    pub cold_lifetime: u32,

    /// Hot contexts have more accesses for each byte and second lived
    #[arg(long, value_name = "DENSITY", default_value_t = Thresholds::default().hot_density)]
    pub hot_density: f32,
}

/// An order of contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Most bytes first
    #[default]
    Bytes,
    /// Shortest average life first
    ShortLife,
    /// Fewest accesses for each byte and second lived first, of those that lived longest
    Cold,
}

/// What folded stacks are weighed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Bytes allocated
    Bytes,
    /// Allocations
    Allocations,
    /// Accesses
    Accesses,
    /// Bytes times average life in milliseconds
    ByteLifetime,
}

/// Whether a file is shown as a heap profile.
pub fn is_shown(args: &HeapArgs, bytes: &[u8]) -> bool {
    let asked = args.memory || args.folded.is_some();
    is_memprof_input(bytes) || asked && detect(bytes) == FileKind::InstrIndexed
}

/// A heap profile as it was found.
struct Shown {
    profile: MemProfile,
    locations: Vec<SourceLocation>,
    form: &'static str,
    version: Option<u32>,
    notes: Vec<String>,
    damage: Vec<Error>,
}

/// Allocations of one call stack.
struct Context {
    stack: StackId,
    block: MemInfoBlock,
    hotness: Hotness,
}

impl Context {
    fn average(&self, field: Field) -> f64 {
        to_f64(self.block.get(field)) / to_f64(self.block.get(Field::AllocCount).max(1))
    }

    /// Accesses for each byte and second lived, on average. Stored times 100.
    fn density(&self) -> f64 {
        self.average(Field::TotalLifetimeAccessDensity) / 100.0
    }

    fn bytes(&self) -> u64 {
        self.block.get(Field::TotalSize)
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with few digits")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Shows a heap profile.
///
/// # Errors
/// If nothing of it can be read, or raw dumps come without their binaries.
pub fn run(
    args: &HeapArgs,
    binaries: &BinaryArgs,
    input: &Input,
    format: Format,
    mangled: bool,
) -> exit::Result {
    let shown = open(binaries, input)?;
    let thresholds = Thresholds {
        cold_density: args.cold_density,
        cold_lifetime: args.cold_lifetime,
        hot_density: args.hot_density,
    };
    let contexts = contexts(&shown.profile, &thresholds);
    let mut out = printer();
    let print = Print {
        args,
        shown: &shown,
        contexts: &contexts,
        mangled,
    };
    let printed = match (args.folded, format) {
        (Some(weight), _) => print.folded(weight, &mut out),
        (None, Format::Text) => print.text(input, &mut out),
        (None, Format::Json) => print.json(input, &mut out),
    };
    printed
        .and_then(|()| out.flush())
        .map_err(|error| Failure::print(&error))?;
    let mut failure: Option<Failure> = None;
    for error in &shown.damage {
        let line = format!("{}: {error}", input.name());
        failure = Some(match failure {
            Some(failure) => failure.and(line),
            None => Failure::input(line),
        });
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Status::Done),
    }
}

/// The input, which is open already.
struct One<'a>(&'a Input);

impl Inputs for One<'_> {
    fn len(&self) -> usize {
        1
    }

    fn name(&self, _: usize) -> &str {
        self.0.name()
    }

    fn load<'s>(&'s self, _: usize, _: &'s mut Vec<u8>) -> io::Result<InputData<'s>> {
        Ok(InputData::Borrowed(self.0.bytes()))
    }
}

fn open(binaries: &BinaryArgs, input: &Input) -> Result<Shown, Failure> {
    if detect(input.bytes()) == FileKind::InstrIndexed {
        return open_indexed(input);
    }
    let mut notes = Vec::new();
    let found = binaries.index(&mut notes, false)?;
    let source = IndexSource {
        index: &found.index,
        folders: &found.debug_folders,
        servers: found.servers.as_ref(),
    };
    let loaded: Loaded = load(&One(input), &[0], &source);
    let raw = loaded.dumps > 0;
    notes.extend(loaded.notes());
    if loaded.kept == 0 || loaded.profile.is_empty() {
        let first = loaded.damage.first().map(|(_, error)| error);
        let failure = match first {
            Some(error) => Failure::file(input.name(), error),
            None if raw && !binaries.is_used() => Failure::usage(
                "raw heap profiles hold addresses: name the programs and libraries that ran with --binaries",
            ),
            None => Failure::input(format_args!("{}: there are no contexts", input.name())),
        };
        return Err(notes.iter().fold(failure, Failure::with_hint));
    }
    Ok(Shown {
        form: if raw { "raw" } else { "YAML" },
        version: raw.then_some(loaded.newest_raw),
        profile: loaded.profile,
        locations: loaded.locations,
        notes,
        damage: loaded.damage.into_iter().map(|(_, error)| error).collect(),
    })
}

fn open_indexed(input: &Input) -> Result<Shown, Failure> {
    let failed = |error: Error| Failure::file(input.name(), &error);
    let data = input.bytes();
    let profile = IndexedProfile::parse(data).map_err(failed)?;
    let Some(section) = profile.memprof() else {
        return Err(failed(
            Error::new(ErrorKind::Unsupported, "the profile has no MemProf section")
                .with_hint("without --memory its counters are shown"),
        ));
    };
    let end = usize::try_from(section.offset)
        .unwrap_or(usize::MAX)
        .saturating_add(section.bytes.len());
    let section =
        IndexedMemProf::parse(data.get(..end).unwrap_or(data), section.offset).map_err(failed)?;
    let mut damage = Vec::new();
    let profile = section.to_profile_salvaging(|error| damage.push(error));
    Ok(Shown {
        profile,
        locations: Vec::new(),
        form: "indexed",
        version: Some(section.version()),
        notes: Vec::new(),
        damage,
    })
}

/// Each context once: files hold it for every function that is inlined at its innermost address.
fn contexts(profile: &MemProfile, thresholds: &Thresholds) -> Vec<Context> {
    let mut seen: FxHashSet<(StackId, u32)> = FxHashSet::default();
    let mut list = Vec::new();
    for record in profile.records() {
        let mut times: rustc_hash::FxHashMap<StackId, u32> = rustc_hash::FxHashMap::default();
        for site in &record.alloc_sites {
            let mut own = 0;
            for frame in profile.stack(site.stack) {
                own += u32::from(frame.function == record.function);
                if !frame.is_inline {
                    break;
                }
            }
            let times = times.entry(site.stack).or_insert(0);
            *times += 1;
            if seen.insert((site.stack, (*times - 1) / own.max(1))) {
                list.push(Context {
                    stack: site.stack,
                    block: site.block,
                    hotness: thresholds.hotness(&site.block, true),
                });
            }
        }
    }
    list
}

/// How many contexts there are of a kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Share {
    contexts: u64,
    allocations: u64,
    bytes: u64,
}

impl Share {
    fn of<'a>(contexts: impl Iterator<Item = &'a Context>) -> Self {
        let mut share = Share::default();
        for context in contexts {
            share.contexts += 1;
            share.allocations += context.block.get(Field::AllocCount);
            share.bytes = share.bytes.saturating_add(context.bytes());
        }
        share
    }
}

struct Print<'a> {
    args: &'a HeapArgs,
    shown: &'a Shown,
    contexts: &'a [Context],
    mangled: bool,
}

const KINDS: [(Hotness, &str); 3] = [
    (Hotness::Cold, "cold"),
    (Hotness::Warm, "warm"),
    (Hotness::Hot, "hot"),
];

impl Print<'_> {
    fn share(&self, kind: Hotness) -> Share {
        Share::of(
            self.contexts
                .iter()
                .filter(|context| context.hotness == kind),
        )
    }

    fn top(&self) -> Vec<&Context> {
        let mut all: Vec<&Context> = self.contexts.iter().collect();
        let life = |context: &Context| context.average(Field::TotalLifetime);
        match self.args.by {
            Order::Bytes => all.sort_by_key(|context| std::cmp::Reverse(context.bytes())),
            Order::ShortLife => all.sort_by(|one, two| {
                let by_life = life(one).total_cmp(&life(two));
                by_life.then(two.bytes().cmp(&one.bytes()))
            }),
            Order::Cold => all.sort_by(|one, two| {
                let by_density = one.density().total_cmp(&two.density());
                by_density.then(life(two).total_cmp(&life(one)))
            }),
        }
        all.truncate(self.args.top);
        all
    }

    fn name(&self, function: u64) -> Cow<'_, str> {
        match self.shown.profile.names.get(&function) {
            Some(name) => names::display(name, self.mangled),
            None => Cow::Owned(format!("{function:#018x}")),
        }
    }

    fn text(&self, input: &Input, out: &mut impl Write) -> io::Result<()> {
        let all = Share::of(self.contexts.iter());
        let version = match self.shown.version {
            Some(version) => format!(" version {version}"),
            None => String::new(),
        };
        writeln!(
            out,
            "{}: heap profile, {}{version}",
            input.name(),
            self.shown.form
        )?;
        for note in &self.shown.notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "Contexts:     {}", grouped(all.contexts))?;
        writeln!(out, "Allocations:  {}", grouped(all.allocations))?;
        writeln!(out, "Bytes:        {}", grouped(all.bytes))?;
        for (kind, name) in KINDS {
            let share = self.share(kind);
            writeln!(
                out,
                "  {name}: {:<4} {}, {} ({:.1}%)",
                "",
                plural(share.contexts, "context"),
                plural(share.bytes, "byte"),
                percent(share.bytes, all.bytes)
            )?;
        }
        if let Some(data) = &self.shown.profile.data_access {
            writeln!(
                out,
                "Global data:  {} sampled, {} cold",
                data.records.len(),
                data.cold_symbols.len() + data.cold_hashes.len()
            )?;
        }
        let top = self.top();
        if top.is_empty() {
            return Ok(());
        }
        let by = match self.args.by {
            Order::Bytes => "with the most bytes",
            Order::ShortLife => "with the shortest lives",
            Order::Cold => "with the fewest accesses",
        };
        writeln!(out, "\nTop {} {by}:", plural(top.len() as u64, "context"))?;
        for (number, context) in (1..).zip(top) {
            let kind = KINDS.iter().find(|(kind, _)| *kind == context.hotness);
            writeln!(
                out,
                "{number:>4}. {} ({:.1}%) in {}, life {:.0} ms, {:.2} accesses a byte and second, {}",
                plural(context.bytes(), "byte"),
                percent(context.bytes(), all.bytes),
                plural(context.block.get(Field::AllocCount), "allocation"),
                context.average(Field::TotalLifetime),
                context.density(),
                kind.map_or("", |(_, name)| name)
            )?;
            for &number in self.shown.profile.stack_numbers(context.stack) {
                let Some(frame) = self.shown.profile.frames().get(number as usize) else {
                    continue;
                };
                let inlined = if frame.is_inline { " (inlined)" } else { "" };
                write!(out, "        {}{inlined}", self.name(frame.function))?;
                match self.shown.locations.get(number as usize) {
                    Some(place) if !place.file.is_empty() => {
                        let file = String::from_utf8_lossy(&place.file);
                        writeln!(out, " {file}:{}:{}", place.line, place.column)?;
                    }
                    _ => writeln!(
                        out,
                        " +{}:{}",
                        frame.line_offset.cast_signed(),
                        frame.column
                    )?,
                }
            }
        }
        Ok(())
    }

    fn folded(&self, weight: Weight, out: &mut impl Write) -> io::Result<()> {
        for context in self.contexts {
            let block = &context.block;
            let weight = match weight {
                Weight::Bytes => context.bytes(),
                Weight::Allocations => block.get(Field::AllocCount),
                Weight::Accesses => block.get(Field::TotalAccessCount),
                Weight::ByteLifetime => {
                    let product = u128::from(context.bytes())
                        * u128::from(block.get(Field::TotalLifetime))
                        / u128::from(block.get(Field::AllocCount).max(1));
                    u64::try_from(product).unwrap_or(u64::MAX)
                }
            };
            let mut first = true;
            for frame in self.shown.profile.stack(context.stack).rev() {
                let separator = if first { "" } else { ";" };
                first = false;
                // A semicolon ends a name.
                let name = self.name(frame.function).replace(';', ",");
                write!(out, "{separator}{name}")?;
            }
            writeln!(out, " {weight}")?;
        }
        Ok(())
    }

    fn json(&self, input: &Input, out: &mut impl Write) -> io::Result<()> {
        let all = Share::of(self.contexts.iter());
        let contexts = self
            .top()
            .into_iter()
            .map(|context| self.json_context(context));
        let report = JsonReport {
            schema: 1,
            file: input.name(),
            form: self.shown.form,
            version: self.shown.version,
            notes: &self.shown.notes,
            total: all,
            cold: self.share(Hotness::Cold),
            warm: self.share(Hotness::Warm),
            hot: self.share(Hotness::Hot),
            locations: self.table_sizes(),
            contexts: contexts.collect(),
        };
        serde_json::to_writer_pretty(&mut *out, &report)?;
        writeln!(out)
    }

    fn json_context(&self, context: &Context) -> JsonContext {
        let kind = KINDS.iter().find(|(kind, _)| *kind == context.hotness);
        let numbers = self.shown.profile.stack_numbers(context.stack);
        let frames = numbers.iter().filter_map(|&number| {
            let frame = self.shown.profile.frames().get(number as usize)?;
            let place = self.shown.locations.get(number as usize);
            let place = place.filter(|place| !place.file.is_empty());
            Some(JsonFrame {
                guid: format!("{:#018x}", frame.function),
                function: self
                    .shown
                    .profile
                    .names
                    .get(&frame.function)
                    .map(|name| names::display(name, self.mangled).into_owned()),
                line_offset: frame.line_offset,
                column: frame.column,
                inlined: frame.is_inline,
                file: place.map(|place| String::from_utf8_lossy(&place.file).into_owned()),
                line: place.map(|place| place.line),
                discriminator: place.map(|place| place.discriminator),
            })
        });
        JsonContext {
            kind: kind.map_or("", |(_, name)| name),
            fields: context
                .block
                .fields()
                .map(|field| (field.name(), context.block.get(field)))
                .collect(),
            average_lifetime_ms: context.average(Field::TotalLifetime),
            lifetime_access_density: context.density(),
            stack: frames.collect(),
        }
    }

    /// What the source locations of all contexts cost in portable tables, and as plain text.
    fn table_sizes(&self) -> Option<TableSizes> {
        let profile = &self.shown.profile;
        if self.shown.locations.is_empty() {
            return None;
        }
        let mut tables = Tables::default();
        let mut plain = 0usize;
        // Each frame once, stacks as lists of their numbers.
        let text = |number: usize| {
            let frame = profile.frames().get(number)?;
            let name = profile.names.get(&frame.function).map_or(0, Vec::len);
            // Function, file, and four bytes each for line and column.
            Some(name + self.shown.locations.get(number)?.file.len() + 2 + 8)
        };
        let mut once: usize = (0..profile.frames().len()).filter_map(text).sum();
        for (_, stack) in profile.stacks() {
            let mut frames = Vec::with_capacity(stack.len());
            for &number in stack {
                let frame = profile.frames().get(number as usize)?;
                let place = self.shown.locations.get(number as usize)?;
                let function = profile
                    .names
                    .get(&frame.function)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                plain += text(number as usize)?;
                frames.push(TableFrame {
                    function,
                    path: Some(Cow::Borrowed(place.file.as_slice())),
                    line: place.line,
                    column: place.column,
                    flags: StackFlags::default(),
                });
            }
            once += 4 + 4 * stack.len();
            tables.intern_stack(&frames).ok()?;
        }
        Some(TableSizes {
            stacks: profile.stack_count() as u64,
            table_bytes: (tables.strings.encoded_len()
                + tables.paths.encoded_len()
                + tables.stacks.encoded_len()) as u64
                + 4 * profile.stack_count() as u64,
            frame_bytes: once as u64,
            plain_bytes: plain as u64,
        })
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * to_f64(part) / to_f64(whole.max(1))
}

#[derive(Serialize)]
struct JsonReport<'a> {
    schema: u32,
    file: &'a str,
    form: &'static str,
    version: Option<u32>,
    notes: &'a [String],
    total: Share,
    cold: Share,
    warm: Share,
    hot: Share,
    #[serde(skip_serializing_if = "Option::is_none")]
    locations: Option<TableSizes>,
    contexts: Vec<JsonContext>,
}

#[derive(Serialize)]
struct TableSizes {
    stacks: u64,
    table_bytes: u64,
    frame_bytes: u64,
    plain_bytes: u64,
}

#[derive(Serialize)]
struct JsonContext {
    kind: &'static str,
    fields: std::collections::BTreeMap<&'static str, u64>,
    average_lifetime_ms: f64,
    lifetime_access_density: f64,
    stack: Vec<JsonFrame>,
}

#[derive(Serialize)]
struct JsonFrame {
    guid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    line_offset: u32,
    column: u32,
    inlined: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    discriminator: Option<u32>,
}
