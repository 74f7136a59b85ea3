//! The blocks of pages, decoded as the script decodes them.
use super::{DEFAULT_SIZE_LIMIT, Page};
use base64::Engine as _;
use flate2::read::DeflateDecoder;
use profkit_analysis::instr::InstrReader;
use profkit_analysis::matching::{BinaryFunctions, ProfileFunctions};
use profkit_analysis::order::{OrderFile, Startup};
use profkit_analysis::samples::SampleView;
use profkit_object::code_symbols::CodeSymbol;
use std::io::Read as _;

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

/// Reads a number, and moves past it.
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
    let mut reader = InstrReader::open(text.as_bytes()).unwrap();
    let (mut page, faults) = Page::of_instr("folder/a.proftext", 1, &mut reader);
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
    // Largest counts 4 and 90, first counts 4 and 5.
    assert_eq!(numbers(&block(&html, "max")), [0, 10]);
    assert_eq!(numbers(&block(&html, "entry")), [0, 170]);
    assert_eq!(block(&html, "hashes")[8..], [16, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(numbers(&block(&html, "detail")), [1, 4, 3, 5, 90, 0]);
    assert_eq!(numbers(&block(&html, "detail-sizes")), [2, 4]);
    // No values; one site: an indirect call, site 0, one target, the first name, 7 times.
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
    // Depth, name, weight, cold and hot.
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
        // The sentence about what is not there grows.
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
    let mut reader = InstrReader::open(TRACED.as_bytes()).expect("a profile");
    let (mut page, _) = Page::of_instr("a.proftext", 1, &mut reader);
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
    let mut reader = InstrReader::open(TRACED.as_bytes()).expect("a profile");
    let (mut page, _) = Page::of_instr("a.proftext", 1, &mut reader);
    page.add_match(&profile, &BinaryFunctions::default());
    let html = page.html(DEFAULT_SIZE_LIMIT).text;
    assert!(html.contains("<dt>Used by binaries</dt><dd>0.0% of the counts"));
    assert!(html.contains("<p>The hot function main is not in the binaries.</p>"));
}
