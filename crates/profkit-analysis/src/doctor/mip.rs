//! Examines MIP files.
use super::examine::Diagnosis;
use super::what::{Advice, MipContents, What};
use profkit_data::mip::{
    Identity, ImageFacts, MipKind, MipMap, MipProfile, RawParts, has_magic, preamble,
};

/// Examines a whole MIP file. Every byte that has a meaning is read, so that damage anywhere is found.
pub fn examine(data: &[u8]) -> Diagnosis {
    let size = Some(data.len() as u64);
    let version = data.get(4).copied().unwrap_or(0);
    let what = |kind, version| What::Mip {
        kind,
        version,
        contents: MipContents::Nothing,
    };
    // A MIP map of version 9 does not begin with a magic number.
    if !has_magic(data) {
        let mut diagnosis = Diagnosis::new(size, what(Some(MipKind::Map), MAP_WITHOUT_MAGIC));
        map(&mut diagnosis, data);
        return diagnosis;
    }
    match preamble(data) {
        Err(error) => {
            let mut diagnosis = Diagnosis::new(size, what(None, version));
            diagnosis.add(error);
            diagnosis
        }
        Ok(preamble) => {
            let mut diagnosis = Diagnosis::new(size, what(Some(preamble.kind), version));
            match preamble.kind {
                MipKind::Raw | MipKind::ReturnAddresses => raw(&mut diagnosis, data),
                MipKind::Map => map(&mut diagnosis, data),
                MipKind::Profile => profile(&mut diagnosis, data),
            }
            diagnosis
        }
    }
}

/// The version of MIP maps that do not begin with a magic number.
const MAP_WITHOUT_MAGIC: u8 = 9;

fn set_contents(diagnosis: &mut Diagnosis, found: MipContents) {
    if let What::Mip { contents, .. } = &mut diagnosis.what {
        *contents = found;
    }
}

fn note_identity(diagnosis: &mut Diagnosis, identity: &Identity) {
    match identity {
        Identity::BuildId(id) if !id.0.is_empty() && !diagnosis.binary_ids.contains(id) => {
            diagnosis.binary_ids.push(id.clone());
        }
        _ => {}
    }
}

fn raw(diagnosis: &mut Diagnosis, data: &[u8]) {
    let mut runs = 0u64;
    for part in RawParts::new(data) {
        match part {
            Ok(part) => {
                diagnosis.profiles += 1;
                runs += u64::from(part.runs);
                note_identity(diagnosis, &part.id.to_identity());
                if let Some(damage) = part.damage {
                    diagnosis.add(damage);
                }
            }
            Err(error) => diagnosis.add(error),
        }
    }
    if diagnosis.profiles == 0 {
        diagnosis.next.push(Advice::MipRunAgain);
        return;
    }
    set_contents(diagnosis, MipContents::Runs(runs));
    diagnosis.next.push(Advice::MipMerge);
}

fn map(diagnosis: &mut Diagnosis, data: &[u8]) {
    let created = MipMap::parse(data).and_then(|map| MipProfile::create(&map, &ImageFacts::new()));
    match created {
        Err(error) => {
            diagnosis.add(error);
            diagnosis.next.push(Advice::MipExtractMap);
        }
        Ok(created) => {
            diagnosis.functions = created.profile.functions.len() as u64;
            set_contents(diagnosis, MipContents::Functions(diagnosis.functions));
            created
                .dropped
                .into_iter()
                .for_each(|error| diagnosis.add(error));
            diagnosis.next.push(Advice::MipCreate);
        }
    }
}

/// Examines a MIP profile in YAML form.
pub fn yaml(data: &[u8]) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), What::MipYaml);
    match profkit_data::mip::yaml::parse(data) {
        Err(error) => diagnosis.add(error),
        Ok((profile, _)) => {
            diagnosis.functions = profile.function_counts().0;
            note_identity(&mut diagnosis, &profile.identity);
            diagnosis.next.push(Advice::MipConvert);
        }
    }
    diagnosis
}

fn profile(diagnosis: &mut Diagnosis, data: &[u8]) {
    match MipProfile::parse(data) {
        Err(error) => {
            diagnosis.add(error);
            diagnosis.next.push(Advice::MipMergeAgain);
        }
        Ok(profile) => {
            let (functions, covered) = profile.function_counts();
            diagnosis.functions = functions;
            set_contents(diagnosis, MipContents::Covered { functions, covered });
            note_identity(diagnosis, &profile.identity);
            diagnosis.next.push(Advice::MipShow);
        }
    }
}
