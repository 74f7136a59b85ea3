//! Finds the names and declaration lines of functions. Names and lines are often in a different DWARF entry than the
//! code of the function.
use super::units::UnitIndex;
use super::{MAX_REFERENCES, Slice};
use gimli::{Abbreviation, AttributeValue, Dwarf, EntriesRaw, Unit, UnitOffset, constants as dw};
use rustc_hash::FxHashMap;

type Value<'a> = AttributeValue<Slice<'a>>;

/// The attributes of a DWARF entry that are names, lines or references to other entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) linkage_name: Option<Value<'a>>,
    pub(super) name: Option<Value<'a>>,
    pub(super) line: Option<u32>,
    /// The number of the file in the line table of the unit; `None` if the entry has no file.
    pub(super) file: Option<u64>,
    pub(super) origin: Option<Value<'a>>,
    pub(super) specification: Option<Value<'a>>,
    /// Whether the compiler inlined the function (`DW_AT_inline`).
    pub(super) inlined: bool,
}

impl<'a> Own<'a> {
    /// Stores an attribute if it is a name, a line or a reference.
    #[inline]
    pub(super) fn take(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match name {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => self.linkage_name = Some(value),
            dw::DW_AT_name => self.name = Some(value),
            dw::DW_AT_decl_line => self.line = value.udata_value().map(super::lines::narrow),
            dw::DW_AT_decl_file => {
                self.file = match value {
                    AttributeValue::FileIndex(file) => Some(file),
                    value => value.udata_value(),
                }
            }
            dw::DW_AT_abstract_origin => self.origin = Some(value),
            dw::DW_AT_specification => self.specification = Some(value),
            dw::DW_AT_inline => {
                let AttributeValue::Inline(kind) = value else {
                    return;
                };
                self.inlined = matches!(kind, dw::DW_INL_inlined | dw::DW_INL_declared_inlined);
            }
            _ => {}
        }
    }

    pub(super) fn read(
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        abbreviation: &Abbreviation,
    ) -> gimli::Result<Self> {
        let mut own = Own::default();
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            own.take(attribute.name(), attribute.value());
        }
        Ok(own)
    }
}

/// The place of a DWARF entry: in the current unit, or in another unit of the same file, given by the unit's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    other: Option<usize>,
    offset: UnitOffset,
}

/// A source file in a DWARF entry, given by its number in the line table of a unit. The unit is the current one if
/// `other` is `None`. Otherwise `other` is the index of another unit in the same binary or debug file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileNumber {
    pub(crate) other: Option<usize>,
    pub(crate) number: u64,
}

/// A function's name, as an index in the caller's table of strings, and the line and the file of the function's
/// declaration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) function: Option<u32>,
    pub(crate) line: u32,
    pub(crate) file: Option<FileNumber>,
}

/// Finds the names of functions in one compile unit.
pub(crate) struct Names<'c, 'i, 'a> {
    dwarf: &'c Dwarf<Slice<'a>>,
    unit: &'c Unit<Slice<'a>>,
    /// All units of the file, because references may lead from one unit to another. `None` in split debug info, where
    /// references never leave their unit.
    index: Option<&'c UnitIndex<'i, 'a>>,
    known: FxHashMap<Place, Named>,
}

impl<'c, 'i, 'a> Names<'c, 'i, 'a> {
    pub(super) fn new(
        dwarf: &'c Dwarf<Slice<'a>>,
        unit: &'c Unit<Slice<'a>>,
        index: Option<&'c UnitIndex<'i, 'a>>,
    ) -> Self {
        Names {
            dwarf,
            unit,
            index,
            known: FxHashMap::default(),
        }
    }

    /// Does the same as [`resolve`](Self::resolve) for the entry at an offset of the unit. `None` if the entry cannot be
    /// read.
    pub(crate) fn resolve_at(
        &self,
        offset: UnitOffset,
        keep: impl FnOnce(&[u8]) -> u32,
    ) -> Option<Named> {
        let place = Place {
            other: None,
            offset,
        };
        let own = self.read(place)?;
        Some(self.search(&own, keep))
    }

    /// Returns the name and the declaration of a function. The name is the linkage name if the function's entry, or an
    /// entry that it refers to, has one; otherwise it is the plain name. `keep` stores the name in the caller's table
    /// of strings and returns its index there.
    pub(super) fn resolve(&mut self, own: &Own<'a>, keep: impl FnOnce(&[u8]) -> u32) -> Named {
        // Most inlined functions have nothing but one reference, and many refer to the same entry. So the result for
        // such an entry is kept, and the entry is searched only once.
        let only = match (
            own.linkage_name,
            own.name,
            own.line,
            own.specification,
            own.origin,
        ) {
            (None, None, None, None, Some(origin)) if own.file.is_none() => {
                self.place(None, origin)
            }
            _ => None,
        };
        if let Some(known) = only.and_then(|place| self.known.get(&place)) {
            return *known;
        }
        let named = self.search(own, keep);
        if let Some(place) = only {
            self.known.insert(place, named);
        }
        named
    }

    /// Does the work of [`resolve`](Self::resolve): searches the entry, then depth first the entries that it refers to.
    /// `DW_AT_specification` is followed before `DW_AT_abstract_origin`.
    fn search(&self, own: &Own<'a>, keep: impl FnOnce(&[u8]) -> u32) -> Named {
        let (mut linkage_name, mut name, mut line, mut file) = (None, None, None, None);
        let mut current = Some((None, *own));
        let mut waiting = Vec::new();
        let mut seen: Vec<Place> = Vec::new();
        loop {
            if let Some((other, own)) = current {
                let string = |value: Option<Value<'a>>| {
                    let unit = self.unit_of(other)?;
                    self.dwarf.attr_string(unit, value?).ok()
                };
                linkage_name = linkage_name.or_else(|| string(own.linkage_name));
                name = name.or_else(|| string(own.name));
                line = line.or(own.line);
                let here = |number| FileNumber { other, number };
                file = file.or(own.file.map(here));
                for value in [own.origin, own.specification].into_iter().flatten() {
                    waiting.extend(self.place(other, value));
                }
            }
            let all = linkage_name.is_some() && line.is_some() && file.is_some();
            if all || seen.len() >= MAX_REFERENCES {
                break;
            }
            let Some(place) = waiting.pop() else { break };
            current = None;
            if !seen.contains(&place) {
                seen.push(place);
                current = self.read(place).map(|own| (place.other, own));
            }
        }
        Named {
            function: linkage_name.or(name).map(|name| keep(&name)),
            line: line.unwrap_or(0),
            file,
        }
    }

    /// Returns the unit with this index among all units of the file. `None` in split debug info, or if the unit cannot
    /// be read.
    pub(crate) fn other_unit(&self, other: usize) -> Option<&'c Unit<Slice<'a>>> {
        self.index?.unit(other).ok()
    }

    fn unit_of(&self, other: Option<usize>) -> Option<&Unit<Slice<'a>>> {
        match other {
            None => Some(self.unit),
            Some(other) => self.index?.unit(other).ok(),
        }
    }

    /// Returns the place of the entry to which a reference in unit `from` leads. `None` if the value is not such a
    /// reference, or if no entry can be found.
    fn place(&self, from: Option<usize>, value: Value<'a>) -> Option<Place> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Place {
                other: from,
                offset,
            }),
            AttributeValue::DebugInfoRef(offset) => {
                if let Some(offset) = offset.to_unit_offset(&self.unit.header) {
                    return Some(Place {
                        other: None,
                        offset,
                    });
                }
                let index = self.index?;
                let other = index.unit_at(offset.0)?;
                let offset = offset.to_unit_offset(&index.unit(other).ok()?.header)?;
                Some(Place {
                    other: Some(other),
                    offset,
                })
            }
            _ => None,
        }
    }

    fn read(&self, place: Place) -> Option<Own<'a>> {
        let unit = self.unit_of(place.other)?;
        let mut entries = unit.entries_raw(Some(place.offset)).ok()?;
        let abbreviation = entries.read_abbreviation().ok()??;
        Own::read(&mut entries, abbreviation).ok()
    }
}
