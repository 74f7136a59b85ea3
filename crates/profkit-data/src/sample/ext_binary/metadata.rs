//! The metadata of functions: their checksums and attributes. One section of the file has the metadata. The entries of
//! the section may be in any order.
//!
//! An entry begins with the index of the function's name in the name table. In context-sensitive profiles, this is the
//! index of the function's calling context in the context table. The checksum follows in profiles of pseudo probes,
//! then the attributes in profiles that have them. In profiles without calling contexts, the count of inlined functions
//! follows, and for each of them its location and its own entry.
use crate::bytes::Cursor;
use crate::sample::binary::body::{Decoder, location};
use crate::sample::binary::numbers;
use crate::sample::flat::{Facts, FlatFunction, Step};
use crate::sample::model::Location;
use crate::sample::names::NameId;
use crate::{Error, ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;

/// The fields that a metadata entry has. The flags of the profile decide which fields exist.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    pub(super) has_checksums: bool,
    pub(super) has_attributes: bool,
    pub(super) is_nested: bool,
    /// Whether metadata of an inlined function without samples are an error.
    pub(super) needs_samples: bool,
    /// Whether the section may end after the name of a function. LLVM's reader accepts such an end and does not change
    /// the function.
    pub(super) may_end_after_name: bool,
    /// The number of entries in the table of names or contexts, to which the metadata refer by index. An index beyond
    /// the table is an error. If the number is `None`, indexes are not checked.
    pub(super) functions: Option<usize>,
}

/// The metadata section, and the offset of each function's entry in it.
#[derive(Debug, Default)]
pub(super) struct Metadata<'data> {
    shape: Shape,
    section: Option<Cursor<'data>>,
    entries: FxHashMap<u64, u64>,
}

/// The metadata entry of an inlined function. The entry is stored inside the entry of the function that it was inlined
/// into.
struct Nested {
    depth: usize,
    location: Location,
    name: NameId,
    facts: Facts,
}

impl<'data> Metadata<'data> {
    /// Finds the metadata entries of all functions. If the section is damaged, the entries before the damage are kept.
    pub(super) fn read(&mut self, section: Cursor<'data>, shape: Shape) -> Result<()> {
        self.shape = shape;
        self.section = Some(section);
        let cursor = &mut section.clone();
        while !cursor.is_empty() {
            let start = cursor.offset() - section.offset();
            let number = self.function(cursor)?;
            if self.ends(cursor) {
                break;
            }
            let at = cursor.offset() - section.offset();
            self.skip(cursor, 0)
                .map_err(|error| error.within(Structure::EntryAt(start)))?;
            self.entries.insert(number, at);
        }
        Ok(())
    }

    /// Whether the section ends after the name that was just read, and [`Shape::may_end_after_name`] allows this.
    fn ends(&self, cursor: &Cursor<'_>) -> bool {
        self.shape.may_end_after_name && cursor.is_empty()
    }

    /// Reads the index of the function to which an entry belongs.
    fn function(&self, cursor: &mut Cursor<'_>) -> Result<u64> {
        let at = cursor.offset();
        let number = cursor.uleb128()?;
        match self.shape.functions {
            Some(functions) if number >= functions as u64 => Err(ErrorKind::OutOfTable
                .error("the metadata are about a function beyond the table of functions")
                .at(at)
                .found(number)
                .expected(format_args!("below {functions}"))),
            _ => Ok(number),
        }
    }

    fn facts(&self, cursor: &mut Cursor<'_>) -> Result<Facts> {
        let mut facts = Facts::default();
        if self.shape.has_checksums {
            facts.checksum = cursor.uleb128()?;
        }
        if self.shape.has_attributes {
            facts.attributes = numbers::u32(cursor, "attributes are too large")?;
        }
        Ok(facts)
    }

    fn nested(&self, cursor: &mut Cursor<'_>, depth: usize) -> Result<usize> {
        if !self.shape.is_nested {
            return Ok(0);
        }
        // An inlined function has at least four fields of one byte or more: line, discriminator, name, number of
        // inlined functions. If the section may end after a name, the last field may be missing.
        let least = if self.shape.may_end_after_name { 3 } else { 4 };
        numbers::inlined_count(
            cursor,
            least,
            depth,
            "an entry claims more inlined functions than the bytes left can hold",
        )
    }

    fn skip(&self, cursor: &mut Cursor<'_>, depth: usize) -> Result<()> {
        self.facts(cursor)?;
        for _ in 0..self.nested(cursor, depth)? {
            location(cursor, false)?;
            self.function(cursor)?;
            if !self.ends(cursor) {
                self.skip(cursor, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Sets the checksum and attributes of a function and of the functions inlined in it. `number` is the index of the
    /// function's name or calling context, which selects the metadata entry.
    pub(super) fn apply(
        &self,
        number: u64,
        function: &mut FlatFunction,
        decoder: &mut Decoder<'_, '_>,
    ) -> Result<()> {
        let (Some(section), Some(&at)) = (&self.section, self.entries.get(&number)) else {
            return Ok(());
        };
        let cursor = &mut section.clone();
        cursor.window(at)?;
        *function.facts_mut(0) = self.facts(cursor)?;
        let mut nested = Vec::new();
        self.collect(cursor, 1, decoder, &mut nested)?;
        if nested.is_empty() {
            return Ok(());
        }
        let start = cursor.offset();
        match match_nested(&nested, function) {
            Err(error) if self.shape.needs_samples => Err(error.at(start)),
            _ => Ok(()),
        }
    }

    fn collect(
        &self,
        cursor: &mut Cursor<'_>,
        depth: usize,
        decoder: &mut Decoder<'_, '_>,
        nested: &mut Vec<Nested>,
    ) -> Result<()> {
        for _ in 0..self.nested(cursor, depth)? {
            let location = location(cursor, false)?;
            let name = decoder.name(cursor)?;
            if self.ends(cursor) {
                continue;
            }
            let facts = self.facts(cursor)?;
            nested.push(Nested {
                depth,
                location,
                name,
                facts,
            });
            self.collect(cursor, depth + 1, decoder, nested)?;
        }
        Ok(())
    }
}

/// Sets the checksum and attributes of each inlined function. Each inlined function is looked up by its location and
/// name. LLVM writes inlined functions and their metadata in the same order, but other writers may not.
fn match_nested(nested: &[Nested], function: &mut FlatFunction) -> Result<()> {
    let mut entered: FxHashMap<(usize, Location, NameId), usize> = FxHashMap::default();
    let mut stack = vec![0];
    let mut ordinal = 0;
    for step in &function.steps {
        match *step {
            Step::Enter { location, name, .. } => {
                ordinal += 1;
                let around = stack.last().copied().unwrap_or(0);
                entered.insert((around, location, name), ordinal);
                stack.push(ordinal);
            }
            Step::Leave => {
                stack.pop();
            }
            _ => {}
        }
    }
    let mut stack = vec![Some(0)];
    for entry in nested {
        stack.truncate(entry.depth);
        let around = stack.last().copied().flatten();
        let ordinal =
            around.and_then(|around| entered.get(&(around, entry.location, entry.name)).copied());
        stack.push(ordinal);
        match ordinal {
            Some(ordinal) => *function.facts_mut(ordinal) = entry.facts,
            None if entry.facts == Facts::default() => {}
            None => {
                return Err(Error::new(ErrorKind::Malformed, "the metadata of a function have an inlined function that its samples do not have")
                .found(format_args!(
                    "an inlined function at line {}, discriminator {}",
                    entry.location.line, entry.location.discriminator
                ))
                .expected("a function that is inlined in the samples"));
            }
        }
    }
    Ok(())
}
