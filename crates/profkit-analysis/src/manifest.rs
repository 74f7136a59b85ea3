//! Manifests: what a profile was made of, so that it can be made again and compared.
//!
//! A manifest is a function of the inputs and the options: it holds no time, no name of a machine and no folder, so that
//! it is the same file wherever the profile is made. docs/formats/manifest.md describes the JSON.
use profkit_data::ids::BuildId;
use profkit_data::instr::{InstrReader, InstrSource};
use profkit_data::{Error, ErrorKind, Weight};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "profkit-manifest";
const SCHEMA_VERSION: u32 = 1;

/// What a profile was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    schema_version: u32,
    /// The version of profkit that made the profile.
    pub profkit: String,
    /// The options that decide what is in the profile, as words of a command line, without those that name files.
    pub options: Vec<String>,
    /// The files that options name, such as a list of new names.
    pub option_files: Vec<OptionFile>,
    /// The profile.
    pub profile: Hashed,
    /// The build ids of the profile, sorted.
    pub build_ids: Vec<String>,
    /// The compilers and linkers that made the binaries which were named, as the binaries state them, sorted.
    pub tool_chain: Vec<String>,
    /// The inputs, sorted by hash.
    pub inputs: Vec<Input>,
}

/// A file, known by its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hashed {
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
    /// The number of bytes.
    pub bytes: u64,
    /// The name of the file without its folder.
    pub name: String,
}

/// A file that an option names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OptionFile {
    /// The option, such as `--remapping-file`.
    pub option: String,
    /// The file.
    #[serde(flatten)]
    pub file: Hashed,
}

/// An input of the merge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Input {
    /// The file.
    #[serde(flatten)]
    pub file: Hashed,
    /// The factor that multiplied its counts: a number, or two such as `1/4`.
    pub weight: String,
    /// The build ids of the programs that wrote it, sorted.
    pub build_ids: Vec<String>,
}

impl Manifest {
    /// Makes the manifest of a profile without inputs, option files and tool chain.
    pub fn new(options: Vec<String>, profile: Hashed, data: &[u8]) -> Self {
        Manifest {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            profkit: env!("CARGO_PKG_VERSION").to_owned(),
            options,
            option_files: Vec::new(),
            profile,
            build_ids: build_ids(data),
            tool_chain: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if the bytes are not the JSON of a manifest, [`ErrorKind::UnsupportedVersion`] if it is
    /// of a later version.
    pub fn parse(data: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            schema_version: u32,
        }
        let malformed = |error: serde_json::Error| {
            ErrorKind::Malformed.error(format!("this is not a manifest of profkit: {error}"))
        };
        let head: Head = serde_json::from_slice(data).map_err(malformed)?;
        if head.schema != SCHEMA {
            return Err(ErrorKind::Malformed
                .error("this JSON is not a manifest of profkit")
                .found(head.schema)
                .expected(SCHEMA));
        }
        if head.schema_version != SCHEMA_VERSION {
            return Err(ErrorKind::UnsupportedVersion
                .error("this version of manifests is not known")
                .found(head.schema_version)
                .expected(SCHEMA_VERSION)
                .with_hint("read it with the version of profkit that wrote it, or a later one"));
        }
        serde_json::from_slice(data).map_err(malformed)
    }

    /// The JSON of the manifest, with a line break at the end.
    ///
    /// # Errors
    /// None for a manifest in memory; the type is that of the encoder.
    pub fn to_json(&self) -> std::io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The file beside a profile that is taken for its manifest: `app.profdata.manifest.json`.
    pub fn path_beside(profile: &Path) -> PathBuf {
        let mut path = profile.as_os_str().to_owned();
        path.push(".manifest.json");
        path.into()
    }

    /// The fault of a profile that is not the one which the manifest is about; `None` if it is. `path` is that of the
    /// manifest in messages.
    pub fn mismatch(&self, path: &str, profile: &[u8]) -> Option<Error> {
        let found = sha256(profile);
        (found != self.profile.sha256).then(|| {
            ErrorKind::ChecksumMismatch
                .error(format!("the profile is not the one that {path} is about"))
                .found(format!("SHA-256 {found}"))
                .expected(&self.profile.sha256)
                .with_hint("it was changed or made again: `profkit merge --manifest` writes both, and `profkit verify` makes it again of its inputs")
        })
    }

    /// The inputs of the manifest that are not among these hashes, and the number of these hashes that the manifest does
    /// not have. A hash stands for as many inputs as there are of it.
    pub fn compare_inputs<'m>(&'m self, hashes: &[String]) -> (Vec<&'m Input>, u64) {
        let mut left: BTreeMap<&str, u64> = BTreeMap::new();
        for hash in hashes {
            *left.entry(hash).or_default() += 1;
        }
        let mut missing = Vec::new();
        for input in &self.inputs {
            match left.get_mut(&*input.file.sha256) {
                Some(count @ 1..) => *count -= 1,
                _ => missing.push(input),
            }
        }
        (missing, left.values().sum())
    }

    /// The weight that the manifest states for the input with this hash; `None` if it has no such input.
    pub fn weight_of(&self, sha256: &str) -> Option<Weight> {
        let input = self.inputs.iter().find(|it| it.file.sha256 == sha256)?;
        let (over, under) = input.weight.split_once('/').unwrap_or((&input.weight, "1"));
        Weight::ratio(over.parse().ok()?, under.parse().ok()?)
    }
}

impl Hashed {
    /// A file with these bytes. Of `name`, the part after the last separator of a path or archive is kept.
    pub fn of(name: &str, data: &[u8]) -> Self {
        let name = name.rsplit(['/', '\\', '!']).next().unwrap_or_default();
        Hashed {
            sha256: sha256(data),
            bytes: data.len() as u64,
            name: name.to_owned(),
        }
    }
}

impl Input {
    /// An input with these bytes.
    pub fn of(name: &str, data: &[u8], weight: Weight) -> Self {
        Input {
            file: Hashed::of(name, data),
            weight: weight.to_string(),
            build_ids: build_ids(data),
        }
    }
}

fn sha256(data: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(data) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The build ids that a profile states; none if it cannot be read, which the merge has reported.
fn build_ids(data: &[u8]) -> Vec<String> {
    let ids = match InstrReader::open(data) {
        Ok(reader) => reader.binary_ids(),
        Err(_) => profkit_merge::part::examine(data).map(|facts| facts.build_ids),
    };
    let ids: Vec<BuildId> = ids.unwrap_or_default();
    let mut ids: Vec<_> = ids.iter().map(ToString::to_string).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let profile = Hashed::of("out/app.profdata", b"profile");
        let mut manifest = Manifest::new(vec!["--sparse".into()], profile, b"profile");
        for data in [&b"one"[..], b"one", b"two"] {
            manifest
                .inputs
                .push(Input::of("runs.tar!a/b.profraw", data, Weight::ONE));
        }
        manifest
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let manifest = manifest();
        assert_eq!(manifest.inputs[0].file.name, "b.profraw");
        let json = manifest.to_json().unwrap();
        assert_eq!(Manifest::parse(&json).unwrap(), manifest);
        for length in 0..json.len() - 2 {
            Manifest::parse(&json[..length]).unwrap_err();
        }
        let later = String::from_utf8(json)
            .unwrap()
            .replace("version\": 1", "version\": 2");
        let error = Manifest::parse(later.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
        let other = Manifest::parse(br#"{"schema":"x","schema_version":1}"#).unwrap_err();
        assert_eq!(other.kind(), ErrorKind::Malformed);
    }

    #[test]
    fn inputs_are_compared_as_often_as_they_occur() {
        let manifest = manifest();
        let [one, two, three] = [&b"one"[..], b"two", b"three"].map(sha256);
        assert_eq!(manifest.weight_of(&one), Some(Weight::ONE));
        assert_eq!(manifest.weight_of(&three), None);
        let all = [one.clone(), two, one.clone()];
        assert_eq!(manifest.compare_inputs(&all), (Vec::new(), 0));
        let (missing, others) = manifest.compare_inputs(&[one, three]);
        assert_eq!((missing.len(), others), (2, 1));
    }

    #[test]
    fn another_profile_is_a_mismatch() {
        let manifest = manifest();
        assert!(manifest.mismatch("m.json", b"profile").is_none());
        let error = manifest.mismatch("m.json", b"profil").unwrap();
        assert_eq!(error.kind(), ErrorKind::ChecksumMismatch);
    }
}
