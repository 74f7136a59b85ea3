//! Symbolises the addresses in one compile unit.
use super::functions::Functions;
use super::lines::{Lines, Paths, Row};
use super::names::{Named, Names};
use super::symbols::Symbols;
use super::table::{NONE, Part, Stored};
use super::units::{Job, UnitIndex};
use super::visits::{NoSplit, UnitView, with_split};
use super::work::Work;
use super::{Slice, SplitFiles, malformed};
use gimli::{Dwarf, DwarfPackage, Unit};
use profkit_data::{Error, ErrorKind, Structure};
use rustc_hash::FxHashMap;

/// The data from outside a compile unit that is needed to symbolise its addresses.
pub(super) struct Context<'c, 'a> {
    pub(super) dwarf: &'c Dwarf<Slice<'a>>,
    pub(super) package: Option<&'c DwarfPackage<Slice<'a>>>,
    pub(super) split_files: Option<&'c dyn SplitFiles>,
    pub(super) index: &'c UnitIndex<'c, 'a>,
    pub(super) symbols: &'c Symbols<'a>,
    pub(super) symbol_names: bool,
    pub(super) places: bool,
}

impl<'a> Context<'_, 'a> {
    /// Computes the source locations of the addresses of a job (a compile unit with the requested addresses in it), in
    /// the order of the job's addresses.
    pub(super) fn symbolize(&self, job: &Job, addresses: &[u64]) -> Part {
        let mut part = Part::default();
        let unit = match self.index.unit(job.unit) {
            Ok(unit) => unit,
            Err(error) => {
                part = self.symbols_only(&job.addresses, addresses);
                part.warn(malformed(self.dwarf, error, self.index.name(job.unit)));
                return part;
            }
        };
        let asked: Vec<u64> = job
            .addresses
            .iter()
            .map(|&index| addresses.get(index as usize).copied().unwrap_or(0))
            .collect();
        let lines = Lines::read(unit, &asked, &self.index.work);
        if let Some(error) = lines.error {
            part.warn(
                malformed(self.dwarf, error, Structure::LineTable)
                    .within(self.index.name(job.unit)),
            );
        }
        if lines.unterminated {
            part.warn(
                Error::new(
                    ErrorKind::Truncated,
                    "the last sequence of the line table has no end",
                )
                .within(Structure::LineTable)
                .within(self.index.name(job.unit)),
            );
        }
        let number = job.unit;
        let split = with_split(
            (self.dwarf, unit),
            self.package,
            self.split_files,
            &self.index.work,
            |view| self.stacks(number, view, &lines, &asked, &mut part),
        );
        match split {
            Ok(()) => return part,
            Err(NoSplit::Whole) => {}
            Err(NoSplit::Missing(name)) if name.is_empty() => {}
            Err(NoSplit::Missing(name)) => part.warn(
                Error::new(
                    ErrorKind::MissingCorrelation,
                    format!("split debug info {name} is missing"),
                )
                .within(self.index.name(number))
                .with_hint("keep the .dwo files of the build, or give the .dwp package"),
            ),
            Err(NoSplit::Damaged(error)) => part.warn(error.within(self.index.name(number))),
        }
        let view = UnitView::whole(self.dwarf, unit, self.index);
        self.stacks(number, view, &lines, &asked, &mut part);
        part
    }

    /// Makes the inline stacks of the addresses in `asked`. `number` is the index of the unit, or of the skeleton unit
    /// of a split one.
    fn stacks(
        &self,
        number: usize,
        view: UnitView<'_, '_, '_>,
        lines: &Lines,
        asked: &[u64],
        part: &mut Part,
    ) {
        let UnitView {
            dwarf,
            unit,
            names,
            files,
            work,
        } = view;
        let functions = Functions::read(dwarf, unit, work);
        if let Some(error) = functions.error {
            part.warn(malformed(self.dwarf, error, self.index.name(number)));
        }
        let too_many_ranges = functions.too_many_ranges;
        let mut builder = Builder {
            names,
            files,
            paths: Paths::new(),
            named: vec![None; functions.list.len()],
            callers: FxHashMap::default(),
            frames: FxHashMap::default(),
            functions: &functions,
            places: self.places,
            work,
            part,
        };
        let mut ranges = functions.ranges().peekable();
        let mut rows = lines.cursor();
        let mut symbol = SymbolAt::new(self.symbols);
        // What the previous address had: its function, row, symbol name and symbol file, and the innermost frame made
        // from them.
        let mut last = None;
        for &address in asked {
            while ranges.next_if(|&(_, high, _)| high <= address).is_some() {}
            let function = ranges
                .peek()
                .filter(|(low, ..)| *low <= address)
                .map_or(NONE, |(.., number)| *number);
            let row = rows.find(address);
            symbol.advance(address, &mut builder.part.strings);
            let name = if self.symbol_names || function == NONE {
                symbol.name
            } else {
                NONE
            };
            // As in LLVM, the file comes from the symbol table only if the debug info has no function for the address.
            let file = if function == NONE { symbol.file } else { NONE };
            let here = (function, row.map(std::ptr::from_ref), name, file);
            let leaf = match last {
                Some((before, leaf)) if before == here => leaf,
                _ => builder.leaf(function, row, name, file),
            };
            last = Some((here, leaf));
            builder.part.leaves.push(leaf);
        }
        if builder.paths.too_long || too_many_ranges {
            let what = if too_many_ranges {
                "the functions of the unit have too many address ranges"
            } else {
                "the paths of its source files are too long"
            };
            builder.part.warn(
                Error::new(
                    ErrorKind::LimitExceeded,
                    format!("debug info is left out: {what}"),
                )
                .within(self.index.name(number)),
            );
        }
    }

    /// Symbolises addresses without debug info, with the symbol table only. `indexes` are the indexes of these
    /// addresses in `addresses`, sorted by address.
    pub(super) fn symbols_only(&self, indexes: &[u32], addresses: &[u64]) -> Part {
        let mut part = Part::default();
        let mut symbol = SymbolAt::new(self.symbols);
        let mut last = (NONE, NONE, NONE);
        for &index in indexes {
            let Some(&address) = addresses.get(index as usize) else {
                continue;
            };
            symbol.advance(address, &mut part.strings);
            if symbol.name == NONE {
                part.leaves.push(NONE);
                continue;
            }
            if (last.0, last.1) != (symbol.name, symbol.file) {
                last = (
                    symbol.name,
                    symbol.file,
                    part.push(nothing(symbol.name, symbol.file)),
                );
            }
            part.leaves.push(last.2);
        }
        part
    }
}

fn nothing(function: u32, file: u32) -> Stored {
    Stored {
        function,
        file,
        line: 0,
        column: 0,
        discriminator: 0,
        function_line: 0,
        caller: NONE,
    }
}

/// Finds the symbols for addresses that are passed in ascending order.
struct SymbolAt<'c, 'a> {
    symbols: &'c Symbols<'a>,
    /// The first address for which the current symbol is no longer valid.
    until: u64,
    name: u32,
    file: u32,
}

impl<'c, 'a> SymbolAt<'c, 'a> {
    fn new(symbols: &'c Symbols<'a>) -> Self {
        SymbolAt {
            symbols,
            until: 0,
            name: NONE,
            file: NONE,
        }
    }

    fn advance(&mut self, address: u64, strings: &mut super::table::Strings) {
        if address < self.until {
            return;
        }
        self.until = self.symbols.next_change(address);
        let symbol = self.symbols.find(address);
        self.name = symbol.map_or(NONE, |symbol| strings.intern(symbol.name));
        let file = symbol.and_then(|symbol| self.symbols.file_of(symbol));
        self.file = file.map_or(NONE, |file| strings.intern(file));
    }
}

/// Makes the frames of a compile unit. Each frame is made only once.
struct Builder<'x, 'c, 'i, 'b> {
    names: Names<'c, 'i, 'b>,
    files: (&'x Dwarf<Slice<'b>>, &'x Unit<Slice<'b>>),
    paths: Paths,
    /// The names of the functions, with the same indexes as the list of functions of the compile unit.
    named: Vec<Option<Named>>,
    /// The frames that were made for the callers of inlined functions. The key is the index of the inlined function and
    /// the name of the outermost frame.
    callers: FxHashMap<(u32, u32), u32>,
    frames: FxHashMap<Stored, u32>,
    functions: &'x Functions<'b>,
    /// Whether frames have their file and column.
    places: bool,
    work: &'x Work,
    part: &'x mut Part,
}

impl Builder<'_, '_, '_, '_> {
    /// Returns the index of the innermost frame for an address with this `function` and `row`; `NONE` if nothing is
    /// known about the address. `symbol` is the name of the outermost frame, or `NONE` if the name comes from the debug
    /// info. `symbol_file` is the file of the frame if the line table names none.
    fn leaf(&mut self, function: u32, row: Option<&Row>, symbol: u32, symbol_file: u32) -> u32 {
        if function == NONE && row.is_none() && symbol == NONE {
            return NONE;
        }
        let caller = self.caller(function, symbol);
        let mut frame = self.frame(function, caller, symbol);
        if let Some(row) = row
            && let Some(file) = self.file(row.file)
        {
            frame = Stored {
                file,
                line: row.line,
                column: row.column,
                discriminator: row.discriminator,
                ..frame
            };
        }
        if frame.file == NONE {
            frame.file = symbol_file;
        }
        self.finish(frame)
    }

    /// Returns the index of the frame into which `function` was inlined; `NONE` if it was not inlined. `symbol` is the
    /// same as in [`leaf`](Self::leaf).
    fn caller(&mut self, function: u32, symbol: u32) -> u32 {
        let functions = self.functions;
        let mut path = Vec::new();
        let mut caller = NONE;
        let mut at = function;
        // An enclosing function has a smaller index than the function inlined into it, so this loop ends.
        while let Some(inlined) = functions.list.get(at as usize)
            && inlined.parent < at
        {
            if let Some(&known) = self.callers.get(&(at, symbol)) {
                caller = known;
                break;
            }
            path.push((at, inlined));
            at = inlined.parent;
        }
        for (at, inlined) in path.into_iter().rev() {
            let file = self.file(inlined.call_file).unwrap_or(NONE);
            let frame = Stored {
                file,
                line: inlined.call_line,
                column: inlined.call_column,
                discriminator: inlined.call_discriminator,
                ..self.frame(inlined.parent, caller, symbol)
            };
            caller = self.finish(frame);
            self.callers.insert((at, symbol), caller);
        }
        caller
    }

    /// Makes a frame of `function` without line and column, which are set later. If there is no `caller`, the frame is
    /// the outermost one and gets the name `symbol`, unless `symbol` is `NONE`.
    fn frame(&mut self, function: u32, caller: u32, symbol: u32) -> Stored {
        let mut frame = Stored {
            caller,
            ..nothing(NONE, NONE)
        };
        if let Some(named) = self.name(function) {
            frame.function = named.function.unwrap_or(NONE);
            frame.function_line = named.line;
        }
        if caller == NONE && symbol != NONE {
            frame.function = symbol;
        }
        frame
    }

    fn finish(&mut self, mut frame: Stored) -> u32 {
        if !self.places {
            (frame.file, frame.column) = (NONE, 0);
        }
        if let Some(&known) = self.frames.get(&frame) {
            return known;
        }
        let id = self.part.push(frame);
        self.frames.insert(frame, id);
        id
    }

    fn file(&mut self, file: u64) -> Option<u32> {
        let (dwarf, unit) = self.files;
        let (places, work) = (self.places, self.work);
        self.paths.get(dwarf, unit, file, |path| {
            if !places {
                return 0;
            }
            match work.take(path.len()) {
                Ok(()) => self.part.strings.intern(path),
                Err(_) => NONE,
            }
        })
    }

    fn name(&mut self, function: u32) -> Option<Named> {
        let slot = self.named.get_mut(function as usize)?;
        if slot.is_none() {
            let own = &self.functions.list.get(function as usize)?.own;
            let (strings, work) = (&mut self.part.strings, self.work);
            *slot = Some(self.names.resolve(own, |name| match work.take(name.len()) {
                Ok(()) => strings.intern(name),
                Err(_) => NONE,
            }));
        }
        *slot
    }
}
