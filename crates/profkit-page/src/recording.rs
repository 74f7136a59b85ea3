//! The page of a recording of Linux perf.
use super::functions::PageFunction;
use super::{Flame, Page};
use profkit_analysis::heat::Heat;
use profkit_analysis::names::{Spelling, printable};
use profkit_analysis::ranking::FunctionNumbers;
use profkit_profgen::stacks::FunctionStacks;
use profkit_report::recording::{graph_of_recording, recorded_name, unnamed_notes};
use profkit_report::{grouped, plural};
use rustc_hash::FxHashMap;

impl Page {
    /// Makes the page of a recording. It has the functions and the flame graph of the event with the most samples.
    /// `damage` are the sentences about what could not be read.
    pub fn of_recording(file: &str, size: u64, stacks: &FunctionStacks, damage: &[String]) -> Self {
        let mut page = Page::new(file, "recording of Linux perf".to_owned());
        page.kind = "recording";
        page.unit = "samples";
        page.fact("Size", plural(size, "byte"));
        for event in &stacks.events {
            page.fact(
                "Samples",
                format_args!(
                    "{} of event {}",
                    grouped(event.samples),
                    printable(event.event.as_bytes())
                ),
            );
        }
        page.notes.extend(
            damage
                .iter()
                .map(|text| format!("The file is damaged: {text}")),
        );
        page.notes.extend(unnamed_notes(stacks));
        let Some(event) = stacks.main_event() else {
            return page;
        };
        let has_callers = event.with_chain > 0;
        page.titles = [if has_callers { "With callees" } else { "" }, "Samples", ""];
        page.total = event.samples.into();
        let sums = stacks.by_samples(event);
        page.fact(
            "Functions with samples",
            grouped(sums.iter().filter(|sum| sum.own > 0).count()),
        );
        // The source file of a function is that of its first frame.
        let mut files: FxHashMap<usize, &[u8]> = FxHashMap::default();
        for frame in stacks.frames.iter().filter(|frame| !frame.file.is_empty()) {
            files.entry(frame.function).or_insert(&frame.file);
        }
        for sum in sums {
            let function = stacks.functions.get(sum.function);
            let symbol = function.and_then(|function| function.symbol.clone());
            let file = files.get(&sum.function).copied().unwrap_or_default();
            let file = match file {
                [] => 0,
                file => page.functions.files.number(&printable(file)),
            };
            page.functions.push(PageFunction {
                shown: recorded_name(stacks, sum.function, Spelling::Demangled),
                name: symbol.unwrap_or_default(),
                numbers: FunctionNumbers {
                    sum: sum.own.into(),
                    max: sum.own,
                    entry: sum.total,
                },
                heat: Heat::Warm,
                file,
                ..PageFunction::default()
            });
        }
        let graph = graph_of_recording(stacks, event, Spelling::Demangled);
        page.flame = (graph.total() > 0).then_some(Flame {
            graph,
            title: "Flame graph",
            unit: "samples",
            by_temperature: false,
            note: if has_callers {
                "A function stands below its callers; its width is the number of samples in it and in what it called."
            } else {
                "The recording has no call chains: each function stands alone."
            },
        });
        page
    }
}
