//! Carries out the steps of a job.
use crate::commands::{Programs, sampled};
use crate::error::{Error, Result};
use crate::kind::{Configured, FORCE, Kind, folders, force_file, makes_wheels};
use crate::left::{self, Running};
use crate::outputs::{self, Output};
use crate::plan::{Environment, PATH, PYTHONPATH, Plan, Stage, Step};
use crate::script::{line, shell, unpacking};
use crate::timing::{Copies, Times, measure};
use crate::wrappers;
use profkit_analysis::filter::{ColdRule, Filter};
use profkit_analysis::matching::{self, BinaryFunctions, MatchShares, ProfileFunctions};
use profkit_data::Weight;
use profkit_data::instr::indexed::{IndexedPlan, IndexedWriteOptions};
use profkit_data::releases::Release;
use profkit_data::sample::{self, SampleProfile};
use profkit_merge::files::{Content, Input, InputList, Output as File, write_indexed};
use profkit_merge::{MergeOptions, merge_instr};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, SystemTime};

/// What happens in a job, as it happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A command is started.
    Command(String),
    /// A command failed and the job goes on: the profile lacks what this run would have given.
    TrainingFailed(String, ExitStatus),
    /// A training command ended well and wrote nothing.
    NothingWritten(String),
    /// A training command has ended, and processes that it started still run.
    StillRunning(String, Vec<Running>),
    /// Profiles were merged.
    Merged(Profile),
    /// An input of the merge was left out, or only its sound part was used.
    Dropped(String),
}

/// A merged profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Where it is.
    pub path: PathBuf,
    /// How many raw profiles or recordings the training wrote.
    pub inputs: u64,
    /// How many of them could be read.
    pub merged: u64,
    /// The number of functions.
    pub functions: u64,
    /// The number of functions with a count above 0.
    pub ran: u64,
    /// Whether it is a sample profile, of recordings and not of raw profiles.
    pub sampled: bool,
    /// The release of LLVM that it is written for: the oldest one that reads it.
    pub release: u32,
}

/// How much of a profile the build uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// The functions of the instrumented build.
    pub functions: u64,
    /// Those of them that the profile has.
    pub profiled: u64,
    /// The share of all counts that the build can use, from 0 to 1; `None` if all counts are 0.
    pub counts: Option<f64>,
    /// The hot functions whose counts it cannot use. The hottest comes first.
    pub lost: Vec<Lost>,
    /// The programs and libraries of the instrumented build that have no function in the profile.
    pub untrained: Vec<PathBuf>,
}

/// A hot function whose counts the build cannot use.
#[derive(Clone, Debug, PartialEq)]
pub struct Lost {
    /// Its name in the profile.
    pub name: String,
    /// Its share of all counts, from 0 to 1.
    pub share: f64,
    /// Whether the build has a function of this name. If not, another program wrote the counts.
    pub changed: bool,
}

/// The sizes in bytes of all programs and libraries together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Without the profile; `None` if this build was not made.
    pub before: Option<u64>,
    /// With it.
    pub after: u64,
}

/// What a job gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The profile that the build was made with.
    pub profile: Profile,
    /// How much of it the build uses; `None` if no instrumented program was found.
    pub shares: Option<Shares>,
    /// The programs and libraries of the last build.
    pub programs: Vec<PathBuf>,
    /// Their sizes.
    pub sizes: Sizes,
    /// The times of the benchmark.
    pub times: Option<Times>,
}

/// Carries out a job. `say` hears what happens.
///
/// # Errors
/// If a build fails, no training wrote a profile, or the last build did not compile.
pub fn run(plan: &Plan, say: &mut dyn FnMut(Event)) -> Result<Outcome> {
    let build = &plan.settings.build;
    let here = std::env::current_dir().map_err(|error| Error::Io(".".into(), error))?;
    let named = folders(Kind::of(build), build)
        .into_iter()
        .map(|folder| here.join(folder));
    let mut folders: Vec<PathBuf> = std::iter::once(here.clone()).chain(named).collect();
    folders.push(plan.settings.wheels());
    let work = &plan.settings.scratch();
    // What an earlier job left here is not of this training.
    for name in ["build", "plain", "optimised", "wheels"] {
        remove(&work.join(name))?;
    }
    make(&work.join("build"))?;
    if makes_wheels(build) {
        let path = force_file(work);
        fs::write(&path, FORCE).map_err(|error| Error::Io(path, error))?;
    }
    if let (Some(folder), Some(clang)) = (&plan.wrappers, &plan.tools.clang) {
        wrappers::write(folder, clang)?;
        if plan.settings.clean.is_none() {
            refuse(Configured::before(build, folder))?;
        }
        if !plan.settings.sampling {
            check_runtime(plan, work)?;
        }
    }
    let mut job = Job {
        plan,
        say,
        folders,
        built: Vec::new(),
        since: SystemTime::UNIX_EPOCH,
        stage: Stage::Plain,
        instrumented: Vec::new(),
        plain: None,
        profile: None,
        shares: None,
        times: None,
        failed: 0,
    };
    for step in &plan.steps {
        job.step(step)?;
    }
    let Some(profile) = job.profile.clone() else {
        return Err(Error::NothingTrained(Vec::new()));
    };
    let sizes = Sizes {
        before: job.plain.as_ref().map(|(_, size)| *size),
        after: job.size(),
    };
    let programs = job.shown().map(|output| output.path.clone()).collect();
    Ok(Outcome {
        profile,
        shares: job.shares,
        programs,
        sizes,
        times: job.times,
    })
}

struct Job<'a> {
    plan: &'a Plan,
    say: &'a mut dyn FnMut(Event),
    folders: Vec<PathBuf>,
    /// What the last build wrote.
    built: Vec<Output>,
    /// When it began.
    since: SystemTime,
    stage: Stage,
    /// What the last instrumented build wrote.
    instrumented: Vec<PathBuf>,
    /// Copies of what the build without a profile wrote, and the size of it all.
    plain: Option<(Copies, u64)>,
    profile: Option<Profile>,
    shares: Option<Shares>,
    times: Option<Times>,
    /// How many training commands failed.
    failed: usize,
}

impl Job<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Clean { command, may_fail } => {
                (self.say)(Event::Command(line(&Vec::new(), command)));
                let status = start(command, &[])?;
                if !status.success() && !may_fail {
                    return Err(Error::Clean {
                        command: line(&Vec::new(), command),
                        status,
                        is_own: self.plan.settings.clean.is_some(),
                    });
                }
                Ok(())
            }
            Step::Build {
                stage,
                command,
                environment,
            } => self.build(*stage, command, environment),
            Step::Unpack => self.unpack(),
            Step::Copy => {
                if self.built.is_empty() {
                    return Err(Error::NothingToExchange);
                }
                let copies =
                    Copies::make(&self.built, &self.plan.settings.scratch().join("plain"))?;
                self.plain = Some((copies, self.size()));
                Ok(())
            }
            Step::Train {
                folder,
                recorder,
                command,
                environment,
            } => {
                remove(folder)?;
                make(folder)?;
                let strays = self.plan.settings.scratch().join("build");
                // What programs of the build have left there is not of this training.
                for path in strays_in(&strays) {
                    let _ = fs::remove_file(path);
                }
                let status = self.train(folder, recorder, command, environment)?;
                // A training that empties the environment writes where the program was built for.
                for path in strays_in(&strays) {
                    let to = folder.join(path.file_name().unwrap_or_default());
                    fs::rename(&path, to).map_err(|error| Error::Io(path, error))?;
                }
                if status.success() && is_empty(folder) {
                    let command = command.to_string_lossy().into_owned();
                    (self.say)(Event::NothingWritten(command));
                }
                Ok(())
            }
            Step::Merge {
                runs,
                first,
                output,
            } => self.merge(runs, first.as_deref(), output),
            Step::Sample {
                runs,
                branches,
                output,
            } => self.sample(runs, *branches, output),
            Step::Order {
                runs,
                profiles,
                output,
            } => self.order(runs, profiles, output),
            Step::Benchmark => self.benchmark(),
        }
    }

    fn written_since(&self, time: SystemTime) -> Vec<Output> {
        let mut found = outputs::written_since(&self.folders, time);
        let settings = &self.plan.settings;
        // The programs of the training may be elsewhere.
        for path in settings.named_files() {
            let is_new = fs::metadata(&path)
                .and_then(|metadata| metadata.modified())
                .is_ok_and(|written| written >= time);
            if is_new && !found.iter().any(|output| output.path == path) {
                found.extend(outputs::read(path));
            }
        }
        found.retain(|output| {
            output.path.starts_with(settings.wheels())
                || !output.path.starts_with(settings.scratch())
        });
        found
    }

    /// What the last build wrote, without what it has packed into wheels as well.
    fn shown(&self) -> impl Iterator<Item = &Output> {
        let wheels = self.plan.settings.wheels();
        self.built
            .iter()
            .filter(move |output| !output.path.starts_with(&wheels))
    }

    fn size(&self) -> u64 {
        self.shown().map(|output| output.size).sum()
    }

    fn unpack(&mut self) -> Result<()> {
        let folder = self.plan.settings.wheels();
        make(&folder)?;
        for wheel in outputs::wheels_since(&self.folders, self.since) {
            let command = unpacking(wheel.as_os_str(), &folder);
            (self.say)(Event::Command(line(&Vec::new(), &command)));
            let status = start(&command, &[])?;
            if !status.success() {
                return Err(Error::Failed(
                    format!("`{}`", line(&Vec::new(), &command)),
                    status,
                ));
            }
        }
        self.compiled()
    }

    fn build(
        &mut self,
        stage: Stage,
        command: &[OsString],
        environment: &Environment,
    ) -> Result<()> {
        (self.say)(Event::Command(line(environment, command)));
        // What is in the wheels of the build before is not of this one.
        remove(&self.plan.settings.wheels())?;
        // File systems keep times less exactly than the clock has them.
        let since = SystemTime::now() - Duration::from_millis(20);
        let status = start(command, environment)?;
        if !status.success() {
            return Err(Error::Build {
                status,
                by_clang: self.plan.wrappers.is_some()
                    && Kind::of(&self.plan.settings.build) != Kind::Cargo,
            });
        }
        self.since = since;
        self.stage = stage;
        self.compiled()
    }

    /// Looks at what the last build wrote.
    fn compiled(&mut self) -> Result<()> {
        self.built = self.written_since(self.since);
        match self.stage {
            Stage::Plain | Stage::Ordered => {}
            Stage::Sampled => self.instrumented = self.programs(),
            Stage::Instrumented | Stage::Second => {
                let with_counters = |built: Vec<Output>| -> Vec<PathBuf> {
                    let built = built.into_iter().filter(|output| output.instrumented);
                    built.map(|output| output.path).collect()
                };
                self.instrumented = with_counters(self.built.clone());
                // A build that had nothing to do may have been left by an earlier job.
                if self.instrumented.is_empty() {
                    self.instrumented = with_counters(self.written_since(SystemTime::UNIX_EPOCH));
                }
                if self.instrumented.is_empty()
                    && let Some(wrappers) = &self.plan.wrappers
                {
                    let caches = outputs::caches(&self.folders);
                    let mut foreign = caches
                        .iter()
                        .filter_map(|cache| Configured::of(cache, wrappers));
                    refuse(foreign.next())?;
                }
            }
            // With samples nothing in a program shows which build it is of, but when it was written.
            Stage::Optimised if self.plan.settings.sampling => {
                let new = self.programs();
                // A script of the build may have made a program once that stays.
                if !self.instrumented.iter().any(|path| new.contains(path)) {
                    return Err(Error::NotCompiled(self.instrumented.clone()));
                }
            }
            Stage::Optimised => {
                // Scripts of a build, which are instrumented as well, may be left as they were.
                let left = self.instrumented.iter().filter(|path| {
                    outputs::read((*path).clone()).is_some_and(|output| output.instrumented)
                });
                let left: Vec<PathBuf> = left.cloned().collect();
                if !left.is_empty() {
                    return Err(Error::NotRebuilt(left));
                }
            }
        }
        Ok(())
    }

    fn train(
        &mut self,
        folder: &Path,
        recorder: &[OsString],
        command: &OsString,
        environment: &Environment,
    ) -> Result<ExitStatus> {
        let words = shell(recorder, command);
        // perf records one program: a shell, if the command is of several.
        (self.say)(Event::Command(match recorder.is_empty() {
            true => format!("{} {}", line(environment, &[]), command.to_string_lossy()),
            false => line(environment, &words),
        }));
        let status = start(&words, environment)?;
        if !status.success() {
            self.failed += 1;
            let command = command.to_string_lossy().into_owned();
            (self.say)(Event::TrainingFailed(command, status));
        }
        let running = left::running(folder);
        if !running.is_empty() {
            let command = command.to_string_lossy().into_owned();
            (self.say)(Event::StillRunning(command, running));
        }
        Ok(status)
    }

    /// Starts a command of profkit, which says itself what is wrong.
    fn command(&mut self, command: &[OsString]) -> Result<ExitStatus> {
        (self.say)(Event::Command(line(&Vec::new(), command)));
        start(command, &[])
    }

    /// The programs and libraries that the last build wrote.
    fn programs(&self) -> Vec<PathBuf> {
        self.built
            .iter()
            .map(|output| output.path.clone())
            .collect()
    }

    fn sample(&mut self, runs: &[(Weight, PathBuf)], branches: bool, output: &Path) -> Result<()> {
        let programs = self.programs();
        if programs.is_empty() {
            return Err(Error::NotCompiled(programs));
        }
        let mut made = Vec::new();
        for (weight, folder) in runs {
            let built = Programs::Built(&programs);
            let command = self.plan.sample_command(folder, branches, built);
            let status = self.command(&command)?;
            if sampled(folder).exists() {
                made.push((*weight, folder.as_path()));
            } else {
                (self.say)(Event::TrainingFailed(line(&Vec::new(), &command), status));
            }
        }
        if made.is_empty() {
            return Err(Error::NothingTrained(self.instrumented.clone()));
        }
        let command = self.plan.add_command(&made, output);
        let status = self.command(&command)?;
        if !status.success() {
            return Err(Error::Failed(line(&Vec::new(), &command), status));
        }
        let input = Input::open(output).map_err(|error| Error::Merge(error.to_string()))?;
        let mut profile = SampleProfile::default();
        sample::read(input.bytes(), &mut profile, 1)
            .strict()
            .map_err(|error| Error::Merge(error.to_string()))?;
        let functions = profile.functions().len() as u64;
        let found = Profile {
            path: output.to_owned(),
            inputs: runs.len() as u64,
            merged: made.len() as u64,
            functions,
            ran: functions,
            sampled: true,
            release: self.plan.reader(false),
        };
        (self.say)(Event::Merged(found.clone()));
        self.profile = Some(found);
        Ok(())
    }

    fn order(&mut self, runs: &[PathBuf], profiles: &Path, output: &Path) -> Result<()> {
        remove(profiles)?;
        make(profiles)?;
        let programs = self.programs();
        let built = Programs::Built(&programs);
        let command = self.plan.mip_command(runs, profiles, built);
        let status = self.command(&command)?;
        let failed = |error| Error::Io(profiles.to_owned(), error);
        let mut found = Vec::new();
        for entry in fs::read_dir(profiles).map_err(failed)? {
            found.push(entry.map_err(failed)?.path());
        }
        found.retain(|path| path.extension().is_some_and(|end| end == "mip"));
        found.sort_unstable();
        if found.is_empty() {
            return Err(Error::Failed(line(&Vec::new(), &command), status));
        }
        let command = self.plan.order_command(&found, output);
        let status = self.command(&command)?;
        match status.success() {
            true => Ok(()),
            false => Err(Error::Failed(line(&Vec::new(), &command), status)),
        }
    }

    fn merge(
        &mut self,
        runs: &[(Weight, PathBuf)],
        first: Option<&Path>,
        output: &Path,
    ) -> Result<()> {
        let mut named: Vec<OsString> = Vec::new();
        for (weight, folder) in runs {
            if !is_empty(folder) {
                let mut word = OsString::from(format!("{weight},"));
                word.push(folder);
                named.push(word);
            }
        }
        if named.is_empty() {
            return Err(match self.failed == runs.len() {
                true => Error::AllFailed,
                false => Error::NothingTrained(self.instrumented.clone()),
            });
        }
        self.failed = 0;
        named.extend(first.map(|path| path.as_os_str().to_owned()));
        let inputs = InputList::collect(&named, &[], None)
            .map_err(|error| Error::Merge(error.to_string()))?;
        let mut merged = merge_instr(&inputs, &MergeOptions::new())
            .map_err(|error| Error::Merge(error.to_string()))?;
        for event in &merged.report.events {
            (self.say)(Event::Dropped(event.to_string()));
        }
        let Some(profile) = merged.profiles.first_mut().map(|one| &mut one.profile) else {
            return Err(Error::Merge("it is empty".to_owned()));
        };
        if self.plan.settings.partial {
            let never_ran = Filter {
                cold: Some(ColdRule::AtMost(0)),
                ..Filter::default()
            };
            never_ran.instr(profile);
        }
        let profile = &*profile;
        let functions = || profile.tables.iter().flat_map(|table| table.functions());
        let release = self
            .plan
            .reader(functions().any(|function| is_rust(function.name())));
        let plan = IndexedPlan::new(
            profile,
            &IndexedWriteOptions::for_llvm(Release::new(u8::try_from(release).unwrap_or(u8::MAX))),
        )
        .map_err(|error| Error::Merge(error.to_string()))?;
        let file =
            File::new(output, Content::Binary).map_err(|error| Error::Merge(error.to_string()))?;
        file.write(|sink| write_indexed(&plan, &MergeOptions::new().run.threads, sink))
            .map_err(|error| Error::Merge(error.to_string()))?;
        let totals = &merged.report.totals;
        let found = Profile {
            path: output.to_owned(),
            inputs: inputs.files.len() as u64 - u64::from(first.is_some()),
            merged: (totals.files_kept + totals.files_repaired)
                .saturating_sub(u64::from(first.is_some())),
            functions: profile.record_count() as u64,
            ran: functions()
                .flat_map(|function| function.records())
                .filter(|record| record.counts.iter().any(|&count| count > 0))
                .count() as u64,
            sampled: false,
            release,
        };
        (self.say)(Event::Merged(found.clone()));
        self.profile = Some(found);
        // Behind the inliner functions have other hashes, which no program shows.
        if first.is_none() {
            self.shares = self.compare(output);
        }
        Ok(())
    }

    fn compare(&self, profile: &Path) -> Option<Shares> {
        let input = Input::open(profile).ok()?;
        let profile = ProfileFunctions::parse(&input).ok()?;
        let mut build = BinaryFunctions::for_profile(&profile);
        let mut untrained = Vec::new();
        for path in &self.instrumented {
            // A program that cannot be read is not compared: what is said is of those that can.
            let _ = build.open(path);
            let mut alone = BinaryFunctions::for_profile(&profile);
            if alone.open(path).is_ok() && !alone.are_in(&profile) {
                untrained.push(path.clone());
            }
        }
        if build.binaries.is_empty() {
            return None;
        }
        let shares = MatchShares::new(&profile, &build);
        let lost = shares.hot_lost.iter().map(|lost| Lost {
            name: String::from_utf8_lossy(&lost.name).into_owned(),
            share: shares
                .counts
                .percent(lost.count.into())
                .map_or(0.0, |percent| percent / 100.0),
            changed: lost.outcome == matching::Outcome::Changed,
        });
        Some(Shares {
            lost: lost.collect(),
            untrained,
            functions: shares.functions.total,
            profiled: shares.functions.matched,
            counts: shares
                .counts
                .matched_percent()
                .map(|percent| percent / 100.0),
        })
    }

    fn benchmark(&mut self) -> Result<()> {
        let settings = &self.plan.settings;
        let (Some((before, _)), Some(command)) = (&self.plain, &settings.benchmark) else {
            return Ok(());
        };
        (self.say)(Event::Command(command.to_string_lossy().into_owned()));
        let after = Copies::make(&self.built, &settings.scratch().join("optimised"))?;
        self.times = Some(measure(
            command,
            &with_folders(&settings.python()),
            settings.runs,
            before,
            &after,
        )?);
        Ok(())
    }
}

fn is_rust(name: &[u8]) -> bool {
    let hashed = |name: &[u8]| {
        name.len() > 20
            && name
                .get(name.len() - 20..)
                .is_some_and(|end| end.starts_with(b"17h") && end.ends_with(b"E"))
    };
    name.starts_with(b"_R") || name.starts_with(b"_ZN") && hashed(name)
}

/// The variables of an environment as they are set: folders come before those that a variable has.
fn with_folders(environment: &[(&'static str, OsString)]) -> Environment {
    let with = |(name, value): &(&'static str, OsString)| {
        let mut value = value.clone();
        if matches!(*name, PATH | PYTHONPATH)
            && let Some(rest) = std::env::var_os(name).filter(|rest| !rest.is_empty())
        {
            value.push(":");
            value.push(rest);
        }
        (*name, value)
    };
    environment.iter().map(with).collect()
}

fn start(command: &[OsString], environment: &[(&'static str, OsString)]) -> Result<ExitStatus> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Start(
            String::new(),
            std::io::ErrorKind::NotFound.into(),
        ));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command.envs(with_folders(environment));
    command
        .status()
        .map_err(|error| Error::Start(program.to_string_lossy().into_owned(), error))
}

/// Ends a job whose build keeps a compiler of its own.
fn refuse(configured: Option<Configured>) -> Result<()> {
    match configured {
        Some(found) => Err(Error::ConfiguredBefore(found.cache, found.compiler)),
        None => Ok(()),
    }
}

/// The raw profiles in a folder that have the name that programs give them where nobody gives one.
fn strays_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("default_") && name.ends_with(".profraw")
    });
    found
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::Io(folder.to_owned(), error))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io(folder.to_owned(), error))
        }
        _ => Ok(()),
    }
}

/// Compiles and links a program with counters, so that a missing runtime is said before a build that takes minutes.
fn check_runtime(plan: &Plan, work: &Path) -> Result<()> {
    let Some(clang) = &plan.tools.clang else {
        return Ok(());
    };
    let (source, program) = (work.join("build/check.c"), work.join("build/check"));
    fs::write(&source, "int main(void) { return 0; }\n")
        .map_err(|error| Error::Io(source.clone(), error))?;
    let output = Command::new(&clang.c)
        .arg("-fprofile-generate")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output();
    let name = clang.c.display().to_string();
    let output = output.map_err(|error| Error::Start(name.clone(), error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let of_runtime = said.lines().find(|line| line.contains("clang_rt.profile"));
    let shown = of_runtime.or(said.lines().next()).unwrap_or_default();
    Err(match of_runtime {
        Some(_) => Error::NoRuntime(name, shown.to_owned()),
        None => Error::NoProgram(name, shown.to_owned()),
    })
}
