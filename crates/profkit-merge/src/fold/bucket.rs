//! The days and hours by which a store keeps its parts. All times are UTC.
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the time is whose inputs become one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Every {
    /// A day.
    #[default]
    Day,
    /// An hour.
    Hour,
}

/// A day, or an hour of a day. Days come before their hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// Days since 1970-01-01.
    day: u32,
    hour: Option<u8>,
}

impl Bucket {
    /// The bucket of a time. Times before 1970 are in the first one, and those after the year 9999 in the last.
    pub fn of(time: SystemTime, every: Every) -> Self {
        const LAST_DAY: u64 = 2_932_896;
        let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let hours = since.as_secs() / 3600;
        let day = u32::try_from((hours / 24).min(LAST_DAY)).unwrap_or(u32::MAX);
        let hour = u8::try_from(hours % 24).unwrap_or(0);
        Bucket {
            day,
            hour: (every == Every::Hour).then_some(hour),
        }
    }

    /// The day of an hour, if parts are kept by day.
    #[must_use]
    pub fn within(self, every: Every) -> Self {
        match every {
            Every::Day => Bucket { hour: None, ..self },
            Every::Hour => self,
        }
    }

    /// Whether nothing that is written from `now` on belongs to the bucket.
    pub fn is_closed(self, now: SystemTime) -> bool {
        let every = match self.hour {
            None => Every::Day,
            Some(_) => Every::Hour,
        };
        self < Bucket::of(now, every)
    }

    /// Reads `YYYY-MM-DD` or `YYYY-MM-DDTHH`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, hour) = match text.split_once('T') {
            Some((date, hour)) => (
                date,
                Some(hour.parse().ok().filter(|&hour: &u8| hour < 24)?),
            ),
            None => (text, None),
        };
        let mut numbers = date.splitn(3, '-').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        let (year, month, date): (u32, u32, u32) = (next()?, next()?, next()?);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
            return None;
        }
        let days = |year, month| first_day(year) + before_month(year, month);
        let bucket = Bucket {
            day: days(year, month) + date.checked_sub(1)?,
            hour,
        };
        // Whoever writes it otherwise has made a mistake: there is one name for each bucket.
        (bucket.to_string() == text).then_some(bucket)
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// The days from 1970-01-01 to the first day of a year.
fn first_day(year: u32) -> u32 {
    let before = year - 1;
    let leaps = before / 4 - before / 100 + before / 400;
    // 477 years before 1970 were leap years.
    (year - 1970) * 365 + leaps - 477
}

/// The days of a year before a month.
fn before_month(year: u32, month: u32) -> u32 {
    const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let months = usize::try_from(month).unwrap_or(1).saturating_sub(1);
    let days: u32 = LENGTHS.iter().take(months).sum();
    days + u32::from(month > 2 && is_leap(year))
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut year = 1970 + self.day / 366;
        while first_day(year + 1) <= self.day {
            year += 1;
        }
        let day = self.day - first_day(year);
        let month = (1..=12)
            .rev()
            .find(|&month| before_month(year, month) <= day);
        let month = month.unwrap_or(1);
        let date = day - before_month(year, month) + 1;
        write!(f, "{year:04}-{month:02}-{date:02}")?;
        match self.hour {
            Some(hour) => write!(f, "T{hour:02}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_names_that_date_gives_them() {
        for (seconds, name) in [
            (0, "1970-01-01T00"),
            (951_782_399, "2000-02-28T23"),
            (951_782_400, "2000-02-29T00"),
            (1_735_689_599, "2024-12-31T23"),
            (1_795_903_200, "2026-11-28T22"),
            (4_107_542_400, "2100-03-01T00"),
            (253_402_300_799, "9999-12-31T23"),
            (u64::MAX >> 1, "9999-12-31T"),
        ] {
            let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            let Some(time) = time else { continue };
            let hour = Bucket::of(time, Every::Hour);
            assert!(hour.to_string().starts_with(name), "{hour} {name}");
            assert_eq!(Bucket::parse(&hour.to_string()), Some(hour));
            let day = Bucket::of(time, Every::Day);
            assert_eq!(hour.to_string().split('T').next(), Some(&*day.to_string()));
            assert_eq!(
                (hour.within(Every::Day), hour.within(Every::Hour)),
                (day, hour)
            );
            assert!(!day.is_closed(time) && !hour.is_closed(time));
            let later = UNIX_EPOCH + Duration::from_secs(seconds.min(1 << 37) + 3600);
            assert!(hour.is_closed(later) || seconds > 1 << 37);
        }
        for day in 0..60_000 {
            let bucket = Bucket { day, hour: None };
            assert_eq!(Bucket::parse(&bucket.to_string()), Some(bucket));
        }
        for wrong in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-1-1",
            "1969-12-31",
            "2026-01-01T24",
            "2026-01-01T1",
            "99999-01-01",
            "2026-01-00",
            "../../..-x",
        ] {
            assert_eq!(Bucket::parse(wrong), None, "{wrong}");
        }
    }
}
