//! Heap profiles cut down.
use super::choice::{self, Candidate, largest_fitting, ranked};
use super::{Filter, Filtered, Unit};
use profkit_data::ids::NameRef;
use profkit_data::instr::InstrProfile;
use profkit_data::memprof::indexed::options_of;
use profkit_data::memprof::{Field, MemProfile, StackId};
use profkit_data::{HeapSection, Result as DataResult};
use rustc_hash::{FxHashMap, FxHashSet};

/// The call stacks of a heap profile, each with the bytes that were allocated with it.
struct Stacks {
    stacks: Vec<(StackId, u128)>,
    names: Vec<Vec<u8>>,
}

impl Stacks {
    fn of(profile: &MemProfile) -> Self {
        let mut numbers: FxHashMap<StackId, usize> = FxHashMap::default();
        let mut stacks: Vec<(StackId, u128)> = Vec::new();
        for context in profile.contexts() {
            let number = *numbers.entry(context.stack).or_insert_with(|| {
                stacks.push((context.stack, 0));
                stacks.len() - 1
            });
            if let Some((_, bytes)) = stacks.get_mut(number) {
                *bytes += u128::from(context.block.get(Field::TotalSize));
            }
        }
        let name = |&(stack, _): &(StackId, u128)| {
            let frames = profile.stack(stack).map(|frame| {
                let column = u64::from(frame.column);
                let place = u64::from(frame.line_offset) << 32 | column;
                [frame.function.to_be_bytes(), place.to_be_bytes()].concat()
            });
            frames.collect::<Vec<_>>().concat()
        };
        let names = stacks.iter().map(name).collect();
        Stacks { stacks, names }
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        let stacks = self.stacks.iter().zip(&self.names);
        stacks
            .map(|(&(_, sum), name)| Candidate {
                name,
                sum,
                max: u64::try_from(sum).unwrap_or(u64::MAX),
                kept: true,
            })
            .collect()
    }
}

impl Filter {
    /// Cuts a heap profile down. `by_count` says whether [`hottest`](Self::hottest) applies to it; beside functions in the
    /// same file it does not.
    pub fn heap(&self, profile: &mut MemProfile, by_count: bool) -> Filtered {
        let mut filtered = Filtered {
            unit: Unit::HeapContext,
            ..Filtered::default()
        };
        if !self.rename.is_empty() {
            let new = self.rename.iter();
            let new: FxHashMap<NameRef, &[u8]> =
                new.map(|(old, new)| (NameRef::of(old), new)).collect();
            let new_name = |name, _: Option<&[u8]>| new.get(&name).map(|new| new.to_vec());
            *profile = profile.rename(new_name, |_| None);
        }
        let stacks = Stacks::of(profile);
        let mut all = stacks.candidates();
        let keeps = |index: usize| {
            let stack = stacks.stacks.get(index);
            stack.is_some_and(|&(stack, _)| self.keeps_stack(profile, stack))
        };
        self.choose_by_name(&mut all, keeps, &mut filtered);
        if by_count {
            self.choose_hottest(&mut all, &mut filtered);
        }
        filtered.kept = choice::kept(&all);
        let kept = all.iter().zip(&stacks.stacks).filter(|(one, _)| one.kept);
        let kept: FxHashSet<StackId> = kept.map(|(_, &(stack, _))| stack).collect();
        if kept.len() < stacks.stacks.len() {
            *profile = profile.retain(|stack| kept.contains(&stack));
        }
        if let Some(redaction) = &self.redact {
            *profile = profile.rename(
                |name, _| Some(redaction.name(name)),
                |path| Some(redaction.path(path)),
            );
            filtered.redacted = true;
        }
        filtered
    }

    /// Cuts down the heap profile in an instrumentation profile, as [`heap`](Self::heap) does. A section is decoded only if
    /// something is to be cut or counted: `None` if it stays as it is.
    ///
    /// # Errors
    /// If the section is damaged.
    pub fn section(
        &self,
        section: &mut HeapSection,
        by_count: bool,
    ) -> DataResult<Option<Filtered>> {
        let renames = !self.rename.is_empty();
        if !by_count && !self.selects() && self.redact.is_none() && !renames {
            return Ok(None);
        }
        let mut profile = section.profile()?.into_owned();
        let filtered = self.heap(&mut profile, by_count);
        if renames || !filtered.is_unchanged() {
            replace(section, profile)?;
        }
        Ok(Some(filtered))
    }

    fn keeps_stack(&self, profile: &MemProfile, stack: StackId) -> bool {
        let names = profile.stack(stack).map(|frame| {
            let name = profile.names.get(&frame.function);
            super::known(name.map_or(&[], Vec::as_slice), NameRef(frame.function))
        });
        let mut kept = self.keep.all;
        for name in names {
            if self.leave_out.selects_sample(name) {
                return false;
            }
            kept = kept || self.keep.selects_sample(name);
        }
        kept
    }
}

/// Puts another profile into a section, with the options with which it was written.
fn replace(section: &mut HeapSection, profile: MemProfile) -> DataResult<()> {
    let options = match section {
        HeapSection::Stored(stored) => options_of(stored)?,
        HeapSection::Profile(_, options) => options.clone(),
    };
    *section = HeapSection::Profile(Box::new(profile), options);
    Ok(())
}

impl Filtered {
    /// Drops the contexts with the fewest bytes until the file has at most `limit` bytes. `size` returns the size of the
    /// file of a profile, whose heap profile it is. Returns whether a profile with one context fits.
    ///
    /// # Errors
    /// The errors of `size`, and those of a damaged section.
    pub fn fit_heap<E: From<profkit_data::Error>>(
        &mut self,
        profile: &mut InstrProfile,
        limit: u64,
        mut size: impl FnMut(&InstrProfile) -> Result<u64, E>,
    ) -> Result<bool, E> {
        if size(profile)? <= limit {
            return Ok(true);
        }
        let Some(section) = &profile.memprof else {
            return Ok(false);
        };
        let whole = section.profile()?.into_owned();
        let stacks = Stacks::of(&whole);
        let all = stacks.candidates();
        let order = ranked(&all);
        let cut_to = |profile: &mut InstrProfile, count: usize| {
            let kept = order.iter().take(count);
            let kept = kept.filter_map(|&index| stacks.stacks.get(index));
            let kept: FxHashSet<StackId> = kept.map(|&(stack, _)| stack).collect();
            let cut = whole.retain(|stack| kept.contains(&stack));
            let section = profile.memprof.as_mut();
            section.map_or(Ok(()), |section| replace(section, cut))
        };
        let found = largest_fitting(order.len().saturating_sub(1), |count| {
            cut_to(profile, count)?;
            size(profile).map(|size| size <= limit)
        })?;
        let count = found.unwrap_or(0);
        cut_to(profile, count)?;
        self.cut_after(&all, order.iter().skip(count));
        Ok(found.is_some())
    }
}
