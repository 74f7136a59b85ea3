//! Tables of sample profiles.
use super::instr::share;
use super::{ColumnData, NoTable, SharedTexts, Table, TableKind, clamped, texts};
use profkit_analysis::heat::HeatLimits;
use profkit_analysis::names::Spelling;
use profkit_analysis::samples::{SampleView, numbers, self_samples};
use profkit_data::ids::NameRef;
use profkit_data::sample::{Frame, Function, NameId, SampleName, Samples};
use profkit_report::show::sample::place;

const HAS: &[TableKind] = &[TableKind::Functions, TableKind::Lines, TableKind::Values];

impl Table {
    /// Makes a table of a sample profile.
    ///
    /// # Errors
    /// If sample profiles have no such table.
    pub fn of_samples(file: &str, kind: TableKind, view: &SampleView<'_>) -> Result<Self, NoTable> {
        let mut table = Table::new(file, kind, "sample");
        match kind {
            TableKind::Functions => table.sampled(view),
            TableKind::Lines => table.lines(view),
            TableKind::Values => table.targets(view),
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
                let checksum = function.samples.checksum;
                checksums.push((checksum != 0).then_some(checksum));
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
        self.push_places(texts, lines, discriminators);
        self.push("samples", ColumnData::Numbers(counts));
    }

    fn targets(&mut self, view: &SampleView<'_>) {
        let mut texts = [(); 3].map(|()| SharedTexts::default());
        let mut targets = SharedTexts::default();
        let (mut lines, mut discriminators, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for function in view.profile.functions() {
            each(view, function, |samples, inlined| {
                for one in &samples.body {
                    for (target, count) in view.targets(samples, one.location) {
                        push_place(view, function, inlined, &mut texts);
                        lines.push(one.location.line.into());
                        discriminators.push(one.location.discriminator.into());
                        targets.push(&view.name(target, Spelling::Mangled));
                        counts.push(count);
                    }
                }
            });
        }
        self.push_places(texts, lines, discriminators);
        self.push("target", ColumnData::Shared(targets));
        self.push("count", ColumnData::Numbers(counts));
    }

    fn push_places(&mut self, texts: [SharedTexts; 3], lines: Vec<u64>, discriminators: Vec<u64>) {
        for (name, texts) in ["function", "context", "inlined"].into_iter().zip(texts) {
            self.push(name, ColumnData::Shared(texts));
        }
        self.push("line", ColumnData::Numbers(lines));
        self.push("discriminator", ColumnData::Numbers(discriminators));
    }
}

/// Calls `visit` for the samples of a function itself, and for those of each function inlined into it. The second
/// argument of `visit` is empty for the function itself. For an inlined function, it contains the function's name and
/// the places at which it was inlined.
fn each(view: &SampleView<'_>, function: &Function, mut visit: impl FnMut(&Samples, &str)) {
    let mut pending = vec![(String::new(), &function.samples)];
    while let Some((inlined, samples)) = pending.pop() {
        visit(samples, &inlined);
        for one in samples.inlined.iter().rev() {
            let name = view.name(one.samples.name, Spelling::Mangled);
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

fn name(view: &SampleView<'_>, name: NameId) -> String {
    view.name(name, Spelling::Mangled).into_owned()
}

/// The callers of a function, outermost first: `main:3 @ work:1`.
fn callers(view: &SampleView<'_>, frames: &[Frame]) -> String {
    let frames = frames.iter();
    let frames =
        frames.map(|one| format!("{}:{}", name(view, one.name), place(one.location, true)));
    frames.collect::<Vec<_>>().join(" @ ")
}
