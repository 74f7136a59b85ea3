//! The ledger of a store: which parts count. docs/guide/fold.md shows one.
use super::{Bucket, FoldError};
use profkit_data::detect::Family;
use std::collections::BTreeMap;
use std::fmt;
use twox_hash::XxHash3_64;

/// The version of the ledger that is written. All earlier versions are read.
pub const LEDGER_VERSION: u32 = 1;
/// The name of the ledger in its store.
pub const LEDGER_NAME: &str = "ledger.txt";
/// The largest size of a ledger in bytes: that of about 700,000 parts.
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// The folder of the parts in their store.
pub(super) const FOLDER: &str = "parts";
/// The extension of parts.
pub(super) const SUFFIX: &str = ".pkpart";
const TITLE: &str = "profkit-ledger ";
const HEAD: &str = "# The parts whose sum this store is: inputs, bytes, name (KIND/KEY/DAY-DIGEST). profkit fold changes this file.\n";
/// The longest key in bytes. With the rest of its name a part stays below the limits of file systems.
const LONGEST_KEY: usize = 100;

/// What the inputs of a part have in common: those of different kinds cannot be added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Instrumentation profiles of IR.
    Ir,
    /// Instrumentation profiles of the front end.
    FrontEnd,
    /// Instrumentation profiles that do not say of which level they are. They fit those of each level.
    Instr,
    /// Sample profiles.
    Sample,
    /// Heap profiles.
    Heap,
    /// MIP profiles.
    Mip,
}

impl PartKind {
    const NAMES: [(Self, &'static str); 6] = [
        (PartKind::Ir, "ir"),
        (PartKind::FrontEnd, "front-end"),
        (PartKind::Instr, "instr"),
        (PartKind::Sample, "sample"),
        (PartKind::Heap, "heap"),
        (PartKind::Mip, "mip"),
    ];

    /// The name of the folder of such parts.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    pub(super) fn of_family(family: Family) -> Self {
        match family {
            Family::Instr => PartKind::Instr,
            Family::Sample => PartKind::Sample,
            Family::MemProf => PartKind::Heap,
            Family::Mip => PartKind::Mip,
        }
    }
}

/// The name of a part in a store, without its folder and its extension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartName {
    /// What the part is of.
    pub kind: PartKind,
    /// The programs, or `all`.
    pub key: String,
    /// When its inputs were written.
    pub bucket: Bucket,
    /// The XXH3-64 of its bytes.
    pub digest: u64,
}

impl PartName {
    /// The name of the object in the store.
    pub fn object(&self) -> String {
        format!("{FOLDER}/{self}{SUFFIX}")
    }

    /// Reads the name of an object. `None` if no part is named so.
    pub(super) fn of_object(object: &str) -> Option<Self> {
        let name = object.strip_prefix(FOLDER)?.strip_prefix('/')?;
        let name = name.strip_suffix(SUFFIX)?;
        let (kind, rest) = name.split_once('/')?;
        let (key, rest) = rest.split_once('/')?;
        let (bucket, digest) = rest.rsplit_once('-')?;
        let (kind, _) = PartKind::NAMES.iter().find(|(_, name)| *name == kind)?;
        let part = PartName {
            kind: *kind,
            key: key.to_owned(),
            bucket: Bucket::parse(bucket)?,
            digest: u64::from_str_radix(digest, 16).ok()?,
        };
        (key_of(key) == key && part.object() == object).then_some(part)
    }

    /// The same place, with another content.
    pub(super) fn with(&self, bytes: &[u8]) -> Self {
        PartName {
            digest: XxHash3_64::oneshot(bytes),
            ..self.clone()
        }
    }
}

impl fmt::Display for PartName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartName {
            kind,
            key,
            bucket,
            digest,
        } = self;
        write!(f, "{}/{key}/{bucket}-{digest:016x}", kind.name())
    }
}

/// A key that can be a folder of any file system.
pub(super) fn key_of(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '_');
    if text.len() <= LONGEST_KEY && !text.is_empty() && text.chars().all(allowed) {
        return text.to_owned();
    }
    let kept: String = text.chars().filter(|&c| allowed(c)).take(40).collect();
    format!("{kept}_{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

/// What a ledger says about a part beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerRow {
    /// The number of inputs.
    pub inputs: u64,
    /// The size of the part in bytes.
    pub bytes: u64,
}

/// The parts whose sum a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The parts. No two of them have an input in common.
    pub parts: BTreeMap<PartName, LedgerRow>,
}

impl Ledger {
    /// The number of inputs of all parts.
    pub fn inputs(&self) -> u64 {
        let inputs = self.parts.values().map(|row| row.inputs);
        inputs.fold(0, u64::saturating_add)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut text = format!("{TITLE}{LEDGER_VERSION}\n{HEAD}");
        for (name, LedgerRow { inputs, bytes }) in &self.parts {
            text.push_str(&format!("{inputs} {bytes} {name}\n"));
        }
        // Who reads a ledger that was cut off must see it.
        let digest = XxHash3_64::oneshot(text.as_bytes());
        text.push_str(&format!("end {} {digest:016x}\n", self.parts.len()));
        text.into_bytes()
    }

    /// Reads a ledger. `name` is that of the file in messages.
    pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<Self, FoldError> {
        let damaged = |line: usize, what: &str| FoldError::Ledger {
            name: name.to_owned(),
            line,
            what: what.to_owned(),
        };
        let text = str::from_utf8(bytes).map_err(|_| damaged(1, "it is no text"))?;
        let title = text.split_inclusive('\n').next().unwrap_or_default();
        let version = title
            .strip_prefix(TITLE)
            .and_then(|rest| rest.strip_suffix('\n'));
        match version.and_then(|version| version.parse::<u32>().ok()) {
            Some(LEDGER_VERSION) => {}
            Some(version) if version > LEDGER_VERSION => {
                return Err(FoldError::NewerLedger {
                    name: name.to_owned(),
                    version,
                });
            }
            _ => return Err(damaged(1, "the first line is not that of a ledger")),
        }
        let mut ledger = Ledger::default();
        let mut read = title.len();
        let mut ended = false;
        for (number, line) in (2..).zip(text.split_inclusive('\n').skip(1)) {
            let before = read;
            read += line.len();
            if ended {
                return Err(damaged(number, "there are lines after the end"));
            }
            let Some(line) = line.strip_suffix('\n') else {
                return Err(damaged(number, "the line is cut off"));
            };
            if line.starts_with('#') {
                continue;
            }
            if let Some(end) = line.strip_prefix("end ") {
                let before = bytes.get(..before).unwrap_or_default();
                let digest = XxHash3_64::oneshot(before);
                if end != format!("{} {digest:016x}", ledger.parts.len()) {
                    return Err(damaged(number, "the lines are not those that were written"));
                }
                ended = true;
                continue;
            }
            let row = part_of(line).ok_or_else(|| damaged(number, "the line names no part"))?;
            ledger.parts.insert(row.0, row.1);
        }
        match ended {
            true => Ok(ledger),
            false => Err(damaged(text.lines().count(), "the end is missing")),
        }
    }
}

fn part_of(line: &str) -> Option<(PartName, LedgerRow)> {
    let mut words = line.splitn(3, ' ');
    let mut next = || words.next();
    let row = LedgerRow {
        inputs: next()?.parse().ok()?,
        bytes: next()?.parse().ok()?,
    };
    let name = PartName::of_object(&format!("{FOLDER}/{}{SUFFIX}", next()?))?;
    Some((name, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let name = |kind, key: &str, day, digest| PartName {
            kind,
            key: key.to_owned(),
            bucket: Bucket::parse(day).unwrap(),
            digest,
        };
        let row = |inputs| LedgerRow { inputs, bytes: 900 };
        let parts = [
            (name(PartKind::Ir, "all", "2026-11-28", 7), row(3)),
            (
                name(PartKind::Sample, "6445a5f5", "2026-11-28T09", u64::MAX),
                row(4),
            ),
        ];
        Ledger {
            parts: parts.into(),
        }
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let bytes = ledger().encode();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert_eq!(
            text.lines().skip(2).collect::<Vec<_>>(),
            [
                "3 900 ir/all/2026-11-28-0000000000000007",
                "4 900 sample/6445a5f5/2026-11-28T09-ffffffffffffffff",
                text.lines().last().unwrap(),
            ]
        );
        assert_eq!(Ledger::decode("l", &bytes).unwrap(), ledger());
        assert_eq!(Ledger::decode("l", &bytes).unwrap().inputs(), 7);
    }

    #[test]
    fn every_damage_of_a_ledger_is_seen() {
        let bytes = ledger().encode();
        for cut in 0..bytes.len() {
            let error = Ledger::decode("l", &bytes[..cut]).unwrap_err();
            assert!(matches!(error, FoldError::Ledger { .. }), "{cut}: {error}");
        }
        for at in 0..bytes.len() {
            for bit in [1, 0x80] {
                let mut other = bytes.clone();
                other[at] ^= bit;
                // A digit of the version may become that of a newer one.
                assert!(Ledger::decode("l", &other).is_err(), "{at}");
            }
        }
        let newer = b"profkit-ledger 2\nanything\n";
        let error = Ledger::decode("l", newer).unwrap_err();
        assert!(matches!(error, FoldError::NewerLedger { version: 2, .. }));
        let more = [&*bytes, b"# more\n"].concat();
        assert!(Ledger::decode("l", &more).is_err());
    }

    #[test]
    fn no_name_leads_out_of_the_store() {
        for name in [
            "parts/ir/../2026-11-28-0000000000000007.pkpart",
            "parts/ir/a/b/2026-11-28-0000000000000007.pkpart",
            "parts/ir/./2026-11-28-0000000000000007.pkpart",
            "parts/ir//2026-11-28-0000000000000007.pkpart",
            "parts/x/all/2026-11-28-0000000000000007.pkpart",
            "parts/ir/all/2026-11-28-7.pkpart",
            "parts/ir/all/2026-11-28.pkpart",
            "other/ir/all/2026-11-28-0000000000000007.pkpart",
            "parts/ir/all/2026-11-28-0000000000000007",
        ] {
            assert_eq!(PartName::of_object(name), None, "{name}");
        }
        let long = "x".repeat(300);
        for key in ["", ".", "..", "a/b", "ä", long.as_str()] {
            let key = key_of(key);
            assert!(!key.is_empty() && key.len() <= LONGEST_KEY && !key.contains(['.', '/']));
            assert_eq!(key_of(&key), key);
        }
        assert_eq!(key_of("01b0+1-05f762d1a48dcb66"), "01b0+1-05f762d1a48dcb66");
    }
}
