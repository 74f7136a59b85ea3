//! What the tests of the laws of parts have in common, whatever the family of the profiles.
use crate::parts::shard;
use profkit_merge::part::{Merger, PartError, VERSION};
use profkit_merge::sample::{SampleMergeOptions, merge_sample};
use profkit_merge::{MergeError, MergeOptions, Report, Shard, TraceOptions, merge_instr};
use profkit_testkit::fixture;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Some inputs of a pool, in some order, each in one of several parts, and an order in which these are added up.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    chosen: Vec<usize>,
    leaves: Vec<usize>,
    picks: Vec<usize>,
}

/// Cases of a pool of at most so many inputs, of which about this share is taken, in at most so many parts.
pub(crate) fn cases(pool: usize, leaves: usize, share: f64) -> impl Strategy<Value = Case> {
    (
        Just((0..pool).collect::<Vec<usize>>()).prop_shuffle(),
        proptest::collection::vec(proptest::bool::weighted(share), pool),
        proptest::collection::vec(0..leaves, pool),
        proptest::collection::vec(0usize..97, 12),
    )
        .prop_map(|(order, taken, leaves, picks)| Case {
            chosen: order.into_iter().filter(|&at| taken[at]).collect(),
            leaves,
            picks,
        })
}

impl Case {
    pub(crate) fn inputs(&self, pool: &[Shard<Vec<u8>>]) -> Vec<Shard<Vec<u8>>> {
        let chosen = self.chosen.iter().filter_map(|&at| pool.get(at));
        chosen.cloned().collect()
    }

    /// The parts of which `part` makes each of its inputs.
    pub(crate) fn parts(
        &self,
        pool: &[Shard<Vec<u8>>],
        part: impl Fn(&[Shard<Vec<u8>>]) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let chosen: Vec<usize> = self
            .chosen
            .iter()
            .copied()
            .filter(|&at| at < pool.len())
            .collect();
        let leaves: BTreeSet<usize> = chosen.iter().map(|&at| self.leaves[at]).collect();
        let of_leaf = |leaf| {
            let own = chosen.iter().filter(|&&at| self.leaves[at] == leaf);
            part(&own.map(|&at| pool[at].clone()).collect::<Vec<_>>())
        };
        leaves.into_iter().map(of_leaf).collect()
    }

    /// Adds sums up two by two until one is left.
    pub(crate) fn added_up(
        &self,
        mut parts: Vec<Vec<u8>>,
        sum: impl Fn(&[&[u8]]) -> Vec<u8>,
    ) -> Vec<u8> {
        let mut picks = self.picks.iter().copied().cycle();
        while parts.len() > 1 {
            let one = parts.swap_remove(picks.next().unwrap() % parts.len());
            let two = parts.swap_remove(picks.next().unwrap() % parts.len());
            parts.push(sum(&[&one, &two]));
        }
        parts.pop().unwrap()
    }
}

/// Inputs that no reader can use, of each family and of none.
fn unsound() -> Vec<Shard<Vec<u8>>> {
    let cut = |name: &str, len: usize| fixture(name)[..len].to_vec();
    vec![
        shard("empty", *b""),
        shard("program", *b"\x7fELF junk that is no profile"),
        shard("text", *b"no profile"),
        shard("unknown", *b"\0\x01\x02\x03\x04\x05\x06\x07\x08"),
        shard(
            "cut-samples",
            cut("sample/llvm-19-nested-ext.sampleprof", 60),
        ),
        shard("cut-counters", cut("raw/clang-22-ir-plain.profraw", 60)),
        shard("unknown-mip", *b"\xfbMIP\xff\xff\x11\0"),
    ]
}

/// Parts as each version of the format was first written, to which every later profkit gives what it gives to the inputs:
/// `part` makes that of this version. To write the file of a new version, name its folder in `WRITE_PARTS`.
pub(crate) fn parts_of_every_version(
    family: &str,
    part: impl Fn() -> Vec<u8>,
) -> impl Iterator<Item = Vec<u8>> {
    if let Some(folder) = std::env::var_os("WRITE_PARTS") {
        let name = format!("version-{VERSION}{family}.pkpart");
        std::fs::write(std::path::Path::new(&folder).join(name), part()).unwrap();
    }
    (1..=VERSION).map(move |version| {
        let part = fixture(format!("parts/version-{version}{family}.pkpart"));
        assert_eq!(part[8..12], version.to_le_bytes());
        part
    })
}

fn report_of(report: &Report) -> String {
    let mut report = report.clone();
    report.repeated.clear();
    serde_json::to_string_pretty(&report).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(profkit_testkit::short_or_whole(12, 200) as u32))]

    /// A machine that gets unsound inputs only does not know of which family the others are. What the report says of them is
    /// the same.
    #[test]
    fn unsound_inputs_are_reported_alike_wherever_they_are(
        case in cases(8, 8, 0.7),
        samples in any::<bool>(),
    ) {
        let sound = match samples {
            true => shard("sound", *b"main:100:5\n 1: 100\n"),
            false => shard("sound", *b":ir\nf\n1\n1\n7\n"),
        };
        let mut pool = unsound();
        pool.push(sound.clone());
        let parts = case.parts(&pool, |own| {
            let mut merger = Merger::new(MergeOptions::new()).unwrap();
            merger.add(own).unwrap();
            merger.encode().unwrap()
        });
        let mut inputs = case.inputs(&pool);
        if !inputs.iter().any(|one| one.name == "sound") {
            inputs.push(sound.clone());
        }
        let expected = match samples {
            true => report_of(&merge_sample(&inputs, &SampleMergeOptions::new().order_free(true)).unwrap().report),
            false => report_of(&merge_instr(&inputs, &MergeOptions::new().order_free(true)).unwrap().report),
        };
        let mut all = Merger::new(MergeOptions::new()).unwrap();
        for part in &parts {
            all.add_part("part", part).unwrap();
        }
        all.add(&[sound]).unwrap();
        prop_assert_eq!(report_of(all.finish().unwrap().report()), expected);
    }

    /// Parts are added up only if they were made with the same options: else the error has those of both.
    #[test]
    fn parts_of_other_options_refuse_each_other(
        sizes in proptest::array::uniform2((0u64..4, 1u64..4, any::<bool>())),
        heap in any::<bool>(),
    ) {
        let input = match heap {
            true => shard("dump", fixture("heap/heap.memprofraw")),
            false => shard("counters", *b":ir\nf\n1\n1\n7\n"),
        };
        let made = |name: &str, (reservoir_size, max_length, separate): (u64, u64, bool)| {
            let traces = TraceOptions { reservoir_size, max_length };
            let options = MergeOptions::new().traces(traces).separate_by_build_id(separate);
            let mut merger = Merger::new(options).unwrap();
            merger.add(&[Shard { id: name.to_owned(), ..input.clone() }]).unwrap();
            merger
        };
        let [mut one, other] = [("one", sizes[0]), ("other", sizes[1])].map(|(name, size)| made(name, size));
        let before = one.encode().unwrap();
        match one.add_part("other", &other.encode().unwrap()) {
            Ok(()) => prop_assert_eq!(sizes[0], sizes[1]),
            Err(MergeError::Part(error)) => {
                prop_assert_ne!(sizes[0], sizes[1]);
                let PartError::OtherOptions { found, expected, .. } = *error else {
                    return Err(TestCaseError::fail(error.to_string()));
                };
                let traces = |(size, length, _): (u64, u64, bool)| {
                    format!("{size} temporal traces of at most {length} functions")
                };
                prop_assert!(found.starts_with(&traces(sizes[1])), "{}", found);
                prop_assert!(expected.starts_with(&traces(sizes[0])), "{}", expected);
                prop_assert!(found != expected);
                prop_assert_eq!(one.encode().unwrap(), before);
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }
}
