//! The steps of a job.
use crate::commands::{RECORDING, Recorder, has_lld};
use crate::error::{Error, Result};
use crate::kind::{Kind, force_file, makes_wheels, rustflags, starts_cargo, toolchain};
use crate::outputs::SCRATCH;
use crate::tools::{Tools, releases_like};
use crate::wrappers::{self, BEFORE, FLAGS, FOLDER, USE};
use profkit_data::Weight;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// What the user wants.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The build: a program and its arguments.
    pub build: Vec<OsString>,
    /// What the instrumented program is run with, as commands of the shell.
    pub training: Vec<Training>,
    /// A command of the shell that makes the next build compile everything; `None`: what this kind of build has for that.
    pub clean: Option<OsString>,
    /// The clang to use; `None`: the one that is found.
    pub compiler: Option<OsString>,
    /// Whether a second profile is collected from a program that was optimised with the first one.
    pub two_stages: bool,
    /// Whether the training is recorded by perf, and its samples are the profile; no counters are compiled in (clang only).
    pub sampling: bool,
    /// Whether functions that no training ran are left out of the profile, so that they are compiled as without it.
    pub partial: bool,
    /// Whether the linker places functions in the order in which the training first called them.
    pub order: bool,
    /// The command `profkit`, which some steps start.
    pub profkit: PathBuf,
    /// A command of the shell whose time is measured with the build as it is and with the profile.
    pub benchmark: Option<OsString>,
    /// How often the benchmark is run with each build.
    pub runs: usize,
    /// The folder for merged profiles. All else that a job writes is in a folder of its own in it.
    pub work: PathBuf,
}

impl Settings {
    /// The folder that belongs to the job alone: it is emptied. The user's folder may hold anything.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.work.join(SCRATCH)
    }

    /// The order of functions.
    pub(crate) fn order_file(&self) -> PathBuf {
        self.work.join("order.txt")
    }

    /// The folder of what is in the wheels of the last build.
    pub(crate) fn wheels(&self) -> PathBuf {
        self.scratch().join("wheels")
    }

    /// The files that training commands name by a path.
    pub(crate) fn named_files(&self) -> Vec<PathBuf> {
        let commands = self.training.iter().map(|training| &training.command);
        let mut files: Vec<PathBuf> = commands
            .chain(&self.benchmark)
            .flat_map(|command| {
                let text = command.to_string_lossy();
                let words = text.split(|c: char| c.is_whitespace() || ";&|()<>'\"".contains(c));
                let paths = words.filter(|word| word.contains('/'));
                paths
                    .filter_map(|path| Path::new(path).canonicalize().ok())
                    .collect::<Vec<_>>()
            })
            .collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// What a run of the program needs for Python to import what is in the wheels.
    pub(crate) fn python(&self) -> Environment {
        match makes_wheels(&self.build) {
            true => vec![(PYTHONPATH, self.wheels().into())],
            false => Vec::new(),
        }
    }
}

/// A command that trains the program.
#[derive(Clone, Debug)]
pub struct Training {
    /// A factor of the counts of its runs.
    pub weight: Weight,
    /// The command of the shell.
    pub command: OsString,
}

/// Which build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The build as it is, to compare with.
    Plain,
    /// With counters.
    Instrumented,
    /// With the first profile, and with counters after inlining.
    Second,
    /// With the source lines that a recording is counted by.
    Sampled,
    /// With the profile, and with records of the order of calls.
    Ordered,
    /// With the profile.
    Optimised,
}

/// The variables whose value in an [`Environment`] is a folder that comes before those that they have.
pub(crate) const PATH: &str = "PATH";
pub(crate) const PYTHONPATH: &str = "PYTHONPATH";

/// Variables of the environment. The values of `PATH` and `PYTHONPATH` are folders that come before the others.
pub type Environment = Vec<(&'static str, OsString)>;

/// A step of a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Makes the next build compile everything.
    Clean {
        /// The program and its arguments.
        command: Vec<OsString>,
        /// Whether the job goes on if it fails: before the first build there may be nothing to clean.
        may_fail: bool,
    },
    /// Builds.
    Build {
        /// Which build.
        stage: Stage,
        /// The program and its arguments.
        command: Vec<OsString>,
        /// What is set for it.
        environment: Environment,
    },
    /// Unpacks the wheels that the last build wrote, so that Python imports them without an installation.
    Unpack,
    /// Keeps copies of what the last build wrote, for the benchmark.
    Copy,
    /// Runs a training command.
    Train {
        /// The folder of what it writes.
        folder: PathBuf,
        /// What stands before it: perf, if it is recorded.
        recorder: Vec<OsString>,
        /// The command of the shell.
        command: OsString,
        /// What is set for it.
        environment: Environment,
    },
    /// Merges the profiles of the training.
    Merge {
        /// The folders of the profiles, with their weights.
        runs: Vec<(Weight, PathBuf)>,
        /// The profile of the stage before.
        first: Option<PathBuf>,
        /// The merged profile.
        output: PathBuf,
    },
    /// Makes a sample profile of the recordings of the training.
    Sample {
        /// The folders of the recordings, with their weights.
        runs: Vec<(Weight, PathBuf)>,
        /// Whether the recordings have branch stacks.
        branches: bool,
        /// The sample profile.
        output: PathBuf,
    },
    /// Makes the order of functions of MIP files.
    Order {
        /// The folders of the files.
        runs: Vec<PathBuf>,
        /// The folder for the MIP profiles of the programs.
        profiles: PathBuf,
        /// The order, for lld.
        output: PathBuf,
    },
    /// Runs the benchmark with both builds.
    Benchmark,
}

/// A job as data.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The compilers.
    pub tools: Tools,
    /// The settings that it was made of.
    pub settings: Settings,
    /// The folder of the programs that take the place of compilers.
    pub(crate) wrappers: Option<PathBuf>,
}

fn joined<'a>(words: impl IntoIterator<Item = &'a OsString>, separator: &str) -> OsString {
    let words: Vec<&OsStr> = words.into_iter().map(OsString::as_os_str).collect();
    words.join(OsStr::new(separator))
}

fn option(name: &str, path: &Path) -> OsString {
    let mut word = OsString::from(name);
    word.push(path);
    word
}

/// A variable that names a compiler for one target. Build scripts prefer it to `CC` and `CXX`.
fn own_compiler() -> Option<(String, String)> {
    let named = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        let is_one = ["CC_", "CXX_"].iter().any(|start| name.starts_with(start))
            || ["HOST_CC", "HOST_CXX", "TARGET_CC", "TARGET_CXX"].contains(&&*name);
        Some((name, value.to_string_lossy().into_owned()))
            .filter(|(_, value)| is_one && !value.is_empty())
    });
    named.min()
}

/// An option that means nothing to a program, and is another one for other flags. The flags themselves cannot stand in a
/// variable whose words end at spaces: a folder may have one in its name.
fn stage_mark<'a>(flags: impl Iterator<Item = &'a OsString>) -> Option<OsString> {
    let flags: Vec<&OsString> = flags.collect();
    let mut hasher = DefaultHasher::new();
    flags.hash(&mut hasher);
    (!flags.is_empty()).then(|| format!("-DPROFKIT_PGO_BUILD=0x{:x}", hasher.finish()).into())
}

impl Plan {
    /// Plans a job.
    ///
    /// # Errors
    /// If a compiler is missing, cargo's configuration cannot be read, or rustc lacks what is wanted.
    pub fn new(settings: Settings) -> Result<Self> {
        let kind = Kind::of(&settings.build);
        let toolchain = toolchain(&settings.build);
        let tools = Tools::find(settings.compiler.as_deref(), toolchain, kind == Kind::Cargo)?;
        if kind == Kind::Cargo && tools.rustc.is_none()
            || kind != Kind::Cargo && tools.clang.is_none()
        {
            return Err(Error::NoCompiler(None));
        }
        for (wanted, what) in [
            (settings.two_stages, "a second stage of instrumentation"),
            (settings.sampling, "an option to use sample profiles"),
        ] {
            if wanted && kind == Kind::Cargo {
                return Err(Error::RustLacks(what));
            }
        }
        if settings.order {
            if kind == Kind::Cargo && !starts_cargo(&settings.build) {
                return Err(Error::NoOrder(
                    "the build is not started by cargo itself".to_owned(),
                ));
            }
            let driver = tools
                .clang
                .as_ref()
                .map_or(Path::new("cc"), |clang| &clang.c);
            if !has_lld(driver) {
                return Err(Error::NoOrder(format!(
                    "{} finds no ld.lld",
                    driver.display()
                )));
            }
        }
        let recorder = settings.sampling.then(Recorder::find).transpose()?;
        let mut planner = Planner {
            rustflags: match tools.rustc {
                // rustc has no option for a sample profile.
                Some(_) if !settings.sampling && (kind == Kind::Cargo || tools.can_mix()) => {
                    Some(rustflags(&settings.build)?)
                }
                _ => None,
            },
            wrappers: tools
                .clang
                .as_ref()
                .filter(|_| kind != Kind::Cargo || tools.can_mix())
                .map(wrappers::folder)
                .transpose()?,
            kind,
            settings: &settings,
            recorder,
            linker: tools.clang.as_ref().map(|clang| clang.c.clone()),
            steps: Vec::new(),
        };
        planner.plan();
        let (steps, wrappers) = (planner.steps, planner.wrappers);
        Ok(Plan {
            steps,
            tools,
            wrappers,
            settings,
        })
    }

    /// What has no profile from the start, for people: the C of crates, or the crates of a build in C, if the raw profiles of
    /// clang have another version than those of rustc. A program has one version of them.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        let (clang, rustc) = (self.tools.clang.as_ref()?, self.tools.rustc?);
        if self.wrappers.is_some()
            && Kind::of(&self.settings.build) == Kind::Cargo
            && let Some((name, value)) = own_compiler()
        {
            return Some(format!(
                "C and C++ that build scripts compile by {name}={value} have no profile: unset it, and give --compiler"
            ));
        }
        if self.settings.sampling {
            return Path::new("Cargo.toml").exists().then(|| {
                "Rust has no profile, because rustc has no option for a sample profile".to_owned()
            });
        }
        let what = match Kind::of(&self.settings.build) {
            _ if self.tools.can_mix() => return None,
            Kind::Cargo => "C and C++ that build scripts compile have",
            _ if Path::new("Cargo.toml").exists() => "Rust has",
            _ => return None,
        };
        Some(format!(
            "{what} no profile, because the raw profiles of {} (LLVM {}) and of rustc (LLVM {rustc}) have different versions; \
             --compiler with a clang of LLVM {} is for both",
            clang.c.display(),
            clang.release,
            releases_like(rustc)
        ))
    }

    /// The oldest of the releases that will read the profile.
    pub(crate) fn reader(&self, has_rust: bool) -> u32 {
        let clang = self
            .tools
            .clang
            .as_ref()
            .filter(|_| self.wrappers.is_some())
            .map(|clang| clang.release);
        let rustc = self.tools.rustc.filter(|_| has_rust || clang.is_none());
        [clang, rustc]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or_default()
    }

    /// What the job is about, for people: the compilers.
    #[must_use]
    pub fn compilers(&self) -> String {
        let clang = self
            .tools
            .clang
            .as_ref()
            .filter(|_| self.wrappers.is_some());
        let clang = clang.map(|clang| format!("{} (LLVM {})", clang.c.display(), clang.release));
        let has_rust = Kind::of(&self.settings.build) == Kind::Cargo;
        let rustc = self
            .tools
            .rustc
            .filter(|_| has_rust)
            .map(|release| format!("rustc (LLVM {release})"));
        clang
            .into_iter()
            .chain(rustc)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// What a training collects.
#[derive(Clone, Copy)]
enum Collected<'a> {
    Counters,
    Samples(&'a Recorder),
    Calls,
}

struct Planner<'s> {
    settings: &'s Settings,
    kind: Kind,
    /// The flags that cargo would give rustc; `None` if crates are compiled as always.
    rustflags: Option<Vec<OsString>>,
    wrappers: Option<PathBuf>,
    /// How the training is recorded, if it is.
    recorder: Option<Recorder>,
    /// What links programs of Rust that have an order of functions, and assembles those with records: a driver that
    /// finds lld.
    linker: Option<PathBuf>,
    steps: Vec<Step>,
}

impl Planner<'_> {
    fn plan(&mut self) {
        let settings = self.settings;
        let work = &settings.work;
        let (first, last) = (work.join("first.profdata"), work.join("merged.profdata"));
        if settings.benchmark.is_some() {
            self.build(Stage::Plain, None);
            self.steps.push(Step::Copy);
        }
        let last = if let Some(recorder) = self.recorder.clone() {
            let last = work.join("merged.prof");
            self.build(Stage::Sampled, None);
            let runs = self.train("train", Collected::Samples(&recorder));
            self.steps.push(Step::Sample {
                runs,
                branches: recorder.branches,
                output: last.clone(),
            });
            last
        } else {
            self.build(Stage::Instrumented, None);
            let runs = self.train("train", Collected::Counters);
            let output = if settings.two_stages { &first } else { &last };
            self.merge(runs, None, output);
            if settings.two_stages {
                self.build(Stage::Second, Some(&first));
                let runs = self.train("second", Collected::Counters);
                self.merge(runs, Some(first), &last);
            }
            last
        };
        if settings.order {
            self.build(Stage::Ordered, Some(&last));
            let runs = self.train("order", Collected::Calls);
            self.steps.push(Step::Order {
                runs: runs.into_iter().map(|(_, folder)| folder).collect(),
                profiles: settings.scratch().join("mip"),
                output: settings.order_file(),
            });
        }
        self.build(Stage::Optimised, Some(&last));
        if settings.benchmark.is_some() {
            self.steps.push(Step::Benchmark);
        }
    }

    fn build(&mut self, stage: Stage, profile: Option<&Path>) {
        let build = &self.settings.build;
        let is_first = self.steps.is_empty();
        match &self.settings.clean {
            Some(command) => self.steps.push(Step::Clean {
                command: vec!["sh".into(), "-c".into(), command.clone()],
                may_fail: is_first,
            }),
            None => self
                .steps
                .extend(self.kind.clean(build).map(|command| Step::Clean {
                    command,
                    may_fail: is_first,
                })),
        }
        let environment = self.environment(stage, profile);
        let command = match stage {
            Stage::Ordered if self.kind == Kind::Cargo => self
                // The crates of others are to be placed too, by the names of the last build.
                .call_recorder(&["cargo", "--dependencies", "--same-names"])
                .into_iter()
                .chain(build.iter().skip(1).cloned())
                .collect(),
            _ => build.clone(),
        };
        self.steps.push(Step::Build {
            stage,
            command,
            environment,
        });
        if makes_wheels(build) {
            self.steps.push(Step::Unpack);
        }
    }

    /// What records the order of calls in what a compiler makes.
    fn call_recorder(&self, driver: &[&str]) -> Vec<OsString> {
        let words = ["mip"]
            .iter()
            .chain(driver)
            .chain(&["--mode", "calls", "--"]);
        std::iter::once(self.settings.profkit.clone().into_os_string())
            .chain(words.map(OsString::from))
            .collect()
    }

    fn environment(&self, stage: Stage, profile: Option<&Path>) -> Environment {
        let built = self.settings.scratch().join("build");
        // Programs that the build itself runs may be instrumented. Their profiles are not of the training.
        let mut environment: Environment =
            vec![("LLVM_PROFILE_FILE", built.join("%p.profraw").into())];
        let use_option = match self.recorder {
            Some(_) => "-fprofile-sample-use=",
            None => "-fprofile-use=",
        };
        let used = profile.map(|profile| option(use_option, profile));
        let generated = match stage {
            Stage::Instrumented => Some(option("-fprofile-generate=", &built)),
            Stage::Second => Some(option("-fcs-profile-generate=", &built)),
            Stage::Sampled => Some("-gline-tables-only".into()),
            Stage::Plain | Stage::Ordered | Stage::Optimised => None,
        };
        if makes_wheels(&self.settings.build) && std::env::var_os("DIST_EXTRA_CONFIG").is_none() {
            let file = force_file(&self.settings.scratch());
            environment.push(("DIST_EXTRA_CONFIG", file.into()));
        }
        let mut added: Vec<OsString> = generated.into_iter().collect();
        if self.recorder.is_some() && stage != Stage::Plain {
            added.push("-fdebug-info-for-profiling".into());
        }
        let mut c: Vec<OsString> = used.into_iter().collect();
        let order = self.order_flags(stage);
        if !order.is_empty() {
            c.push("-ffunction-sections".into());
            c.extend(order.iter().cloned());
            // They are of the linker, and given when a file is compiled too.
            c.push("-Wno-unused-command-line-argument".into());
        }
        if profile.is_some() {
            // A profile that does not fit everywhere must not end a build that takes warnings for errors.
            let words = [
                "-Wno-error=profile-instr-out-of-date",
                "-Wno-error=profile-instr-unprofiled",
                "-Wno-error=backend-plugin",
            ];
            c.extend(words.map(OsString::from));
        }
        if let Some(flags) = &self.rustflags {
            let more = match stage {
                Stage::Instrumented => Some(option("-Cprofile-generate=", &built)),
                Stage::Ordered | Stage::Optimised => {
                    profile.map(|profile| option("-Cprofile-use=", profile))
                }
                Stage::Plain | Stage::Second | Stage::Sampled => None,
            };
            // Other flags than those of the build before also make cargo compile everything again.
            let order: Vec<OsString> = order
                .iter()
                .map(|flag| {
                    let mut word = OsString::from("-Clink-arg=");
                    word.push(flag);
                    word
                })
                .collect();
            let with_order =
                self.settings.order && matches!(stage, Stage::Ordered | Stage::Optimised);
            let linker = self.linker.as_ref().filter(|_| with_order);
            let linker = linker.map(|path| option("-Clinker=", path));
            environment.push((
                "CARGO_ENCODED_RUSTFLAGS",
                joined(
                    flags.iter().chain(&more).chain(&linker).chain(&order),
                    "\u{1f}",
                ),
            ));
        }
        let Some(folder) = &self.wrappers else {
            return environment;
        };
        let in_path = self.kind != Kind::Cargo;
        for (name, program) in [("CC", "clang"), ("CXX", "clang++")] {
            let path = folder.join(program);
            // Makefiles take a path with a space for two words, and the name finds the same program.
            let is_name = in_path && !wrappers::is_plain(&path.to_string_lossy());
            environment.push((name, if is_name { program.into() } else { path.into() }));
        }
        environment.push((FOLDER, folder.into()));
        environment.push((FLAGS, joined(&added, "\n")));
        environment.push((USE, joined(&c, "\n")));
        // Caches of compiled files know the words of a call, and not what is in these variables.
        environment.push(("CCACHE_DISABLE", "1".into()));
        environment.push(("SCCACHE_RECACHE", "1".into()));
        if in_path {
            if stage == Stage::Ordered {
                environment.push((BEFORE, joined(&self.call_recorder(&["cc"]), "\n")));
            }
            environment.push((PATH, folder.into()));
        } else {
            // Build scripts see that these variables have changed, and compile C and C++ again.
            let mark = stage_mark(added.iter().chain(&c));
            for name in ["CFLAGS", "CXXFLAGS"] {
                let own = std::env::var_os(name).filter(|value| !value.is_empty());
                environment.push((name, joined(own.iter().chain(&mark), " ")));
            }
        }
        environment
    }

    /// What makes the linker place functions in order.
    fn order_flags(&self, stage: Stage) -> Vec<OsString> {
        if !self.settings.order || stage != Stage::Optimised {
            return Vec::new();
        }
        let file = self.settings.order_file();
        vec![
            "-fuse-ld=lld".into(),
            option("-Wl,--symbol-ordering-file=", &file),
            "-Wl,--no-warn-symbol-ordering".into(),
        ]
    }

    fn train(&mut self, name: &str, what: Collected<'_>) -> Vec<(Weight, PathBuf)> {
        let mut runs = Vec::new();
        for (number, training) in self.settings.training.iter().enumerate() {
            let folder = self
                .settings
                .scratch()
                .join(format!("{name}-{}", number + 1));
            let mut recorder = Vec::new();
            let mut environment = Environment::new();
            match what {
                Collected::Counters => {
                    environment.push(("LLVM_PROFILE_FILE", folder.join("%m-%p.profraw").into()));
                }
                Collected::Samples(perf) => recorder = perf.words(&folder.join(RECORDING)),
                Collected::Calls => environment.push((
                    "LLVM_MIP_PROFILE_FILENAME",
                    folder.join("%m-%p.mipraw").into(),
                )),
            }
            environment.extend(self.settings.python());
            self.steps.push(Step::Train {
                folder: folder.clone(),
                recorder,
                command: training.command.clone(),
                environment,
            });
            runs.push((training.weight, folder));
        }
        runs
    }

    fn merge(&mut self, runs: Vec<(Weight, PathBuf)>, first: Option<PathBuf>, output: &Path) {
        let output = output.to_owned();
        self.steps.push(Step::Merge {
            runs,
            first,
            output,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn steps(two_stages: bool, benchmark: bool) -> Vec<String> {
        let settings = Settings {
            build: words("make"),
            training: vec![Training {
                weight: Weight::ONE,
                command: "./app".into(),
            }],
            two_stages,
            benchmark: benchmark.then(|| "./app".into()),
            work: "/work".into(),
            ..Settings::default()
        };
        let mut planner = Planner {
            rustflags: None,
            wrappers: Some("/wrappers".into()),
            kind: Kind::Make,
            settings: &settings,
            recorder: None,
            linker: None,
            steps: Vec::new(),
        };
        planner.plan();
        let name = |step: &Step| match step {
            Step::Build {
                stage, environment, ..
            } => {
                let flags = |wanted: &str| {
                    let found = environment.iter().find(|(name, _)| *name == wanted);
                    found.map(|(_, value)| value.to_string_lossy().into_owned())
                };
                let flags = [flags(USE), flags(FLAGS)].map(Option::unwrap_or_default);
                let first: Vec<&str> = flags
                    .iter()
                    .flat_map(|flags| flags.lines())
                    .filter(|flag| !flag.starts_with("-W"))
                    .collect();
                format!("{stage:?} {}", first.join(" "))
            }
            Step::Merge { first, output, .. } => format!("merge {first:?} {}", output.display()),
            Step::Train { environment, .. } => {
                format!("train {}", environment[0].1.to_string_lossy())
            }
            Step::Clean { may_fail, .. } => format!("clean {may_fail}"),
            other => format!("{other:?}"),
        };
        planner.steps.iter().map(name).collect()
    }

    #[test]
    fn a_job_builds_trains_merges_and_builds_again() {
        assert_eq!(
            steps(false, false),
            [
                "clean true",
                "Instrumented -fprofile-generate=/work/profkit-pgo-runs/build",
                "train /work/profkit-pgo-runs/train-1/%m-%p.profraw",
                "merge None /work/merged.profdata",
                "clean false",
                "Optimised -fprofile-use=/work/merged.profdata",
            ]
        );
    }

    #[test]
    fn a_second_stage_and_a_benchmark_have_builds_of_their_own() {
        assert_eq!(
            steps(true, true),
            [
                "clean true",
                "Plain ",
                "Copy",
                "clean false",
                "Instrumented -fprofile-generate=/work/profkit-pgo-runs/build",
                "train /work/profkit-pgo-runs/train-1/%m-%p.profraw",
                "merge None /work/first.profdata",
                "clean false",
                "Second -fprofile-use=/work/first.profdata -fcs-profile-generate=/work/profkit-pgo-runs/build",
                "train /work/profkit-pgo-runs/second-1/%m-%p.profraw",
                "merge Some(\"/work/first.profdata\") /work/merged.profdata",
                "clean false",
                "Optimised -fprofile-use=/work/merged.profdata",
                "Benchmark",
            ]
        );
    }
}
