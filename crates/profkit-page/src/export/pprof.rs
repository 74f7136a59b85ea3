//! Files of pprof: the message `perftools.profiles.Profile` of google/pprof, compressed with gzip.
//!
//! A message is written field by field: a key (field number and wire type), then a number, or a length and bytes. Only
//! these two wire types (0 and 2) occur. Fields that are 0 or empty are left out.
use super::Stacks;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;
use std::io::{self, Write as _};

/// The fields of each message, by name.
mod field {
    pub mod profile {
        pub const SAMPLE_TYPE: u32 = 1;
        pub const SAMPLE: u32 = 2;
        pub const MAPPING: u32 = 3;
        pub const LOCATION: u32 = 4;
        pub const FUNCTION: u32 = 5;
        pub const STRING_TABLE: u32 = 6;
        pub const COMMENT: u32 = 13;
        pub const DEFAULT_SAMPLE_TYPE: u32 = 14;
    }
    pub mod value_type {
        pub const TYPE: u32 = 1;
        pub const UNIT: u32 = 2;
    }
    pub mod sample {
        pub const LOCATION_ID: u32 = 1;
        pub const VALUE: u32 = 2;
    }
    pub mod mapping {
        pub const ID: u32 = 1;
        pub const FILENAME: u32 = 5;
        pub const BUILD_ID: u32 = 6;
        pub const HAS_FUNCTIONS: u32 = 7;
    }
    pub mod location {
        pub const ID: u32 = 1;
        pub const MAPPING_ID: u32 = 2;
        pub const LINE: u32 = 4;
    }
    pub mod line {
        pub const FUNCTION_ID: u32 = 1;
        pub const LINE: u32 = 2;
    }
    pub mod function {
        pub const ID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const SYSTEM_NAME: u32 = 3;
        pub const FILENAME: u32 = 4;
    }
}

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn numbers(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let mut packed = Message::default();
        values.for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[derive(Default)]
struct Strings {
    numbers: FxHashMap<String, u64>,
    list: Vec<String>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.list.push(text.to_owned());
        let number = self.list.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Stacks {
    /// Writes the stacks as a file of pprof. The same stacks always give the same bytes. Numbers in pprof are signed,
    /// so a number above 2^63 - 1 is written as 2^63 - 1.
    pub fn pprof(&self, out: impl io::Write) -> io::Result<()> {
        use field::{function, line, location, mapping, profile, sample, value_type};
        let mut strings = Strings::default();
        let mut whole = Message::default();
        for unit in &self.units {
            let mut message = Message::default();
            message.number(value_type::TYPE, strings.number(&unit.what));
            message.number(value_type::UNIT, strings.number(unit.unit));
            whole.message(profile::SAMPLE_TYPE, &message);
        }
        for (stack, numbers) in &self.stacks {
            let mut message = Message::default();
            // pprof needs the innermost frame first, and ids that begin at 1.
            let ids = stack.iter().rev().map(|&frame| u64::from(frame) + 1);
            message.numbers(sample::LOCATION_ID, ids);
            let most = u64::MAX >> 1;
            message.numbers(
                sample::VALUE,
                numbers.iter().map(|&number| number.min(most)),
            );
            whole.message(profile::SAMPLE, &message);
        }
        for (id, file) in (1..).zip(&self.binaries) {
            let mut binary = Message::default();
            binary.number(mapping::ID, id);
            binary.number(mapping::FILENAME, strings.number(&file.path));
            binary.number(mapping::BUILD_ID, strings.number(&file.build_id));
            binary.number(mapping::HAS_FUNCTIONS, 1);
            whole.message(profile::MAPPING, &binary);
        }
        for (id, frame) in (1..).zip(&self.frames) {
            let mut place = Message::default();
            place.number(line::FUNCTION_ID, id);
            place.number(line::LINE, frame.line.into());
            let mut message = Message::default();
            message.number(location::ID, id);
            message.number(location::MAPPING_ID, frame.binary as u64 + 1);
            message.message(location::LINE, &place);
            whole.message(profile::LOCATION, &message);
        }
        for (id, frame) in (1..).zip(&self.frames) {
            let mut message = Message::default();
            message.number(function::ID, id);
            message.number(function::NAME, strings.number(&frame.name));
            message.number(function::SYSTEM_NAME, strings.number(&frame.symbol));
            message.number(function::FILENAME, strings.number(&frame.file));
            whole.message(profile::FUNCTION, &message);
        }
        let comment = strings.number(concat!("profkit ", env!("CARGO_PKG_VERSION")));
        let first = self.units.get(self.first).map_or("", |unit| &unit.what);
        let first = strings.number(first);
        whole.bytes(profile::STRING_TABLE, b"");
        for text in &strings.list {
            whole.bytes(profile::STRING_TABLE, text.as_bytes());
        }
        whole.numbers(profile::COMMENT, std::iter::once(comment));
        whole.number(profile::DEFAULT_SAMPLE_TYPE, first);
        let mut encoder = GzEncoder::new(out, Compression::new(6));
        encoder.write_all(&whole.0)?;
        encoder.finish()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StackFrame, StackUnit, Stacks};
    use profkit_analysis::samples::SampleView;
    use profkit_object::debug_files::DebugFolders;
    use profkit_object::symbolize::Declarations;
    use std::io::Read as _;

    /// Splits a message into its fields. A field has its field number, and a number or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn next(bytes: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            while let Some((&byte, rest)) = bytes.split_first() {
                *bytes = rest;
                value |= u64::from(byte & 127) << shift;
                shift += 7;
                if byte & 128 == 0 {
                    break;
                }
            }
            value
        }
        let mut list = Vec::new();
        while !bytes.is_empty() {
            let key = next(&mut bytes);
            let value = next(&mut bytes);
            let text = match key & 7 {
                2 => {
                    let (text, rest) = bytes.split_at(usize::try_from(value).unwrap());
                    bytes = rest;
                    text.to_vec()
                }
                wire => {
                    assert_eq!(wire, 0);
                    Vec::new()
                }
            };
            list.push((key >> 3, value, text));
        }
        list
    }

    #[test]
    fn stacks_have_their_innermost_frame_first_and_strings_by_number() {
        let unit = StackUnit {
            what: "samples".into(),
            unit: "count",
        };
        let mut stacks = Stacks::new("a.prof", &[unit]);
        let frame = |name: &str| StackFrame {
            name: name.to_owned(),
            ..StackFrame::default()
        };
        stacks.add([frame("main"), frame("work")], &[300]);
        stacks.add([frame("main")], &[u64::MAX]);
        stacks.add([frame("idle")], &[0]);
        let mut packed = Vec::new();
        stacks.pprof(&mut packed).unwrap();
        let mut bytes = Vec::new();
        let mut inflate = flate2::read::GzDecoder::new(&*packed);
        inflate.read_to_end(&mut bytes).unwrap();
        let whole = fields(&bytes);
        let of = |field: u64| {
            whole
                .iter()
                .filter(move |one| one.0 == field)
                .map(|one| one.2.clone())
        };
        let strings: Vec<_> = of(6).map(|text| String::from_utf8(text).unwrap()).collect();
        assert_eq!(
            strings[..6],
            ["", "samples", "count", "a.prof", "main", "work"]
        );
        let samples: Vec<_> = of(2).map(|sample| fields(&sample)).collect();
        assert_eq!(samples.len(), 2);
        // A sample with the location ids 2 and 1, and the number 300, which is encoded in two bytes.
        assert_eq!(
            (&samples[0][0].2, &samples[0][1].2),
            (&vec![2, 1], &vec![0xac, 2])
        );
        // The largest signed number.
        assert_eq!(
            samples[1][1].2,
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]
        );
        let functions: Vec<_> = of(5).map(|function| fields(&function)).collect();
        assert_eq!((functions[1][0].1, functions[1][1].1), (2, 5));
    }

    /// What viewers of pprof need for `-list` and `-lines`: the mapping is the binary, functions have files, and locations
    /// have lines.
    #[test]
    fn lines_files_and_the_binary_come_from_debug_info() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program = root.join("tests/fixtures/debug_info/clang-22-dwarf-5.elf");
        let declarations =
            Declarations::read(std::slice::from_ref(&program), &DebugFolders::default()).unwrap();
        let name = b"_start";
        let declared = declarations.find(name).unwrap();
        let text = "_start:90:1\n 1: 50\n 3: 40\n 65535: 7\n";
        let view = SampleView::open(text.as_bytes(), None).unwrap();
        let by_line = Stacks::of_samples_by_line("a.prof", &view, &declarations);
        let mut one = Stacks::of_samples("a.prof", &view);
        one.locate(&declarations);
        for (stacks, offsets) in [(by_line, vec![1i64, 3, -1]), (one, vec![0])] {
            let mut packed = Vec::new();
            stacks.pprof(&mut packed).unwrap();
            let mut bytes = Vec::new();
            let mut inflate = flate2::read::GzDecoder::new(&*packed);
            inflate.read_to_end(&mut bytes).unwrap();
            let whole = fields(&bytes);
            let of = |field: u64| whole.iter().filter(move |one| one.0 == field);
            let strings: Vec<_> = of(6)
                .map(|one| String::from_utf8(one.2.clone()).unwrap())
                .collect();
            let string = |number: u64| strings[usize::try_from(number).unwrap()].as_str();
            let member = |message: &[u8], field: u64| {
                let found = fields(message).into_iter().find(|one| one.0 == field);
                found.map(|(_, number, bytes)| (number, bytes))
            };
            let mapping = &of(3).next().unwrap().2;
            let path = string(member(mapping, 5).unwrap().0);
            assert!(path.ends_with("clang-22-dwarf-5.elf"), "{path}");
            assert!(
                !string(member(mapping, 6).unwrap().0).is_empty(),
                "a build id"
            );
            for function in of(5) {
                let file = string(member(&function.2, 4).unwrap().0);
                assert_eq!(file.as_bytes(), declared.file);
            }
            let lines: Vec<u64> = of(4)
                .map(|location| member(&member(&location.2, 4).unwrap().1, 2).unwrap().0)
                .collect();
            let wanted = offsets
                .iter()
                .map(|offset| i64::from(declared.line) + offset);
            let wanted: Vec<u64> = wanted.map(|line| u64::try_from(line).unwrap()).collect();
            assert_eq!(lines, wanted);
        }
    }
}
