//! The steps of a job.
use crate::error::{Error, Result};
use crate::kind::{Kind, makes_wheels, rustflags};
use crate::tools::{Tools, releases_like};
use crate::wrappers::{self, FLAGS};
use profkit_data::Weight;
use std::ffi::{OsStr, OsString};
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
        self.work.join("profkit-pgo-runs")
    }

    /// The folder of what is in the wheels of the last build.
    pub(crate) fn wheels(&self) -> PathBuf {
        self.scratch().join("wheels")
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

impl Plan {
    /// Plans a job.
    ///
    /// # Errors
    /// If a compiler is missing, cargo's configuration cannot be read, or rustc lacks what is wanted.
    pub fn new(settings: Settings) -> Result<Self> {
        let kind = Kind::of(&settings.build);
        let tools = Tools::find(settings.compiler.as_deref(), kind == Kind::Cargo)?;
        if kind == Kind::Cargo && tools.rustc.is_none()
            || kind != Kind::Cargo && tools.clang.is_none()
        {
            return Err(Error::NoCompiler(None));
        }
        if settings.two_stages && kind == Kind::Cargo {
            return Err(Error::NoSecondStage);
        }
        let mut planner = Planner {
            rustflags: match tools.rustc {
                Some(_) if kind == Kind::Cargo || tools.can_mix() => {
                    Some(rustflags(&settings.build)?)
                }
                _ => None,
            },
            wrappers: tools
                .clang
                .as_ref()
                .filter(|_| kind != Kind::Cargo || tools.can_mix())
                .and_then(wrappers::folder),
            kind,
            settings: &settings,
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

struct Planner<'s> {
    settings: &'s Settings,
    kind: Kind,
    /// The flags that cargo would give rustc; `None` if crates are compiled as always.
    rustflags: Option<Vec<OsString>>,
    wrappers: Option<PathBuf>,
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
        self.build(Stage::Instrumented, None);
        let runs = self.train("train");
        let output = if settings.two_stages { &first } else { &last };
        self.merge(runs, None, output);
        if settings.two_stages {
            self.build(Stage::Second, Some(&first));
            let runs = self.train("second");
            self.merge(runs, Some(first), &last);
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
        self.steps.push(Step::Build {
            stage,
            command: build.clone(),
            environment,
        });
        if makes_wheels(build) {
            self.steps.push(Step::Unpack);
        }
    }

    fn environment(&self, stage: Stage, profile: Option<&Path>) -> Environment {
        let built = self.settings.scratch().join("build");
        // Programs that the build itself runs may be instrumented. Their profiles are not of the training.
        let mut environment: Environment =
            vec![("LLVM_PROFILE_FILE", built.join("%p.profraw").into())];
        let used = profile.map(|profile| option("-fprofile-use=", profile));
        let generated = match stage {
            Stage::Instrumented => Some(option("-fprofile-generate=", &built)),
            Stage::Second => Some(option("-fcs-profile-generate=", &built)),
            Stage::Plain | Stage::Optimised => None,
        };
        let mut c: Vec<OsString> = used.into_iter().chain(generated).collect();
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
                Stage::Optimised => profile.map(|profile| option("-Cprofile-use=", profile)),
                Stage::Plain | Stage::Second => None,
            };
            environment.push((
                "CARGO_ENCODED_RUSTFLAGS",
                joined(flags.iter().chain(&more), "\u{1f}"),
            ));
        }
        let Some(folder) = &self.wrappers else {
            return environment;
        };
        environment.push(("CC", folder.join("clang").into()));
        environment.push(("CXX", folder.join("clang++").into()));
        if self.kind == Kind::Cargo {
            // Build scripts see that these variables have changed, and compile C and C++ again.
            for name in ["CFLAGS", "CXXFLAGS"] {
                let own = std::env::var_os(name).filter(|value| !value.is_empty());
                environment.push((name, joined(own.iter().chain(&c), " ")));
            }
        } else {
            environment.push((FLAGS, joined(&c, "\n")));
            environment.push((PATH, folder.into()));
        }
        environment
    }

    fn train(&mut self, name: &str) -> Vec<(Weight, PathBuf)> {
        let mut runs = Vec::new();
        for (number, training) in self.settings.training.iter().enumerate() {
            let folder = self
                .settings
                .scratch()
                .join(format!("{name}-{}", number + 1));
            self.steps.push(Step::Train {
                command: training.command.clone(),
                environment: std::iter::once((
                    "LLVM_PROFILE_FILE",
                    folder.join("%m-%p.profraw").into(),
                ))
                .chain(self.settings.python())
                .collect(),
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
            steps: Vec::new(),
        };
        planner.plan();
        let name = |step: &Step| match step {
            Step::Build {
                stage, environment, ..
            } => {
                let flags = environment.iter().find(|(name, _)| *name == FLAGS);
                let flags = flags
                    .map(|(_, value)| value.to_string_lossy().into_owned())
                    .unwrap_or_default();
                let first: Vec<&str> = flags
                    .lines()
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
