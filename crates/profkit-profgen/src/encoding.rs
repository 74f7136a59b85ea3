//! The encodings in which profiles are written.
use profkit_data::Result;
use profkit_data::bytes::Sink;
use profkit_data::sample::ext_binary::{self, ExtBinaryOptions};
use profkit_data::sample::gcov::{self, GcovOptions, GcovVersion};
use profkit_data::sample::text::{self, TextOptions};
use profkit_data::sample::{SampleProfile, binary};
use std::str::FromStr;

/// An encoding of sample profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// LLVM's text.
    Text,
    /// LLVM's binary encoding without sections.
    Binary,
    /// LLVM's extensible binary encoding.
    ExtBinary,
    /// GCC's encoding.
    Gcov(GcovVersion),
}

impl FromStr for Encoding {
    type Err = String;

    /// Reads `text`, `binary`, `ext-binary`, `gcov` (the version that GCC 12 to 15 read), or `gcov:N` (the version that
    /// GCC N reads).
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let of_gcc = |release: &str| GcovVersion::of_gcc(release.parse().ok()?);
        let found = match text {
            "text" => Some(Encoding::Text),
            "binary" => Some(Encoding::Binary),
            "ext-binary" => Some(Encoding::ExtBinary),
            "gcov" => Some(Encoding::Gcov(GcovVersion::V2)),
            _ => text
                .strip_prefix("gcov:")
                .and_then(of_gcc)
                .map(Encoding::Gcov),
        };
        found.ok_or_else(|| {
            "expected text, binary, ext-binary, gcov, or gcov:N with N = 5 or a later release of GCC".to_owned()
        })
    }
}

impl Encoding {
    /// The extension of the names of files with this encoding.
    pub fn extension(self) -> &'static str {
        match self {
            Encoding::Text => "txt",
            Encoding::Binary | Encoding::ExtBinary => "prof",
            Encoding::Gcov(_) => "afdo",
        }
    }

    /// Writes a profile.
    ///
    /// # Errors
    /// If the sink cannot write the bytes.
    pub fn write(self, profile: &SampleProfile, sink: &mut dyn Sink) -> Result<()> {
        match self {
            Encoding::Text => text::write(profile, &TextOptions::new(), sink).map(|_| ()),
            Encoding::Binary => {
                binary::write(profile, &binary::BinaryOptions::new(), sink).map(|_| ())
            }
            Encoding::ExtBinary => {
                ext_binary::write(profile, &ExtBinaryOptions::new(), sink).map(|_| ())
            }
            Encoding::Gcov(version) => {
                gcov::write(profile, &GcovOptions::new(version), sink).map(|_| ())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_encodings() {
        let named = |text: &str| text.parse::<Encoding>().ok();
        assert_eq!(named("text"), Some(Encoding::Text));
        assert_eq!(named("gcov"), Some(Encoding::Gcov(GcovVersion::V2)));
        assert_eq!(named("gcov:11"), Some(Encoding::Gcov(GcovVersion::V1)));
        assert_eq!(named("gcov:16"), Some(Encoding::Gcov(GcovVersion::V3)));
        for wrong in ["", "gcov:", "gcov:4", "gcov:x", "Text", "extbinary"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }
}
