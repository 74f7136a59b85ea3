//! Files of the Firefox Profiler (<https://profiler.firefox.com>): its processed profile format.
use super::Stacks;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp,
    SamplingInterval, Timestamp, WeightType,
};
use serde_json::Value;

impl Stacks {
    /// The stacks as a profile of the Firefox Profiler. The profile has a thread for each kind of number that the
    /// stacks have (such as calls or bytes), and in each thread one sample for each stack. The weight of a sample is
    /// that number. The time of a sample is only its position in the list. The viewer rounds numbers above 2^53.
    ///
    /// # Errors
    /// If the profile cannot be written as JSON, which would be a fault of profkit.
    pub fn firefox(&self) -> serde_json::Result<Value> {
        let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
        let product = format!("profkit, {}", self.file);
        let mut profile = Profile::new(&product, start, SamplingInterval::from_millis(1));
        // All names are in the file: there is nothing to look up on a symbol server.
        profile.set_symbolicated(true);
        let origin = Timestamp::from_millis_since_reference(0.0);
        let process = profile.add_process(&self.file, 1, origin);
        let mut weights = Vec::new();
        for (at, unit) in self.units.iter().enumerate() {
            let tid = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let thread = profile.add_thread(process, tid, origin, at == 0);
            profile.set_thread_name(thread, &unit.what);
            let is_bytes = unit.unit == "bytes";
            profile.set_thread_samples_weight_type(
                thread,
                if is_bytes {
                    WeightType::Bytes
                } else {
                    WeightType::Samples
                },
            );
            let mut of_thread: Vec<Value> = Vec::new();
            for (stack, numbers) in &self.stacks {
                let weight = numbers.get(at).copied().unwrap_or(0);
                if weight == 0 {
                    continue;
                }
                let frames: Vec<FrameInfo> = stack
                    .iter()
                    .map(|&frame| FrameInfo {
                        frame: Frame::Label(
                            profile.intern_string(&self.frames[frame as usize].name),
                        ),
                        category_pair: CategoryHandle::OTHER.into(),
                        flags: FrameFlags::empty(),
                    })
                    .collect();
                let stack = profile.intern_stack_frames(thread, frames.into_iter());
                let time = Timestamp::from_millis_since_reference(of_thread.len() as f64);
                profile.add_sample(thread, time, stack, CpuDelta::ZERO, 1);
                of_thread.push(weight.into());
            }
            weights.push(Value::Array(of_thread));
            if at == self.first {
                profile.add_initial_visible_thread(thread);
                profile.add_initial_selected_thread(thread);
            }
        }
        let mut value = serde_json::to_value(&profile)?;
        // The crate that builds the profile has weights of 32 bits, but the format allows any JSON number. So the
        // weights are replaced in the JSON.
        let threads = value["threads"].as_array_mut();
        for (thread, weights) in threads.into_iter().flatten().zip(weights) {
            thread["samples"]["weight"] = weights;
        }
        Ok(value)
    }
}
