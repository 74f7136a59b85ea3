//! How much of a heap profile programs still have.
use super::figures::ContextSum;
use super::profile::HeapProfile;
use super::program::ProgramFrames;
use profkit_data::memprof::{Allocations, Field, Frame, FrameId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// What programs have of an allocation context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextState {
    /// All frames.
    Kept,
    /// The frame that allocates, but not all of its callers: a compiler finds the allocation, but cannot tell this
    /// context from others.
    CallersGone,
    /// Not the frame that allocates.
    Gone,
}

/// Why programs do not have a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrameLoss {
    /// No program has code of the function.
    Function,
    /// Programs have the function, but no code at this line and column of it.
    Line,
}

/// A frame that no program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostFrame {
    /// The frame in the profile.
    pub frame: FrameId,
    /// Why it is lost.
    pub loss: FrameLoss,
    /// The contexts with this frame.
    pub contexts: ContextSum,
}

/// A context that programs do not have as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostContext {
    /// The context.
    pub context: Allocations,
    /// What programs have of it.
    pub state: ContextState,
    /// The number of its frames that are lost.
    pub lost_frames: u64,
}

/// The comparison of a heap profile with programs.
#[derive(Clone, Debug, Default)]
pub struct HeapMatch {
    /// All contexts.
    pub total: ContextSum,
    /// The contexts of which programs have all frames.
    pub kept: ContextSum,
    /// The contexts whose allocation is there, but not all callers.
    pub callers_gone: ContextSum,
    /// The contexts whose allocation is gone.
    pub gone: ContextSum,
    /// The number of frames of contexts, each once.
    pub frames: u64,
    /// The frames that no program has, those with the most bytes first.
    pub lost_frames: Vec<LostFrame>,
    /// The contexts that programs do not have as a whole, those with the most bytes first.
    pub lost: Vec<LostContext>,
}

impl HeapMatch {
    /// Compares the contexts of a profile with the frames that programs have.
    pub fn new(heap: &HeapProfile, programs: &ProgramFrames) -> Self {
        let profile = &heap.profile;
        let contexts = profile.allocations_by_stack();
        let mut result = HeapMatch {
            total: ContextSum::of(&contexts),
            ..HeapMatch::default()
        };
        let mut frames: FxHashSet<FrameId> = FxHashSet::default();
        let mut lost: FxHashMap<FrameId, ContextSum> = FxHashMap::default();
        for context in contexts {
            let one = ContextSum::of([&context]);
            let mut missing: FxHashSet<FrameId> = FxHashSet::default();
            let mut state = ContextState::Kept;
            for (depth, &id) in profile.frame_ids(context.stack).iter().enumerate() {
                frames.insert(id);
                if programs.has(&profile.frames()[id]) {
                    continue;
                }
                if missing.insert(id) {
                    lost.entry(id).or_default().add(one);
                }
                state = state.max(match depth {
                    0 => ContextState::Gone,
                    _ => ContextState::CallersGone,
                });
            }
            let sum = match state {
                ContextState::Kept => &mut result.kept,
                ContextState::CallersGone => &mut result.callers_gone,
                ContextState::Gone => &mut result.gone,
            };
            sum.add(one);
            if state != ContextState::Kept {
                result.lost.push(LostContext {
                    context,
                    state,
                    lost_frames: missing.len() as u64,
                });
            }
        }
        result.frames = frames.len() as u64;
        let loss = |frame: &Frame| match programs.name(frame.function) {
            Some(_) => FrameLoss::Line,
            None => FrameLoss::Function,
        };
        let lost = lost.into_iter().map(|(frame, contexts)| LostFrame {
            frame,
            loss: loss(&profile.frames()[frame]),
            contexts,
        });
        result.lost_frames = lost.collect();
        let order = |it: &LostFrame| (Reverse(it.contexts.bytes), it.frame);
        result.lost_frames.sort_unstable_by_key(order);
        let bytes = |it: &LostContext| Reverse(it.context.block.get(Field::TotalSize));
        result.lost.sort_by_key(bytes);
        result
    }

    /// The share of all bytes that contexts have of which programs have all frames, in percent; `None` if there are no
    /// bytes.
    pub fn matched_percent(&self) -> Option<f64> {
        let share = profkit_data::share(self.kept.bytes, self.total.bytes);
        (self.total.bytes > 0).then_some(share * 100.0)
    }
}
