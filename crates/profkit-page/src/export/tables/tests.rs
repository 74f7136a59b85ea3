//! Tables of small profiles, as CSV.
use super::{NoTable, Table, TableKind};
use profkit_analysis::any::AnyProfile;
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{HeapForm, HeapProfile};
use profkit_data::memprof::Thresholds;

const COUNTS: &[u8] = b":ir\n:temporal_prof_traces\n1\n1\n3\nmain,work\nmain\n7\n2\n90\n10\n1\n0\n1\n2\nwork:80\nnowhere:5\n\nwork\n8\n1\n0\n\n";
const SAMPLES: &[u8] =
    b"main:120:1\n 1: 50 work:7 other:3\n 2.1: 20\n 3: parse:50\n  1: 30\n  2: next:20\n   4: 20\n !CFGChecksum: 5\n";
const CONTEXTS: &[u8] = b"[main:3 @ work]:500:20\n 1: 500\n";

fn of(data: &[u8], kind: TableKind) -> Result<Table, NoTable> {
    let profile = AnyProfile::open(data, None).expect("a profile");
    let (table, faults) = Table::of("app.proftext", kind, &profile)?;
    assert_eq!(faults.count, 0, "{faults:?}");
    Ok(table)
}

fn csv(table: &Table) -> String {
    let mut bytes = Vec::new();
    table.csv(&mut bytes).expect("written to memory");
    String::from_utf8(bytes).expect("text")
}

fn csv_of(data: &[u8], kind: TableKind) -> String {
    csv(&of(data, kind).expect("such a table"))
}

#[test]
fn tables_of_an_instrumentation_profile() {
    insta::assert_snapshot!(csv_of(COUNTS, TableKind::Functions), @"
    function,demangled,guid,hash,counters,entry,max,sum,cutoff,heat,call_sites
    main,main,0xdb956436e78dd5fa,0x0000000000000007,2,90,90,100,0.01,hot,1
    work,work,0x7fbca965872ce967,0x0000000000000008,1,0,0,0,,never ran,
    ");
    insta::assert_snapshot!(csv_of(COUNTS, TableKind::Counters), @"
    function,hash,index,count
    main,0x0000000000000007,0,90
    main,0x0000000000000007,1,10
    work,0x0000000000000008,0,0
    ");
    insta::assert_snapshot!(csv_of(COUNTS, TableKind::Values), @"
    function,hash,kind,site,value,target,count
    main,0x0000000000000007,indirect_call,0,9204417991963109735,work,80
    main,0x0000000000000007,indirect_call,0,5778920803371156483,nowhere,5
    ");
    insta::assert_snapshot!(csv_of(COUNTS, TableKind::Traces), @"
    trace,weight,position,function
    0,3,0,main
    0,3,1,work
    ");
}

#[test]
fn tables_of_a_sample_profile() {
    insta::assert_snapshot!(csv_of(SAMPLES, TableKind::Functions), @"
    function,demangled,context,guid,hash,head,max_line,samples,self,header_total,cutoff,heat
    main,main,,0xdb956436e78dd5fa,0x0000000000000005,1,50,120,70,120,0.01,hot
    ");
    insta::assert_snapshot!(csv_of(SAMPLES, TableKind::Lines), @"
    function,context,inlined,line,discriminator,samples
    main,,,1,0,50
    main,,,2,1,20
    main,,3 parse,1,0,30
    main,,3 parse @ 2 next,4,0,20
    ");
    insta::assert_snapshot!(csv_of(SAMPLES, TableKind::Values), @"
    function,context,inlined,line,discriminator,kind,target,count
    main,,,1,0,call,work,7
    main,,,1,0,call,other,3
    ");
    insta::assert_snapshot!(csv_of(CONTEXTS, TableKind::Lines), @"
    function,context,inlined,line,discriminator,samples
    work,main:3,,1,0,500
    ");
}

#[test]
fn a_table_that_a_profile_does_not_have_is_named_with_those_that_it_has() {
    let error = of(COUNTS, TableKind::Lines).expect_err("no lines");
    assert_eq!(
        error.to_string(),
        "an instrumentation profile has no table named `lines`; its tables are functions, counters, values, traces, profile"
    );
    let error = of(SAMPLES, TableKind::Traces).expect_err("no traces");
    assert_eq!(error.table, TableKind::Traces);
}

/// The table of a heap profile of one context.
fn heap() -> Table {
    let yaml = b"---\nHeapProfileRecords:\n  - GUID: 0x1\n    AllocSites:\n      - Callstack:\n          - { Function: 0x1, LineOffset: 2, Column: 3, IsInlineFrame: false }\n          - { Function: 0x2, LineOffset: 4, Column: 5, IsInlineFrame: false }\n        MemInfoBlock:\n          AllocCount: 3\n          TotalSize: 30\n          TotalLifetime: 900\n          TotalLifetimeAccessDensity: 75000\n";
    let heap = HeapProfile {
        profile: profkit_data::memprof::yaml::parse(yaml).expect("a heap profile"),
        form: HeapForm::Yaml,
        version: None,
        portable: false,
        damage: Faults::default(),
        indexed_version: None,
        binaries: Default::default(),
    };
    Table::of_heap("a.yaml", TableKind::Contexts, &heap, &Thresholds::default()).expect("contexts")
}

#[test]
fn contexts_have_their_stacks() {
    let table = heap();
    insta::assert_snapshot!(csv(&table), @"
    stack,bytes,allocations,average_lifetime_ms,accesses,lifetime_access_density,heat,stack_id,total_lifetime,total_lifetime_access_density
    0x0000000000000001 < 0x0000000000000002,30,3,300.0,,250.0,warm,0x2799af86171f34db,900,75000
    ");
    let mut json = Vec::new();
    table.json(&mut json).expect("written to memory");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    insta::assert_snapshot!(json.to_string(), @r#"{"file":"a.yaml","heap_form":"yaml","kind":"heap","rows":[{"allocations":3,"average_lifetime_ms":300.0,"bytes":30,"heat":"warm","lifetime_access_density":250.0,"stack":[{"function":"0x0000000000000001"},{"function":"0x0000000000000002"}],"stack_id":"0x2799af86171f34db","total_lifetime":900,"total_lifetime_access_density":75000}],"schema":"profkit-table","schema_version":4,"table":"contexts"}"#);
}

#[cfg(feature = "arrow")]
mod arrow {
    use super::{COUNTS, SAMPLES, Table, TableKind, heap, of};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_ipc::reader::FileReader;
    use arrow_schema::DataType;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::Value;
    use std::io::Cursor;

    #[test]
    fn arrow_and_parquet_files_hold_the_same_table() {
        let tables = [
            of(COUNTS, TableKind::Functions).expect("functions"),
            of(COUNTS, TableKind::Values).expect("values"),
            of(SAMPLES, TableKind::Lines).expect("lines"),
            heap(),
        ];
        for table in tables {
            let expected = table.record_batch().expect("columns");
            let mut bytes = Vec::new();
            table.arrow(&mut bytes).expect("written to memory");
            let mut batches = FileReader::try_new(Cursor::new(bytes), None).expect("Arrow");
            assert_eq!(batches.next().expect("a batch").expect("sound"), expected);
            let mut bytes = Vec::new();
            table.parquet(&mut bytes).expect("written to memory");
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
                .expect("Parquet");
            let metadata = reader.schema().metadata().clone();
            assert_eq!(
                metadata.get("profkit.schema_version").map(String::as_str),
                Some("4")
            );
            let batches: Vec<RecordBatch> = reader
                .build()
                .expect("a reader")
                .collect::<Result<_, _>>()
                .expect("sound");
            // The batches of this reader have no metadata.
            assert_eq!(batches.len(), 1);
            assert_eq!(batches[0].columns(), expected.columns());
        }
    }

    /// The value of a cell as the JSON of the same table has it; hashes are numbers here and texts there.
    fn cell(array: &dyn Array, row: usize) -> Value {
        if array.is_null(row) {
            return Value::Null;
        }
        match array.data_type() {
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
            DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
            DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
            DataType::Utf8 => array.as_string::<i32>().value(row).into(),
            DataType::Dictionary(..) => {
                let array = array.as_dictionary::<UInt32Type>();
                let key = array.keys().value(row);
                cell(array.values(), usize::try_from(key).expect("an index"))
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>().value(row);
                let frames = list.as_struct();
                let frame = |at: usize| {
                    let names = frames.column_names();
                    let members = names.into_iter().zip(frames.columns());
                    let members = members.map(|(name, column)| (name.to_owned(), cell(column, at)));
                    Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
                };
                (0..frames.len()).map(frame).collect()
            }
            other => panic!("a column of {other}"),
        }
    }

    /// Compares every cell of the Parquet file with the JSON of the table. Returns how many cells have a value.
    fn compare(name: &str, table: &Table) -> usize {
        let mut json = Vec::new();
        table.json(&mut json).expect("written to memory");
        let json: Value = serde_json::from_slice(&json).expect("JSON");
        let rows = json["rows"].as_array().expect("rows");
        let mut bytes = Vec::new();
        table.parquet(&mut bytes).expect("written to memory");
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes))
            .expect("Parquet")
            .build()
            .expect("a reader");
        let (mut at, mut compared) = (0, 0);
        for batch in reader {
            let batch = batch.expect("a batch");
            for row in 0..batch.num_rows() {
                let expected = &rows[at];
                for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                    let found = cell(column, row);
                    let stated = &expected[field.name()];
                    let hash = stated.as_str().and_then(|text| text.strip_prefix("0x"));
                    let same = match (hash, found.as_u64()) {
                        (Some(hash), Some(number)) => u64::from_str_radix(hash, 16) == Ok(number),
                        // Empty texts are null or left out.
                        _ if stated.is_null() => found.is_null() || found == "",
                        _ => found == *stated,
                    };
                    assert!(
                        same,
                        "{name}: row {at}, {}: Parquet has {found}, JSON {stated}",
                        field.name()
                    );
                    compared += usize::from(!found.is_null());
                }
                at += 1;
            }
        }
        assert_eq!(at, rows.len(), "{name}");
        compared
    }

    /// `profkit-cli/tests/all/one_meaning.rs` compares the JSON and the CSV with all other views.
    #[test]
    fn parquet_has_every_number_of_the_json() {
        let kinds = [
            TableKind::Functions,
            TableKind::Counters,
            TableKind::Lines,
            TableKind::Values,
            TableKind::Traces,
        ];
        let mut compared = compare("heap", &heap());
        for name in [
            "indexed/clang-22-fe-shapes.profdata",
            "indexed/clang-22-ir-plain.profdata",
            "indexed/clang-22-cs-ir-shapes.profdata",
            "raw/clang-22-temporal-host.profraw",
            "sample/llvm-22-nested-text.sampleprof",
        ] {
            let bytes = profkit_testkit::fixture(name);
            for kind in kinds {
                if let Ok(table) = of(&bytes, kind) {
                    compared += compare(name, &table);
                }
            }
        }
        assert!(compared > 1000, "{compared} cells");
    }

    #[test]
    fn a_profile_without_traces_has_a_table_without_rows() {
        let table = of(b":ir\nmain\n1\n1\n5\n", TableKind::Traces).expect("traces");
        let mut bytes = Vec::new();
        table.parquet(&mut bytes).expect("written to memory");
        assert!(table.is_empty() && bytes.starts_with(b"PAR1"));
    }
}
