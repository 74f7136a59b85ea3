//! Why inputs cannot be put together whatever their order.
use profkit_data::Error;
use profkit_data::detect::Family;
use std::fmt;

/// Why parts, or inputs of a merge that does not depend on their order, cannot be added up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PartError {
    /// An option of the merge depends on the order of inputs. The text names it.
    Options(&'static str),
    /// The checksums of a part are right, but what it holds contradicts itself.
    Damaged {
        /// The name of the part.
        name: String,
        /// What is wrong, and where.
        error: Box<Error>,
    },
    /// The counts of inputs cannot be scaled to the largest sum if some inputs come in parts.
    Normalize,
    /// A part was made with other options, which change what it holds.
    OtherOptions {
        /// The name of the part.
        name: String,
        /// The options that it was made with.
        found: String,
        /// The options of the other inputs.
        expected: String,
    },
    /// A part is of profiles of another family than the other inputs.
    OtherFamily {
        /// The name of the part.
        name: String,
        /// The family of its profiles.
        found: Family,
        /// The family of the other inputs.
        expected: Family,
    },
    /// Some inputs of a part are also in the other inputs, and some are not. Sums cannot be taken apart.
    Overlap {
        /// The name of the part.
        name: String,
        /// The number of inputs that it shares with the others.
        shared: u64,
        /// The names of the first of them.
        first: Vec<String>,
    },
    /// Two inputs with the same id have different contents or weights.
    TwoContents {
        /// The name of one of them.
        name: String,
        /// The name of the other.
        other: String,
    },
    /// Two MIP profiles of one build have different functions under one name, so their sum depends on the order.
    Contradiction {
        /// The build.
        build: String,
    },
    /// A MIP profile has no build id, so that the raw files of its build cannot be told from others.
    UnknownBuild {
        /// The name of the profile.
        name: String,
    },
    /// An input has no id, which it needs to be in a part: another delivery of it would not be recognised.
    NoId {
        /// The name of the input.
        name: String,
    },
    /// A part was given a weight.
    Weight {
        /// The name of the part.
        name: String,
    },
    /// There are more inputs than a part can hold the ids of.
    TooMany,
}

impl PartError {
    /// The largest number of inputs of one part.
    pub const MOST_INPUTS: usize = 1 << 22;
    /// The largest number of shared inputs that [`Overlap`](Self::Overlap) names.
    pub const MOST_NAMED: usize = 5;

    /// Whether the error is in the command line; `false` if it is in a file.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            PartError::Options(_)
                | PartError::Normalize
                | PartError::UnknownBuild { .. }
                | PartError::NoId { .. }
                | PartError::Weight { .. }
        )
    }

    /// Returns a suggestion to the user, if there is a step that resolves the error.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            PartError::Options(_) => "leave out that option, or --order-free",
            PartError::Normalize => "leave out --normalize, or merge the inputs themselves",
            PartError::Damaged { .. } => "make the part again from its inputs",
            PartError::OtherOptions { .. } => {
                "make all parts with the same options, and finish them with these options too"
            }
            PartError::OtherFamily { .. } => "merge the files of each family separately",
            PartError::Overlap { .. } => {
                "leave out one of the overlapping parts, or make parts again of which no two hold the same input"
            }
            PartError::TwoContents { .. } => {
                "give an id to one content only: a file that is written again needs a new one"
            }
            PartError::Contradiction { .. } => "leave out the profile that is not of this build",
            PartError::UnknownBuild { .. } => {
                "make the profile with the binary, or with the option --build-id"
            }
            PartError::NoId { .. } => "name a file, or give the input an id with --input-ids",
            PartError::Weight { .. } => "give the weights to the inputs when the part is made",
            PartError::TooMany => "finish some of the parts, and merge the results",
        })
    }
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartError::Options(what) => write!(
                f,
                "{what} depends on the order of inputs, which parts and --order-free exclude"
            ),
            PartError::Normalize => {
                f.write_str("--normalize needs the counts of each input, which parts do not have")
            }
            PartError::Damaged { name, error } => write!(f, "{name}: {error}"),
            PartError::OtherOptions {
                name,
                found,
                expected,
            } => write!(
                f,
                "{name}: the part was made with other options than the other inputs: found {found}, expected {expected}"
            ),
            PartError::OtherFamily {
                name,
                found,
                expected,
            } => write!(
                f,
                "{name}: the part is one of {}s, and the other inputs are {}s",
                found.profile(),
                expected.profile()
            ),
            PartError::Overlap {
                name,
                shared,
                first,
            } => {
                let more = if *shared > first.len() as u64 {
                    ", …"
                } else {
                    ""
                };
                let inputs = match shared {
                    1 => "1 input of the part is".to_owned(),
                    _ => format!("{shared} inputs of the part are"),
                };
                write!(
                    f,
                    "{name}: {inputs} in the other inputs too, but others are not, so its counts cannot be added: {}{more}",
                    first.join(", ")
                )
            }
            PartError::TwoContents { name, other } => write!(
                f,
                "{name} and {other} have the same id, but different contents or weights"
            ),
            PartError::Contradiction { build } => write!(
                f,
                "{build}: two profiles of this build have functions with one name and different code"
            ),
            PartError::UnknownBuild { name } => {
                write!(
                    f,
                    "{name}: a profile without a build id cannot be in a part"
                )
            }
            PartError::NoId { name } => {
                write!(f, "{name}: the input has no id, so it cannot be in a part")
            }
            PartError::Weight { name } => write!(f, "{name}: a part cannot have a weight"),
            PartError::TooMany => write!(f, "a part can hold at most {} inputs", Self::MOST_INPUTS),
        }
    }
}

impl std::error::Error for PartError {}
