//! The sums of sample profiles in parts. docs/formats/part.md describes the format.
use super::bytes::{In, Out};
use crate::driver::ReportPart;
use crate::sample::SampleSum;
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::ids::NameRef;
use profkit_data::index_vec::IndexVec;
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::sample::{
    BodyLine, Facts, Frame, Function, Inlined, Location, NameId, ProfileKind, SampleName, Samples,
    Target, compare_contexts,
};
use profkit_data::{Error, Result};
use std::collections::BTreeMap;

pub(super) fn encode(sum: &SampleSum) -> Out {
    let profile = &sum.profile;
    let mut out = Out::default();
    out.number(u64::from(profile.kind.bits()));
    for seen in sum.seen.as_flattened() {
        out.number(seen.map_or(0, |input| input as u64 + 1));
    }
    out.count(profile.symbols.len());
    let mut last: &[u8] = &[];
    for symbol in &profile.symbols {
        out.after(last, symbol);
        last = symbol;
    }
    out.count(profile.symbol_hashes.len());
    for &hash in &profile.symbol_hashes {
        out.fixed(hash);
    }
    let numbers = put_names(&mut out, sum);
    let mut functions: Vec<&Function> = profile.functions().iter().collect();
    functions.sort_by(|one, two| compare_contexts(one, two, |name| numbers.of(name)));
    out.count(functions.len());
    let mut last: &[Frame] = &[];
    for function in functions {
        let callers = &function.callers;
        let same = last.iter().zip(callers).take_while(|(a, b)| a == b).count();
        out.count(same);
        let rest = callers.get(same..).unwrap_or_default();
        out.count(rest.len());
        for frame in rest {
            out.number(u64::from(numbers.of(frame.name)));
            out.number(u64::from(frame.location.line));
            out.number(u64::from(frame.location.discriminator));
        }
        numbers.put(&mut out, &function.samples);
        last = callers;
    }
    out
}

/// The numbers of names in the part: their place among those that are used, sorted; variants come after all names.
struct Numbers(IndexVec<NameId, u32>);

fn put_names(out: &mut Out, sum: &SampleSum) -> Numbers {
    let names = &sum.profile.names;
    let mut used: IndexVec<NameId, bool> = names.iter().map(|_| false).collect();
    for function in sum.profile.functions() {
        for frame in &function.callers {
            mark(&mut used, frame.name);
        }
        mark_all(&mut used, &function.samples);
    }
    let variants = names.variants().filter(|&id| used.get(id) == Some(&true));
    let variants: Vec<NameId> = variants.collect();
    for &variant in &variants {
        mark(&mut used, names.variant(variant).0);
    }
    let is_plain = |id: NameId| names.variant(id).0 == id;
    let plain = names
        .iter()
        .filter(|&(id, _)| used.get(id) == Some(&true) && is_plain(id));
    let mut plain: Vec<(SampleName<'_>, NameId)> = plain.map(|(id, name)| (name, id)).collect();
    plain.sort_unstable();
    let mut numbers: IndexVec<NameId, u32> = names.iter().map(|_| 0).collect();
    let mut set = |id: NameId, number: u32| {
        let place = numbers.get_mut(id);
        place.into_iter().for_each(|place| *place = number);
    };
    for (number, &(_, id)) in (0u32..).zip(&plain) {
        set(id, number);
    }
    let hashes = plain.partition_point(|(name, _)| matches!(name, SampleName::Guid(_)));
    out.count(hashes);
    out.count(plain.len() - hashes);
    let mut last: &[u8] = &[];
    for (name, _) in &plain {
        match name {
            SampleName::Guid(hash) => out.fixed(hash.0),
            SampleName::Text(text) => {
                out.after(last, text);
                last = text;
            }
        }
    }
    let of = |id: NameId| plain.binary_search_by(|(name, _)| name.cmp(&names.get(id)));
    let keyed = variants.into_iter().map(|id| {
        let (name, facts) = names.variant(id);
        ((of(name).unwrap_or(0), facts), id)
    });
    let sorted: BTreeMap<(usize, Facts), NameId> = keyed.collect();
    out.count(sorted.len());
    for (number, (&(name, facts), &id)) in (plain.len() as u64..).zip(&sorted) {
        set(id, u32::try_from(number).unwrap_or(u32::MAX));
        out.count(name);
        out.fixed(facts.checksum);
        out.number(u64::from(facts.attributes));
        out.count(sum.first.get(&id).copied().unwrap_or(0));
    }
    Numbers(numbers)
}

fn mark(used: &mut IndexVec<NameId, bool>, name: NameId) {
    let place = used.get_mut(name);
    place.into_iter().for_each(|used| *used = true);
}

fn mark_all(used: &mut IndexVec<NameId, bool>, samples: &Samples) {
    mark(used, samples.name);
    for target in samples.targets.iter().chain(&samples.vtables) {
        mark(used, target.name);
    }
    for inlined in &samples.inlined {
        mark_all(used, &inlined.samples);
    }
}

impl Numbers {
    fn of(&self, name: NameId) -> u32 {
        self.0.get(name).copied().unwrap_or(0)
    }

    fn put(&self, out: &mut Out, samples: &Samples) {
        out.number(u64::from(self.of(samples.name)));
        out.number(samples.total);
        out.number(samples.head);
        out.count(samples.body.len());
        let mut line = 0;
        for one in &samples.body {
            put_location(out, &mut line, one.location);
            out.number(one.samples);
        }
        for targets in [&samples.targets, &samples.vtables] {
            out.count(targets.len());
            let mut sorted: Vec<&Target> = targets.iter().collect();
            sorted.sort_by_key(|one| (one.location, self.of(one.name)));
            let mut line = 0;
            for one in sorted {
                put_location(out, &mut line, one.location);
                out.number(u64::from(self.of(one.name)));
                out.number(one.count);
            }
        }
        out.count(samples.inlined.len());
        let mut sorted: Vec<&Inlined> = samples.inlined.iter().collect();
        sorted.sort_by_key(|one| (one.location, self.of(one.samples.name)));
        let mut line = 0;
        for one in sorted {
            put_location(out, &mut line, one.location);
            self.put(out, &one.samples);
        }
    }
}

/// Locations are sorted by line.
fn put_location(out: &mut Out, last: &mut u32, location: Location) {
    out.number(u64::from(location.line - *last));
    out.number(u64::from(location.discriminator));
    *last = location.line;
}

impl SampleSum {
    /// The same sum, with all names and functions in the order that parts have.
    pub(crate) fn in_order(self, inputs: usize) -> Self {
        let Out(bytes) = encode(&self);
        let mut source = In(Cursor::new(&bytes, 0, Endian::Little));
        match decode(&mut source, inputs, ReportPart::default()) {
            Ok(sorted) => SampleSum {
                report: self.report,
                contents: self.contents,
                ..sorted
            },
            // What was encoded can be decoded.
            Err(_) => self,
        }
    }
}

pub(super) fn decode(source: &mut In<'_>, inputs: usize, report: ReportPart) -> Result<SampleSum> {
    let mut sum = SampleSum {
        report,
        ..SampleSum::default()
    };
    let bits = source.small()?;
    let kind = ProfileKind::from_bits(bits);
    sum.profile.kind = kind.ok_or_else(|| source.wrong("the kind is not known").found(bits))?;
    for seen in sum.seen.as_flattened_mut() {
        *seen = match source.number()? {
            0 => None,
            input if input <= inputs as u64 => usize::try_from(input - 1).ok(),
            input => {
                return Err(source
                    .wrong("there is no input with this number")
                    .found(input));
            }
        };
    }
    let mut symbol = Vec::new();
    for _ in 0..source.count(2)? {
        source.after(&mut symbol)?;
        sum.profile.symbols.insert(symbol.as_slice().into());
    }
    for _ in 0..source.count(8)? {
        sum.profile.symbol_hashes.insert(source.0.u64()?);
    }
    let ids = names(source, &mut sum, inputs)?;
    let mut callers: Vec<Frame> = Vec::new();
    for _ in 0..source.count(9)? {
        let same = source.size()?;
        if same > callers.len() {
            return Err(source.wrong("a function repeats more callers than the last one has"));
        }
        callers.truncate(same);
        for _ in 0..source.count(3)? {
            callers.push(Frame {
                name: ids.plain(source)?,
                location: Location::new(source.small()?, source.small()?),
            });
        }
        let function = Function {
            callers: callers.as_slice().into(),
            samples: ids.samples(source, 0)?,
        };
        if sum.profile.push(function).is_some() {
            return Err(source.wrong("a function is there twice"));
        }
    }
    Ok(sum)
}

/// The ids of names, by their numbers in the part.
struct Ids {
    ids: Vec<NameId>,
    plain: usize,
}

fn names(source: &mut In<'_>, sum: &mut SampleSum, inputs: usize) -> Result<Ids> {
    let table = &mut sum.profile.names;
    let mut ids = Vec::new();
    let full = |source: &In<'_>| source.wrong("there are too many names");
    let hashes = source.count(8)?;
    let texts = source.count(2)?;
    for _ in 0..hashes {
        let hash = NameRef(source.0.u64()?);
        ids.push(
            table
                .insert(SampleName::Guid(hash))
                .ok_or_else(|| full(source))?,
        );
    }
    let mut text = Vec::new();
    for _ in 0..texts {
        source.after(&mut text)?;
        ids.push(
            table
                .insert(SampleName::Text(&text))
                .ok_or_else(|| full(source))?,
        );
    }
    let unsorted =
        |source: &In<'_>| source.wrong("the names are not sorted, or one is there twice");
    if table.len() != ids.len() || !ids.is_sorted_by_key(|&id| table.get(id)) {
        return Err(unsorted(source));
    }
    let plain = ids.len();
    let mut last = None;
    for _ in 0..source.count(11)? {
        let number = source.size()?;
        let facts = Facts {
            checksum: source.0.u64()?,
            attributes: source.small()?,
        };
        let name = ids.get(number).filter(|_| number < plain).copied();
        let name = name.ok_or_else(|| no_name(source, number))?;
        if facts == Facts::default() || last >= Some((number, facts)) {
            return Err(unsorted(source));
        }
        last = Some((number, facts));
        let id = table
            .insert_variant(name, facts)
            .ok_or_else(|| full(source))?;
        ids.push(id);
        sum.first.insert(id, source.input(inputs)?);
    }
    Ok(Ids { ids, plain })
}

fn no_name(source: &In<'_>, number: usize) -> Error {
    source
        .wrong("there is no name with this number")
        .found(number)
}

impl Ids {
    fn name(&self, source: &mut In<'_>) -> Result<NameId> {
        let number = source.size()?;
        let id = self.ids.get(number).copied();
        id.ok_or_else(|| no_name(source, number))
    }

    /// A name that is not of a function.
    fn plain(&self, source: &mut In<'_>) -> Result<NameId> {
        let number = source.size()?;
        let id = self.ids.get(number).filter(|_| number < self.plain);
        id.copied().ok_or_else(|| no_name(source, number))
    }

    fn samples(&self, source: &mut In<'_>, depth: usize) -> Result<Samples> {
        let mut samples = Samples {
            name: self.name(source)?,
            total: source.number()?,
            head: source.number()?,
            ..Samples::default()
        };
        let mut line = 0;
        for _ in 0..source.count(3)? {
            let location = location(source, &mut line)?;
            samples.body.push(BodyLine {
                location,
                samples: source.number()?,
            });
        }
        samples.targets = self.targets(source)?;
        samples.vtables = self.targets(source)?;
        let count = source.count(9)?;
        if count > 0 && depth == SAMPLE_INLINE_DEPTH {
            return Err(source.wrong("inlined functions nest too deeply"));
        }
        let mut line = 0;
        for _ in 0..count {
            samples.inlined.push(Inlined {
                location: location(source, &mut line)?,
                samples: self.samples(source, depth + 1)?,
            });
        }
        let has_line = |target: &Target| {
            let found = samples
                .body
                .binary_search_by_key(&target.location, |one| one.location);
            found.is_ok()
        };
        let key = |one: &Target| (one.location, one.name);
        let is_sorted = samples.body.is_sorted_by(|a, b| a.location < b.location)
            && [&samples.targets, &samples.vtables]
                .iter()
                .all(|list| list.is_sorted_by(|a, b| key(a) < key(b)))
            && samples
                .inlined
                .is_sorted_by(|a, b| (a.location, a.samples.name) < (b.location, b.samples.name));
        if !is_sorted || !samples.targets.iter().all(has_line) {
            return Err(source.wrong("the samples of a function are not sorted, or of no line"));
        }
        Ok(samples)
    }

    fn targets(&self, source: &mut In<'_>) -> Result<Vec<Target>> {
        let mut line = 0;
        let count = source.count(4)?;
        let targets = (0..count).map(|_| {
            Ok(Target {
                location: location(source, &mut line)?,
                name: self.plain(source)?,
                count: source.number()?,
            })
        });
        targets.collect()
    }
}

fn location(source: &mut In<'_>, last: &mut u32) -> Result<Location> {
    let more = source.small()?;
    let line = last.checked_add(more);
    *last = line.ok_or_else(|| source.wrong("a line number has more than 32 bits"))?;
    Ok(Location::new(*last, source.small()?))
}
