//! Examines heap profiles that are files of their own, and not sections of indexed profiles: raw dumps, and YAML.
use super::examine::Diagnosis;
use super::what::{Advice, What};
use profkit_data::memprof::raw::{RawDump, RawMemProf};
use profkit_data::memprof::{Record, yaml};

/// Examines a raw heap profile, including every segment, block and stack of its dumps.
pub fn raw(data: &[u8]) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), What::HeapRaw(None));
    let profile = match RawMemProf::parse(data) {
        Ok(profile) => profile,
        Err(error) => {
            diagnosis.add(error);
            diagnosis.next.push(Advice::HeapRunAgain);
            return diagnosis;
        }
    };
    let mut contexts = 0;
    for dump in profile.dumps() {
        diagnosis.what = What::HeapRaw(Some(dump.version().number().into()));
        diagnosis.profiles += 1;
        match self::dump(&mut diagnosis, dump) {
            Ok(found) => contexts += found,
            Err(error) => diagnosis.add(error),
        }
    }
    if let Some(error) = profile.damage() {
        diagnosis.add(error.clone());
    }
    diagnosis.contexts = Some(contexts);
    diagnosis.next.push(match contexts {
        0 => Advice::HeapRunAgain,
        // For a damaged profile the advice is a merge, because a merge keeps the sound dumps. `profkit show` would end
        // with an error.
        _ if diagnosis.damage.count > 0 => Advice::KeepSoundHeap,
        _ => Advice::ShowHeap,
    });
    diagnosis
}

fn dump(diagnosis: &mut Diagnosis, dump: &RawDump<'_>) -> profkit_data::Result<u64> {
    for segment in dump.segments()? {
        let id = segment.build_id;
        if !id.0.is_empty() && !diagnosis.binary_ids.contains(&id) {
            diagnosis.binary_ids.push(id);
        }
    }
    for stack in dump.stacks()? {
        stack?;
    }
    let mut contexts = 0;
    for block in dump.blocks()? {
        block?;
        contexts += 1;
    }
    Ok(contexts)
}

/// Examines a heap profile in YAML form.
pub fn yaml(data: &[u8]) -> Diagnosis {
    let mut diagnosis = Diagnosis::new(Some(data.len() as u64), What::HeapYaml);
    match yaml::parse(data) {
        Ok(profile) => {
            diagnosis.functions = profile.records().len() as u64;
            let sites = |record: &Record| record.alloc_sites.len() as u64;
            diagnosis.contexts = Some(profile.records().iter().map(sites).sum());
            diagnosis.next.push(Advice::Show);
        }
        Err(error) => diagnosis.add(error),
    }
    diagnosis
}
