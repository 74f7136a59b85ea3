//! Decides whether the result of a merge can be trusted, by the number of inputs that were dropped.
use super::Totals;
use std::str::FromStr;

/// The largest number of inputs that may be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropLimit {
    /// At most this many inputs may be dropped.
    Files(u64),
    /// At most this many percent of the inputs may be dropped.
    Percent(u64),
}

impl FromStr for DropLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| "expected a number of files such as 12, or a share such as 5%".to_owned();
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(DropLimit::Percent).map_err(wrong),
            None => text.parse().map(DropLimit::Files).map_err(wrong),
        }
    }
}

/// How many inputs a merge may drop, and how many it must use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// The inputs that may be dropped; by default half of them, but always one.
    pub max_dropped: Option<DropLimit>,
    /// The smallest number of inputs that must be used. `None` sets no minimum.
    pub min_files: Option<u64>,
}

/// Why a result is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortfall {
    /// Most inputs were dropped, and no limit was set.
    MostDropped,
    /// More inputs were dropped than [`Tolerance::max_dropped`] allows.
    TooManyDropped,
    /// Fewer inputs were used than [`Tolerance::min_files`] asks for.
    TooFewUsed,
}

impl Tolerance {
    /// `None` if the result can be trusted. An empty file counts as dropped: the counts of its run are missing.
    pub fn check(&self, totals: &Totals) -> Option<Shortfall> {
        let (files, dropped) = (totals.files, totals.files_lost());
        let used = totals.files_kept + totals.files_repaired;
        let share = |percent| u128::from(dropped) * 100 > u128::from(files) * u128::from(percent);
        if self.min_files.is_some_and(|least| used < least) {
            return Some(Shortfall::TooFewUsed);
        }
        match self.max_dropped {
            Some(DropLimit::Files(most)) => dropped > most,
            Some(DropLimit::Percent(percent)) => share(percent),
            None => return (dropped > 1 && share(50u64)).then_some(Shortfall::MostDropped),
        }
        .then_some(Shortfall::TooManyDropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_shares_and_half_is_the_default() {
        let totals = |kept, dropped| Totals {
            files: kept + dropped,
            files_kept: kept,
            files_dropped: dropped,
            ..Totals::default()
        };
        let check = |limit: &str, kept, dropped| {
            let tolerance = Tolerance {
                max_dropped: Some(limit)
                    .filter(|limit| !limit.is_empty())
                    .map(|limit| limit.parse().unwrap()),
                min_files: None,
            };
            tolerance.check(&totals(kept, dropped))
        };
        assert_eq!(check("", 1, 300), Some(Shortfall::MostDropped));
        assert_eq!(check("", 2, 2), None);
        assert_eq!(check("", 0, 1), None);
        assert_eq!(check("300", 1, 300), None);
        assert_eq!(check("1", 100, 2), Some(Shortfall::TooManyDropped));
        assert_eq!(check("0", 100, 1), Some(Shortfall::TooManyDropped));
        assert_eq!(check("5%", 95, 5), None);
        assert_eq!(check("5%", 94, 6), Some(Shortfall::TooManyDropped));
        assert_eq!(check("100%", 0, 6), None);
        let empty = Totals {
            files_empty: 300,
            ..totals(1, 0)
        };
        let empty = Totals {
            files: 301,
            ..empty
        };
        assert_eq!(
            Tolerance::default().check(&empty),
            Some(Shortfall::MostDropped)
        );
        for wrong in ["", "%", "-1", "5 %", "half"] {
            assert!(wrong.parse::<DropLimit>().is_err(), "{wrong}");
        }
        let least = Tolerance {
            max_dropped: None,
            min_files: Some(5),
        };
        assert_eq!(least.check(&totals(4, 0)), Some(Shortfall::TooFewUsed));
        assert_eq!(least.check(&totals(5, 0)), None);
    }
}
