//! Tables of sample profiles made profiles again.
use super::super::{ImportError, ImportedProfile, TableFile, profile_of};
use super::{Form, exported, open};
use crate::export::tables::{Table, TableKind};
use profkit_analysis::samples::SampleView;
use profkit_data::sample::{FormOptions, SampleForm, SampleProfile, read};

const KINDS: [TableKind; 6] = [
    TableKind::Functions,
    TableKind::Lines,
    TableKind::Values,
    TableKind::Inlined,
    TableKind::Symbols,
    TableKind::Profile,
];

const FACTS: &[u8] = b"property,value\nkind,sample\nsample_kind,\n";

fn tables(data: &[u8], form: Form) -> Vec<TableFile> {
    let view = SampleView::open(data, None).expect("a profile");
    let table = |kind| Table::of_samples("a", kind, &view).expect("a table");
    let files = KINDS.map(|kind| exported(&table(kind), form));
    files.iter().map(|bytes| open(bytes)).collect()
}

/// A table with texts that rows share, for damage.
#[cfg(feature = "arrow")]
pub(super) fn table() -> Table {
    let data = profkit_testkit::fixture("sample/llvm-22-nested-text.sampleprof");
    let view = SampleView::open(&data, None).expect("a profile");
    Table::of_samples("a", TableKind::Lines, &view).expect("a table")
}

fn imported(tables: &[TableFile]) -> Result<(SampleProfile, Vec<String>), ImportError> {
    let imported = profile_of(tables)?;
    match imported.profile {
        ImportedProfile::Sample(profile) => Ok((profile, imported.notes)),
        other => panic!("{other:?}"),
    }
}

fn bytes(profile: &SampleProfile, form: SampleForm) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = FormOptions::for_profile(profile);
    form.write(profile, &options, &mut bytes).expect("written");
    bytes
}

fn text(profile: &SampleProfile) -> String {
    String::from_utf8(bytes(profile, SampleForm::Text)).expect("UTF-8")
}

#[test]
fn untouched_tables_give_the_bytes_of_the_profile() {
    let mut names = profkit_testkit::fixtures_with(&["sampleprof"]);
    names.retain(|name| name.to_string_lossy().contains("llvm-22"));
    assert!(names.len() > 8);
    let odd: [&[u8]; 2] = [
        b"a @ b:30:2\n 1: 10 c @ d:10\n 3.7: e @ f:20\n  1: 20\n   2: g:5\n    1: 5\n !Attributes: 3\n",
        b"[main:3 @ work:1.2 @ leaf]:100:5\n 1: 100\n 1: vtables _ZTV1a:5 _ZTV1b:6 \n !CFGChecksum: 18446744073709551615\n[leaf]:1:1\n",
    ];
    let files = names.iter().map(profkit_testkit::fixture);
    for (at, data) in files.chain(odd.map(<[u8]>::to_vec)).enumerate() {
        let mut profile = SampleProfile::new();
        let report = read(&data, &mut profile, 1);
        assert_eq!(report.faults.len(), 0);
        for form in Form::ALL {
            let (again, notes) = imported(&tables(&data, form)).expect("a profile");
            assert_eq!(notes, [""; 0]);
            assert_eq!(again.kind, profile.kind);
            let name = names.get(at);
            assert_eq!(text(&again), text(&profile), "{name:?} {form:?}");
            let form = SampleForm::ExtBinary;
            assert_eq!(bytes(&again, form), bytes(&profile, form), "{name:?}");
        }
    }
}

/// The profile of these lines of a profile with the facts that nothing is special about it.
fn of(tables: &[&str]) -> Result<(String, Vec<String>), ImportError> {
    let mut files: Vec<TableFile> = tables.iter().map(|table| open(table.as_bytes())).collect();
    files.push(open(FACTS));
    imported(&files).map(|(profile, notes)| (text(&profile), notes))
}

#[test]
fn lines_alone_are_a_profile_and_rows_of_one_place_add_up() {
    let lines = "function,inlined,line,samples
main,,2,5
main,,1,10
main,3 work @ 1.2 leaf,7,4
main,,2,6
";
    let (text, notes) = of(&[lines]).expect("a profile");
    insta::assert_snapshot!(text, @r"
    main:25:0
     1: 10
     2: 11
     3: work:4
      1.2: leaf:4
       7: 4
    ");
    assert_eq!(notes, [""; 0]);
    let values = "function,line,target,count\nmain,9,f,2\nmain,9,f,3\ngone,1,f,1\n";
    let functions = "function,header_total,head,hash\nmain,30,4,\nmain,5,6,\n";
    let (text, notes) = of(&[lines, values, functions]).expect("a profile");
    insta::assert_snapshot!(text, @r"
    main:35:10
     1: 10
     2: 11
     9: 0 f:5
     3: work:4
      1.2: leaf:4
       7: 4
    ");
    insta::assert_snapshot!(notes.join("\n"), @"table: left out 1 row of functions that table does not have");
    let much = "function,line,samples\nmain,1,18446744073709551615\nmain,1,1\n";
    let (_, notes) = of(&[much]).expect("a profile");
    insta::assert_snapshot!(notes.join("\n"), @"table: 1 sum would be greater than 2^64-1, and stay there");
}

#[test]
fn faults_of_tables_have_their_place() {
    let error = |tables: &[&str]| of(tables).expect_err("a fault").to_string();
    let lines = |row: &str| format!("function,context,inlined,line,samples\nmain,,,1,2\n{row}\n");
    let line = |row: &str| error(&[&lines(row)]);
    insta::assert_snapshot!(line("main,,,-1,2"), @"table: row 2, column `line`: found `-1`, expected a whole number from 0 to 2^64-1");
    insta::assert_snapshot!(line("main,,,4294967296,2"), @"table: row 2, column `line`: found 4294967296, expected a whole number from 0 to 2^32-1");
    insta::assert_snapshot!(line("main,,,1,"), @"table: row 2, column `samples`: the cell is empty");
    insta::assert_snapshot!(line("main,,,,1"), @"table: row 2, column `line`: the cell is empty");
    insta::assert_snapshot!(line(",,,1,1"), @"table: row 2, column `function`: the cell is empty");
    insta::assert_snapshot!(line("main,work,,1,1"), @"table: row 2, column `context`: expected callers as `NAME:LINE` or `NAME:LINE.DISCRIMINATOR`, with ` @ ` between them");
    insta::assert_snapshot!(line("main,,work,1,1"), @"table: row 2, column `inlined`: expected functions as `LINE NAME` or `LINE.DISCRIMINATOR NAME`, with ` @ ` between them");
    let deep = ["1 f"; 513].join(" @ ");
    insta::assert_snapshot!(line(&format!("main,,{deep},1,1")), @"table: row 2, column `inlined`: inlined functions nest too deeply");
    let deep = ["f:1"; 4097].join(" @ ");
    insta::assert_snapshot!(line(&format!("main,{deep},,1,1")), @"table: row 2, column `context`: the function has too many callers");
    let lines = &lines("");
    let lines = lines.trim_end();
    let hashes = "function,context,header_total,hash\nmain,,5,0x7\nmain,a:1,5,0x9\nmain,,5,0x8\n";
    insta::assert_snapshot!(error(&[lines, hashes]), @"table: row 3, column `hash`: row 1 has the same context and function with the checksum 0x0000000000000007, and this one 0x0000000000000008");
    insta::assert_snapshot!(error(&[hashes]), @"table: there is no table of lines among the tables, with the columns `function`, `line` and `samples`");
    let values = "function,line,target,count,kind\nmain,1,f,2,jump\n";
    insta::assert_snapshot!(error(&[lines, values]), @"table: row 1, column `kind`: expected `call` or `vtable`");
    insta::assert_snapshot!(error(&[lines, "function,hash,index,count\nf,1,0,1\n"]), @"table: this is a table of an instrumentation profile, but table is one of a sample profile");
    insta::assert_snapshot!(error(&[lines, lines]), @"table: this is a second table of lines, after table");
    let newer = b"{\"schema\":\"profkit-table\",\"schema_version\":99,\"rows\":[]}";
    insta::assert_snapshot!(profile_of(&[open(newer)]).expect_err("newer"), @"table: the table has the schema version 99, and this profkit reads versions up to 4");
    let files = [open(lines.as_bytes())];
    insta::assert_snapshot!(profile_of(&files).expect_err("no facts"), @"table: nothing says what is counted (`sample_kind`): engines drop the facts that a file states about its profile");
    let files = [
        open(lines.as_bytes()),
        open(b"property,value\nsample_kind,shoes\n"),
    ];
    insta::assert_snapshot!(profile_of(&files).expect_err("shoes"), @"table: the fact `sample_kind` is `shoes`, which no profile has");
    let mip = b"{\"schema\":\"profkit-table\",\"kind\":\"mip\",\"rows\":[]}";
    insta::assert_snapshot!(profile_of(&[open(mip)]).expect_err("MIP"), @"table: tables of MIP profiles do not become profiles again: they lack the control flow of functions");
}
