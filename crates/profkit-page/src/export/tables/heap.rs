//! The tables of a heap profile.
use super::{ColumnData, NoTable, Property, SharedTexts, StackColumn, Table, TableKind};
use crate::export::StackFrame;
use profkit_analysis::heap::{HeapForm, HeapProfile, access_density, average};
use profkit_analysis::names::printable;
use profkit_data::ids::FuncHash;
use profkit_data::memprof::{Field, Hotness, IdScheme, MemProfile, StackId, Thresholds};
use rustc_hash::FxHashMap;

const HAS: &[TableKind] = &[
    TableKind::Contexts,
    TableKind::Frames,
    TableKind::Records,
    TableKind::Profile,
];

impl Table {
    /// Makes a table of a heap profile.
    ///
    /// # Errors
    /// If heap profiles have no such table.
    pub fn of_heap(
        file: &str,
        kind: TableKind,
        heap: &HeapProfile,
        thresholds: &Thresholds,
    ) -> Result<Self, NoTable> {
        let mut table = Table::new(file, kind, "heap");
        let form = match heap.form {
            HeapForm::Raw => "raw",
            HeapForm::Indexed => "indexed",
            HeapForm::Yaml => "yaml",
        };
        let versions = [
            ("indexed_version", heap.indexed_version),
            ("heap_version", heap.version),
        ];
        let text = |text: &dyn ToString| Property::Text(text.to_string());
        table.properties.push(("heap_form", text(&form)));
        for (name, version) in versions {
            let version = version.iter().map(|version| (name, text(version)));
            table.properties.extend(version);
        }
        if heap.portable {
            table.properties.push(("portable", text(&"yes")));
        }
        match kind {
            TableKind::Contexts => table.contexts(heap, thresholds),
            TableKind::Frames => table.frames(heap),
            TableKind::Records => table.records(&heap.profile),
            TableKind::Profile => table.facts(),
            _ => {
                return Err(NoTable {
                    table: kind,
                    profile: "a heap profile",
                    has: HAS,
                });
            }
        }
        Ok(table)
    }

    fn contexts(&mut self, heap: &HeapProfile, thresholds: &Thresholds) {
        let mut hotness = SharedTexts::default();
        let mut numbers = [(); 2].map(|()| Vec::new());
        let mut lifetimes = Vec::new();
        let (mut accesses, mut densities) = (Vec::new(), Vec::new());
        let mut stacks = StackColumn::default();
        let mut known: FxHashMap<StackFrame, u32> = FxHashMap::default();
        let ids = stack_ids(&heap.profile);
        let mut stack_hashes = Vec::new();
        let mut fields = FIELDS.map(|_| Vec::new());
        let mut histograms = SharedTexts::default();
        let mut known_histograms = heap.profile.histograms();
        for context in heap.profile.contexts() {
            stack_hashes.push(ids(context.stack));
            for (column, (field, _)) in fields.iter_mut().zip(FIELDS) {
                column.push(context.block.known(field));
            }
            let histogram = known_histograms.remove(&context.stack).unwrap_or_default();
            let counts: Vec<String> = histogram.iter().map(u64::to_string).collect();
            histograms.push(&counts.join(" "));
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
        self.push("stack", ColumnData::Stacks(stacks));
        let names = ["bytes", "allocations"];
        for (name, column) in names.into_iter().zip(numbers) {
            self.push(name, ColumnData::Numbers(column));
        }
        self.push("average_lifetime_ms", ColumnData::Fractions(lifetimes));
        self.push("accesses", ColumnData::SomeNumbers(accesses));
        let densities = ColumnData::Fractions(densities);
        self.push("lifetime_access_density", densities);
        self.push("heat", ColumnData::Shared(hotness));
        self.push_hashes("stack_id", stack_hashes);
        for (column, (_, name)) in fields.into_iter().zip(FIELDS) {
            self.push_known(name, column);
        }
        if !histograms.texts().is_empty() {
            self.push("histogram", ColumnData::Shared(histograms));
        }
    }

    fn frames(&mut self, heap: &HeapProfile) {
        let profile = &heap.profile;
        let mut binaries = SharedTexts::default();
        let ids = stack_ids(profile);
        let mut numbers = [(); 4].map(|()| Vec::new());
        let mut places = [(); 3].map(|()| Vec::new());
        let [mut stacks, mut functions] = [(); 2].map(|()| Vec::new());
        let [mut names, mut files] = [(); 2].map(|()| SharedTexts::default());
        for stack in profile.stacks().ids() {
            let id = ids(stack);
            for (position, frame) in (0..).zip(profile.stack(stack)) {
                stacks.push(id);
                functions.push(frame.function);
                let name = profile.names.get(&frame.function);
                names.push(&printable(name.map_or(&[][..], Vec::as_slice)));
                let row = [
                    position,
                    frame.line_offset.into(),
                    frame.column.into(),
                    u64::from(frame.is_inline),
                ];
                for (column, number) in numbers.iter_mut().zip(row) {
                    column.push(number);
                }
                binaries.push(heap.binaries.get(frame).map_or("", String::as_str));
                let place = profile.locations.get(frame);
                files.push(&printable(place.map_or(&[][..], |place| &place.file)));
                let row = place.map(|place| [place.line, place.column, place.discriminator]);
                for (at, column) in places.iter_mut().enumerate() {
                    let number = row.and_then(|row| row.get(at).copied());
                    column.push(number.map(u64::from));
                }
            }
        }
        self.push_hashes("stack_id", stacks);
        let [positions, offsets, columns, inline] = numbers;
        self.push("position", ColumnData::Numbers(positions));
        self.push_hashes("guid", functions);
        self.push("function", ColumnData::Shared(names));
        self.push("line_offset", ColumnData::Numbers(offsets));
        self.push("column", ColumnData::Numbers(columns));
        self.push("is_inline", ColumnData::Numbers(inline));
        self.push("file", ColumnData::Shared(files));
        for (name, column) in LOCATION.into_iter().zip(places) {
            self.push_known(name, column);
        }
        if !binaries.texts().is_empty() {
            self.push("binary", ColumnData::Shared(binaries));
        }
    }

    fn records(&mut self, profile: &MemProfile) {
        let ids = stack_ids(profile);
        let [mut functions, mut stacks] = [(); 2].map(|()| Vec::new());
        let [mut kinds, mut called] = [(); 2].map(|()| SharedTexts::default());
        for record in profile.records() {
            let sites = record.alloc_sites.iter().map(|site| (site.stack, None));
            let calls = record.call_sites.iter();
            let calls = calls.map(|site| (site.stack, Some(&site.callees)));
            for (stack, callees) in sites.chain(calls) {
                functions.push(record.function);
                kinds.push(if callees.is_some() {
                    "call"
                } else {
                    "allocation"
                });
                stacks.push(ids(stack));
                let callees = callees.into_iter().flatten();
                let callees: Vec<String> = callees.map(|id| FuncHash(*id).to_string()).collect();
                called.push(&callees.join(" "));
            }
        }
        self.push_hashes("guid", functions);
        self.push("kind", ColumnData::Shared(kinds));
        self.push_hashes("stack_id", stacks);
        if !called.texts().is_empty() {
            self.push("callees", ColumnData::Shared(called));
        }
    }
}

/// The columns of the place of a frame in its file.
pub(crate) const LOCATION: [&str; 3] = ["file_line", "file_column", "discriminator"];

/// The fields of memory info blocks that have a column of LLVM's name for them. The number of allocations, of bytes and of
/// accesses have columns of their own, and the address of the histogram means nothing in another process.
pub(crate) const FIELDS: [(Field, &str); 23] = [
    (Field::MinAccessCount, "min_access_count"),
    (Field::MaxAccessCount, "max_access_count"),
    (Field::MinSize, "min_size"),
    (Field::MaxSize, "max_size"),
    (Field::AllocTimestamp, "alloc_timestamp"),
    (Field::DeallocTimestamp, "dealloc_timestamp"),
    (Field::TotalLifetime, "total_lifetime"),
    (Field::MinLifetime, "min_lifetime"),
    (Field::MaxLifetime, "max_lifetime"),
    (Field::AllocCpuId, "alloc_cpu_id"),
    (Field::DeallocCpuId, "dealloc_cpu_id"),
    (Field::NumMigratedCpu, "num_migrated_cpu"),
    (Field::NumLifetimeOverlaps, "num_lifetime_overlaps"),
    (Field::NumSameAllocCpu, "num_same_alloc_cpu"),
    (Field::NumSameDeallocCpu, "num_same_dealloc_cpu"),
    (Field::DataTypeId, "data_type_id"),
    (Field::TotalAccessDensity, "total_access_density"),
    (Field::MinAccessDensity, "min_access_density"),
    (Field::MaxAccessDensity, "max_access_density"),
    (
        Field::TotalLifetimeAccessDensity,
        "total_lifetime_access_density",
    ),
    (
        Field::MinLifetimeAccessDensity,
        "min_lifetime_access_density",
    ),
    (
        Field::MaxLifetimeAccessDensity,
        "max_lifetime_access_density",
    ),
    (Field::AccessHistogramSize, "access_histogram_size"),
];

/// The id that LLVM 20 and later give to a call stack, which is the same in every profile.
fn stack_ids(profile: &MemProfile) -> impl Fn(StackId) -> u64 {
    let scheme = IdScheme::Blake3;
    move |stack| scheme.stack_id(profile.stack(stack).map(|frame| scheme.frame_id(frame)))
}
