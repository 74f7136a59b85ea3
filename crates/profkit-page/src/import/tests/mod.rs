//! Tables as other programs write them.
mod heap;
mod sample;

use super::{TableFile, is_table, profile_of};
use crate::export::tables::Table;
use profkit_testkit::{Rng, mutate};

const FACTS: &[u8] = b"property,value\ninstrumentation,IR\n";

fn open(data: &[u8]) -> TableFile {
    TableFile::open("table", data).expect("a table")
}

/// The forms of tables that this build writes.
#[derive(Clone, Copy, Debug)]
enum Form {
    Csv,
    Json,
    #[cfg(feature = "arrow")]
    Parquet,
    #[cfg(feature = "arrow")]
    Arrow,
}

impl Form {
    #[cfg(not(feature = "arrow"))]
    const ALL: [Form; 2] = [Form::Csv, Form::Json];
    #[cfg(feature = "arrow")]
    const ALL: [Form; 4] = [Form::Csv, Form::Json, Form::Parquet, Form::Arrow];
}

fn exported(table: &Table, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    match form {
        Form::Csv => table.csv(&mut bytes).unwrap(),
        Form::Json => table.json(&mut bytes).unwrap(),
        #[cfg(feature = "arrow")]
        Form::Parquet => table.parquet(&mut bytes).unwrap(),
        #[cfg(feature = "arrow")]
        Form::Arrow => table.arrow(&mut bytes).unwrap(),
    }
    bytes
}

#[test]
fn csv_of_other_programs_is_read() {
    let table = open(b"\"function\",\"hash\",\"index\",\"count\"\r\n\"a, \"\"b\"\"\n\",0x7,0,18446744073709551615\r\n");
    assert_eq!(table.len(), 1);
    let imported = profile_of(&[table, open(FACTS)]).unwrap();
    let function = imported.instr().unwrap().tables[0]
        .functions()
        .next()
        .unwrap();
    assert_eq!(function.name(), b"a, \"b\"\n");
    assert_eq!(function.records().next().unwrap().counts, [u64::MAX]);
}

#[test]
fn only_tables_are_tables() {
    for table in [
        FACTS,
        b"function,hash,index,count\n",
        b"index,\"function\"\n",
        b" [{\"function\": \"main\"}]",
        b"{\"function\":\"main\"}\n",
        b"{\n  \"schema\": \"profkit-table\",\n",
        b"PAR1",
        b"ARROW1\0\0",
    ] {
        assert!(is_table(table), "{}", table.escape_ascii());
    }
    for other in [
        &b""[..],
        b"main\n1\n1\n9\n",
        b":ir\n",
        b"main:9:1\n 1: 9\n",
        b"{\"a\": 1}",
        b"---\n",
        b"\xfflprofi\x81",
    ] {
        assert!(!is_table(other), "{}", other.escape_ascii());
    }
}

#[test]
fn damaged_files_are_errors() {
    for data in [
        &b"function,hash,index,count\nmain,1,0,1,5\n"[..],
        b"function,\xff\n",
        b"[{\"function\":1},5]",
        b"[{\"function\":",
        b"PAR1PAR1",
        b"ARROW1\0\0rest",
    ] {
        let error = TableFile::open("table", data).expect_err("damage");
        assert_eq!(error.file, "table");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn a_table_cannot_claim_more_value_sites_than_it_has_rows_for() {
    let counters = open(b"function,hash,index,count\nmain,7,0,1\n");
    let mut claims = String::from("function,hash,counters,call_sites\n");
    for hash in 0..300 {
        claims += &format!("main,{hash},1,65535\n");
    }
    let error = profile_of(&[open(claims.as_bytes()), counters, open(FACTS)]).expect_err("a claim");
    insta::assert_snapshot!(error, @"table: row 257, column `call_sites`: the profile has more than 16,777,216 value sites");
    let values = open(b"function,hash,kind,site,value,count\nmain,7,memop_size,65536,8,1\n");
    let counters = open(b"function,hash,index,count\nmain,7,0,1\n");
    let error = profile_of(&[values, counters, open(FACTS)]).expect_err("a site");
    insta::assert_snapshot!(error, @"table: row 1, column `site`: found 65536, a larger number than a value site has");
}

#[test]
fn damage_never_panics() {
    let tables: [&[u8]; 6] = [
        b"function,hash,index,count\n\"a,b\",7,0,1\r\nmain,0x8,0,5\n",
        b"[{\"function\":\"main\",\"hash\":7,\"index\":0,\"count\":1},{\"function\":\"f\",\"hash\":8,\"index\":0,\"count\":2}]",
        b"function,hash,kind,site,value,target,count\nmain,7,memop_size,3,8,,5\n",
        b"function,context,inlined,line,samples\nf,main:1 @ g:2.3,,4,5\nf,,1 g @ 2.3 h,4,5\n",
        b"stack_id,position,guid,is_inline\n1,0,5,1\n1,1,6,0\n2,0,7,0\n",
        b"stack_id,bytes,allocations\n1,30,3\n2,5,1\n",
    ];
    let sample = b"property,value\nsample_kind,probe\n";
    let mut rng = Rng::new(39);
    for table in tables {
        for _ in 0..1000 {
            let mut damaged = table.to_vec();
            mutate(&mut damaged, tables[0], &mut rng);
            if TableFile::open("table", &damaged).is_ok() {
                // Some of these fit the table, if it is still one of the same kind.
                let with = |others: &[&[u8]]| {
                    let table = TableFile::open("table", &damaged).into_iter();
                    let all: Vec<_> = table.chain(others.iter().map(|it| open(it))).collect();
                    let _ = profile_of(&all);
                };
                with(&[FACTS, tables[0]]);
                with(&[sample]);
                with(&[tables[4]]);
                with(&[tables[5]]);
            }
        }
    }
}

#[cfg(feature = "arrow")]
mod arrow {
    use super::super::{ImportError, TableFile, profile_of};
    use arrow_array::types::Int8Type;
    use arrow_array::{
        ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int64Array, LargeStringArray,
        RecordBatch, StringArray, StringViewArray,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, ZstdLevel};
    use parquet::file::properties::WriterProperties;
    use profkit_testkit::{CountingAllocator, Rng, mutate, peak_allocation};
    use std::sync::Arc;

    #[global_allocator]
    static ALLOCATOR: CountingAllocator = CountingAllocator;

    fn parquet(columns: &[(&str, ArrayRef)], codec: Compression) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
        let properties = WriterProperties::builder().set_compression(codec).build();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        bytes
    }

    fn imported(name: ArrayRef, hash: ArrayRef, count: ArrayRef) -> Result<Vec<u64>, ImportError> {
        let index: ArrayRef = Arc::new(Int64Array::from(vec![1, 0]));
        let columns = [
            ("function", name),
            ("hash", hash),
            ("index", index),
            ("count", count),
        ];
        let bytes = parquet(&columns, Compression::SNAPPY);
        let table = TableFile::open("counters.parquet", &bytes)?;
        let imported = profile_of(&[table, super::open(super::FACTS)])?;
        let function = imported.instr().unwrap().tables[0]
            .functions()
            .next()
            .unwrap();
        Ok(function.records().next().unwrap().counts.to_vec())
    }

    #[test]
    fn the_types_of_engines_are_read() {
        let names: [ArrayRef; 4] = [
            Arc::new(StringArray::from(vec!["main", "main"])),
            Arc::new(LargeStringArray::from(vec!["main", "main"])),
            Arc::new(StringViewArray::from(vec!["main", "main"])),
            Arc::new(
                vec!["main", "main"]
                    .into_iter()
                    .collect::<DictionaryArray<Int8Type>>(),
            ),
        ];
        let hashes: [ArrayRef; 2] = [
            Arc::new(Int64Array::from(vec![7, 7])),
            Arc::new(StringArray::from(vec!["0x7", "7"])),
        ];
        let sum = i128::from(u64::MAX);
        let decimals = Decimal128Array::from(vec![3, sum]).with_precision_and_scale(38, 0);
        let decimals: ArrayRef = Arc::new(decimals.unwrap());
        for name in names {
            for hash in &hashes {
                let counts = imported(Arc::clone(&name), Arc::clone(hash), Arc::clone(&decimals));
                assert_eq!(counts.unwrap(), [u64::MAX, 3]);
            }
        }
    }

    #[test]
    fn numbers_that_are_no_counts_are_errors_with_their_place() {
        let [name, hash]: [ArrayRef; 2] = [
            Arc::new(StringArray::from(vec!["main", "main"])),
            Arc::new(Int64Array::from(vec![7, 7])),
        ];
        let error = |count: ArrayRef| {
            let found = imported(Arc::clone(&name), Arc::clone(&hash), count);
            found.expect_err("no counts").to_string()
        };
        insta::assert_snapshot!(error(Arc::new(Int64Array::from(vec![1, -1]))), @"counters.parquet: row 2, column `count`: found `-1`, expected a whole number from 0 to 2^64-1");
        insta::assert_snapshot!(error(Arc::new(Float64Array::from(vec![1.0, 1e19]))), @"counters.parquet: row 2, column `count`: found 10000000000000000000, a floating-point number that is not exact: cast the column to an unsigned integer of 64 bits (UBIGINT, UInt64)");
        insta::assert_snapshot!(error(Arc::new(Int64Array::from(vec![None, Some(1)]))), @"counters.parquet: row 1, column `count`: the cell is empty");
    }

    /// The readers panicked on these files when they were found. `cargo xtask dist` has the same test where panics abort.
    #[test]
    fn what_the_readers_panic_on_is_an_error() {
        for name in ["damaged.parquet", "damaged.arrow"] {
            let file = profkit_testkit::fixture(format!("tables/{name}"));
            let error = TableFile::open(name, &file).expect_err("a damaged file");
            assert!(
                error.message.starts_with("the file cannot be read"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_file_that_was_cut_off_is_an_error() {
        let name: ArrayRef = Arc::new(StringArray::from(vec!["main"]));
        let whole = parquet(&[("function", name)], Compression::SNAPPY);
        assert!(TableFile::open("table", &whole).is_ok());
        for cut in 4..whole.len() {
            assert!(TableFile::open("table", &whole[..cut]).is_err(), "{cut}");
        }
    }

    fn ipc(columns: &[(&str, ArrayRef)], codec: CompressionType) -> Vec<u8> {
        let batch = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(Some(codec));
        let mut bytes = Vec::new();
        let schema = batch.schema();
        let writer = FileWriter::try_new_with_options(&mut bytes, &schema, options.unwrap());
        let mut writer = writer.unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    /// Columns that compress well.
    fn zeros() -> [(&'static str, ArrayRef); 4] {
        let name = vec!["a function with a name that is long"; 5000];
        [
            ("function", Arc::new(StringArray::from(name)) as ArrayRef),
            ("hash", Arc::new(Int64Array::from(vec![7; 5000]))),
            ("index", Arc::new(Int64Array::from_iter_values(0..5000))),
            ("count", Arc::new(Int64Array::from(vec![0; 5000]))),
        ]
    }

    #[test]
    fn files_are_compressed_as_engines_do() {
        let mut files = vec![("table.arrow", ipc(&zeros(), CompressionType::LZ4_FRAME))];
        if cfg!(feature = "zstd") {
            let level = Compression::ZSTD(ZstdLevel::default());
            files.push(("table.parquet", parquet(&zeros(), level)));
            files.push(("table.arrow", ipc(&zeros(), CompressionType::ZSTD)));
        }
        for (name, bytes) in &files {
            assert!(bytes.len() < 50_000, "{name}: {}", bytes.len());
            let table = TableFile::open(name, bytes).unwrap();
            let imported = profile_of(&[table, super::open(super::FACTS)]).unwrap();
            let tables = &imported.instr().unwrap().tables;
            let function = tables[0].functions().next().unwrap();
            assert_eq!(function.records().next().unwrap().counts.len(), 5000);
        }
    }

    /// The decoder allocates what a buffer claims to hold.
    #[test]
    fn a_compressed_buffer_cannot_claim_any_length() {
        let file = ipc(&zeros(), CompressionType::LZ4_FRAME);
        let frame = 0x184d_2204u32.to_le_bytes();
        let mut refused = 0;
        for at in 8..file.len() - 4 {
            if file[at..at + 4] != frame {
                continue;
            }
            for claimed in [1i64 << 40, i64::MAX, -2] {
                let mut damaged = file.clone();
                damaged[at - 8..at].copy_from_slice(&claimed.to_le_bytes());
                let (opened, peak) = peak_allocation(|| TableFile::open("table", &damaged));
                assert!(peak < 1 << 24, "{peak} bytes");
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("claims to hold"), "{error}");
                refused += 1;
            }
        }
        assert!(refused >= 12, "{refused}");
    }

    /// The readers panic on such files, or allocate what they claim.
    #[test]
    fn blocks_and_buffers_outside_an_arrow_file_are_errors() {
        let file = super::exported(&super::sample::table(), super::Form::Arrow);
        let mut refused = 0;
        // The footer and the messages before the bodies have offsets and lengths of 8 bytes.
        for at in (0..file.len() - 8).step_by(8) {
            let mut damaged = file.clone();
            damaged[at..at + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
            let (opened, peak) = peak_allocation(|| TableFile::open("table", &damaged));
            assert!(peak < RATIO * file.len() + FLOOR, "{peak} bytes");
            refused += usize::from(opened.is_err_and(|error| error.message.contains("outside")));
        }
        assert!(refused > 10, "{refused}");
    }

    /// What the readers may hold, as a multiple of the file, and beside it.
    const RATIO: usize = 64;
    const FLOOR: usize = 8 << 20;

    #[test]
    fn damage_never_panics_and_takes_bounded_memory() {
        let strings = StringArray::from(vec![Some("main"), None, Some("f")]);
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("function", Arc::new(strings.clone())),
            (
                "inlined",
                Arc::new(StringViewArray::from(vec![
                    "",
                    "1 a function with a long name",
                    "",
                ])),
            ),
            (
                "large",
                Arc::new(LargeStringArray::from(vec!["a", "b", "c"])),
            ),
            ("line", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            (
                "samples",
                Arc::new(
                    Decimal128Array::from(vec![5, 6, 7])
                        .with_precision_and_scale(38, 0)
                        .unwrap(),
                ),
            ),
            ("share", Arc::new(Float64Array::from(vec![0.5, 1.0, 0.0]))),
        ];
        let dictionary: DictionaryArray<Int8Type> = vec!["x", "y", "x"].into_iter().collect();
        columns.push(("context", Arc::new(dictionary)));
        let mut files = vec![
            parquet(&columns, Compression::SNAPPY),
            parquet(&columns, Compression::UNCOMPRESSED),
        ];
        for table in [super::sample::table(), super::heap::table()] {
            let forms = [super::Form::Parquet, super::Form::Arrow];
            files.extend(forms.map(|form| super::exported(&table, form)));
        }
        files.push(ipc(&columns, CompressionType::LZ4_FRAME));
        if cfg!(feature = "zstd") {
            files.push(parquet(&columns, Compression::ZSTD(ZstdLevel::default())));
            files.push(ipc(&columns, CompressionType::ZSTD));
        }
        let mut rng = Rng::new(139);
        let (mut opened, mut refused) = (0, 0);
        for (number, file) in files.iter().enumerate() {
            for round in 0..400 {
                let mut damaged = file.clone();
                if round % 2 == 0 {
                    mutate(&mut damaged, &files[(number + 1) % files.len()], &mut rng);
                } else {
                    // What the reader looks at first is at the end.
                    let at = damaged.len() - 1 - rng.below(damaged.len().min(2000));
                    damaged[at] ^= 1 << rng.below(8);
                }
                let read = || TableFile::open("table", &damaged).is_ok();
                let (is_open, peak) = peak_allocation(read);
                *(if is_open { &mut opened } else { &mut refused }) += 1;
                let most = RATIO * file.len() + FLOOR;
                assert!(
                    peak <= most,
                    "file {number}, round {round}: {peak} bytes for {}",
                    file.len()
                );
            }
        }
        assert!(opened > 100 && refused > 500, "{opened} {refused}");
    }
}
