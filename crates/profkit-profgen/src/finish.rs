//! The last steps for a finished profile: removes functions with ambiguous names, marks functions for inlining, and
//! computes whether there are enough samples.
use profkit_data::sample::{ProfileKind, SampleName, SampleNames, SampleProfile, Samples};
use rayon::prelude::*;

/// Prefixes of names that many different functions of one program have.
const AMBIGUOUS: [&[u8]; 2] = [b"__cxx_global_var_init", b"__tls_init"];

fn is_ambiguous(names: &SampleNames, samples: &Samples) -> bool {
    is_ambiguous_name(names.get(samples.name))
}

fn is_ambiguous_name(name: SampleName<'_>) -> bool {
    match name {
        SampleName::Text(name) => AMBIGUOUS.iter().any(|prefix| name.starts_with(prefix)),
        SampleName::Guid(_) => false,
    }
}

fn drop_inlined(names: &SampleNames, samples: &mut Samples) {
    samples
        .inlined
        .retain(|inlined| !is_ambiguous(names, &inlined.samples));
    for inlined in &mut samples.inlined {
        drop_inlined(names, &mut inlined.samples);
    }
}

/// Removes functions with a name that many different functions of a program share, such as `__cxx_global_var_init`.
pub fn drop_ambiguous(profile: &mut SampleProfile) {
    if !profile
        .names
        .iter()
        .any(|(_, name)| is_ambiguous_name(name))
    {
        return;
    }
    let (names, functions) = profile.parts_mut();
    for function in functions {
        drop_inlined(names, &mut function.samples);
    }
    let names = std::mem::take(&mut profile.names);
    profile.retain(|function| !is_ambiguous(&names, &function.samples));
    profile.names = names;
}

/// LLVM's attribute of a function that compilers shall inline in this context of the profile.
pub(crate) const SHOULD_BE_INLINED: u32 = 2;

/// Marks all functions and those inlined into them: llvm-profgen's `--mark-all-context-preinlined`.
pub fn mark_preinlined(profile: &mut SampleProfile) {
    fn mark(samples: &mut Samples) {
        samples.attributes |= SHOULD_BE_INLINED;
        for inlined in &mut samples.inlined {
            mark(&mut inlined.samples);
        }
    }
    profile.kind |= ProfileKind::PRE_INLINED;
    for function in profile.parts_mut().1 {
        mark(&mut function.samples);
    }
}

/// How many samples a line of the profile has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Density {
    /// The samples per line of the least dense of the densest functions that have the wanted share of all samples.
    pub samples_per_line: f64,
}

impl Density {
    /// The share of all samples in millionths: llvm-profgen's `--profile-density-cutoff-hot`.
    pub const CUTOFF: u32 = 990_000;
    /// Above this density, more samples hardly help: `--profile-density-threshold`.
    pub const ENOUGH: f64 = 50.0;

    /// The factor by which the samples have to grow to reach `enough`; `None` if they have.
    pub fn more_samples(self, enough: f64) -> Option<f64> {
        (self.samples_per_line < enough).then(|| enough / self.samples_per_line)
    }
}

fn lines_of(samples: &Samples, sum: &mut u64, lines: &mut u64) {
    *lines += samples.body.len() as u64;
    for line in &samples.body {
        *sum = sum.saturating_add(line.samples);
    }
    for inlined in &samples.inlined {
        lines_of(&inlined.samples, sum, lines);
    }
}

/// Takes the densest functions until they have the share `cutoff` (in millionths) of all samples; the last one decides.
#[allow(
    clippy::cast_precision_loss,
    reason = "densities are estimates, and are rounded as llvm-profgen rounds them"
)]
pub fn density(profile: &SampleProfile, cutoff: u32) -> Density {
    let mut all = 0u64;
    let mut list = Vec::new();
    let counted: Vec<(u64, u64)> = profile
        .functions()
        .par_iter()
        .map(|function| {
            let (mut sum, mut lines) = (0, 0);
            lines_of(&function.samples, &mut sum, &mut lines);
            (sum, lines)
        })
        .collect();
    for (sum, lines) in counted {
        if lines > 0 {
            all = all.saturating_add(sum);
            list.push((sum as f64 / lines as f64, sum));
        }
    }
    list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let wanted = all as f32 * cutoff as f32 / 1_000_000.0;
    let mut sum = 0u64;
    let mut density = 0.0;
    for (one, samples) in list {
        if sum as f32 >= wanted {
            break;
        }
        sum = sum.saturating_add(samples);
        density = one;
    }
    Density {
        samples_per_line: density,
    }
}
