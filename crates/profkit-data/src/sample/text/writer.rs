//! Writes text profiles (LLVM's `SampleProfileWriterText` in `SampleProfWriter.cpp`).
use super::super::losses::Losses;
use super::super::model::{Function, Location, ProfileKind, SampleProfile, Samples, Target};
use super::super::names::{NameId, SampleName};
use crate::bytes::Sink;
use crate::index_vec::IndexVec;
use crate::releases::Release;
use crate::{Error, ErrorKind, Result};
use std::cmp::Reverse;

/// Options for writing a text profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextOptions {
    /// Whether to write vtable lines where LLVM 22 writes them: after the samples of their location, and again after
    /// the functions inlined at that location. Vtables at a location with neither samples nor inlined functions are
    /// therefore lost, and vtables at a location with both are written twice. Without this option, each vtable is
    /// written once.
    pub llvm_vtables: bool,
    /// Whether to mark functions without inlined functions by a line ` !Flat`, as LLVM 22 does with `--split-layout`.
    pub mark_flat: bool,
    /// The LLVM release that will read the text; `None` for the newest. See [`for_llvm`](Self::for_llvm).
    pub release: Option<Release>,
}

setters!(TextOptions {
    llvm_vtables: bool,
    mark_flat: bool
});

impl TextOptions {
    /// Sets the LLVM release that will read the text. The parts of the profile that this release rejects or misreads
    /// are left out and counted in [`Losses`]:
    /// - before LLVM 22: vtables, because these releases read vtables as an inlined function;
    /// - before LLVM 14: checksums and attributes of inlined functions;
    /// - before LLVM 13: all checksums and attributes.
    #[must_use]
    pub fn for_llvm(mut self, release: Release) -> Self {
        self.release = Some(release);
        self
    }

    /// Whether the release that will read the text is LLVM `major` or later.
    fn reads(&self, major: u8) -> bool {
        self.release.is_none_or(|it| it >= Release::new(major))
    }
}

/// The number of bytes that are collected before they are written to the sink.
const BUFFER: usize = 1 << 16;

/// Writes a profile as text. Functions are ordered by descending total samples, then by name.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the profile has calling contexts and is written for a release before LLVM 13,
/// because such a release takes a context for the name of a function. Otherwise the errors of the sink.
pub fn write(
    profile: &SampleProfile,
    options: &TextOptions,
    sink: &mut dyn Sink,
) -> Result<Losses> {
    if profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) && !options.reads(13) {
        let release = options.release.map(|it| it.to_string()).unwrap_or_default();
        return Err(Error::new(ErrorKind::CannotRepresent, format!("a text for LLVM {release} cannot have calling contexts: LLVM {release} would read them as names of functions"))
        .with_hint("write for LLVM 13 or later, or remove the calling contexts with --layout nest or --layout flat"));
    }
    let ranks = profile.names.ranks();
    let mut writer = Writer {
        profile,
        ranks: &ranks,
        options: *options,
        out: Vec::with_capacity(BUFFER * 2),
        targets: Vec::new(),
        losses: Losses {
            symbols: profile.symbol_count() as u64,
            ..Losses::default()
        },
    };
    for index in profile.llvm_order(&ranks) {
        let Some(function) = profile.functions().get(index as usize) else {
            continue;
        };
        writer.function(function);
        if writer.out.len() >= BUFFER {
            sink.put(&writer.out)?;
            writer.out.clear();
        }
    }
    sink.put(&writer.out)?;
    Ok(writer.losses)
}

struct Writer<'a> {
    profile: &'a SampleProfile,
    ranks: &'a IndexVec<NameId, u32>,
    options: TextOptions,
    out: Vec<u8>,
    targets: Vec<Target>,
    losses: Losses,
}

impl Writer<'_> {
    fn function(&mut self, function: &Function) {
        let samples = &function.samples;
        if self.profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE) {
            self.out.push(b'[');
            for frame in &function.callers {
                self.name(frame.name);
                self.out.push(b':');
                self.location(frame.location);
                self.out.extend_from_slice(b" @ ");
            }
            self.name(samples.name);
            self.out.push(b']');
        } else {
            self.name(samples.name);
        }
        self.count(b':', samples.total);
        self.count(b':', samples.head);
        self.out.push(b'\n');
        self.body(samples, 1);
        if self.options.mark_flat && samples.inlined.is_empty() {
            self.out.extend_from_slice(b" !Flat\n");
        }
    }

    fn body(&mut self, samples: &Samples, depth: usize) {
        let has_facts = self.options.reads(if depth == 1 { 13 } else { 14 });
        let mut targets = samples.targets.as_slice();
        let mut vtables = Vtables {
            all: &samples.vtables,
            rest: &samples.vtables,
        };
        for line in &samples.body {
            self.vtables_before(&mut vtables, line.location, depth);
            self.start(line.location, depth);
            self.count(b' ', line.samples);
            let here = targets
                .iter()
                .take_while(|target| target.location <= line.location)
                .count();
            let (now, later) = targets.split_at(here);
            targets = later;
            match now {
                [] => {}
                [target] => self.target(target),
                _ => self.sorted_targets(now),
            }
            self.out.push(b'\n');
            let here = vtables.take(line.location);
            self.vtables(here, depth);
        }
        for group in samples
            .inlined
            .chunk_by(|one, two| one.location == two.location)
        {
            let Some(first) = group.first() else { continue };
            self.vtables_before(&mut vtables, first.location, depth);
            if group.len() == 1 {
                self.inlined(&first.samples, first.location, depth);
            } else {
                let mut order: Vec<_> = group.iter().collect();
                order.sort_unstable_by_key(|inlined| self.rank(inlined.samples.name));
                for inlined in order {
                    self.inlined(&inlined.samples, inlined.location, depth);
                }
            }
            let here = if self.options.llvm_vtables {
                vtables.again(first.location)
            } else {
                vtables.take(first.location)
            };
            self.vtables(here, depth);
        }
        if !self.options.llvm_vtables {
            self.groups(vtables.rest, depth);
        }
        let has_checksums = self.profile.kind.contains(ProfileKind::PROBE_BASED);
        if !has_facts {
            self.losses.checksums += u64::from(has_checksums);
            self.losses.attributes += u64::from(samples.attributes != 0);
            return;
        }
        if has_checksums {
            self.indent(depth);
            self.out.extend_from_slice(b"!CFGChecksum: ");
            self.number(samples.checksum);
            self.out.push(b'\n');
        }
        if samples.attributes != 0 {
            self.indent(depth);
            self.out.extend_from_slice(b"!Attributes: ");
            self.number(u64::from(samples.attributes));
            self.out.push(b'\n');
        }
    }

    fn inlined(&mut self, samples: &Samples, location: Location, depth: usize) {
        self.start(location, depth);
        self.out.push(b' ');
        // In context-sensitive profiles, LLVM writes brackets around the names of inlined functions too.
        let brackets = self.profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
        if brackets {
            self.out.push(b'[');
        }
        let start = self.out.len();
        self.name(samples.name);
        // After a line number, readers take digits for a count. So they cannot read the hash of an inlined function.
        if !brackets && self.out.get(start).is_some_and(u8::is_ascii_digit) {
            self.losses.unspeakable_names += 1;
        }
        if brackets {
            self.out.push(b']');
        }
        self.count(b':', samples.total);
        self.out.push(b'\n');
        self.body(samples, depth + 1);
    }

    fn sorted_targets(&mut self, targets: &[Target]) {
        let mut sorted = std::mem::take(&mut self.targets);
        sorted.clear();
        sorted.extend_from_slice(targets);
        sorted.sort_unstable_by_key(|target| (Reverse(target.count), self.rank(target.name)));
        for target in &sorted {
            self.target(target);
        }
        self.targets = sorted;
    }

    fn target(&mut self, target: &Target) {
        self.out.push(b' ');
        self.name(target.name);
        self.count(b':', target.count);
    }

    /// Writes one line with the vtables at one location, sorted by name. The line ends with a blank.
    fn vtables(&mut self, vtables: &[Target], depth: usize) {
        let Some(first) = vtables.first() else { return };
        if !self.options.reads(22) {
            self.losses.vtables += vtables.len() as u64;
            return;
        }
        let mut sorted = vtables.to_vec();
        sorted.sort_unstable_by_key(|target| self.rank(target.name));
        self.start(first.location, depth);
        self.out.extend_from_slice(b" vtables ");
        for target in &sorted {
            self.name(target.name);
            self.count(b':', target.count);
            self.out.push(b' ');
        }
        self.out.push(b'\n');
    }

    /// Writes the vtables at locations before `location`, but only at locations with neither samples nor inlined
    /// functions.
    fn vtables_before(&mut self, vtables: &mut Vtables<'_>, location: Location, depth: usize) {
        if !self.options.llvm_vtables {
            let earlier = vtables.take_before(location);
            self.groups(earlier, depth);
        }
    }

    fn groups(&mut self, vtables: &[Target], depth: usize) {
        for group in vtables.chunk_by(|one, two| one.location == two.location) {
            self.vtables(group, depth);
        }
    }

    fn rank(&self, name: NameId) -> u32 {
        self.ranks.get(name).copied().unwrap_or(u32::MAX)
    }

    fn start(&mut self, location: Location, depth: usize) {
        self.indent(depth);
        // A line number may have 32 bits if it has a discriminator, but only 16 bits if it does not.
        if location.line > 0xffff && location.discriminator == 0 {
            self.losses.large_lines += 1;
        }
        self.location(location);
        self.out.push(b':');
    }

    fn indent(&mut self, depth: usize) {
        self.out.resize(self.out.len() + depth, b' ');
    }

    fn location(&mut self, location: Location) {
        self.number(u64::from(location.line));
        if location.discriminator != 0 {
            self.count(b'.', u64::from(location.discriminator));
        }
    }

    fn name(&mut self, name: NameId) {
        match self.profile.names.get(name) {
            SampleName::Guid(guid) => self.number(guid.0),
            SampleName::Text(text) => {
                let odd_start = matches!(text.first(), None | Some(b' ' | b'#'));
                if odd_start || memchr::memchr2(b'\n', 0, text).is_some() {
                    self.losses.unspeakable_names += 1;
                }
                self.out.extend_from_slice(text);
            }
        }
    }

    fn count(&mut self, before: u8, count: u64) {
        self.out.push(before);
        self.number(count);
    }

    fn number(&mut self, number: u64) {
        let mut buffer = itoa::Buffer::new();
        self.out.extend_from_slice(buffer.format(number).as_bytes());
    }
}

struct Vtables<'a> {
    all: &'a [Target],
    rest: &'a [Target],
}

impl<'a> Vtables<'a> {
    /// Returns the vtables at locations before `location`, and marks them as written.
    fn take_before(&mut self, location: Location) -> &'a [Target] {
        let earlier = self
            .rest
            .partition_point(|target| target.location < location);
        let (now, later) = self.rest.split_at(earlier);
        self.rest = later;
        now
    }

    fn take(&mut self, location: Location) -> &'a [Target] {
        let start = self
            .rest
            .partition_point(|target| target.location < location);
        let rest = self.rest.get(start..).unwrap_or_default();
        let (now, later) =
            rest.split_at(rest.partition_point(|target| target.location == location));
        if !now.is_empty() {
            self.rest = later;
        }
        now
    }

    /// Returns the vtables at a location, even if they were already written.
    fn again(&self, location: Location) -> &'a [Target] {
        let mut all = Vtables {
            all: self.all,
            rest: self.all,
        };
        all.take(location)
    }
}
