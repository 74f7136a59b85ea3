//! MIP files under examination.
use super::examine::{Diagnosis, quoted};
use profkit_data::mip::{
    Identity, ImageFacts, MipKind, MipMap, MipProfile, RawParts, has_magic, preamble,
};

/// Looks at every byte of a MIP file that means something.
pub fn examine(name: &str, data: &[u8]) -> Diagnosis {
    let size = Some(data.len() as u64);
    let kind = if has_magic(data) {
        match preamble(data) {
            Ok(preamble) => preamble.kind,
            Err(error) => {
                let mut diagnosis = Diagnosis::new(name, size, "MIP file".to_owned());
                diagnosis.add(error);
                return diagnosis;
            }
        }
    } else {
        MipKind::Map
    };
    let version = data.get(4).copied().unwrap_or(0);
    let what = match kind {
        MipKind::Map if !has_magic(data) => "MIP map version 9".to_owned(),
        _ => format!("MIP {} version {version}", kind.name()),
    };
    let mut diagnosis = Diagnosis::new(name, size, what);
    match kind {
        MipKind::Raw | MipKind::ReturnAddresses => raw(&mut diagnosis, data),
        MipKind::Map => map(&mut diagnosis, data),
        MipKind::Profile => profile(&mut diagnosis, data),
    }
    diagnosis
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
        diagnosis.advise(
            "LLVM_MIP_PROFILE_FILENAME=again.mipraw PROGRAM".to_owned(),
            "run the program again: nothing of this file can be kept",
        );
        return;
    }
    let s = if runs == 1 { "" } else { "s" };
    diagnosis.what = format!("{}, {runs} run{s}", diagnosis.what);
    let name = quoted(&diagnosis.name);
    diagnosis.advise(
        format!("profkit mip merge -p program.mip --binary PROGRAM {name}"),
        "into the profile of its build",
    );
}

fn map(diagnosis: &mut Diagnosis, data: &[u8]) {
    let created =
        MipMap::parse(data, None).and_then(|map| MipProfile::create(&map, &ImageFacts::new()));
    match created {
        Err(error) => {
            diagnosis.add(error);
            diagnosis.advise(
                "objcopy --dump-section __llvm_mipmap=again.mipmap PROGRAM".to_owned(),
                "take the map out of the unstripped program again",
            );
        }
        Ok(created) => {
            diagnosis.functions = created.profile.functions.len() as u64;
            diagnosis.what = format!("{}, {} functions", diagnosis.what, diagnosis.functions);
            created
                .dropped
                .into_iter()
                .for_each(|error| diagnosis.add(error));
            let name = quoted(&diagnosis.name);
            diagnosis.advise(
                format!("profkit mip create -p program.mip {name}"),
                "an empty profile, to merge raw files into",
            );
        }
    }
}

fn profile(diagnosis: &mut Diagnosis, data: &[u8]) {
    match MipProfile::parse(data) {
        Err(error) => {
            diagnosis.add(error);
            diagnosis.advise(
                "profkit mip merge -p again.mip --binary PROGRAM *.mipraw".to_owned(),
                "merge the raw files again: nothing of this file can be kept",
            );
        }
        Ok(profile) => {
            let (functions, covered) = profile.function_counts();
            diagnosis.functions = functions;
            diagnosis.what = format!(
                "{}, {} of {} functions covered",
                diagnosis.what, covered, diagnosis.functions
            );
            note_identity(diagnosis, &profile.identity);
            let name = quoted(&diagnosis.name);
            diagnosis.advise(
                format!("profkit mip show -p {name}"),
                "what runs did, function by function",
            );
        }
    }
}
