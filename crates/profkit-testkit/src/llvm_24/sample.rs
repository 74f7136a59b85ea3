//! Writes extensible binary sample profiles with the features that LLVM's development branch has after release 23:
//! hashed tables in Eytzinger order, hashed symbol lists, composite sections.
use super::hash_of;
use crate::{ByteBuilder, Endian};
use flate2::{Compression, write::ZlibEncoder};
use std::collections::BTreeSet;
use std::io::Write;

/// A call target and the number of its samples.
pub type Target = (&'static str, u64);

/// A function of a sample profile. It is a top-level function or an inlined one.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// The name.
    pub name: &'static str,
    /// The number of head samples. Inlined functions have none.
    pub head: u64,
    /// The total samples.
    pub total: u64,
    /// The lines. Each has its number, its samples and its call targets.
    pub lines: Vec<(u64, u64, Vec<Target>)>,
    /// The inlined functions. Each has the line at which it is inlined.
    pub inlined: Vec<(u64, Sampled)>,
}

/// The form in which a sample profile is written.
#[derive(Clone, Debug, Default)]
pub struct SampleForm {
    /// The version in the header. The value 0 here means version 103.
    pub version: u8,
    /// Whether the name table and the table of offsets are in Eytzinger order.
    pub eytzinger: bool,
    /// Whether functions without inlined functions are written to separate sections.
    pub split: bool,
    /// Whether sections are compressed.
    pub compress: bool,
    /// The names in the symbol list. The file contains their hashes.
    pub symbols: Vec<&'static str>,
    /// The form of composite sections; `None` if the file has none.
    pub composite: Option<Composite>,
}

/// The properties of composite sections that the descriptions leave open, or that may differ between files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Composite {
    /// Whether the head samples precede the total samples.
    pub head_first: bool,
    /// Whether inlined functions have head samples.
    pub inlined_heads: bool,
    /// Whether a block of type 127 precedes the samples.
    pub unknown_blocks: bool,
}

fn uleb(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// The names in a file, in the order of the name table.
struct Names {
    order: Vec<&'static str>,
    nested: usize,
    flat: usize,
}

/// Arranges sorted elements as a complete binary search tree. Returns its elements level by level.
fn tree<T: Clone>(sorted: &[T]) -> Vec<T> {
    fn place<T: Clone>(sorted: &mut std::slice::Iter<'_, T>, at: usize, tree: &mut Vec<Option<T>>) {
        if at >= tree.len() {
            return;
        }
        place(sorted, 2 * at + 1, tree);
        tree[at] = sorted.next().cloned();
        place(sorted, 2 * at + 2, tree);
    }
    let mut tree = vec![None; sorted.len()];
    place(&mut sorted.iter(), 0, &mut tree);
    tree.into_iter().flatten().collect()
}

fn all_names(function: &Sampled, names: &mut BTreeSet<&'static str>) {
    names.insert(function.name);
    names.extend(
        function
            .lines
            .iter()
            .flat_map(|line| &line.2)
            .map(|target| target.0),
    );
    for (_, inlined) in &function.inlined {
        all_names(inlined, names);
    }
}

fn names(functions: &[Sampled], form: &SampleForm) -> Names {
    let mut all = BTreeSet::new();
    functions.iter().for_each(|one| all_names(one, &mut all));
    if !form.eytzinger {
        return Names {
            order: all.into_iter().collect(),
            nested: 0,
            flat: 0,
        };
    }
    let top = |nested: bool| {
        let top = functions
            .iter()
            .filter(move |one| one.inlined.is_empty() != nested);
        top.map(|one| one.name).collect::<Vec<_>>()
    };
    let (nested, flat) = (top(true), top(false));
    let other = all
        .into_iter()
        .filter(|name| !nested.contains(name) && !flat.contains(name));
    let other: Vec<_> = other.collect();
    let (nested_count, flat_count) = (nested.len(), flat.len());
    let mut order = Vec::new();
    for mut part in [nested, flat, other] {
        part.sort_by_key(|name| hash_of(name));
        order.extend(tree(&part));
    }
    Names {
        order,
        nested: nested_count,
        flat: flat_count,
    }
}

impl Names {
    fn put(&self, out: &mut Vec<u8>, name: &str) {
        let index = self.order.iter().position(|known| *known == name);
        uleb(out, index.expect("all names are collected") as u64);
    }

    fn table(&self, form: &SampleForm) -> Vec<u8> {
        let mut out = Vec::new();
        if form.eytzinger {
            let other = self.order.len() - self.nested - self.flat;
            for size in [self.nested, self.flat, other] {
                uleb(&mut out, size as u64);
            }
            out.extend(
                self.order
                    .iter()
                    .flat_map(|name| hash_of(name).to_le_bytes()),
            );
        } else {
            uleb(&mut out, self.order.len() as u64);
            for name in &self.order {
                out.extend(name.as_bytes());
                out.push(0);
            }
        }
        out
    }

    fn lines(&self, out: &mut Vec<u8>, function: &Sampled) {
        uleb(out, function.lines.len() as u64);
        for (line, samples, targets) in &function.lines {
            for number in [*line, 0, *samples, targets.len() as u64] {
                uleb(out, number);
            }
            for (name, count) in targets {
                self.put(out, name);
                uleb(out, *count);
            }
        }
    }

    /// Writes the samples of a function in the form of all versions up to 104.
    fn body(&self, out: &mut Vec<u8>, function: &Sampled) {
        uleb(out, function.total);
        self.lines(out, function);
        uleb(out, function.inlined.len() as u64);
        for (line, inlined) in &function.inlined {
            uleb(out, *line);
            uleb(out, 0);
            self.put(out, inlined.name);
            self.body(out, inlined);
        }
    }

    fn composite(&self, out: &mut Vec<u8>, function: &Sampled, form: Composite, is_top: bool) {
        self.put(out, function.name);
        uleb(out, 1 + u64::from(form.unknown_blocks));
        if form.unknown_blocks {
            // A block consists of its type, its size in bytes and its content.
            uleb(out, 127);
            uleb(out, 3);
            out.extend([0xff, 0xff, 0xff]);
        }
        let mut payload = Vec::new();
        let mut first = vec![function.total];
        if is_top || form.inlined_heads {
            first.push(function.head);
        }
        if form.head_first {
            first.reverse();
        }
        first
            .into_iter()
            .for_each(|number| uleb(&mut payload, number));
        self.lines(&mut payload, function);
        uleb(out, 0);
        uleb(out, payload.len() as u64);
        out.extend(payload);
        uleb(out, function.inlined.len() as u64);
        for (line, inlined) in &function.inlined {
            uleb(out, *line);
            uleb(out, 0);
            self.composite(out, inlined, form, false);
        }
    }
}

/// Returns the bytes of a sample profile with these functions. The builder has labels for the contents of the sections:
/// `names`, `offsets`, `samples`, `flat offsets`, `flat samples` and `symbols`. For the entries of the section table,
/// it has the same labels with `entry of` before them.
pub fn sample_profile(functions: &[Sampled], form: &SampleForm) -> ByteBuilder {
    let names = names(functions, form);
    let version = if form.version == 0 { 103 } else { form.version };
    let (samples_kind, offsets_kind) = if form.composite.is_some() {
        (33, 7)
    } else {
        (32, 4)
    };
    let mut sections: Vec<(&str, u64, u64, Vec<u8>)> = Vec::new();
    let mut summary = Vec::new();
    // The counts and cutoffs of the summary. No test looks at them.
    for number in [0, 0, 0, 0, functions.len() as u64, 0] {
        uleb(&mut summary, number);
    }
    sections.push(("summary", 1, 0, summary));
    let name_flags = if form.eytzinger { 8 | 2 | 1 } else { 0 };
    sections.push(("names", 2, name_flags << 32, names.table(form)));
    let parts: &[(bool, bool)] = if form.split {
        &[(true, false), (false, true)]
    } else {
        &[(true, true)]
    };
    for &(nested, flat) in parts {
        let mut samples = Vec::new();
        let mut places = Vec::new();
        for function in functions {
            if if function.inlined.is_empty() {
                !flat
            } else {
                !nested
            } {
                continue;
            }
            places.push((function.name, samples.len()));
            if let Some(form) = form.composite {
                names.composite(&mut samples, function, form, true);
            } else {
                uleb(&mut samples, function.head);
                names.put(&mut samples, function.name);
                names.body(&mut samples, function);
            }
        }
        let mut offsets = Vec::new();
        if form.eytzinger {
            let from = if nested { 0 } else { names.nested };
            let to = if flat {
                names.nested + names.flat
            } else {
                names.nested
            };
            for name in &names.order[from..to] {
                let place = places.iter().find(|place| place.0 == *name);
                let offset = place.map_or(u32::MAX, |place| u32::try_from(place.1).expect("small"));
                offsets.extend(offset.to_le_bytes());
            }
        } else {
            uleb(&mut offsets, places.len() as u64);
            for (name, offset) in places {
                names.put(&mut offsets, name);
                uleb(&mut offsets, offset as u64);
            }
        }
        let (labels, common) = match (nested, flat) {
            (false, _) => (("flat offsets", "flat samples"), 2),
            _ => (("offsets", "samples"), 0),
        };
        let own = if form.eytzinger { 2 << 32 } else { 0 };
        sections.push((labels.0, offsets_kind, own | common, offsets));
        sections.push((labels.1, samples_kind, common, samples));
    }
    let mut symbols: Vec<u64> = form.symbols.iter().map(|name| hash_of(name)).collect();
    symbols.sort_unstable();
    let symbols = tree(&symbols).into_iter().flat_map(u64::to_le_bytes);
    sections.push(("symbols", 3, 1 << 32, symbols.collect()));

    let mut start = Vec::new();
    uleb(&mut start, 0x5350_524f_4634_3204);
    uleb(&mut start, version.into());
    let mut file = ByteBuilder::new(Endian::Little);
    file.bytes(start).u64(sections.len() as u64);
    let mut offset = file.len() + 32 * sections.len();
    let mut bodies = ByteBuilder::new(Endian::Little);
    for (label, kind, flags, mut body) in sections {
        let compressed = form.compress && !body.is_empty();
        if compressed {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
            encoder.write_all(&body).expect("memory");
            let stream = encoder.finish().expect("memory");
            let mut stored = Vec::new();
            uleb(&mut stored, body.len() as u64);
            uleb(&mut stored, stream.len() as u64);
            stored.extend(stream);
            body = stored;
        }
        file.label(&format!("entry of {label}")).u64(kind);
        file.u64(flags | u64::from(compressed))
            .u64(offset as u64)
            .u64(body.len() as u64);
        bodies.label(label).bytes(&body);
        offset += body.len();
    }
    let base = file.len();
    file.bytes(bodies.finish());
    for label in [
        "names",
        "offsets",
        "samples",
        "flat offsets",
        "flat samples",
        "symbols",
    ] {
        if form.split || !label.starts_with("flat") {
            file.label_at(label, base + bodies.offset(label));
        }
    }
    file
}

/// Returns five functions. The first has inlined functions two levels deep, the second has one inlined function, and
/// the others have none.
pub fn sampled_functions() -> Vec<Sampled> {
    let leaf = |name, total| Sampled {
        name,
        total,
        lines: vec![(1, total, Vec::new())],
        ..Sampled::default()
    };
    let middle = Sampled {
        name: "middle",
        total: 90,
        lines: vec![(4, 30, vec![("called", 12), ("far", 18)])],
        inlined: vec![(5, leaf("leaf", 60))],
        ..Sampled::default()
    };
    vec![
        Sampled {
            name: "main",
            head: 7,
            total: 300,
            lines: vec![(1, 200, Vec::new()), (2, 10, vec![("called", 10)])],
            inlined: vec![(3, middle)],
        },
        Sampled {
            name: "second",
            head: 40,
            total: 130,
            lines: vec![(2, 100, Vec::new())],
            inlined: vec![(9, leaf("leaf", 30))],
        },
        Sampled {
            head: 22,
            ..leaf("called", 50)
        },
        Sampled {
            head: 1,
            ..leaf("far", 18)
        },
        Sampled {
            name: "entered",
            head: 5,
            ..Sampled::default()
        },
    ]
}

/// Returns the forms in which the fixtures are written, each with its name. Tests also write `sampled_functions` in
/// these forms.
pub fn sample_forms() -> Vec<(&'static str, SampleForm)> {
    let eytzinger = SampleForm {
        eytzinger: true,
        ..SampleForm::default()
    };
    let composite = |composite: Composite| SampleForm {
        version: 105,
        composite: Some(composite),
        ..SampleForm::default()
    };
    vec![
        ("plain.prof", SampleForm::default()),
        (
            "version-104.prof",
            SampleForm {
                version: 104,
                ..SampleForm::default()
            },
        ),
        ("eytzinger.prof", eytzinger.clone()),
        (
            "eytzinger-split.prof",
            SampleForm {
                split: true,
                compress: true,
                ..eytzinger.clone()
            },
        ),
        (
            "symbols.prof",
            SampleForm {
                symbols: vec!["main", "second", "called", "never", "entered"],
                ..SampleForm::default()
            },
        ),
        ("composite.prof", composite(Composite::default())),
        (
            "composite-head-first.prof",
            composite(Composite {
                head_first: true,
                inlined_heads: true,
                ..Composite::default()
            }),
        ),
        (
            "composite-unknown.prof",
            composite(Composite {
                unknown_blocks: true,
                ..Composite::default()
            }),
        ),
        (
            "composite-eytzinger.prof",
            SampleForm {
                eytzinger: true,
                split: true,
                compress: true,
                ..composite(Composite::default())
            },
        ),
    ]
}

pub(super) fn fixtures() -> Vec<(&'static str, Vec<u8>)> {
    let mut fixtures: Vec<_> = sample_forms()
        .into_iter()
        .map(|(name, form)| (name, sample_profile(&sampled_functions(), &form).finish()))
        .collect();
    // In this profile, it is unclear which number is the head and which is the total.
    let unclear = [Sampled {
        name: "main",
        head: 7,
        total: 9,
        ..Sampled::default()
    }];
    let form = SampleForm {
        version: 105,
        composite: Some(Composite::default()),
        ..SampleForm::default()
    };
    let file = sample_profile(&unclear, &form).finish();
    fixtures.push(("composite-unclear.prof", file));
    fixtures
}
