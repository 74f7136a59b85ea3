//! The inputs that may be folded: what is new among them, what they are of, and the parts that are made of them.
use super::ledger::{SUFFIX, key_of};
use super::opened::Known;
use super::{Bucket, FoldError, FoldOptions, FoldOutcome, LeftOut, PartKind, Why};
use crate::files::system_text;
use crate::part::{Merger, PartError, StoredInputs, examine, id_of};
use crate::{MergeError, Report};
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::ids::program_name;
use profkit_data::instr::{InstrKind, InstrReader, InstrSource};
use profkit_data::sound_family;
use profkit_files::{Inputs, Subset};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::time::SystemTime;

/// The number of bytes at the beginning of an input that mostly show what it is.
const FRONT: usize = 64 << 10;
/// The key of all inputs if they are not kept apart by program.
const ALL: &str = "all";

/// An input that may be folded.
pub(super) struct Candidate {
    pub(super) index: usize,
    pub(super) name: String,
    /// Its id and the digest of its content, or those of the inputs of a part. The digest is 0 if it is not known.
    pub(super) ids: Vec<(u64, u64)>,
    pub(super) bucket: Bucket,
    /// What it is of, and its key. `None` as long as it was not read.
    pub(super) what: Option<(PartKind, String)>,
    is_part: bool,
    refused: Option<Why>,
}

pub(super) struct Candidates<'a> {
    inputs: &'a dyn Inputs,
    by_build_id: bool,
    list: Vec<Candidate>,
}

impl<'a> Candidates<'a> {
    pub(super) fn of(
        inputs: &'a dyn Inputs,
        times: &[Option<SystemTime>],
        options: &FoldOptions,
    ) -> Self {
        let mut candidates = Candidates {
            inputs,
            by_build_id: options.by_build_id,
            list: Vec::with_capacity(inputs.len()),
        };
        for index in 0..inputs.len() {
            let time = times.get(index).copied().flatten().unwrap_or(options.now);
            let name = inputs.name(index).into_owned();
            let named_part = name.ends_with(SUFFIX);
            let id = inputs.id(index).map(|id| id_of(&id));
            let mut candidate = Candidate {
                index,
                name,
                ids: id.into_iter().map(|id| (id, 0)).collect(),
                bucket: Bucket::of(time, options.every),
                what: None,
                is_part: false,
                refused: None,
            };
            // The ids of a part are in it; whether another input is known shows without reading it.
            if named_part || id.is_none() {
                candidates.read(&mut candidate);
            }
            candidates.list.push(candidate);
        }
        candidates
    }

    /// The ids of all that may be folded.
    pub(super) fn ids(&self) -> FxHashSet<u64> {
        let ids = self.list.iter().flat_map(|one| &one.ids);
        ids.map(|&(id, _)| id).collect()
    }

    /// Reads the inputs that are not known. Returns whether there are parts among them, whose ids nobody has looked for.
    pub(super) fn recognise(&mut self, known: &FxHashMap<u64, Known>) -> bool {
        let mut list = std::mem::take(&mut self.list);
        let mut found = false;
        for candidate in &mut list {
            let is_read = candidate.what.is_some() || candidate.refused.is_some();
            if !is_read && candidate.ids.iter().any(|(id, _)| !known.contains_key(id)) {
                self.read(candidate);
                found |= candidate.is_part;
            }
        }
        self.list = list;
        found
    }

    fn read(&self, candidate: &mut Candidate) {
        match self.recognised(candidate) {
            Ok(()) => {}
            Err(why) => candidate.refused = Some(why),
        }
        if !candidate.is_part && candidate.ids.is_empty() && candidate.refused.is_none() {
            candidate.refused = Some(Why::NoId);
        }
    }

    fn recognised(&self, candidate: &mut Candidate) -> Result<(), Why> {
        let unreadable = |error| Why::Unreadable(system_text(&error));
        let front = self.inputs.first_bytes(candidate.index, FRONT);
        let front = front.map_err(unreadable)?;
        let kind = detect(&front);
        // The build ids of an indexed profile are at its end, and a compressed file says nothing.
        let found = match kind {
            FileKind::InstrRaw => self.what(kind, &front),
            FileKind::InstrText | FileKind::InstrIndexed if !self.by_build_id => {
                self.what(kind, &front)
            }
            _ => None,
        };
        if found.is_some() {
            candidate.what = found;
            return Ok(());
        }
        let mut buffer = Vec::new();
        let data = self.inputs.open(candidate.index, &mut buffer);
        let data = data.map_err(unreadable)?;
        let bytes = data.as_ref();
        let kind = detect(bytes);
        if let FileKind::Part(_) = kind {
            let damaged = |error: profkit_data::Error| Why::NoProfile(error.to_string());
            let inputs = StoredInputs::of_part(bytes).map_err(damaged)?;
            let facts = examine(bytes).map_err(damaged)?;
            candidate.is_part = true;
            candidate.ids = Vec::new();
            let Some(inputs) = inputs else {
                return Err(Why::OtherOptions);
            };
            candidate.ids = inputs.contents().collect();
            let kind = facts.kind.map_or(PartKind::Instr, kind_of);
            let kind = match facts.family {
                Family::Instr => kind,
                family => PartKind::of_family(family),
            };
            candidate.what = Some((kind, self.key(&program_name(&facts.build_ids))));
            return Ok(());
        }
        candidate.what = self.what(kind, bytes);
        match candidate.what {
            Some(_) => Ok(()),
            None => Err(Why::NoProfile(
                match InstrReader::salvage(kind, bytes, None) {
                    Err(error) if kind.family().is_some() => error.to_string(),
                    _ => "it is no profile, or nothing of it can be read".to_owned(),
                },
            )),
        }
    }

    fn what(&self, kind: FileKind, bytes: &[u8]) -> Option<(PartKind, String)> {
        // Of a raw profile that is cut off the header suffices, of others a part must be sound.
        let family = match kind {
            FileKind::InstrRaw => kind.family()?,
            _ => sound_family(bytes)?,
        };
        match family {
            Family::Instr => {
                let reader = InstrReader::salvage(kind, bytes, None).ok()?;
                let ids = match self.by_build_id {
                    true => reader.binary_ids().ok()?,
                    false => Vec::new(),
                };
                Some((kind_of(reader.kind()), self.key(&program_name(&ids))))
            }
            family => Some((PartKind::of_family(family), self.key(&program_name(&[])))),
        }
    }

    fn key(&self, program: &str) -> String {
        match self.by_build_id {
            true => key_of(program),
            false => ALL.to_owned(),
        }
    }

    /// The inputs that are to be folded. The others are reported, and the new ones become known.
    pub(super) fn new_ones(
        &self,
        known: &mut FxHashMap<u64, Known>,
        outcome: &mut FoldOutcome,
    ) -> Vec<&Candidate> {
        let mut new = Vec::new();
        let mut order: Vec<&Candidate> = self.list.iter().collect();
        // The largest come first, because they may hold what smaller ones hold too.
        order.sort_by_key(|one| Reverse(one.ids.len()));
        for candidate in order {
            let mut leave_out = |why: Why| {
                outcome.left_out.push(LeftOut {
                    input: candidate.name.clone(),
                    why,
                });
            };
            if let Some(why) = &candidate.refused {
                leave_out(why.clone());
                continue;
            }
            let of_store = |(id, _): &&(u64, u64)| known.contains_key(id);
            let there = candidate.ids.iter().filter(of_store).count();
            let differs = |(id, content): &(u64, u64)| {
                known.get(id).is_some_and(|known| {
                    known.content != *content && known.content != 0 && *content != 0
                })
            };
            if candidate.ids.iter().any(differs) {
                leave_out(Why::TwoContents);
            } else if there == 0 && !candidate.ids.is_empty() {
                let bucket = candidate.bucket;
                let ids = candidate.ids.iter();
                known.extend(ids.map(|&(id, content)| (id, Known { content, bucket })));
                new.push(candidate);
            } else if there == candidate.ids.len() {
                outcome.known += 1;
                let bucket = candidate.ids.first().and_then(|(id, _)| known.get(id));
                let later = |known: &Known| {
                    let day = super::Every::Day;
                    candidate.bucket.within(day) > known.bucket.within(day)
                };
                if !candidate.is_part && bucket.is_some_and(later) {
                    outcome.rewritten.push(candidate.name.clone());
                }
            } else {
                leave_out(Why::Overlap(there as u64));
            }
        }
        new.sort_by_key(|one| one.index);
        new
    }
}

fn kind_of(kind: InstrKind) -> PartKind {
    if kind.is_unknown() {
        PartKind::Instr
    } else if kind.contains(InstrKind::IR) {
        PartKind::Ir
    } else {
        PartKind::FrontEnd
    }
}

/// A part of new inputs.
pub(super) struct Made {
    pub(super) bytes: Vec<u8>,
    /// The number of its inputs, those of parts among them.
    pub(super) inputs: u64,
    /// The inputs that are in it.
    pub(super) indexes: Vec<usize>,
    pub(super) report: Report,
}

/// Makes a part of inputs. `None` if none of them can be used. What cannot be read or added is left out.
pub(super) fn make(
    inputs: &dyn Inputs,
    mut indexes: Vec<usize>,
    options: &FoldOptions,
    left_out: &mut Vec<LeftOut>,
) -> Result<Option<Made>, FoldError> {
    loop {
        let mut merger = Merger::new(options.merge_options())?;
        let mut refused = Vec::new();
        add(&mut merger, inputs, &indexes, &mut refused)?;
        let mut gone: FxHashSet<usize> = refused.iter().map(|(index, _)| *index).collect();
        let mut leave_out = |index: usize, why: Why| {
            let input = inputs.name(index).into_owned();
            left_out.push(LeftOut { input, why });
        };
        for (index, error) in refused {
            leave_out(index, Why::Refused(error.to_string()));
        }
        indexes.retain(|index| !gone.contains(index));
        gone.clear();
        // What cannot be read now may be read by the next fold, so its id must not be in the part.
        let unread: FxHashSet<u64> = merger.unread().collect();
        for &index in indexes.iter().filter(|_| !unread.is_empty()) {
            if inputs
                .id(index)
                .is_some_and(|id| unread.contains(&id_of(&id)))
            {
                let error = inputs.open(index, &mut Vec::new()).err();
                let why = error.map_or("it could not be read".to_owned(), |error| {
                    system_text(&error)
                });
                leave_out(index, Why::Unreadable(why));
                gone.insert(index);
            }
        }
        indexes.retain(|index| !gone.contains(index));
        if indexes.is_empty() {
            return Ok(None);
        }
        if !gone.is_empty() {
            continue;
        }
        let bytes = merger.encode()?;
        let count = merger.inputs() as u64;
        let report = match merger.finish() {
            Ok(mut merged) => std::mem::take(merged.report_mut()),
            Err(MergeError::NothingLeft(report) | MergeError::Groups(_, report)) => *report,
            Err(error) => return Err(error.into()),
        };
        return Ok(Some(Made {
            bytes,
            inputs: count,
            indexes,
            report,
        }));
    }
}

/// Adds inputs, but for those that are refused.
fn add(
    merger: &mut Merger,
    inputs: &dyn Inputs,
    indexes: &[usize],
    refused: &mut Vec<(usize, PartError)>,
) -> Result<(), MergeError> {
    if indexes.is_empty() {
        return Ok(());
    }
    let result = merger.add(&Subset::new(inputs, indexes.to_vec()));
    match (result, indexes) {
        (Err(MergeError::Part(error)), &[index]) => {
            refused.push((index, *error));
            Ok(())
        }
        // Nothing was added: one half has what is refused.
        (Err(MergeError::Part(_)), _) => {
            let (left, right) = indexes.split_at(indexes.len() / 2);
            add(merger, inputs, left, refused)?;
            add(merger, inputs, right, refused)
        }
        (result, _) => result,
    }
}
