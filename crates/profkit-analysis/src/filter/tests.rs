//! Small profiles cut down.
use super::{Amount, ColdRule, Filter, Filtered, Hottest, Redaction};
use crate::selection::Selection;
use profkit_data::ids::NameRef;
use profkit_data::instr::text::{TextOptions, write};
use profkit_data::instr::{InstrProfile, InstrReader};
use profkit_data::memprof::{Field, Frame, MemInfoBlock, MemProfile};
use profkit_data::sample::{SampleName, SampleProfile, read};
use proptest::prelude::*;

fn instr(text: &str) -> InstrProfile {
    InstrProfile::read(&mut InstrReader::open(text.as_bytes()).unwrap()).unwrap()
}

fn text(profile: &InstrProfile) -> String {
    let mut bytes = Vec::new();
    write(profile, &TextOptions::default(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn samples(text: &str) -> SampleProfile {
    let mut profile = SampleProfile::new();
    read(text.as_bytes(), &mut profile, 1).strict().unwrap();
    profile
}

fn names(profile: &SampleProfile) -> Vec<String> {
    let functions = profile.functions().iter();
    functions
        .map(|one| profile.names.get(one.samples.name).to_string())
        .collect()
}

fn selection(name: &str) -> Selection {
    Selection {
        names: vec![name.to_owned()],
        ..Selection::default()
    }
}

#[test]
fn numbers_and_shares_are_read_exactly() {
    let parsed = |text: &str| text.parse::<Hottest>().ok();
    assert_eq!(parsed("500"), Some(Hottest::Count(500)));
    assert_eq!(parsed("99.9%"), Some(Hottest::Millionths(999_000)));
    assert_eq!(parsed("99.9999%"), Some(Hottest::Millionths(999_999)));
    assert_eq!(parsed("0%"), Some(Hottest::Millionths(0)));
    assert_eq!(parsed("100%"), Some(Hottest::Millionths(1_000_000)));
    for wrong in [
        "",
        "%",
        "-1",
        "-1%",
        "100.1%",
        "99.99999%",
        "+5%",
        "5 %",
        ".5%",
        "1e1%",
    ] {
        assert_eq!(parsed(wrong), None, "{wrong}");
    }
}

proptest! {
    #[test]
    fn the_hottest_functions_have_the_share_and_one_fewer_has_not(
        counts in prop::collection::vec(any::<u64>(), 1..20),
        share in 0..=1_000_000u32,
    ) {
        let mut file = String::from(":ir\n");
        for (index, count) in counts.iter().enumerate() {
            file += &format!("f{index}\n1\n1\n{count}\n\n");
        }
        let mut profile = instr(&file);
        let hottest = Some(Hottest::Millionths(share));
        let filtered = Filter { hottest, ..Filter::default() }.instr(&mut profile);
        let total: u128 = counts.iter().map(|&count| u128::from(count)).sum();
        let wanted = |sum: u128| sum * 1_000_000 >= total * u128::from(share);
        prop_assert!(wanted(filtered.kept.counts));
        prop_assert_eq!(filtered.all(), Amount { units: counts.len() as u64, counts: total });
        let mut sorted = counts;
        sorted.sort_unstable_by(|one, two| two.cmp(one));
        let units = usize::try_from(filtered.kept.units).unwrap();
        let kept: u128 = sorted.iter().take(units).map(|&count| u128::from(count)).sum();
        prop_assert_eq!(kept, filtered.kept.counts);
        let last = units.checked_sub(1).map(|last| u128::from(sorted[last]));
        prop_assert!(last.is_none_or(|last| !wanted(kept - last)));
    }
}

#[test]
fn steps_work_on_what_the_one_before_left_and_traces_lose_what_was_cut() {
    let mut profile = instr(
        ":ir\n:temporal_prof_traces\n2\n2\n1\nbig,hot\n1\nbig\nbig\n1\n1\n1000\n\nhot\n1\n2\n90\n5\n\nwarm\n1\n1\n4\n\nnever\n1\n1\n0\n\n",
    );
    let filter = Filter {
        leave_out: selection("big"),
        cold: Some(ColdRule::AtMost(0)),
        hottest: Some(Hottest::Millionths(950_000)),
        ..Filter::default()
    };
    let filtered = filter.instr(&mut profile);
    let amount = |units, counts| Amount { units, counts };
    let wanted = Filtered {
        kept: amount(1, 95),
        by_name: amount(1, 1000),
        cold: amount(1, 0),
        not_hottest: amount(1, 4),
        ..Filtered::default()
    };
    assert_eq!(filtered, wanted);
    assert_eq!(profile.traces.traces.len(), 1);
    assert_eq!(profile.traces.traces[0].functions, [NameRef::of(b"hot")]);
    assert!(text(&profile).ends_with("# Counter Values:\n90\n5\n\n"));
}

#[test]
fn the_summary_decides_what_is_cold_and_markers_are_not_cold() {
    let file = ":ir\nhot\n1\n1\n9000000\n\ncool\n1\n1\n1\n\nmarked\n1\n1\n18446744073709551615\n\n";
    let mut profile = instr(file);
    let cold = Some(ColdRule::Summary);
    let filtered = Filter {
        cold,
        ..Filter::default()
    }
    .instr(&mut profile);
    assert_eq!(
        (filtered.kept.units, filtered.cold),
        (
            2,
            Amount {
                units: 1,
                counts: 1
            }
        )
    );
    let mut profile = samples("hot:9000000:1\n 1: 9000000\ncool:1:1\n 1: 1\n");
    let filtered = Filter {
        cold,
        ..Filter::default()
    }
    .samples(&mut profile);
    assert_eq!(
        (names(&profile), filtered.cold.units),
        (vec!["hot".to_owned()], 1)
    );
}

#[test]
fn values_go_and_their_sites_stay() {
    let file = ":ir\nmain\n1\n1\n9\n1\n0\n2\n1\nwork:8\n2\nidle:3\nwork:1\n\n";
    let mut profile = instr(file);
    let filter = Filter {
        drop_values: true,
        ..Filter::default()
    };
    assert_eq!(filter.instr(&mut profile).values, 3);
    let main = profile.tables[0].functions().next().unwrap();
    let values = main.records().next().unwrap().values.unwrap();
    let sites = values.kind(0).unwrap();
    assert_eq!((sites.site_count(), sites.entries().len()), (2, 0));
    let mut profile = samples("main:9:1\n 1: 9 work:8 idle:1\n 2: inner:1\n  1: 1 work:1\n");
    assert_eq!(filter.samples(&mut profile).values, 3);
    assert!(profile.functions()[0].samples.targets.is_empty());
}

#[test]
fn a_salt_gives_one_name_in_every_form_and_no_name_stays() {
    let redact = Some(Redaction::new("salt"));
    let filter = Filter {
        redact,
        ..Filter::default()
    };
    let main = String::from_utf8(Redaction::new("salt").name(NameRef::of(b"main"))).unwrap();
    let mut profile = instr(
        ":ir\n:temporal_prof_traces\n1\n1\n1\nmain\nmain\n1\n1\n9\n1\n0\n1\n2\nsecret:8\n0:1\n\n",
    );
    assert!(filter.instr(&mut profile).redacted);
    let shown = text(&profile);
    assert!(
        shown.contains(&main) && !shown.contains("main") && !shown.contains("secret"),
        "{shown}"
    );
    assert!(shown.contains("External Symbol"), "{shown}");
    let mut named = samples("main:9:1\n 1: 9 secret:8\n");
    named.symbols.insert(b"secret".as_slice().into());
    filter.samples(&mut named);
    assert_eq!(names(&named), [main.as_str()]);
    assert!(!named.symbols.contains(b"secret".as_slice()));
    let mut hashed = SampleProfile::new();
    let id = hashed
        .intern(SampleName::Guid(NameRef::of(b"main")))
        .unwrap();
    hashed.find_or_add(&[], id);
    filter.samples(&mut hashed);
    let wanted = SampleName::Guid(NameRef::of(main.as_bytes())).to_string();
    assert_eq!(names(&hashed), [wanted]);
}

fn heap() -> MemProfile {
    let mut profile = MemProfile::default();
    let mut frame = |name: &[u8]| {
        profile.add_frame(Frame {
            function: NameRef::of(name).0,
            ..Frame::default()
        })
    };
    let [small, large, main] = [b"small".as_slice(), b"large", b"main"].map(&mut frame);
    for (alloc, bytes) in [(small, 10), (large, 90)] {
        let stack = profile.add_stack(&[alloc, main]);
        let function = profile.frames()[alloc].function;
        let mut block = MemInfoBlock::default();
        block.set(Field::TotalSize, bytes);
        let site = profkit_data::memprof::AllocSite {
            stack,
            block,
            histogram: Vec::new(),
        };
        profile.record_mut(function).alloc_sites.push(site);
    }
    let called = profile.add_stack(&[main]);
    let main = NameRef::of(b"main").0;
    let call = profkit_data::memprof::CallSite {
        stack: called,
        callees: vec![NameRef::of(b"large").0],
    };
    profile.record_mut(main).call_sites.push(call);
    profile
        .names
        .insert(NameRef::of(b"large").0, b"large".to_vec());
    profile
}

#[test]
fn contexts_are_cut_by_bytes_and_by_any_function_of_their_stack() {
    let by_bytes = Filter {
        hottest: Some(Hottest::Count(1)),
        ..Filter::default()
    };
    let mut profile = heap();
    let filtered = by_bytes.heap(&mut profile, true);
    assert_eq!(
        filtered.not_hottest,
        Amount {
            units: 1,
            counts: 10
        }
    );
    let functions = |profile: &MemProfile| {
        let records = profile.records().iter();
        records.map(|record| record.function).collect::<Vec<_>>()
    };
    let hash = |name: &[u8]| NameRef::of(name).0;
    assert_eq!(functions(&profile), [hash(b"large"), hash(b"main")]);
    let by_name = |name| Filter {
        keep: selection(name),
        ..Filter::default()
    };
    for (name, kept) in [("small", 1), ("main", 2), ("large", 1), ("gone", 0)] {
        let mut profile = heap();
        assert_eq!(
            by_name(name).heap(&mut profile, true).kept.units,
            kept,
            "{name}"
        );
    }
    let mut profile = heap();
    let without = Filter {
        leave_out: selection("main"),
        ..Filter::default()
    };
    assert_eq!(without.heap(&mut profile, true).kept.units, 0);
    assert!(profile.records().is_empty());
    let redaction = Redaction::new("salt");
    let large = redaction.name(NameRef(hash(b"large")));
    let mut profile = heap();
    Filter {
        redact: Some(redaction),
        ..Filter::default()
    }
    .heap(&mut profile, true);
    let record = &profile.records()[2];
    assert_eq!(record.call_sites[0].callees, [NameRef::of(&large).0]);
    assert_eq!(profile.names.get(&NameRef::of(&large).0), Some(&large));
}

#[test]
fn functions_are_cut_until_the_file_fits() {
    let whole = instr(":ir\na\n1\n1\n3\n\nb\n1\n1\n2\n\nc\n1\n1\n1\n\n");
    let size = |profile: &InstrProfile| Ok::<_, String>(text(profile).len() as u64);
    let most = size(&whole).unwrap();
    for (limit, kept) in [(most, 3), (most - 1, 2), (100, 1), (50, 0)] {
        let mut profile = whole.clone();
        let mut filtered = Filter::default().instr(&mut profile);
        let fits = filtered.fit_instr(&mut profile, limit, size).unwrap();
        assert_eq!((fits, filtered.kept.units), (kept > 0, kept), "{limit}");
        assert_eq!(
            filtered.all(),
            Amount {
                units: 3,
                counts: 6
            }
        );
        assert!(!fits || size(&profile).unwrap() <= limit);
    }
}
