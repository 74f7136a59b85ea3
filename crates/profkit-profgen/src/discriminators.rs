//! Discriminators of line tables: which of their bits tell code of one line apart, and which say that code was copied.
use profkit_data::sample::gcov::{GcovDiscriminator, GcovVersion};
use profkit_data::sample::{
    AddOutcome, SampleForm, SampleProfile, Samples, base_discriminator, duplication_factor,
};

/// How a compiler writes discriminators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discriminators {
    /// As LLVM does: a base, the number of copies, and the number of this copy. Profiles have the base.
    #[default]
    Llvm,
    /// As numbers without parts, as GCC up to 15 does, and LLVM with flow-sensitive discriminators.
    Whole,
    /// As GCC 16 does: the base in bits 0 to 7, how many source statements one instruction stands for in bits 8 to 14,
    /// the number of the copy in bits 15 to 25. Profiles have the base. A sample counts for all statements; the counts
    /// of copies, each the largest of its instructions, are added.
    Gcc16,
}

impl Discriminators {
    /// The discriminators of the compiler that reads an encoding.
    pub fn of_reader(form: SampleForm) -> Self {
        match form {
            SampleForm::Gcov(GcovVersion::V3) => Discriminators::Gcc16,
            SampleForm::Gcov(GcovVersion::Gcc47) => Discriminators::Llvm,
            SampleForm::Gcov(_) => Discriminators::Whole,
            _ => Discriminators::Llvm,
        }
    }

    /// The part that keeps copies of code separate while they are counted.
    pub(crate) fn place(self, discriminator: u32) -> u32 {
        match self {
            Discriminators::Llvm => base_discriminator(discriminator),
            Discriminators::Whole => discriminator,
            Discriminators::Gcc16 => GcovDiscriminator(discriminator).without_multiplicity(),
        }
    }

    /// How often a sample counts.
    pub(crate) fn factor(self, discriminator: u32) -> u32 {
        match self {
            Discriminators::Llvm => duplication_factor(discriminator),
            Discriminators::Whole => 1,
            Discriminators::Gcc16 => GcovDiscriminator(discriminator).multiplicity().max(1),
        }
    }

    /// Adds up the copies of code that were counted apart.
    pub(crate) fn finish(self, profile: &mut SampleProfile) {
        if self != Discriminators::Gcc16 {
            return;
        }
        for mut function in profile.take_functions() {
            cut(&mut function.samples);
            let mut outcome = AddOutcome::default();
            let mut additions = profile.additions();
            additions.merge(
                &function.callers,
                &function.samples,
                |name| name,
                1,
                &mut outcome,
            );
        }
    }
}

/// Leaves the base of each discriminator. Functions nest at most as deep as
/// [`SAMPLE_INLINE_DEPTH`](profkit_data::limits::SAMPLE_INLINE_DEPTH).
fn cut(samples: &mut Samples) {
    let base = |discriminator: &mut u32| {
        *discriminator = GcovDiscriminator(*discriminator).base();
    };
    for line in &mut samples.body {
        base(&mut line.location.discriminator);
    }
    for target in &mut samples.targets {
        base(&mut target.location.discriminator);
    }
    for inlined in &mut samples.inlined {
        base(&mut inlined.location.discriminator);
        cut(&mut inlined.samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profkit_data::sample::{Location, SampleName};

    #[test]
    fn copies_of_gcc_16_are_added() {
        let gcc = Discriminators::Gcc16;
        let bits = |base: u32, multiplicity: u32, copy: u32| base | multiplicity << 8 | copy << 15;
        assert_eq!(gcc.place(bits(3, 4, 2047)), bits(3, 0, 2047));
        assert_eq!(gcc.factor(bits(3, 4, 2047)), 4);
        assert_eq!(gcc.factor(bits(255, 0, 1)), 1);
        let mut profile = SampleProfile::new();
        let name = profile.intern(SampleName::Text(b"f")).unwrap();
        let index = profile.find_or_add(&[], name);
        let samples = profile.samples_mut(index).unwrap();
        samples.total = 60;
        for (base, copy, count) in [(1, 0, 10), (1, 1, 20), (2, 0, 7), (1, 2047, 5)] {
            let at = Location::new(4, gcc.place(bits(base, 0, copy)));
            *crate::lines::line_at(samples, at) = count;
            let inlined = samples.inlined_at(at, name);
            inlined.total = count;
            *crate::lines::line_at(inlined, Location::new(1, 0)) = count;
        }
        gcc.finish(&mut profile);
        let samples = &profile.functions()[0].samples;
        let lines = |samples: &Samples| -> Vec<(u32, u64)> {
            let lines = samples.body.iter();
            lines
                .map(|line| (line.location.discriminator, line.samples))
                .collect()
        };
        assert_eq!(lines(samples), [(1, 35), (2, 7)]);
        assert_eq!(samples.total, 60);
        let inlined: Vec<_> = samples
            .inlined
            .iter()
            .map(|it| (it.location.discriminator, it.samples.total))
            .collect();
        assert_eq!(inlined, [(1, 35), (2, 7)]);
        assert_eq!(lines(&samples.inlined[0].samples), [(0, 35)]);
    }
}
