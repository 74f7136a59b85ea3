//! What is known of the allocations of one context: LLVM's `MemInfoBlock`.
use crate::bytes::Cursor;
use crate::{Error, ErrorKind, Result, Structure};

macro_rules! fields {
    ($($(#[$doc:meta])* $id:literal $name:ident $width:literal;)*) => {
        /// A field of a block, by LLVM's number (`MIBEntryDef.inc`, `Meta` in `MemProf.h`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Field {
            $($(#[$doc])* $name = $id,)*
        }

        impl Field {
            /// All fields in the order of their numbers, which is their order in raw files.
            pub const ALL: [Field; FIELD_COUNT] = [$(Field::$name,)*];

            /// The name that LLVM's YAML has.
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$name => stringify!($name),)*
                }
            }

            /// Bytes in raw files and in indexed ones.
            pub fn width(self) -> usize {
                match self {
                    $(Field::$name => $width,)*
                }
            }
        }
    };
}

/// How many fields LLVM 22 knows.
pub const FIELD_COUNT: usize = 27;

fields! {
    /// Allocations.
    1 AllocCount 4;
    /// Accesses of all allocations together.
    2 TotalAccessCount 8;
    /// Accesses of the allocation with the fewest.
    3 MinAccessCount 8;
    /// Accesses of the allocation with the most.
    4 MaxAccessCount 8;
    /// Bytes of all allocations together.
    5 TotalSize 8;
    /// Bytes of the smallest.
    6 MinSize 4;
    /// Bytes of the largest.
    7 MaxSize 4;
    /// When the last one was allocated, in milliseconds since the program's start.
    8 AllocTimestamp 4;
    /// When the last one was freed, in milliseconds since the program's start.
    9 DeallocTimestamp 4;
    /// Milliseconds that all allocations together lived.
    10 TotalLifetime 8;
    /// Milliseconds of the shortest life.
    11 MinLifetime 4;
    /// Milliseconds of the longest life.
    12 MaxLifetime 4;
    /// The CPU that the last one was allocated on.
    13 AllocCpuId 4;
    /// The CPU that the last one was freed on.
    14 DeallocCpuId 4;
    /// Allocations that were freed on another CPU than allocated on. A merge does not change it.
    15 NumMigratedCpu 4;
    /// Allocations that were made before the one counted before them was freed.
    16 NumLifetimeOverlaps 4;
    /// Allocations on the CPU of the one counted before them.
    17 NumSameAllocCpu 4;
    /// Allocations freed on the CPU of the one counted before them.
    18 NumSameDeallocCpu 4;
    /// Kept for a hash of the type; always 0 so far.
    19 DataTypeId 8;
    /// Sum of the access densities: accesses × 100 / bytes (raw version 2).
    20 TotalAccessDensity 8;
    /// The least access density.
    21 MinAccessDensity 4;
    /// The highest access density.
    22 MaxAccessDensity 4;
    /// Sum of the lifetime access densities: access density × 1000 / milliseconds lived (raw version 2).
    23 TotalLifetimeAccessDensity 8;
    /// The least lifetime access density.
    24 MinLifetimeAccessDensity 4;
    /// The highest lifetime access density.
    25 MaxLifetimeAccessDensity 4;
    /// Elements of the access histogram (raw version 4).
    26 AccessHistogramSize 4;
    /// The histogram's address in the process that wrote or read the file: it means nothing outside of it, and is 0 in
    /// what profkit makes.
    27 AccessHistogram 8;
}

impl Field {
    /// The field of a number.
    pub fn from_id(id: u64) -> Option<Self> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        Field::ALL.get(index).copied()
    }

    /// LLVM's number.
    pub fn id(self) -> u8 {
        self as u8
    }

    fn bit(self) -> u32 {
        1 << self.id()
    }

    fn index(self) -> usize {
        usize::from(self.id()) - 1
    }

    /// The largest value that the field's bytes can hold.
    pub fn max(self) -> u64 {
        match self.width() {
            4 => u64::from(u32::MAX),
            _ => u64::MAX,
        }
    }
}

/// Which fields a block has and in which order they are stored: LLVM's `MemProfSchema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(Vec<Field>);

impl Schema {
    /// The first `count` fields.
    pub fn first(count: usize) -> Self {
        Schema(Field::ALL.iter().take(count).copied().collect())
    }

    /// All fields of LLVM 19 and later.
    pub fn full() -> Self {
        Schema::first(FIELD_COUNT)
    }

    /// What hints for hot and cold allocations need (`getHotColdSchema`).
    pub fn hot_cold() -> Self {
        Schema(vec![
            Field::AllocCount,
            Field::TotalSize,
            Field::TotalLifetime,
            Field::TotalLifetimeAccessDensity,
        ])
    }

    /// These fields in this order.
    pub fn of(fields: impl IntoIterator<Item = Field>) -> Self {
        Schema(fields.into_iter().collect())
    }

    /// The fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// Bytes of a block.
    pub fn block_len(&self) -> usize {
        self.0.iter().map(|field| field.width()).sum()
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the bytes end inside it.
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

    /// Appends a block; fields that it does not have are 0.
    pub fn write(&self, block: &MemInfoBlock, out: &mut Vec<u8>) {
        for &field in &self.0 {
            let bytes = block.get(field).to_le_bytes();
            out.extend_from_slice(bytes.get(..field.width()).unwrap_or_default());
        }
    }

    /// Reads the schema of an indexed section: how many fields, and their numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for a field that is not known or stands there twice.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.offset();
        let count = cursor.u64()?;
        let mut fields: Vec<Field> = Vec::new();
        for _ in 0..count {
            let at = cursor.offset();
            let id = cursor.u64()?;
            let Some(field) = Field::from_id(id) else {
                return Err(Error::new(
                    ErrorKind::Malformed,
                    "a field of the schema is unknown, and so is its width",
                )
                .at(at)
                .within(Structure::MemProfSchema)
                .found(id)
                .expected(format_args!("1 to {FIELD_COUNT}"))
                .llvm_detail("memprof schema invalid")
                .with_hint("a newer LLVM wrote the profile: merge it with that LLVM's llvm-profdata; merged alone, its MemProf section is carried unread"));
            };
            if fields.contains(&field) {
                return Err(
                    Error::new(ErrorKind::Malformed, "a field occurs twice in the schema")
                        .at(at)
                        .within(Structure::MemProfSchema)
                        .found(field.name()),
                );
            }
            fields.push(field);
        }
        if fields.is_empty() {
            return Err(Error::new(ErrorKind::Malformed, "the schema has no field")
                .at(at)
                .within(Structure::MemProfSchema));
        }
        Ok(Schema(fields))
    }

    /// Appends the schema as indexed sections have it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.0.len() as u64).to_le_bytes());
        for field in &self.0 {
            out.extend_from_slice(&u64::from(field.id()).to_le_bytes());
        }
    }
}

/// The figures of one context.
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
#[derive(Clone, Copy, PartialEq, Eq)]
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
    /// A field's value; 0 if the block does not have it.
    pub fn get(&self, field: Field) -> u64 {
        self.values.get(field.index()).copied().unwrap_or(0)
    }

    /// Whether the block has a field.
    pub fn has(&self, field: Field) -> bool {
        self.fields & field.bit() != 0
    }

    /// Sets a field, cut to its width as LLVM's types cut it.
    pub fn set(&mut self, field: Field, value: u64) {
        if let Some(slot) = self.values.get_mut(field.index()) {
            *slot = value & field.max();
        }
        self.fields |= field.bit();
    }

    /// The fields that the block has, in the order of their numbers.
    pub fn fields(&self) -> impl Iterator<Item = Field> {
        let fields = self.fields;
        Field::ALL
            .into_iter()
            .filter(move |field| fields & field.bit() != 0)
    }

    /// Adds a block whose allocations came later: LLVM's `MemInfoBlock::Merge`, with the maximum for maxima, for which
    /// LLVM 14 and 15 take the minimum. Counts saturate at the width of their field. A field that only one of the two
    /// has stays as that one has it.
    pub fn add_later(&mut self, later: &MemInfoBlock) {
        self.add_later_from(later, &Start::of(later));
    }

    /// As [`add_later`](Self::add_later), where `later` is a sum whose first block had `start`.
    pub fn add_later_from(&mut self, later: &MemInfoBlock, start: &Start) {
        use Field as F;
        let before = *self;
        for field in F::ALL {
            if !later.has(field) {
                continue;
            }
            let (old, new) = (before.get(field), later.get(field));
            if !before.has(field) {
                self.set(field, new);
                continue;
            }
            let added = |by: u64| old.saturating_add(by).min(field.max());
            // LLVM forgets what the later block had counted itself; what was added to it since counts.
            let counted = |own: u64, same: bool| added((new - own.min(new)) + u64::from(same));
            let value = match field {
                F::AllocCount
                | F::TotalAccessCount
                | F::TotalSize
                | F::TotalLifetime
                | F::TotalAccessDensity
                | F::TotalLifetimeAccessDensity => added(new),
                F::MinAccessCount
                | F::MinSize
                | F::MinLifetime
                | F::MinAccessDensity
                | F::MinLifetimeAccessDensity => old.min(new),
                F::MaxAccessCount
                | F::MaxSize
                | F::MaxLifetime
                | F::MaxAccessDensity
                | F::MaxLifetimeAccessDensity
                | F::AccessHistogramSize => old.max(new),
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
            };
            self.set(field, value);
        }
    }
}

/// What the first block of a sum brought that the sum no longer shows: with it, sums of neighbouring blocks can be
/// added up in any grouping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// When its last allocation was made.
    pub alloc_timestamp: u64,
    /// The CPU of its last allocation.
    pub alloc_cpu: u64,
    /// The CPU that its last allocation was freed on.
    pub dealloc_cpu: u64,
    /// Its own `NumLifetimeOverlaps`.
    pub overlaps: u64,
    /// Its own `NumSameAllocCpu`.
    pub same_alloc_cpu: u64,
    /// Its own `NumSameDeallocCpu`.
    pub same_dealloc_cpu: u64,
}

impl Start {
    /// That of a block.
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
