//! Finds the basic blocks of a function, and computes its control-flow signature.
use super::backend::{Backend, Flow};
use super::functions::{Function, Part, is_data};
use super::landing::{DataFacts, added, is_number};
use super::prune::FlowBlock;
use super::ways::{self, Callees};
use crate::asm::{Instruction, Kind, Module, words};
use profkit_data::ids::NameRef;
use rustc_hash::{FxHashMap, FxHashSet};

/// A basic block with at least one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The index of the statement before which the block's probe is inserted.
    pub(super) statement: usize,
    /// The index of the part of the function that contains the block. Part 0 is the function's main code.
    pub(super) part: usize,
    /// The indices of the blocks that may be executed next.
    pub(super) successors: Vec<usize>,
}

/// The blocks in the order of the code, those of the cold parts last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) blocks: Vec<Block>,
    /// For each block, the edges that the code may take. They are more than the successors, of which the signature is
    /// made, where it is not known what the code does.
    pub(super) ways: Vec<FlowBlock>,
    /// The reason why no probe may be inserted into the blocks; `None` if probes may be inserted.
    pub(super) fixed: Option<&'static str>,
}

impl Graph {
    /// The control-flow signature: a hash of the successors of all blocks; 0 for a single block.
    pub(super) fn signature(&self) -> u32 {
        if self.blocks.len() <= 1 {
            return 0;
        }
        let mut text = Vec::new();
        for block in &self.blocks {
            text.push(b'{');
            for successor in &block.successors {
                text.extend_from_slice(successor.to_string().as_bytes());
                text.push(b';');
            }
            text.push(b'}');
        }
        // Only the low 32 bits of the hash are used, because a map entry has only 32 bits for the signature.
        let [a, b, c, d, ..] = NameRef::of(&text).0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// What matters of an item: a statement, or several of inline assembly.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Label(&'a [u8]),
    Code(Flow<'a>),
    /// Several consecutive statements of inline assembly.
    Inline,
    Data,
}

pub(super) struct Item<'a> {
    pub(super) statement: usize,
    pub(super) part: usize,
    pub(super) step: Step<'a>,
    /// The labels to which inline assembly may jump. Empty for other statements.
    pub(super) goes_to: Vec<&'a [u8]>,
    /// The label of the landing pad to which a call may return by an exception; `None` if there is none.
    pub(super) pad: Option<&'a [u8]>,
}

/// Finds the blocks of a function and of its cold parts.
pub(super) fn find<'a>(
    module: &Module<'a>,
    function: &Function<'a>,
    data: &DataFacts<'a>,
    callees: &Callees<'a>,
    backend: &dyn Backend,
) -> Result<Graph, &'static str> {
    let mut graph = Graph::default();
    let items = items(module, function, data, backend, &mut graph.fixed)?;
    let places = places(&items);
    let leaders = leaders(module, &items, &places, data, backend, &mut graph.fixed);
    graph.cut(module, &items, &leaders, backend);
    let block_at = graph.block_at(&items);
    graph.connect(module, &items, &places, &block_at, data, backend);
    graph.ways = ways::find(
        module,
        &items,
        &places,
        &block_at,
        &graph.blocks,
        data,
        callees,
    );
    Ok(graph)
}

fn items<'a>(
    module: &Module<'a>,
    function: &Function<'a>,
    data: &DataFacts<'a>,
    backend: &dyn Backend,
    fixed: &mut Option<&'static str>,
) -> Result<Vec<Item<'a>>, &'static str> {
    let mut items: Vec<Item<'a>> = Vec::new();
    // A jump to the function's own label is a recursive call; a part begins with its label.
    let ranges = std::iter::once((function.label + 1, function.end, function.section)).chain(
        function
            .parts
            .iter()
            .map(|part: &Part<'a>| (part.label, part.end, part.section)),
    );
    for (part, (first, end, section)) in ranges.enumerate() {
        let mut region: Option<super::landing::Region<'a>> = None;
        let mut prefix = false;
        let statements = module.statements.get(first..end).unwrap_or_default();
        for (offset, statement) in statements.iter().enumerate() {
            if statement.section != section {
                // `asm goto` often lists its labels in another section, between its statements.
                if statement.context.inline
                    && let Kind::Directive(directive) = statement.kind
                    && let Some(Item {
                        step: Step::Inline,
                        goes_to,
                        ..
                    }) = items.last_mut()
                {
                    goes_to.extend(words(directive.arguments));
                }
                continue;
            }
            if statement.context.conditional {
                return Err("the function has a conditional directive");
            }
            let mut item = Item {
                statement: first + offset,
                part,
                step: Step::Data,
                goes_to: Vec::new(),
                pad: None,
            };
            if statement.context.inline {
                let operands = match statement.kind {
                    Kind::Instruction(instruction) => instruction.operands,
                    Kind::Directive(directive) => directive.arguments,
                    Kind::Label(_) | Kind::Assignment(..) | Kind::Template => b"",
                };
                if let Some(Item {
                    step: Step::Inline,
                    goes_to,
                    ..
                }) = items.last_mut()
                {
                    goes_to.extend(words(operands));
                } else {
                    item.step = Step::Inline;
                    item.goes_to.extend(words(operands));
                    items.push(item);
                }
                continue;
            }
            item.step = match statement.kind {
                Kind::Label(name) => {
                    if prefix {
                        *fixed = Some("a label stands between a prefix and its instruction");
                    }
                    if region.is_some_and(|region| region.end == name) {
                        region = None;
                    }
                    if let Some(begun) = data.regions.get(name) {
                        region = Some(*begun);
                    }
                    Step::Label(name)
                }
                Kind::Instruction(instruction) => {
                    if module.macros.contains(instruction.mnemonic) {
                        return Err("the function uses a macro");
                    }
                    prefix = backend.is_prefix(&instruction);
                    let flow = backend.flow(&instruction);
                    if let Flow::Jump(b".") | Flow::Branch(b".") = flow {
                        return Err("the function has a branch relative to the location counter");
                    }
                    if backend.is_short_branch(&instruction) {
                        *fixed = Some("the function has a branch of fixed short range");
                    }
                    if flow == Flow::Call {
                        item.pad = region.map(|region| region.pad);
                    }
                    Step::Code(flow)
                }
                Kind::Template => return Err("the function contains a macro or a repeat block"),
                Kind::Directive(directive) => match directive.name {
                    b".rept" | b".irp" | b".irpc" | b".macro" | b".include" => {
                        return Err("the function contains a macro or a repeat block");
                    }
                    name if is_data(name) => Step::Data,
                    _ => continue,
                },
                Kind::Assignment(..) => continue,
            };
            items.push(item);
        }
    }
    Ok(items)
}

pub(super) type Places<'a> = FxHashMap<&'a [u8], Vec<usize>>;

fn places<'a>(items: &[Item<'a>]) -> Places<'a> {
    let mut places: Places<'a> = FxHashMap::default();
    for (index, item) in items.iter().enumerate() {
        if let Step::Label(name) = item.step {
            places.entry(name).or_default().push(index);
        }
    }
    places
}

/// The item with the label that item `from` refers to.
pub(super) fn resolve(places: &Places<'_>, name: &[u8], from: usize) -> Option<usize> {
    if let [digits @ .., direction @ (b'f' | b'b')] = name
        && !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
    {
        let all = places.get(digits)?;
        return if *direction == b'f' {
            all.iter().find(|&&place| place > from).copied()
        } else {
            all.iter().rev().find(|&&place| place < from).copied()
        };
    }
    places.get(name)?.first().copied()
}

/// Returns the indexes of the items at which a block begins (leaders).
fn leaders<'a>(
    module: &Module<'a>,
    items: &[Item<'a>],
    places: &Places<'a>,
    data: &DataFacts<'a>,
    backend: &dyn Backend,
    fixed: &mut Option<&'static str>,
) -> FxHashSet<usize> {
    let mut leaders = FxHashSet::default();
    // The items after branches, which are leaders unless they have to stay beside the branch.
    let mut after = FxHashSet::default();
    let mut part = usize::MAX;
    for (index, item) in items.iter().enumerate() {
        if item.part != part {
            part = item.part;
            leaders.insert(index);
        }
        match item.step {
            Step::Label(name) => {
                if data.referenced.contains(name) {
                    leaders.insert(index);
                }
            }
            Step::Code(flow) => {
                let instruction = instruction(module, item);
                for word in instruction.into_iter().flat_map(|i| mentioned(i.operands)) {
                    leaders.extend(resolve(places, word, index));
                }
                let pad = item.pad.and_then(|pad| resolve(places, pad, index));
                leaders.extend(pad);
                if !matches!(flow, Flow::Next | Flow::Call) || pad.is_some() {
                    after.insert(index + 1);
                }
            }
            Step::Inline => {
                let mut leaves = false;
                for name in &item.goes_to {
                    if !is_number(name)
                        && let Some(place) = resolve(places, name, index)
                    {
                        leaders.insert(place);
                        leaves = true;
                    }
                }
                if leaves {
                    leaders.insert(index + 1);
                }
            }
            Step::Data => {}
        }
    }
    for (index, item) in items.iter().enumerate() {
        if instruction(module, item).is_some_and(|i| backend.counts_from_itself(&i)) {
            for (place, beside) in branches_after(items, &leaders, index) {
                after.remove(&place);
                if matches!(beside.step, Step::Code(_)) && leaders.contains(&place) {
                    *fixed = Some("a jump leads into a table of branches");
                }
            }
        }
    }
    leaders.extend(after);
    leaders
}

/// The names in operands to which code may jump.
fn mentioned(operands: &[u8]) -> Vec<&[u8]> {
    // `movw r0, #:lower16:(x-(.LPC0_0+8))` of 32-bit Arm subtracts the place of an instruction.
    if memchr::memmem::find(operands, b"er16:").is_some() {
        added(operands)
    } else {
        words(operands).collect()
    }
}

/// The branches that directly follow item `from`, and the labels between them that nothing jumps to.
fn branches_after<'i, 'a>(
    items: &'i [Item<'a>],
    leaders: &FxHashSet<usize>,
    from: usize,
) -> impl Iterator<Item = (usize, &'i Item<'a>)> {
    items
        .iter()
        .enumerate()
        .skip(from + 1)
        .take_while(|(place, item)| match item.step {
            Step::Label(_) => !leaders.contains(place),
            Step::Code(flow) => matches!(flow, Flow::Jump(_)),
            Step::Inline | Step::Data => false,
        })
}

pub(super) fn instruction<'a>(module: &Module<'a>, item: &Item<'a>) -> Option<Instruction<'a>> {
    match module.statements.get(item.statement)?.kind {
        Kind::Instruction(instruction) => Some(instruction),
        _ => None,
    }
}

/// The names in the data after item `from`. Branches and labels may stand before the data.
pub(super) fn table_after<'a>(
    module: &Module<'a>,
    items: &[Item<'a>],
    from: usize,
) -> Vec<&'a [u8]> {
    let after = items.get(from + 1..).unwrap_or_default().iter();
    after
        .skip_while(|item| matches!(item.step, Step::Label(_) | Step::Code(Flow::Jump(_))))
        .map_while(|item| match module.statements.get(item.statement)?.kind {
            Kind::Directive(directive) if matches!(item.step, Step::Data) => Some(directive),
            _ => None,
        })
        .flat_map(|directive| added(directive.arguments))
        .filter(|name| !is_number(name))
        .collect()
}

impl Graph {
    /// Makes the blocks. The statements between two leaders become a block if they contain an instruction.
    fn cut(
        &mut self,
        module: &Module<'_>,
        items: &[Item<'_>],
        leaders: &FxHashSet<usize>,
        backend: &dyn Backend,
    ) {
        // `begun`: there is a block since the last leader. `is_table`: data come next, before which no probe may be.
        let (mut begun, mut is_table) = (false, false);
        for (index, item) in items.iter().enumerate() {
            if leaders.contains(&index) {
                (begun, is_table) = (false, false);
            }
            let is_code = match item.step {
                Step::Label(_) => false,
                Step::Data => {
                    is_table |= !begun;
                    false
                }
                Step::Code(_) => {
                    // The probe comes after a landing instruction, which starts no block by itself.
                    !instruction(module, item).is_some_and(|i| !begun && backend.is_landing(&i))
                }
                Step::Inline => true,
            };
            if is_code && !begun && !is_table {
                begun = true;
                self.blocks.push(Block {
                    statement: item.statement,
                    part: item.part,
                    successors: Vec::new(),
                });
            }
        }
    }

    /// For each item, the first block that begins there or later in the same part.
    fn block_at(&self, items: &[Item<'_>]) -> Vec<Option<usize>> {
        let starts = self.starts();
        let mut block_at: Vec<Option<usize>> = vec![None; items.len()];
        let mut next: Option<(usize, usize)> = None;
        for (index, item) in items.iter().enumerate().rev() {
            if let Some(&block) = starts.get(&item.statement) {
                next = Some((block, item.part));
            }
            if let Some(slot) = block_at.get_mut(index) {
                *slot = next
                    .filter(|(_, part)| *part == item.part)
                    .map(|(block, _)| block);
            }
        }
        block_at
    }

    fn starts(&self) -> FxHashMap<usize, usize> {
        self.blocks
            .iter()
            .enumerate()
            .map(|(block, b)| (b.statement, block))
            .collect()
    }

    /// The successors of each block, in this order: the next block; the targets of the last instruction, as in the
    /// operands or the table; the landing pad of a call.
    fn connect<'a>(
        &mut self,
        module: &Module<'a>,
        items: &[Item<'a>],
        places: &Places<'a>,
        block_at: &[Option<usize>],
        data: &DataFacts<'a>,
        backend: &dyn Backend,
    ) {
        let starts = self.starts();
        let target = |name: &[u8], from: usize| {
            resolve(places, name, from).and_then(|index| block_at.get(index).copied().flatten())
        };
        let mut goes_on: Vec<Option<usize>> = vec![None; self.blocks.len()];
        let mut current: Option<usize> = None;
        // The last block, if control can continue after it, and its part of the function.
        let mut open: Option<(usize, usize)> = None;
        let mut table: Option<&Vec<&'a [u8]>> = None;
        for (index, item) in items.iter().enumerate() {
            if let Some(&block) = starts.get(&item.statement) {
                if let Some((before, part)) = open
                    && part == item.part
                    && let Some(slot) = goes_on.get_mut(before)
                {
                    *slot = Some(block);
                }
                current = Some(block);
            }
            let Some(block) = current else { continue };
            let mut taken: Vec<usize> = Vec::new();
            let mut continues = true;
            match item.step {
                Step::Code(flow) => {
                    if let Some(instruction) = instruction(module, item) {
                        // An indirect jump is assumed to use the table whose label was mentioned last.
                        table = words(instruction.operands)
                            .filter_map(|word| data.tables.get(word))
                            .find(|entries| entries.iter().any(|entry| places.contains_key(entry)))
                            .or(table);
                    }
                    match flow {
                        Flow::Next => {}
                        Flow::Call => taken.extend(item.pad.and_then(|pad| target(pad, index))),
                        Flow::Branch(name) => taken.extend(target(name, index)),
                        Flow::Jump(name) => {
                            continues = false;
                            taken.extend(target(name, index));
                        }
                        Flow::Indirect
                            if instruction(module, item)
                                .is_some_and(|i| backend.counts_from_itself(&i)) =>
                        {
                            continues = false;
                            let names = table_after(module, items, index);
                            taken.extend(names.into_iter().filter_map(|name| target(name, index)));
                        }
                        Flow::Indirect => {
                            continues = false;
                            let names = table.map(Vec::as_slice).unwrap_or_default();
                            taken.extend(names.iter().filter_map(|name| target(name, index)));
                        }
                        Flow::Leave => continues = false,
                    }
                }
                Step::Inline => {
                    let names = item.goes_to.iter().filter(|name| !is_number(name));
                    taken.extend(names.filter_map(|name| target(name, index)));
                }
                Step::Label(_) | Step::Data => continue,
            }
            open = continues.then_some((block, item.part));
            if let Some(block) = self.blocks.get_mut(block) {
                block.successors.extend(taken);
            }
        }
        for (block, next) in self.blocks.iter_mut().zip(goes_on) {
            let mut successors: Vec<usize> = Vec::with_capacity(2);
            for successor in next.into_iter().chain(block.successors.drain(..)) {
                if !successors.contains(&successor) {
                    successors.push(successor);
                }
            }
            block.successors = successors;
        }
    }
}
