//! The selection of the samples that are counted.
use crate::sample::Sample;
use crate::survey::Recording;

/// The conditions for the samples that are counted. An empty list, and a bound that is `None`, allows all samples.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Selection {
    /// The names of the events whose samples are counted.
    pub events: Vec<String>,
    /// The ids of the processes whose samples are counted.
    pub pids: Vec<u32>,
    /// The names of the processes whose samples are counted. The kernel cuts names to 15 bytes, so these names must be
    /// cut too.
    pub names: Vec<Vec<u8>>,
    /// The time of the first samples that are counted, in nanoseconds of the recording's clock.
    pub from: Option<u64>,
    /// The time from which samples are no longer counted, in nanoseconds of the recording's clock.
    pub until: Option<u64>,
}

/// A selection that was prepared for one recording.
pub(super) struct Selected<'s> {
    selection: &'s Selection,
    /// For each event of the recording, whether it is selected.
    events: Vec<bool>,
}

impl Selection {
    /// Whether all samples are selected.
    pub fn is_all(&self) -> bool {
        self.events.is_empty()
            && self.pids.is_empty()
            && self.names.is_empty()
            && self.from.is_none()
            && self.until.is_none()
    }

    pub(super) fn of(&self, recording: &Recording<'_>) -> Selected<'_> {
        let all = self.events.is_empty();
        Selected {
            selection: self,
            events: recording
                .events()
                .iter()
                .map(|event| all || self.events.contains(&event.name))
                .collect(),
        }
    }
}

impl Selected<'_> {
    pub(super) fn has(&self, recording: &Recording<'_>, sample: &Sample<'_>) -> bool {
        let selection = self.selection;
        let event = self.events.get(sample.event).copied().unwrap_or(false);
        let pid = selection.pids.is_empty() || selection.pids.contains(&sample.pid);
        if !event || !pid {
            return false;
        }
        let bounds = (selection.from, selection.until);
        if bounds != (None, None) {
            let inside = sample.time.is_some_and(|time| {
                bounds.0.is_none_or(|from| time >= from)
                    && bounds.1.is_none_or(|until| time < until)
            });
            if !inside {
                return false;
            }
        }
        selection.names.is_empty() || {
            let name = recording
                .processes()
                .name(sample.pid, Some(sample.when()))
                .unwrap_or_default();
            selection.names.iter().any(|wanted| wanted == name)
        }
    }
}

/// Reads two times in seconds with a comma between them. Returns them in nanoseconds. An empty time means no bound.
///
/// # Errors
/// A message for the user.
pub fn parse_times(text: &str) -> Result<(Option<u64>, Option<u64>), String> {
    let time = |text: &str| {
        if text.is_empty() {
            return Ok(None);
        }
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let whole: Option<u64> = whole.parse().ok();
        let part: Option<u64> = format!("{part:0<9}").parse().ok();
        let nanoseconds = whole
            .filter(|_| text.len() <= 20 && digits(&text.replace('.', "")))
            .and_then(|whole| whole.checked_mul(1_000_000_000)?.checked_add(part?));
        nanoseconds
            .map(Some)
            .ok_or_else(|| format!("`{text}` is no time in seconds"))
    };
    let (from, until) = text
        .split_once(',')
        .ok_or("two times with a comma between them are expected, such as 12.5,20")?;
    Ok((time(from)?, time(until)?))
}

#[cfg(test)]
mod tests {
    use super::parse_times;

    #[test]
    fn times_are_in_seconds() {
        let of = |text| parse_times(text).ok();
        assert_eq!(of("1,2"), Some((Some(1_000_000_000), Some(2_000_000_000))));
        assert_eq!(of("0.25,"), Some((Some(250_000_000), None)));
        assert_eq!(of(",12.000000001"), Some((None, Some(12_000_000_001))));
        for bad in ["", "1", "a,1", "1.,+2", "-1,2", "1,99999999999"] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}
