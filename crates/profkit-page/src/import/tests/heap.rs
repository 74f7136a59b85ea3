//! Tables of heap profiles made profiles again.
use super::super::{ImportError, ImportedProfile, TableFile, profile_of};
use super::{Form, exported, open};
use crate::export::tables::{Table, TableKind};
use profkit_analysis::faults::Faults;
use profkit_analysis::heap::{HeapForm, HeapProfile};
use profkit_data::memprof::indexed::{IndexedMemProfOptions, encode};
use profkit_data::memprof::{Field, MemProfile, SourceLocation, Thresholds, yaml};

/// `inner` is inlined into `outer`. The first call stack stands twice in each record, as in files with contexts of two
/// builds, and one call stands twice.
const YAML: &str = "---
HeapProfileRecords:
  - GUID: 0x1
    AllocSites:
      - Callstack:
          - { Function: 0x1, LineOffset: 2, Column: 3, IsInlineFrame: true }
          - { Function: 0x2, LineOffset: 4, Column: 5, IsInlineFrame: false }
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 3
          TotalSize: 30
          MinSize: 7
          TotalLifetime: 900
          TotalLifetimeAccessDensity: 75000
      - Callstack:
          - { Function: 0x1, LineOffset: 2, Column: 3, IsInlineFrame: true }
          - { Function: 0x2, LineOffset: 4, Column: 5, IsInlineFrame: false }
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 1
          TotalSize: 500
          MinSize: 500
          TotalLifetime: 100
          TotalLifetimeAccessDensity: 25
  - GUID: 0x3
    AllocSites:
      - Callstack:
          - { Function: 0x3, LineOffset: 9, Column: 1, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 1
          TotalSize: 18446744073709551615
          MinSize: 4294967295
          TotalLifetime: 0
          TotalLifetimeAccessDensity: 0
    CallSites:
      - Frames:
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
        CalleeGuids: [0x2, 0x1]
      - Frames:
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
  - GUID: 0x2
    AllocSites:
      - Callstack:
          - { Function: 0x1, LineOffset: 2, Column: 3, IsInlineFrame: true }
          - { Function: 0x2, LineOffset: 4, Column: 5, IsInlineFrame: false }
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 3
          TotalSize: 30
          MinSize: 7
          TotalLifetime: 900
          TotalLifetimeAccessDensity: 75000
      - Callstack:
          - { Function: 0x1, LineOffset: 2, Column: 3, IsInlineFrame: true }
          - { Function: 0x2, LineOffset: 4, Column: 5, IsInlineFrame: false }
          - { Function: 0x3, LineOffset: 6, Column: 7, IsInlineFrame: false }
        MemInfoBlock:
          AllocCount: 1
          TotalSize: 500
          MinSize: 500
          TotalLifetime: 100
          TotalLifetimeAccessDensity: 25
...
";

fn heap() -> HeapProfile {
    let mut profile = yaml::parse(YAML.as_bytes()).expect("a heap profile");
    profile.names.insert(1, b"inner @ \n".to_vec());
    let frame = *profile.frames().iter().next().expect("a frame");
    let place = SourceLocation {
        file: b"a.c".to_vec(),
        line: 12,
        column: 3,
        discriminator: 0,
    };
    profile.locations.insert(frame, place);
    of(profile, HeapForm::Yaml)
}

/// A table with stacks, for damage.
#[cfg(feature = "arrow")]
pub(super) fn table() -> Table {
    Table::of_heap("a", TableKind::Contexts, &heap(), &Thresholds::default()).expect("a table")
}

fn of(profile: MemProfile, form: HeapForm) -> HeapProfile {
    HeapProfile {
        profile,
        form,
        version: (form == HeapForm::Indexed).then_some(3),
        portable: false,
        damage: Faults::default(),
        indexed_version: (form == HeapForm::Indexed).then_some(12),
        binaries: Default::default(),
    }
}

fn tables(heap: &HeapProfile, kinds: &[TableKind], form: Form) -> Vec<TableFile> {
    let table = |kind| Table::of_heap("a", kind, heap, &Thresholds::default()).expect("a table");
    let files = kinds.iter().map(|&kind| exported(&table(kind), form));
    files.map(|bytes| open(&bytes)).collect()
}

type Imported = (
    MemProfile,
    Option<(u32, IndexedMemProfOptions)>,
    Vec<String>,
);

fn imported(tables: &[TableFile]) -> Result<Imported, ImportError> {
    let imported = profile_of(tables)?;
    match imported.profile {
        ImportedProfile::Heap(profile, options) => Ok((profile, options, imported.notes)),
        other => panic!("{other:?}"),
    }
}

fn text(profile: &MemProfile) -> String {
    let mut bytes = Vec::new();
    yaml::write(profile, &mut bytes).expect("written");
    String::from_utf8(bytes).expect("UTF-8")
}

const ALL: [TableKind; 4] = [
    TableKind::Contexts,
    TableKind::Frames,
    TableKind::Records,
    TableKind::Profile,
];

#[test]
fn untouched_tables_give_the_bytes_of_the_profile() {
    let yaml = heap();
    for form in Form::ALL {
        let (again, options, notes) = imported(&tables(&yaml, &ALL, form)).expect("a profile");
        assert_eq!((options, notes.len()), (None, 0));
        assert_eq!(text(&again), text(&yaml.profile), "{form:?}");
        assert_eq!(again.names, yaml.profile.names);
        assert_eq!(again.locations, yaml.profile.locations);
    }
    for version in 0..=4 {
        let options = IndexedMemProfOptions::for_version(version, version % 2 == 0);
        let section = encode(&yaml.profile, &options).expect("a section");
        let (read, _) = profkit_data::memprof::indexed::read_section(&section).expect("read");
        let mut read = of(read, HeapForm::Indexed);
        read.version = Some(version);
        let (again, own, _) = imported(&tables(&read, &ALL, Form::Csv)).expect("a profile");
        assert_eq!(own, Some((12, options.clone())));
        assert_eq!(
            encode(&again, &options).expect("a section"),
            section,
            "{version}"
        );
    }
}

#[test]
fn without_records_they_are_made_of_the_call_stacks() {
    let kinds = [TableKind::Contexts, TableKind::Frames];
    let (again, options, _) = imported(&tables(&heap(), &kinds, Form::Csv)).expect("a profile");
    assert!(options.is_some_and(|(version, options)| version == 13 && options.portable));
    let sites = |function| {
        let record = again.record(function).expect("a record");
        (record.alloc_sites.len(), record.call_sites.len())
    };
    // The two contexts of the first call stack add up.
    assert_eq!([sites(1), sites(2), sites(3)], [(1, 0), (1, 1), (1, 1)]);
    let block = again.record(1).expect("a record").alloc_sites[0].block;
    let fields = [Field::AllocCount, Field::TotalSize, Field::MinSize];
    assert_eq!(fields.map(|field| block.get(field)), [4, 530, 7]);
}

/// The rows of a table as CSV that `keep` returns true for.
fn filtered(heap: &HeapProfile, kind: TableKind, keep: impl Fn(&str) -> bool) -> TableFile {
    let table = Table::of_heap("a", kind, heap, &Thresholds::default()).expect("a table");
    let csv = String::from_utf8(exported(&table, Form::Csv)).expect("UTF-8");
    let rows = csv
        .lines()
        .enumerate()
        .filter(|(at, row)| *at == 0 || keep(row));
    let rows: String = rows.map(|(_, row)| format!("{row}\n")).collect();
    open(rows.as_bytes())
}

#[test]
fn what_contexts_leave_out_is_left_out_of_records() {
    let heap = heap();
    let mut all = tables(&heap, &ALL, Form::Csv);
    all[0] = filtered(&heap, TableKind::Contexts, |row| row.contains(",500,"));
    let (again, _, notes) = imported(&all).expect("a profile");
    insta::assert_snapshot!(notes.join("\n"), @"table: left out 1 call stack that no context has, and the calls that lead to no other");
    let bytes: Vec<u64> = again
        .contexts()
        .iter()
        .map(|it| it.block.get(Field::TotalSize))
        .collect();
    assert_eq!(bytes, [500]);
    assert_eq!(again.record(3).expect("a record").call_sites.len(), 2);
}

#[test]
fn faults_of_tables_have_their_place() {
    let heap = heap();
    let error = |at: usize, from: &str, to: &str| {
        let mut all = tables(&heap, &ALL, Form::Csv);
        let table = Table::of_heap("a", ALL[at], &heap, &Thresholds::default()).expect("a table");
        let csv = String::from_utf8(exported(&table, Form::Csv)).expect("UTF-8");
        assert!(csv.contains(from), "{csv}");
        all[at] = open(csv.replacen(from, to, 1).as_bytes());
        imported(&all).expect_err(to).to_string()
    };
    insta::assert_snapshot!(error(0, ",30,3,", ",,3,"), @"table: row 1, column `bytes`: the cell is empty");
    insta::assert_snapshot!(error(0, ",30,3,", ",-30,3,"), @"table: row 1, column `bytes`: found `-30`, expected a whole number from 0 to 2^64-1");
    insta::assert_snapshot!(error(0, ",30,3,", ",30,4294967296,"), @"table: row 1, column `allocations`: found 4294967296, more than 4294967295");
    insta::assert_snapshot!(error(0, "bytes", "Bytes"), @"table: the columns stack, Bytes, allocations, average_lifetime_ms, accesses, lifetime_access_density, heat, stack_id, min_size, total_lifetime, total_lifetime_access_density are not those of a table of a profile");
    insta::assert_snapshot!(error(1, ",0,0x0000000000000001", ",5,0x0000000000000001"), @"table: row 2, column `position`: the call stack has a frame at position 1, but none at 0");
    insta::assert_snapshot!(error(1, ",1,0x0000000000000002", ",0,0x0000000000000002"), @"table: row 2, column `position`: row 1 has another frame at this position of this call stack");
    insta::assert_snapshot!(error(1, "2,3,1,", "2,3,7,"), @"table: row 1, column `is_inline`: expected 0 or 1");
    insta::assert_snapshot!(error(2, "allocation", "call to"), @"table: row 1, column `kind`: expected `allocation` or `call`");
    insta::assert_snapshot!(error(2, "0x0000000000000002 0x", "two 0x"), @"table: row 4, column `callees`: expected hashes as `0x` and digits, with blanks between them");
    insta::assert_snapshot!(error(3, "heap_form,yaml", "heap_form,paper"), @"table: the fact `heap_form` is `paper`, which no profile has");
    let frames = filtered(&heap, TableKind::Frames, |_| false);
    let mut all = tables(&heap, &ALL, Form::Csv);
    all[1] = frames;
    insta::assert_snapshot!(imported(&all).expect_err("no frames"), @"table: row 1, column `stack_id`: table has no frames of the call stack 0xf8c59cc45d14b14a");
}

#[test]
fn frames_that_no_debug_info_covers_are_left_out() {
    let mut heap = heap();
    let frame = *heap.profile.frames().iter().nth(2).expect("a frame");
    heap.binaries.insert(frame, "libc.so".to_owned());
    heap.form = HeapForm::Raw;
    let (again, _, notes) = imported(&tables(&heap, &ALL, Form::Csv)).expect("a profile");
    insta::assert_snapshot!(notes.join("\n"), @"table: left out 2 frames that no debug info covers (`binary`): compilers do not have them");
    let lengths = again
        .contexts()
        .into_iter()
        .map(|it| again.frame_ids(it.stack).len());
    assert_eq!(lengths.collect::<Vec<_>>(), [2, 1]);
    assert!(again.frame_id(&frame).is_none());
}
