//! The page of a MIP profile.
use super::functions::PageFunction;
use super::{Detail, Page, Trace};
use profkit_analysis::heat::Heat;
use profkit_analysis::mip_numbers::MipNumbers;
use profkit_analysis::names::{self, Spelling};
use profkit_analysis::order::by_mean;
use profkit_data::ids::NameRef;
use profkit_data::mip::{MipProfile, ProfileVersion};
use profkit_report::mip::MipForm;
use profkit_report::{grouped, percent, plural};
use std::collections::BTreeMap;

impl Page {
    /// Makes the page of a MIP profile.
    pub fn of_mip(file: &str, size: u64, version: ProfileVersion, profile: &MipProfile) -> Self {
        let mut page = Page::new(file, MipForm::Profile(version).to_string());
        page.kind = "mip";
        let whole = || {
            profile
                .functions
                .iter()
                .filter(|function| !function.is_part())
        };
        let all_numbers = MipNumbers::of(profile);
        let has_calls = all_numbers.has_calls;
        page.has_heat = has_calls;
        page.total = all_numbers.total;
        page.unit = if has_calls {
            "calls"
        } else {
            "runs with a call"
        };
        page.titles = [
            if has_calls { "Runs with a call" } else { "" },
            if has_calls {
                "Calls"
            } else {
                "Runs with a call"
            },
            "",
        ];
        page.detail = Detail::Counts("Runs by block");
        page.fact("Size", plural(size, "byte"));
        page.fact("Runs", grouped(profile.runs));
        let called = whole().filter(|function| function.called_runs > 0).count() as u64;
        let all = whole().count() as u64;
        page.fact(
            "Functions",
            format_args!(
                "{}; {} called ({})",
                grouped(all),
                grouped(called),
                percent(called.into(), all.into())
            ),
        );
        let (mut blocks, mut ran) = (0u64, 0u64);
        let mut files: BTreeMap<String, [u64; 4]> = BTreeMap::new();
        for function in &profile.functions {
            let counts = function.blocks.iter().map(|block| block.runs);
            let covered = counts.clone().filter(|&runs| runs > 0).count() as u64;
            blocks += function.blocks.len() as u64;
            ran += covered;
            // The first frame is the innermost one: the function itself.
            let frame = profile.tables.frames(function.location).next();
            let path = frame.and_then(|frame| frame.path);
            let path = path.map(|path| names::printable(&path).into_owned());
            if let Some(path) = &path {
                let row = files.entry(path.clone()).or_default();
                let [functions, called, blocks, ran] = row;
                *functions += u64::from(!function.is_part());
                *called += u64::from(!function.is_part() && function.called_runs > 0);
                *blocks += function.blocks.len() as u64;
                *ran += covered;
            }
            if function.is_part() {
                continue;
            }
            page.functions.push_counts(counts);
            let file = path.map_or(0, |path| page.functions.files.number(&path));
            page.functions.push(PageFunction {
                name: function.name.clone(),
                hash: function.signature.into(),
                numbers: all_numbers.numbers(function),
                heat: all_numbers.heat(function).unwrap_or({
                    if function.called_runs > 0 {
                        Heat::Warm
                    } else {
                        Heat::NeverRan
                    }
                }),
                file,
                ..PageFunction::default()
            });
        }
        let more = whole().filter(|function| has_calls && function.has_more_calls());
        let more = more.count() as u64;
        if more > 0 {
            page.fact(
                "Lower bounds",
                format_args!(
                    "of {} functions, because their counters were full",
                    grouped(more)
                ),
            );
        }
        if blocks > 0 {
            page.fact(
                "Blocks",
                format_args!(
                    "{}; {} ran ({})",
                    grouped(blocks),
                    grouped(ran),
                    percent(ran.into(), blocks.into())
                ),
            );
        }
        page.coverage = files.into_iter().collect();
        let order = by_mean(profile);
        let ordered = order.into_iter().map(|id| &profile.functions[id]);
        let ordered = ordered.filter(|function| function.order_runs > 0);
        let functions: Vec<usize> = ordered
            .map(|function| {
                let name = names::spelled(&function.name, Spelling::Demangled);
                let number = page.functions.targets.number(&name);
                page.first_calls.insert(NameRef::of(&function.name), number);
                number
            })
            .collect();
        if !functions.is_empty() {
            page.traces.push(Trace {
                weight: profile.runs,
                functions,
            });
        }
        page
    }
}
