//! A job as a script of the shell. Profiles of counters are merged by LLVM's own tool, so that the script works without
//! profkit; what LLVM has no command for is a command of profkit.
use crate::kind::{FORCE, Kind, force_file, makes_wheels};
use crate::plan::{Environment, PATH, PYTHONPATH, Plan, Step};
use crate::tools::on_path;
use crate::wrappers::{quoted, scripts};
use profkit_data::Weight;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::Path;

impl Plan {
    /// The job as a script of the shell.
    #[must_use]
    pub fn script(&self) -> String {
        let mut text = String::from("#!/bin/sh\nset -e\n");
        let work = quoted(self.settings.scratch().as_os_str());
        let _ = writeln!(text, "mkdir -p {work}/build");
        if makes_wheels(&self.settings.build) {
            let file = force_file(&self.settings.scratch());
            let file = quoted(file.as_os_str());
            let _ = writeln!(text, "cat >{file} <<'END'\n{FORCE}END");
        }
        if let (Some(folder), Some(clang)) = (&self.wrappers, &self.tools.clang) {
            text += "\n# Programs that take the place of compilers.\n";
            let _ = writeln!(text, "mkdir -p {}", quoted(folder.as_os_str()));
            for (name, script) in scripts(folder, clang) {
                let path = quoted(folder.join(name).as_os_str());
                let _ = writeln!(text, "cat >{path} <<'END'\n{script}END\nchmod +x {path}");
            }
        }
        for step in &self.steps {
            text.push('\n');
            self.step(&mut text, step);
        }
        text
    }

    fn step(&self, text: &mut String, step: &Step) {
        match step {
            Step::Clean { command, may_fail } => {
                let _ = writeln!(
                    text,
                    "{}{}",
                    line(&Vec::new(), command),
                    if *may_fail { " || true" } else { "" }
                );
            }
            Step::Build {
                command,
                environment,
                ..
            } => {
                if makes_wheels(&self.settings.build) {
                    let stamp = quoted(self.settings.scratch().join("began").as_os_str());
                    let _ = writeln!(text, "touch {stamp}");
                }
                let _ = writeln!(text, "{}", line(environment, command));
            }
            Step::Unpack => {
                let folder = self.settings.wheels();
                let stamp = quoted(self.settings.scratch().join("began").as_os_str());
                let command = unpacking(OsStr::new("WHEEL"), &folder);
                let command = line(&Vec::new(), &command).replace("WHEEL", "\"$wheel\"");
                let _ = writeln!(
                    text,
                    "rm -rf {0}\nmkdir -p {0}\nfor wheel in $(find . -name '*.whl' -newer {stamp}); do {command}; done",
                    quoted(folder.as_os_str()),
                );
            }
            Step::Copy => *text += "# profkit keeps copies of the programs here.\n",
            Step::Train {
                folder,
                recorder,
                command,
                environment,
            } => {
                let name = quoted(folder.as_os_str());
                let _ = writeln!(text, "rm -rf {name}\nmkdir -p {name}");
                // As in a job of profkit: a training that empties the environment writes where the program was built for.
                let strays = quoted(self.settings.scratch().join("build").as_os_str());
                let strays = format!("find {strays} -name 'default_*.profraw'");
                let _ = writeln!(text, "{strays} -exec rm {{}} +");
                let _ = writeln!(
                    text,
                    "{} || echo 'training failed' >&2",
                    line(environment, &shell(recorder, command))
                );
                let _ = writeln!(text, "{strays} -exec mv {{}} {name} \\;");
            }
            Step::Merge {
                runs,
                first,
                output,
            } => {
                *text += "set --\n";
                for (weight, folder) in runs {
                    let file = if *weight == Weight::ONE {
                        "\"$f\"".to_owned()
                    } else {
                        format!("-weighted-input={weight},\"$f\"")
                    };
                    let _ = writeln!(
                        text,
                        "for f in {}/*.profraw; do [ ! -e \"$f\" ] || set -- \"$@\" {file}; done",
                        quoted(folder.as_os_str())
                    );
                }
                let first = first.as_ref().map_or(String::new(), |path| {
                    format!("{} ", quoted(path.as_os_str()))
                });
                let _ = writeln!(
                    text,
                    "{} merge -failure-mode=all {first}\"$@\" -o {}",
                    self.profdata(),
                    quoted(output.as_os_str())
                );
                if self.settings.partial {
                    let mut words = self.filter_command(output);
                    let release = self.reader(Kind::of(&self.settings.build) == Kind::Cargo);
                    words.extend(["--llvm".into(), release.to_string().into()]);
                    let _ = writeln!(text, "{}", line(&Vec::new(), &words));
                }
            }
            Step::Sample { .. } | Step::Order { .. } => {
                for command in self.script_of(step) {
                    let _ = writeln!(text, "{command}");
                }
            }
            Step::Benchmark => {
                let command = self.settings.benchmark.clone().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "# profkit runs this with both builds in turn, {} times each:\n# {}",
                    self.settings.runs,
                    command.to_string_lossy()
                );
            }
        }
    }

    /// LLVM's tool of the release that reads the profile.
    fn profdata(&self) -> String {
        let release = self
            .tools
            .clang
            .as_ref()
            .map(|clang| clang.release)
            .or(self.tools.rustc);
        let numbered = release.map(|release| format!("llvm-profdata-{release}"));
        numbered
            .filter(|name| on_path(OsStr::new(name)).is_some())
            .unwrap_or_else(|| "llvm-profdata".to_owned())
    }
}

/// A training command of the shell, with what records it before it.
pub(crate) fn shell(recorder: &[OsString], command: &OsString) -> Vec<OsString> {
    let words = ["sh".into(), "-c".into(), command.clone()];
    recorder.iter().cloned().chain(words).collect()
}

/// Python's own command that unpacks a wheel.
pub(crate) fn unpacking(wheel: &OsStr, folder: &Path) -> Vec<OsString> {
    let words = ["python3", "-m", "zipfile", "-e"].map(OsString::from);
    words
        .into_iter()
        .chain([wheel.to_owned(), folder.into()])
        .collect()
}

/// A command as the shell reads it, with what is set for it.
pub(crate) fn line(environment: &Environment, command: &[OsString]) -> String {
    let set = environment.iter().map(|(name, value)| match *name {
        PATH => format!("{name}={}:\"$PATH\"", quoted(value)),
        // An empty folder at the end would be the current one.
        PYTHONPATH => format!("{name}={}\"${{PYTHONPATH:+:$PYTHONPATH}}\"", quoted(value)),
        _ => format!("{name}={}", quoted(value)),
    });
    let words = command.iter().map(|word| quoted(word));
    set.chain(words).collect::<Vec<_>>().join(" ")
}
