//! Opens files with MIP functions: profiles, YAML and maps.
use super::create::ImageFacts;
use super::map::MipMap;
use super::model::MipProfile;
use super::profile::ProfileVersion;
use super::yaml;
use crate::Result;
use crate::detect::{FileKind, detect};
use std::fmt;

/// The form of a file from which MIP functions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MipForm {
    /// A profile.
    Profile(ProfileVersion),
    /// A profile as YAML.
    Yaml(ProfileVersion),
    /// A map: the list of the functions of a build, without the results of any run.
    Map,
}

impl MipForm {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            MipForm::Profile(_) => "profile",
            MipForm::Yaml(_) => "yaml",
            MipForm::Map => "map",
        }
    }

    /// The version of the profile; `None` for a map.
    pub fn version(self) -> Option<ProfileVersion> {
        match self {
            MipForm::Profile(version) | MipForm::Yaml(version) => Some(version),
            MipForm::Map => None,
        }
    }
}

impl fmt::Display for MipForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MipForm::Profile(version) => write!(f, "MIP profile version {}", version.number()),
            MipForm::Yaml(version) => {
                write!(f, "MIP profile version {} as YAML", version.number())
            }
            MipForm::Map => f.write_str("MIP map: the functions of a build, without runs"),
        }
    }
}

impl MipProfile {
    /// Reads a profile, a profile as YAML, or a map. A map becomes a profile without runs.
    ///
    /// ```
    /// use profkit_data::mip::{MipForm, MipProfile, ProfileVersion};
    ///
    /// let file = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/mip/v8-b.yaml"));
    /// let (profile, form) = MipProfile::open(file)?;
    /// assert_eq!(form, MipForm::Yaml(ProfileVersion::V8));
    /// assert_eq!(profile.functions.len(), 2);
    /// # Ok::<(), profkit_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error if the file is none of these, or is damaged.
    pub fn open(data: &[u8]) -> Result<(Self, MipForm)> {
        match detect(data) {
            FileKind::MipMap => {
                let created = MipProfile::create(&MipMap::parse(data)?, &ImageFacts::new())?;
                Ok((created.profile, MipForm::Map))
            }
            FileKind::MipYaml => {
                let (profile, version) = yaml::parse(data)?;
                Ok((profile, MipForm::Yaml(version)))
            }
            _ => {
                let (profile, version) = MipProfile::parse_versioned(data)?;
                Ok((profile, MipForm::Profile(version)))
            }
        }
    }

    /// Reads a profile. Also returns the version of the file.
    pub fn parse_versioned(data: &[u8]) -> Result<(Self, ProfileVersion)> {
        let profile = MipProfile::parse(data)?;
        let version = match MipProfile::parse_header(data)?.version {
            profkit_abi::mip::v8::VERSION => ProfileVersion::V8,
            _ => ProfileVersion::V9,
        };
        Ok((profile, version))
    }
}
