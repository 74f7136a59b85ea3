//! The HTML page of a sample profile.
use super::encode::{index, number};
use super::functions::PageFunction;
use super::{Detail, Flame, Page};
use profkit_analysis::heat::HeatLimits;
use profkit_analysis::names::Spelling;
use profkit_analysis::samples::{SampleView, numbers};
use profkit_data::sample::{Function, Location, NameId, ProfileKind, SampleName};
use profkit_report::flame::graph_of_samples;
use profkit_report::show::sample::{encoding_name, kind_texts, place};
use profkit_report::{grouped, plural};

/// The largest depth of inlined functions on a page. A damaged or malicious profile can nest them more deeply; deeper
/// functions are shown at this depth.
const DEEPEST: usize = 100;

impl Page {
    /// Makes the HTML page of a sample profile. Errors that were found while the file was read are among its notes.
    pub fn of_samples(file: &str, size: u64, view: &SampleView<'_>) -> Self {
        let mut page = Page::new(file, format!("sample profile, {}", encoding_name(view)));
        page.kind = "sample";
        page.unit = "samples";
        page.titles = ["At entry", "Samples", "Hottest line"];
        page.detail = Detail::Lines;
        page.fact("Size", plural(size, "byte"));
        for text in kind_texts(view.profile.kind) {
            page.fact("Has", text);
        }
        let summary = view.summary();
        let (sampled, contexts) = view.sampled_and_contexts();
        page.fact("Functions with samples", grouped(sampled));
        if contexts > 0 {
            page.fact("Functions with calling context", grouped(contexts));
        }
        page.fact("Lines", grouped(summary.blocks));
        page.fact("Sum of the samples of lines", grouped(summary.total_count));
        page.has_heat = true;
        page.cutoffs(&summary);
        let limits = HeatLimits::of(&summary);
        for function in view.profile.functions() {
            page.add_samples(view, function, &limits);
        }
        let graph = graph_of_samples(view, Spelling::Demangled);
        page.flame = (graph.total() > 0).then_some(Flame {
            graph,
            title: "Flame graph",
            unit: "samples",
            by_temperature: false,
            note: if contexts > 0 {
                "A function stands below its callers; its width is the number of samples in it and in what it called."
            } else {
                "The profile has no calling contexts: a function stands below the function that it was inlined into."
            },
        });
        page.damage(&view.faults());
        page
    }

    fn add_samples(&mut self, view: &SampleView<'_>, function: &Function, limits: &HeatLimits) {
        let samples = &function.samples;
        let sums = numbers(samples);
        self.total += sums.sum;
        let mut rows = Vec::new();
        let mut count = 0;
        let mut pending = vec![(0, samples, None)];
        while let Some((depth, samples, inlined_at)) = pending.pop() {
            if let Some(location) = inlined_at {
                count += 1;
                let callee = self.sample_target(view, samples.name);
                let inner = u64::try_from(numbers(samples).sum).unwrap_or(u64::MAX);
                line(depth - 1, location, callee, inner, &mut rows);
                number(0, &mut rows);
            }
            for one in &samples.body {
                count += 1;
                line(depth, one.location, 0, one.samples, &mut rows);
                let targets = view.targets(samples, one.location);
                index(targets.len(), &mut rows);
                for (name, calls) in targets {
                    index(self.sample_target(view, name), &mut rows);
                    number(calls.into(), &mut rows);
                }
            }
            let inlined = samples.inlined.iter().rev();
            pending.extend(
                inlined.map(|one| (DEEPEST.min(depth + 1), &one.samples, Some(one.location))),
            );
        }
        index(count, &mut self.functions.details);
        self.functions.details.extend_from_slice(&rows);
        let (name, guid) = match view.profile.names.get(samples.name) {
            SampleName::Text(name) => (name.to_vec(), 0),
            SampleName::Guid(guid) => (Vec::new(), guid.0),
        };
        self.functions.push(PageFunction {
            shown: if function.callers.is_empty() && !name.is_empty() {
                String::new()
            } else {
                full_name(view, function)
            },
            name,
            guid,
            hash: samples.checksum,
            heat: limits.heat(sums.max),
            numbers: sums,
            ..PageFunction::default()
        });
    }

    fn sample_target(&mut self, view: &SampleView<'_>, name: NameId) -> usize {
        let name = view.name(name, Spelling::Demangled);
        self.functions.targets.number(&name)
    }
}

/// Appends the fields of a line, or of the place where a function is inlined. The caller then appends the call targets.
fn line(depth: usize, at: Location, callee: usize, samples: u64, out: &mut Vec<u8>) {
    index(depth, out);
    number(at.line.into(), out);
    number(at.discriminator.into(), out);
    index(callee, out);
    number(samples.into(), out);
}

/// The name of a function with its callers: `main:3 @ parse`.
fn full_name(view: &SampleView<'_>, function: &Function) -> String {
    let mut text = String::new();
    for frame in &function.callers {
        text += &format!(
            "{}:{} @ ",
            view.name(frame.name, Spelling::Demangled),
            place(
                frame.location,
                view.profile.kind.contains(ProfileKind::PROBE_BASED)
            )
        );
    }
    text + &view.name(function.samples.name, Spelling::Demangled)
}
