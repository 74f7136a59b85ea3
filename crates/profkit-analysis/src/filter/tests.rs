//! Small profiles cut down.
use super::{Amount, ColdRule, Filter, Filtered, Hottest, Redaction};
use crate::selection::Selection;
use profkit_data::ids::NameRef;
use profkit_data::instr::text::{TextOptions, write};
use profkit_data::instr::{InstrProfile, InstrReader};
use profkit_data::memprof::{Field, Frame, MemInfoBlock, MemProfile};
use profkit_data::mip::{self, MipProfile, MipWriteOptions, Modes};
use profkit_data::sample::{SampleName, SampleProfile, read};
use profkit_merge::mip::{MipMergeOptions, MipTarget, merge_mip};
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

fn mip(called: &[&str]) -> MipProfile {
    let raws = called
        .iter()
        .map(|name| profkit_testkit::fixture(format!("mip/{name}.mipraw")));
    let empty = profkit_testkit::fixture("mip/mixed-empty.mip");
    let profile = MipProfile::parse(&empty).unwrap();
    let name = "mixed.mip".to_owned();
    let raws: Vec<_> = raws.collect();
    let merged = merge_mip(
        vec![MipTarget { name, profile }],
        &raws,
        &MipMergeOptions::new(),
    );
    merged.unwrap().targets.swap_remove(0).profile
}

fn mip_bytes(profile: &MipProfile) -> Vec<u8> {
    let mut bytes = Vec::new();
    mip::write(profile, &MipWriteOptions::new(), &mut bytes).unwrap();
    bytes
}

fn mip_names(profile: &MipProfile) -> Vec<String> {
    let names = profile.functions.iter().map(|one| &one.name);
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

proptest! {
    /// Raw files count for the functions that are left as if all were there.
    #[test]
    fn a_mip_profile_can_be_cut_before_or_after_raw_files_are_added(
        kept in prop::collection::vec(any::<bool>(), 5),
        before in any::<bool>(),
    ) {
        let raws = ["mixed-1", "mixed-2", "mixed-pool", "mixed-1"];
        let (earlier, later) = raws.split_at(if before { 1 } else { 0 });
        let mut whole = mip(&raws);
        let mut names = mip_names(&whole).into_iter().zip(kept).filter(|(_, kept)| *kept);
        let keep = Selection {
            names: names.by_ref().map(|(name, _)| name).collect(),
            ..Selection::default()
        };
        let filter = Filter { keep, ..Filter::default() };
        let mut cut = mip(earlier);
        filter.mip(&mut cut).unwrap();
        let target = MipTarget { name: "cut.mip".to_owned(), profile: cut };
        let later: Vec<_> = later.iter().map(|name| profkit_testkit::fixture(format!("mip/{name}.mipraw"))).collect();
        let merged = merge_mip(vec![target], &later, &MipMergeOptions::new()).unwrap();
        let filtered = filter.mip(&mut whole).unwrap();
        prop_assert_eq!(&whole, &merged.targets[0].profile);
        prop_assert_eq!(filtered.all().units, 5);
        prop_assert_eq!(filtered.kept.units, whole.functions.len() as u64);
        prop_assert_eq!(&MipProfile::parse(&mip_bytes(&whole)).unwrap(), &whole);
    }
}

#[test]
fn a_part_of_a_function_goes_with_it() {
    let mut profile = mip(&["mixed-1"]);
    let tables = &mut profile.tables;
    let stack = [
        mip_frame("inlined", "/secret/a.c"),
        mip_frame("main", "/secret/main.c"),
    ];
    let location = tables.intern_stack(&stack).unwrap();
    let other = tables
        .intern_stack(&[mip_frame("covered", "/other/covered.c")])
        .unwrap();
    let [main, covered] = [0, 2].map(|number| profile.functions.id(number).unwrap());
    profile.functions[main].location = location;
    profile.functions[covered].location = other;
    for (name, signature) in [
        ("main.cold", 0x1003),
        ("main.cold.7", 0x1003),
        ("gone.cold", 5),
    ] {
        let mut part = profile.functions[main].clone();
        part.name = name.as_bytes().to_vec();
        part.modes = part.modes.union(Modes::PART);
        part.signature = signature;
        (part.calls, part.called_runs) = (0, 0);
        part.record_offset += 0x1000;
        profile.functions.push(part);
    }
    let whole = profile.clone();
    let hottest = Some(Hottest::Count(1));
    let filtered = Filter {
        hottest,
        ..Filter::default()
    }
    .mip(&mut profile)
    .unwrap();
    // The other part has no function, and no calls.
    assert_eq!((filtered.kept.units, filtered.all().units), (1, 6));
    let hot = mip_names(&profile);
    profile = whole.clone();
    let filter = Filter {
        keep: selection("main"),
        redact: Some(Redaction::new("salt")),
        ..Filter::default()
    };
    filter.mip(&mut profile).unwrap();
    let new = String::from_utf8(Redaction::new("salt").name(NameRef::of(b"main"))).unwrap();
    assert_eq!(
        mip_names(&profile),
        [new.clone(), format!("{new}.cold"), format!("{new}.cold.7")]
    );
    assert_eq!(hot.len(), 1);
    // Nothing of the names, paths and other functions is left.
    let bytes = mip_bytes(&profile);
    for secret in ["main", "inlined", "secret", "covered", "other", "gone"] {
        let found = bytes
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{secret}");
    }
    let frames: Vec<_> = profile
        .tables
        .frames(profile.functions[main].location)
        .collect();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1].function, new.as_bytes());
    assert!(frames[1].path.as_ref().unwrap().starts_with(b"p_"));
}

fn mip_frame(function: &'static str, path: &'static str) -> profkit_data::tables::Frame<'static> {
    profkit_data::tables::Frame {
        function: function.as_bytes(),
        path: Some(path.as_bytes().into()),
        line: 3,
        column: 1,
        flags: profkit_data::tables::StackFlags::default(),
    }
}

#[test]
fn calls_of_mip_functions_that_are_cut_come_from_elsewhere() {
    let mut profile = mip(&["mixed-1", "mixed-2"]);
    assert_eq!(profile.edges.len(), 1);
    let (caller, weight) = (profile.edges[0].caller, profile.edges[0].weight);
    assert!(caller.is_some());
    let whole = profile.clone();
    let leave_out = selection("main");
    let cold = Some(ColdRule::AtMost(0));
    let filter = Filter {
        leave_out,
        cold,
        ..Filter::default()
    };
    let filtered = filter.mip(&mut profile).unwrap();
    assert_eq!((filtered.by_name.units, filtered.cold.units), (1, 1));
    let edge = profile.edges[0];
    assert_eq!(
        (edge.caller, edge.call_site, edge.weight),
        (None, 0, weight)
    );
    assert_eq!(profile.functions[edge.callee].name, b"_ZN3one3twoEi");
    let mut without = whole;
    let filter = Filter {
        drop_values: true,
        ..Filter::default()
    };
    assert_eq!(filter.mip(&mut without).unwrap().values, 1);
    assert!(without.edges.is_empty() && without.functions.len() == 5);
    // Cut to each size, the file is not larger, and a profile that fits is not changed.
    let size = |profile: &MipProfile| Ok::<_, profkit_data::Error>(mip_bytes(profile).len() as u64);
    for limit in [u64::MAX, 800, 600, 500, 100] {
        let mut cut = without.clone();
        let mut filtered = Filter::default().mip(&mut cut).unwrap();
        let fits = filtered.fit_mip(&mut cut, limit, size).unwrap();
        assert_eq!(fits, size(&cut).unwrap() <= limit, "{limit}");
        assert_eq!(filtered.kept.units, cut.functions.len() as u64);
        assert_eq!(filtered.kept.units == 5, limit == u64::MAX);
    }
}
