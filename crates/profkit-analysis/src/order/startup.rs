//! The start-up order of a program, from temporal traces, MIP profiles and other order files.
use super::{OrderFile, Partitioning, Trace, balanced, trace};
use crate::any::AnyProfile;
use crate::instr::InstrTable;
use crate::names::without_file;
use profkit_data::detect::{Family, FileKind, detect};
use profkit_data::ids::NameRef;
use profkit_data::mip::MipProfile;
use profkit_data::{Error, ErrorKind, Result};
use profkit_object::code_symbols::CodeSymbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// The largest number of lines of an order file that are kept for messages because they are not symbol names.
const MOST_LINES: usize = 3;

/// The traces that a file added, and the faults of the file.
#[derive(Clone, Debug, Default)]
pub struct StartupInput {
    /// The number of traces.
    pub traces: usize,
    /// The first lines of an order file that are not symbol names: for each, its line number and its text.
    pub foreign: Vec<(usize, Vec<u8>)>,
    /// The number of all lines that are no symbol names.
    pub foreign_lines: usize,
    /// The errors of a damaged profile. Its sound parts are used.
    pub damage: Vec<Error>,
}

#[derive(Clone, Debug)]
struct Symbol {
    name: Vec<u8>,
    /// Whether the symbol is the compiler's name of the function. The object format may decorate this name; Mach-O puts
    /// an underscore before it.
    plain: bool,
}

/// The traces of a program's start, from any number of files.
///
/// ```
/// use profkit_analysis::order::{OrderFile, Startup};
///
/// let mut startup = Startup::default();
/// startup.add(b"main\nparse\nrun\n")?;
/// let order = startup.order(OrderFile::Lld);
/// assert_eq!(OrderFile::Lld.write(&order.names()), b"main\nparse\nrun\n");
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Startup {
    traces: Vec<Trace<NameRef>>,
    symbols: FxHashMap<NameRef, Symbol>,
    /// Whether at least one of the traces is a temporal trace of an instrumentation profile.
    temporal: bool,
}

/// A start-up order: the functions in this order, and those that are left out.
#[derive(Clone, Debug, Default)]
pub struct StartupOrder {
    /// For each function: the symbol that a linker knows, and the name hash that the traces use.
    functions: Vec<(Vec<u8>, NameRef)>,
    /// The number of functions that are left out because no file contains their names.
    pub nameless: usize,
    /// The number of functions that are left out because an earlier one has the same symbol. A linker cannot tell such
    /// functions apart.
    pub repeated: usize,
    /// The functions that were left out because the binary lacks them. Filled by [`keep_known`](Self::keep_known).
    pub missing: Vec<Vec<u8>>,
}

impl Startup {
    /// Adds the traces of a file: an instrumentation profile with temporal traces, a MIP profile, or an order file.
    ///
    /// # Errors
    /// If the file is none of these, or holds no traces.
    pub fn add(&mut self, data: &[u8]) -> Result<StartupInput> {
        let kind = detect(data);
        match kind.family() {
            Some(Family::Mip) if kind != FileKind::MipMap => {}
            Some(Family::Instr) => {}
            None => return self.add_lines(data),
            Some(_) => {
                let error = ErrorKind::Unsupported.error("the file has no order of calls");
                return Err(error.found(kind.description()).with_hint(NEEDED));
            }
        }
        match AnyProfile::open_as(kind, data, None) {
            Ok(profile) => self.add_profile(&profile),
            Err(_) if kind == FileKind::InstrText => self.add_lines(data),
            Err(error) => Err(error),
        }
    }

    /// Adds the traces of an open profile, as [`add`](Self::add) does.
    ///
    /// # Errors
    /// If the profile holds no traces.
    pub fn add_profile(&mut self, profile: &AnyProfile<'_>) -> Result<StartupInput> {
        match profile {
            AnyProfile::Instr(table) => self.add_instr(table),
            AnyProfile::Mip(profile, _) => self.add_mip(profile),
            AnyProfile::Sample(_) => {
                let error = ErrorKind::Unsupported.error("the profile has no order of calls");
                Err(error.with_hint(NEEDED))
            }
        }
    }

    fn add_mip(&mut self, profile: &MipProfile) -> Result<StartupInput> {
        let order = trace(profile).functions;
        if order.is_empty() {
            let error = ErrorKind::Empty.error("no run recorded the order of its calls");
            return Err(error.with_hint(
                "a program that was built with `profkit mip cc --mode calls` records it",
            ));
        }
        let functions = order.into_iter().map(|id| {
            let name = &*profile.functions[id].name;
            self.know(name, name, false)
        });
        let functions = functions.collect();
        self.traces.push(Trace::new(functions));
        Ok(StartupInput {
            traces: 1,
            ..StartupInput::default()
        })
    }

    fn add_instr(&mut self, table: &InstrTable<'_>) -> Result<StartupInput> {
        table.check_metadata()?;
        if let Some(error) = &table.traces_error {
            return Err(error.clone());
        }
        let traces = &table.profile.traces.traces;
        if traces.is_empty() {
            let error = ErrorKind::Empty.error("the profile has no temporal traces");
            return Err(error.with_hint("clang records them with -fprofile-generate -mllvm -pgo-temporal-instrumentation; a merge keeps them"));
        }
        let added = StartupInput {
            traces: traces.len(),
            damage: table.damage.first.clone(),
            ..StartupInput::default()
        };
        let functions = table.profile.tables.iter().flat_map(|it| it.functions());
        let names: FxHashMap<NameRef, &[u8]> = functions
            .map(|function| (function.name_ref(), function.name()))
            .collect();
        for trace in traces {
            for &function in &trace.functions {
                let name = names.get(&function).copied();
                let name = name.or_else(|| table.name_of(function));
                let name = name.filter(|name| NameRef::from_stand_in(name).is_none());
                if let Some(name) = name {
                    let symbol = without_file(name).to_vec();
                    self.symbols.entry(function).or_insert(Symbol {
                        name: symbol,
                        plain: true,
                    });
                }
            }
            self.traces.push(Trace {
                functions: trace.functions.clone(),
                weight: trace.weight,
            });
        }
        self.temporal = true;
        Ok(added)
    }

    fn add_lines(&mut self, data: &[u8]) -> Result<StartupInput> {
        let mut added = StartupInput::default();
        let mut functions = Vec::new();
        for (number, line) in (1..).zip(data.split(|&byte| byte == b'\n')) {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let is_name = |byte: &u8| byte.is_ascii_graphic() || !byte.is_ascii();
            // An Objective-C method such as `-[Class method:]` has a name with a blank.
            let is_method =
                line.first().is_some_and(|&sign| b"+-_".contains(&sign)) && line.ends_with(b"]");
            if !is_method && !line.iter().all(is_name) {
                added.foreign_lines += 1;
                if added.foreign.len() < MOST_LINES {
                    added.foreign.push((number, line.to_vec()));
                }
                continue;
            }
            let symbol = OrderFile::symbol_of_line(line);
            functions.push(self.know(symbol, symbol, false));
        }
        // A text of another kind may have a few words that look like symbols. So a text is an order file only if more
        // than half of its lines are symbols.
        if functions.len() <= added.foreign_lines {
            let (kind, text) = match data {
                [] => (ErrorKind::Empty, "the file is empty"),
                _ if added.foreign_lines > 0 => (
                    ErrorKind::UnrecognizedFormat,
                    "the file is neither a profile nor an order file: most of its lines are not symbol names",
                ),
                _ => (
                    ErrorKind::UnrecognizedFormat,
                    "the file is neither a profile nor a list of symbol names",
                ),
            };
            return Err(Error::new(kind, text).with_hint(NEEDED));
        }
        added.traces = 1;
        self.traces.push(Trace::new(functions));
        Ok(added)
    }

    fn know(&mut self, key: &[u8], name: &[u8], plain: bool) -> NameRef {
        let key = NameRef::of(key);
        self.symbols.entry(key).or_insert_with(|| Symbol {
            name: name.to_vec(),
            plain,
        });
        key
    }

    /// The traces. Each function is given by the hash of its name.
    pub fn traces(&self) -> &[Trace<NameRef>] {
        &self.traces
    }

    /// Orders the functions by balanced partitioning with the weights of the traces. If there is only one trace and it
    /// comes from a MIP profile or an order file, its order is kept.
    pub fn order(&self, file: OrderFile) -> StartupOrder {
        let order = match self.traces.as_slice() {
            [alone] if !self.temporal => alone.functions.clone(),
            traces => balanced(traces, &Partitioning::default()),
        };
        let mut result = StartupOrder::default();
        let mut seen: FxHashSet<Vec<u8>> = FxHashSet::default();
        for function in order {
            let Some(symbol) = self.symbols.get(&function) else {
                result.nameless += 1;
                continue;
            };
            let name = if symbol.plain {
                file.decorate(&symbol.name)
            } else {
                symbol.name.clone()
            };
            if seen.insert(name.clone()) {
                result.functions.push((name, function));
            } else {
                result.repeated += 1;
            }
        }
        result
    }
}

/// The hint for a file that contains no order of calls.
const NEEDED: &str =
    "give an order file with one symbol per line, a MIP profile, or a profile with temporal traces";

impl StartupOrder {
    /// The symbols, in order.
    pub fn names(&self) -> Vec<&[u8]> {
        self.functions.iter().map(|(name, _)| &**name).collect()
    }

    /// The functions in their order: the symbol, and the name hash that the traces use.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], NameRef)> {
        self.functions.iter().map(|(name, hash)| (&**name, *hash))
    }

    /// Leaves out the functions that a binary does not have.
    pub fn keep_known(&mut self, symbols: &[CodeSymbol]) {
        let known: FxHashSet<&[u8]> = symbols.iter().map(|symbol| &*symbol.name).collect();
        let missing = &mut self.missing;
        self.functions.retain(|(name, _)| {
            let found = known.contains(&**name);
            if !found {
                missing.push(name.clone());
            }
            found
        });
    }

    /// Computes how much of the program's code is touched at start-up: in all traces together, and in each trace.
    pub fn footprints(
        &self,
        startup: &Startup,
        symbols: &[CodeSymbol],
        page_size: u64,
    ) -> (StartupText, Vec<StartupText>) {
        let places: FxHashMap<&[u8], &CodeSymbol> = symbols
            .iter()
            .map(|symbol| (&*symbol.name, symbol))
            .collect();
        let mut end = 0_u64;
        let mut layout: FxHashMap<NameRef, (&CodeSymbol, u64)> = FxHashMap::default();
        for (name, function) in &self.functions {
            if let Some(symbol) = places.get(&**name) {
                let start = end.next_multiple_of(ALIGN);
                layout.insert(*function, (symbol, start));
                end = start.saturating_add(symbol.size);
            }
        }
        let text = |functions: &mut dyn Iterator<Item = &NameRef>| {
            let mut text = StartupText::default();
            let (mut before, mut after) = (FxHashSet::default(), FxHashSet::default());
            let mut seen = FxHashSet::default();
            for (symbol, start) in functions.filter_map(|name| layout.get(name)) {
                if !seen.insert(symbol.address) {
                    continue;
                }
                text.functions += 1;
                text.bytes = text.bytes.saturating_add(symbol.size);
                before.extend(pages(symbol.address, symbol.size, page_size));
                after.extend(pages(*start, symbol.size, page_size));
            }
            (text.pages_before, text.pages_after) = (before.len(), after.len());
            text
        };
        let all = text(&mut self.functions.iter().map(|(_, function)| function));
        let traces = startup.traces.iter();
        let each = traces.map(|trace| text(&mut trace.functions.iter()));
        (all, each.collect())
    }
}

/// The alignment of functions in a new layout, in bytes. Compilers align functions to 16 bytes on x86-64.
const ALIGN: u64 = 16;
/// The largest number of pages that are counted for one function, because a symbol table can claim any size.
const MOST_PAGES: u64 = 1 << 16;

fn pages(start: u64, size: u64, page_size: u64) -> impl Iterator<Item = u64> {
    let page_size = page_size.max(1);
    let first = start / page_size;
    let last = start.saturating_add(size.saturating_sub(1)) / page_size;
    first..=last.min(first.saturating_add(MOST_PAGES - 1))
}

/// The size of some functions of a start-up order: in bytes, in pages of the binary, and in pages after ordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct StartupText {
    /// The number of the functions that the binary has.
    pub functions: usize,
    /// The sum of the sizes of the functions, in bytes.
    pub bytes: u64,
    /// The number of pages that the functions touch in the binary.
    pub pages_before: usize,
    /// The number of pages that the functions would touch if all functions of the order followed each other from the
    /// start of a page.
    pub pages_after: usize,
}
