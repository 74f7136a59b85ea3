//! The lines about what was lost or left out.
use crate::{grouped, percent};

/// The words for what is counted, each in the singular and in the plural.
pub(crate) const SAMPLE: [&str; 2] = ["sample", "samples"];
pub(crate) const BRANCH: [&str; 2] = ["branch", "branches"];
pub(crate) const RANGE: [&str; 2] = ["range", "ranges"];

/// One kind of loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// How many things are lost.
    number: u64,
    /// The number of all samples, branches or ranges, of which `number` are lost; 0 if it is not known.
    all: u64,
    /// The name of one thing, and of several.
    things: [&'static str; 2],
    /// What happened to the lost ones, in the singular and in the plural. The texts begin with the verb, for example
    /// "is shortened" and "are shortened".
    happened: [&'static str; 2],
}

impl Loss {
    /// A loss is large if more than 1 / `ONE_IN` of all samples, branches or ranges are lost.
    const ONE_IN: u64 = 20;

    pub(crate) const fn new(
        number: u64,
        all: u64,
        things: [&'static str; 2],
        happened: [&'static str; 2],
    ) -> Self {
        Self {
            number,
            all,
            things,
            happened,
        }
    }

    /// Whether so many things are lost that the profile cannot be trusted.
    pub(crate) fn is_large(self) -> bool {
        self.number.saturating_mul(Self::ONE_IN) > self.all
    }

    /// Returns the line about this loss; `None` if nothing is lost.
    pub(crate) fn line(self) -> Option<String> {
        let Self { number, all, .. } = self;
        if number == 0 {
            return None;
        }
        let form = usize::from(number != 1);
        let mut line = format!("{} {}", grouped(number), self.things[form]);
        if all > 0 {
            let share = percent(number.into(), all.into());
            line.push_str(&format!(" ({share} of {})", grouped(all)));
        }
        line.push(' ');
        line.push_str(self.happened[form]);
        Some(line)
    }
}
