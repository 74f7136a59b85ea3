//! The losses of a recording, both while it was made and while it was read.

/// The numbers of records, samples and bytes that are missing in a recording. All numbers are 0 if nothing was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// The number of records that the kernel could not deliver. The kernel reported this number itself (`LOST`).
    pub lost_records: u64,
    /// The number of samples that the kernel could not deliver (`LOST_SAMPLES`).
    pub lost_samples: u64,
    /// The number of times that the kernel stopped an event for a while because there were too many samples
    /// (`THROTTLE`).
    pub throttled: u64,
    /// The number of records of hardware traces that were cut or that collided (`AUX`).
    pub cut_traces: u64,
    /// The number of pieces of hardware traces, for example of Intel PT or Arm ETM. Traces are not decoded;
    /// `perf inject` makes samples of them.
    pub traces: u64,
    /// The number of bytes between records that do not belong to any record.
    pub skipped_bytes: u64,
    /// The offset of the first byte that does not belong to any record; `None` if there is no such byte.
    pub first_skipped: Option<u64>,
    /// The offset of the last record if the file ends before the end of this record; otherwise `None`.
    pub cut_at: Option<u64>,
    /// Whether the size of the data section is missing, because perf was stopped before it could write the size.
    pub unfinished: bool,
    /// The reason why the compressed records could not be decompressed to their end; `None` if they could.
    pub compression: Option<String>,
    /// The number of feature sections and records of events that could not be read.
    pub damaged_features: u64,
    /// The number of samples whose parts do not fit into their record.
    pub damaged_samples: u64,
    /// The number of samples that belong to no event of the recording.
    pub unknown_event: u64,
    /// The number of records that are too short for their kind.
    pub damaged_records: u64,
    /// The number of records about processes that were ignored because of a limit of the module
    /// `profkit_perf::limits`.
    pub mappings_over_limit: u64,
}

impl Losses {
    /// Adds the losses that another thread found.
    pub(crate) fn add(&mut self, other: &Losses) {
        self.damaged_samples += other.damaged_samples;
        self.unknown_event += other.unknown_event;
    }

    /// Adds the losses of another recording.
    pub(crate) fn add_all(&mut self, other: &Losses) {
        self.add(other);
        let pairs = [
            (&mut self.lost_records, other.lost_records),
            (&mut self.lost_samples, other.lost_samples),
            (&mut self.throttled, other.throttled),
            (&mut self.cut_traces, other.cut_traces),
            (&mut self.traces, other.traces),
            (&mut self.skipped_bytes, other.skipped_bytes),
            (&mut self.damaged_features, other.damaged_features),
            (&mut self.damaged_records, other.damaged_records),
            (&mut self.mappings_over_limit, other.mappings_over_limit),
        ];
        for (ours, theirs) in pairs {
            *ours = ours.saturating_add(theirs);
        }
        self.first_skipped = self.first_skipped.or(other.first_skipped);
        self.cut_at = self.cut_at.or(other.cut_at);
        self.unfinished |= other.unfinished;
        if self.compression.is_none() {
            self.compression.clone_from(&other.compression);
        }
    }
}
