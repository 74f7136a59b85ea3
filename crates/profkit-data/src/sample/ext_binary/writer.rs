//! Writes extensible binary profiles (LLVM's `SampleProfileWriterExtBinary` in `SampleProfWriter.cpp`).
use super::eytzinger::in_order;
use super::sections::{self, Section};
use crate::bytes::{Sink, assert_planned};
use crate::ids::NameRef;
use crate::sample::binary::body::{Encoder, count_facts};
use crate::sample::binary::header;
use crate::sample::binary::names::NamePlan;
use crate::sample::binary::numbers::{put, put_summary};
use crate::sample::losses::Losses;
use crate::sample::model::{Function, ProfileKind, SampleProfile, Samples, compare_contexts};
use crate::sample::names::{NameId, SampleName};
use crate::sample::summary::summarize;
use crate::{ErrorKind, Result};
use profkit_abi::sample::{EXT_BINARY, SECTION_ENTRY_SIZE, UNIQUE_SUFFIX, flag, section};

/// Options for writing the extensible binary encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtBinaryOptions {
    /// Whether to write names as MD5 hashes of eight bytes (`--use-md5`).
    pub md5_names: bool,
    /// Whether to compress all sections (`--compress-all-sections`).
    pub compress: bool,
    /// Whether to write functions with inlined functions to one section and all other functions to another
    /// (`--split-layout`).
    pub split_layout: bool,
    /// Whether the split layout is also written for a profile with calling contexts, as LLVM 22's tool does. The file
    /// then has no context table, so no tool can read it. Without this option, such a profile is an error.
    pub split_contexts_as_llvm: bool,
    /// Whether to mark the file as a profile of code that is shared with other programs (`--gen-partial-profile`). A
    /// profile of kind [`ProfileKind::PARTIAL`] is always marked.
    pub partial: bool,
    /// Whether to write vtables (`--extbinary-write-vtable-type-prof`).
    pub vtables: bool,
    /// Whether names of the symbol list that are known only by their hash are left out. Without this option, a symbol
    /// list with such names is written as hashes, which LLVM 24 reads; earlier releases take the hashes for names.
    pub no_symbol_hashes: bool,
    /// Whether a profile without calling contexts is written without a table of contexts. LLVM 10 to 13 do not read files
    /// that have one; LLVM 14 and later write it always, and read files without it.
    pub no_context_table: bool,
}

setters!(ExtBinaryOptions {
    md5_names: bool,
    compress: bool,
    split_layout: bool,
    split_contexts_as_llvm: bool,
    partial: bool,
    no_symbol_hashes: bool,
    no_context_table: bool,
    vtables: bool,
});

/// The content of a section. The variants are in the order of LLVM's section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Summary,
    Names,
    Contexts,
    Offsets,
    Samples,
    FlatOffsets,
    FlatSamples,
    Symbols,
    Metadata,
}

const DEFAULT_TABLE: &[Part] = &[
    Part::Summary,
    Part::Names,
    Part::Contexts,
    Part::Offsets,
    Part::Samples,
    Part::Symbols,
    Part::Metadata,
];
const SPLIT_TABLE: &[Part] = &[
    Part::Summary,
    Part::Names,
    Part::Offsets,
    Part::Samples,
    Part::FlatOffsets,
    Part::FlatSamples,
    Part::Symbols,
    Part::Metadata,
];
/// The order in which the contents of the sections follow each other in the file. The section table has a different
/// order.
const DEFAULT_DATA: &[Part] = &[
    Part::Summary,
    Part::Names,
    Part::Contexts,
    Part::Samples,
    Part::Symbols,
    Part::Offsets,
    Part::Metadata,
];
const SPLIT_DATA: &[Part] = &[
    Part::Summary,
    Part::Names,
    Part::Samples,
    Part::Offsets,
    Part::FlatSamples,
    Part::FlatOffsets,
    Part::Symbols,
    Part::Metadata,
];

/// Writes a profile in the extensible binary encoding, version 103, as LLVM 22 does. Functions are ordered by
/// descending total samples, then by name or calling context. The metadata of functions have the same order. (LLVM
/// writes metadata in the order of a hash table instead.)
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the profile has calling contexts and the option `split_layout` is set without
/// `split_contexts_as_llvm`, because the split layout has no section for contexts. Otherwise the errors of the sink.
pub fn write(
    profile: &SampleProfile,
    options: &ExtBinaryOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    let is_cs = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
    let refuses_contexts = options.split_layout && !options.split_contexts_as_llvm;
    if is_cs && refuses_contexts && !profile.functions().is_empty() {
        return Err(ErrorKind::CannotRepresent
            .error("the split layout has no section for calling contexts")
            .with_hint("write the profile without the split layout"));
    }
    let ranks = profile.names.ranks();
    let plan = NamePlan::new(profile, &ranks, options.vtables);
    let mut writer = Writer {
        profile,
        options,
        order: profile.llvm_order(&ranks),
        contexts: Vec::new(),
        encoder: Encoder {
            plan: &plan,
            ranks: &ranks,
            vtables: options.vtables,
            losses: Losses::default(),
        },
        offsets: Vec::new(),
    };
    if is_cs {
        writer.contexts = writer.context_numbers();
    }
    let (table, data) = if options.split_layout {
        (SPLIT_TABLE, SPLIT_DATA)
    } else {
        (DEFAULT_TABLE, DEFAULT_DATA)
    };
    let is_written = |part: &&Part| **part != Part::Contexts || is_cs || !options.no_context_table;
    let table: Vec<Part> = table.iter().filter(is_written).copied().collect();
    let data = data.iter().filter(is_written);
    let mut out = Vec::new();
    header::put(&mut out, EXT_BINARY);
    out.extend_from_slice(&(table.len() as u64).to_le_bytes());
    let entries = out.len();
    out.resize(entries + table.len() * SECTION_ENTRY_SIZE, 0);
    let mut bytes = Vec::new();
    let mut sections = vec![Section::default(); table.len()];
    for &part in data {
        bytes.clear();
        writer.part(part, &mut bytes);
        let offset = out.len();
        sections::put_contents(&mut out, &bytes, options.compress)?;
        for (slot, _) in sections
            .iter_mut()
            .zip(&table)
            .filter(|(_, in_table)| **in_table == part)
        {
            *slot = Section {
                kind: part.kind(),
                flags: writer.flags(part),
                offset: offset as u64,
                size: (out.len() - offset) as u64,
            };
        }
    }
    let written: u64 = sections.iter().map(|section| section.size).sum();
    let start = entries + table.len() * SECTION_ENTRY_SIZE;
    let planned = (out.len() - start) as u64;
    assert_planned("sections of the section table", planned, written);
    let encoded: Vec<u8> = sections
        .iter()
        .flat_map(|section| [section.kind, section.flags, section.offset, section.size])
        .flat_map(u64::to_le_bytes)
        .collect();
    assert_planned(
        "section table",
        (start - entries) as u64,
        encoded.len() as u64,
    );
    if let Some(slot) = out.get_mut(entries..start) {
        slot.copy_from_slice(&encoded);
    }
    sink.put(&out)?;
    Ok(writer.encoder.losses)
}

impl Part {
    fn kind(self) -> u64 {
        match self {
            Part::Summary => section::SUMMARY,
            Part::Names => section::NAMES,
            Part::Contexts => section::CONTEXTS,
            Part::Offsets | Part::FlatOffsets => section::FUNCTION_OFFSETS,
            Part::Samples | Part::FlatSamples => section::SAMPLES,
            Part::Symbols => section::SYMBOLS,
            Part::Metadata => section::METADATA,
        }
    }
}

struct Writer<'a> {
    profile: &'a SampleProfile,
    options: &'a ExtBinaryOptions,
    order: Vec<u32>,
    /// For each function, the index of its calling context in the context table. The list is empty in profiles without
    /// contexts.
    contexts: Vec<u32>,
    encoder: Encoder<'a>,
    /// For each function in the section of samples that was written last, the index of its name or calling context, and
    /// its offset in the section.
    offsets: Vec<(u64, u64)>,
}

impl<'a> Writer<'a> {
    fn has(&self, kind: ProfileKind) -> bool {
        self.profile.kind.contains(kind)
    }

    fn has_hashed_symbols(&self) -> bool {
        !self.options.no_symbol_hashes && !self.profile.symbol_hashes.is_empty()
    }

    /// Whether attributes are written. LLVM writes them only for some kinds of profiles.
    fn has_attributes(&self) -> bool {
        self.has(ProfileKind::CONTEXT_SENSITIVE) || self.has(ProfileKind::PRE_INLINED)
    }

    fn part(&mut self, part: Part, out: &mut Vec<u8>) {
        match part {
            Part::Summary => put_summary(out, &summarize(self.profile)),
            Part::Names => self.names(out),
            Part::Contexts => self.context_table(out),
            Part::Samples => {
                let split = self.options.split_layout;
                self.samples(out, |samples| !split || !samples.inlined.is_empty());
            }
            Part::FlatSamples => self.samples(out, |samples| samples.inlined.is_empty()),
            Part::Offsets | Part::FlatOffsets => self.offset_table(out),
            Part::Symbols if self.has_hashed_symbols() => eytzinger_symbols(self.profile, out),
            Part::Symbols => {
                self.encoder.losses.symbols += self.profile.symbol_hashes.len() as u64;
                for symbol in &self.profile.symbols {
                    out.extend_from_slice(symbol);
                    out.push(0);
                }
            }
            Part::Metadata => self.metadata(out),
        }
    }

    fn flags(&self, part: Part) -> u64 {
        let set = |flags: u64, yes: bool| if yes { flags } else { 0 };
        let kind = |kind| self.has(kind);
        let own = match part {
            Part::Summary => {
                set(
                    flag::PARTIAL,
                    self.options.partial || kind(ProfileKind::PARTIAL),
                ) | set(
                    flag::CONTEXT_SENSITIVE,
                    kind(ProfileKind::CONTEXT_SENSITIVE),
                ) | set(
                    flag::FS_DISCRIMINATORS,
                    kind(ProfileKind::FS_DISCRIMINATORS),
                ) | set(flag::PRE_INLINED, kind(ProfileKind::PRE_INLINED))
                    | set(flag::VTABLES, self.options.vtables)
            }
            Part::Names if self.options.md5_names => flag::MD5_NAMES | flag::FIXED_MD5_NAMES,
            Part::Names => set(flag::UNIQUE_SUFFIX, self.has_unique_names()),
            Part::Offsets => set(flag::ORDERED, kind(ProfileKind::CONTEXT_SENSITIVE)),
            Part::FlatOffsets => {
                flag::FLAT | set(flag::ORDERED, kind(ProfileKind::CONTEXT_SENSITIVE))
            }
            Part::FlatSamples => flag::FLAT,
            Part::Metadata => {
                set(flag::PROBE_BASED, kind(ProfileKind::PROBE_BASED))
                    | set(flag::ATTRIBUTES, self.has_attributes())
            }
            Part::Symbols => set(flag::MD5_SYMBOLS, self.has_hashed_symbols()),
            Part::Contexts | Part::Samples => 0,
        };
        own | set(flag::COMPRESSED, self.options.compress)
    }

    fn has_unique_names(&self) -> bool {
        let finder = memchr::memmem::Finder::new(UNIQUE_SUFFIX);
        self.encoder.plan.order.iter().any(|&id| {
            matches!(self.profile.names.get(id), SampleName::Text(text) if finder.find(text).is_some())
        })
    }

    fn names(&mut self, out: &mut Vec<u8>) {
        let names = &self.profile.names;
        let order = &self.encoder.plan.order;
        if !self.options.md5_names {
            return self.encoder.plan.put_plain(out, names);
        }
        put(out, order.len() as u64);
        for &id in order {
            let name = names.get(id);
            self.encoder.losses.names += u64::from(matches!(name, SampleName::Text(_)));
            out.extend_from_slice(&name.guid().0.to_le_bytes());
        }
    }

    /// Returns the indices of the functions. They are in the order of the functions' calling contexts, which is also the
    /// order of the context table.
    fn context_order(&self) -> Vec<u32> {
        let ranks = self.encoder.ranks;
        let rank = |name: NameId| ranks.get(name).copied().unwrap_or(u32::MAX);
        let functions = self.profile.functions();
        let mut order = self.order.clone();
        order.sort_by(|&one, &two| {
            match (functions.get(one as usize), functions.get(two as usize)) {
                (Some(one), Some(two)) => compare_contexts(one, two, rank),
                _ => std::cmp::Ordering::Equal,
            }
        });
        order
    }

    fn context_numbers(&self) -> Vec<u32> {
        let mut numbers = vec![0; self.order.len()];
        for (number, function) in (0u32..).zip(self.context_order()) {
            if let Some(slot) = numbers.get_mut(function as usize) {
                *slot = number;
            }
        }
        numbers
    }

    /// Appends the index of a function, as [`number`](Self::number) returns it. In the split layout, every calling
    /// context has the index 0, as in LLVM: LLVM's writer assigns the indexes when it writes the context table, and the
    /// split layout has no context table.
    fn put_number(&self, out: &mut Vec<u8>, number: u64) {
        let is_unnumbered = self.options.split_layout && !self.contexts.is_empty();
        put(out, if is_unnumbered { 0 } else { number });
    }

    /// Returns the index by which the file refers to a function: the index of its calling context, or of its name if
    /// the profile has no contexts.
    fn number(&self, index: u32, function: &Function) -> u64 {
        match self.contexts.get(index as usize) {
            Some(&number) => u64::from(number),
            None => u64::from(self.encoder.plan.number(function.samples.name)),
        }
    }

    fn context_table(&mut self, out: &mut Vec<u8>) {
        if self.contexts.is_empty() {
            return out.push(0);
        }
        put(out, self.contexts.len() as u64);
        for index in self.context_order() {
            let Some(function) = self.profile.functions().get(index as usize) else {
                continue;
            };
            put(out, function.callers.len() as u64 + 1);
            for frame in &function.callers {
                put(out, u64::from(self.encoder.plan.number(frame.name)));
                self.encoder.location(out, frame.location);
            }
            put(
                out,
                u64::from(self.encoder.plan.number(function.samples.name)),
            );
            out.extend_from_slice(&[0, 0]);
        }
    }

    fn samples(&mut self, out: &mut Vec<u8>, belongs: impl Fn(&Samples) -> bool) {
        self.offsets.clear();
        let profile = self.profile;
        for position in 0..self.order.len() {
            let index = self.order.get(position).copied().unwrap_or(u32::MAX);
            let Some(function) = profile.functions().get(index as usize) else {
                continue;
            };
            if !belongs(&function.samples) {
                continue;
            }
            let number = self.number(index, function);
            self.offsets.push((number, out.len() as u64));
            put(out, function.samples.head);
            self.put_number(out, number);
            self.encoder.body(out, &function.samples);
        }
    }

    fn offset_table(&mut self, out: &mut Vec<u8>) {
        if !self.contexts.is_empty() {
            self.offsets.sort_unstable();
        }
        put(out, self.offsets.len() as u64);
        for &(number, offset) in &self.offsets {
            self.put_number(out, number);
            put(out, offset);
        }
    }

    fn metadata(&mut self, out: &mut Vec<u8>) {
        let has_checksums = self.has(ProfileKind::PROBE_BASED);
        let has_attributes = self.has_attributes();
        for function in self.profile.functions() {
            let mut held = Losses::default();
            count_facts(&function.samples, &mut held);
            if !self.contexts.is_empty() {
                // In profiles with calling contexts, metadata entries have no fields for inlined functions, so the
                // checksums and attributes of inlined functions are lost.
                let mut inlined = Losses::default();
                for one in &function.samples.inlined {
                    count_facts(&one.samples, &mut inlined);
                }
                self.encoder.losses.checksums += inlined.checksums;
                self.encoder.losses.attributes += inlined.attributes;
            }
            if !has_checksums {
                self.encoder.losses.checksums += held.checksums;
            }
            if !has_attributes {
                self.encoder.losses.attributes += held.attributes;
            }
        }
        if !has_checksums && !has_attributes {
            return;
        }
        for &index in &self.order {
            if let Some(function) = self.profile.functions().get(index as usize) {
                self.put_number(out, self.number(index, function));
                self.facts(out, &function.samples, has_checksums, has_attributes);
            }
        }
    }

    fn facts(&self, out: &mut Vec<u8>, samples: &Samples, checksums: bool, attributes: bool) {
        if checksums {
            put(out, samples.checksum);
        }
        if attributes {
            put(out, u64::from(samples.attributes));
        }
        if !self.contexts.is_empty() {
            return;
        }
        put(out, samples.inlined.len() as u64);
        for inlined in self.encoder.inlined_order(samples) {
            put(out, u64::from(inlined.location.line));
            put(out, u64::from(inlined.location.discriminator));
            put(
                out,
                u64::from(self.encoder.plan.number(inlined.samples.name)),
            );
            self.facts(out, &inlined.samples, checksums, attributes);
        }
    }
}

/// Appends the hashes of all names of the symbol list, in Eytzinger order.
fn eytzinger_symbols(profile: &SampleProfile, out: &mut Vec<u8>) {
    let mut sorted = profile.symbol_hashes.clone();
    sorted.extend(profile.symbols.iter().map(|name| NameRef::of(name).0));
    let mut tree = vec![0; sorted.len()];
    for (index, hash) in in_order(sorted.len()).zip(sorted) {
        if let Some(slot) = tree.get_mut(index) {
            *slot = hash;
        }
    }
    out.extend(tree.into_iter().flat_map(u64::to_le_bytes));
}
