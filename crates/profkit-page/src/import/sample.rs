//! A sample profile made of its tables.
use super::found::Found;
use super::rows::{
    left_out, optional_number, optional_text, required_number, required_text, small_number,
};
use super::{ImportError, TableFile};
use crate::export::tables::TableKind;
use profkit_data::from_printable;
use profkit_data::ids::NameRef;
use profkit_data::limits::{SAMPLE_CONTEXT_DEPTH, SAMPLE_INLINE_DEPTH};
use profkit_data::sample::{
    BodyLine, Frame, Function, Inlined, Location, NameId, ProfileKind, SampleName, SampleProfile,
    Samples, Target,
};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Makes a sample profile of its tables: of lines, and of functions, inlined functions, values, the symbol list and facts
/// if they are there. Rows of one place add up.
///
/// With a table of functions, the result has its functions and no others.
pub(super) fn profile_of(
    found: &Found<'_>,
    notes: &mut Vec<String>,
) -> Result<SampleProfile, ImportError> {
    let lines = found.required(TableKind::Lines, "`function`, `line` and `samples`")?;
    let names = found.facts.required("sample_kind")?;
    let parts = names.split(", ").filter(|name| !name.is_empty());
    let kind = ProfileKind::from_names(parts);
    let mut tree = Tree::default();
    tree.profile.kind = kind.ok_or_else(|| found.facts.wrong("sample_kind", names))?;
    let functions = found.get(TableKind::Functions);
    if let Some(table) = functions {
        tree.headers(table, "context")?;
        tree.is_fixed = true;
    }
    let mut lost = Vec::new();
    if let Some(table) = found.get(TableKind::Inlined) {
        lost.push((table, tree.headers(table, "inlined")?));
    }
    lost.push((lines, tree.lines(lines)?));
    if let Some(table) = found.get(TableKind::Values) {
        lost.push((table, tree.values(table)?));
    }
    if let Some(functions) = functions {
        let lost = lost.into_iter();
        notes.extend(lost.filter_map(|(table, rows)| left_out(table, rows, &functions.name)));
    }
    if let Some(table) = found.get(TableKind::Symbols) {
        tree.symbols(table)?;
    }
    let (profile, overflows) = tree.finish();
    if overflows > 0 {
        let sums = profkit_report::plural(overflows, "sum");
        notes.push(format!(
            "{}: {sums} would be greater than 2^64-1, and stay there",
            lines.name
        ));
    }
    Ok(profile)
}

/// What the tables of functions and of inlined functions state about a function.
#[derive(Clone, Copy, Debug)]
struct Header {
    total: u64,
    checksum: u64,
    row: usize,
}

/// The samples of a function, or of a function inlined at one place.
#[derive(Debug, Default)]
struct Node {
    /// Where it is inlined, and into which node; `None` for the function itself.
    parent: Option<(usize, Location)>,
    name: NameId,
    header: Option<Header>,
    head: u64,
    attributes: u32,
    lines: Vec<(Location, u64)>,
    calls: Vec<((Location, NameId), u64)>,
    vtables: Vec<((Location, NameId), u64)>,
}

/// The functions with what is inlined into them. A node stands after the node that it is inlined into.
#[derive(Debug, Default)]
struct Tree {
    profile: SampleProfile,
    nodes: Vec<Node>,
    /// The callers of each function, with its node.
    functions: Vec<(Box<[Frame]>, usize)>,
    by_callers: FxHashMap<(Box<[Frame]>, NameId), usize>,
    by_place: FxHashMap<(usize, Location, NameId), usize>,
    /// The nodes of the texts that name them, `None` where the table of functions has not the function: most rows repeat
    /// the texts of another row.
    texts: FxHashMap<[String; 3], Option<usize>>,
    last: Option<([String; 3], Option<usize>)>,
    /// Whether the functions are those of the table of functions.
    is_fixed: bool,
    overflows: u64,
}

impl Tree {
    /// Reads the table of functions, or of inlined functions if `place` is the column that names them. Returns how many
    /// rows are of functions that are not there.
    fn headers(&mut self, table: &TableFile, place: &str) -> Result<u64, ImportError> {
        let mut lost = 0;
        for row in 0..table.len() {
            let total = required_number(table, "header_total", row)?;
            let head = optional_number(table, "head", row)?.unwrap_or(0);
            let checksum = optional_number(table, "hash", row)?.unwrap_or(0);
            let attributes = small_number(table, "attributes", row)?.unwrap_or(0);
            let Some(number) = self.of_row(table, row)? else {
                lost += 1;
                continue;
            };
            let Some(node) = self.nodes.get_mut(number) else {
                continue;
            };
            node.attributes |= attributes;
            add(&mut node.head, head, &mut self.overflows);
            match &mut node.header {
                None => {
                    node.header = Some(Header {
                        total,
                        checksum,
                        row,
                    });
                }
                Some(known) if known.checksum != checksum => {
                    let message = format!(
                        "row {} has the same {place} and function with the checksum {:#018x}, and this one {checksum:#018x}",
                        known.row + 1,
                        known.checksum
                    );
                    return Err(ImportError {
                        hint: Some(
                            "the samples are of two versions of the function: keep the rows of one of them",
                        ),
                        ..table.error(Some(row), "hash", message)
                    });
                }
                Some(known) => add(&mut known.total, total, &mut self.overflows),
            }
        }
        Ok(lost)
    }

    fn lines(&mut self, table: &TableFile) -> Result<u64, ImportError> {
        let mut lost = 0;
        for row in 0..table.len() {
            let samples = required_number(table, "samples", row)?;
            let location = location_of(table, row)?;
            let number = self.of_row(table, row)?;
            match number.and_then(|number| self.nodes.get_mut(number)) {
                Some(node) => node.lines.push((location, samples)),
                None => lost += 1,
            }
        }
        Ok(lost)
    }

    fn values(&mut self, table: &TableFile) -> Result<u64, ImportError> {
        let mut lost = 0;
        for row in 0..table.len() {
            let count = required_number(table, "count", row)?;
            let location = location_of(table, row)?;
            let target = required_text(table, "target", row)?;
            let target = self.name(target, table, row, "target")?;
            let kind = optional_text(table, "kind", row)?.unwrap_or("call");
            let number = self.of_row(table, row)?;
            let Some(node) = number.and_then(|number| self.nodes.get_mut(number)) else {
                lost += 1;
                continue;
            };
            match kind {
                "call" => {
                    // A called function has a line, also where another program left out those without samples.
                    node.lines.push((location, 0));
                    node.calls.push(((location, target), count));
                }
                "vtable" => {
                    node.vtables.push(((location, target), count));
                    self.profile.kind |= ProfileKind::HAS_VTABLES;
                }
                _ => {
                    let expected = "expected `call` or `vtable`";
                    return Err(table.error(Some(row), "kind", expected));
                }
            }
        }
        Ok(lost)
    }

    fn symbols(&mut self, table: &TableFile) -> Result<(), ImportError> {
        for row in 0..table.len() {
            if let Some(name) = optional_text(table, "symbol", row)? {
                self.profile.symbols.insert(from_printable(name).into());
            } else if let Some(hash) = optional_number(table, "guid", row)? {
                self.profile.symbol_hashes.insert(hash);
            } else {
                return Err(table.error(Some(row), "symbol", "the cell is empty"));
            }
        }
        Ok(())
    }

    /// The node of a row; `None` if the table of functions has not its function.
    fn of_row(&mut self, table: &TableFile, row: usize) -> Result<Option<usize>, ImportError> {
        let text = |column| optional_text(table, column, row);
        let [context, inlined] =
            [text("context")?, text("inlined")?].map(Option::unwrap_or_default);
        let guid;
        let function = match text("function")? {
            Some(function) => function,
            // A name that is known only by its hash.
            None => match optional_number(table, "guid", row)? {
                Some(hash) => {
                    guid = NameRef(hash).to_string();
                    &guid
                }
                None => return Err(table.error(Some(row), "function", "the cell is empty")),
            },
        };
        let texts = [context, function, inlined];
        if let Some((last, found)) = &self.last
            && last.iter().map(String::as_str).eq(texts)
        {
            return Ok(*found);
        }
        let owned = texts.map(str::to_owned);
        let found = match self.texts.get(&owned) {
            Some(&found) => found,
            None => {
                let found = self.place(texts, table, row)?;
                self.texts.insert(owned.clone(), found);
                found
            }
        };
        self.last = Some((owned, found));
        Ok(found)
    }

    fn place(
        &mut self,
        [context, function, inlined]: [&str; 3],
        table: &TableFile,
        row: usize,
    ) -> Result<Option<usize>, ImportError> {
        let wrong = |column, message: &str| table.error(Some(row), column, message);
        let mut callers = Vec::new();
        for frame in context.split(" @ ").filter(|frame| !frame.is_empty()) {
            if callers.len() == SAMPLE_CONTEXT_DEPTH {
                return Err(wrong("context", "the function has too many callers"));
            }
            let parts = frame.rsplit_once(':');
            let parts = parts.and_then(|(name, place)| Some((name, location(place)?)));
            let Some((name, location)) = parts else {
                let expected = "expected callers as `NAME:LINE` or `NAME:LINE.DISCRIMINATOR`, with ` @ ` between them";
                return Err(wrong("context", expected));
            };
            callers.push(Frame {
                name: self.name(name, table, row, "context")?,
                location,
            });
        }
        let name = self.name(function, table, row, "function")?;
        let callers: Box<[Frame]> = callers.into();
        let mut node = match self.by_callers.entry((callers, name)) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(_) if self.is_fixed => return Ok(None),
            Entry::Vacant(place) => {
                let number = self.nodes.len();
                self.functions.push((place.key().0.clone(), number));
                place.insert(number);
                self.nodes.push(Node {
                    name,
                    ..Node::default()
                });
                number
            }
        };
        for (depth, frame) in (0..).zip(inlined.split(" @ ").filter(|frame| !frame.is_empty())) {
            if depth == SAMPLE_INLINE_DEPTH {
                return Err(wrong("inlined", "inlined functions nest too deeply"));
            }
            let parts = frame.split_once(' ');
            let parts = parts.and_then(|(place, name)| Some((location(place)?, name)));
            let Some((location, name)) = parts else {
                let expected = "expected functions as `LINE NAME` or `LINE.DISCRIMINATOR NAME`, with ` @ ` between them";
                return Err(wrong("inlined", expected));
            };
            let name = self.name(name, table, row, "inlined")?;
            let next = self.nodes.len();
            let known = *self.by_place.entry((node, location, name)).or_insert(next);
            if known == next {
                self.nodes.push(Node {
                    parent: Some((node, location)),
                    name,
                    ..Node::default()
                });
            }
            node = known;
        }
        Ok(Some(node))
    }

    fn name(
        &mut self,
        text: &str,
        table: &TableFile,
        row: usize,
        column: &str,
    ) -> Result<NameId, ImportError> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16);
        let hash = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let id = match hash {
            Some(hash) => self.profile.intern(SampleName::Guid(NameRef(hash))),
            None => self.profile.intern(SampleName::Text(&from_printable(text))),
        };
        id.ok_or_else(|| table.error(Some(row), column, "the profile has too many names"))
    }

    /// The profile, and how many sums were too large.
    fn finish(mut self) -> (SampleProfile, u64) {
        let mut done: Vec<Samples> = Vec::new();
        done.resize_with(self.nodes.len(), Samples::default);
        // Nodes stand after those that they are inlined into, so what is inlined into a node is complete before the node.
        for (number, node) in self.nodes.into_iter().enumerate().rev() {
            let mut samples = done.get_mut(number).map(std::mem::take).unwrap_or_default();
            samples.name = node.name;
            samples.head = node.head;
            samples.attributes = node.attributes;
            let overflows = &mut self.overflows;
            let lines = summed(node.lines, overflows);
            samples.body = lines
                .map(|(location, samples)| BodyLine { location, samples })
                .collect();
            let target = |((location, name), count)| Target {
                location,
                name,
                count,
            };
            samples.targets = summed(node.calls, overflows).map(target).collect();
            samples.vtables = summed(node.vtables, overflows).map(target).collect();
            samples.sort();
            match node.header {
                Some(header) => (samples.total, samples.checksum) = (header.total, header.checksum),
                None => {
                    let own = samples.body.iter().map(|line| line.samples);
                    let inlined = samples.inlined.iter().map(|one| one.samples.total);
                    samples.total = own.chain(inlined).fold(0, u64::saturating_add);
                }
            }
            match node.parent {
                Some((parent, location)) => {
                    if let Some(parent) = done.get_mut(parent) {
                        parent.inlined.push(Inlined { location, samples });
                    }
                }
                None => {
                    if let Some(slot) = done.get_mut(number) {
                        *slot = samples;
                    }
                }
            }
        }
        for (callers, number) in self.functions {
            let samples = done.get_mut(number).map(std::mem::take).unwrap_or_default();
            // The functions differ in their name or callers, so none is there already.
            let _ = self.profile.push(Function { callers, samples });
        }
        (self.profile, self.overflows)
    }
}

/// Sorted by key, and equal keys added up.
fn summed<K: Ord + Copy>(
    mut list: Vec<(K, u64)>,
    overflows: &mut u64,
) -> impl Iterator<Item = (K, u64)> + use<K> {
    list.sort_by_key(|&(key, _)| key);
    list.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            add(&mut first.1, later.1, overflows);
        }
        same
    });
    list.into_iter()
}

fn add(sum: &mut u64, more: u64, overflows: &mut u64) {
    *overflows += u64::from(sum.checked_add(more).is_none());
    *sum = sum.saturating_add(more);
}

fn location_of(table: &TableFile, row: usize) -> Result<Location, ImportError> {
    let line = small_number(table, "line", row)?
        .ok_or_else(|| table.error(Some(row), "line", "the cell is empty"))?;
    let discriminator = small_number(table, "discriminator", row)?.unwrap_or(0);
    Ok(Location::new(line, discriminator))
}

/// A place in a function: its line, and after a point its discriminator.
fn location(text: &str) -> Option<Location> {
    let (line, discriminator) = text.split_once('.').unwrap_or((text, "0"));
    Some(Location::new(
        line.parse().ok()?,
        discriminator.parse().ok()?,
    ))
}
