//! Tables of sample profiles.
use super::instr::share;
use super::{ColumnData, NoTable, Property, SharedTexts, Table, TableKind, clamped, texts};
use profkit_analysis::heat::HeatLimits;
use profkit_analysis::names::printable;
use profkit_analysis::samples::{SampleView, numbers, self_samples};
use profkit_data::ids::NameRef;
use profkit_data::sample::{Frame, Function, NameId, SampleName, Samples};
use profkit_report::show::sample::place;

const HAS: &[TableKind] = &[
    TableKind::Functions,
    TableKind::Lines,
    TableKind::Values,
    TableKind::Inlined,
    TableKind::Symbols,
    TableKind::Profile,
];

impl Table {
    /// Makes a table of a sample profile.
    ///
    /// # Errors
    /// If sample profiles have no such table.
    pub fn of_samples(file: &str, kind: TableKind, view: &SampleView<'_>) -> Result<Self, NoTable> {
        let mut table = Table::new(file, kind, "sample");
        let names = view.profile.kind.names().map(str::to_owned).collect();
        let properties = &mut table.properties;
        properties.push(("sample_kind", Property::List(names)));
        match kind {
            TableKind::Functions => table.sampled(view),
            TableKind::Lines => table.lines(view),
            TableKind::Values => table.targets(view),
            TableKind::Inlined => table.inlined(view),
            TableKind::Symbols => table.symbols(view),
            TableKind::Profile => table.facts(),
            _ => {
                return Err(NoTable {
                    table: kind,
                    profile: "a sample profile",
                    has: HAS,
                });
            }
        }
        Ok(table)
    }

    fn sampled(&mut self, view: &SampleView<'_>) {
        let summary = view.summary();
        let limits = HeatLimits::of(&summary);
        let mut heat = SharedTexts::default();
        let (mut own, mut headers) = (Vec::new(), Vec::new());
        let mut contexts = SharedTexts::default();
        let (mut guids, mut checksums) = (Vec::new(), Vec::new());
        let mut attributes = Vec::new();
        let (mut entries, mut sums, mut most, mut shares) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let [name, demangled] = texts::spelled(|symbol| {
            for function in view.profile.functions() {
                let (name, guid) = match view.profile.names.get(function.samples.name) {
                    SampleName::Text(name) => (name, NameRef::of(name).0),
                    SampleName::Guid(guid) => (&[][..], guid.0),
                };
                symbol(name);
                guids.push(guid);
                contexts.push(&callers(view, &function.callers));
                checksums.push(known(function.samples.checksum));
                attributes.push(known(function.samples.attributes.into()));
                let numbers = numbers(&function.samples);
                entries.push(numbers.entry);
                most.push(numbers.max);
                sums.push(clamped(numbers.sum));
                shares.push(share(&summary, numbers.max));
                heat.push(&limits.heat(numbers.max).to_string());
                own.push(self_samples(&function.samples));
                headers.push(function.samples.total);
            }
        });
        self.push("function", name);
        self.push("demangled", demangled);
        self.push("context", ColumnData::Shared(contexts));
        self.push_hashes("guid", guids);
        self.push("hash", ColumnData::Hashes(checksums));
        self.push("head", ColumnData::Numbers(entries));
        self.push("max_line", ColumnData::Numbers(most));
        self.push("samples", ColumnData::Numbers(sums));
        self.push("self", ColumnData::Numbers(own));
        self.push("header_total", ColumnData::Numbers(headers));
        self.push("cutoff", ColumnData::Fractions(shares));
        self.push("heat", ColumnData::Shared(heat));
        self.push_known("attributes", attributes);
    }

    fn inlined(&mut self, view: &SampleView<'_>) {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let (mut checksums, mut totals) = (Vec::new(), Vec::new());
        let mut attributes = Vec::new();
        for function in view.profile.functions() {
            each(view, function, |samples, inlined| {
                if !inlined.is_empty() {
                    push_place(view, function, inlined, &mut texts);
                    checksums.push(known(samples.checksum));
                    totals.push(samples.total);
                    attributes.push(known(samples.attributes.into()));
                }
            });
        }
        self.push_texts(texts);
        self.push("hash", ColumnData::Hashes(checksums));
        self.push("header_total", ColumnData::Numbers(totals));
        self.push_known("attributes", attributes);
    }

    fn symbols(&mut self, view: &SampleView<'_>) {
        let profile = &view.profile;
        let mut hashes: Vec<u64> = Vec::with_capacity(profile.symbol_count());
        let [names, _] = texts::spelled(|symbol| {
            for name in &profile.symbols {
                symbol(name);
                hashes.push(NameRef::of(name).0);
            }
            for &hash in &profile.symbol_hashes {
                symbol(b"");
                hashes.push(hash);
            }
        });
        self.push("symbol", names);
        self.push_hashes("guid", hashes);
    }

    fn lines(&mut self, view: &SampleView<'_>) {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let (mut lines, mut discriminators, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for function in view.profile.functions() {
            each(view, function, |samples, inlined| {
                for one in &samples.body {
                    push_place(view, function, inlined, &mut texts);
                    lines.push(one.location.line.into());
                    discriminators.push(one.location.discriminator.into());
                    counts.push(one.samples);
                }
            });
        }
        self.push_texts(texts);
        self.push("line", ColumnData::Numbers(lines));
        self.push("discriminator", ColumnData::Numbers(discriminators));
        self.push("samples", ColumnData::Numbers(counts));
    }

    fn targets(&mut self, view: &SampleView<'_>) {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let [mut kinds, mut targets] = [(); 2].map(|()| SharedTexts::default());
        let (mut lines, mut discriminators, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for function in view.profile.functions() {
            each(view, function, |samples, inlined| {
                for (kind, list) in [("call", &samples.targets), ("vtable", &samples.vtables)] {
                    for target in list {
                        push_place(view, function, inlined, &mut texts);
                        lines.push(target.location.line.into());
                        discriminators.push(target.location.discriminator.into());
                        kinds.push(kind);
                        targets.push(&name(view, target.name));
                        counts.push(target.count);
                    }
                }
            });
        }
        self.push_texts(texts);
        self.push("line", ColumnData::Numbers(lines));
        self.push("discriminator", ColumnData::Numbers(discriminators));
        self.push("kind", ColumnData::Shared(kinds));
        self.push("target", ColumnData::Shared(targets));
        self.push("count", ColumnData::Numbers(counts));
    }

    fn push_texts(&mut self, texts: [SharedTexts; 3]) {
        for (name, texts) in ["function", "context", "inlined"].into_iter().zip(texts) {
            self.push(name, ColumnData::Shared(texts));
        }
    }
}

/// Checksums and attributes are 0 in files if there are none.
fn known(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// Calls `visit` for the samples of a function itself, and for those of each function inlined into it. The second
/// argument of `visit` is empty for the function itself. For an inlined function, it contains the function's name and
/// the places at which it was inlined.
fn each(view: &SampleView<'_>, function: &Function, mut visit: impl FnMut(&Samples, &str)) {
    let mut pending = vec![(String::new(), &function.samples)];
    while let Some((inlined, samples)) = pending.pop() {
        visit(samples, &inlined);
        for one in samples.inlined.iter().rev() {
            let name = within(&name(view, one.samples.name));
            let text = format!("{} {name}", place(one.location, true));
            let text = if inlined.is_empty() {
                text
            } else {
                format!("{inlined} @ {text}")
            };
            pending.push((text, &one.samples));
        }
    }
}

/// Adds the place of a line to three columns: the function, its callers, and the inlined functions that contain the
/// line.
fn push_place(
    view: &SampleView<'_>,
    function: &Function,
    inlined: &str,
    [functions, contexts, inlines]: &mut [SharedTexts; 3],
) {
    functions.push(&name(view, function.samples.name));
    contexts.push(&callers(view, &function.callers));
    inlines.push(inlined);
}

/// The name, or its hash where only this is known: `0x` and 16 digits.
fn name(view: &SampleView<'_>, name: NameId) -> String {
    match view.profile.names.get(name) {
        SampleName::Text(name) => printable(name).into_owned(),
        SampleName::Guid(guid) => guid.to_string(),
    }
}

/// A name in a list of frames, which ` @ ` separates.
fn within(name: &str) -> String {
    name.replace(" @ ", "\\x20@ ")
}

/// The callers of a function, outermost first: `main:3 @ work:1`.
fn callers(view: &SampleView<'_>, frames: &[Frame]) -> String {
    let frames = frames.iter().map(|one| {
        let name = within(&name(view, one.name));
        format!("{name}:{}", place(one.location, true))
    });
    frames.collect::<Vec<_>>().join(" @ ")
}
