//! The functions of a program as BOLT names them, with the basic blocks that it finds in their code. Only x86-64.
use crate::code::{Detail, Flow, details};
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget,
    SectionIndex, SectionKind, SymbolKind,
};
use profkit_data::{Error, ErrorKind, Result, printable};
use profkit_object::binary::Image;
use profkit_object::bounds::with_names;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// The sections whose entries jump to functions of libraries, with the sizes of the entries.
const STUBS: [(&str, usize); 3] = [(".plt", 16), (".plt.sec", 16), (".plt.got", 8)];

/// The largest length in bytes of the name of a function whose counts are written. Each line of a profile has two names, so
/// that a few long ones would make it very large.
pub const LONGEST_NAME: usize = 1 << 16;

/// The functions of a program, sorted by address.
pub struct Functions<'i, 'data> {
    image: &'i Image<'data>,
    list: Vec<Function<'data>>,
    code: Vec<Section>,
    data: Vec<Section>,
}

#[derive(Clone, Copy)]
struct Section {
    address: u64,
    end: u64,
    index: SectionIndex,
}

/// The section that contains an address.
fn holding(sections: &[Section], address: u64) -> Option<Section> {
    let after = sections.partition_point(|section| section.address <= address);
    let section = sections.get(after.checked_sub(1)?)?;
    (address < section.end).then_some(*section)
}

/// A name as BOLT writes it: a local function has a number, because others can have the same name.
#[derive(Clone, Copy)]
enum Name<'data> {
    Global(&'data [u8]),
    Local(&'data [u8], usize),
    Stub(&'data [u8]),
    /// The name is too long, or damaged. The function is known, so that its counts do not become those of another one.
    Unreadable,
}

/// The name of a symbol; `None` if it cannot be read, or is too long to be written.
fn written(name: Option<&[u8]>) -> Option<&[u8]> {
    name.filter(|name| name.len() <= LONGEST_NAME)
}

struct Function<'data> {
    name: Name<'data>,
    start: u64,
    /// The end of its code.
    end: u64,
    /// The end of the bytes up to the next function, or of the section.
    limit: u64,
    /// Whether it is an entry of a table of jumps to libraries, whose blocks do not matter.
    is_stub: bool,
    /// Addresses at which code from outside enters, beside the start.
    entries: Vec<u64>,
    blocks: OnceCell<Blocks>,
}

/// The instructions of a function and the blocks that they form.
#[derive(Default)]
pub struct Blocks {
    instructions: Vec<Detail>,
    /// Sorted by start.
    list: Vec<Block>,
    /// For each block, the last one that code can run into without a taken branch.
    reach: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Block {
    start: u64,
    end: u64,
    /// The address of the last instruction.
    last: u64,
    flow: Flow,
}

impl Block {
    /// Whether code runs from this block into the next one.
    fn runs_on(&self) -> bool {
        matches!(self.flow, Flow::Next | Flow::Call | Flow::Branch)
    }
}

impl<'i, 'data> Functions<'i, 'data> {
    /// Finds the functions of a program.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the program is not for x86-64 or has no symbols of functions.
    pub fn of(image: &'i Image<'data>) -> Result<Self> {
        if image.architecture() != Architecture::X86_64 {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "fdata can be made of programs for x86-64 only, because it has the blocks that BOLT finds in the code",
            )
            .found(profkit_object::binary::architecture_name(image))
            .with_hint("write the form `traces`, of which perf2bolt -pa makes fdata"));
        }
        let sections = |wanted: fn(SectionKind) -> bool| -> Vec<Section> {
            let sections = image.sections().filter(|section| {
                // Sections that are not loaded have no address.
                section.address() != 0 && section.size() != 0 && wanted(section.kind())
            });
            let mut sections: Vec<_> = sections
                .map(|section| Section {
                    address: section.address(),
                    end: section.address().saturating_add(section.size()),
                    index: section.index(),
                })
                .collect();
            sections.sort_by_key(|section| section.address);
            sections
        };
        let mut functions = Functions {
            image,
            list: Vec::new(),
            code: sections(|kind| kind == SectionKind::Text),
            data: sections(|kind| kind != SectionKind::Text),
        };
        let stubs = functions.stubs();
        functions.add_symbols()?;
        if functions.list.is_empty() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "the program has no symbols of functions, by which BOLT finds its profile",
            )
            .with_hint("give the program as it was before strip"));
        }
        functions.list.extend(stubs);
        functions.list.sort_by_key(|function| function.start);
        functions.list.dedup_by_key(|function| function.start);
        Ok(functions)
    }

    /// The bytes of a section from an address on.
    fn bytes(&self, section: Option<Section>, address: u64) -> &'data [u8] {
        let bytes = || {
            let section = section?;
            let skipped = usize::try_from(address.checked_sub(section.address)?).ok()?;
            let all = self.image.section_by_index(section.index).ok()?;
            all.data().ok()?.get(skipped..)
        };
        bytes().unwrap_or_default()
    }

    fn add_symbols(&mut self) -> Result<()> {
        let symbols = self.image.symbols().filter(|symbol| {
            symbol.is_definition()
                && symbol.kind() == SymbolKind::Text
                && holding(&self.code, symbol.address()).is_some()
        });
        let symbols = with_names(self.image, symbols)
            .map(|symbol| symbol.map(|(symbol, name)| (symbol.address(), written(name), symbol)));
        let mut symbols = symbols.collect::<Result<Vec<_>>>()?;
        symbols.retain(|(_, name, _)| !name.is_some_and(<[u8]>::is_empty));
        symbols.sort_by_key(|(address, ..)| *address);
        let mut locals: FxHashMap<&[u8], usize> = FxHashMap::default();
        for (start, name, symbol) in symbols {
            let name = match name {
                Some(name) if symbol.is_local() => {
                    let number = locals.entry(name).or_default();
                    *number += 1;
                    Name::Local(name, *number)
                }
                Some(name) => Name::Global(name),
                None => Name::Unreadable,
            };
            match self.list.last_mut() {
                Some(last) if last.start == start => {
                    last.end = last.end.max(start.saturating_add(symbol.size()));
                    if matches!(last.name, Name::Unreadable) {
                        last.name = name;
                    }
                    continue;
                }
                Some(last) if start < last.end => {
                    last.entries.push(start);
                    continue;
                }
                _ => {}
            }
            self.list.push(Function {
                name,
                start,
                end: start.saturating_add(symbol.size()),
                limit: 0,
                is_stub: false,
                entries: Vec::new(),
                blocks: OnceCell::new(),
            });
        }
        let mut next = u64::MAX;
        for at in (0..self.list.len()).rev() {
            let start = self.list.get(at).map_or(0, |function| function.start);
            let end = holding(&self.code, start).map_or(start, |section| section.end);
            if let Some(function) = self.list.get_mut(at) {
                function.limit = next.min(end);
                if function.end == start {
                    function.end = function.limit;
                }
                function.end = function.end.min(function.limit);
            }
            next = start;
        }
        Ok(())
    }

    /// The entries of the tables of jumps to libraries. Each jumps to an address in a slot that a relocation fills.
    fn stubs(&self) -> Vec<Function<'data>> {
        let relocations = self.image.dynamic_relocations().into_iter().flatten();
        let table = self.image.dynamic_symbol_table();
        let slots: FxHashMap<u64, Name<'_>> = relocations
            .filter_map(|(slot, relocation)| {
                let RelocationTarget::Symbol(symbol) = relocation.target() else {
                    return None;
                };
                let symbol = table.as_ref()?.symbol_by_index(symbol).ok()?;
                let name = match written(symbol.name_bytes().ok()) {
                    Some([]) => return None,
                    Some(name) => Name::Stub(name),
                    None => Name::Unreadable,
                };
                Some((slot, name))
            })
            .collect();
        let mut stubs = Vec::new();
        for (name, size) in STUBS {
            let Some(section) = self.image.section_by_name(name) else {
                continue;
            };
            let mut start = section.address();
            for bytes in section.data().unwrap_or_default().chunks(size) {
                let end = start.saturating_add(bytes.len() as u64);
                let jump = details(bytes, start, end).into_iter();
                let slot = jump
                    .filter(|one| one.instruction.flow == Flow::IndirectJump)
                    .find_map(|one| one.data);
                if let Some(&name) = slot.and_then(|slot| slots.get(&slot)) {
                    stubs.push(Function {
                        name,
                        start,
                        end,
                        limit: end,
                        is_stub: true,
                        entries: Vec::new(),
                        blocks: OnceCell::new(),
                    });
                }
                start = end;
            }
        }
        stubs
    }

    /// The index of the function that an address belongs to, and the offset in it.
    pub fn place(&self, address: u64) -> Option<(usize, u64)> {
        let after = self.list.partition_point(|one| one.start <= address);
        let index = after.checked_sub(1)?;
        let function = self.list.get(index)?;
        (address < function.limit).then(|| (index, address - function.start))
    }

    /// Whether the name of a function can be read.
    pub fn has_name(&self, index: usize) -> bool {
        let function = self.list.get(index);
        function.is_some_and(|function| !matches!(function.name, Name::Unreadable))
    }

    /// The name of a function that [has one](Self::has_name).
    pub fn name(&self, index: usize) -> String {
        let name = self.list.get(index).map(|function| function.name);
        match name.unwrap_or(Name::Global(b"")) {
            Name::Global(name) => printable(name).into_owned(),
            Name::Local(name, number) => format!("{}/{number}", printable(name)),
            Name::Stub(name) => format!("{}@PLT", printable(name)),
            Name::Unreadable => String::new(),
        }
    }

    /// Whether the instruction at an address is a return.
    pub fn returns(&self, address: u64) -> bool {
        let function = self
            .place(address)
            .and_then(|(index, _)| self.list.get(index));
        let Some(function) = function.filter(|function| !function.is_stub) else {
            return false;
        };
        let instructions = &self.blocks(function).instructions;
        let found = instructions.binary_search_by_key(&address, |one| one.instruction.address);
        let found = found.ok().and_then(|at| instructions.get(at));
        found.is_some_and(|one| one.instruction.flow == Flow::Return)
    }

    /// The blocks of a function through which code runs from `start` to `end`: the function, the first and the last block.
    /// `from` is the branch to `start`, if that is known; inside, its address in the program. `None` if code cannot run so.
    pub fn run(
        &self,
        from: Option<Option<u64>>,
        start: u64,
        end: u64,
    ) -> Option<(usize, usize, usize)> {
        let (index, _) = self.place(start)?;
        if self.place(end)?.0 != index || start > end {
            return None;
        }
        let function = self.list.get(index)?;
        if function.is_stub {
            return Some((index, 0, 0));
        }
        let blocks = self.blocks(function);
        let (mut first, last) = (blocks.holding(start)?, blocks.holding(end)?);
        // A branch from outside to the start of a block: the block before ended with a call, which returns.
        if let Some(from) = from
            && !from.is_some_and(|from| (function.start..function.end).contains(&from))
            && blocks.list.get(first)?.start == start
            && let Some(before) = first.checked_sub(1)
        {
            let returns = from.is_some_and(|from| self.returns(from));
            let is_entry =
                start == function.start || function.entries.binary_search(&start).is_ok();
            if (returns || !is_entry) && blocks.list.get(before)?.flow == Flow::Call {
                first = before;
            }
        }
        (last <= *blocks.reach.get(first)?).then_some((index, first, last))
    }

    /// The step from a block of a function into the next one: the last instruction, and the start of the next block, as
    /// offsets in the function.
    pub fn step(&self, function: usize, block: usize) -> Option<(u64, u64)> {
        let function = self.list.get(function)?;
        let blocks = &self.blocks(function).list;
        let (this, next) = (blocks.get(block)?, blocks.get(block + 1)?);
        let offset = |address: u64| address.wrapping_sub(function.start);
        Some((offset(this.last), offset(next.start)))
    }
}

impl Blocks {
    /// The block that contains an address.
    fn holding(&self, address: u64) -> Option<usize> {
        let after = self.list.partition_point(|block| block.start <= address);
        let at = after.checked_sub(1)?;
        (address < self.list.get(at)?.end).then_some(at)
    }
}

impl Functions<'_, '_> {
    fn blocks<'f>(&self, function: &'f Function<'_>) -> &'f Blocks {
        function.blocks.get_or_init(|| {
            let bytes = self.bytes(holding(&self.code, function.start), function.start);
            let instructions = details(bytes, function.start, function.end);
            let starts: FxHashSet<u64> = instructions
                .iter()
                .map(|one| one.instruction.address)
                .collect();
            let mut labels = BTreeSet::from([function.start]);
            labels.extend(&function.entries);
            let inside = |address: &u64| starts.contains(address);
            labels.extend(
                instructions
                    .iter()
                    .filter_map(|one| one.target)
                    .filter(inside),
            );
            if instructions
                .iter()
                .any(|one| one.instruction.flow == Flow::IndirectJump)
            {
                let tables: BTreeSet<(u64, bool)> = instructions
                    .iter()
                    .filter_map(|one| Some((one.data?, one.is_absolute)))
                    .collect();
                // A table ends where the next one begins, so that no byte is read twice.
                let ends = tables
                    .iter()
                    .map(|&(table, _)| table)
                    .skip(1)
                    .chain([u64::MAX]);
                for (&(table, is_absolute), end) in tables.iter().zip(ends) {
                    let targets = self.table(table..end, is_absolute);
                    labels.extend(targets.take_while(inside));
                }
            }
            let list = blocks(&instructions, &labels, |target| inside(&target));
            let mut reach: Vec<usize> = (0..list.len()).collect();
            for at in (1..list.len()).rev() {
                let after = reach.get(at).copied();
                if list.get(at - 1).is_some_and(Block::runs_on)
                    && let (Some(before), Some(after)) = (reach.get_mut(at - 1), after)
                {
                    *before = after;
                }
            }
            Blocks {
                instructions,
                list,
                reach,
            }
        })
    }

    /// The targets in a table of jumps: addresses, or distances from the table in 32 bits.
    fn table(&self, at: Range<u64>, is_absolute: bool) -> Box<dyn Iterator<Item = u64> + '_> {
        let table = at.start;
        let bytes = self.bytes(holding(&self.data, table), table);
        let size = usize::try_from(at.end - table).unwrap_or(usize::MAX);
        let bytes = bytes.get(..size).unwrap_or(bytes);
        if is_absolute {
            let (words, _) = bytes.as_chunks();
            return Box::new(words.iter().map(|word| u64::from_le_bytes(*word)));
        }
        let (words, _) = bytes.as_chunks();
        let target =
            move |word: &[u8; 4]| table.wrapping_add_signed(i64::from(i32::from_le_bytes(*word)));
        Box::new(words.iter().map(target))
    }
}

/// Forms blocks: one begins at each label, and after each instruction that can leave the straight line.
fn blocks(
    instructions: &[Detail],
    labels: &BTreeSet<u64>,
    inside: impl Fn(u64) -> bool,
) -> Vec<Block> {
    let mut list: Vec<Block> = Vec::new();
    // Whether the last block ended with a conditional branch to code of this function.
    let (mut is_open, mut may_jump) = (false, false);
    for one in instructions {
        let Detail { instruction, .. } = *one;
        let stays = one.target.is_some_and(&inside);
        let end = instruction.address.saturating_add(instruction.size.into());
        // BOLT leaves a jump that follows a conditional branch in the branch's block.
        let joins = is_open || may_jump && instruction.flow == Flow::Jump && stays;
        match list.last_mut() {
            Some(block) if joins && !labels.contains(&instruction.address) => {
                (block.end, block.last) = (end, instruction.address);
                block.flow = instruction.flow;
            }
            _ => list.push(Block {
                start: instruction.address,
                end,
                last: instruction.address,
                flow: instruction.flow,
            }),
        }
        is_open = matches!(instruction.flow, Flow::Next | Flow::Call);
        may_jump = instruction.flow == Flow::Branch && stays;
    }
    list
}
