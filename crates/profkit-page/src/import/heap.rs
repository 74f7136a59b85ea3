//! A heap profile made of its tables.
use super::found::Found;
use super::rows::{optional_number, optional_text, required_number, required_text, small_number};
use super::{ImportError, TableFile};
use crate::export::tables::TableKind;
use crate::export::tables::heap::{FIELDS, LOCATION};
use profkit_abi::indexed;
use profkit_data::from_printable;
use profkit_data::index_vec::IndexVec;
use profkit_data::memprof::indexed::IndexedMemProfOptions;
use profkit_data::memprof::{
    AddressId, AllocSite, CallSite, Context, Field, Frame, FrameId, FrameList, InlinedAt,
    MemInfoBlock, MemProfile, Schema, SourceLocation, StackId, add_histogram, build,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Makes a heap profile of its tables: of contexts and frames, and of records if they are there. Contexts of one call stack
/// add up, unless the table of records has as many allocations of it. Also returns the version of an
/// indexed profile and how its MemProf section is written; `None` if the profile was no indexed one.
pub(super) fn profile_of(
    found: &Found<'_>,
    notes: &mut Vec<String>,
) -> Result<(MemProfile, Option<(u32, IndexedMemProfOptions)>), ImportError> {
    let contexts = found.required(TableKind::Contexts, "`stack_id`, `bytes` and `allocations`")?;
    let frames = found.required(TableKind::Frames, "`stack_id`, `position` and `guid`")?;
    let mut heap = Heap::default();
    heap.frames(frames)?;
    heap.contexts(contexts, frames)?;
    match found.get(TableKind::Records) {
        Some(table) if heap.without_info == 0 => heap.records(table, frames, notes)?,
        _ => heap.without_records(),
    }
    if heap.without_info > 0 {
        let rows = profkit_report::plural(heap.without_info, "frame");
        notes.push(format!(
            "{}: left out {rows} that no debug info covers (`binary`): compilers do not have them",
            frames.name
        ));
    }
    let options = heap.options(found)?;
    Ok((heap.profile, options))
}

#[derive(Debug, Default)]
struct Heap {
    profile: MemProfile,
    stacks: FxHashMap<u64, StackId>,
    /// The contexts of each call stack in the order of their rows, and the call stacks in that order.
    contexts: FxHashMap<StackId, Vec<(MemInfoBlock, Vec<u64>)>>,
    order: Vec<StackId>,
    /// How many rows of frames name a binary, because no debug info covers them.
    without_info: u64,
}

/// The frames of a call stack by their position, each with its first row; `None` if no debug info covers the frame.
type Positions = BTreeMap<u64, (Option<FrameId>, usize)>;

impl Heap {
    fn frames(&mut self, table: &TableFile) -> Result<(), ImportError> {
        let mut numbers: FxHashMap<u64, usize> = FxHashMap::default();
        let mut stacks: Vec<(u64, Positions)> = Vec::new();
        for row in 0..table.len() {
            let stack = required_number(table, "stack_id", row)?;
            let position = required_number(table, "position", row)?;
            let small = |column| small_number(table, column, row);
            let is_inline = match optional_number(table, "is_inline", row)?.unwrap_or(0) {
                0 => false,
                1 => true,
                _ => return Err(table.error(Some(row), "is_inline", "expected 0 or 1")),
            };
            let frame = Frame {
                function: required_number(table, "guid", row)?,
                line_offset: small("line_offset")?.unwrap_or(0),
                column: small("column")?.unwrap_or(0),
                is_inline,
            };
            let [line, column, discriminator] = LOCATION.map(small);
            let place = SourceLocation {
                file: from_printable(optional_text(table, "file", row)?.unwrap_or_default()),
                line: line?.unwrap_or(0),
                column: column?.unwrap_or(0),
                discriminator: discriminator?.unwrap_or(0),
            };
            // As in a merge of dumps, frames that no debug info covers are not in the profile.
            let is_known = optional_text(table, "binary", row)?.is_none();
            self.without_info += u64::from(!is_known);
            if is_known && place != SourceLocation::default() {
                self.profile.locations.insert(frame, place);
            }
            if let Some(name) = optional_text(table, "function", row)?.filter(|_| is_known) {
                let name = from_printable(name);
                self.profile.names.insert(frame.function, name);
            }
            let id = is_known.then(|| self.profile.add_frame(frame));
            let next = stacks.len();
            let number = *numbers.entry(stack).or_insert(next);
            if number == next {
                stacks.push((stack, BTreeMap::new()));
            }
            let Some((_, frames)) = stacks.get_mut(number) else {
                continue;
            };
            // Tables of several profiles have the same call stacks.
            let (known, first) = *frames.entry(position).or_insert((id, row));
            if known != id {
                let message = format!(
                    "row {} has another frame at this position of this call stack",
                    first + 1
                );
                return Err(table.error(Some(row), "position", message));
            }
        }
        for (stack, frames) in stacks {
            for (expected, (&position, &(_, row))) in (0..).zip(&frames) {
                if position != expected {
                    let message = format!(
                        "the call stack has a frame at position {position}, but none at {expected}"
                    );
                    return Err(ImportError {
                        hint: Some("filter contexts, and keep all frames of their call stacks"),
                        ..table.error(Some(row), "position", message)
                    });
                }
            }
            let frames: Vec<FrameId> = frames.into_values().filter_map(|(id, _)| id).collect();
            let id = self.profile.add_stack(&frames);
            self.stacks.insert(stack, id);
        }
        Ok(())
    }

    /// The call stack of a row.
    fn stack(
        &self,
        table: &TableFile,
        row: usize,
        frames: &TableFile,
    ) -> Result<StackId, ImportError> {
        let id = required_number(table, "stack_id", row)?;
        self.stacks.get(&id).copied().ok_or_else(|| {
            let message = format!("{} has no frames of the call stack {id:#018x}", frames.name);
            table.error(Some(row), "stack_id", message)
        })
    }

    fn contexts(&mut self, table: &TableFile, frames: &TableFile) -> Result<(), ImportError> {
        for row in 0..table.len() {
            let mut block = MemInfoBlock::default();
            let own = [
                (Field::TotalSize, "bytes"),
                (Field::AllocCount, "allocations"),
                (Field::TotalAccessCount, "accesses"),
            ];
            for (field, column) in own.into_iter().chain(FIELDS) {
                let Some(number) = optional_number(table, column, row)? else {
                    continue;
                };
                if number > field.max() {
                    let message = format!("found {number}, more than {}", field.max());
                    return Err(table.error(Some(row), column, message));
                }
                block.set(field, number);
            }
            for (field, column) in own.into_iter().take(2) {
                if !block.has(field) {
                    return Err(table.error(Some(row), column, "the cell is empty"));
                }
            }
            let mut histogram = Vec::new();
            for count in optional_text(table, "histogram", row)?
                .unwrap_or_default()
                .split_ascii_whitespace()
            {
                histogram.push(count.parse().map_err(|_| {
                    let expected = "expected whole numbers with blanks between them";
                    table.error(Some(row), "histogram", expected)
                })?);
            }
            if block.has(Field::AccessHistogramSize) {
                // Files have the field beside the size. What it holds means nothing outside the process that ran.
                block.set(Field::AccessHistogram, 0);
            }
            let stack = self.stack(table, row, frames)?;
            let contexts = self.contexts.entry(stack).or_default();
            if contexts.is_empty() {
                self.order.push(stack);
            }
            contexts.push((block, histogram));
        }
        Ok(())
    }

    /// Adds the contexts of a call stack up, unless there are this many.
    fn sum(&mut self, stack: StackId, unless: usize) {
        let Some(contexts) = self.contexts.get_mut(&stack) else {
            return;
        };
        if contexts.len() == unless {
            return;
        }
        let mut rest = contexts.drain(..);
        let Some((mut block, mut histogram)) = rest.next() else {
            return;
        };
        for (later, counts) in rest {
            block.add_later(&later);
            add_histogram(&mut histogram, &counts);
        }
        contexts.push((block, histogram));
    }

    fn records(
        &mut self,
        table: &TableFile,
        frames: &TableFile,
        notes: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        // How often the record of a function has a call stack, for each copy of it that is inlined.
        let mut inlined = InlinedAt::default();
        let mut rows = Vec::with_capacity(table.len());
        let mut times: FxHashMap<(u64, StackId), u32> = FxHashMap::default();
        let mut copies: FxHashMap<StackId, usize> = FxHashMap::default();
        for row in 0..table.len() {
            let function = required_number(table, "guid", row)?;
            let stack = self.stack(table, row, frames)?;
            match required_text(table, "kind", row)? {
                "allocation" => {
                    let own = inlined.times(&self.profile, stack, function).max(1);
                    let seen = times.entry((function, stack)).or_insert(0);
                    let copy = (*seen / own) as usize;
                    *seen += 1;
                    let known = copies.entry(stack).or_insert(0);
                    *known = (*known).max(copy + 1);
                    rows.push((function, stack, Some(copy), Vec::new()));
                }
                "call" => {
                    let mut callees = Vec::new();
                    let text = optional_text(table, "callees", row)?.unwrap_or_default();
                    for callee in text.split_ascii_whitespace() {
                        let digits = callee.strip_prefix("0x");
                        let hash = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                        callees.push(hash.ok_or_else(|| {
                            let expected =
                                "expected hashes as `0x` and digits, with blanks between them";
                            table.error(Some(row), "callees", expected)
                        })?);
                    }
                    rows.push((function, stack, None, callees));
                }
                _ => {
                    let expected = "expected `allocation` or `call`";
                    return Err(table.error(Some(row), "kind", expected));
                }
            }
        }
        for stack in self.order.clone() {
            let known = copies.get(&stack).copied();
            let Some(known) = known else {
                let message = format!(
                    "{} has no allocation of the call stack of a context",
                    table.name
                );
                return Err(ImportError {
                    hint: Some(
                        "leave out the table of records, or export it from the same profile",
                    ),
                    ..table.error(None, "stack_id", message)
                });
            };
            self.sum(stack, known);
        }
        let mut lost: FxHashSet<StackId> = FxHashSet::default();
        for (function, stack, copy, callees) in rows {
            let Some(copy) = copy else {
                let record = self.profile.record_mut(function);
                record.call_sites.push(CallSite { stack, callees });
                continue;
            };
            let Some(contexts) = self.contexts.get(&stack) else {
                lost.insert(stack);
                // The record stays, with its calls.
                self.profile.record_mut(function);
                continue;
            };
            if let Some((block, histogram)) = contexts.get(copy) {
                let site = AllocSite {
                    stack,
                    block: *block,
                    histogram: histogram.clone(),
                };
                self.profile.record_mut(function).alloc_sites.push(site);
            }
        }
        if !lost.is_empty() {
            self.profile = self.profile.retain(|_| true);
            let count = profkit_report::plural(lost.len() as u64, "call stack");
            notes.push(format!(
                "{}: left out {count} that no context has, and the calls that lead to no other",
                table.name
            ));
        }
        Ok(())
    }

    /// Makes the records as they are made of a dump, of the call stacks alone.
    fn without_records(&mut self) {
        let mut numbers: FxHashMap<FrameList, AddressId> = FxHashMap::default();
        let mut lists: IndexVec<AddressId, FrameList> = IndexVec::new();
        let mut addresses: Vec<Vec<AddressId>> = Vec::new();
        for stack in self.order.clone() {
            self.sum(stack, 1);
            let mut list = Vec::new();
            let mut own = Vec::new();
            for &id in self.profile.frame_ids(stack) {
                list.push(id);
                if !self.profile.frames()[id].is_inline {
                    let list = std::mem::take(&mut list);
                    let next = numbers.entry(list.clone());
                    own.push(*next.or_insert_with(|| lists.push(list)));
                }
            }
            if !list.is_empty() {
                let next = numbers.entry(list.clone());
                own.push(*next.or_insert_with(|| lists.push(list)));
            }
            addresses.push(own);
        }
        let contexts = self.order.iter().zip(&addresses);
        let contexts = contexts.filter_map(|(stack, addresses)| {
            let (block, histogram) = self.contexts.get(stack)?.first()?;
            Some(Context {
                addresses,
                block: *block,
                histogram,
            })
        });
        build(&mut self.profile, &lists, contexts);
    }

    fn options(
        &self,
        found: &Found<'_>,
    ) -> Result<Option<(u32, IndexedMemProfOptions)>, ImportError> {
        let form = found.facts.get("heap_form").unwrap_or("raw");
        let stated = |name, most, default| match found.facts.get(name) {
            Some(text) => {
                let version = text.parse().ok().filter(|version| *version <= most);
                version.ok_or_else(|| found.facts.wrong(name, text))
            }
            None => Ok(default),
        };
        let (indexed, version) = match form {
            "yaml" => return Ok(None),
            "indexed" => (
                stated("indexed_version", 14, indexed::VERSION_DEFAULT)?,
                stated("heap_version", 4, 3)?,
            ),
            "raw" => (indexed::VERSION_DEFAULT, 3),
            form => return Err(found.facts.wrong("heap_form", form)),
        };
        let density = Field::TotalLifetimeAccessDensity;
        let mut contexts = self.contexts.values().flatten();
        // The section has 0 for what is not known, and compilers would take long-lived contexts for cold. Sections of LLVM 15
        // have no densities at all.
        let is_of_llvm_15 = form == "indexed" && version == 0 && !self.profile.has_field(density);
        if !is_of_llvm_15 && contexts.any(|(block, _)| !block.has(density)) {
            return Ok(None);
        }
        let options = IndexedMemProfOptions::for_version(version, true);
        let known = |field: &Field| self.profile.has_field(*field);
        let fields: Vec<Field> = Field::ALL.into_iter().filter(known).collect();
        let portable = form == "raw" || found.facts.get("portable").is_some();
        let options = options.schema(Schema::of(fields)).portable(portable);
        Ok(Some((indexed, options)))
    }
}
