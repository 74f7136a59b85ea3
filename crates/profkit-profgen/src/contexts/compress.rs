//! Shortens contexts: removes recursion, and limits the depth.

/// The longest repeated sequence that is removed. Perf records at most 127 frames by default. A malicious text can have
/// any number, and the time grows with its square.
const LONGEST: usize = 1024;

/// Leaves one copy of sequences of frames that are repeated at once: first of one frame, then of two, and so on up to
/// `longest`, 1,024 or half of the context.
pub fn compress<T: Clone + PartialEq>(context: &mut Vec<T>, longest: Option<usize>) {
    let longest = longest.map_or(LONGEST, |longest| longest.min(LONGEST));
    let mut size = 1;
    while size <= (context.len() / 2).min(longest) {
        let mut kept: Vec<T> = context.iter().take(size).cloned().collect();
        let mut next = size;
        while let Some(after) = context.get(next..next + size) {
            if context.get(next - size..next) == Some(after) {
                next += size;
            } else {
                kept.extend(after.first().cloned());
                next += 1;
            }
        }
        kept.extend(context.get(next..).unwrap_or_default().iter().cloned());
        *context = kept;
        size += 1;
    }
}

/// Removes the outermost frames so that at most `depth` frames are left.
pub fn cut<T>(context: &mut Vec<T>, depth: Option<usize>) {
    if let Some(depth) = depth
        && depth < context.len()
    {
        context.drain(..context.len() - depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, longest: Option<usize>) -> String {
        let mut frames: Vec<char> = text.chars().collect();
        compress(&mut frames, longest);
        frames.into_iter().collect()
    }

    #[test]
    fn repetitions_are_removed() {
        assert_eq!(of("aabb", None), "ab");
        assert_eq!(of("abab", None), "ab");
        assert_eq!(of("xababab", None), "xab");
        assert_eq!(of("abcbcd", None), "abcd");
        assert_eq!(of("abab", Some(1)), "abab");
        assert_eq!(of("aab", Some(0)), "aab");
        assert_eq!(of("", None), "");
    }

    #[test]
    fn a_chain_of_any_length_takes_little_time() {
        let mut frames: Vec<u32> = (0..20_000).collect();
        compress(&mut frames, None);
        assert_eq!(frames.len(), 20_000);
        let mut frames: Vec<u32> = (0..3000).chain(0..3000).collect();
        compress(&mut frames, None);
        assert_eq!(frames.len(), 6000, "longer sequences are not looked for");
    }

    #[test]
    fn the_innermost_frames_are_kept() {
        let mut frames = vec![1, 2, 3];
        cut(&mut frames, Some(2));
        assert_eq!(frames, [2, 3]);
        cut(&mut frames, None);
        assert_eq!(frames, [2, 3]);
        cut(&mut frames, Some(0));
        assert!(frames.is_empty());
    }
}
