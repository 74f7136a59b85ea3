//! Adds up raw heap dumps by call stack.
use super::{RawBlock, RawDump, RawMemProf, Segment};
use crate::id_type;
use crate::ids::BuildId;
use crate::index_vec::IndexVec;
use crate::llvm_order::dense_map_order;
use crate::memprof::profile::add_histogram;
use crate::memprof::{AddressId, MemInfoBlock, Start};
use crate::{Error, ErrorKind, Result, Structure};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::Arc;

/// The program, library or mapping that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// A module with a build id. The address of a location in the module is the address that the linker assigned.
    Linked {
        /// The build id of the module.
        build_id: BuildId,
    },
    /// A mapping without build id, as in raw versions 1 and 2. The address of a location in the mapping is the offset
    /// of the location in the mapped file.
    Mapping {
        /// The index of the mapping in its process. Mapping 0 is the program itself.
        number: usize,
        /// The offset of the mapping in the mapped file.
        file_offset: u64,
        /// The size of the mapping in bytes.
        len: u64,
        /// The start address of the mapping if it is below 4 GiB, otherwise `None`. A program that is mapped below 4
        /// GiB was loaded at the address that the linker assigned.
        fixed: Option<u64>,
    },
    /// The address is outside of all mappings and belongs to no module.
    None,
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Module::Linked { build_id } => write!(f, "build id {build_id}"),
            Module::Mapping { number: 0, .. } => f.write_str("the program's mapping"),
            Module::Mapping {
                number,
                file_offset,
                len,
                ..
            } => write!(
                f,
                "mapping {number} (offset {file_offset:#x} of its file, {len:#x} bytes)"
            ),
            Module::None => f.write_str("no module"),
        }
    }
}

id_type! {
    /// The index of a module in [`Modules`].
    pub struct ModuleId of "modules of heap dumps";
}

id_type! {
    struct StackId of "call stacks of heap dumps";
}

id_type! {
    struct ContextId of "contexts of heap dumps";
}

/// The modules that the addresses of allocation contexts refer to.
pub type Modules = IndexVec<ModuleId, Module>;

/// The addresses in allocation contexts. Each is a pair: a module, and an address in this module.
pub type Addresses = IndexVec<AddressId, (ModuleId, u64)>;

/// A fault in one or several heap dumps.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The reader's error that describes the fault.
    pub error: Error,
    /// The number of blocks of the dump that were added before the fault was found.
    pub kept: usize,
    /// Whether a part of the dump was left out because of the fault. It is false if two dumps contradict each other:
    /// such a contradiction is reported, but nothing is left out.
    pub lost: bool,
}

/// The stack ids that two dumps of one file use for different call stacks.
#[derive(Debug, Default)]
struct Clashes {
    count: u64,
    /// The first stack id that two dumps use for different call stacks, and the offset of the later of these dumps;
    /// `None` if there is no such id.
    first: Option<(u64, u64)>,
}

impl Clashes {
    fn push(&mut self, id: u64, dump: u64) {
        self.count += 1;
        self.first.get_or_insert((id, dump));
    }

    fn error(&self) -> Option<Error> {
        let (id, dump) = self.first?;
        let problem = match self.count {
            1 => "the same stack id is used for two different stacks".to_owned(),
            count => format!("{count} stack ids are each used for two different stacks"),
        };
        let error = ErrorKind::Malformed.error(problem)
        .within(Structure::DumpAt(dump))
        .within(Structure::RawMemProf)
        .with_hint("each block was added with the stack from its own dump; if the dumps are of several processes, save the dumps of each process in a separate file");
        Some(match self.count {
            1 => error.found(format_args!("stack id {id}")),
            _ => error.found(format_args!("stack id {id} and others")),
        })
    }
}

/// The allocation contexts of one or many heap dumps.
#[derive(Clone, Debug, Default)]
pub struct RawContexts {
    modules: Modules,
    module_ids: FxHashMap<Module, ModuleId>,
    addresses: Addresses,
    address_ids: FxHashMap<(ModuleId, u64), AddressId>,
    /// The addresses in the order in which LLVM symbolises them.
    symbolize_order: Vec<AddressId>,
    ordered: FxHashSet<AddressId>,
    stacks: IndexVec<StackId, Arc<[AddressId]>>,
    stack_ids: FxHashMap<Arc<[AddressId]>, StackId>,
    contexts: IndexVec<ContextId, Context>,
    /// For each call stack, its allocation context; `None` if nothing was allocated with this call stack.
    context_of: IndexVec<StackId, Option<ContextId>>,
    dumps: usize,
    newest_version: u32,
}

#[derive(Clone, Debug)]
struct Context {
    stack: StackId,
    block: MemInfoBlock,
    start: Start,
    histogram: Vec<u64>,
}

/// An allocation context of heap dumps: a call stack with its memory statistics.
#[derive(Clone, Copy, Debug)]
pub struct ContextRef<'a> {
    /// The call stack, from the allocation function to its outermost caller.
    pub addresses: &'a [AddressId],
    /// The memory statistics of the context.
    pub block: &'a MemInfoBlock,
    /// The access histogram: the number of accesses to each eight bytes of the allocations.
    pub histogram: &'a [u64],
}

impl RawContexts {
    /// Adds all heap dumps of a file. For each fault in a dump, `tell` is called with the fault, and the other dumps
    /// are still added.
    pub fn add(&mut self, profile: &RawMemProf<'_>, mut tell: impl FnMut(Skipped)) {
        // All dumps of a file share their stack ids, because the ids belong to the process. A later dump may leave out
        // a call stack that an earlier dump contains.
        let mut stacks = FxHashMap::default();
        let mut clashes = Clashes::default();
        for dump in profile.dumps() {
            let mut kept = 0;
            if let Err(error) = self.add_dump(dump, &mut stacks, &mut clashes, &mut kept) {
                tell(Skipped {
                    error,
                    kept,
                    lost: true,
                });
            }
        }
        if let Some(error) = clashes.error() {
            tell(Skipped {
                error,
                kept: 0,
                lost: false,
            });
        }
        if let Some(error) = profile.damage() {
            tell(Skipped {
                error: error.clone(),
                kept: 0,
                lost: true,
            });
        }
    }

    fn add_dump(
        &mut self,
        dump: &RawDump<'_>,
        stacks: &mut FxHashMap<u64, StackId>,
        clashes: &mut Clashes,
        kept: &mut usize,
    ) -> Result<()> {
        let segments = Segments::new(self, dump)?;
        let mut ids = Vec::new();
        let mut known: FxHashMap<u64, StackId> = FxHashMap::default();
        let mut scratch = Vec::new();
        let mut damage = None;
        for stack in dump.stacks()? {
            let (id, pcs) = match stack {
                Ok(stack) => stack,
                Err(error) => {
                    damage = Some(error);
                    break;
                }
            };
            scratch.clear();
            for &pc in pcs {
                let pc = u64::from_le_bytes(pc);
                let (module, address) = segments.place(pc);
                scratch.push(self.address(module, address));
            }
            let stack = self.stack(&scratch);
            if stacks
                .insert(id, stack)
                .is_some_and(|before| before != stack)
            {
                clashes.push(id, dump.offset());
            }
            if known.insert(id, stack).is_none() {
                ids.push(id);
            }
        }
        self.order_addresses(&ids, &known);
        self.dumps += 1;
        self.newest_version = self.newest_version.max(dump.version().number());
        for block in dump.blocks()? {
            let RawBlock {
                stack_id,
                mut block,
                histogram,
            } = block?;
            block.compute_densities();
            let Some(&stack) = stacks.get(&stack_id) else {
                damage.get_or_insert_with(|| {
                    ErrorKind::Malformed
                        .error("a block names a stack that is not in the dump")
                        .within(Structure::DumpAt(dump.offset()))
                        .within(Structure::RawMemProf)
                        .found(format_args!("stack id {stack_id}"))
                        .llvm_detail(format!(
                            "memprof callstack record does not contain id: {stack_id}"
                        ))
                });
                continue;
            };
            *kept += 1;
            let start = Start::of(&block);
            self.add_context(stack, &block, start, histogram);
        }
        damage.map_or(Ok(()), Err)
    }

    /// Records the order in which LLVM symbolises new addresses. This order depends on LLVM's hash map from stack ids
    /// to call stacks.
    fn order_addresses(&mut self, ids: &[u64], stacks: &FxHashMap<u64, StackId>) {
        let stack_of = |id: &u64| stacks.get(id).copied();
        let is_new = |stack: StackId| {
            let mut addresses = self.stacks[stack].iter();
            addresses.any(|address| !self.ordered.contains(address))
        };
        if !ids.iter().filter_map(stack_of).any(is_new) {
            return;
        }
        for position in dense_map_order(ids) {
            let Some(stack) = ids.get(position as usize).and_then(stack_of) else {
                continue;
            };
            for &address in self.stacks[stack].iter() {
                if self.ordered.insert(address) {
                    self.symbolize_order.push(address);
                }
            }
        }
    }

    fn add_context(
        &mut self,
        stack: StackId,
        block: &MemInfoBlock,
        start: Start,
        histogram: Vec<u64>,
    ) {
        if let Some(context) = self.context_of[stack] {
            let context = &mut self.contexts[context];
            context.block.add_later_from(block, &start);
            add_histogram(&mut context.histogram, &histogram);
            return;
        }
        self.context_of[stack] = Some(self.contexts.push(Context {
            stack,
            block: *block,
            start,
            histogram,
        }));
    }

    fn module(&mut self, module: Module) -> ModuleId {
        *self
            .module_ids
            .entry(module.clone())
            .or_insert_with(|| self.modules.push(module))
    }

    fn address(&mut self, module: ModuleId, address: u64) -> AddressId {
        let key = (module, address);
        *self
            .address_ids
            .entry(key)
            .or_insert_with(|| self.addresses.push(key))
    }

    fn stack(&mut self, addresses: &[AddressId]) -> StackId {
        if let Some(&stack) = self.stack_ids.get(addresses) {
            return stack;
        }
        let addresses: Arc<[AddressId]> = addresses.into();
        let stack = self.stacks.push(Arc::clone(&addresses));
        self.stack_ids.insert(addresses, stack);
        self.context_of.push(None);
        stack
    }

    /// Adds the contexts of later inputs. The result does not depend on the grouping: the contexts of the second and
    /// the third input may be joined before they are added to those of the first.
    pub fn absorb(&mut self, later: RawContexts) {
        if self.modules.is_empty() && self.dumps == 0 {
            *self = later;
            return;
        }
        // These tables map the module, address and stack ids of `later` to ids in `self`.
        let modules: IndexVec<ModuleId, ModuleId> = later
            .modules
            .into_iter()
            .map(|module| self.module(module))
            .collect();
        let addresses: IndexVec<AddressId, AddressId> = later
            .addresses
            .iter()
            .map(|&(module, address)| self.address(modules[module], address))
            .collect();
        let mut scratch = Vec::new();
        let mut stacks: IndexVec<StackId, StackId> = IndexVec::with_capacity(later.stacks.len());
        for stack in &later.stacks {
            scratch.clear();
            scratch.extend(stack.iter().map(|&address| addresses[address]));
            stacks.push(self.stack(&scratch));
        }
        for address in later.symbolize_order {
            let address = addresses[address];
            if self.ordered.insert(address) {
                self.symbolize_order.push(address);
            }
        }
        for context in later.contexts {
            let stack = stacks[context.stack];
            self.add_context(stack, &context.block, context.start, context.histogram);
        }
        self.dumps += later.dumps;
        self.newest_version = self.newest_version.max(later.newest_version);
    }

    /// Adds the contexts of other inputs so that the order of inputs does not matter ([`MemInfoBlock::add_unordered`]).
    pub fn absorb_unordered(&mut self, other: &RawContexts) {
        let addresses: IndexVec<AddressId, AddressId> = (other.addresses.iter())
            .map(|&(module, address)| self.add_address(&other.modules[module], address))
            .collect();
        for (stack, allocated) in other.all() {
            let stack: Vec<AddressId> = stack.iter().map(|&id| addresses[id]).collect();
            self.add_unordered(&stack, allocated);
        }
        self.add_dumps(other.dumps, other.newest_version);
    }

    /// The same contexts with modules, addresses and call stacks in ascending order. Call stacks are compared from their
    /// outermost caller on.
    #[must_use]
    pub fn sorted(&self) -> RawContexts {
        let mut sorted = RawContexts::default();
        let mut addresses: Vec<AddressId> = self.addresses.ids().collect();
        addresses.sort_by_key(|&id| {
            let (module, address) = self.addresses[id];
            (&self.modules[module], address)
        });
        let mut ids: IndexVec<AddressId, AddressId> = self.addresses.ids().collect();
        for id in addresses {
            let (module, address) = self.addresses[id];
            ids[id] = sorted.add_address(&self.modules[module], address);
        }
        let renumbered = self.all().map(|(stack, allocated)| {
            let stack: Vec<AddressId> = stack.iter().map(|&id| ids[id]).collect();
            (stack, allocated)
        });
        let mut stacks: Vec<_> = renumbered.collect();
        stacks.sort_unstable_by(|(a, _), (b, _)| a.iter().rev().cmp(b.iter().rev()));
        for (stack, allocated) in stacks {
            sorted.add_unordered(&stack, allocated);
        }
        sorted.add_dumps(self.dumps, self.newest_version);
        sorted
    }

    /// Adds an address, if it is new. `address` counts from the start of the module, as the linker assigned it.
    pub fn add_address(&mut self, module: &Module, address: u64) -> AddressId {
        let module = match self.module_ids.get(module) {
            Some(&id) => id,
            None => self.module(module.clone()),
        };
        let id = self.address(module, address);
        if self.ordered.insert(id) {
            self.symbolize_order.push(id);
        }
        id
    }

    /// Adds a call stack of addresses of these contexts, from the allocation function to its outermost caller, and the
    /// statistics and the access histogram of what was allocated with it.
    ///
    /// # Panics
    /// If an address is not one of these contexts.
    pub fn add_unordered(
        &mut self,
        addresses: &[AddressId],
        allocated: Option<(&MemInfoBlock, &[u64])>,
    ) {
        let stack = self.stack(addresses);
        let Some((block, histogram)) = allocated else {
            return;
        };
        if let Some(context) = self.context_of[stack] {
            let context = &mut self.contexts[context];
            context.block.add_unordered(block);
            add_histogram(&mut context.histogram, histogram);
            return;
        }
        self.add_context(stack, block, Start::of(block), histogram.to_vec());
    }

    /// Counts dumps whose contexts are added one by one, and the newest raw version among them.
    pub fn add_dumps(&mut self, dumps: usize, newest_version: u32) {
        self.dumps = self.dumps.saturating_add(dumps);
        self.newest_version = self.newest_version.max(newest_version);
    }

    /// The modules that the addresses refer to.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// All addresses in the allocation contexts.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// All addresses in the order in which LLVM symbolises them. The frames in LLVM's frame tables have this order.
    pub fn symbolize_order(&self) -> &[AddressId] {
        &self.symbolize_order
    }

    /// The allocation contexts, in the order in which they were first seen.
    pub fn contexts(&self) -> impl ExactSizeIterator<Item = ContextRef<'_>> {
        self.contexts.iter().map(|context| ContextRef {
            addresses: &self.stacks[context.stack],
            block: &context.block,
            histogram: &context.histogram,
        })
    }

    /// All call stacks, each with the statistics and the access histogram of what was allocated with it.
    pub fn all(
        &self,
    ) -> impl ExactSizeIterator<Item = (&[AddressId], Option<(&MemInfoBlock, &[u64])>)> {
        self.stacks.ids().map(|stack| {
            let context = self.context_of[stack].map(|id| &self.contexts[id]);
            let allocated = context.map(|one| (&one.block, one.histogram.as_slice()));
            (&*self.stacks[stack], allocated)
        })
    }

    /// All call stacks, including those with which nothing was allocated.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = &[AddressId]> {
        self.stacks.iter().map(AsRef::as_ref)
    }

    /// The number of heap dumps that were added.
    pub fn dumps(&self) -> usize {
        self.dumps
    }

    /// The newest raw version among the heap dumps; 0 if there are none.
    pub fn newest_version(&self) -> u32 {
        self.newest_version
    }
}

struct Segments {
    sorted: Vec<(u64, u64, ModuleId, Base)>,
    none: ModuleId,
}

/// Two numbers that convert an address in the process to an address in the module: address − `minus` + `plus`.
#[derive(Clone, Copy)]
struct Base {
    /// The number to subtract from an address in the process.
    minus: u64,
    /// The number to add after `minus` was subtracted.
    plus: u64,
}

impl Segments {
    fn new(contexts: &mut RawContexts, dump: &RawDump<'_>) -> Result<Self> {
        let mut sorted = Vec::new();
        for (number, segment) in dump.segments()?.into_iter().enumerate() {
            let Segment {
                start, end, offset, ..
            } = segment;
            let linked = dump.version().has_build_id_size();
            let base = if linked {
                Base {
                    minus: offset,
                    plus: 0,
                }
            } else {
                Base {
                    minus: start,
                    plus: offset,
                }
            };
            let module = if segment.build_id.0.is_empty() {
                Module::Mapping {
                    number,
                    file_offset: if linked {
                        start.wrapping_sub(offset)
                    } else {
                        offset
                    },
                    len: end.saturating_sub(start),
                    fixed: Some(start).filter(|&start| start < 1 << 32),
                }
            } else {
                Module::Linked {
                    build_id: segment.build_id,
                }
            };
            sorted.push((start, end, contexts.module(module), base));
        }
        sorted.sort_unstable_by_key(|&(start, ..)| start);
        Ok(Segments {
            sorted,
            none: contexts.module(Module::None),
        })
    }

    /// Returns the module of an address, and the address in that module. As in LLVM
    /// (`RawMemProfReader::getModuleOffset`), the range of a mapping excludes its first address and includes the
    /// address after its last byte.
    fn place(&self, pc: u64) -> (ModuleId, u64) {
        let after = self.sorted.partition_point(|&(start, ..)| start < pc);
        match after.checked_sub(1).and_then(|at| self.sorted.get(at)) {
            Some(&(_, end, module, base)) if pc <= end => {
                (module, pc.wrapping_sub(base.minus).wrapping_add(base.plus))
            }
            _ => (self.none, pc),
        }
    }
}
