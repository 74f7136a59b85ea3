//! Decodes the data blocks of pages as a page's script decodes them, and checks their contents.
use super::source::SourceFolder;
use super::{DEFAULT_SIZE_LIMIT, Html, Page};
use base64::Engine as _;
use flate2::read::DeflateDecoder;
use profkit_analysis::any::AnyProfile;
use profkit_analysis::instr::{InstrReader, InstrTable};
use profkit_analysis::matching::{BinaryFunctions, ProfileFunctions};
use profkit_analysis::order::{OrderFile, Startup};
use profkit_analysis::samples::SampleView;
use profkit_object::code_symbols::CodeSymbol;
use profkit_object::debug_files::DebugFolders;
use profkit_object::symbolize::Declarations;
use std::io::Read as _;
use std::path::{Path, PathBuf};

fn block(html: &str, name: &str) -> Vec<u8> {
    let start = format!("id=\"b-{name}\">");
    let Some((_, after)) = html.split_once(&start) else {
        return Vec::new();
    };
    let text = after.split('<').next().unwrap();
    let base64 = base64::engine::general_purpose::STANDARD;
    let packed = base64.decode(text).unwrap();
    let mut bytes = Vec::new();
    let mut inflate = DeflateDecoder::new(&*packed);
    inflate.read_to_end(&mut bytes).unwrap();
    bytes
}

fn next(bytes: &mut &[u8]) -> u128 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u128::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            break;
        }
    }
    value
}

fn numbers(mut bytes: &[u8]) -> Vec<u128> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        list.push(next(&mut bytes));
    }
    list
}

fn strings(mut bytes: &[u8]) -> Vec<String> {
    let (count, size) = (next(&mut bytes), next(&mut bytes));
    let mut list: Vec<String> = Vec::new();
    for _ in 0..count {
        let shared = usize::try_from(next(&mut bytes)).unwrap();
        let own = usize::try_from(next(&mut bytes)).unwrap();
        let (text, rest) = bytes.split_at(own);
        bytes = rest;
        let before = list.last().map_or("", |one| &one[..shared]).to_owned();
        list.push(before + std::str::from_utf8(text).unwrap());
    }
    let sizes = list.iter().map(|one| one.len() as u128 + 1);
    assert_eq!(sizes.sum::<u128>(), size);
    list
}

fn instr(text: &str, limit: usize) -> super::Html {
    let table = InstrTable::read(InstrReader::open(text.as_bytes()).unwrap());
    let (mut page, faults) = Page::of_instr("folder/a.proftext", 1, &table);
    assert_eq!(faults.count, 0);
    page.html(limit)
}

const COUNTS: &str =
    ":ir\nwork\n16\n3\n5\n90\n0\n1\n0\n1\n1\n_ZN2ns5parseEi:7\n\n_ZN2ns5parseEi\n2\n1\n4\n\n";

#[test]
fn functions_are_sorted_by_name_and_their_numbers_are_differences() {
    let html = instr(COUNTS, DEFAULT_SIZE_LIMIT).text;
    assert_eq!(strings(&block(&html, "names")), ["ns::parse(int)", "work"]);
    assert_eq!(strings(&block(&html, "mangled")), ["_ZN2ns5parseEi", ""]);
    assert_eq!(numbers(&block(&html, "sum")), [4, 95]);
    // The largest counts are 4 and 90, and the entry counts are 4 and 5. The page stores the largest count as its
    // difference from the sum, and the entry count as its difference from the largest count.
    assert_eq!(numbers(&block(&html, "max")), [0, 10]);
    assert_eq!(numbers(&block(&html, "entry")), [0, 170]);
    assert_eq!(block(&html, "hashes")[8..], [16, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&block(&html, "detail")), [1, 4, 3, 5, 90, 0]);
    assert_eq!(numbers(&block(&html, "detail-sizes")), [2, 4]);
    // The first function has no values. The second has one value site with values: its kind is 0 (an indirect call) and
    // its index is 0. It has one target, whose name has the index 1 in the list of targets, with 7 calls.
    assert_eq!(numbers(&block(&html, "values")), [0, 1, 0, 0, 1, 1, 7]);
    assert_eq!(strings(&block(&html, "targets")), ["ns::parse(int)"]);
    let facts: serde_json::Value = serde_json::from_slice(&block(&html, "facts")).unwrap();
    assert_eq!(
        (&facts["functions"], &facts["total"]),
        (&2.into(), &99.0.into())
    );
}

#[test]
fn lines_of_samples_have_the_lines_of_inlined_functions_after_them() {
    let text = b"main:100:1\n 1: 60 work:50\n 2.3: work:40\n  1: 40\n";
    let view = SampleView::open(text, None).unwrap();
    let html = Page::of_samples("a", 1, &view)
        .html(DEFAULT_SIZE_LIMIT)
        .text;
    assert_eq!(strings(&block(&html, "targets")), ["work"]);
    let lines = [
        &[3][..],
        &[0, 1, 0, 0, 60, 1, 1, 50],
        &[0, 2, 3, 1, 40, 0],
        &[1, 1, 0, 0, 40, 0],
    ];
    assert_eq!(numbers(&block(&html, "detail")), lines.concat());
    assert_eq!(
        strings(&block(&html, "flame-names")),
        ["all", "main", "work"]
    );
    // The block contains the number of frames, and then for each frame: depth, name, weight, cold part and hot part.
    let frames = [
        &[3][..],
        &[0, 0, 100, 0, 0],
        &[1, 1, 100, 0, 0],
        &[2, 2, 40, 0, 0],
    ];
    assert_eq!(numbers(&block(&html, "flame")), frames.concat());
}

#[test]
fn a_small_limit_leaves_out_the_least_important_parts_first() {
    let mut text = ":ir\n".to_owned();
    for at in 0u64..3000 {
        let hash = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        let count = if at % 3 == 0 { 0 } else { at * 1000 };
        text += &format!(
            "f{hash:x}\n{hash}\n3\n{count}\n{}\n{}\n\n",
            count / 3,
            count / 7
        );
    }
    let mut before = usize::MAX;
    let mut seen = Vec::new();
    for limit in (20_000..300_000).step_by(4_000).rev() {
        let html = instr(&text, limit);
        // With a smaller limit the page gets smaller, apart from the sentence about what was left out, which grows.
        assert!(html.text.len() <= before.saturating_add(200));
        before = html.text.len();
        if seen.last() != Some(&html.left_out) {
            seen.push(html.left_out);
        }
    }
    let words: Vec<_> = seen.iter().map(|left_out| left_out.join("; ")).collect();
    insta::assert_snapshot!(words.join("\n"), @r"

    symbols before demangling, and function hashes
    symbols before demangling, and function hashes; counters and values of functions
    symbols before demangling, and function hashes; counters and values of functions; 1,000 functions that never ran
    symbols before demangling, and function hashes; counters and values of functions; 1,001 functions that are cold or never ran
    ");
}

#[test]
fn nothing_of_a_name_becomes_an_element() {
    let name = "</script><img src=x onerror=alert(1)>\"'&";
    let html = instr(&format!(":ir\n{name}\n1\n1\n9\n\n"), DEFAULT_SIZE_LIMIT).text;
    assert!(html.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
    assert!(!html.contains("<img"));
    assert_eq!(html.matches("<script>").count(), 1);
}

const TRACED: &str = ":ir\n:temporal_prof_traces\n2\n2\n1\nmain,work\n1\nmain,idle\nmain\n1\n1\n90\n\nwork\n2\n1\n10\n\nidle\n3\n1\n1\n";

#[test]
fn the_page_says_what_an_order_saves_at_start_up() {
    let symbol = |name: &str, address| CodeSymbol {
        name: name.as_bytes().to_vec(),
        address,
        size: 100,
    };
    let symbols = [symbol("main", 0x1000), symbol("work", 0x9000)];
    let mut startup = Startup::default();
    startup.add(TRACED.as_bytes()).expect("traces");
    let mut order = startup.order(OrderFile::Lld);
    order.keep_known(&symbols);
    let table = InstrTable::read(InstrReader::open(TRACED.as_bytes()).expect("a profile"));
    let (mut page, _) = Page::of_instr("a.proftext", 1, &table);
    assert!(page.has_traces());
    page.add_order(&startup, &order, Some(&symbols), 4096);
    let html = page.html(DEFAULT_SIZE_LIMIT).text;
    let facts = String::from_utf8(block(&html, "facts")).expect("JSON");
    insta::assert_snapshot!(facts.split("\"startup\":").nth(1).expect("lines"), @r#"["All traces: 2 functions with 200 bytes on 2 pages; in the proposed order on 1.","Trace 1: 2 functions with 200 bytes on 2 pages; in the proposed order on 1.","Trace 2: 1 function with 100 bytes on 1 page; in the proposed order on 1.","A page has 4,096 bytes.","Not in the program: 1 function of the traces."],"titles":{"entry":"First counter","max":"Largest","sum":"Sum"},"total":101.0,"traces":2,"unit":"counts"}"#);
    assert_eq!(block(&html, "order").len(), 2);
}

#[test]
fn the_page_says_what_binaries_can_use() {
    let profile = ProfileFunctions::parse(TRACED.as_bytes()).expect("a profile");
    let table = InstrTable::read(InstrReader::open(TRACED.as_bytes()).expect("a profile"));
    let (mut page, _) = Page::of_instr("a.proftext", 1, &table);
    page.add_match(&profile, &BinaryFunctions::default());
    let html = page.html(DEFAULT_SIZE_LIMIT).text;
    assert!(html.contains("<dt>Used by binaries</dt><dd>0.0% of the counts"));
    assert!(html.contains("<p>The hot function main is not in the binaries.</p>"));
}

/// A small program with debug info, and its sources: `work` is declared at line 19 of inlined.c, `folded` at 12, `twice` at
/// 8.
fn program() -> (Declarations, PathBuf) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let program = tests.join("fixtures/debug_info/clang-22-dwarf-5.elf");
    let declarations = Declarations::read(&[program], &DebugFolders::default());
    (declarations.expect("debug info"), tests.join("programs"))
}

const SAMPLED: &str = "work:500:10\n 1: 10\n 1.3: 2\n 4: 7\n 900: 1\n 1: folded:400\n  2: 100\n  3: twice:200\n   1: 200\nunknown:9:1\n 1: 9\n";

fn sampled_with_source(text: &str, limit: usize) -> Html {
    let (declarations, folder) = program();
    let profile = AnyProfile::open(text.as_bytes(), None).expect("a profile");
    let (mut page, _) = Page::of_file("a.prof", text.as_bytes(), &profile);
    page.add_source_files(&declarations);
    let mut folder = SourceFolder::open(&folder).expect("a folder");
    page.add_source(&profile, &declarations, &mut folder);
    page.html(limit)
}

#[test]
fn source_has_samples_beside_its_lines() {
    let html = sampled_with_source(SAMPLED, DEFAULT_SIZE_LIMIT);
    assert_eq!(strings(&block(&html.text, "files")), ["/src/inlined.c"]);
    assert_eq!(strings(&block(&html.text, "names")), ["unknown", "work"]);
    assert_eq!(numbers(&block(&html.text, "file")), [0, 1]);
    let lines = strings(&block(&html.text, "source-lines"));
    let source = numbers(&block(&html.text, "source"));
    // The page shows no lines of the first function, and three parts of the source for the second.
    assert_eq!(source[..2], [0, 3]);
    let mut rest = source[2..].iter().copied();
    let mut next = || rest.next().expect("a number");
    let mut shown = String::new();
    for _ in 0..3 {
        let [callee, caller, call, samples, file, first, size, text] = [(); 8].map(|()| next());
        shown += &format!(
            "callee {callee} in {caller}, called at {call}, {samples} samples, file {file}\n"
        );
        let counts: Vec<_> = (0..next()).map(|_| (first + next(), next())).collect();
        for at in 0..size {
            let count = counts.iter().find(|(line, _)| *line == first + at);
            let count = count.map_or(String::new(), |(_, count)| count.to_string());
            let text = &lines[usize::try_from(text + at).expect("an index")];
            shown += &format!("{:3} {count:>4} {text}\n", first + at);
        }
    }
    insta::assert_snapshot!(shown, @r"
    callee 0 in 0, called at 0, 0 samples, file 1
     19      __attribute__((noinline)) int work(int count) {
     20   12   int result = folded(count);
     21        if (__builtin_expect(result < 0, 0))
     22          rare(result);
     23    7   return result;
     24      }
    callee 1 in 0, called at 20, 300 samples, file 1
     12      static inline int folded(int value) {
     13        int sum = 0;
     14  100   for (int i = 0; i < value; i++)
    callee 2 in 1, called at 15, 200 samples, file 1
      8      static inline int twice(int value) {
      9  200   return value * 2 + (value > 5 ? sink : 1);
    ");
    insta::assert_snapshot!(html.left_out.join("\n"), @r"
    the source of 1 function, because the debug info of the binaries names no file for it
    samples of 1 line that are not in the source file of their function: the code comes from another file, by #include or a macro, or the files are of another version
    ");
}

#[test]
fn source_is_left_out_first() {
    let whole = sampled_with_source(SAMPLED, DEFAULT_SIZE_LIMIT);
    let limits = (0..whole.text.len() + 3000).rev().step_by(100);
    let mut pages = limits.map(|limit| sampled_with_source(SAMPLED, limit));
    let html = pages.find(|html| html.left_out != whole.left_out);
    let html = html.expect("a page without all parts");
    let expected = [&whole.left_out[..], &["the source of functions".to_owned()]].concat();
    assert_eq!(html.left_out, expected);
    assert!(!html.text.contains("b-source") && html.text.contains("b-mangled"));
}

#[test]
fn probes_and_counters_have_no_lines() {
    let probes = "work:500:10\n 1: 10\n 4: 7\n !CFGChecksum: 7\n";
    let counters = ":ir\nwork\n1\n2\n10\n490\n\nidle\n1\n1\n0\n\n";
    for (text, count) in [(probes, 10), (counters, 500)] {
        let html = sampled_with_source(text, DEFAULT_SIZE_LIMIT).text;
        let source = numbers(&block(&html, "source"));
        let at = source
            .iter()
            .position(|&number| number == 19)
            .expect("the declaration");
        // The function has one part of the source, from file 1; the first zero says that it is not a part of an inlined
        // function. One line has a count, the first: samples of the entry, or the sum of the counters, of which
        // none counts calls.
        assert_eq!(source[at - 6..at], [1, 0, 0, 0, 0, 1]);
        assert_eq!(source[at + 3..][..3], [1, 0, count]);
    }
}

#[test]
fn what_has_no_source_is_reported() {
    let (declarations, _) = program();
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("inlined.c"), "int short;\n").expect("written");
    let profile = AnyProfile::open(SAMPLED.as_bytes(), None).expect("a profile");
    let (mut page, _) = Page::of_file("a.prof", SAMPLED.as_bytes(), &profile);
    let mut source = SourceFolder::open(folder.path()).expect("a folder");
    page.add_source(&profile, &declarations, &mut source);
    insta::assert_snapshot!(page.html(DEFAULT_SIZE_LIMIT).left_out.join("\n"), @r"
    the source of 1 function, because the debug info of the binaries names no file for it
    the source of 1 function, because the source folder does not have the files, or has other versions of them (/src/inlined.c)
    ");
}
