//! What is unusual about the inputs of a command.
use profkit_data::numbers::{grouped, plural};
use profkit_data::path_text;
use std::fmt;
use std::path::PathBuf;

/// An unusual fact about the inputs that does not prevent the merge.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputNote {
    /// The output file is also an input. It is read first, then replaced.
    OutputIsInput {
        /// The name of the input.
        name: String,
    },
    /// A file in an input folder is left out, because it is the output of this merge.
    OutputInFolder {
        /// The path of the file that is left out.
        path: PathBuf,
    },
    /// A file is left out, because the report of this merge will replace it, and an earlier report is in it.
    ReportIsInput {
        /// The path of the file that is left out.
        path: PathBuf,
    },
    /// Files in folders and archives are skipped, because they are no profiles.
    NoProfiles {
        /// The names of the first of these files.
        first: Vec<String>,
        /// The number of these files.
        count: u64,
    },
    /// A folder contains no files to merge.
    EmptyFolder {
        /// The name of the folder.
        name: String,
    },
    /// An archive is damaged. The members after the damage cannot be read.
    DamagedArchive {
        /// The name of the archive.
        name: String,
        /// The number of members that can be read.
        members: usize,
        /// A description of the damage in the archive.
        problem: String,
        /// A suggestion to the user for dealing with the damage.
        hint: &'static str,
    },
    /// An archive has several members of one name. Only the last one is used, as unpacking leaves only the last one.
    RepeatedMember {
        /// The name of the member, as `ARCHIVE!MEMBER`.
        name: String,
        /// The number of members of this name.
        times: u64,
    },
    /// The number of further names that several members of an archive have.
    MoreRepeatedMembers(u64),
    /// An archive contains no files.
    EmptyArchive {
        /// The name of the archive.
        name: String,
    },
    /// A file or folder was found at two paths, for example because one of them is a link. It is used only once.
    Same {
        /// The path that is left out. This path equals `other` if the user named the file and also its folder.
        path: PathBuf,
        /// The path under which the file or folder is used.
        other: PathBuf,
    },
    /// The number of further files and folders that were found at two paths.
    MoreSame(u64),
    /// A path in a folder is left out, because it is neither a file nor a link to a file, for example a pipe.
    PassedOver {
        /// The path that is left out.
        path: PathBuf,
        /// The kind of the object at the path, as text: for example, a pipe.
        what: String,
    },
    /// The number of further paths in a folder that are left out.
    MorePassedOver(u64),
    /// The user named a file several times. The counts of the file are added each time.
    Repeated {
        /// The path of the file.
        path: PathBuf,
        /// The number of times that the file is named.
        times: u64,
    },
    /// The number of further files that the user named several times.
    MoreRepeated(u64),
}

impl InputNote {
    /// The name of the input that the output replaces; `None` if the note is about something else.
    pub fn replaced(&self) -> Option<String> {
        match self {
            InputNote::OutputIsInput { name } => Some(name.clone()),
            _ => None,
        }
    }

    /// Whether the note says that inputs are lost because an archive is damaged.
    pub fn is_damage(&self) -> bool {
        matches!(self, InputNote::DamagedArchive { .. })
    }
}

impl fmt::Display for InputNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputNote::OutputIsInput { name } => write!(
                f,
                "{name} is both an input and the output: it is read first, then replaced"
            ),
            InputNote::OutputInFolder { path } => write!(
                f,
                "{} is left out: it is the output, found in a folder that is an input",
                path_text(path)
            ),
            InputNote::ReportIsInput { path } => write!(
                f,
                "{} is left out: an earlier report is in it, and this report will replace it",
                path_text(path)
            ),
            InputNote::DamagedArchive {
                name,
                members,
                problem,
                hint,
            } => {
                let members = plural(*members as u64, "member");
                write!(f, "{name}: {problem}; {members} can be read; {hint}")
            }
            InputNote::RepeatedMember { name, times } => {
                let times = times_text(*times);
                write!(
                    f,
                    "{name} is in the archive {times}: only the last one counts, as if the archive were unpacked"
                )
            }
            InputNote::MoreRepeatedMembers(count) => write!(
                f,
                "… and {} more that are in the archive several times",
                plural(*count, "file")
            ),
            InputNote::EmptyArchive { name } => {
                write!(f, "{name}: this archive holds no files to merge")
            }
            InputNote::NoProfiles { first, count } => {
                let more = count.saturating_sub(first.len() as u64);
                let mut names = first.join(", ");
                if more > 0 {
                    names.push_str(&format!(" and {} more", grouped(more)));
                }
                let count = match count {
                    1 => "1 other file is skipped, because it is no profile".to_owned(),
                    count => format!(
                        "{} other files are skipped, because they are no profiles",
                        grouped(*count)
                    ),
                };
                write!(f, "{count}: {names}")
            }
            InputNote::EmptyFolder { name } => {
                write!(f, "{name}: this folder holds no files to merge")
            }
            InputNote::Repeated { path, times } => {
                let times = times_text(*times);
                let path = path_text(path);
                write!(f, "{path} is named {times}: its counts are added {times}")
            }
            InputNote::MoreRepeated(count) => {
                write!(
                    f,
                    "… and {} more files named several times",
                    grouped(*count)
                )
            }
            InputNote::Same { path, other } if path == other => write!(
                f,
                "{} is named, and it is in a folder that is an input: it counts once",
                path_text(path)
            ),
            InputNote::Same { path, other } => write!(
                f,
                "{} is left out: it is the same file or folder as {}",
                path_text(path),
                path_text(other)
            ),
            InputNote::MoreSame(count) => write!(
                f,
                "… and {} more, left out because they lead to files that are already among the inputs",
                plural(*count, "path")
            ),
            InputNote::PassedOver { path, what } => {
                write!(f, "{} is passed over: it is {what}", path_text(path))
            }
            InputNote::MorePassedOver(count) => {
                write!(f, "… and {} passed over", plural(*count, "path"))
            }
        }
    }
}

fn times_text(times: u64) -> String {
    match times {
        2 => "twice".to_owned(),
        times => format!("{times} times"),
    }
}
