//! What a recording lost: while it was made, and while it was read.

/// What is missing in a recording, as numbers. All are 0 for a recording without any loss.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Records that the kernel could not deliver, as it reported them itself (`LOST`).
    pub lost_records: u64,
    /// Samples that the kernel could not deliver (`LOST_SAMPLES`).
    pub lost_samples: u64,
    /// How often the kernel stopped an event for some time because there were too many samples (`THROTTLE`).
    pub throttled: u64,
    /// Records of hardware traces that were cut or that collided (`AUX`).
    pub cut_traces: u64,
    /// Bytes between records that are no records.
    pub skipped_bytes: u64,
    /// Offset of the first byte that is no record.
    pub first_skipped: Option<u64>,
    /// Offset of a record that is cut because the file ends before the record does.
    pub cut_at: Option<u64>,
    /// Whether the size of the data section is missing, because perf was stopped before it could write the size.
    pub unfinished: bool,
    /// The compressed records could not be decompressed to their end: the reason.
    pub compression: Option<String>,
    /// Feature sections and records of events that could not be read.
    pub damaged_features: u64,
    /// Samples whose parts do not fit into their record.
    pub damaged_samples: u64,
    /// Samples that belong to no event of the recording.
    pub unknown_event: u64,
    /// Records that are too short for their kind.
    pub damaged_records: u64,
    /// Records about processes beyond the limits of the module [`limits`](crate::limits).
    pub mappings_over_limit: u64,
}

impl Losses {
    /// Adds the losses that another thread found.
    pub(crate) fn add(&mut self, other: &Losses) {
        self.damaged_samples += other.damaged_samples;
        self.unknown_event += other.unknown_event;
    }
}
