//! The memory info block (LLVM's `MemInfoBlock`): statistics of all allocations that were made with one call stack.
use crate::bytes::Cursor;
use crate::{Error, ErrorKind, Result, Structure};

macro_rules! fields {
    ($($(#[$doc:meta])* $id:literal $name:ident $width:literal;)*) => {
        /// A field of a [`MemInfoBlock`]. The value of the enum variant is LLVM's number for the field
        /// (`MIBEntryDef.inc`, `Meta` in `MemProf.h`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field {
            $($(#[$doc])* $name = $id,)*
        }

        impl Field {
            /// All fields in ascending order of their numbers, which is their order in raw files.
            pub const ALL: [Field; FIELD_COUNT] = [$(Field::$name,)*];

            /// Returns the name of the field in LLVM's YAML.
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$name => stringify!($name),)*
                }
            }

            /// The size of the field in bytes. It is the same in raw and in indexed files.
            pub fn width(self) -> usize {
                match self {
                    $(Field::$name => $width,)*
                }
            }
        }
    };
}

/// The number of fields that a memory info block of LLVM 22 has.
pub const FIELD_COUNT: usize = 27;

fields! {
    /// The number of allocations with this call stack.
    1 AllocCount 4;
    /// The number of accesses, summed over all allocations.
    2 TotalAccessCount 8;
    /// The number of accesses to the least accessed allocation.
    3 MinAccessCount 8;
    /// The number of accesses to the most accessed allocation.
    4 MaxAccessCount 8;
    /// The size in bytes, summed over all allocations.
    5 TotalSize 8;
    /// The size in bytes of the smallest allocation with this call stack.
    6 MinSize 4;
    /// The size in bytes of the largest allocation with this call stack.
    7 MaxSize 4;
    /// The time of the last allocation, in milliseconds since the program's start.
    8 AllocTimestamp 4;
    /// The time at which the last allocation was freed, in milliseconds since the program's start.
    9 DeallocTimestamp 4;
    /// The sum of the lifetimes of all allocations, in milliseconds.
    10 TotalLifetime 8;
    /// The shortest lifetime of an allocation, in milliseconds.
    11 MinLifetime 4;
    /// The longest lifetime of an allocation, in milliseconds.
    12 MaxLifetime 4;
    /// The CPU on which the last allocation was made.
    13 AllocCpuId 4;
    /// The CPU on which the last allocation was freed.
    14 DeallocCpuId 4;
    /// The number of allocations that were freed on a different CPU than the one they were made on. Merging two blocks
    /// does not change this field.
    15 NumMigratedCpu 4;
    /// The number of allocations whose lifetime overlaps with that of the previously counted allocation.
    16 NumLifetimeOverlaps 4;
    /// The number of allocations that were made on the same CPU as the previously counted allocation.
    17 NumSameAllocCpu 4;
    /// The number of allocations that were freed on the same CPU as the previously counted allocation.
    18 NumSameDeallocCpu 4;
    /// Reserved for a hash of the allocated type. LLVM always writes 0.
    19 DataTypeId 8;
    /// The sum of the access densities of all allocations. The access density of an allocation is its accesses × 100 /
    /// its bytes. The field exists from raw version 2.
    20 TotalAccessDensity 8;
    /// The lowest access density of an allocation.
    21 MinAccessDensity 4;
    /// The highest access density of an allocation.
    22 MaxAccessDensity 4;
    /// The sum of the lifetime access densities of all allocations. The lifetime access density of an allocation is its
    /// access density × 1000 / its lifetime in milliseconds. The field exists from raw version 2.
    23 TotalLifetimeAccessDensity 8;
    /// The lowest lifetime access density of an allocation.
    24 MinLifetimeAccessDensity 4;
    /// The highest lifetime access density of an allocation.
    25 MaxLifetimeAccessDensity 4;
    /// The number of elements in the access histogram. The field exists from raw version 4.
    26 AccessHistogramSize 4;
    /// The address of the access histogram in the process that wrote or read the file. Outside that process, the
    /// address has no meaning; profkit writes 0.
    27 AccessHistogram 8;
}

impl Field {
    /// Returns the field with this LLVM number; `None` if there is no such field.
    pub fn from_id(id: u64) -> Option<Self> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        Field::ALL.get(index).copied()
    }

    /// Returns LLVM's number for the field.
    pub fn id(self) -> u8 {
        self as u8
    }

    fn bit(self) -> u32 {
        1 << self.id()
    }

    fn index(self) -> usize {
        usize::from(self.id()) - 1
    }

    /// Whether the field is made of access densities. Dumps of LLVM 14 and 15 do not have these fields.
    pub fn is_density(self) -> bool {
        (Field::TotalAccessDensity.id()..=Field::MaxLifetimeAccessDensity.id()).contains(&self.id())
    }

    /// The value of the field if the allocations of two blocks are put together and their order does not matter.
    fn of_both(self, one: u64, other: u64) -> u64 {
        use Field as F;
        match self {
            F::AllocCount
            | F::TotalAccessCount
            | F::TotalSize
            | F::TotalLifetime
            | F::TotalAccessDensity
            | F::TotalLifetimeAccessDensity
            | F::NumLifetimeOverlaps
            | F::NumSameAllocCpu
            | F::NumSameDeallocCpu => one.saturating_add(other).min(self.max()),
            F::MinAccessCount
            | F::MinSize
            | F::MinLifetime
            | F::MinAccessDensity
            | F::MinLifetimeAccessDensity => one.min(other),
            _ => one.max(other),
        }
    }

    /// The largest value that the field's bytes can hold.
    pub fn max(self) -> u64 {
        match self.width() {
            4 => u64::from(u32::MAX),
            _ => u64::MAX,
        }
    }
}

/// The list of fields that the memory info blocks of a file have, in the order in which they are stored (LLVM's
/// `MemProfSchema`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(Vec<Field>);

impl Schema {
    /// Returns the schema of the first `count` fields.
    pub fn first(count: usize) -> Self {
        Schema(Field::ALL.iter().take(count).copied().collect())
    }

    /// Returns the schema of all fields that LLVM 19 and later have.
    pub fn full() -> Self {
        Schema::first(FIELD_COUNT)
    }

    /// Returns the schema of the fields that a compiler needs to mark allocations as hot or cold (`getHotColdSchema`).
    pub fn hot_cold() -> Self {
        Schema(vec![
            Field::AllocCount,
            Field::TotalSize,
            Field::TotalLifetime,
            Field::TotalLifetimeAccessDensity,
        ])
    }

    /// Makes the schema of these fields, in this order.
    pub fn of(fields: impl IntoIterator<Item = Field>) -> Self {
        Schema(fields.into_iter().collect())
    }

    /// Returns the fields of the schema in the order in which they are stored.
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// The size in bytes of a memory info block with these fields.
    pub fn block_len(&self) -> usize {
        self.0.iter().map(|field| field.width()).sum()
    }

    /// Reads a memory info block.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the bytes end inside the block.
    pub fn read(&self, cursor: &mut Cursor<'_>) -> Result<MemInfoBlock> {
        let mut bytes = Cursor::new(
            cursor.take(self.block_len())?,
            0,
            crate::bytes::Endian::Little,
        );
        let mut block = MemInfoBlock::default();
        for &field in &self.0 {
            let value = match field.width() {
                4 => u64::from(bytes.u32()?),
                _ => bytes.u64()?,
            };
            block.set(field, value);
        }
        Ok(block)
    }

    /// Appends a memory info block. Fields that the block does not have are written as 0.
    pub fn write(&self, block: &MemInfoBlock, out: &mut Vec<u8>) {
        for &field in &self.0 {
            let bytes = block.get(field).to_le_bytes();
            out.extend_from_slice(bytes.get(..field.width()).unwrap_or_default());
        }
    }

    /// Reads the schema of a MemProf section: the count of fields, then LLVM's number for each field.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] if a field is unknown or listed twice.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.offset();
        let count = cursor.u64()?;
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..count {
            let at = cursor.offset();
            let id = cursor.u64()?;
            let Some(field) = Field::from_id(id) else {
                return Err(Error::new(ErrorKind::Malformed, "the schema has a field that profkit does not know")
                .at(at)
                .within(Structure::MemProfSchema)
                .found(format_args!("field number {id}"))
                .expected(format_args!("1 to {FIELD_COUNT}"))
                .llvm_detail("memprof schema invalid")
                .with_hint("a newer LLVM wrote the profile: merge it with llvm-profdata of that LLVM; profkit can merge it only with inputs that have no MemProf section"));
            };
            if fields.contains(&field) {
                return Err(ErrorKind::Malformed
                    .error("a field occurs twice in the schema")
                    .at(at)
                    .within(Structure::MemProfSchema)
                    .found(field.name()));
            }
            fields.push(field);
        }
        if fields.is_empty() {
            return Err(ErrorKind::Malformed
                .error("the schema has no field")
                .at(at)
                .within(Structure::MemProfSchema));
        }
        Ok(Schema(fields))
    }

    /// Appends the schema as a MemProf section stores it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        for field in &self.0 {
            out.extend_from_slice(&u64::from(field.id()).to_le_bytes());
        }
    }
}

/// The statistics of the allocations with one call stack.
///
/// ```
/// use profkit_data::memprof::{Field, MemInfoBlock, Schema};
///
/// let mut block = MemInfoBlock::default();
/// block.set(Field::TotalSize, 4096);
/// assert!(!block.has(Field::AllocCount));
/// let schema = Schema::hot_cold();
/// let mut bytes = Vec::new();
/// schema.write(&block, &mut bytes);
/// assert_eq!(bytes.len(), schema.block_len());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemInfoBlock {
    values: [u64; FIELD_COUNT],
    fields: u32,
}

impl Default for MemInfoBlock {
    fn default() -> Self {
        MemInfoBlock {
            values: [0; FIELD_COUNT],
            fields: 0,
        }
    }
}

impl std::fmt::Debug for MemInfoBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for field in self.fields() {
            map.entry(&field, &self.get(field));
        }
        map.finish()
    }
}

impl MemInfoBlock {
    /// Returns the value of a field, or 0 if the block does not have the field.
    pub fn get(&self, field: Field) -> u64 {
        self.values.get(field.index()).copied().unwrap_or(0)
    }

    /// Whether the memory info block has a field.
    pub fn has(&self, field: Field) -> bool {
        self.fields & field.bit() != 0
    }

    /// Sets a field. If the value is too large for the field, its high bits are lost, as in LLVM.
    pub fn set(&mut self, field: Field, value: u64) {
        if let Some(slot) = self.values.get_mut(field.index()) {
            *slot = value & field.max();
        }
        self.fields |= field.bit();
    }

    /// Returns the value of a field; `None` if the block does not have the field.
    pub fn known(&self, field: Field) -> Option<u64> {
        self.has(field).then(|| self.get(field))
    }

    /// Removes a field, so that its value is not known.
    pub fn unset(&mut self, field: Field) {
        if let Some(slot) = self.values.get_mut(field.index()) {
            *slot = 0;
        }
        self.fields &= !field.bit();
    }

    /// Computes the access densities of a block without them, as the run-time library of LLVM 16 and later does for each
    /// allocation. That is possible if the allocations are known one by one: if there is one, or if all have the same
    /// size, number of accesses and lifetime. Otherwise the densities stay unknown.
    pub fn compute_densities(&mut self) {
        use Field as F;
        if F::ALL
            .iter()
            .any(|&field| field.is_density() && self.has(field))
        {
            return;
        }
        // The maxima are not looked at, because the run-time library of LLVM 14 and 15 keeps smaller ones. If all are at
        // least the minimum, and their sum is that of minima, they are equal.
        let count = self.get(F::AllocCount);
        let each = |total, least| {
            let (total, least) = (self.known(total)?, self.known(least)?);
            (least.checked_mul(count) == Some(total)).then_some(least)
        };
        let (Some(accesses), Some(size), Some(lifetime)) = (
            each(F::TotalAccessCount, F::MinAccessCount),
            each(F::TotalSize, F::MinSize),
            each(F::TotalLifetime, F::MinLifetime),
        ) else {
            return;
        };
        if count == 0 || size == 0 {
            return;
        }
        let density = accesses.wrapping_mul(100) / size;
        let lifetime_density = density.wrapping_mul(1000) / lifetime.max(1);
        for (value, [total, least, most]) in [
            (
                density,
                [
                    F::TotalAccessDensity,
                    F::MinAccessDensity,
                    F::MaxAccessDensity,
                ],
            ),
            (
                lifetime_density,
                [
                    F::TotalLifetimeAccessDensity,
                    F::MinLifetimeAccessDensity,
                    F::MaxLifetimeAccessDensity,
                ],
            ),
        ] {
            self.set(total, value.saturating_mul(count));
            self.set(least, value);
            self.set(most, value);
        }
    }

    /// Returns the fields that the block has, in ascending order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        let fields = self.fields;
        Field::ALL
            .into_iter()
            .filter(move |field| fields & field.bit() != 0)
    }

    /// Adds a memory info block whose allocations were made after those of this block (LLVM's `MemInfoBlock::Merge`).
    /// For a field that is a maximum, the larger value is kept. (LLVM 14 and 15 keep the smaller value of
    /// MaxAccessCount and of MaxSize.) A sum that is too large for its field becomes the field's largest value. A field
    /// that only one of the blocks has keeps its value, but a density that one of them lacks is not known of the sum.
    pub fn add_later(&mut self, later: &MemInfoBlock) {
        self.add_later_from(later, &Start::of(later));
    }

    /// Adds the sum of several memory info blocks, whose allocations were made after those of this block. (A single
    /// block is added by [`add_later`](Self::add_later).) `start` has the fields of the first of the blocks that were
    /// summed up.
    pub fn add_later_from(&mut self, later: &MemInfoBlock, start: &Start) {
        use Field as F;
        let before = *self;
        let both = before.fields != 0 && later.fields != 0;
        for field in F::ALL {
            if field.is_density() && both && before.has(field) != later.has(field) {
                self.unset(field);
                continue;
            }
            if !later.has(field) {
                continue;
            }
            let (old, new) = (before.get(field), later.get(field));
            if !before.has(field) {
                self.set(field, new);
                continue;
            }
            let added = |by: u64| old.saturating_add(by).min(field.max());
            // Adds up a count that compares each allocation with the previous one, for example the number of
            // allocations on the same CPU as the previous allocation. The first block of `later` had counted `own` such
            // allocations before it was summed up. As in LLVM, `own` is not added. Instead, 1 is added if `same` is
            // true: the first block of `later` has the same CPU as this block, or its lifetime overlaps with the
            // lifetime of this block.
            let counted = |own: u64, same: bool| added((new - own.min(new)) + u64::from(same));
            let value = match field {
                F::NumLifetimeOverlaps => counted(
                    start.overlaps,
                    start.alloc_timestamp < before.get(F::DeallocTimestamp),
                ),
                F::NumSameAllocCpu => counted(
                    start.same_alloc_cpu,
                    start.alloc_cpu == before.get(F::AllocCpuId),
                ),
                F::NumSameDeallocCpu => counted(
                    start.same_dealloc_cpu,
                    start.dealloc_cpu == before.get(F::DeallocCpuId),
                ),
                F::AllocTimestamp | F::DeallocTimestamp | F::AllocCpuId | F::DeallocCpuId => new,
                F::NumMigratedCpu | F::DataTypeId | F::AccessHistogram => old,
                _ => field.of_both(old, new),
            };
            self.set(field, value);
        }
    }

    /// Adds the block of another input so that the order of inputs does not matter: the last timestamp of both is kept, with
    /// the CPU of this time; of two equal times the higher CPU. Overlaps and allocations on one CPU are those that each block
    /// counted itself. Of fields that are no sums, the larger value is kept. A density that one of them lacks is not known of
    /// the sum.
    pub fn add_unordered(&mut self, other: &MemInfoBlock) {
        use Field as F;
        let before = *self;
        for field in F::ALL {
            match (before.known(field), other.known(field)) {
                (Some(one), Some(other)) => self.set(field, field.of_both(one, other)),
                (None, Some(value)) if !field.is_density() => self.set(field, value),
                (Some(_), None) if field.is_density() => self.unset(field),
                _ => {}
            }
        }
        for (time, cpu) in [
            (F::AllocTimestamp, F::AllocCpuId),
            (F::DeallocTimestamp, F::DeallocCpuId),
        ] {
            let last = |block: &MemInfoBlock| (block.known(time), block.known(cpu));
            match last(&before).max(last(other)).1 {
                Some(value) => self.set(cpu, value),
                None => self.unset(cpu),
            }
        }
    }
}

/// Some fields of the first memory info block in a sum. The sum itself no longer has these values, but they are needed
/// to add it to an earlier sum. With them, the result is the same as if all blocks were added one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The time of the last allocation in the sum's first block (`AllocTimestamp`).
    pub alloc_timestamp: u64,
    /// The CPU of the last allocation in the sum's first block (`AllocCpuId`).
    pub alloc_cpu: u64,
    /// The CPU on which the last allocation in the sum's first block was freed (`DeallocCpuId`).
    pub dealloc_cpu: u64,
    /// The `NumLifetimeOverlaps` of the sum's first block.
    pub overlaps: u64,
    /// The `NumSameAllocCpu` of the sum's first block.
    pub same_alloc_cpu: u64,
    /// The `NumSameDeallocCpu` of the sum's first block.
    pub same_dealloc_cpu: u64,
}

impl Start {
    /// Returns the fields of `block`, which is the first block of a sum.
    pub fn of(block: &MemInfoBlock) -> Self {
        Start {
            alloc_timestamp: block.get(Field::AllocTimestamp),
            alloc_cpu: block.get(Field::AllocCpuId),
            dealloc_cpu: block.get(Field::DeallocCpuId),
            overlaps: block.get(Field::NumLifetimeOverlaps),
            same_alloc_cpu: block.get(Field::NumSameAllocCpu),
            same_dealloc_cpu: block.get(Field::NumSameDeallocCpu),
        }
    }
}
