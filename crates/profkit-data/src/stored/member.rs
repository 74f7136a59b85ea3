//! Names of the members of archives, as users write them: `ARCHIVE!MEMBER`.
use crate::printable;
use std::fmt;

const MOST_LISTED: usize = 10;

/// The reason why no member of an archive was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberError {
    /// The archive has no files.
    Empty,
    /// The archive has several files, and the user named none of them.
    Several {
        /// The names of the first files of the archive.
        first: Vec<String>,
        /// The number of files in the archive.
        all: usize,
    },
    /// The archive has no file with the name that the user gave.
    Missing {
        /// The name that is missing.
        name: String,
        /// The names of the first files of the archive.
        first: Vec<String>,
        /// The number of files in the archive.
        all: usize,
    },
    /// The user named a member of an archive, but the file is not an archive.
    NotAnArchive,
}

impl MemberError {
    /// Returns the name of a member that the user could choose, as an example for a message; `None` if there is none.
    pub fn example(&self) -> Option<&str> {
        match self {
            MemberError::Several { first, .. } | MemberError::Missing { first, .. } => {
                first.first().map(String::as_str)
            }
            MemberError::Empty | MemberError::NotAnArchive => None,
        }
    }
}

impl fmt::Display for MemberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, first: &[String], all: usize| {
            for (index, name) in first.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                write!(f, "{comma}{}", printable(name.as_bytes()))?;
            }
            match all - first.len() {
                0 => Ok(()),
                more => write!(f, " and {more} more"),
            }
        };
        match self {
            MemberError::Empty => f.write_str("the archive holds no files"),
            MemberError::Several { first, all } => {
                write!(f, "this is an archive, not a profile; its {all} files are ")?;
                list(f, first, *all)
            }
            MemberError::Missing { name, first, all } => {
                write!(
                    f,
                    "the archive has no file {}; it has ",
                    printable(name.as_bytes())
                )?;
                list(f, first, *all)
            }
            MemberError::NotAnArchive => {
                f.write_str("the part before ! is not a tar or zip archive")
            }
        }
    }
}

impl std::error::Error for MemberError {}

/// Returns the index of the member with the given name; if no name is given, the index of the only member. If several
/// members have this name, the last one is chosen, because tar appends newer versions of a file.
///
/// # Errors
/// An error if no member has the name, or if no name is given and the archive does not have exactly one member.
pub fn choose_member(members: &[String], name: Option<&str>) -> Result<usize, MemberError> {
    let first = || members.iter().take(MOST_LISTED).cloned().collect();
    let all = members.len();
    match (name, members) {
        (_, []) => Err(MemberError::Empty),
        (None, [_]) => Ok(0),
        (None, _) => Err(MemberError::Several {
            first: first(),
            all,
        }),
        (Some(name), _) => {
            let wanted = name.strip_prefix("./").unwrap_or(name);
            let found = members.iter().rposition(|member| member == wanted);
            found.ok_or_else(|| MemberError::Missing {
                name: name.to_owned(),
                first: first(),
                all,
            })
        }
    }
}

/// Returns all ways to split the text `ARCHIVE!MEMBER` into the name of an archive and the name of a member. There are
/// several ways if the text has several `!`. Programs use this function if no file has the whole text as its name.
pub fn split_member(name: &str) -> impl Iterator<Item = (&str, &str)> {
    name.match_indices('!')
        .map(|(at, _)| (&name[..at], &name[at + 1..]))
        .filter(|(archive, member)| !archive.is_empty() && !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn one_member_needs_no_name_and_the_last_of_a_name_counts() {
        assert_eq!(choose_member(&names(&["a"]), None), Ok(0));
        assert_eq!(choose_member(&names(&["a", "b", "a"]), Some("./a")), Ok(2));
        assert_eq!(choose_member(&[], None), Err(MemberError::Empty));
        let several = choose_member(&names(&["a"; 12]), None).unwrap_err();
        assert!(several.to_string().ends_with("a, a and 2 more"));
        let missing = choose_member(&names(&["a", "b\x1b[0m"]), Some("c")).unwrap_err();
        assert_eq!(missing.example(), Some("a"));
        assert!(!missing.to_string().contains('\x1b'), "{missing}");
    }

    #[test]
    fn names_are_split_at_each_mark() {
        let split: Vec<_> = split_member("odd!name.tar!a!b").collect();
        let expected = [
            ("odd", "name.tar!a!b"),
            ("odd!name.tar", "a!b"),
            ("odd!name.tar!a", "b"),
        ];
        assert_eq!(split, expected);
        assert_eq!(split_member("!a").chain(split_member("a!")).count(), 0);
    }
}
