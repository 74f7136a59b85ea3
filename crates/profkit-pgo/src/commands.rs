//! The commands of profkit that are steps of a job, as they are started and as they stand in a script.
use crate::error::{Error, Result};
use crate::plan::{Plan, Step};
use crate::tools::on_path;
use crate::wrappers::quoted;
use profkit_data::Weight;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file in the folder of a training that perf writes.
pub(crate) const RECORDING: &str = "perf.data";

/// How perf records the training.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorder {
    /// The options that choose the event.
    pub event: Vec<OsString>,
    /// Whether the samples have branch stacks; otherwise their addresses are counted.
    pub branches: bool,
}

impl Recorder {
    /// The best that perf can record on this machine. The period of an event is fixed, so that each sample counts the same.
    ///
    /// # Errors
    /// If perf is missing or may record nothing.
    pub fn find() -> Result<Self> {
        let mut said = String::new();
        for (event, branches) in [
            ("-b -e cycles:u -c 500009", true),
            ("-e cycles:u -c 500009", false),
            ("-e cpu-clock:u -c 250000", false),
        ] {
            let recorder = Recorder {
                event: event.split(' ').map(OsString::from).collect(),
                branches,
            };
            let (program, arguments) = ("perf", recorder.words(Path::new("/dev/null")));
            let output = Command::new(program)
                .args(arguments.iter().skip(1))
                .arg("true")
                .output()
                .map_err(|error| Error::NoRecording(format!("{program}: {error}")))?;
            if output.status.success() {
                return Ok(recorder);
            }
            said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        }
        Err(Error::NoRecording(said))
    }

    /// What stands before a command that is recorded.
    pub(crate) fn words(&self, file: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["perf", "record", "-q"].map(OsString::from).to_vec();
        words.extend(self.event.iter().cloned());
        words.extend(["-o".into(), file.into(), "--".into()]);
        words
    }
}

/// What a command of profkit is given as the programs of the build.
#[derive(Clone, Copy)]
pub(crate) enum Programs<'a> {
    /// These files.
    Built(&'a [PathBuf]),
    /// What is in the current folder: the script does not know what the build will write.
    Here,
}

impl Programs<'_> {
    fn words(self, folder_option: &str) -> Vec<OsString> {
        match self {
            Programs::Built(paths) => paths
                .iter()
                .flat_map(|path| ["--binary".into(), path.into()])
                .collect(),
            Programs::Here => vec![folder_option.into(), ".".into()],
        }
    }
}

impl Plan {
    /// `profkit`, with these words.
    fn profkit(&self, words: &[&OsStr]) -> Vec<OsString> {
        std::iter::once(self.settings.profkit.as_os_str())
            .chain(words.iter().copied())
            .map(OsStr::to_owned)
            .collect()
    }

    /// Makes a sample profile of the recording of one training.
    pub(crate) fn sample_command(
        &self,
        folder: &Path,
        branches: bool,
        programs: Programs<'_>,
    ) -> Vec<OsString> {
        let recording = folder.join(RECORDING);
        let mut words = self.profkit(&["sample".as_ref(), recording.as_os_str()]);
        words.extend(programs.words("--binaries"));
        if !branches {
            words.push("--ips".into());
        }
        words.extend(["-o".into(), sampled(folder).into()]);
        words
    }

    /// Adds up the sample profiles of all trainings.
    pub(crate) fn add_command(&self, runs: &[(Weight, &Path)], output: &Path) -> Vec<OsString> {
        let mut words = self.profkit(&["merge".as_ref(), "-q".as_ref()]);
        for (weight, folder) in runs {
            let mut word = OsString::from(format!("{weight},"));
            word.push(sampled(folder));
            words.push(word);
        }
        words.extend(["-o".into(), output.into()]);
        words
    }

    /// Leaves functions that never ran out of a profile.
    pub(crate) fn filter_command(&self, profile: &Path) -> Vec<OsString> {
        let words = ["filter", "--drop-cold=0"].map(OsStr::new);
        let mut words = self.profkit(&words);
        words.extend([profile.into(), "-o".into(), profile.into()]);
        words
    }

    /// Adds up the MIP files of the trainings, a profile for each program in a folder.
    pub(crate) fn mip_command(
        &self,
        runs: &[PathBuf],
        folder: &Path,
        programs: Programs<'_>,
    ) -> Vec<OsString> {
        let mut words = self.profkit(&["mip".as_ref(), "merge".as_ref(), "-p".as_ref()]);
        words.push(folder.into());
        words.extend(programs.words("--binary"));
        words.extend(runs.iter().map(OsString::from));
        words
    }

    /// Makes the order of functions of MIP profiles.
    pub(crate) fn order_command(&self, profiles: &[PathBuf], output: &Path) -> Vec<OsString> {
        let mut words = self.profkit(&["order".as_ref()]);
        words.extend(profiles.iter().map(OsString::from));
        words.extend(["-o".into(), output.into()]);
        words
    }

    /// The commands of a step that profkit itself carries out, for a script.
    pub(crate) fn script_of(&self, step: &Step) -> Vec<String> {
        let text = |words: &[OsString]| {
            let words = words.iter().map(|word| quoted(word));
            words.collect::<Vec<_>>().join(" ")
        };
        match step {
            Step::Sample {
                runs,
                branches,
                output,
            } => {
                let samples = runs.iter().map(|(_, folder)| {
                    text(&self.sample_command(folder, *branches, Programs::Here))
                });
                let all: Vec<(Weight, &Path)> = runs
                    .iter()
                    .map(|(weight, folder)| (*weight, folder.as_path()))
                    .collect();
                let added = text(&self.add_command(&all, output));
                samples.chain([added]).collect()
            }
            Step::Order {
                runs,
                profiles,
                output,
            } => {
                let merged = text(&self.mip_command(runs, profiles, Programs::Here));
                let order = text(&self.order_command(&[], output));
                let files = format!("{}/*.mip", quoted(profiles.as_os_str()));
                vec![
                    format!("mkdir -p {}", quoted(profiles.as_os_str())),
                    merged,
                    format!("{order} {files}"),
                ]
            }
            _ => Vec::new(),
        }
    }
}

/// The sample profile of one training.
pub(crate) fn sampled(folder: &Path) -> PathBuf {
    folder.join("sampled.prof")
}

/// Whether clang finds lld, which places functions in a given order.
pub(crate) fn has_lld(clang: &Path) -> bool {
    let output = Command::new(clang)
        .args(["-fuse-ld=lld", "-print-prog-name=ld.lld"])
        .output();
    let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    path.is_ok_and(|path| on_path(OsStr::new(&path)).is_some())
}
