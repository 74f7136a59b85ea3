//! The MemProf sections of indexed inputs. If only one input has a section, the section is copied without being parsed.
//! If several inputs have one, the sections are parsed
//! and added up, and the writer of the result encodes the sum.
use crate::driver::{Cancelled, Driver, OpenedInput, ReportPart};
use crate::memprof::{ContextRule, MemProfSum};
use crate::report::{Action, Event, Reason};
use profkit_data::Error;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions};
use profkit_data::instr::{HeapSection, MemProfSection};
use profkit_data::memprof::Schema;
use profkit_data::memprof::indexed::{IndexedMemProf, IndexedMemProfOptions};

/// Only the first section is kept in memory. The inputs stay open; if there are several sections, they are read in
/// input order at the end.
#[derive(Default)]
pub(crate) struct MemProfs {
    first: Option<(usize, MemProfSection)>,
    /// The inputs with a section, each with whether the rest of the input is sound.
    inputs: Vec<(usize, bool)>,
}

struct Sum {
    profiles: MemProfSum,
    version: u32,
    full: bool,
}

impl MemProfs {
    pub(crate) fn take(&mut self, opened: &OpenedInput<'_>, section: MemProfSection, sound: bool) {
        let input = opened.index;
        opened.keep_open();
        self.inputs.push((input, sound));
        if self.first.as_ref().is_none_or(|(first, _)| input < *first) {
            self.first = Some((input, section));
        }
    }

    pub(crate) fn absorb(&mut self, other: MemProfs) {
        self.inputs.extend(other.inputs);
        if let Some((input, section)) = other.first
            && self.first.as_ref().is_none_or(|(first, _)| input < *first)
        {
            self.first = Some((input, section));
        }
    }

    pub(crate) fn finish(
        mut self,
        driver: &Driver<'_>,
        part: &mut ReportPart,
    ) -> Result<Option<HeapSection>, Cancelled> {
        let Some((_, kept)) = self.first else {
            return Ok(None);
        };
        if self.inputs.len() == 1 {
            return Ok(Some(HeapSection::Stored(kept)));
        }
        self.inputs.sort_unstable();
        let mut sum = Sum {
            profiles: MemProfSum::new(ContextRule::Add),
            version: 0,
            full: false,
        };
        let mut buffer = Vec::new();
        for (input, sound) in self.inputs {
            driver.check_cancelled()?;
            let mut faults = Vec::new();
            match driver.open(input, &mut buffer) {
                Ok(opened) => {
                    if let Err(error) = sum.add(opened.bytes(), &mut faults) {
                        faults.push(error);
                    }
                    driver.close(opened, &mut buffer);
                }
                Err(error) => faults.push(Error::new(
                    profkit_data::ErrorKind::Truncated,
                    format!("the input cannot be read a second time: {error}"),
                )),
            }
            if !faults.is_empty() && sound {
                part.repaired_after_all();
            }
            for error in faults {
                let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
                part.log
                    .push(Event::from_error(input, action, reason, &error));
            }
        }
        if sum.profiles.added() == 0 {
            return Ok(Some(HeapSection::Stored(kept)));
        }
        let options = IndexedMemProfOptions::for_version(sum.version, sum.full);
        let sum = Box::new(sum.profiles.finish());
        Ok(Some(HeapSection::Profile(sum, options)))
    }
}

impl Sum {
    fn add(&mut self, data: &[u8], faults: &mut Vec<Error>) -> profkit_data::Result<()> {
        let salvage = IndexedReadOptions::new().salvage(true);
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
        let read = section.to_profile_salvaging(|error| faults.push(error));
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
