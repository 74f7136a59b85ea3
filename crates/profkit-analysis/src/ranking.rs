//! Ranks functions by their numbers, and divides functions into groups.
use crate::names::{self, Spelling};
use profkit_data::ids::{FuncHash, NameRef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number or name by which functions are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionOrder {
    /// The sum of the counters or samples, largest first.
    #[default]
    Sum,
    /// The function's largest counter, or the samples of its hottest line. The function with the largest number comes
    /// first.
    Max,
    /// The function's first counter, or the samples at its entry. The function with the largest number comes first. The
    /// first counter is the number of calls only if
    /// [`InstrKind::counts_calls`](profkit_data::instr::InstrKind::counts_calls).
    Entry,
    /// The demangled name, which people read.
    Name,
}

/// The numbers of a function by which functions can be sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionNumbers {
    /// The sum of the counters or samples.
    pub sum: u128,
    /// The largest counter, or the samples of the hottest line.
    pub max: u64,
    /// The first counter, or the samples at the function's entry.
    pub entry: u64,
}

impl FunctionNumbers {
    /// The number by which functions are sorted in this order; 0 if they are sorted by name.
    fn by(&self, order: FunctionOrder) -> u128 {
        match order {
            FunctionOrder::Sum => self.sum,
            FunctionOrder::Max => self.max.into(),
            FunctionOrder::Entry => self.entry.into(),
            FunctionOrder::Name => 0,
        }
    }
}

/// A function with its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankedFunction {
    /// The name as in the profile. If several instances of a Rust function are counted together, the name of one of
    /// them.
    pub name: Vec<u8>,
    /// The function hash, if it was given. If several instances are counted together, the hash of one of them.
    pub hash: Option<FuncHash>,
    /// The numbers of the function. For several instances: the sum of their sums, the largest of their largest
    /// counters, and the sum of their entry counts.
    pub numbers: FunctionNumbers,
    /// The number of instances of a Rust function that are counted together; 1 for other functions.
    pub instances: u64,
}

impl RankedFunction {
    /// The sort key of the function in this order. The function with the greatest key comes first.
    fn key(&self, order: FunctionOrder) -> (u128, Reverse<String>) {
        let name = match order {
            FunctionOrder::Name => names::spelled(&self.name, Spelling::Demangled).into_owned(),
            _ => String::new(),
        };
        (self.numbers.by(order), Reverse(name))
    }
}

/// The sort key of a function, its position in the order in which all functions were added (from 1), and the function.
/// If two functions have the same sort key, the function that was added first counts as the greater one.
type Ranked = ((u128, Reverse<String>), Reverse<u64>, RankedFunction);

/// A ranking of functions, which keeps only the first functions in the chosen order. Its memory does not grow with the
/// number of functions, unless instances of Rust functions are counted together.
///
/// ```
/// use profkit_analysis::ranking::{FunctionNumbers, FunctionOrder, Ranking};
///
/// let mut ranking = Ranking::new(FunctionOrder::Sum, 1, true);
/// for (name, sum) in [("_ZN3lib4push17h0123456789abcdefE", 4), ("main", 5), ("_ZN3lib4push17h1111111111111111E", 3)] {
///     ranking.offer(name.as_bytes(), FunctionNumbers { sum, ..FunctionNumbers::default() });
/// }
/// let first = &ranking.into_sorted()[0];
/// assert_eq!((first.numbers.sum, first.instances), (7, 2));
/// ```
#[derive(Debug, Default)]
pub struct Ranking {
    order: FunctionOrder,
    most: usize,
    unite: bool,
    seen: u64,
    /// The functions that are kept. The last one in the order is on top of the heap.
    heap: BinaryHeap<Reverse<Ranked>>,
    /// The Rust functions whose instances are counted together, by the key of the instances. Functions that never ran
    /// are not among them.
    united: FxHashMap<u64, Instances>,
    /// The keys of the instances that never ran.
    idle: Vec<u64>,
    /// The instances that never ran, of which only the hints are known, and the hashes of their names.
    unnamed: Vec<(u64, NameRef)>,
    /// The names of the functions in `united` that may be among the first, by key.
    candidates: FxHashMap<u64, Vec<u8>>,
    /// No function with a smaller number is among the first.
    least: u128,
    /// The number of candidates at which `least` is raised.
    most_candidates: usize,
}

/// The instances of a Rust function.
#[derive(Debug)]
struct Instances {
    /// The position of the first instance in the order in which all functions were added (from 1).
    seen: u64,
    hash: Option<FuncHash>,
    numbers: FunctionNumbers,
    count: u64,
}

impl Ranking {
    /// Makes a ranking that keeps `most` functions. If `unite` is true, the instances of a Rust function whose names
    /// differ only in a hash are counted together.
    pub fn new(order: FunctionOrder, most: usize, unite: bool) -> Self {
        Ranking {
            order,
            most,
            unite,
            ..Ranking::default()
        }
    }

    /// Adds a function.
    pub fn offer(&mut self, name: &[u8], numbers: FunctionNumbers) {
        self.offer_with_hash(name, None, numbers);
    }

    /// Adds a function with its function hash, which tells functions of one name apart.
    pub fn offer_with_hash(
        &mut self,
        name: &[u8],
        hash: Option<FuncHash>,
        numbers: FunctionNumbers,
    ) {
        self.add(name, None, hash, numbers);
    }

    /// Adds a function of a profile that finds names by their hashes: [`find_instances`](Self::find_instances) must follow
    /// when all functions were added. This takes less time, because the names of Rust functions that never ran are not read
    /// to their ends.
    pub fn offer_found(
        &mut self,
        name: &[u8],
        name_ref: NameRef,
        hash: FuncHash,
        numbers: FunctionNumbers,
    ) {
        self.add(name, Some(name_ref), Some(hash), numbers);
    }

    /// Counts the instances that never ran of the functions that may be among the first. `name_of` returns the name with a hash.
    pub fn find_instances<'n>(&mut self, name_of: impl Fn(NameRef) -> Option<&'n [u8]>) {
        if self.candidates.len() > self.most {
            self.drop_candidates();
        }
        let names = self.candidates.values();
        let hints: FxHashSet<u64> = names
            .filter_map(|name| names::instance_hint(name))
            .collect();
        let unnamed = std::mem::take(&mut self.unnamed).into_iter();
        let possible = unnamed.filter(|(hint, _)| hints.contains(hint));
        let keys = possible.filter_map(|(_, name)| names::instance_key(name_of(name)?));
        self.idle.extend(keys);
    }

    fn add(
        &mut self,
        name: &[u8],
        name_ref: Option<NameRef>,
        hash: Option<FuncHash>,
        numbers: FunctionNumbers,
    ) {
        self.seen += 1;
        if self.most == 0 {
            return;
        }
        if self.unite {
            let is_idle = numbers == FunctionNumbers::default();
            if let Some(name_ref) = name_ref
                && is_idle
                && self.order != FunctionOrder::Name
                && let Some(hint) = names::instance_hint(name)
            {
                self.unnamed.push((hint, name_ref));
                return;
            }
            if let Some(key) = names::instance_key(name) {
                self.unite(key, name, hash, numbers);
                return;
            }
        }
        // Most functions are colder than every kept function. They are skipped before their names are copied.
        if self.order == FunctionOrder::Sum
            && self.heap.len() >= self.most
            && let Some(Reverse(((coldest, _), ..))) = self.heap.peek()
            && *coldest >= numbers.sum
        {
            return;
        }
        let function = RankedFunction {
            name: name.to_vec(),
            hash,
            numbers,
            instances: 1,
        };
        self.keep(self.seen, function);
    }

    fn unite(&mut self, key: u64, name: &[u8], hash: Option<FuncHash>, numbers: FunctionNumbers) {
        let by_name = self.order == FunctionOrder::Name;
        if numbers == FunctionNumbers::default() && !by_name {
            self.idle.push(key);
            return;
        }
        let fresh = || Instances {
            seen: self.seen,
            hash,
            numbers: FunctionNumbers::default(),
            count: 0,
        };
        let function = self.united.entry(key).or_insert_with(fresh);
        function.numbers.sum += numbers.sum;
        function.numbers.entry = function.numbers.entry.saturating_add(numbers.entry);
        function.numbers.max = function.numbers.max.max(numbers.max);
        function.count += 1;
        // The numbers of a function only grow. So a function that is among the first at the end is not below the limit
        // when its last instance is added.
        let number = function.numbers.by(self.order);
        if by_name || number >= self.least {
            self.candidates.entry(key).or_insert_with(|| name.to_vec());
        }
        if !by_name && self.candidates.len() > self.most_candidates.max(4 * self.most) {
            self.drop_candidates();
        }
    }

    /// Keeps the candidates that are among the first now, and raises the limit for others.
    fn drop_candidates(&mut self) {
        let (united, order) = (&self.united, self.order);
        let number = |key: &u64| united.get(key).map_or(0, |one| one.numbers.by(order));
        let mut numbers: Vec<u128> = self.candidates.keys().map(number).collect();
        let last = numbers.len().saturating_sub(self.most);
        let (_, least, _) = numbers.select_nth_unstable(last);
        let least = *least;
        self.candidates.retain(|key, _| number(key) >= least);
        self.least = least;
        // Many functions may be equal, so that none of them can be dropped.
        self.most_candidates = 2 * self.candidates.len();
    }

    fn keep(&mut self, seen: u64, function: RankedFunction) {
        let key = function.key(self.order);
        self.heap.push(Reverse((key, Reverse(seen), function)));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    /// The functions in their order. Equal functions are in the order in which they were added.
    pub fn into_sorted(mut self) -> Vec<RankedFunction> {
        let names = std::mem::take(&mut self.candidates);
        let mut idle: FxHashMap<u64, u64> = names.keys().map(|&key| (key, 0)).collect();
        for key in std::mem::take(&mut self.idle) {
            if let Some(count) = idle.get_mut(&key) {
                *count += 1;
            }
        }
        for (key, name) in names {
            if let Some(function) = self.united.get(&key) {
                let ranked = RankedFunction {
                    name,
                    hash: function.hash,
                    numbers: function.numbers,
                    instances: function.count + idle.get(&key).copied().unwrap_or(0),
                };
                self.keep(function.seen, ranked);
            }
        }
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|Reverse((.., function))| function).collect()
    }
}

/// The property by which functions are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The source file. Instrumentation profiles contain it only for local functions.
    File,
    /// The crate of a Rust function.
    Crate,
    /// The namespaces of a C++ function or the modules of a Rust function, with the types that contain the function.
    Namespace,
}

impl GroupBy {
    /// Returns the group to which a function belongs, according to its name; `None` if the name does not show the
    /// group.
    pub fn of(self, name: &[u8]) -> Option<String> {
        match self {
            GroupBy::File => names::file_of(name).map(str::to_owned),
            GroupBy::Crate => names::crate_of(name),
            GroupBy::Namespace => names::namespace_of(name),
        }
    }
}

/// The functions of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The name of the group; `None` for the group of functions whose names do not show a group.
    pub name: Option<String>,
    /// The number of functions in the group. For heap profiles, the number of contexts.
    pub functions: u64,
    /// The number of functions that ran.
    pub entered: u64,
    /// The sum of the counters, samples or bytes of the functions in the group.
    pub sum: u128,
}

/// Functions in groups.
#[derive(Debug, Default)]
pub struct Groups {
    groups: FxHashMap<Option<String>, Group>,
}

impl Groups {
    /// Adds a function, or a part of a function, to a group.
    pub fn add(&mut self, name: Option<String>, functions: u64, entered: u64, sum: u128) {
        let fresh = |name: Option<String>| Group {
            name,
            ..Group::default()
        };
        let group = self
            .groups
            .entry(name.clone())
            .or_insert_with(|| fresh(name));
        group.functions += functions;
        group.entered += entered;
        group.sum += sum;
    }

    /// Returns the groups: sorted by name if `order` is [`FunctionOrder::Name`], otherwise with the largest sum first.
    pub fn into_sorted(self, order: FunctionOrder) -> Vec<Group> {
        let mut groups: Vec<Group> = self.groups.into_values().collect();
        groups.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        if order != FunctionOrder::Name {
            groups.sort_by_key(|group| Reverse((group.sum, group.functions)));
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sum: u128, max: u64, entry: u64) -> FunctionNumbers {
        FunctionNumbers { sum, max, entry }
    }

    fn names(order: FunctionOrder, unite: bool) -> Vec<(String, u64)> {
        let mut ranking = Ranking::new(order, 2, unite);
        ranking.offer(b"_Z1bv", numbers(1, 1, 9));
        ranking.offer(b"c", numbers(5, 2, 1));
        ranking.offer(b"_Z1av", numbers(5, 5, 2));
        for hash in ["0123456789abcdef", "1111111111111111"] {
            ranking.offer(format!("_ZN1d1e17h{hash}E").as_bytes(), numbers(3, 3, 3));
        }
        let sorted = ranking.into_sorted().into_iter();
        sorted
            .map(|one| {
                let name = names::display(&one.name).into_owned();
                (name, one.instances)
            })
            .collect()
    }

    #[test]
    fn functions_are_in_each_order() {
        let of = |order| {
            names(order, false)
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(FunctionOrder::Sum), ["c", "a()"]);
        assert_eq!(of(FunctionOrder::Max), ["a()", "d::e"]);
        assert_eq!(of(FunctionOrder::Entry), ["b()", "d::e"]);
        assert_eq!(of(FunctionOrder::Name), ["a()", "b()"]);
    }

    #[test]
    fn instances_of_a_rust_function_are_counted_together_or_apart() {
        let first = names(FunctionOrder::Sum, true).swap_remove(0);
        assert_eq!(first, ("d::e".to_owned(), 2));
    }

    #[test]
    fn the_first_of_many_instances_are_found_in_any_order() {
        let cases = [(1u64, 1u64), (7_919, 1), (10_006, 1), (7_919, 10_007)];
        for ((step, equal), found) in cases
            .into_iter()
            .flat_map(|case| [(case, false), (case, true)])
        {
            let mut ranking = Ranking::new(FunctionOrder::Sum, 3, true);
            let mut all = FxHashMap::default();
            for number in 0..10_007u64 {
                // Each function has one instance that ran, and two that did not.
                let function = number * step % 10_007;
                let sum = u128::from(function / equal + 1);
                let name = match function % 2 {
                    0 => |function, hash| format!("_ZN5crate8f{function:07}17h{hash:016x}E"),
                    _ => |function, hash| format!("_RNvNtNtNtCs{hash}_1a1b1c1d8f{function:07}"),
                };
                for (hash, numbers) in [
                    (0, numbers(sum, 1, 1)),
                    (1, numbers(0, 0, 0)),
                    (2, numbers(0, 0, 0)),
                ] {
                    let name = name(function, hash).into_bytes();
                    let name_ref = NameRef::of(&name);
                    match found {
                        true => ranking.offer_found(&name, name_ref, FuncHash(0), numbers),
                        false => ranking.offer(&name, numbers),
                    }
                    all.insert(name_ref, name);
                }
            }
            ranking.find_instances(|name| all.get(&name).map(Vec::as_slice));
            let first = ranking.into_sorted();
            assert!(first.iter().all(|one| one.instances == 3), "{step} {found}");
            let sums: Vec<u128> = first.iter().map(|one| one.numbers.sum).collect();
            let wanted: [u128; 3] = if equal == 1 {
                [10_007, 10_006, 10_005]
            } else {
                [1, 1, 1]
            };
            assert_eq!(sums, wanted, "{step} {found}");
        }
    }

    #[test]
    fn groups_are_sorted_by_sum_or_name() {
        let mut groups = Groups::default();
        groups.add(Some("std".into()), 1, 1, 4);
        groups.add(None, 1, 0, 9);
        groups.add(Some("core".into()), 1, 1, 3);
        groups.add(Some("core".into()), 1, 0, 3);
        let sums = |groups: Vec<Group>| groups.iter().map(|group| group.sum).collect::<Vec<_>>();
        let mut other = Groups::default();
        other.add(Some("b".into()), 1, 1, 9);
        other.add(Some("a".into()), 1, 1, 1);
        assert_eq!(sums(groups.into_sorted(FunctionOrder::Sum)), [9, 6, 4]);
        assert_eq!(sums(other.into_sorted(FunctionOrder::Name)), [1, 9]);
    }
}
