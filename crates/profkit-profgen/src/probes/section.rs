//! Reads the sections of pseudo probes.
//!
//! `.pseudo_probe_desc` describes functions: the MD5 of the name, the checksum of the control flow graph, and the name.
//! `.pseudo_probe` lists the probes of each function with their addresses. After the probes come the functions that
//! were inlined, each with the probe of its call and with its own probes. An address is a distance from the probe
//! before; the first address in a function is a distance from the function. A probe with the attribute "sentinel" is
//! not a place in the source. It marks where another part of a function begins, if this part has a symbol of its own.
//!
//! Sources: `llvm/include/llvm/MC/MCPseudoProbe.h`, `llvm/include/llvm/IR/PseudoProbe.h`.
use object::{Object as _, ObjectSection as _};
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::limits::SAMPLE_INLINE_DEPTH;
use profkit_data::{Error, ErrorKind, Result, Structure};
use profkit_object::binary::Image;
use rustc_hash::{FxHashMap, FxHashSet};

/// The name of the section with the descriptions of functions.
pub const DESCRIPTIONS: &str = ".pseudo_probe_desc";
/// The name of the section with the probes.
pub const PROBES: &str = ".pseudo_probe";

/// The index of the probe at the entry of a function.
const ENTRY: u32 = 1;
/// The kind of a probe that counts a block. All other kinds are probes of calls.
const BLOCK: u8 = 0;
/// The mask of the kind in a probe's byte.
const KIND: u8 = 0xf;
/// The number of the lowest bit of the attributes in a probe's byte.
const ATTRIBUTES_SHIFT: u32 = 4;
/// The mask of the attributes, after the shift by [`ATTRIBUTES_SHIFT`].
const ATTRIBUTES: u8 = 7;
/// The flag in a probe's byte that is set if the address is stored as a distance.
const IS_DISTANCE: u8 = 0x80;
/// The attribute of a probe that is not a place in the source, but marks where a part of a function begins.
const SENTINEL: u8 = 2;
/// The attribute of a probe that is stored with a discriminator.
const HAS_DISCRIMINATOR: u8 = 4;

/// The bytes of both sections.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'data> {
    /// The descriptions of functions.
    pub descriptions: &'data [u8],
    /// The probes.
    pub probes: &'data [u8],
    /// The byte order.
    pub endian: Endian,
}

impl<'data> Sections<'data> {
    /// Finds the sections of a program. `None` if one of them is missing.
    ///
    /// # Errors
    /// If the file ends before a section does.
    pub fn of(image: &Image<'data>) -> Result<Option<Self>> {
        let bytes = |name: &'static str| {
            let section = image.section_by_name(name);
            let data = section.map(|section| section.data()).transpose();
            data.map_err(|error| {
                Error::new(ErrorKind::Malformed, format!("cannot be read: {error}"))
                    .within(Structure::NamedSection(name.into()))
            })
        };
        let (descriptions, probes) = (bytes(DESCRIPTIONS)?, bytes(PROBES)?);
        Ok(descriptions
            .zip(probes)
            .map(|(descriptions, probes)| Sections {
                descriptions,
                probes,
                endian: if image.is_little_endian() {
                    Endian::Little
                } else {
                    Endian::Big
                },
            }))
    }
}

/// A function that has probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The checksum of the control flow graph.
    pub checksum: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// The index of a [`FunctionCopy`] in [`ProbeMap::copies`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CopyId(u32);

/// One copy of a function's code: the function itself, or a copy that was inlined into a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCopy {
    /// The MD5 of the function's name.
    pub guid: u64,
    /// The copy of the caller, and the index of the call's probe in it. `None` for the function itself.
    pub caller: Option<(CopyId, u32)>,
    /// The range of this copy's probes in [`ProbeMap::probes`].
    pub probes: std::ops::Range<usize>,
    /// The copies of other functions that were inlined into this copy.
    pub inlined: Vec<CopyId>,
}

/// A probe: a marked place in the source, and the address of its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The address.
    pub address: u64,
    /// The index of the probe in its function, from 1.
    pub index: u32,
    /// The discriminator that FS-AFDO gave to this copy of the code; 0 if there is none.
    pub discriminator: u32,
    /// The copy of the function that contains the probe.
    pub copy: CopyId,
    kind: u8,
}

impl Probe {
    /// Whether the probe counts a block. Otherwise it counts the calls of a call site.
    pub fn is_block(&self) -> bool {
        self.kind == BLOCK
    }

    /// Whether the probe is at the entry of its function.
    pub fn is_entry(&self) -> bool {
        self.index == ENTRY
    }
}

/// A frame of a probe: the MD5 of a function's name, and the index of a probe in this function.
pub type ProbeFrame = (u64, u32);

/// All probes of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeMap {
    /// The functions, by the MD5 of their names.
    pub descriptions: FxHashMap<u64, Description>,
    /// The functions and their inlined copies. A caller comes before the copies that were inlined into it.
    pub copies: Vec<FunctionCopy>,
    /// The probes. Those of one copy are together, in the order of the section.
    pub probes: Vec<Probe>,
    by_address: Vec<u32>,
}

/// The facts that are needed to read the probes: the addresses of functions, and the functions whose probes are kept.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The address of each symbol, by the MD5 of its name.
    pub starts: FxHashMap<u64, u64>,
    /// The MD5s of the names of functions whose probes are kept; `None` keeps all.
    pub functions: Option<FxHashSet<u64>>,
}

impl ProbeMap {
    /// Reads the sections. The result takes a small multiple of their size in memory.
    ///
    /// # Errors
    /// The first fault: [`ErrorKind::Truncated`] or [`ErrorKind::Malformed`], with its offset in the section.
    pub fn read(sections: &Sections<'_>, wanted: &Wanted) -> Result<Self> {
        let mut map = ProbeMap::default();
        map.read_descriptions(Cursor::new(sections.descriptions, 0, sections.endian))
            .map_err(|error| error.within(Structure::NamedSection(DESCRIPTIONS.into())))?;
        let mut reader = Reader {
            cursor: Cursor::new(sections.probes, 0, sections.endian),
            wanted,
            last: 0,
            map: &mut map,
        };
        reader
            .read()
            .map_err(|error| error.within(Structure::NamedSection(PROBES.into())))?;
        let count = u32::try_from(map.probes.len())
            .map_err(|_| Error::new(ErrorKind::LimitExceeded, "there are more than 2^32 probes"))?;
        map.by_address = (0..count).collect();
        let probes = &map.probes;
        map.by_address
            .sort_by_key(|&index| probes.get(index as usize).map(|probe| probe.address));
        Ok(map)
    }

    fn read_descriptions(&mut self, mut cursor: Cursor<'_>) -> Result<()> {
        while !cursor.is_empty() {
            let guid = cursor.u64()?;
            let checksum = cursor.u64()?;
            let len = cursor.uleb128()?;
            let name = cursor.take_u64(len)?;
            self.descriptions
                .entry(guid)
                .or_insert_with(|| Description {
                    checksum,
                    name: name.to_vec(),
                });
        }
        Ok(())
    }

    /// Finds a copy of a function by its id.
    pub fn copy(&self, id: CopyId) -> Option<&FunctionCopy> {
        self.copies.get(id.0 as usize)
    }

    /// The probes from `first` to `last`, both inclusive, by address, each with its index in [`probes`](Self::probes).
    pub fn between(&self, first: u64, last: u64) -> impl Iterator<Item = (usize, &Probe)> {
        let address = |index: &u32| self.probes.get(*index as usize).map(|probe| probe.address);
        let from = self
            .by_address
            .partition_point(|index| address(index) < Some(first));
        let found = self.by_address.get(from..).unwrap_or_default();
        found
            .iter()
            .filter_map(|&index| Some((index as usize, self.probes.get(index as usize)?)))
            .take_while(move |(_, probe)| probe.address <= last)
    }

    /// Returns the probe of the call at an address. If the compiler merged several calls, the first probe is returned.
    pub fn call_at(&self, address: u64) -> Option<&Probe> {
        let mut probes = self.between(address, address).map(|(_, probe)| probe);
        probes.find(|probe| !probe.is_block())
    }

    /// The frames of a probe, outermost first, at most [`SAMPLE_INLINE_DEPTH`], and whether others were cut off: those
    /// outside of a call site without a probe.
    pub fn known_frames(&self, probe: &Probe) -> (Vec<ProbeFrame>, bool) {
        let mut frames = self.frames(probe);
        let mut known: Vec<ProbeFrame> = frames.next().into_iter().collect();
        let mut is_cut = false;
        for frame in frames {
            if frame.1 == 0 || known.len() == SAMPLE_INLINE_DEPTH {
                is_cut = true;
                break;
            }
            known.push(frame);
        }
        known.reverse();
        (known, is_cut)
    }

    /// The frames of a probe, innermost first, each with the index of its own probe or of the call's.
    pub fn frames(&self, probe: &Probe) -> impl Iterator<Item = ProbeFrame> {
        let leaf = self.copy(probe.copy).map(|copy| (copy, probe.index));
        std::iter::successors(leaf, |(copy, _)| {
            let (caller, index) = copy.caller?;
            Some((self.copy(caller)?, index))
        })
        .map(|(copy, index)| (copy.guid, index))
    }
}

struct Open {
    /// The id of the copy; `None` if the function is not wanted.
    id: Option<CopyId>,
    inlined_left: u64,
}

struct Reader<'r, 'data> {
    cursor: Cursor<'data>,
    wanted: &'r Wanted,
    last: u64,
    map: &'r mut ProbeMap,
}

impl Reader<'_, '_> {
    fn read(&mut self) -> Result<()> {
        // The depth of inlining is limited only by the size of the section, so this uses a loop and not recursion.
        let mut open: Vec<Open> = Vec::new();
        // Once an address was stored whole, all others are distances, and those of functions are not needed.
        let mut whole_addresses = false;
        loop {
            while open.last().is_some_and(|copy| copy.inlined_left == 0) {
                open.pop();
            }
            let next = match open.last_mut() {
                None if self.cursor.is_empty() => return Ok(()),
                None => self.function(whole_addresses)?,
                Some(outer) => {
                    outer.inlined_left -= 1;
                    let outer = outer.id;
                    self.inlined(outer)?
                }
            };
            let (id, probes) = next;
            let count = self.cursor.uleb128()?;
            let first = self.map.probes.len();
            for _ in 0..probes {
                self.probe(id, &mut whole_addresses)?;
            }
            let last = self.map.probes.len();
            if let Some(copy) = id.and_then(|id| self.map.copies.get_mut(id.0 as usize)) {
                copy.probes = first..last;
            }
            open.push(Open {
                id,
                inlined_left: count,
            });
        }
    }

    /// The id of a function's copy (`None` if it is not wanted), and the number of its probes.
    fn function(&mut self, whole_addresses: bool) -> Result<(Option<CopyId>, u64)> {
        let guid = self.cursor.u64()?;
        let is_wanted = self.wanted.functions.as_ref();
        let id = if is_wanted.is_none_or(|functions| functions.contains(&guid)) {
            Some(self.add(guid, None)?)
        } else {
            None
        };
        if id.is_some()
            && !whole_addresses
            && let Some(start) = self.wanted.starts.get(&guid)
        {
            self.last = *start;
        }
        Ok((id, self.cursor.uleb128()?))
    }

    fn inlined(&mut self, outer: Option<CopyId>) -> Result<(Option<CopyId>, u64)> {
        let site = self.index()?;
        let guid = self.cursor.u64()?;
        let id = match outer {
            Some(outer) => {
                let id = self.add(guid, Some((outer, site)))?;
                if let Some(copy) = self.map.copies.get_mut(outer.0 as usize) {
                    copy.inlined.push(id);
                }
                Some(id)
            }
            None => None,
        };
        Ok((id, self.cursor.uleb128()?))
    }

    fn add(&mut self, guid: u64, caller: Option<(CopyId, u32)>) -> Result<CopyId> {
        let id = u32::try_from(self.map.copies.len()).map_err(|_| {
            Error::new(
                ErrorKind::LimitExceeded,
                "there are more than 2^32 functions with probes",
            )
        })?;
        self.map.copies.push(FunctionCopy {
            guid,
            caller,
            probes: 0..0,
            inlined: Vec::new(),
        });
        Ok(CopyId(id))
    }

    fn index(&mut self) -> Result<u32> {
        let at = self.cursor.offset();
        let index = self.cursor.uleb128()?;
        u32::try_from(index).map_err(|_| {
            Error::new(
                ErrorKind::Malformed,
                "the index of a probe is larger than 32 bits",
            )
            .at(at)
            .found(index)
        })
    }

    fn probe(&mut self, copy: Option<CopyId>, whole_addresses: &mut bool) -> Result<()> {
        let index = self.index()?;
        let value = self.cursor.u8()?;
        let attributes = value >> ATTRIBUTES_SHIFT & ATTRIBUTES;
        let is_sentinel = attributes & SENTINEL != 0;
        let address = if value & IS_DISTANCE != 0 {
            self.last.wrapping_add_signed(self.distance()?)
        } else {
            let address = self.cursor.u64()?;
            if is_sentinel {
                // The eight bytes are the MD5 of the symbol at which this part of the function begins.
                self.wanted.starts.get(&address).copied().unwrap_or(address)
            } else {
                *whole_addresses = true;
                address
            }
        };
        let discriminator = if attributes & HAS_DISCRIMINATOR != 0 {
            self.index()?
        } else {
            0
        };
        if let Some(copy) = copy
            && !is_sentinel
        {
            self.map.probes.push(Probe {
                address,
                index,
                discriminator,
                copy,
                kind: value & KIND,
            });
        }
        self.last = address;
        Ok(())
    }

    fn distance(&mut self) -> Result<i64> {
        let at = self.cursor.offset();
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.cursor.u8()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds only the top bit of the number, which is its sign.
            if shift == 63 && bits != 0 && bits != 0x7f {
                return Err(Error::new(
                    ErrorKind::Malformed,
                    "the distance between the addresses of two probes does not fit in 64 bits",
                )
                .at(at));
            }
            value |= bits << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift > 63 {
                return Err(Error::new(
                    ErrorKind::Malformed,
                    "the number that encodes the address of a probe has more than ten bytes",
                )
                .at(at));
            }
        }
        let unused = 64u32.saturating_sub(shift);
        Ok((value << unused).cast_signed() >> unused)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn sections() -> (Vec<u8>, Vec<u8>) {
        let mut descriptions = Vec::new();
        for (guid, checksum, name) in [(7u64, 70u64, "outer"), (9, 90, "inner")] {
            descriptions.extend(guid.to_le_bytes());
            descriptions.extend(checksum.to_le_bytes());
            descriptions.push(u8::try_from(name.len()).expect("a short name"));
            descriptions.extend(name.as_bytes());
        }
        let mut probes = Vec::new();
        probes.extend(7u64.to_le_bytes());
        // The function has one probe and one inlined copy. The probe is 0x10 bytes after the start of the function.
        probes.extend([1, 1, 1, 0x80, 0x10]);
        probes.push(2);
        probes.extend(9u64.to_le_bytes());
        // The inlined copy has a direct call with discriminator 5, 8 bytes before the previous probe.
        probes.extend([1, 0, 3, 0x80 | 0x40 | 2, 0x78, 5]);
        (descriptions, probes)
    }

    fn read(descriptions: &[u8], probes: &[u8]) -> Result<ProbeMap> {
        let mut wanted = Wanted::default();
        wanted.starts.insert(7, 0x1000);
        let sections = Sections {
            descriptions,
            probes,
            endian: Endian::Little,
        };
        ProbeMap::read(&sections, &wanted)
    }

    #[test]
    fn probes_have_addresses_and_frames() {
        let (descriptions, probes) = sections();
        let map = read(&descriptions, &probes).expect("sound sections");
        assert_eq!(map.descriptions[&9].name, b"inner");
        let found: Vec<_> = map.between(0, u64::MAX).map(|(_, probe)| *probe).collect();
        let places: Vec<_> = found.iter().map(|it| (it.address, it.index)).collect();
        assert_eq!(places, [(0x1008, 3), (0x1010, 1)]);
        assert!(found[1].is_entry() && found[1].is_block());
        assert_eq!(found[0].discriminator, 5);
        let frames: Vec<_> = map.frames(&found[0]).collect();
        assert_eq!(frames, [(9, 3), (7, 2)]);
        assert_eq!(map.call_at(0x1008), Some(&found[0]));
        assert_eq!(map.call_at(0x1010), None);
    }

    #[test]
    fn every_cut_is_an_error_with_an_offset() {
        let (descriptions, probes) = sections();
        for len in 1..probes.len() {
            let error = read(&descriptions, &probes[..len]).expect_err("cut");
            assert!(error.offset().is_some(), "{len}: {error}");
        }
        for len in 1..descriptions.len() {
            let whole = 17 + 5;
            assert_eq!(
                read(&descriptions[..len], &probes).is_ok(),
                len == whole,
                "{len}"
            );
        }
    }

    #[test]
    fn numbers_that_are_too_large_have_messages() {
        let (descriptions, _) = sections();
        // A function with one probe and no inlined copy.
        let of = |probe: &[u8]| {
            let mut probes = 7u64.to_le_bytes().to_vec();
            probes.extend([1, 0]);
            probes.extend(probe);
            read(&descriptions, &probes)
                .expect_err("a damaged probe")
                .to_string()
        };
        let distance = |last: &[u8]| [&[1, IS_DISTANCE][..], &[0x80; 9], last].concat();
        let errors = [
            // The index 2^32.
            of(&[0x80, 0x80, 0x80, 0x80, 0x10, 0]),
            // A distance that needs 65 bits, and a distance that is stored in eleven bytes.
            of(&distance(&[2])),
            of(&distance(&[0x80, 0])),
        ];
        insta::assert_snapshot!(errors.join("\n"));
        // The largest and the smallest possible distance are accepted.
        for last in [0, 0x7f] {
            let mut probes = 7u64.to_le_bytes().to_vec();
            probes.extend([1, 0]);
            probes.extend(distance(&[last]));
            assert!(read(&descriptions, &probes).is_ok(), "{last}");
        }
    }

    #[test]
    fn functions_that_are_not_wanted_are_passed_over() {
        let (descriptions, probes) = sections();
        let wanted = Wanted {
            functions: Some(FxHashSet::default()),
            ..Wanted::default()
        };
        let sections = Sections {
            descriptions: &descriptions,
            probes: &probes,
            endian: Endian::Little,
        };
        let map = ProbeMap::read(&sections, &wanted).expect("sound sections");
        assert!(map.copies.is_empty() && map.probes.is_empty());
    }
}
