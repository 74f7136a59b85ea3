//! Decides how many cases of an exhaustive test are run. By default a test runs a sample of its cases, which shows the
//! usual mistakes in seconds. `cargo xtask slow`, which CI runs, sets [`SLOW_VARIABLE`]; tests then run all cases.

/// The environment variable that is set to 1 to make tests run all their cases.
pub const SLOW_VARIABLE: &str = "PROFKIT_SLOW";

/// Whether tests run all their cases.
pub fn is_slow() -> bool {
    std::env::var_os(SLOW_VARIABLE).is_some_and(|value| value == "1")
}

/// Returns `whole` if tests run all their cases, else `short`. The values may be numbers of cases, strides, or lists of
/// releases.
pub fn short_or_whole<T>(short: T, whole: T) -> T {
    if is_slow() { whole } else { short }
}

/// Returns all items if tests run all their cases. Otherwise returns the first, the last, and every n-th item between
/// them.
pub fn some_or_all<T>(items: impl IntoIterator<Item = T>, every: usize) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    if !is_slow() {
        let last = items.len().saturating_sub(1);
        let mut index = 0;
        items.retain(|_| {
            let kept = index % every == 0 || index == last;
            index += 1;
            kept
        });
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_both_ends() {
        let expected: Vec<u32> = short_or_whole(vec![0, 4, 8, 9], (0..10).collect());
        assert_eq!(some_or_all(0..10, 4), expected);
        assert_eq!(some_or_all(0..0, 4), [0; 0]);
    }
}
