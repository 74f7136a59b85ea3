//! MemProf sections: the one of a single input is carried along unread, those of several are added up.
use crate::memprof::{ContextRule, MemProfSum};
use crate::report::{Action, Event, EventLog, Reason};
use crate::{Inputs, Totals};
use profkit_data::instr::MemProfSection;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions, encode};
use profkit_data::memprof::{MemProfile, Schema};
use profkit_data::{Error, Result};

/// The sections that were met. Those of all inputs would be too much to hold, so that only the first is; the inputs of
/// the others are read again, in their order, when all inputs are known.
#[derive(Default)]
pub(crate) struct MemProfs {
    first: Option<(usize, MemProfSection)>,
    seen: Vec<SeenSection>,
}

/// An input that has a section.
#[derive(Clone, Copy)]
struct SeenSection {
    input: usize,
    /// Whether nothing else was wrong with the input.
    sound: bool,
}

/// What sections add up to.
struct Sum {
    profiles: MemProfSum,
    version: u32,
    full: bool,
}

impl MemProfs {
    /// Takes the section of an input; `sound` if nothing else was wrong with it.
    pub(crate) fn take(&mut self, input: usize, section: MemProfSection, sound: bool) {
        self.seen.push(SeenSection { input, sound });
        if self.first.as_ref().is_none_or(|(first, _)| input < *first) {
            self.first = Some((input, section));
        }
    }

    /// Takes those of another lane.
    pub(crate) fn absorb(&mut self, other: MemProfs) {
        self.seen.extend(other.seen);
        if let Some((input, section)) = other.first
            && self.first.as_ref().is_none_or(|(first, _)| input < *first)
        {
            self.first = Some((input, section));
        }
    }

    /// The section of the result. Reports what of sections could not be added.
    pub(crate) fn finish(
        mut self,
        inputs: &dyn Inputs,
        log: &mut EventLog,
        totals: &mut Totals,
    ) -> Option<MemProfSection> {
        let (_, kept) = self.first?;
        if self.seen.len() == 1 {
            return Some(kept);
        }
        self.seen.sort_by_key(|seen| seen.input);
        let mut sum = Sum {
            profiles: MemProfSum::new(ContextRule::Add),
            version: 0,
            full: false,
        };
        let mut scratch = Vec::new();
        for &SeenSection { input, sound } in &self.seen {
            let mut faults = Vec::new();
            if let Err(error) = sum.add(inputs, input, &mut scratch, &mut faults) {
                faults.push(error);
            }
            if !faults.is_empty() && sound {
                totals.files_kept = totals.files_kept.saturating_sub(1);
                totals.files_repaired += 1;
            }
            for error in faults {
                let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
                log.push(Event::from_error(input, action, reason, &error));
            }
        }
        if sum.profiles.added() == 0 {
            return Some(kept);
        }
        let options = IndexedMemProfOptions::for_version(sum.version, sum.full);
        match encode(&sum.profiles.finish(), &options) {
            Ok(section) => Some(section),
            Err(error) => {
                let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
                log.push(Event::from_error(0, action, reason, &error));
                None
            }
        }
    }
}

impl Sum {
    /// Reads the section of an input again and adds it. What of it cannot be read goes into `faults`.
    fn add(
        &mut self,
        inputs: &dyn Inputs,
        input: usize,
        scratch: &mut Vec<u8>,
        faults: &mut Vec<Error>,
    ) -> Result<()> {
        let data = inputs.open(input, scratch).map_err(|error| {
            Error::new(
                profkit_data::ErrorKind::Truncated,
                format!("the input cannot be read a second time: {error}"),
            )
        })?;
        let data = data.as_ref();
        let salvage = IndexedReadOptions::new()
            .salvage(true)
            .unknown_records(true);
        let profile =
            IndexedProfile::parse(data).or_else(|_| IndexedProfile::parse_with(data, &salvage))?;
        let Some(section) = profile.memprof() else {
            return Ok(());
        };
        let end = usize::try_from(section.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(section.bytes.len());
        let file = data.get(..end).unwrap_or(data);
        let section = IndexedMemProf::parse(file, section.offset)?;
        let read: MemProfile = section.to_profile_salvaging(|error| faults.push(error));
        self.version = self.version.max(section.version());
        self.full |= section
            .schema()
            .fields()
            .iter()
            .any(|field| !Schema::hot_cold().fields().contains(field));
        self.profiles.add(&read);
        Ok(())
    }
}
