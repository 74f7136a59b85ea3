//! Frames for addresses that no debug info covers, so that people see all contexts of a dump.
use profkit_data::index_vec::IndexVec;
use profkit_data::memprof::{AddressId, Frame, FrameList, MemProfile, canonical_name, guid};
use profkit_merge::memprof::{Module, RawContexts};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// The functions of the C library and of the dynamic linker that start a program or a thread. As callers of a program's
/// own functions they say nothing.
const STARTERS: [&[u8]; 8] = [
    b"_start",
    b"__libc_start_main",
    b"__libc_start_main_impl",
    b"__libc_start_call_main",
    b"start_thread",
    b"clone",
    b"clone3",
    b"__clone3",
];

/// The name of the frame of a context whose call stack has no addresses.
const NO_STACK: &str = "(no call stack)";

/// What stands for the binary of an address outside of all mappings.
const UNKNOWN: &str = "unknown";

/// What is known about an address that no debug info covers.
pub(super) struct UnknownAddress<'a> {
    /// Whether the address is in an allocation function of the run-time library.
    pub is_runtime: bool,
    /// The symbol that contains the address.
    pub symbol: Option<&'a [u8]>,
    /// The binary that contains the address, if it was found.
    pub binary: Option<&'a Path>,
}

/// The addresses of each context that have frames for people.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// How many addresses of each context are shown; the others are further callers. Empty if all are shown.
    lengths: Vec<usize>,
    /// The address that stands for a context whose addresses have no frames.
    stand_ins: FxHashMap<usize, AddressId>,
    /// For each frame that comes from no debug info: the binary that contains it.
    pub binaries: FxHashMap<Frame, String>,
}

impl Shown {
    /// Gives frames to all addresses that no debug info covers, but those of the run-time library. `known` tells what is
    /// known about an address without frames.
    pub(super) fn add<'a>(
        contexts: &RawContexts,
        profile: &mut MemProfile,
        frames: &mut IndexVec<AddressId, FrameList>,
        known: impl Fn(AddressId) -> UnknownAddress<'a>,
    ) -> Self {
        let mut shown = Shown::default();
        let covered = |address: AddressId, frames: &IndexVec<AddressId, FrameList>| {
            !frames[address].is_empty()
        };
        // Addresses at which a program or a thread starts, and those that not even a symbol contains.
        let mut starters: FxHashSet<AddressId> = FxHashSet::default();
        let mut nameless: FxHashSet<AddressId> = FxHashSet::default();
        let mut mains: FxHashSet<AddressId> = FxHashSet::default();
        let main = guid(b"main");
        let innermost: FxHashSet<AddressId> = contexts
            .contexts()
            .filter_map(|context| match context.addresses {
                [first, _, ..] => Some(*first),
                _ => None,
            })
            .collect();
        for (address, &(module, offset)) in contexts.addresses().entries() {
            if covered(address, frames) {
                let own = frames[address].last();
                if own.is_some_and(|&own| profile.frames()[own].function == main) {
                    mains.insert(address);
                }
                continue;
            }
            let found = known(address);
            // The innermost address of a call stack is in the run-time library: in `malloc` or `operator new`.
            let is_innermost = found.symbol.is_none() && innermost.contains(&address);
            if found.is_runtime || is_innermost {
                continue;
            }
            match found.symbol {
                Some(b"main") => {
                    mains.insert(address);
                }
                Some(symbol) if STARTERS.contains(&symbol) => {
                    starters.insert(address);
                }
                Some(_) => {}
                None => {
                    nameless.insert(address);
                }
            }
            let module = &contexts.modules()[module];
            let frame = shown.frame(profile, module, offset, &found);
            frames[address].push(frame);
        }
        for (number, context) in contexts.contexts().enumerate() {
            let addresses = context.addresses;
            let mut len = addresses.iter().position(|address| mains.contains(address));
            if len.is_none() {
                let says_something = |address: &AddressId| {
                    !starters.contains(address)
                        && !nameless.contains(address)
                        && covered(*address, frames)
                };
                len = addresses.iter().rposition(says_something);
            }
            shown
                .lengths
                .push(len.map_or(addresses.len(), |last| last + 1));
            if addresses.iter().any(|&address| covered(address, frames)) {
                continue;
            }
            let outermost = addresses.last();
            let frame = match outermost {
                Some(&address) => {
                    let (module, offset) = contexts.addresses()[address];
                    let module = &contexts.modules()[module];
                    shown.frame(profile, module, offset, &known(address))
                }
                None => shown.add_frame(profile, NO_STACK.as_bytes(), None),
            };
            shown.stand_ins.insert(number, frames.push(vec![frame]));
        }
        shown
    }

    /// The addresses of a context that have frames for people. `number` is the number of the context, and `all` are its
    /// addresses.
    pub(super) fn addresses<'a>(&'a self, number: usize, all: &'a [AddressId]) -> &'a [AddressId] {
        if let Some(one) = self.stand_ins.get(&number) {
            return std::slice::from_ref(one);
        }
        let len = self.lengths.get(number).copied();
        len.and_then(|len| all.get(..len)).unwrap_or(all)
    }

    fn frame(
        &mut self,
        profile: &mut MemProfile,
        module: &Module,
        offset: u64,
        found: &UnknownAddress<'_>,
    ) -> profkit_data::memprof::FrameId {
        let file = found.binary.and_then(Path::file_name);
        let binary = match (file, module) {
            (Some(file), _) => Some(file.to_string_lossy().into_owned()),
            (None, Module::None) => None,
            (None, Module::Linked { build_id }) => {
                let id = build_id.to_string();
                Some(format!("build id {}…", id.get(..12).unwrap_or(&id)))
            }
            (None, Module::Mapping { number: 0, .. }) => Some("program".to_owned()),
            (None, Module::Mapping { number, .. }) => Some(format!("mapping {number}")),
        };
        match (found.symbol, &binary) {
            (Some(symbol), _) => self.add_frame(profile, symbol, binary),
            (None, Some(name)) => {
                let name = format!("{name}+{offset:#x}");
                self.add_frame(profile, name.as_bytes(), binary)
            }
            (None, None) => self.add_frame(profile, format!("{offset:#x}").as_bytes(), None),
        }
    }

    fn add_frame(
        &mut self,
        profile: &mut MemProfile,
        name: &[u8],
        binary: Option<String>,
    ) -> profkit_data::memprof::FrameId {
        let function = guid(name);
        profile
            .names
            .entry(function)
            .or_insert_with(|| canonical_name(name).to_vec());
        let frame = Frame {
            function,
            ..Frame::default()
        };
        let binary = binary.unwrap_or_else(|| UNKNOWN.to_owned());
        self.binaries.insert(frame, binary);
        profile.add_frame(frame)
    }
}
