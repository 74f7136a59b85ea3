use super::*;
use profkit_data::index_vec::Id;
use profkit_data::mip::Modes;

fn function(name: &str, address: u64, size: u32, order: Option<(u64, u64)>) -> Function {
    Function {
        name: name.into(),
        modes: Modes::CALLS,
        address,
        size,
        called_runs: order.map_or(0, |(_, runs)| runs.max(1)),
        order_sum: order.map_or(0, |(sum, _)| sum),
        order_runs: order.map_or(0, |(_, runs)| runs),
        ..Function::default()
    }
}

fn functions(indices: impl IntoIterator<Item = usize>) -> Vec<FunctionId> {
    indices.into_iter().map(FunctionId::from_index).collect()
}

fn profile(functions: Vec<Function>) -> MipProfile {
    MipProfile {
        functions: functions.into(),
        ..MipProfile::default()
    }
}

#[test]
fn means_are_compared_without_overflow_and_ties_keep_their_order() {
    let profile = profile(vec![
        function("huge", 0, 1, Some((u64::MAX, u64::MAX - 1))),
        function("never", 0, 1, None),
        function("third", 0, 1, Some((7, 2))),
        function("also third", 0, 1, Some((14, 4))),
        function("first", 0, 1, Some((1, 1))),
        function("unordered", 0, 1, Some((0, 0))),
        function("most", 0, 1, Some((u64::MAX, 1))),
    ]);
    // u64::MAX / (u64::MAX - 1) is slightly above 1.
    assert_eq!(by_mean(&profile), functions([4, 0, 2, 3, 6, 5]));
}

#[test]
fn coverage_knows_no_order() {
    let profile = profile(vec![
        function("b", 0, 1, Some((0, 0))),
        function("a", 0, 1, Some((0, 0))),
    ]);
    assert_eq!(by_mean(&profile), functions([0, 1]));
    assert_eq!(trace(&profile), Trace::new(Vec::new()));
}

#[test]
fn files_of_linkers() {
    let profile = profile(vec![
        function("main", 0, 1, Some((1, 1))),
        function("help", 0, 1, Some((2, 1))),
        function("help", 9, 1, Some((3, 1))),
    ]);
    let names = names(&profile, &by_mean(&profile));
    assert_eq!(names.repeated, 1);
    assert_eq!(OrderFile::Lld.write(&names.names), b"main\nhelp\n");
    assert_eq!(OrderFile::MachO.write(&names.names), b"main\nhelp\n");
    assert_eq!(
        String::from_utf8_lossy(&OrderFile::Gold.write(&names.names[..1])),
        ".text.main\n.text.hot.main\n.text.startup.main\n.text.unlikely.main\n"
    );
}

/// The expected values come from the publication that describes how utility nodes are made from traces.
#[test]
fn utility_nodes_of_traces() {
    let nodes = |traces: &[Trace<usize>], leave_out| {
        let mut functions = utilities(traces, leave_out).functions;
        functions.sort();
        let nodes = functions.into_iter().map(|(_, nodes)| nodes);
        nodes.collect::<Vec<Vec<u32>>>()
    };
    let one = nodes(&[Trace::new((0..4).collect())], false);
    assert_eq!(one, [vec![0, 1, 2], vec![1, 2], vec![2], vec![2]]);
    let traces = [Trace::new((0..5).collect()), Trace::new(vec![4, 2])];
    assert_eq!(
        nodes(&traces, false),
        [
            vec![0, 1, 2, 3],
            vec![1, 2, 3],
            vec![2, 3, 5],
            vec![2, 3],
            vec![3, 4, 5]
        ]
    );
    assert_eq!(
        nodes(&traces, true),
        [vec![1], vec![1], vec![5], vec![], vec![5]]
    );
}

#[test]
fn a_heavy_trace_counts_as_much_as_equal_traces() {
    let traces = |weights: [u64; 3]| -> Vec<Trace<usize>> {
        let trace = |(turn, weight): (usize, u64)| Trace {
            functions: (0..60).map(|step| (step * (2 * turn + 1)) % 64).collect(),
            weight,
        };
        (0..3).zip(weights).map(trace).collect()
    };
    let order = |traces: &[Trace<usize>]| balanced(traces, &Partitioning::default());
    let plain = order(&traces([1, 1, 1]));
    assert_eq!(plain, order(&traces([7, 7, 7])));
    let heavy = order(&traces([1, 9, 1]));
    assert_ne!(plain, heavy);
}

#[test]
fn pages_of_a_curve() {
    let order = [1, 2, 3, 4];
    // A page holds two functions. The first trace calls three functions of the order, and has touched 1, 2 and 2 pages
    // after these calls; function 9 is not in the order and does not count. The second trace has touched 1 page after
    // each call.
    let traces = [Trace::new(vec![1, 9, 4, 3]), Trace::new(vec![3, 4])];
    assert_eq!(page_fault_area(&order, &traces, 2), 5 + 2);
}

#[test]
fn functions_needed_together_stand_together() {
    // The runs are of two kinds. Each kind has its own functions, apart from main, and calls them in a different order
    // in each run.
    let mut traces = Vec::new();
    for turn in 0..8 {
        let of = |kind: usize| (0..16).map(move |step| 1 + kind + 2 * ((step * 5 + turn) % 16));
        let run = functions(std::iter::once(0).chain(of(turn % 2)));
        traces.push(Trace::new(run));
    }
    let order = balanced(&traces, &Partitioning::default());
    assert_eq!(order.len(), 33, "functions that no run called are left out");
    let kinds: Vec<usize> = order
        .iter()
        .map(|function| function.index())
        .filter(|&function| function != 0)
        .map(|function| function % 2)
        .collect();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 1, "{order:?}");
    assert_eq!(order, balanced(&traces, &Partitioning::default()));
    let mut all = order.clone();
    all.sort_unstable();
    assert_eq!(all, functions(0..33));
}

#[test]
fn partitioning_does_not_depend_on_threads() {
    let traces: Vec<Trace<FunctionId>> = (0..12)
        .map(|run| {
            Trace::new(functions(
                (0..3000).map(|step| (step * (2 * run + 1) * 7) % 4096),
            ))
        })
        .collect();
    let alone = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map(|pool| pool.install(|| balanced(&traces, &Partitioning::default())))
            .unwrap_or_default()
    };
    let order = alone(1);
    assert!(!order.is_empty());
    assert_eq!(order, alone(3));
}

#[test]
fn pages_before_and_after() {
    let mut profile = profile(vec![
        function("a", 0x1ff0, 0x20, Some((1, 1))),
        function("b", 0x2100, 0x10, Some((1, 1))),
        function("far", 0x9000, 0x1001, Some((1, 1))),
        function(
            "below the section",
            0_u64.wrapping_sub(0x10),
            0x8,
            Some((1, 1)),
        ),
        function("empty", 0x50_000, 0, Some((1, 1))),
    ]);
    let expected = Footprint {
        functions: 5,
        bytes: 0x1039,
        pages_before: 5,
        pages_after: 2,
        hot_pages_before: None,
        hot_pages_after: None,
    };
    for function in &mut profile.functions {
        function.calls = 0;
    }
    assert_eq!(footprint(&profile, &by_mean(&profile), 4096), expected);
    // The first function has more than 99 % of the calls. It is on two pages, and then on one.
    for (function, calls) in profile.functions.iter_mut().zip([1000, 1, 1, 1, 1]) {
        function.calls = calls;
    }
    let expected = Footprint {
        hot_pages_before: Some(2),
        hot_pages_after: Some(1),
        ..expected
    };
    assert_eq!(footprint(&profile, &by_mean(&profile), 4096), expected);
}
