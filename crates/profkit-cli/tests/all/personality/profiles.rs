//! Profiles to compare the tools on: the fixtures of LLVM 19 and 22, texts of our own, and damaged ones.
use super::harness::Pair;
use profkit_testkit::{fixture, fixtures};

/// Text profiles that together contain every feature and every error of the format.
pub const TEXTS: &[(&str, &str)] = &[
    (
        "fe.proftext",
        "foo\n10\n2\n1\n2\n\nbar\n0x20\n3\n7\n0\n9\n\nzero\n1\n1\n0\n\n",
    ),
    ("marked.proftext", ":fe\nfoo\n10\n2\n3\n4\n\n"),
    (
        "ir.proftext",
        ":ir\n:entry_first\nfoo\n10\n2\n1\n2\n3\n0\n2\n3\nbar:10\n** External Symbol **:3\nbaz:0\n0\n1\n1\n2\n8:5\n1024:1\n2\n1\n1\nvt:4\n\nbar\n3\n1\n0\n\n",
    ),
    (
        "loops.proftext",
        ":ir\n:instrument_loop_entries\nmain\n5\n1\n6\n\n",
    ),
    (
        "cs.proftext",
        ":csir\nfoo\n1152921504606846986\n2\n5\n6\n\nfoo\n10\n2\n7\n8\n\n",
    ),
    (
        "pseudo.proftext",
        ":ir\nhot\n1\n2\n18446744073709551615\n0\n\nwarm\n2\n2\n18446744073709551614\n5\n\nreal\n3\n1\n9\n\n",
    ),
    (
        "coverage.proftext",
        ":ir\n:single_byte_coverage\na\n1\n2\n1\n0\n\nb\n2\n1\n0\n\n",
    ),
    ("bitmap.proftext", "foo\n10\n2\n1\n2\n$2\n0x1\n0xff\n\n"),
    (
        "bitmap3.proftext",
        "foo\n10\n2\n1\n2\n$3\n0x1\n0x2\n0x4\n\n",
    ),
    (
        "traces.proftext",
        ":ir\n:temporal_prof_traces\n2\n5\n1\na,b,c,\n3\nb,a\na\n1\n1\n1\n\nb\n2\n1\n1\n\nc\n3\n1\n1\n\n",
    ),
    (
        "hashes.proftext",
        "foo\n10\n2\n1\n2\n\nfoo\n11\n1\n5\n\nfoo\n14\n1\n6\n\nfoo\n18\n1\n7\n\n",
    ),
    (
        "counters.proftext",
        "foo\n10\n3\n1\n2\n3\n\nbar\n0x20\n3\n1\n1\n1\n\n",
    ),
    (
        "sites.proftext",
        ":ir\nfoo\n10\n2\n1\n2\n1\n1\n2\n1\n8:5\n0\n\n",
    ),
    (
        "large.proftext",
        "foo\n10\n2\n18446744073709551612\n2\n\nbar\n32\n3\n9223372036854775808\n9223372036854775807\n9223372036854775807\n\n",
    ),
    (
        "repeated.proftext",
        ":ir\nfoo\n10\n1\n1\n1\n1\n1\n2\n8:5\n8:6\n\n",
    ),
    ("crlf.proftext", "foo\r\n10\r\n1\r\n1\r\n\r\n"),
    (
        "comments.proftext",
        "# a comment\n\n:ir\n# more\nfoo\n# hash\n10\n\n1\n# count\n1\n",
    ),
    ("bad-directive.proftext", ":nonsense\nfoo\n10\n1\n1\n"),
    ("bad-hash.proftext", "foo\nx\n1\n1\n"),
    ("bad-number.proftext", "foo\n1\nx\n1\n"),
    ("no-counters.proftext", "foo\n1\n0\n"),
    ("bad-count.proftext", "ok\n1\n1\n1\n\nfoo\n1\n2\n1\nx\n"),
    ("bad-kinds.proftext", ":ir\nfoo\n1\n1\n1\n9\n"),
    ("bad-kind.proftext", ":ir\nfoo\n1\n1\n1\n1\n7\n1\n0\n"),
    ("cut1.proftext", "foo\n"),
    ("cut2.proftext", "ok\n1\n1\n1\n\nfoo\n10\n"),
    ("cut3.proftext", "foo\n10\n2\n1\n"),
    ("cut4.proftext", ":ir\nfoo\n1\n1\n1\n1\n0\n1\n2\nbar:1\n"),
    ("empty.proftext", ""),
    ("blank.proftext", "\n\n"),
    ("header.proftext", ":ir\n"),
    ("junk", "\u{1}junk that is no profile"),
    ("short", "\u{1}"),
];

/// Returns real profiles, as paths below the fixtures. Profiles with a MemProf section are left out: in a merge, LLVM's
/// tool drops the section and profkit keeps it.
pub fn real(folder: &str, needle: &str) -> Vec<String> {
    fixtures()
        .iter()
        .filter_map(|path| path.to_str())
        .filter(|path| {
            path.starts_with(folder) && path.contains(needle) && !path.contains("memprof")
        })
        .map(str::to_owned)
        .collect()
}

/// Puts a fixture into the folder that the tools run in.
pub fn add_fixture(pair: &mut Pair, path: &str) {
    pair.add(path, fixture(path));
}
