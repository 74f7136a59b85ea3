//! Finds the counts of the binaries that the user named, makes their profiles, and collects the results.
use crate::autofdo::autofdo_profile;
use crate::checked::{CheckedCounts, Figures};
use crate::contexts::{self, ContextFigures, ContextOptions};
use crate::discriminators::Discriminators;
use crate::finish::Density;
use crate::lines::{FinishedProfile, LineOptions, make_profile};
use crate::profiles::{NamedProfile, Profiles, file_names};
use crate::program::{Program, ProgramOptions};
use profkit_data::ids::BuildId;
use profkit_data::sample::gcov::GcovVersion;
use profkit_data::sample::{FormLosses, FormOptions, ProfileKind, SampleForm};
use profkit_data::{Error, ErrorKind, Result, path_text};
use profkit_object::code_symbols::code_symbols;
use profkit_object::symbolize::ProgramFiles;
use profkit_perf::collect::{BinaryCounts, CountLosses, Counts, Numbering, Sums, same_build_id};
use profkit_perf::same_module;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How the counts that belong to a binary were found in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// By the build id.
    BuildId,
    /// By the file name, because the input has no build id for the binary.
    Name,
    /// By neither the build id nor the name: the input names no binary, and the user named only this one.
    Unnamed,
}

/// The counts of a binary.
#[derive(Clone, Debug, Default)]
pub struct BinaryMatch<'c> {
    /// The counts.
    pub counts: Vec<&'c BinaryCounts>,
    /// How the counts were found; `None` if there are no counts.
    pub by: Option<FoundBy>,
    /// Counts of binaries with the same file name but another build id.
    pub other_builds: Vec<&'c BinaryCounts>,
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/' || byte == b'\\')
        .next()
        .unwrap_or(path)
}

/// Finds the counts of a binary by its build id, or among those without one by its file name. If the user named no
/// other binary (`only`), counts without a name are taken too.
pub fn find<'c>(
    counts: &'c Counts,
    path: &Path,
    id: Option<&BuildId>,
    only: bool,
) -> BinaryMatch<'c> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = BinaryMatch::default();
    let mut by_name = Vec::new();
    let mut unnamed = Vec::new();
    let is_kernel = name.starts_with(b"vmlinux");
    for binary in &counts.binaries {
        let key = &binary.key;
        let of_kernel = matches!(key.numbering, Numbering::FromText | Numbering::FromStext);
        let same_name = last_part(&key.path) == name
            || is_kernel && of_kernel
            || key.kernel && same_module(&key.path, name);
        match (&key.build_id, id) {
            (Some(theirs), Some(ours)) if same_build_id(theirs, ours) => {
                found.counts.push(binary);
            }
            (Some(_), _) if same_name => found.other_builds.push(binary),
            (None, _) if key.path.is_empty() => unnamed.push(binary),
            (None, _) if same_name => by_name.push(binary),
            _ => {}
        }
    }
    let mut by = Some(FoundBy::BuildId);
    if found.counts.is_empty() {
        found.counts = by_name;
        by = Some(FoundBy::Name);
    }
    if only && found.counts.is_empty() {
        found.counts = unnamed;
        by = Some(FoundBy::Unnamed);
    } else if only && !unnamed.is_empty() {
        found.counts.append(&mut unnamed);
    }
    found.by = by.filter(|_| !found.counts.is_empty());
    found
}

fn weight(counts: &[&BinaryCounts]) -> u64 {
    let sum = |of: fn(&Sums) -> u64| {
        let all = counts.iter().map(|binary| of(&binary.sums));
        all.fold(0, u64::saturating_add)
    };
    match sum(Sums::taken) {
        0 => sum(Sums::samples),
        branches => branches,
    }
}

/// A binary that occurs in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedBinary {
    /// The path of the binary on the recorded machine.
    pub path: Vec<u8>,
    /// The build id; `None` if the input does not have it.
    pub build_id: Option<BuildId>,
    /// The number of samples.
    pub samples: u64,
    /// The number of taken branches.
    pub branches: u64,
}

/// The binaries that occur in an input. Those with the most branches come first.
pub fn recorded_binaries(counts: &Counts) -> Vec<RecordedBinary> {
    let mut list: Vec<RecordedBinary> = counts
        .binaries
        .iter()
        .map(|binary| RecordedBinary {
            path: binary.key.path.clone(),
            build_id: binary.key.build_id.clone(),
            samples: binary.sums.samples(),
            branches: binary.sums.taken(),
        })
        .collect();
    list.sort_by_key(|one| std::cmp::Reverse((one.branches, one.samples)));
    list
}

/// The reason why no profile can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The input has no samples at all.
    NoSamples,
    /// No sample was selected.
    NothingSelected,
    /// The input has no samples in the binaries that the user named.
    NotOfBinaries,
    /// The samples have no branch stacks.
    NoBranches,
    /// The branch stacks do not say which code ran between branches.
    NoRanges,
    /// No range fits the code of the binaries.
    NothingFits,
    /// Calling contexts were asked for, and no sample has both a call chain and a branch stack.
    NoChains,
}

/// The results for one binary.
#[derive(Debug, Default)]
pub struct BinaryOutcome {
    /// The path of the binary.
    pub path: String,
    /// The build id of the binary.
    pub build_id: Option<BuildId>,
    /// The path of the binary, as a path.
    pub file_path: PathBuf,
    /// How the counts of the binary were found; `None` if there are no counts.
    pub found_by: Option<FoundBy>,
    /// An earlier binary that has these counts: the same build, or the same file name and no build id.
    pub counted_for: Option<String>,
    /// Why there is no profile although there are counts that no other binary has.
    pub left_out: Option<Error>,
    /// The file with the binary's profile. The command that writes the files sets it.
    pub file: Option<String>,
    /// The number of binaries in the input with the same file name but another build id.
    pub other_builds: usize,
    /// The branches in `other_builds`, or if there are none, the samples.
    pub of_other_builds: u64,
    /// The number of branches in the counts of this binary. If there are no branches, the number of samples.
    pub counted: u64,
    /// The numbers of ranges, branches and samples that were used or left out.
    pub figures: Figures,
    /// The density of the binary's profile.
    pub density: Density,
    /// The number of functions in the binary's profile.
    pub functions: usize,
    /// Whether the profile is by pseudo probe. Otherwise it is by source line.
    pub by_probes: bool,
    /// The samples that were used or left out for calling contexts, if there are contexts.
    pub contexts: Option<ContextFigures>,
    /// The errors in debug info that could not be read.
    pub warnings: Vec<Error>,
}

/// The tool whose way of counting is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountingTool {
    /// llvm-profgen of LLVM 22.
    #[default]
    Profgen,
    /// google/autofdo 0.19: `create_llvm_prof`, or `create_gcov` if discriminators are kept whole.
    Autofdo,
}

impl FromStr for CountingTool {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "profgen" => Ok(CountingTool::Profgen),
            "autofdo" => Ok(CountingTool::Autofdo),
            _ => Err("expected profgen or autofdo".to_owned()),
        }
    }
}

/// How a profile is made from counts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MakeOptions {
    /// How binaries are opened.
    pub program: ProgramOptions,
    /// How samples are counted.
    pub lines: LineOptions,
    /// The options for calling contexts, which unsymbolized profiles with contexts always give.
    pub contexts: Option<ContextOptions>,
    /// The tool whose way of counting is used. With [`CountingTool::Autofdo`], `contexts` has no effect, and of `lines` only
    /// whether sampled addresses are counted.
    pub tool: CountingTool,
    /// The encoding of the profiles. autofdo keeps discriminators whole for GCC, and splits them into their parts for LLVM.
    pub form: SampleForm,
    /// Whether each binary has a profile of its own.
    pub separate: bool,
}

impl MakeOptions {
    /// With `ips`, sampled addresses are counted. With `lines`, pseudo probes are ignored.
    pub fn new(ips: bool, lines: bool, contexts: bool) -> Self {
        let mut options = MakeOptions::default();
        options.program.ignore_probes = lines;
        options.lines.plain_addresses = ips;
        options.contexts = contexts.then(ContextOptions::default);
        options
    }
}

fn sums_of<'c>(counts: &[&'c BinaryCounts]) -> Vec<(&'c Sums, Numbering)> {
    let counts = counts.iter();
    counts.map(|it| (&it.sums, it.key.numbering)).collect()
}

fn with_contexts(
    program: &Program<'_>,
    all: &Counts,
    found: &[&BinaryCounts],
    options: &MakeOptions,
) -> Result<(FinishedProfile, ContextFigures)> {
    let how = options.contexts.unwrap_or_default();
    let is_found = |it: &BinaryCounts| found.iter().any(|found| std::ptr::eq(*found, it));
    let indices = all.binaries.iter().enumerate();
    let indices: Vec<usize> = indices
        .filter(|(_, it)| is_found(it))
        .map(|(index, _)| index)
        .collect();
    let mut contexts = contexts::unwind(program, all, &indices, &how);
    let read = contexts::read_contexts(program, found).map_err(|context| {
        /// The number of bytes of the context that the error shows.
        const SHOWN: usize = 60;
        let shown = String::from_utf8_lossy(context.get(..SHOWN).unwrap_or(context));
        let (form, hint) = if program.has_probes() {
            (
                "`[0xADDRESS @ 0xADDRESS]`, because the binary has pseudo probes",
                "with --lines, contexts are `[FUNCTION:LINE @ FUNCTION]` for such binaries too",
            )
        } else {
            (
                "`[FUNCTION:LINE @ FUNCTION]`, because the binary has no pseudo probes",
                "contexts such as `[0x12ab @ 0x34cd]` are those of a binary with pseudo probes: give that binary instead",
            )
        };
        Error::new(
            ErrorKind::Malformed,
            "a context of the unsymbolized profile cannot be read",
        )
        .found(format_args!("`[{shown}]`"))
        .expected(form)
        .with_hint(hint)
    })?;
    contexts.add(read);
    let (mut made, figures) = contexts::make_profile(program, &contexts, &how)?;
    let mut checked = CheckedCounts::default();
    for (sums, numbering) in sums_of(found) {
        checked.add(
            program,
            sums,
            numbering,
            &mut made.figures,
            &mut |_, _, _| {},
        );
    }
    Ok((made, figures))
}

fn as_autofdo(
    files: &ProgramFiles,
    program: &Program<'_>,
    found: &[&BinaryCounts],
    options: &MakeOptions,
) -> Result<FinishedProfile> {
    let mut symbols = code_symbols(&files.program()?)?;
    if let Some(debug) = files.debug_image()? {
        let of_debug = code_symbols(&debug)?;
        if files.has_packed_symbols() {
            symbols.extend(of_debug);
            symbols.sort_by_key(|symbol| symbol.address);
        } else if of_debug.len() > symbols.len() {
            symbols = of_debug;
        }
    }
    if symbols.is_empty() {
        return Err(
            Error::new(ErrorKind::Empty, "the binary has no symbols of functions")
                .with_hint("give the binary as it was before strip, or leave out --like autofdo"),
        );
    }
    let discriminators = match options.form {
        // create_gcov keeps them whole in every version before 3.
        SampleForm::Gcov(GcovVersion::Gcc47) => Discriminators::Whole,
        form => Discriminators::of_reader(form),
    };
    let plain = options.lines.plain_addresses;
    Ok(autofdo_profile(
        program,
        &symbols,
        &sums_of(found),
        discriminators,
        plain,
    ))
}

/// The results for all inputs and binaries.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The results for each binary whose counts were searched for.
    pub binaries: Vec<BinaryOutcome>,
    /// The binaries that occur in the inputs.
    pub seen: Vec<RecordedBinary>,
    /// The numbers of samples and branches that were left out while counting.
    pub losses: CountLosses,
    /// Whether the sampled addresses were counted instead of the branch stacks.
    pub plain_addresses: bool,
    /// Whether calling contexts were asked for.
    pub with_contexts: bool,
    /// Whether each binary has a profile of its own.
    pub separate: bool,
    /// How often call chains and branch stacks were halved to save memory
    /// ([`Stacks::halvings`](profkit_perf::collect::Stacks::halvings)), and how many samples became shorter.
    pub halvings: u32,
    /// See [`halvings`](Self::halvings).
    pub shortened: u64,
    /// The profiles that were encoded, in the order in which they are written.
    pub encoded: Vec<Encoded>,
}

/// A profile that was encoded for a file.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The file for the profile; `-` is standard output.
    pub file: String,
    /// The encoding.
    pub form: SampleForm,
    /// What the encoding cannot hold, without the totals of functions, which GCC computes.
    pub losses: FormLosses,
}

/// The profiles of a run while they are made.
#[derive(Debug)]
pub struct Sampling<'a> {
    counts: &'a Counts,
    options: &'a MakeOptions,
    outcome: Outcome,
    profiles: Profiles,
}

impl<'a> Sampling<'a> {
    /// Starts a run without any binary.
    pub fn new(counts: &'a Counts, options: &'a MakeOptions) -> Self {
        Sampling {
            counts,
            options,
            outcome: Outcome::of(counts, options),
            profiles: Profiles::new(options.separate),
        }
    }

    fn unclaimed(
        &self,
        (path, id): (&Path, Option<BuildId>),
        only: bool,
    ) -> (BinaryMatch<'a>, BinaryOutcome) {
        let mut found = find(self.counts, path, id.as_ref(), only);
        let earlier = self.profiles.leave_unclaimed(&mut found.counts);
        found.by = found.by.filter(|_| !found.counts.is_empty());
        let result = BinaryOutcome {
            path: path_text(path),
            build_id: id,
            file_path: path.to_owned(),
            found_by: found.by,
            counted_for: earlier.filter(|_| found.by.is_none()),
            other_builds: found.other_builds.len(),
            of_other_builds: weight(&found.other_builds),
            counted: weight(&found.counts),
            ..BinaryOutcome::default()
        };
        (found, result)
    }

    /// Makes the profile of a binary. The binary is given by its path and its build id. `only` says that it is the only
    /// binary, so that counts without a binary's name belong to it. Counts that an earlier binary has are not given to a
    /// second one.
    ///
    /// # Errors
    /// The errors of [`Program::open`]. [`ErrorKind::CannotRepresent`] if one profile would have samples by pseudo probe
    /// and by source line, or too many names.
    pub fn add(
        &mut self,
        files: &ProgramFiles,
        binary: (&Path, Option<BuildId>),
        only: bool,
    ) -> Result<()> {
        let (found, mut result) = self.unclaimed(binary, only);
        if found.by.is_some() {
            let options = self.options;
            let program = Program::open_with(files, options.program)?;
            let has_contexts = found.counts.iter().any(|it| !it.contexts.is_empty());
            let made = if options.tool == CountingTool::Autofdo {
                as_autofdo(files, &program, &found.counts, options)?
            } else if options.contexts.is_some() || has_contexts {
                let (made, figures) = with_contexts(&program, self.counts, &found.counts, options)?;
                result.contexts = Some(figures);
                made
            } else {
                let mut lines = options.lines;
                lines.discriminators = Discriminators::of_reader(options.form);
                make_profile(&program, &sums_of(&found.counts), &lines)?
            };
            result.by_probes = made.profile.kind.contains(ProfileKind::PROBE_BASED);
            result.functions = made.profile.functions().len();
            result.figures = made.figures;
            result.density = made.density;
            result.warnings = program.facts().warnings.clone();
            result.warnings.extend(made.warnings);
            self.profiles
                .add(self.outcome.binaries.len(), made.profile)?;
            self.profiles.claim(&found.counts, &result.path);
        }
        self.outcome.binaries.push(result);
        Ok(())
    }

    /// Notes a binary without a profile, when all profiles were added: one of them may have its counts, as the same
    /// build.
    pub(crate) fn leave_out(&mut self, binary: (&Path, Option<BuildId>), error: Error) {
        let (found, mut result) = self.unclaimed(binary, false);
        result.left_out = found.by.is_some().then_some(error);
        self.outcome.binaries.push(result);
    }

    pub(crate) fn has_profile(&self) -> bool {
        let mut binaries = self.outcome.binaries.iter();
        binaries.any(|it| it.found_by.is_some())
    }

    /// The results, and the profiles with names for files. A profile of all binaries is named after the first.
    pub fn finish(self) -> (Outcome, Vec<NamedProfile>) {
        let binaries = self.outcome.binaries.iter();
        let paths = binaries.map(|it| (it.file_path.as_path(), it.build_id.as_ref()));
        let names = file_names(paths, self.options.form);
        let with_functions = self.outcome.binaries.iter().enumerate();
        let with_functions = with_functions.filter(|(_, binary)| binary.functions > 0);
        let with_functions: Vec<usize> = with_functions.map(|(index, _)| index).collect();
        let named = self
            .profiles
            .into_list()
            .map(|(first, profile)| NamedProfile {
                name: names.get(first).cloned().unwrap_or_default(),
                profile,
                binaries: if self.options.separate {
                    vec![first]
                } else {
                    with_functions.clone()
                },
            });
        let named = named.collect();
        (self.outcome, named)
    }
}

impl NamedProfile {
    /// Encodes the profile for a file. Returns the bytes of the file.
    ///
    /// # Errors
    /// The errors of [`SampleForm::write`].
    pub fn encode(&self, form: SampleForm, file: &str) -> Result<(Vec<u8>, Encoded)> {
        let mut bytes = Vec::new();
        let options = FormOptions::for_profile(&self.profile);
        let mut losses = form.write(&self.profile, &options, &mut bytes)?;
        if let FormLosses::Gcov(losses) = &mut losses {
            // GCC reads no totals: it computes them from the lines.
            losses.totals = 0;
        }
        let encoded = Encoded {
            file: file.to_owned(),
            form,
            losses,
        };
        Ok((bytes, encoded))
    }
}

impl Outcome {
    /// What the counts themselves show, without results of binaries.
    pub fn of(counts: &Counts, options: &MakeOptions) -> Self {
        Outcome {
            seen: recorded_binaries(counts),
            losses: counts.losses.clone(),
            halvings: counts.stacks.halvings,
            shortened: counts.stacks.shortened,
            plain_addresses: options.lines.plain_addresses,
            with_contexts: options.contexts.is_some(),
            separate: options.separate,
            ..Outcome::default()
        }
    }

    /// Notes that a profile was written to a file.
    pub fn wrote(&mut self, profile: &NamedProfile, file: &str) {
        for &binary in &profile.binaries {
            if let Some(binary) = self.binaries.get_mut(binary) {
                binary.file = Some(file.to_owned());
            }
        }
    }

    /// Returns the reason why the profile is empty; `None` if it is not empty.
    pub fn problem(&self) -> Option<Problem> {
        let mut with_functions = self.binaries.iter().filter(|one| one.functions > 0);
        let used = with_functions.any(|binary| {
            let figures = &binary.figures;
            if let Some(contexts) = &binary.contexts {
                contexts.contexts > 0
            } else if self.plain_addresses {
                figures.addresses_used > 0
            } else {
                figures.used > 0
            }
        });
        if used {
            return None;
        }
        let losses = &self.losses;
        let of_binaries = self.binaries.iter().any(|binary| binary.found_by.is_some());
        Some(if self.seen.is_empty() && losses.samples == 0 {
            if losses.not_selected > 0 {
                Problem::NothingSelected
            } else {
                Problem::NoSamples
            }
        } else if !of_binaries {
            Problem::NotOfBinaries
        } else if self.with_contexts && (losses.with_chain == 0 || losses.with_branches == 0) {
            Problem::NoChains
        } else if self.plain_addresses {
            Problem::NothingFits
        } else if self.seen.iter().all(|seen| seen.branches == 0)
            && self
                .binaries
                .iter()
                .all(|binary| binary.figures.ranges == 0)
        {
            Problem::NoBranches
        } else if losses.without_ranges > 0 && losses.without_ranges == losses.with_branches {
            Problem::NoRanges
        } else {
            Problem::NothingFits
        })
    }
}
