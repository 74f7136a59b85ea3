//! The lines about what was lost or left out.
use crate::{grouped, percent};

/// Returns a number and what it counts: `3 lines are lost` for `{line is|lines are} lost`. Of each pair of alternatives
/// in braces, the first one is for the number 1.
pub(crate) fn numbered(number: u64, what: &str) -> String {
    format!("{} {}", grouped(number), inflected(number, what))
}

fn inflected(number: u64, text: &str) -> String {
    let mut chosen = String::new();
    for (index, piece) in text.split(['{', '}']).enumerate() {
        // Every other piece stands in braces.
        chosen += match piece.split_once('|').filter(|_| index % 2 == 1) {
            Some((one, many)) => {
                if number == 1 {
                    one
                } else {
                    many
                }
            }
            None => piece,
        };
    }
    chosen
}

/// The names of what is counted.
pub(crate) const SAMPLE: &str = "{sample|samples}";
pub(crate) const BRANCH: &str = "{branch|branches}";
pub(crate) const RANGE: &str = "{range|ranges}";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    number: u64,
    /// The number of all samples, branches or ranges, of which `number` are lost; 0 if it is not known.
    all: u64,
    /// The name of what is lost, as [`numbered`] reads it.
    thing: &'static str,
    /// What happened to it, with a verb: `{is|are} shortened`.
    happened: &'static str,
}

impl Loss {
    /// A loss is large if more than 1 / `ONE_IN` of all samples, branches or ranges are lost.
    const ONE_IN: u64 = 20;

    pub(crate) const fn new(
        number: u64,
        all: u64,
        thing: &'static str,
        happened: &'static str,
    ) -> Self {
        Self {
            number,
            all,
            thing,
            happened,
        }
    }

    pub(crate) fn is_large(self) -> bool {
        self.number.saturating_mul(Self::ONE_IN) > self.all
    }

    pub(crate) fn line(self) -> Option<String> {
        let Self { number, all, .. } = self;
        if number == 0 {
            return None;
        }
        let mut line = numbered(number, self.thing);
        if all > 0 {
            let share = percent(number.into(), all.into());
            line.push_str(&format!(" ({share} of {})", grouped(all)));
        }
        line.push(' ');
        line.push_str(&inflected(number, self.happened));
        Some(line)
    }
}
