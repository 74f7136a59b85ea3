//! Profiles for releases that name local functions differently.
use profkit_data::instr::{InstrKind, InstrProfile, Renamed};
use profkit_data::releases::{IrScheme, Release};
use profkit_object::names::with_other_separator;

/// What was changed in a profile, and what could not be changed, so that a compiler of an older release finds its
/// functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fitted {
    /// The local functions that have the names of the release.
    pub renamed: Renamed,
    /// Whether the release hashes functions differently, so that its compiler finds none of them.
    pub has_other_hashes: bool,
}

/// Gives the local functions of an IR profile the names that a release looks up. LLVM 18 and later have `a.c;f`, releases
/// before `a.c:f`. Later releases look up both, so only profiles for older ones change. `oldest` is the oldest scheme of
/// names and hashes that the inputs can have; see [`Report::oldest_ir_scheme`](profkit_merge::Report::oldest_ir_scheme).
pub fn fit_to_release(
    profile: &mut InstrProfile,
    release: Release,
    oldest: Option<IrScheme>,
) -> Fitted {
    let Some(scheme) = older_scheme(release).filter(|_| profile.kind.contains(InstrKind::IR))
    else {
        return Fitted::default();
    };
    let renamed = profile.rename(|_, name| {
        let name = name?;
        let older = with_other_separator(name)?;
        // Only `;` is changed; a colon is that of the older releases already.
        let at = name.iter().zip(&older).position(|(one, two)| one != two)?;
        (name.get(at) == Some(&b';')).then_some(older)
    });
    // Names with `;` are those of compilers that compute hashes as LLVM 12 and later do.
    let is_newer = renamed.records > 0 || oldest.is_some_and(|oldest| oldest > IrScheme::V1);
    Fitted {
        renamed,
        has_other_hashes: scheme == IrScheme::V1 && is_newer,
    }
}

/// Whether [`fit_to_release`] changes no profile for this release, because it names functions as the newest ones do.
pub fn fits_release(release: Release) -> bool {
    older_scheme(release).is_none()
}

fn older_scheme(release: Release) -> Option<IrScheme> {
    let scheme = release.facts()?.ir_scheme();
    (scheme != IrScheme::V3).then_some(scheme)
}
