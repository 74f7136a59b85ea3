//! The profiles of one run: one profile of all binaries, or a profile of each binary in a file of its own.
use profkit_data::ids::BuildId;
use profkit_data::sample::{ProfileKind, SampleForm, SampleProfile, absorb};
use profkit_data::{Error, ErrorKind, Result};
use profkit_perf::collect::{BinaryCounts, BinaryKey};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The profiles of one run: one for all binaries, or one for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiles {
    separate: bool,
    list: Vec<(usize, SampleProfile)>,
    owners: FxHashMap<BinaryKey, String>,
}

impl Profiles {
    pub(crate) fn new(separate: bool) -> Self {
        Profiles {
            separate,
            ..Profiles::default()
        }
    }

    /// Removes the counts of earlier binaries. Returns the path of one of these; `None` if nothing is removed.
    pub(crate) fn leave_unclaimed(&self, counts: &mut Vec<&BinaryCounts>) -> Option<String> {
        let owner = counts.iter().find_map(|it| self.owners.get(&it.key));
        counts.retain(|it| !self.owners.contains_key(&it.key));
        owner.cloned()
    }

    pub(crate) fn claim(&mut self, counts: &[&BinaryCounts], path: &str) {
        let keys = counts.iter().map(|it| (it.key.clone(), path.to_owned()));
        self.owners.extend(keys);
    }

    pub(crate) fn add(&mut self, binary: usize, profile: SampleProfile) -> Result<()> {
        let merged = self.list.last_mut().filter(|_| !self.separate);
        let Some((_, merged)) = merged else {
            self.list.push((binary, profile));
            return Ok(());
        };
        let is_mixed = !merged.functions().is_empty()
            && merged.kind.contains(ProfileKind::PROBE_BASED)
                != profile.kind.contains(ProfileKind::PROBE_BASED);
        if is_mixed {
            return Err(Error::new(
                ErrorKind::CannotRepresent,
                "one profile cannot have samples by pseudo probe and samples by source line",
            )
            .found("binaries with probes and binaries without")
            .with_hint("-o FOLDER/ makes a profile of each binary; or add --lines"));
        }
        if merged.names.is_empty() && merged.symbol_count() == 0 {
            let kind = merged.kind;
            *merged = profile;
            merged.kind |= kind;
            return Ok(());
        }
        absorb(merged, profile, 1, |_, _, _| {})
            .map(drop)
            .ok_or_else(|| Error::new(ErrorKind::CannotRepresent, "the profile has too many names"))
    }

    pub(crate) fn into_list(self) -> impl Iterator<Item = (usize, SampleProfile)> {
        let separate = self.separate;
        let list = self.list.into_iter();
        list.filter(move |(_, profile)| !separate || !profile.functions().is_empty())
    }
}

/// A profile with the name of its file.
#[derive(Clone, Debug)]
pub struct NamedProfile {
    /// The name of the file for this profile, without a folder. No other profile of the run has this name.
    pub name: OsString,
    /// The profile.
    pub profile: SampleProfile,
    /// The binaries in the profile: their indices in [`Outcome::binaries`](crate::Outcome::binaries).
    pub binaries: Vec<usize>,
}

/// A file is named after its binary. Binaries of one name also get build ids, and if need be numbers. Letters of either
/// case are equal, as for some file systems.
pub(crate) fn file_names<'b>(
    binaries: impl Iterator<Item = (&'b Path, Option<&'b BuildId>)> + Clone,
    form: SampleForm,
) -> Vec<OsString> {
    let name_of =
        |path: &'b Path| -> &'b OsStr { path.file_name().unwrap_or(OsStr::new("binary")) };
    let key = |name: &OsStr| name.to_string_lossy().to_lowercase();
    let mut with_name: FxHashMap<String, usize> = FxHashMap::default();
    for (path, _) in binaries.clone() {
        *with_name.entry(key(name_of(path))).or_default() += 1;
    }
    let mut stems: Vec<OsString> = Vec::new();
    for (path, id) in binaries {
        let name = name_of(path);
        let is_alone = with_name.get(&key(name)).is_none_or(|&number| number == 1);
        let mut stem = name.to_owned();
        if let Some(id) = id.filter(|_| !is_alone) {
            stem.push(format!(".{id}"));
        }
        stems.push(stem);
    }
    let mut used: FxHashSet<String> = stems.iter().map(|stem| key(stem)).collect();
    let mut seen: FxHashSet<String> = FxHashSet::default();
    for stem in &mut stems {
        if !seen.insert(key(stem)) {
            let numbers = 2u64..;
            let numbered = numbers.map(|number| {
                let mut name = stem.clone();
                name.push(format!("-{number}"));
                name
            });
            *stem = numbered
                .into_iter()
                .find(|name| used.insert(key(name)))
                .unwrap_or_default();
        }
        stem.push(format!(".{}", form.extension()));
    }
    stems
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::sample::gcov::GcovVersion;

    fn names(binaries: &[(&str, &[u8])]) -> Vec<String> {
        let ids: Vec<Option<BuildId>> = binaries
            .iter()
            .map(|(_, id)| (!id.is_empty()).then(|| BuildId(id.to_vec())))
            .collect();
        let binaries = binaries.iter().zip(&ids);
        let binaries = binaries.map(|((path, _), id)| (Path::new(*path), id.as_ref()));
        let names = file_names(binaries, SampleForm::ExtBinary);
        names
            .into_iter()
            .map(|name| name.into_string().unwrap())
            .collect()
    }

    #[test]
    fn files_are_named_after_binaries() {
        assert_eq!(
            names(&[("a/app", &[1]), ("libx.so", &[2])]),
            ["app.prof", "libx.so.prof"]
        );
    }

    #[test]
    fn binaries_of_one_name_have_their_build_ids_in_the_names_of_files() {
        assert_eq!(
            names(&[("a/app", &[0xab]), ("b/app", &[0xcd]), ("c/App", &[])]),
            ["app.ab.prof", "app.cd.prof", "App.prof"]
        );
    }

    #[test]
    fn no_name_occurs_twice() {
        assert_eq!(
            names(&[("a/app", &[]), ("b/app", &[]), ("c/app", &[])]),
            ["app.prof", "app-2.prof", "app-3.prof"]
        );
        assert_eq!(
            names(&[
                ("a/app", &[1]),
                ("b/app", &[1]),
                ("app.01", &[2]),
                ("app-2", &[3])
            ]),
            [
                "app.01.prof",
                "app.01-2.prof",
                "app.01-3.prof",
                "app-2.prof"
            ]
        );
        assert_eq!(
            names(&[("a/app", &[]), ("app-2", &[]), ("b/app", &[])]),
            ["app.prof", "app-2.prof", "app-3.prof"]
        );
    }

    #[test]
    fn each_encoding_has_its_extension() {
        let of = |form| file_names([(Path::new("app"), None)].into_iter(), form);
        assert_eq!(of(SampleForm::Text), ["app.txt"]);
        assert_eq!(of(SampleForm::Binary), ["app.prof"]);
        assert_eq!(of(SampleForm::Gcov(GcovVersion::V2)), ["app.afdo"]);
    }
}
