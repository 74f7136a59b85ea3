//! Dropping functions until a profile fits a size (`DefaultFunctionPruningStrategy` in `SampleProfWriter.cpp`).
use profkit_data::sample::SampleProfile;
use rustc_hash::FxHashSet;

/// Drops the functions with the fewest samples from a profile that takes `size` bytes and may take `limit`: the share
/// that is kept is the square of the ratio, at least one function goes. The caller writes and prunes until it fits.
/// Returns how many are left.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "LLVM calculates in floating point, and the same functions are to be dropped"
)]
pub fn prune_to(profile: &mut SampleProfile, size: u64, limit: u64) -> usize {
    let count = profile.functions().len();
    let ratio = limit as f64 / size as f64;
    let kept = (count as f64 * ratio * ratio).round() as usize;
    let removed = count.saturating_sub(kept).max(1);
    let order = profile.llvm_order(&profile.names.ranks());
    let start = order.len().saturating_sub(removed);
    let dropped: FxHashSet<u32> = order.into_iter().skip(start).collect();
    let mut index = 0;
    profile.retain(|_| {
        let keep = !dropped.contains(&index);
        index += 1;
        keep
    });
    profile.functions().len()
}
