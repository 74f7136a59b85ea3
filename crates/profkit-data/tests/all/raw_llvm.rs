//! Compares decoded raw profiles with what the `llvm-profdata` of the same release prints about them.
use profkit_abi::variant;
use profkit_data::bytes::Endian;
use profkit_data::ids::{BuildId, FuncHash, NameRef};
use profkit_data::instr::raw::{
    PointerWidth, RawDialect, RawImage, RawImageRecord, RawImageVTable, RawReader,
};
use profkit_data::instr::text::TextReader;
use profkit_data::instr::{InstrKind, InstrSource, Record, TemporalTraces, ValueEntry};
use profkit_data::names::SymbolTable;
use profkit_testkit::{Llvm, fixture_path, fixtures, require_or_skip, some_or_all};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Function {
    name: String,
    hash: u64,
    counts: Vec<u64>,
    /// For each value kind, all its values: the index of the value site, the value as a name or number, and its count.
    values: [Vec<(usize, String, u64)>; 3],
}

fn tool(llvm: &Llvm, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(llvm.profdata())
        .args(arguments)
        .arg(file)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{} {}: {words}",
        llvm.release(),
        file.display()
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn list(text: &str) -> Vec<u64> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let items = inner.split(", ").filter(|item| !item.is_empty());
    items.map(|item| item.parse().unwrap()).collect()
}

/// Parses a line of value results: `[  0, NAME,         50 ] (75.76%)`. The name may contain commas.
fn value_line(line: &str) -> (usize, String, u64) {
    let inner = line.trim_start_matches('[').rsplit_once(" ] (").unwrap().0;
    let (site, rest) = inner.split_once(", ").unwrap();
    let (name, count) = rest.rsplit_once(',').unwrap();
    (
        site.trim().parse().unwrap(),
        name.trim().to_owned(),
        count.trim().parse().unwrap(),
    )
}

fn parse_show(text: &str) -> Vec<Function> {
    let mut functions = Vec::<Function>::new();
    let mut kind = 0;
    for line in text.lines().skip_while(|line| *line != "Counters:").skip(1) {
        if let Some(value) = line.strip_prefix('\t') {
            functions.last_mut().unwrap().values[kind].push(value_line(value));
        } else if let Some(field) = line.strip_prefix("    ") {
            let function = functions.last_mut().unwrap();
            match field.split_once(':').unwrap() {
                ("Hash", hash) => {
                    function.hash =
                        u64::from_str_radix(hash.trim().trim_start_matches("0x"), 16).unwrap();
                }
                ("Function count", count) => function.counts = list(count),
                ("Block counts", counts) => function.counts.extend(list(counts)),
                ("Indirect Target Results", _) => kind = 0,
                ("Memory Intrinsic Size Results", _) => kind = 1,
                ("VTable Results", _) => kind = 2,
                _ => {}
            }
        } else if let Some(name) = line.strip_prefix("  ") {
            let name = name.strip_suffix(':').unwrap().to_owned();
            functions.push(Function {
                name,
                ..Function::default()
            });
        } else {
            break;
        }
    }
    functions
}

fn read_all(reader: &mut dyn InstrSource) -> Vec<Record> {
    let mut records = Vec::new();
    let mut record = Record::default();
    while reader.read_record(&mut record).unwrap() {
        records.push(record.clone());
    }
    records
}

fn decoded(records: &[Record], symbols: &SymbolTable) -> Vec<Function> {
    let name_of = |kind, value| match kind {
        1 => u64::to_string(&value),
        _ => {
            let name = symbols.get(NameRef(value)).unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        }
    };
    let function = |record: &Record| {
        let values = [0, 1, 2].map(|kind| {
            let sites = record.values.kind(kind).unwrap().sites().enumerate();
            sites
                .flat_map(|(site, entries)| entries.iter().map(move |entry| (site, entry)))
                .map(|(site, entry)| (site, name_of(kind, entry.value), entry.count))
                .collect()
        });
        Function {
            name: String::from_utf8_lossy(&record.name).into_owned(),
            hash: record.func_hash.0,
            counts: record.counts.clone(),
            values,
        }
    };
    records.iter().map(function).collect()
}

fn compare(llvm: &Llvm, path: &Path) {
    let data = std::fs::read(path).unwrap();
    let mut reader = RawReader::parse(&data).unwrap();
    let records = read_all(&mut reader);
    let mut ours = decoded(&records, reader.symbols());
    if llvm.release() < 19 && data[0] == 0xff {
        // In big-endian files, LLVM 16 and older do not swap the bytes of the name hashes that replace the addresses of
        // call targets. This is a fault of LLVM, so these names are not compared.
        for function in &mut ours {
            function.values[0]
                .iter_mut()
                .for_each(|(_, name, _)| name.clear());
        }
    }

    // One call of `show` prints either only the context-sensitive records or only the other records.
    let is_cs = |function: &Function| {
        reader.kind().is_ir() && FuncHash(function.hash).is_context_sensitive()
    };
    let (cs, plain) = ours.into_iter().partition::<Vec<_>, _>(is_cs);
    let several = reader.profiles_seen() > 1;
    compare_shown(llvm, path, &[], several, &plain);
    if !cs.is_empty() {
        compare_shown(llvm, path, &["--showcs"], several, &cs);
    }

    let shown = tool(llvm, &["show", "--binary-ids"], path);
    let their_ids = shown
        .lines()
        .skip_while(|line| !line.starts_with("Binary IDs"))
        .skip(1);
    let their_ids: Vec<_> = their_ids.take_while(|line| !line.contains(' ')).collect();
    let our_ids: Vec<_> = reader
        .binary_ids()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    if reader.profiles_seen() > 1 && llvm.release() < 19 {
        // LLVM 16 and older print only the build ids of the last profile.
        assert!(
            our_ids.ends_with(
                &their_ids
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
            )
        );
    } else {
        assert_eq!(our_ids, their_ids, "{}", path.display());
    }

    let text = tool(llvm, &["merge", "--text", "-o", "-"], path);
    compare_merged(&records, &mut reader, &text, llvm.release(), path);
}

fn compare_shown(llvm: &Llvm, path: &Path, option: &[&str], several: bool, ours: &[Function]) {
    let mut arguments = vec![
        "show",
        "--all-functions",
        "--counts",
        "--ic-targets",
        "--memop-sizes",
    ];
    arguments.extend(option);
    if llvm.release() >= 19 {
        arguments.push("--show-vtables");
    }
    let shown = tool(llvm, &arguments, path);
    let mut theirs = parse_show(&shown);
    // If the file has several profiles, `show` knows only the names of the last one. Names that `show` left empty are
    // not compared.
    if several {
        for (their, our) in theirs.iter_mut().zip(ours) {
            for (their, our) in their
                .values
                .iter_mut()
                .flatten()
                .zip(our.values.iter().flatten())
            {
                if their.1.is_empty() {
                    their.1.clone_from(&our.1);
                }
            }
        }
    }
    assert_eq!(ours, theirs, "{} by {}", path.display(), llvm.release());
}

/// Compares the records, the kind and the traces with the text that LLVM wrote. Bitmaps and traces are only in this
/// text. If several of our records have the same name and function hash, these records are not compared.
fn compare_merged(
    records: &[Record],
    reader: &mut RawReader<'_>,
    text: &str,
    release: u32,
    path: &Path,
) {
    let mut theirs = TextReader::parse(text.as_bytes()).unwrap();
    let their_records = read_all(&mut theirs);
    let mut ours = BTreeMap::<_, Vec<&Record>>::new();
    for record in records {
        ours.entry((record.name.as_slice(), record.func_hash))
            .or_default()
            .push(record);
    }
    let mut compared = 0;
    for their in &their_records {
        let found = &ours[&(their.name.as_slice(), their.func_hash)];
        if let [our] = found.as_slice() {
            assert_eq!(
                (&our.counts, &our.bitmap),
                (&their.counts, &their.bitmap),
                "{}",
                path.display()
            );
            compared += 1;
        }
    }
    assert!(compared > 0 || records.is_empty(), "{}", path.display());
    assert_eq!(their_records.len(), ours.len(), "{}", path.display());
    // Some flags are not in LLVM's text, so they are not compared: the text format has no header line for FRONT_END and
    // FUNCTION_ENTRY_ONLY, and LLVM 16 and older do not write the line for SINGLE_BYTE_COVERAGE.
    let unstated = InstrKind::FRONT_END
        | InstrKind::FUNCTION_ENTRY_ONLY
        | if release < 19 {
            InstrKind::SINGLE_BYTE_COVERAGE
        } else {
            InstrKind::UNKNOWN
        };
    let kinds = [reader.kind(), theirs.kind()].map(|kind| kind.without(unstated));
    assert_eq!(kinds[0], kinds[1], "{}", path.display());
    assert_eq!(traces(reader), traces(&mut theirs), "{}", path.display());
}

fn traces(source: &mut dyn InstrSource) -> TemporalTraces {
    source.temporal_traces().unwrap()
}

fn raw_fixtures(release: u32) -> Vec<PathBuf> {
    let prefix = format!("clang-{release}-");
    let of_release = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.starts_with("raw")
            && (name.starts_with(&prefix) || release == 22 && name.starts_with("rustc"))
    };
    fixtures()
        .into_iter()
        .filter(of_release)
        .map(fixture_path)
        .collect()
}

fn fixtures_decode_as(release: u32, at_least: usize) {
    let llvm = require_or_skip!(release);
    let paths = raw_fixtures(release);
    assert!(
        paths.len() >= at_least,
        "{} fixtures of {release}",
        paths.len()
    );
    for path in some_or_all(paths, 4) {
        compare(&llvm, &path);
    }
}

#[test]
fn fixtures_decode_as_each_llvm_shows_them() {
    for (release, at_least) in [(13, 15), (14, 15), (15, 15), (16, 15), (19, 20), (22, 20)] {
        fixtures_decode_as(release, at_least);
    }
}

/// Raw profiles of one version, made by our writer. They have all kinds of sections that the releases with this version
/// can read.
fn images(version: u32) -> Vec<RawImage> {
    let mut images = Vec::new();
    let modes: &[u64] = match version {
        7 => &[0, variant::IR],
        8 => &[0, variant::IR, variant::IR | variant::BYTE_COVERAGE],
        _ => &[
            0,
            variant::IR,
            variant::IR | variant::CSIR | variant::ENTRY_FIRST,
            variant::IR | variant::BYTE_COVERAGE,
            variant::IR | variant::TEMPORAL,
            variant::IR | variant::TEMPORAL | variant::BYTE_COVERAGE,
        ],
    };
    for endian in [Endian::Little, Endian::Big] {
        for width in [PointerWidth::Bits64, PointerWidth::Bits32] {
            for (&flags, slide) in modes.iter().zip([0, 0x5650_0000].into_iter().cycle()) {
                let mut image = image(RawDialect {
                    endian,
                    width,
                    version,
                    flags,
                });
                image.form.slide = slide;
                image.form.compress_names = slide != 0;
                image.form.names_per_chunk = 2;
                images.push(image.clone());
                image.form.page_size = Some(4096);
                images.push(image);
            }
        }
    }
    images
}

fn image(dialect: RawDialect) -> RawImage {
    let mut image = RawImage::new(dialect);
    image.binary_ids = vec![BuildId((0..20).collect()), BuildId(vec![7; 16])];
    let cs = if dialect.has(variant::CSIR) {
        profkit_abi::raw::CS_FUNC_HASH_BIT
    } else {
        0
    };
    for (index, name) in (0u64..).zip(["main", "dir/a.c;local", "_Z4calli", "unused"]) {
        let mut record = RawImageRecord {
            name: name.into(),
            func_hash: FuncHash(cs | (index << 40) | 0xabc),
            counts: (0..=index)
                .map(|counter| (index * 1000 + counter) << (8 * counter))
                .collect(),
            time_stamp: 10 - index,
            address: 0x40_0000 + 64 * index,
            ..RawImageRecord::default()
        };
        if dialect.version >= 9 && index % 2 == 1 {
            record.bitmap = vec![u8::try_from(index).unwrap(); 3];
        }
        image.records.push(record);
    }
    if dialect.flags == 0 {
        return image;
    }
    let mut fill = |record: usize, kind: u32, sites: &[&[(u64, u64)]]| {
        let values = image.records[record].values.kind_mut(kind).unwrap();
        for site in sites {
            values.push_site(
                site.iter()
                    .map(|&(value, count)| ValueEntry { value, count }),
            );
        }
    };
    // One target belongs to no function.
    fill(
        0,
        0,
        &[
            &[(0x40_0040, 90), (0x40_0080, 8), (0x77_0000, 1)],
            &[],
            &[(0x40_00c0, 1)],
        ],
    );
    fill(1, 1, &[&[(8, 3), (17, 2), (513, 1)]]);
    fill(2, 1, &[&[]]);
    if dialect.version >= 10 {
        fill(0, 2, &[&[(0x90_0010, 5), (0x90_0040, 4), (0x90_0030, 1)]]);
        for (index, name) in (0u64..).zip(["_ZTV4Base", "a.cc;_ZTV7Derived"]) {
            let address = 0x90_0000 + 64 * index;
            image.vtables.push(RawImageVTable {
                name: name.into(),
                address,
                size: 40,
            });
        }
    }
    image
}

fn written_files_are_read_by(release: u32, version: u32) {
    let llvm = require_or_skip!(release);
    let folder = tempfile::tempdir().unwrap();
    for (index, image) in images(version).into_iter().enumerate() {
        let path = folder
            .path()
            .join(format!("{index}-{:?}.profraw", image.dialect));
        std::fs::write(&path, image.to_bytes().unwrap()).unwrap();
        compare(&llvm, &path);
    }
}

#[test]
fn each_version_of_our_writer_is_read_by_llvm() {
    for (release, version) in [(13, 7), (14, 8), (15, 8), (16, 8), (19, 10), (22, 10)] {
        written_files_are_read_by(release, version);
    }
}
