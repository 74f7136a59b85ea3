//! Decides which text is inserted where in each function.
use super::backend::{Backend, BlockProbes, Sequence, Site};
use super::blocks::{self, Graph};
use super::edits::Edits;
use super::entry;
use super::functions::{Function, Functions, SkipReason, Skipped};
use super::labels::Labels;
use super::landing::DataFacts;
use super::options::{Counter, Mode, Options};
use super::prune::{self, Choice};
use super::ways::Callees;
use crate::asm::{Kind, Module, ObjectFormat, SectionId};
use profkit_abi::mip::mode;
use profkit_data::ids::NameRef;
use profkit_data::mip::Inference;

#[derive(Debug)]
pub(super) struct Planned<'a> {
    pub(super) name: &'a [u8],
    pub(super) section: SectionId,
    pub(super) labels: Labels,
    pub(super) end: String,
    pub(super) signature: u32,
    pub(super) flags: u16,
    /// The number of blocks other than the entry.
    pub(super) blocks: usize,
    /// How blocks without a byte in the record are inferred; `None` if all have one.
    pub(super) inference: Option<Inference>,
    /// Rarely executed code of the entry probe, as lines after all other code of the section.
    pub(super) cold: Option<String>,
}

impl Planned<'_> {
    /// The number of blocks that have a byte in the record.
    pub(super) fn recorded(&self) -> usize {
        self.inference
            .as_ref()
            .map_or(self.blocks, Inference::recorded)
    }
}

/// What is inserted for the blocks of a function's main code or of one of its parts.
#[derive(Default)]
struct PartBlocks {
    /// For each block, the statement that its label stands before.
    labels: Vec<usize>,
    probes: BlockProbes,
    inference: Option<Inference>,
}

#[derive(Debug)]
pub(super) struct Planner<'m, 'a> {
    module: &'m Module<'a>,
    found: &'m Functions<'a>,
    data: &'m DataFacts<'a>,
    callees: &'m Callees<'a>,
    backend: &'static dyn Backend,
    options: &'m Options,
    source: &'m [u8],
    pub(super) planned: Vec<Planned<'a>>,
    pub(super) edits: Edits,
    pub(super) skipped: Vec<Skipped>,
    pub(super) functions: usize,
}

struct Range<'a> {
    name: &'a [u8],
    label: usize,
    end: usize,
    sized: bool,
    end_label: Option<&'a [u8]>,
    section: SectionId,
}

impl<'m, 'a> Planner<'m, 'a> {
    pub(super) fn new(
        module: &'m Module<'a>,
        found: &'m Functions<'a>,
        data: &'m DataFacts<'a>,
        callees: &'m Callees<'a>,
        backend: &'static dyn Backend,
        options: &'m Options,
        source: &'m [u8],
    ) -> Self {
        Planner {
            module,
            found,
            data,
            callees,
            backend,
            options,
            source,
            planned: Vec::new(),
            edits: Edits::default(),
            skipped: Vec::new(),
            functions: 0,
        }
    }

    pub(super) fn function(&mut self, function: &'m Function<'a>) {
        if let Err(reason) = self.try_function(function) {
            self.skip(function, reason);
        }
    }

    fn skip(&mut self, function: &Function<'a>, reason: SkipReason) {
        let label = self.module.statements.get(function.label);
        self.skipped.push(Skipped {
            name: String::from_utf8_lossy(function.name).into_owned(),
            line: label.map_or(0, |label| label.line),
            reason,
        });
    }

    fn try_function(&mut self, function: &'m Function<'a>) -> Result<(), SkipReason> {
        if let Some(reason) = &function.unfit {
            return Err(reason.clone());
        }
        selects(self.options, function, self.module, self.source)?;
        let entry = entry::place(
            self.module,
            self.found,
            function,
            self.backend,
            self.options,
        )?;
        let labels = self.labels(0);
        let sequence = self
            .backend
            .entry(&self.site(function, labels, entry))
            .map_err(SkipReason::Target)?;
        // All block probes are made before anything is inserted, so a function gets either all of them or none.
        let graph = blocks::find(self.module, function, self.data, self.callees, self.backend);
        let signature = graph.as_ref().map_or(0, Graph::signature);
        let mut probes = Vec::new();
        if self.options.blocks {
            match self.block_probes(function, &graph, entry) {
                Ok(all) => probes = all,
                Err(reason) => self.skip(function, SkipReason::Blocks(reason)),
            }
        }
        let mut probes = probes.into_iter();
        let blocks = probes.next();
        let flags = match blocks {
            Some(_) => self.options.flags(),
            None => self.options.flags() & !mode::BLOCK_COVERAGE,
        };
        let Sequence { inline, cold } = sequence;
        self.functions += 1;
        let inference = blocks.as_ref().and_then(|it| it.inference.as_ref());
        if inference.is_none_or(|inference| inference.list(0).is_empty()) {
            self.insert(entry, &inline);
        }
        self.range(
            Range {
                name: function.name,
                label: function.label,
                end: function.end,
                sized: function.sized,
                end_label: function.end_label,
                section: function.section,
            },
            labels,
            signature,
            flags,
            blocks.unwrap_or_default(),
            cold,
        );
        for (part, blocks) in function.parts.iter().zip(probes) {
            let labels = self.labels(0);
            self.range(
                Range {
                    name: part.name,
                    label: part.label,
                    end: part.end,
                    sized: part.sized,
                    end_label: part.end_label,
                    section: part.section,
                },
                labels,
                signature,
                flags | mode::PART,
                blocks,
                None,
            );
        }
        Ok(())
    }

    /// The labels of a map entry before which `ahead` others will be added.
    fn labels(&self, ahead: usize) -> Labels {
        Labels {
            prefix: self.backend.syntax().local_prefix,
            data_prefix: self.backend.syntax().data_prefix,
            index: self.planned.len() + ahead,
        }
    }

    fn site(&self, function: &'m Function<'a>, labels: Labels, statement: usize) -> Site<'m, 'a> {
        Site {
            module: self.module,
            function,
            labels,
            statement,
            options: self.options,
        }
    }

    /// Makes the block probes of a function's main code and of each of its parts, in this order.
    fn block_probes(
        &self,
        function: &'m Function<'a>,
        graph: &Result<Graph, &'static str>,
        entry: usize,
    ) -> Result<Vec<PartBlocks>, String> {
        if let Some(list) = &self.options.ignore
            && list.has(self.source, function.name, "block")
        {
            return Err("the ignore list names the function".to_owned());
        }
        let graph = graph.as_ref().map_err(|reason| (*reason).to_owned())?;
        if let Some(reason) = graph.fixed {
            return Err(reason.to_owned());
        }
        let choices = if self.options.all_blocks {
            vec![Choice::Probe; graph.blocks.len()]
        } else {
            let entry_stays = self.options.mode != Mode::Function(Counter::Store);
            prune::choose(&graph.ways, entry_stays)
        };
        // The number of each block among those of its part. 0 is the entry, which parts do not have.
        let mut numbers = Vec::with_capacity(graph.blocks.len());
        let mut counts = vec![0u32; function.parts.len() + 1];
        for (index, block) in graph.blocks.iter().enumerate() {
            let is_entry = index == 0 && block.part == 0;
            // Nothing in a function may be executed before its entry probe.
            if block.part == 0 && block.statement < entry && !is_entry {
                return Err("a block of the function begins before the entry probe".to_owned());
            }
            let count = counts.get_mut(block.part);
            let count = count.ok_or("the list of the function's parts is too short")?;
            *count += u32::from(!is_entry);
            numbers.push(if is_entry { 0 } else { *count });
        }
        let mut made = Vec::with_capacity(counts.len());
        for part in 0..counts.len() {
            let mut blocks = PartBlocks::default();
            let mut starts = Vec::new();
            // The lists of inferred blocks, that of the entry first.
            let mut lists: Vec<Vec<u32>> = vec![Vec::new()];
            for ((block, choice), &number) in graph.blocks.iter().zip(&choices).zip(&numbers) {
                if block.part != part {
                    continue;
                }
                let list: Vec<u32> = match choice {
                    Choice::Probe => Vec::new(),
                    Choice::Inferred(list) => {
                        let list = list.iter().filter_map(|&from| numbers.get(from).copied());
                        list.collect()
                    }
                };
                match (number, lists.first_mut()) {
                    (0, Some(of_entry)) => *of_entry = list,
                    _ => {
                        blocks.labels.push(block.statement);
                        if list.is_empty() {
                            starts.push(block.statement);
                        }
                        lists.push(list);
                    }
                }
            }
            let site = self.site(function, self.labels(part), entry);
            blocks.probes = self.backend.blocks(&site, part, &starts)?;
            if lists.iter().any(|list| !list.is_empty()) {
                blocks.inference = Some(Inference::new(lists.iter().map(Vec::as_slice)));
            }
            made.push(blocks);
        }
        Ok(made)
    }

    fn insert(&mut self, statement: usize, inline: &str) {
        let separator = self.backend.syntax().separator;
        if let Some(before) = self.module.statements.get(statement) {
            self.edits
                .insert(before.start, format!("{inline}{separator} ").as_bytes());
        }
    }

    fn insert_label(&mut self, statement: usize, label: &str) {
        if let Some(before) = self.module.statements.get(statement) {
            self.edits
                .insert(before.start, format!("{label}: ").as_bytes());
        }
    }

    /// Inserts the stub at the end of its function, after the unwind information, without a line break. Mach-O has no
    /// subsections for it, and some branches cannot refer to another section.
    fn stub_after(&mut self, end: usize, stub: Option<String>) {
        let Some(stub) = stub else { return };
        let statement = |index: usize| self.module.statements.get(index);
        let is_end_of_unwind = |index: &usize| matches!(statement(*index).map(|s| s.kind), Some(Kind::Directive(d)) if d.name == b".cfi_endproc");
        let place = Some(end)
            .filter(is_end_of_unwind)
            .unwrap_or(end.saturating_sub(1));
        if let Some(place) = statement(place) {
            let separator = self.backend.syntax().separator;
            let mut lines: Vec<&str> = stub.lines().map(str::trim).collect();
            if place.context.intel {
                // Stubs have AT&T syntax. Only clang assembles Mach-O, and accepts only `.intel_syntax noprefix`.
                lines.insert(0, ".att_syntax prefix");
                lines.push(".intel_syntax noprefix");
            }
            let joined = lines.join(&format!("{separator} "));
            self.edits
                .insert(place.end, format!("{separator} {joined}").as_bytes());
        }
    }

    /// Inserts the labels and block probes of a function or part, and adds the record and the map entry.
    fn range(
        &mut self,
        range: Range<'a>,
        labels: Labels,
        signature: u32,
        flags: u16,
        blocks: PartBlocks,
        cold: Option<String>,
    ) {
        let statement = |index: usize| self.module.statements.get(index);
        if let Some(label) = statement(range.label) {
            self.edits
                .insert(label.end, format!(" {}:", labels.start()).as_bytes());
        }
        let end = match range.end_label {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => {
                let end = labels.end();
                if let Some(size) = statement(range.end).filter(|_| range.sized) {
                    self.edits.insert(size.start, format!("{end}: ").as_bytes());
                } else if let Some(last) = statement(range.end.saturating_sub(1)) {
                    let separator = self.backend.syntax().separator;
                    self.edits
                        .insert(last.end, format!("{separator} {end}:").as_bytes());
                }
                end
            }
        };
        let BlockProbes { probes, replaced } = blocks.probes;
        let mut probes = probes.into_iter();
        let count = blocks.labels.len();
        for (number, start) in blocks.labels.into_iter().enumerate() {
            let label = labels.block(number);
            let is_inferred = |it: &Inference| !it.list(number + 1).is_empty();
            if blocks.inference.as_ref().is_some_and(is_inferred) {
                self.insert_label(start, &label);
            } else if let Some((place, probe)) = probes.next() {
                self.insert(place, &format!("{label}: {probe}"));
            }
        }
        for (index, text) in replaced {
            if let Some(old) = statement(index) {
                self.edits.replace(old.start, old.end, text.as_bytes());
            }
        }
        let flags = match blocks.inference {
            Some(_) => flags | mode::INFERRED,
            None => flags,
        };
        let cold = match self.backend.syntax().format {
            ObjectFormat::Elf => cold,
            ObjectFormat::MachO => {
                self.stub_after(range.end, cold);
                None
            }
        };
        self.planned.push(Planned {
            name: range.name,
            section: range.section,
            labels,
            end,
            signature,
            flags,
            blocks: count,
            inference: blocks.inference,
            cold,
        });
    }
}

/// Why the options do not select a function: by its name, source file and size.
fn selects(
    options: &Options,
    function: &Function<'_>,
    module: &Module<'_>,
    source: &[u8],
) -> Result<(), SkipReason> {
    let category = match options.mode {
        Mode::Function(_) => "function",
        Mode::Calls { .. } => "calls",
    };
    if let Some(list) = &options.ignore
        && (list.has(source, function.name, "") || list.has(source, function.name, category))
    {
        return Err(SkipReason::Listed);
    }
    if let Some((groups, selected)) = options.group
        && groups > 1
        && NameRef::of(function.name).0 % groups != selected
    {
        return Err(SkipReason::OtherGroup);
    }
    if function.instructions(module).count() < options.min_instructions {
        return Err(SkipReason::Small);
    }
    Ok(())
}
