//! Finds all edges that the code of a function may take between its blocks. What is not known becomes more edges, never
//! fewer, so that the blocks that [`super::prune`] infers are right.
use super::backend::{Backend, Flow};
use super::blocks::{Block, Item, Places, Step, instruction, resolve, table_after};
use super::landing::{DataFacts, is_number};
use super::prune::FlowBlock;
use crate::asm::{Instruction, Kind, Module, ObjectFormat, words};
use rustc_hash::FxHashSet;

/// Functions of the C and C++ libraries that never return.
const NEVER_RETURN: [&[u8]; 21] = [
    b"abort",
    b"exit",
    b"_exit",
    b"_Exit",
    b"quick_exit",
    b"pthread_exit",
    b"longjmp",
    b"_longjmp",
    b"siglongjmp",
    b"__longjmp_chk",
    b"__assert_fail",
    b"__stack_chk_fail",
    b"__fortify_fail",
    b"__chk_fail",
    b"__cxa_throw",
    b"__cxa_rethrow",
    b"__cxa_bad_cast",
    b"__clang_call_terminate",
    b"_Unwind_Resume",
    b"_ZSt9terminatev",
    b"_ZSt10unexpectedv",
];

/// What the calls of a file tell about the functions that they call.
#[derive(Debug)]
pub(super) struct Callees<'a> {
    backend: &'static dyn Backend,
    /// The functions after one of whose calls the code goes on at once. Compilers leave out what follows a call that does
    /// not return, so these return.
    returning: FxHashSet<&'a [u8]>,
}

impl<'a> Callees<'a> {
    pub(super) fn gather(
        module: &Module<'a>,
        data: &DataFacts<'a>,
        backend: &'static dyn Backend,
    ) -> Self {
        let mut targets: FxHashSet<&[u8]> = data.regions.values().map(|it| it.pad).collect();
        for statement in &module.statements {
            if let Kind::Instruction(instruction) = statement.kind
                && backend.flow(&instruction) != Flow::Call
            {
                targets.extend(words(instruction.operands));
            }
        }
        let mut returning = FxHashSet::default();
        // The function that the last instruction calls, and the section of the call.
        let mut called = None;
        for statement in &module.statements {
            match statement.kind {
                Kind::Instruction(instruction) => {
                    let flow = backend.flow(&instruction);
                    // Compilers put these where control never comes.
                    let is_filler = backend.is_filler(&instruction);
                    if let Some((name, section)) = called.take()
                        && section == statement.section
                        && !is_filler
                    {
                        returning.insert(name);
                    }
                    let is_call = flow == Flow::Call && !backend.is_conditional(&instruction);
                    if is_call && !statement.context.inline {
                        let name = words(instruction.operands).next();
                        called = name.map(|name| (name, statement.section));
                    }
                }
                Kind::Label(name) => {
                    let is_number = name.iter().all(u8::is_ascii_digit);
                    if is_number || targets.contains(name) || data.referenced.contains(name) {
                        called = None;
                    }
                }
                Kind::Directive(directive)
                    if directive.name == b".cfi_endproc" || directive.name == b".size" =>
                {
                    called = None;
                }
                _ => {}
            }
        }
        Callees { backend, returning }
    }

    /// Whether a call of this function returns; `None` if it is not known.
    fn returns(&self, name: &[u8]) -> Option<bool> {
        let in_c = match self.backend.syntax().format {
            ObjectFormat::Elf => name,
            ObjectFormat::MachO => name.strip_prefix(b"_").unwrap_or(name),
        };
        if NEVER_RETURN.contains(&in_c) {
            Some(false)
        } else {
            self.returning.contains(name).then_some(true)
        }
    }
}

/// Returns the edges of each block. `block_at` has for each item the block that begins there or next in the same part.
pub(super) fn find<'a>(
    module: &Module<'a>,
    items: &[Item<'a>],
    places: &Places<'a>,
    block_at: &[Option<usize>],
    blocks: &[Block],
    data: &DataFacts<'a>,
    callees: &Callees<'a>,
) -> Vec<FlowBlock> {
    let backend = callees.backend;
    let finder = Finder {
        module,
        items,
        places,
        block_at,
        data,
        starts: blocks.iter().map(|block| block.statement).collect(),
    };
    let taken = finder.addresses_taken();
    let mut ways: Vec<FlowBlock> = blocks
        .iter()
        .map(|block| FlowBlock {
            part: block.part,
            ..FlowBlock::default()
        })
        .collect();
    let mut listed: FxHashSet<usize> = FxHashSet::default();
    // The last block, if control may continue after it.
    let mut open: Option<usize> = None;
    let mut current: Option<usize> = None;
    let mut tables: Vec<&Vec<&'a [u8]>> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let begun = finder.begins(item).then(|| finder.block(index)).flatten();
        let is_other_part = |block: usize| ways.get(block).is_some_and(|it| it.part != item.part);
        if open.is_some_and(is_other_part)
            && let Some(way) = open.take().and_then(|block| ways.get_mut(block))
        {
            way.leaves = true;
        }
        if let Some(begun) = begun {
            if let Some(way) = open.take().and_then(|block| ways.get_mut(block)) {
                way.successors.push(begun);
            }
            current = Some(begun);
            tables.clear();
        }
        let Some((here, way)) = current.and_then(|here| Some((here, ways.get_mut(here)?))) else {
            continue;
        };
        let mut continues = true;
        match item.step {
            Step::Code(flow) => {
                tables.extend(finder.tables(item));
                match flow {
                    Flow::Next => {}
                    Flow::Call => {
                        way.calls = true;
                        way.successors
                            .extend(item.pad.and_then(|pad| finder.target(pad, index)));
                        let returns = callees.returns(finder.first_word(item));
                        if returns == Some(false)
                            && finder.is(item, |it| backend.is_conditional(it))
                        {
                            way.leaves = true;
                        } else if finder.ends_block(index) {
                            continues = returns != Some(false);
                            way.leaves |= returns != Some(true);
                        }
                    }
                    Flow::Branch(name) | Flow::Jump(name) => {
                        continues = flow == Flow::Branch(name);
                        match finder.target(name, index) {
                            Some(block) => way.successors.push(block),
                            // A tail call.
                            None => way.leaves = true,
                        }
                    }
                    Flow::Indirect => {
                        continues = false;
                        let from_itself = finder.is(item, |it| backend.counts_from_itself(it));
                        let known: Vec<usize> = if from_itself {
                            let names = table_after(module, items, index).into_iter();
                            names
                                .filter_map(|name| finder.target(name, index))
                                .collect()
                        } else {
                            let names = tables.iter().copied().flatten();
                            names
                                .filter_map(|name| finder.target(name, index))
                                .collect()
                        };
                        // Of a table of branches, each branch adds its target.
                        let is_jump = |it: &Item<'_>| matches!(it.step, Step::Code(Flow::Jump(_)));
                        let of_branches = from_itself && items.get(index + 1).is_some_and(is_jump);
                        if known.is_empty() && !of_branches {
                            // The jump leaves the function, or an earlier block has computed its target.
                            way.leaves = true;
                            way.successors.extend(&taken);
                        }
                        listed.extend(&known);
                        way.successors.extend(known);
                    }
                    Flow::Leave => {
                        continues = false;
                        way.leaves = true;
                    }
                }
            }
            Step::Inline => {
                way.calls = true;
                let names = item.goes_to.iter().filter(|name| !is_number(name));
                way.successors
                    .extend(names.filter_map(|name| finder.target(name, index)));
            }
            Step::Label(_) | Step::Data => continue,
        }
        open = continues.then_some(here);
    }
    if let Some(way) = open.and_then(|last| ways.get_mut(last)) {
        way.leaves = true;
    }
    for block in taken {
        if let Some(way) = ways.get_mut(block) {
            way.enters |= !listed.contains(&block);
        }
    }
    ways
}

struct Finder<'f, 'a> {
    module: &'f Module<'a>,
    items: &'f [Item<'a>],
    places: &'f Places<'a>,
    block_at: &'f [Option<usize>],
    data: &'f DataFacts<'a>,
    /// The statements at which blocks begin.
    starts: FxHashSet<usize>,
}

impl<'f, 'a> Finder<'f, 'a> {
    fn begins(&self, item: &Item<'_>) -> bool {
        self.starts.contains(&item.statement)
    }

    fn block(&self, item: usize) -> Option<usize> {
        self.block_at.get(item).copied().flatten()
    }

    fn target(&self, name: &[u8], from: usize) -> Option<usize> {
        resolve(self.places, name, from).and_then(|item| self.block(item))
    }

    fn first_word(&self, item: &Item<'a>) -> &'a [u8] {
        instruction(self.module, item)
            .and_then(|instruction| words(instruction.operands).next())
            .unwrap_or_default()
    }

    fn is(&self, item: &Item<'a>, what: impl Fn(&Instruction<'a>) -> bool) -> bool {
        instruction(self.module, item).is_some_and(|it| what(&it))
    }

    /// Whether the code after an item is not of the same block.
    fn ends_block(&self, index: usize) -> bool {
        let part = self.items.get(index).map(|item| item.part);
        let mut after = self.items.get(index + 1..).unwrap_or_default().iter();
        after
            .find(|item| matches!(item.step, Step::Code(_) | Step::Inline))
            .is_none_or(|next| self.begins(next) || Some(next.part) != part)
    }

    /// The tables with labels of this function that an instruction mentions.
    fn tables(&self, item: &Item<'a>) -> impl Iterator<Item = &'f Vec<&'a [u8]>> + use<'f, 'a> {
        let (data, places) = (self.data, self.places);
        instruction(self.module, item)
            .into_iter()
            .flat_map(|instruction| words(instruction.operands))
            .filter_map(move |word| data.tables.get(word))
            .filter(move |entries| entries.iter().any(|entry| places.contains_key(entry)))
    }

    /// The blocks whose address the program can have: their labels stand in its data, or in instructions that are no
    /// branches.
    fn addresses_taken(&self) -> FxHashSet<usize> {
        let mut taken = FxHashSet::default();
        for (index, item) in self.items.iter().enumerate() {
            match item.step {
                Step::Label(name) if self.data.referenced.contains(name) => {
                    taken.extend(self.block(index));
                }
                Step::Code(Flow::Next | Flow::Call) => {
                    let operands = instruction(self.module, item).map(|it| it.operands);
                    let words = operands.into_iter().flat_map(words);
                    taken.extend(words.filter_map(|word| self.target(word, index)));
                }
                _ => {}
            }
        }
        taken
    }
}
