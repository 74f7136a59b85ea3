//! The table of a heap profile.
use super::{ColumnData, NoTable, SharedTexts, StackColumn, Table, TableKind};
use crate::export::StackFrame;
use profkit_analysis::heap::{HeapProfile, access_density, average};
use profkit_data::memprof::{Field, Hotness, Thresholds};
use rustc_hash::FxHashMap;

impl Table {
    /// Makes the table of the contexts of a heap profile.
    ///
    /// # Errors
    /// If `kind` is not the table of contexts, the only table of a heap profile.
    pub fn of_heap(
        file: &str,
        kind: TableKind,
        heap: &HeapProfile,
        thresholds: &Thresholds,
    ) -> Result<Self, NoTable> {
        if kind != TableKind::Contexts {
            return Err(NoTable {
                table: kind,
                profile: "a heap profile",
                has: &[TableKind::Contexts],
            });
        }
        let mut table = Table::new(file, kind, "heap");
        let mut hotness = SharedTexts::default();
        let mut numbers = [(); 2].map(|()| Vec::new());
        let mut lifetimes = Vec::new();
        let (mut accesses, mut densities) = (Vec::new(), Vec::new());
        let mut stacks = StackColumn::default();
        let mut known: FxHashMap<StackFrame, u32> = FxHashMap::default();
        for context in heap.profile.contexts() {
            let row = [Field::TotalSize, Field::AllocCount];
            lifetimes.push(Some(average(&context.block, Field::TotalLifetime)));
            for (column, field) in numbers.iter_mut().zip(row) {
                column.push(context.block.get(field));
            }
            accesses.push(context.block.known(Field::TotalAccessCount));
            densities.push(access_density(&context.block));
            hotness.push(match thresholds.hotness(&context.block, true) {
                Hotness::Cold => "cold",
                Hotness::Warm => "warm",
                Hotness::Hot => "hot",
            });
            let frames = heap.frames(context.stack).map(|frame| {
                let next = u32::try_from(stacks.frames.len()).unwrap_or(u32::MAX);
                *known
                    .entry(StackFrame::of_heap(&frame))
                    .or_insert_with_key(|frame| {
                        stacks.frames.push(frame.clone());
                        next
                    })
            });
            let frames = frames.collect();
            stacks.stacks.push(frames);
        }
        table.push("stack", ColumnData::Stacks(stacks));
        let names = ["bytes", "allocations"];
        for (name, column) in names.into_iter().zip(numbers) {
            table.push(name, ColumnData::Numbers(column));
        }
        table.push("average_lifetime_ms", ColumnData::Fractions(lifetimes));
        table.push("accesses", ColumnData::SomeNumbers(accesses));
        let densities = ColumnData::Fractions(densities);
        table.push("lifetime_access_density", densities);
        table.push("heat", ColumnData::Shared(hotness));
        Ok(table)
    }
}
