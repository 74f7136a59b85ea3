//! Sample profiles by pseudo probe, for programs that clang compiled with `-fpseudo-probe-for-profiling`.
//!
//! Each probe gets the sum of the counts of its code, in all places to which the compiler copied it. The count is also
//! added to the totals of the functions that the probe was inlined into. The entry probe counts the calls of its
//! function. A branch from the probe of a call to the entry of a function adds a call target.
mod section;

pub use section::{
    CopyId, DESCRIPTIONS, Description, FunctionCopy, PROBES, Probe, ProbeFrame, ProbeMap, Sections,
    Wanted,
};

use crate::checked::{CheckedCounts, Figures, add};
use crate::lines::{LineOptions, add_zeros, line_at, raise_lines_to_targets, total_of_lines};
use crate::program::{FunctionId, Program};
use crate::ranges::disjoint;
use profkit_data::Result;
use profkit_data::ids::NameRef;
use profkit_data::memprof::canonical_name;
use profkit_data::sample::{
    AddOutcome, Location, NameId, ProfileKind, SampleName, SampleProfile, Samples,
};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) fn probes_of(
    program: &Program<'_>,
    functions: &FxHashSet<FunctionId>,
) -> Result<ProbeMap> {
    let Some(sections) = &program.probes else {
        return Ok(ProbeMap::default());
    };
    let mut wanted = Wanted {
        functions: Some(FxHashSet::default()),
        ..Wanted::default()
    };
    let mut order: Vec<FunctionId> = functions.iter().copied().collect();
    order.sort_unstable();
    for function in order.into_iter().filter_map(|id| program.function(id)) {
        let guid = NameRef::of(&function.name).0;
        wanted.functions.get_or_insert_default().insert(guid);
        for (start, _) in &function.ranges {
            for symbol in program.symbols_at(*start) {
                wanted.starts.insert(symbol.guid, *start);
                let functions = wanted.functions.get_or_insert_default();
                functions.insert(symbol.function);
            }
        }
    }
    ProbeMap::read(sections, &wanted)
}

pub(crate) fn functions_of(
    program: &Program<'_>,
    ranges: impl IntoIterator<Item = (u64, u64)>,
    branches: impl IntoIterator<Item = (Option<u64>, u64)>,
    functions: &mut FxHashSet<FunctionId>,
) {
    let mut take = |address| functions.extend(program.range_at(address).map(|it| it.function));
    for (start, _) in ranges {
        take(start);
    }
    for (from, to) in branches {
        from.into_iter().for_each(&mut take);
        take(to);
    }
}

pub(crate) fn profile_of(
    program: &Program<'_>,
    mut counts: CheckedCounts,
    options: &LineOptions,
    figures: &mut Figures,
) -> Result<SampleProfile> {
    let mut functions = FxHashSet::default();
    functions_of(
        program,
        counts.ranges.keys().copied(),
        counts.branches.keys().copied(),
        &mut functions,
    );
    let map = probes_of(program, &functions)?;
    add_zeros(program, &mut counts.ranges, options.zero_for_all);
    // The counts of all probes that are in code with samples.
    let mut sampled: FxHashMap<usize, u64> = FxHashMap::default();
    for (first, last, count) in disjoint(&counts.ranges) {
        for (number, _) in map.between(first, last) {
            add(sampled.entry(number).or_default(), count);
        }
    }
    let mut builder = Builder {
        profile: SampleProfile::new(),
        map: &map,
        names: FxHashMap::default(),
    };
    builder.profile.kind = ProfileKind::PROBE_BASED;
    if program.fs_discriminators {
        builder.profile.kind |= ProfileKind::FS_DISCRIMINATORS;
    }
    let mut sampled: Vec<(usize, u64)> = sampled.into_iter().collect();
    sampled.sort_unstable();
    figures.probes = sampled.len() as u64;
    for (number, count) in sampled {
        let Some(probe) = map.probes.get(number) else {
            continue;
        };
        let location = Location::new(probe.index, probe.discriminator);
        if let Some(samples) = builder.enter(probe, count) {
            add(line_at(samples, location), count);
            if probe.is_entry() {
                add(&mut samples.head, count);
            }
        }
    }
    for (&(from, to), &count) in &counts.branches {
        let Some(callee) = program.entered_at(to) else {
            continue;
        };
        add(&mut figures.calls, count);
        if let Some(probe) = from.and_then(|from| map.call_at(from)) {
            builder.add_call(probe, canonical_name(&callee.name), count);
        }
    }
    let mut profile = builder.profile;
    let (_, functions) = profile.parts_mut();
    for function in functions {
        clear_inlined_heads(&mut function.samples);
        raise_lines_to_targets(&mut function.samples);
        if options.totals_of_lines {
            total_of_lines(&mut function.samples);
        }
    }
    Ok(profile)
}

fn clear_inlined_heads(samples: &mut Samples) {
    for inlined in &mut samples.inlined {
        inlined.samples.head = 0;
        clear_inlined_heads(&mut inlined.samples);
    }
}

struct Builder<'m> {
    profile: SampleProfile,
    map: &'m ProbeMap,
    names: FxHashMap<u64, (NameId, u64)>,
}

impl Builder<'_> {
    fn name(&mut self, guid: u64) -> Option<(NameId, u64)> {
        if let Some(&known) = self.names.get(&guid) {
            return Some(known);
        }
        let description = self.map.descriptions.get(&guid)?;
        let name = SampleName::Text(&description.name);
        let known = (self.profile.intern(name)?, description.checksum);
        self.names.insert(guid, known);
        Some(known)
    }

    /// The samples of a probe's function. Adds `total` up the inline stack; `None` if a function is not described.
    fn enter(&mut self, probe: &Probe, total: u64) -> Option<&mut Samples> {
        let (frames, _) = self.map.known_frames(probe);
        let mut path = Vec::with_capacity(frames.len());
        for (guid, index) in frames {
            path.push((self.name(guid)?, index));
        }
        let mut path = path.into_iter();
        let ((name, checksum), mut site) = path.next()?;
        let index = self.profile.find_or_add(&[], name);
        let mut samples = self.profile.samples_mut(index)?;
        samples.checksum = checksum;
        add(&mut samples.total, total);
        for ((name, checksum), index) in path {
            samples = samples.inlined_at(Location::new(site, 0), name);
            samples.checksum = checksum;
            add(&mut samples.total, total);
            site = index;
        }
        Some(samples)
    }

    fn add_call(&mut self, probe: &Probe, callee: &[u8], count: u64) {
        let Some(callee) = self.profile.intern(SampleName::Text(callee)) else {
            return;
        };
        let location = Location::new(probe.index, 0);
        if let Some(samples) = self.enter(probe, 0) {
            line_at(samples, location);
            let mut outcome = AddOutcome::default();
            samples
                .adding()
                .add_target(location, callee, count, 1, &mut outcome);
        }
    }
}
