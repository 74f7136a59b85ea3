//! The MemProf sections of indexed inputs. The sections of several inputs are added up, and the writer of the result
//! encodes the sum. The section of a single input is copied, unless it has a call stack several times: then these
//! contexts are added up. Under LLVM's rules it is copied in any case. If the order of inputs does not matter, each section
//! is added when its input is read.
use super::Context;
use crate::driver::{Cancelled, OpenedInput, ReportPart};
use crate::memprof::{ContextRule, MemProfSum, SectionSum};
use crate::report::{Action, Event, Reason};
use profkit_data::Error;
use profkit_data::instr::indexed::{IndexedProfile, IndexedReadOptions, check_memprof};
use profkit_data::instr::{HeapSection, MemProfSection};
use profkit_data::memprof::Schema;
use profkit_data::memprof::indexed::{
    IndexedMemProf, IndexedMemProfOptions, options_of, read_section,
};

/// Only the first section is kept in memory. The inputs stay open; if there are several sections, they are read in
/// input order at the end.
#[derive(Default)]
pub(crate) struct MemProfs {
    first: Option<(usize, MemProfSection)>,
    /// The inputs with a section, each with whether the rest of the input is sound.
    inputs: Vec<(usize, bool)>,
    /// If the order of inputs does not matter: the sum of the sections.
    pub(crate) sum: Option<SectionSum>,
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

    /// Adds the section of an input whatever the order of inputs. Returns the faults of the section.
    pub(crate) fn add_unordered(&mut self, opened: &OpenedInput<'_>) -> Vec<Error> {
        let mut faults = Vec::new();
        let mut sum = SectionSum::unordered();
        match sum.add(opened.bytes(), &mut faults) {
            Ok(()) => self.absorb_sum(sum),
            Err(error) => faults.push(error),
        }
        faults
    }

    fn absorb_sum(&mut self, other: SectionSum) {
        match &mut self.sum {
            Some(sum) => sum.absorb(&other),
            None => self.sum = Some(other),
        }
    }

    pub(crate) fn absorb(&mut self, other: MemProfs) {
        if let Some(sum) = other.sum {
            self.absorb_sum(sum);
        }
        self.inputs.extend(other.inputs);
        if let Some((input, section)) = other.first
            && self.first.as_ref().is_none_or(|(first, _)| input < *first)
        {
            self.first = Some((input, section));
        }
    }

    pub(crate) fn finish(
        mut self,
        context: &Context<'_, '_>,
        part: &mut ReportPart,
    ) -> Result<Option<HeapSection>, Cancelled> {
        let copies = context.options.heap_copies;
        if let Some(sum) = self.sum {
            let options = sum.options();
            let sum = Box::new(sum.finish(copies));
            return Ok(Some(HeapSection::Profile(sum, options)));
        }
        let Some((first, mut kept)) = self.first else {
            return Ok(None);
        };
        let driver = context.driver;
        if self.inputs.len() == 1 {
            if context.strategy.is_llvm {
                let kept = kept.without_portable();
                if let Err(error) = check_memprof(&kept) {
                    let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
                    part.log
                        .push(Event::from_error(first, action, reason, &error));
                    return Ok(None);
                }
                return Ok(Some(HeapSection::Stored(kept)));
            }
            if let Err(error) = kept.check_portable() {
                if self.inputs.iter().any(|(_, sound)| *sound) {
                    part.repaired_after_all();
                }
                let (action, reason) = (Action::Repaired, Reason::MemProfDropped);
                part.log
                    .push(Event::from_error(first, action, reason, &error));
                kept = kept.without_portable();
            }
            let combined = if copies { None } else { combined(&kept) };
            return Ok(Some(combined.unwrap_or(HeapSection::Stored(kept))));
        }
        self.inputs.sort_unstable();
        let mut sum = SectionSum::new(MemProfSum::new(if copies {
            ContextRule::AddCopies
        } else {
            ContextRule::Add
        }));
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
        let options = sum.options();
        let sum = Box::new(sum.profiles.finish());
        Ok(Some(HeapSection::Profile(sum, options)))
    }
}

/// The heap profile of a section that has a call stack several times, with each call stack once. `None` if there is no
/// such call stack, or if the section is damaged: a damaged section is copied as it is.
fn combined(section: &MemProfSection) -> Option<HeapSection> {
    let (profile, _) = read_section(section).ok()?;
    let mut sum = MemProfSum::new(ContextRule::Add);
    sum.add(&profile);
    if !sum.has_combined() {
        return None;
    }
    let options = options_of(section).ok()?;
    Some(HeapSection::Profile(Box::new(sum.finish()), options))
}

impl SectionSum {
    fn options(&self) -> IndexedMemProfOptions {
        IndexedMemProfOptions::for_version(self.version, self.full).portable(self.portable)
    }

    fn add(&mut self, data: &[u8], faults: &mut Vec<Error>) -> profkit_data::Result<()> {
        let salvage = IndexedReadOptions::new().salvage(true);
        let profile =
            IndexedProfile::parse(data).or_else(|_| IndexedProfile::parse_with(data, &salvage))?;
        let Some(section) = profile.memprof() else {
            return Ok(());
        };
        self.portable |= section.has_portable();
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
