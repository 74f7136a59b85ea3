//! Opens a sample profile of any encoding, and answers questions about its functions and sums.
use crate::doctor::Readers;
use crate::faults::Faults;
use crate::heat::{HeatCounts, HeatLimits};
use crate::instr::{Share, Sums};
use crate::names::{self, Spelling};
use crate::ranking::{FunctionNumbers, FunctionOrder, Group, Groups};
use crate::selection::{Selection, is_sample};
use profkit_data::Result;
use profkit_data::index_vec::IndexVec;
use profkit_data::sample::ext_binary::{ExtBinaryProfile, Section};
use profkit_data::sample::gcov::{GcovProfile, GcovVersion};
use profkit_data::sample::{
    Function, Location, NameId, ReadReport, SampleEncoding, SampleName, SampleProfile, Samples,
    encoding, read, summarize,
};
use profkit_data::summary::Summary;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::cmp::Reverse;

/// The sound parts of a sample profile, with facts about its file.
///
/// ```
/// use profkit_analysis::names::Spelling;
/// use profkit_analysis::samples::SampleView;
///
/// let view = SampleView::open(b"main:90:1\n 1: 90\nidle:10:1\n 1: 10\n", None)?;
/// let hot = view.hottest(1);
/// assert_eq!((view.name(hot.functions[0].samples.name, Spelling::Demangled).as_ref(), hot.total), ("main", 100));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Debug)]
pub struct SampleView<'data> {
    data: &'data [u8],
    /// The functions.
    pub profile: SampleProfile,
    /// The report of the reader: the faults of the file, and the summary that the file holds.
    pub report: ReadReport,
    /// The encoding of the profile; `None` if it is not known.
    pub encoding: Option<SampleEncoding>,
    ranks: IndexVec<NameId, u32>,
}

/// The functions with the most samples.
#[derive(Clone, Debug)]
pub struct HotFunctions<'p> {
    /// The functions, hottest first.
    pub functions: Vec<&'p Function>,
    /// The sum of the samples of all lines.
    pub total: u128,
}

impl<'data> SampleView<'data> {
    /// Reads a sample profile. If the encoding has a table of functions and this table has all the names in `wanted`,
    /// only these functions are read.
    ///
    /// # Errors
    /// If nothing of the profile can be read.
    pub fn open(data: &'data [u8], wanted: Option<&[String]>) -> Result<Self> {
        let encoding = encoding(data);
        let mut profile = SampleProfile::new();
        let report = match (encoding, wanted) {
            (Some(SampleEncoding::ExtBinary), Some(wanted)) => {
                let opened = ExtBinaryProfile::parse(data)?;
                let names: Vec<&[u8]> = wanted.iter().map(String::as_bytes).collect();
                let report = opened.read_functions(&names, &mut profile);
                // The table of functions contains no demangled names. A function is found by its demangled name only if
                // the whole profile is read.
                if missing(&profile, wanted).is_empty() {
                    report
                } else {
                    profile = SampleProfile::new();
                    read(data, &mut profile, 1)
                }
            }
            _ => read(data, &mut profile, 1),
        };
        if report.functions == 0
            && let Some(error) = report.faults.first()
        {
            return Err(error.clone());
        }
        Ok(SampleView {
            data,
            ranks: profile.names.ranks(),
            profile,
            report,
            encoding,
        })
    }

    /// The errors of the file.
    pub fn faults(&self) -> Faults {
        Faults {
            first: self.report.faults.clone(),
            count: self.report.fault_count,
        }
    }

    /// Returns the names in `wanted` that no function of the profile has.
    pub fn missing<'a>(&self, wanted: &'a [String]) -> Vec<&'a str> {
        missing(&self.profile, wanted)
    }

    /// Whether a function of the profile is selected.
    pub fn selects_any(&self, selection: &Selection) -> bool {
        let name = |function: &Function| self.profile.names.get(function.samples.name);
        let mut functions = self.profile.functions().iter();
        selection.all || functions.any(|function| selection.selects_sample(name(function)))
    }

    /// Returns the name of a function in a form for people. If the profile has only the hash of the name, returns the
    /// hash.
    pub fn name(&self, id: NameId, spelling: Spelling) -> Cow<'_, str> {
        match self.profile.names.get(id) {
            SampleName::Text(name) => names::spelled(name, spelling),
            guid @ SampleName::Guid(_) => Cow::Owned(guid.to_string()),
        }
    }

    /// Returns the functions in LLVM's order: functions with more samples come first.
    pub fn in_order(&self) -> impl Iterator<Item = &Function> {
        let order = self.profile.llvm_order(&self.ranks);
        let functions = self.profile.functions();
        order
            .into_iter()
            .filter_map(|index| functions.get(index as usize))
    }

    /// Returns the selected functions; functions with more samples come first.
    pub fn selected(&self, selection: &Selection) -> Vec<&Function> {
        let name = |function: &Function| self.profile.names.get(function.samples.name);
        let mut functions: Vec<_> = self
            .in_order()
            .filter(|function| selection.selects_sample(name(function)))
            .collect();
        functions.sort_by_cached_key(|function| Reverse(numbers(&function.samples).sum));
        functions
    }

    /// The sum of the samples of all lines, of which every share is a part.
    pub fn total(&self) -> u128 {
        let functions = self.profile.functions().iter();
        functions.map(|it| numbers(&it.samples).sum).sum()
    }

    /// Returns the `most` functions with the most samples.
    pub fn hottest(&self, most: usize) -> HotFunctions<'_> {
        let mut functions = self.selected(&Selection::everything());
        functions.truncate(most);
        HotFunctions {
            functions,
            total: self.total(),
        }
    }

    /// The counts at which functions of the profile become hot and cold.
    pub fn heat_limits(&self) -> HeatLimits {
        HeatLimits::of(&self.summary())
    }

    /// The numbers of hot, warm and cold functions. In a profile with calling contexts, a function is counted for each
    /// of its contexts.
    pub fn heat(&self) -> HeatCounts {
        let limits = self.heat_limits();
        let functions = self.profile.functions().iter();
        functions
            .map(|function| limits.heat(numbers(&function.samples).max))
            .collect()
    }

    /// Returns, for each of [`SHARES`](crate::instr::SHARES), how many of the hottest functions together have this
    /// share of all samples.
    pub fn shares(&self) -> Vec<Share> {
        let functions = self.profile.functions().iter();
        let sums = functions.map(|function| numbers(&function.samples).sum);
        let sums: Sums = sums
            .map(|sum| u64::try_from(sum).unwrap_or(u64::MAX))
            .collect();
        sums.shares(self.total())
    }

    /// The LLVM releases that can use the profile.
    pub fn readers(&self) -> Readers {
        Readers::of_samples(self.data, self.profile.kind)
    }

    /// Returns the `most` functions with the most samples of their own lines, without those of inlined functions.
    pub fn hottest_by_self(&self, most: usize) -> Vec<&Function> {
        let mut functions: Vec<_> = self.in_order().collect();
        functions.sort_by_key(|function| Reverse(self_samples(&function.samples)));
        functions.truncate(most);
        functions
    }

    /// Returns the selected functions, sorted by `order`.
    pub fn sorted(&self, selection: &Selection, order: FunctionOrder) -> Vec<&Function> {
        let mut functions = self.selected(selection);
        match order {
            FunctionOrder::Sum => {}
            FunctionOrder::Max => {
                functions.sort_by_key(|one| Reverse(numbers(&one.samples).max));
            }
            FunctionOrder::Entry => functions.sort_by_key(|one| Reverse(one.samples.head)),
            FunctionOrder::Name => functions.sort_by_cached_key(|one| {
                let callers = one.callers.iter();
                let names = callers.map(|frame| frame.name).chain([one.samples.name]);
                let names = names.map(|name| self.name(name, Spelling::Demangled).into_owned());
                names.collect::<Vec<_>>()
            }),
        }
        functions
    }

    /// Divides the selected functions into groups, and sorts the groups by `order`. `group` returns the name of a
    /// function's group. The samples of an inlined function count for the group of the inlined function, not for the
    /// group of the function that contains it.
    pub fn groups(
        &self,
        selection: &Selection,
        group: impl Fn(SampleName<'_>) -> Option<String>,
        order: FunctionOrder,
    ) -> Vec<Group> {
        let mut groups = Groups::default();
        let group = |samples: &Samples| group(self.profile.names.get(samples.name));
        for function in self.selected(selection) {
            let entered = u64::from(numbers(&function.samples).sum > 0);
            groups.add(group(&function.samples), 1, entered, 0);
            let mut pending = vec![&function.samples];
            while let Some(samples) = pending.pop() {
                let sum = self_samples(samples);
                groups.add(group(samples), 0, 0, sum.into());
                pending.extend(samples.inlined.iter().map(|inlined| &inlined.samples));
            }
        }
        groups.into_sorted(order)
    }

    /// The number of functions that have a sample in any calling context, and the number of calling contexts.
    pub fn sampled_and_contexts(&self) -> (u64, u64) {
        let functions = self.profile.functions();
        let sampled = functions.iter().filter(|it| numbers(&it.samples).sum > 0);
        let sampled: FxHashSet<NameId> = sampled.map(|it| it.samples.name).collect();
        let contexts = functions.iter().filter(|it| !it.callers.is_empty()).count();
        (sampled.len() as u64, contexts as u64)
    }

    /// Returns the call targets of a source line with their sample counts, the largest count first.
    pub fn targets(&self, samples: &Samples, location: Location) -> Vec<(NameId, u64)> {
        let targets = samples.targets_at(location).iter();
        let mut targets: Vec<_> = targets.map(|target| (target.name, target.count)).collect();
        let rank = |id: NameId| self.ranks.get(id).copied().unwrap_or(0);
        targets.sort_by_key(|&(name, count)| (Reverse(count), rank(name)));
        targets
    }

    /// Returns the summary that the file holds. If the file has none, computes it from the functions that were read.
    pub fn summary(&self) -> Summary {
        let own = || summarize(&self.profile);
        self.report.summary.clone().unwrap_or_else(own)
    }

    /// The version of the encoding, if the profile has GCC's encoding.
    pub fn gcov_version(&self) -> Option<GcovVersion> {
        match self.encoding {
            Some(SampleEncoding::Gcov) => {
                GcovProfile::parse(self.data).ok().map(|gcov| gcov.version)
            }
            _ => None,
        }
    }

    /// The version and the section table of an extensible binary profile; `None` for other encodings.
    pub fn sections(&self) -> Option<(u64, Vec<Section>)> {
        let opened = ExtBinaryProfile::parse(self.data).ok()?;
        Some((opened.version(), opened.sections().to_vec()))
    }
}

/// Returns the numbers of a function by which functions are sorted: the sum of the samples of its lines and the hottest
/// one, both with the lines of functions that were inlined into it.
///
/// The number in the function's header (`Samples::total`) is another one: the compiler's tools add up the samples of
/// instructions there, so it grows with the size of the code.
pub fn numbers(samples: &Samples) -> FunctionNumbers {
    let mut numbers = FunctionNumbers {
        entry: samples.head,
        ..FunctionNumbers::default()
    };
    let mut pending = vec![samples];
    while let Some(samples) = pending.pop() {
        for line in &samples.body {
            numbers.sum += u128::from(line.samples);
            numbers.max = numbers.max.max(line.samples);
        }
        pending.extend(samples.inlined.iter().map(|inlined| &inlined.samples));
    }
    numbers
}

/// The samples of a function's own lines, without those of inlined functions.
pub fn self_samples(samples: &Samples) -> u64 {
    let lines = samples.body.iter().map(|line| line.samples);
    lines.fold(0, u64::saturating_add)
}

fn missing<'a>(profile: &SampleProfile, wanted: &'a [String]) -> Vec<&'a str> {
    let functions = || profile.functions().iter();
    let there =
        |name: &str| functions().any(|it| is_sample(profile.names.get(it.samples.name), name));
    let wanted = wanted.iter().map(String::as_str);
    wanted.filter(|name| !there(name)).collect()
}
