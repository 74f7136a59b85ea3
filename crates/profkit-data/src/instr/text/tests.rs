use super::*;
use crate::Error;
use crate::ids::{FuncHash, NameRef};
use crate::instr::{InstrKind, InstrProfile, InstrSource, Record, TableBuilder};
use proptest::prelude::*;

fn read(text: &[u8]) -> (Vec<Record>, Vec<Error>) {
    match TextReader::parse(text) {
        Ok(reader) => read_all(reader),
        Err(error) => (Vec::new(), vec![error]),
    }
}

fn read_all(mut reader: TextReader<'_>) -> (Vec<Record>, Vec<Error>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    for read in reader.records() {
        match read {
            Ok(record) => records.push(record),
            Err(error) => errors.push(error),
        }
    }
    (records, errors)
}

fn whole(text: &[u8]) -> Vec<Record> {
    let (records, errors) = read(text);
    assert_eq!(errors, []);
    records
}

fn error(text: &str) -> String {
    let (_, errors) = read(text.as_bytes());
    let [error] = errors.as_slice() else {
        panic!("not one error: {errors:?}");
    };
    format!(
        "{error} [{:?}, {}]",
        error.kind(),
        error.detail_for_llvm().unwrap_or("-")
    )
}

fn names(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| std::str::from_utf8(&record.name).unwrap())
        .collect()
}

fn profile(kind: InstrKind, records: &[Record]) -> InstrProfile {
    let mut builder = TableBuilder::default();
    for record in records {
        builder.add(record).unwrap();
    }
    InstrProfile {
        kind,
        tables: vec![builder.table],
        ..InstrProfile::default()
    }
}

fn write(profile: &InstrProfile, options: TextOptions) -> String {
    let mut text = Vec::new();
    super::write(profile, &options, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn header_directives_set_the_kind_in_any_case_and_order() {
    for (header, kind) in [
        ("", InstrKind::UNKNOWN),
        (":fe\n", InstrKind::FRONT_END),
        (":Ir\n:fe\n", InstrKind::IR | InstrKind::FRONT_END),
        (":CSIR\n", InstrKind::IR | InstrKind::CONTEXT_SENSITIVE),
        (
            ":ir\n# c\n\n:entry_first\n",
            InstrKind::IR | InstrKind::ENTRY_FIRST,
        ),
        (":ir\n:entry_first\n:not_entry_first\n", InstrKind::IR),
        (
            ":ir\n:single_byte_coverage\n:instrument_loop_entries\n",
            InstrKind::IR | InstrKind::SINGLE_BYTE_COVERAGE | InstrKind::LOOP_ENTRIES,
        ),
    ] {
        assert_eq!(
            TextReader::parse(header.as_bytes()).unwrap().kind(),
            kind,
            "{header}"
        );
    }
}

#[test]
fn a_directive_after_the_first_record_is_a_name() {
    assert_eq!(names(&whole(b"m\n1\n1\n1\n:ir\n1\n1\n1\n")), ["m", ":ir"]);
}

#[test]
fn traces_are_hashed_names_with_weights() {
    let text = b":temporal_prof_traces\n2\n0x7\n3\nmain, foo ,,bar,\n1\n,\nmain\n1\n1\n1\n";
    let mut reader = TextReader::parse(text).unwrap();
    let traces = reader.temporal_traces().unwrap();
    assert_eq!(traces.stream_size, 7);
    let shown: Vec<_> = traces
        .traces
        .iter()
        .map(|trace| (trace.weight, trace.functions.clone()))
        .collect();
    let named = ["main", "foo", "bar"].map(|name| NameRef::of(name.as_bytes()));
    assert_eq!(shown, [(3, named.to_vec()), (1, vec![])]);
    assert_eq!(reader.symbols().get(named[1]), Some(&b"foo"[..]));
}

#[test]
fn records_need_no_blank_line_between_and_no_line_end_at_the_end() {
    for text in [
        "a\n0x10\n2\n1\n2\nb\n010\n1\n3",
        "a\r\n0x10\r\n# c\r\n2\r\n1\r\n\r\n2\r\n\r\nb\r\n010\r\n1\r\n3\r\n",
        "a\n16\n2\n1\n2\n\nb\n8\n1\n3\n\0\0\0\0",
    ] {
        let records = whole(text.as_bytes());
        assert_eq!(names(&records), ["a", "b"]);
        assert_eq!(records[0].func_hash, FuncHash(16));
        assert_eq!(records[0].counts, [1, 2]);
        assert_eq!(records[1].func_hash, FuncHash(8));
        assert_eq!(records[1].name_ref, NameRef::of(b"b"));
    }
}

#[test]
fn a_bitmap_is_of_its_record_alone_and_may_be_long() {
    let bytes = "0xff\n".repeat(300);
    let text = format!("a\n1\n1\n1\n$ 0x12c\n{bytes}\nb\n1\n1\n1\n$0\nc\n1\n1\n1\n");
    let records = whole(text.as_bytes());
    let lengths: Vec<_> = records.iter().map(|record| record.bitmap.len()).collect();
    assert_eq!(lengths, [300, 0, 0]);
}

#[test]
fn a_name_may_begin_with_a_dollar_sign() {
    let records = whole(b"$s4main1fyyF\n1\n1\n1\n\n$s4main1gyyF\n1\n1\n1\n");
    assert_eq!(names(&records), ["$s4main1fyyF", "$s4main1gyyF"]);
}

#[test]
fn values_of_all_kinds() {
    let text = "a\n1\n1\n1\n3\n0\n2\n2\nfile.c:f:5\n** External Symbol **:6\n0\n1\n1\n1\n64:7\n2\n1\n1\n_ZTV1A:8\n\nb\n1\n1\n1\n4294967296\n1\n1\n1\n";
    let records = whole(text.as_bytes());
    // The number after a complete record could be the start of value data. It does not fit 32 bits, so it is the name
    // of the next function.
    assert_eq!(names(&records), ["a", "b", "4294967296"]);
    let sites: Vec<Vec<Vec<(u64, u64)>>> = records[0]
        .values
        .kinds()
        .map(|(_, kind)| {
            kind.sites()
                .map(|site| site.iter().map(|one| (one.value, one.count)).collect())
                .collect()
        })
        .collect();
    let hash = |name: &[u8]| NameRef::of(name).0;
    assert_eq!(
        sites,
        [
            vec![vec![(hash(b"file.c:f"), 5), (0, 6)], vec![]],
            vec![vec![(64, 7)]],
            vec![vec![(hash(b"_ZTV1A"), 8)]],
        ]
    );
}

#[test]
fn a_kind_given_twice_appends_sites() {
    let records = whole(b"a\n1\n1\n1\n2\n0\n1\n1\na:5\n0\n1\n1\na:6\n");
    assert_eq!(records[0].values.kind(0).unwrap().site_count(), 2);
}

#[test]
fn messages() {
    insta::assert_snapshot!(error(":ir \nm\n1\n1\n1\n"), @r#"header at line 1, column 2: the directive is not known: found ":ir ", expected :ir, :fe, :csir, :entry_first, :not_entry_first, :single_byte_coverage, :temporal_prof_traces or :instrument_loop_entries [BadHeader, -]"#);
    insta::assert_snapshot!(error(":temporal_prof_traces\n1\n"), @"temporal traces at line 3, column 1: the text ends inside its header: found the end of the file, expected the trace stream size [EndOfFile, -]");
    insta::assert_snapshot!(error(":temporal_prof_traces\n1\n1\n1\n"), @"temporal traces at line 5, column 1: the text ends inside its header: found the end of the file, expected the names of a trace [EndOfFile, -]");
    insta::assert_snapshot!(error(":temporal_prof_traces\n4294967296\n"), @r#"temporal traces at line 2, column 1: a number of the trace block is not a valid integer: found "4294967296", expected the number of traces (at most 4294967295) [Malformed, -]"#);
    insta::assert_snapshot!(error("m\n"), @"at line 2, column 1: this text is not an instrumentation profile, because no function hash follows its first line: found the end of the file, expected the function's hash [Truncated, -]");
    insta::assert_snapshot!(error(":ir\nm\n"), @r#"record of "m" at line 3, column 1: the text ends inside a record: found the end of the file, expected the function's hash [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\nm\n"), @r#"record of "m" at line 6, column 1: the text ends inside a record: found the end of the file, expected the function's hash [Truncated, -]"#);
    insta::assert_snapshot!(error(":ir\nm\n 1\n1\n1\n"), @r#"record of "m" at line 3, column 1: function hash is not a valid integer: found " 1", expected the function's hash [Malformed, function hash is not a valid integer]"#);
    insta::assert_snapshot!(error("m\n 1\n1\n1\n"), @r#"at line 2, column 1: this text is not an instrumentation profile, because no function hash follows its first line: found " 1", expected the function's hash [Malformed, function hash is not a valid integer]"#);
    insta::assert_snapshot!(error("m\n1\n"), @r#"record of "m" at line 3, column 1: the text ends inside a record: found the end of the file, expected a decimal number of counters [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n0x1\n1\n"), @r#"record of "m" at line 3, column 1: number of counters is not a valid integer: found "0x1", expected a decimal number of counters [Malformed, number of counters is not a valid integer]"#);
    insta::assert_snapshot!(error("m\n1\n0\n"), @r#"record of "m" at line 3, column 1: number of counters is zero: found "0", expected at least 1 [Malformed, number of counters is zero]"#);
    insta::assert_snapshot!(error("# x\nm\n1\n3\n1\n-2\n3\n"), @r#"counter 1 of record of "m" at line 6, column 1: count is invalid: found "-2", expected a decimal counter below 2^64 [Malformed, count is invalid]"#);
    insta::assert_snapshot!(error("m\n1\n3\n1\n2\n"), @r#"counter 2 of record of "m" at line 6, column 1: the text ends inside a record: found the end of the file, expected a decimal counter below 2^64 [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n18446744073709551615\n1\n2\n"), @r#"counter 2 of record of "m" at line 6, column 1: the text ends inside a record: found the end of the file, expected a decimal counter below 2^64 [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n$x\n"), @r#"record of "m" at line 5, column 2: number of bitmap bytes is not a valid integer: found "$x", expected a number after the $ [Malformed, number of bitmap bytes is not a valid integer]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n$2\n1\n256\n"), @r#"bitmap byte 1 of record of "m" at line 7, column 1: bitmap byte is not a valid integer: found "256", expected a byte (0 to 255) [Malformed, bitmap byte is not a valid integer]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n$2\n1\n"), @r#"bitmap byte 1 of record of "m" at line 7, column 1: the text ends inside a record: found the end of the file, expected a byte (0 to 255) [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n4\n"), @r#"record of "m" at line 5, column 1: number of value kinds is invalid: found "4", expected 1 to 3 [Malformed, number of value kinds is invalid]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n3\n"), @r#"record of "m" at line 6, column 1: value kind is invalid: found "3", expected 0 (indirect call targets), 1 (memory intrinsic sizes) or 2 (virtual tables) [Malformed, value kind is invalid]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n0\nx\n"), @r#"record of "m" at line 7, column 1: a number of the value block is not a valid integer: found "x", expected the number of value sites [Malformed, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n0\n1\n"), @r#"record of "m" at line 8, column 1: the text ends inside a record: found the end of the file, expected the number of values at a site [Truncated, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n0\n1\n1\nabc\n"), @r#"value 0 of site 0 of value kind 0 of record of "m" at line 9, column 4: a value has no count: found "abc", expected NAME:COUNT [Malformed, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n0\n1\n1\n:5\n"), @r#"value 0 of site 0 of value kind 0 of record of "m" at line 9, column 1: symbol name is empty: found ":5", expected NAME:COUNT [Malformed, symbol name is empty]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n1\n1\n1\n8:0x5\n"), @r#"value 0 of site 0 of value kind 1 of record of "m" at line 9, column 3: part of a value is not a decimal number below 2^64: found "8:0x5", expected SIZE:COUNT [Malformed, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\n1\n1\n1\n1\nx:5\n"), @r#"value 0 of site 0 of value kind 1 of record of "m" at line 9, column 1: part of a value is not a decimal number below 2^64: found "x:5", expected SIZE:COUNT [Malformed, -]"#);
    insta::assert_snapshot!(error("m\n1\n1\n1\na\0b\n1\n1\n1\n"), @r#"record of "a\x00b" at line 5, column 2: a name contains a zero byte: found "a\x00b", expected text [Malformed, -]"#);
}

#[test]
fn after_a_bad_record_reading_goes_on_at_the_next_that_stands_apart() {
    let (records, errors) =
        read(b"a\n1\n1\n1\n\nbad\n1\n2\n7\n\nc\n1\n1\n1\n\nworse\nx\n\nd\n1\n1\n1\n");
    assert_eq!(names(&records), ["a", "c", "d"]);
    let lines: Vec<_> = errors.iter().map(Error::line_column).collect();
    assert_eq!(lines, [Some((11, 1)), Some((17, 1))]);
}

#[test]
fn the_blank_line_after_a_bitmap_is_no_place_to_go_on() {
    let text = b"a\n1\n1\n1\n# Num Bitmap Bytes:\n$1\n0x100\n\n# Num Value Kinds:\n1\n0\n1\n1\na:5\n\nb\n1\n1\n1\n";
    let (records, errors) = read(text);
    assert_eq!(names(&records), ["b"]);
    assert_eq!(errors.len(), 1);
}

#[test]
fn without_a_blank_line_there_is_no_going_on() {
    let mut reader = TextReader::parse(b"bad\n1\n0\nc\n1\n1\n1\n").unwrap();
    let mut record = Record::default();
    assert!(reader.read_record(&mut record).is_err());
    assert!(!reader.read_record(&mut record).unwrap());
}

#[test]
fn the_writer_spells_out_what_llvm_does() {
    let text = b"b\n2\n1\n18446744073709551615\n\nb\n1\n1\n1\n$2\n0x0f\n16\n2\n1\n1\n1\n8:9\n0\n2\n3\na:1\nzz:2\n** External Symbol **:3\n0\n\na\n7\n2\n10\n0\n";
    let mut profile = profile(InstrKind::IR | InstrKind::ENTRY_FIRST, &whole(text));
    profile.symbols.insert(b"zz");
    insta::assert_snapshot!(write(&profile, TextOptions::default()), @r"
    # IR level Instrumentation Flag
    :ir
    # Always instrument the function entry block
    :entry_first
    a
    # Func Hash:
    7
    # Num Counters:
    2
    # Counter Values:
    10
    0

    b
    # Func Hash:
    1
    # Num Counters:
    1
    # Counter Values:
    1
    # Num Bitmap Bytes:
    $2
    # Bitmap Byte Values:
    0xf
    0x10

    # Num Value Kinds:
    2
    # ValueKind = IPVK_IndirectCallTarget:
    0
    # NumValueSites:
    2
    3
    a:1
    ** External Symbol **:2
    ** External Symbol **:3
    0
    # ValueKind = IPVK_MemOPSize:
    1
    # NumValueSites:
    1
    1
    8:9

    b
    # Func Hash:
    2
    # Num Counters:
    1
    # Counter Values:
    18446744073709551615
    ");
    let foreign = write(&profile, TextOptions::default().foreign_names(true));
    assert!(foreign.contains("\nzz:2\n"));
}

#[test]
fn sparse_text_has_the_functions_of_which_some_record_ran() {
    let text = b"a\n1\n1\n0\n\na\n2\n1\n3\n\nb\n1\n2\n0\n0\n\nc\n1\n1\n0\n$1\n0x01\n\nd\n1\n1\n0\n$1\n0x00\n";
    let profile = profile(InstrKind::FRONT_END, &whole(text));
    let sparse = write(&profile, TextOptions::default().sparse(true));
    let kept: Vec<_> = whole(sparse.as_bytes())
        .iter()
        .map(|record| (record.name.clone(), record.func_hash.0))
        .collect();
    let expected: [(&[u8], u64); 3] = [(b"a", 1), (b"a", 2), (b"c", 1)];
    assert_eq!(kept, expected.map(|(name, hash)| (name.to_vec(), hash)));
}

fn name() -> impl Strategy<Value = String> {
    // Function names as they occur in programs, and names that look like other lines of the format.
    prop_oneof![
        "[a-zA-Z_$?][a-zA-Z0-9_.$;:/ é-]{0,12}",
        Just("0x".to_owned()),
        Just("12 3".to_owned()),
        Just("$x".to_owned()),
        Just("99999999999999999999".to_owned()),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let entry = |names: bool| {
        (name(), any::<u64>(), any::<u64>()).prop_map(move |(name, size, count)| {
            let value = if names {
                NameRef::of(name.as_bytes()).0
            } else {
                size
            };
            (name, value, count)
        })
    };
    let sites = |names| prop::collection::vec(prop::collection::vec(entry(names), 0..3), 0..3);
    (
        name(),
        any::<u64>(),
        prop::collection::vec(any::<u64>(), 1..5),
        prop::collection::vec(any::<u8>(), 0..4),
        (sites(true), sites(false), sites(true)),
    )
        .prop_map(|(name, hash, counts, bitmap, (targets, sizes, vtables))| {
            let mut record = Record {
                name_ref: NameRef::of(name.as_bytes()),
                name: name.into_bytes(),
                func_hash: FuncHash(hash),
                counts,
                bitmap,
                ..Record::default()
            };
            for (kind, sites) in (0u32..).zip([targets, sizes, vtables]) {
                for site in sites {
                    let entries = site.into_iter().map(|(_, value, count)| {
                        // Reading the text gives the same values only if the writer knows the names of the targets. In
                        // this test it knows only the name of the record itself.
                        let known = kind == 1 || value == record.name_ref.0;
                        let value = if known { value } else { 0 };
                        crate::instr::ValueEntry { value, count }
                    });
                    record.values.kind_mut(kind).unwrap().push_site(entries);
                }
            }
            record
        })
}

/// A record, mostly a sound one, with what may stand between records and lines.
fn block() -> impl Strategy<Value = String> {
    let between =
        || prop_oneof![8 => Just(""), 1 => Just("\n"), 1 => Just("# comment\n"), 1 => Just("\r\n")];
    let number = || {
        prop_oneof![
            6 => (0u64..2000).prop_map(|number| number.to_string()),
            2 => any::<u64>().prop_map(|number| number.to_string()),
            1 => prop::sample::select(vec!["010", "0x1f", "18446744073709551616", "-1", "", "7:8"]).prop_map(String::from),
        ]
    };
    let name = prop::sample::select(vec![
        "f",
        "g",
        "a_longer_name_that_takes_more_than_one_block_of_sixty_four_bytes_in_all",
        "$s4main",
        "12ab",
        "f:3",
        "7",
    ]);
    let after = prop::sample::select(vec![
        "",
        "",
        "",
        "\n",
        "\n\n",
        "$2\n0x1\n2\n",
        "1\n0\n1\n1\nf:3\n",
        "1\n1\n2\n0\n1\n16:9\n",
    ]);
    let counts = prop::collection::vec((between(), number()), 0..20);
    (
        name,
        between(),
        number(),
        between(),
        counts,
        -1i64..9,
        after,
    )
        .prop_map(|(name, first, hash, second, counts, off, after)| {
            let stated = counts.len() as i64 + i64::from(off < 0) - i64::from(off == 8);
            let mut text = format!("{name}\n{first}{hash}\n{second}{stated}\n");
            for (before, count) in counts {
                text.push_str(before);
                text.push_str(&count);
                text.push('\n');
            }
            text + after
        })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(records in prop::collection::btree_map((name(), any::<u64>()), record(), 0..6), cr in any::<bool>()) {
        let records: Vec<_> = records
            .into_iter()
            .map(|((name, hash), mut record)| {
                record.name = name.into_bytes();
                record.name_ref = NameRef::of(&record.name);
                record.func_hash = FuncHash(hash);
                for (kind, values) in record.values.kinds_mut() {
                    if kind != 1 {
                        let own = record.name_ref.0;
                        values.entries_mut().iter_mut().filter(|one| one.value != 0).for_each(|one| one.value = own);
                    }
                }
                record
            })
            .collect();
        let profile = profile(InstrKind::IR, &records);
        let mut text = write(&profile, TextOptions::default());
        let again = write(&profile, TextOptions::default());
        prop_assert_eq!(&text, &again);
        if cr {
            text = text.replace('\n', "\r\n");
        }
        prop_assert_eq!(whole(text.as_bytes()), records);
    }

    #[test]
    fn records_that_are_read_ahead_are_those_that_are_read_one_by_one(
        blocks in prop::collection::vec(block(), 0..12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), "[:$#a0-9\r\n\\x00]"), 0..4),
    ) {
        let mut text = blocks.concat().into_bytes();
        for (place, byte) in damage {
            if !text.is_empty() {
                *place.get_mut(&mut text) = byte.as_bytes()[0];
            }
        }
        if let Ok(reader) = TextReader::parse(&text) {
            let one_by_one = reader.clone().one_by_one();
            prop_assert_eq!(read_all(reader), read_all(one_by_one));
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic_or_hang(text in "[:$#a-c0-9x\r\n ,\\x00]{0,200}") {
        read(text.as_bytes());
    }
}

#[test]
fn names_that_no_reader_finds_again_are_left_out_and_counted() {
    let record = |name: &[u8]| Record {
        name: name.to_vec(),
        name_ref: crate::ids::NameRef::of(name),
        counts: vec![7],
        ..Record::default()
    };
    let unreadable: [&[u8]; 5] = [b"#x", b":y", b"", b"two\nlines", b"zero\0"];
    let mut records: Vec<Record> = unreadable.map(record).into();
    records.push(record(b"a#b:c"));
    let profile = profile(InstrKind::IR, &records);
    let mut text = Vec::new();
    let losses = super::write(&profile, &TextOptions::new().readable(true), &mut text).unwrap();
    assert_eq!(
        losses.to_string(),
        "functions whose names would make the text unreadable: 5"
    );
    assert_eq!(String::from_utf8(text).unwrap().matches("a#b:c").count(), 1);
    // LLVM writes them all.
    let all = write(&profile, TextOptions::default());
    assert!(all.contains("\n#x\n") && all.contains("two\nlines"));
}
