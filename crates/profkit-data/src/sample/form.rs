//! The encodings in which sample profiles are written.
use super::binary::{self};
use super::ext_binary::{self, ExtBinaryOptions};
use super::gcov::{self, GcovLosses, GcovOptions, GcovProfile, GcovVersion};
use super::text::{self, TextOptions};
use super::{Limited, Losses, ProfileKind, SampleEncoding, SampleProfile, encode_within, nest};
use crate::Result;
use crate::bytes::Sink;
use crate::loss_counts::fmt_counts;
use crate::releases::Release;
use std::fmt;
use std::str::FromStr;

/// An encoding in which sample profiles are written, with its version.
///
/// ```
/// use profkit_data::sample::{FormOptions, SampleForm, SampleProfile, read};
///
/// let mut profile = SampleProfile::new();
/// read(b"main:100:5\n 1: 100\n !Attributes: 1\n", &mut profile, 1).strict()?;
/// let form: SampleForm = "binary".parse()?;
/// let mut file = Vec::new();
/// let losses = form.write(&profile, &FormOptions::for_profile(&profile), &mut file)?;
/// assert_eq!(losses.to_string(), "attributes: 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleForm {
    /// LLVM's text.
    Text,
    /// LLVM's extensible binary encoding, which consists of sections.
    #[default]
    ExtBinary,
    /// LLVM's binary encoding without sections.
    Binary,
    /// The compact binary encoding, for LLVM 7 to 16.
    CompactBinary,
    /// GCC's encoding.
    Gcov(GcovVersion),
}

impl FromStr for SampleForm {
    type Err = String;

    /// Reads `text`, `binary`, `compact-binary`, `ext-binary` (or `extbinary`), `gcov` (the version that GCC 12 to 15
    /// read), `gcov:N` (the version that GCC N reads), or `gcov:llvm` (the version that LLVM reads).
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let of_gcc = |release: &str| GcovVersion::of_gcc(release.parse().ok()?);
        let found = match text {
            "text" => Some(SampleForm::Text),
            "binary" => Some(SampleForm::Binary),
            "compact-binary" | "compbinary" => Some(SampleForm::CompactBinary),
            "ext-binary" | "extbinary" => Some(SampleForm::ExtBinary),
            "gcov" => Some(SampleForm::Gcov(GcovVersion::V2)),
            "gcov:llvm" => Some(SampleForm::Gcov(GcovVersion::OF_LLVM)),
            _ => text
                .strip_prefix("gcov:")
                .and_then(of_gcc)
                .map(SampleForm::Gcov),
        };
        found.ok_or_else(|| {
            "expected text, binary, compact-binary, ext-binary, gcov, gcov:llvm, or gcov:N with N = 5 or a later release of GCC".to_owned()
        })
    }
}

impl SampleForm {
    /// The encoding that suits an LLVM release; `None` is the newest release. LLVM releases before 10 do not read the
    /// extensible binary encoding.
    pub fn for_llvm(release: Option<Release>) -> Self {
        if release.is_some_and(|release| release < Release::new(10)) {
            SampleForm::Binary
        } else {
            SampleForm::ExtBinary
        }
    }

    /// The encoding without its version.
    pub fn encoding(self) -> SampleEncoding {
        match self {
            SampleForm::Text => SampleEncoding::Text,
            SampleForm::ExtBinary => SampleEncoding::ExtBinary,
            SampleForm::Binary => SampleEncoding::Binary,
            SampleForm::CompactBinary => SampleEncoding::CompactBinary,
            SampleForm::Gcov(_) => SampleEncoding::Gcov,
        }
    }

    /// The name of the encoding in messages, with its version.
    pub fn name(self) -> &'static str {
        match self {
            SampleForm::Gcov(GcovVersion::Gcc46) => "gcov version 406p",
            SampleForm::Gcov(GcovVersion::Gcc47) => "gcov version 407*",
            SampleForm::Gcov(GcovVersion::V1) => "gcov version 1",
            SampleForm::Gcov(GcovVersion::V2) => "gcov version 2",
            SampleForm::Gcov(GcovVersion::V3) => "gcov version 3",
            other => other.encoding().name(),
        }
    }

    /// The usual extension of the names of files with this encoding.
    pub fn extension(self) -> &'static str {
        match self {
            SampleForm::Text => "txt",
            SampleForm::ExtBinary | SampleForm::Binary | SampleForm::CompactBinary => "prof",
            SampleForm::Gcov(_) => "afdo",
        }
    }

    /// Whether the encoding is text, which may be shown on a terminal.
    pub fn is_text(self) -> bool {
        self == SampleForm::Text
    }

    /// Whether the encoding can hold calling contexts.
    pub fn holds_contexts(self) -> bool {
        matches!(self, SampleForm::Text | SampleForm::ExtBinary)
    }

    /// If the profile has calling contexts and the encoding cannot hold them, turns them into nested functions. Returns
    /// whether it did.
    pub fn nest_contexts(self, profile: &mut SampleProfile) -> bool {
        let is_needed =
            !self.holds_contexts() && profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
        if is_needed {
            nest(profile);
        }
        is_needed
    }

    /// Writes a profile. Returns what was left out.
    ///
    /// # Errors
    /// [`ErrorKind::CannotRepresent`](crate::ErrorKind::CannotRepresent) if the profile has calling contexts or pseudo
    /// probes and the encoding, its options or the LLVM release do not allow them. Otherwise the errors of the sink.
    pub fn write(
        self,
        profile: &SampleProfile,
        options: &FormOptions,
        sink: &mut dyn Sink,
    ) -> Result<FormLosses> {
        let losses = match self {
            SampleForm::Text => text::write(profile, &options.text, sink),
            SampleForm::ExtBinary => ext_binary::write(profile, &options.ext_binary, sink),
            SampleForm::Binary => binary::write(profile, sink),
            SampleForm::CompactBinary => binary::write_compact(profile, sink),
            SampleForm::Gcov(version) => {
                let fresh = GcovOptions::new(version);
                let options = match &options.gcov_like {
                    Some(read) => fresh.like(read, profile),
                    None => fresh,
                };
                return gcov::write(profile, &options, sink).map(FormLosses::Gcov);
            }
        };
        losses.map(FormLosses::Llvm)
    }

    /// Encodes a profile. If the result has more than `limit` bytes, the functions with the fewest samples are dropped
    /// until the encoded profile fits.
    pub fn encode(
        self,
        profile: &mut SampleProfile,
        options: &FormOptions,
        limit: Option<u64>,
    ) -> Result<Limited<FormLosses>> {
        encode_within(profile, limit, |profile, bytes| {
            self.write(profile, options, bytes)
        })
    }
}

/// The options of all encodings. Each encoding uses its own and ignores the others.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FormOptions {
    /// The options of [`SampleForm::Text`].
    pub text: TextOptions,
    /// The options of [`SampleForm::ExtBinary`].
    pub ext_binary: ExtBinaryOptions,
    /// For [`SampleForm::Gcov`]: the file from which the profile comes, if it is such a file. Its byte order and the
    /// names of its source files are kept.
    pub gcov_like: Option<GcovProfile>,
}

impl FormOptions {
    /// Returns the default options of each encoding.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the options with which this profile loses the least. They are the default options, except that vtables
    /// are written if the profile has any.
    pub fn for_profile(profile: &SampleProfile) -> Self {
        let mut options = Self::default();
        options.ext_binary.vtables = profile.kind.contains(ProfileKind::HAS_VTABLES);
        options
    }

    /// Sets the LLVM release that will read the file; `None` is the newest. The parts that this release cannot read in
    /// text, the hashes in the symbol list of extensible binary files, and their table of contexts if it is empty, are left
    /// out.
    #[must_use]
    pub fn for_llvm(mut self, release: Option<Release>) -> Self {
        self.text.release = release;
        self.ext_binary.no_symbol_hashes = release.is_some_and(|it| it < Release::new(24));
        self.ext_binary.no_context_table = release.is_some_and(|it| it < Release::new(14));
        self
    }
}

/// What was left out of a file because its encoding cannot hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormLosses {
    /// The losses of one of LLVM's encodings.
    Llvm(Losses),
    /// The losses of GCC's encoding.
    Gcov(GcovLosses),
}

impl FormLosses {
    /// Whether the file holds the whole profile: nothing was left out.
    pub fn is_empty(&self) -> bool {
        match self {
            FormLosses::Llvm(losses) => losses.is_empty(),
            FormLosses::Gcov(losses) => losses.is_empty(),
        }
    }

    /// Returns the counts that are not 0, each with a plural noun for messages. The iterator is empty if and only if
    /// nothing was left out.
    pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let (llvm, gcov) = match self {
            FormLosses::Llvm(losses) => (Some(losses.counts()), None),
            FormLosses::Gcov(losses) => (None, Some(losses.counts())),
        };
        llvm.into_iter().flatten().chain(gcov.into_iter().flatten())
    }
}

/// Writes the [`counts`](FormLosses::counts) in one line, or `nothing` if there are none.
impl fmt::Display for FormLosses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_counts(f, self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{encoding, read};
    use profkit_abi::sample::section;

    const FORMS: [SampleForm; 8] = [
        SampleForm::Text,
        SampleForm::ExtBinary,
        SampleForm::Binary,
        SampleForm::CompactBinary,
        SampleForm::Gcov(GcovVersion::Gcc46),
        SampleForm::Gcov(GcovVersion::Gcc47),
        SampleForm::Gcov(GcovVersion::V1),
        SampleForm::Gcov(GcovVersion::V3),
    ];

    fn profile() -> SampleProfile {
        let mut profile = SampleProfile::new();
        let text = b"main:100:5\n 1: 100\n !Attributes: 1\n";
        read(text, &mut profile, 1).strict().unwrap();
        // LLVM's extensible binary encoding has attributes only in profiles of such kinds.
        profile.kind |= ProfileKind::PRE_INLINED;
        profile
    }

    #[test]
    fn names_of_forms() {
        let named = |text: &str| text.parse::<SampleForm>().ok();
        assert_eq!(named("text"), Some(SampleForm::Text));
        assert_eq!(named("binary"), Some(SampleForm::Binary));
        assert_eq!(named("compact-binary"), Some(SampleForm::CompactBinary));
        assert_eq!(named("ext-binary"), Some(SampleForm::ExtBinary));
        assert_eq!(named("extbinary"), Some(SampleForm::ExtBinary));
        assert_eq!(named("gcov"), Some(SampleForm::Gcov(GcovVersion::V2)));
        assert_eq!(named("gcov:11"), Some(SampleForm::Gcov(GcovVersion::V1)));
        assert_eq!(named("gcov:16"), Some(SampleForm::Gcov(GcovVersion::V3)));
        for wrong in ["", "gcov:", "gcov:4", "gcov:x", "Text", "indexed"] {
            assert_eq!(named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_form_is_recognised_and_says_what_it_loses() {
        let profile = profile();
        for form in FORMS {
            let mut file = Vec::new();
            let options = FormOptions::for_profile(&profile);
            let losses = form.write(&profile, &options, &mut file).unwrap();
            assert_eq!(encoding(&file), Some(form.encoding()), "{}", form.name());
            let loses = !form.holds_contexts();
            assert_eq!(losses.is_empty(), !loses, "{}", form.name());
            let attributes = losses.counts().any(|it| it == (1, "attributes"));
            assert_eq!(attributes, loses, "{}: {losses}", form.name());
        }
    }

    #[test]
    fn releases_before_14_get_no_table_of_contexts_that_is_empty() {
        let with_table = |text: &[u8], release| {
            let mut profile = SampleProfile::new();
            read(text, &mut profile, 1).strict().unwrap();
            let options = FormOptions::new().for_llvm(Some(Release::new(release)));
            let mut file = Vec::new();
            let form = SampleForm::ExtBinary;
            form.write(&profile, &options, &mut file).unwrap();
            let opened = ext_binary::ExtBinaryProfile::parse(&file).unwrap();
            let kinds = opened.sections().iter().map(|section| section.kind);
            kinds.into_iter().any(|kind| kind == section::CONTEXTS)
        };
        let (plain, contexts) = (b"main:10:1\n 1: 10\n", b"[main:1 @ f]:10:1\n 1: 10\n");
        assert!(!with_table(plain, 13) && with_table(plain, 14));
        assert!(with_table(contexts, 13));
    }

    #[test]
    fn contexts_are_nested_only_where_they_must_be() {
        for form in FORMS {
            let mut profile = SampleProfile::new();
            let text = b"[main:1 @ f]:10:1\n 1: 10\n";
            read(text, &mut profile, 1).strict().unwrap();
            let nested = form.nest_contexts(&mut profile);
            assert_eq!(nested, !form.holds_contexts(), "{}", form.name());
            let has_contexts = profile.kind.contains(ProfileKind::CONTEXT_SENSITIVE);
            assert_eq!(has_contexts, form.holds_contexts(), "{}", form.name());
        }
    }

    #[test]
    fn old_releases_get_the_encoding_that_they_read() {
        assert_eq!(SampleForm::for_llvm(None), SampleForm::ExtBinary);
        assert_eq!(
            SampleForm::for_llvm(Some(Release::new(10))),
            SampleForm::ExtBinary
        );
        assert_eq!(
            SampleForm::for_llvm(Some(Release::new(9))),
            SampleForm::Binary
        );
    }
}
