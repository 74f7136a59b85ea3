//! Profiles that were written by hand, so that together they have every feature and every error of the text formats.

pub const INSTR: &[(&str, &str)] = &[
    (
        "fe",
        "foo\n10\n2\n1\n2\n\nbar\n0x20\n3\n7\n0\n9\n\nzero\n1\n1\n0\n\n",
    ),
    ("marked", ":fe\nfoo\n10\n2\n3\n4\n\n"),
    (
        "ir",
        ":ir\n:entry_first\nfoo\n10\n2\n1\n2\n3\n0\n2\n3\nbar:10\n** External Symbol **:3\nbaz:0\n0\n1\n1\n2\n8:5\n1024:1\n2\n1\n1\nvt:4\n\nbar\n3\n1\n0\n\n",
    ),
    ("loops", ":ir\n:instrument_loop_entries\nmain\n5\n1\n6\n\n"),
    (
        "cs",
        ":csir\nfoo\n1152921504606846986\n2\n5\n6\n\nfoo\n10\n2\n7\n8\n\n",
    ),
    (
        "pseudo",
        ":ir\nhot\n1\n2\n18446744073709551615\n0\n\nwarm\n2\n2\n18446744073709551614\n5\n\nreal\n3\n1\n9\n\n",
    ),
    (
        "coverage",
        ":ir\n:single_byte_coverage\na\n1\n2\n1\n0\n\nb\n2\n1\n0\n\n",
    ),
    ("bitmap", "foo\n10\n2\n1\n2\n$2\n0x1\n0xff\n\n"),
    ("bitmap3", "foo\n10\n2\n1\n2\n$3\n0x1\n0x2\n0x4\n\n"),
    (
        "traces",
        ":ir\n:temporal_prof_traces\n2\n5\n1\na,b,c,\n3\nb,a\na\n1\n1\n1\n\nb\n2\n1\n1\n\nc\n3\n1\n1\n\n",
    ),
    (
        "hashes",
        "foo\n10\n2\n1\n2\n\nfoo\n11\n1\n5\n\nfoo\n14\n1\n6\n\nfoo\n18\n1\n7\n\n",
    ),
    (
        "counters",
        "foo\n10\n3\n1\n2\n3\n\nbar\n0x20\n3\n1\n1\n1\n\n",
    ),
    ("sites", ":ir\nfoo\n10\n2\n1\n2\n1\n1\n2\n1\n8:5\n0\n\n"),
    (
        "large",
        "foo\n10\n2\n18446744073709551612\n2\n\nbar\n32\n3\n9223372036854775808\n9223372036854775807\n9223372036854775807\n\n",
    ),
    ("repeated", ":ir\nfoo\n10\n1\n1\n1\n1\n1\n2\n8:5\n8:6\n\n"),
    ("crlf", "foo\r\n10\r\n1\r\n1\r\n\r\n"),
    (
        "comments",
        "# a comment\n\n:ir\n# more\nfoo\n# hash\n10\n\n1\n# count\n1\n",
    ),
    ("bad-directive", ":nonsense\nfoo\n10\n1\n1\n"),
    ("bad-hash", "foo\nx\n1\n1\n"),
    ("bad-number", "foo\n1\nx\n1\n"),
    ("no-counters", "foo\n1\n0\n"),
    ("bad-count", "ok\n1\n1\n1\n\nfoo\n1\n2\n1\nx\n"),
    ("bad-kinds", ":ir\nfoo\n1\n1\n1\n9\n"),
    ("bad-kind", ":ir\nfoo\n1\n1\n1\n1\n7\n1\n0\n"),
    ("cut1", "foo\n"),
    ("cut2", "ok\n1\n1\n1\n\nfoo\n10\n"),
    ("cut3", "foo\n10\n2\n1\n"),
    ("cut4", ":ir\nfoo\n1\n1\n1\n1\n0\n1\n2\nbar:1\n"),
    ("empty", ""),
    ("blank", "\n\n"),
    ("header", ":ir\n"),
    ("junk", "\u{1}junk that is no profile"),
    ("short", "\u{1}"),
];

pub const SAMPLE: &[(&str, &str)] = &[
    (
        "lines",
        "main:184019:0\n 4: 534\n 4.2: 534\n 9: 2064 _Z3bari:1471 _Z3fooi:631\n 10: inline1:1000\n  1: 1000\n 10: inline2:2000\n  1: 2000\n_Z3bari:20301:1437\n 1: 1437\n",
    ),
    (
        "other",
        "# by hand\n_Z3bari:10:3\n 1: 7\n 2: 3\nzero:0:0\nmain:5:1\n 4: 5 _Z3bari:5\n 10: inline1:7\n  1: 7\n   2: deep:3\n    1: 3\n",
    ),
    (
        "contexts",
        "[main:3 @ _Z5funcAi:1 @ _Z8funcLeafi]:500853:20\n 1: 15 _Z3foo:4\n 3: 20\n[main]:300:1\n 1: 3\n 3: 297 _Z5funcAi:100\n[main:3 @ _Z5funcAi]:90:2\n 1: 90 _Z8funcLeafi:50\n[_Z8funcLeafi]:10:1\n 1: 10\n",
    ),
    (
        "probes",
        "foo:3200:13\n 1: 13\n 4: 3180\n 5: bar:10\n  1: 10\n  !CFGChecksum: 99\n !CFGChecksum: 563022570642068\nbar:80:2\n 1: 80\n !CFGChecksum: 99\n",
    ),
    (
        "rebuilt",
        "foo:7:1\n 1: 7\n !CFGChecksum: 5\nbar:6:1\n 1: 6\n !CFGChecksum: 99\n",
    ),
    (
        "attributes",
        "[a:1 @ b]:9:1\n 1: 9\n !CFGChecksum: 7\n !Attributes: 2\n[b]:90000:1\n 1: 90000\n !CFGChecksum: 7\n",
    ),
    (
        "vtables",
        "main:30:1\n 1: 20 a:20\n 1: vtables _ZTV1B:20 _ZTV1A:100 \n 3: f:10\n  1: 10\n 3: vtables _ZTV1C:5 \n",
    ),
    (
        "huge",
        "main:18446744073709551615:1\n 1: 18446744073709551615\n",
    ),
    ("twice", "main:9:1\n 1: 18446744073709551615\n 1: 2\n"),
    ("badbody", "main:10:1\n 1: 2\n x: 4\nfoo:1:1\n"),
    ("badhead", "main:10:1\n 1: 2\nfoo:1\n"),
    ("badmeta", "main:10:1\n 1: 2\n !CFGChecksum: 5\n 2: 4\n"),
    ("spaces", "main:10:1\n 1:  2\n"),
    ("bad", "bad\n"),
    ("empty", ""),
    (
        "suffixes",
        "foo.__uniq.123:9:1\n 1: 9\nfoo.llvm.55:8:1\n 1: 8\n",
    ),
    ("read-number", "534\n 1: 5\n 7\n 5:x6\n"),
    ("read-pair", "5:7\n 1: 5\n5:8:9\n 6: 6\n"),
    ("read-nameless", ":7\n 1: 5\n 7: :6\n  3: 6\n"),
    ("read-zero", "foo:10:1\n 1: 5\nbar:1\0:1\n"),
    ("read-cut", "foo:10:1\n 1: 5\n\0bar:1:1\n"),
    ("read-firstzero", "_Z3bar\0:20301:1437\n 1: 5\n"),
    (
        "read-blanks",
        "foo:10:1\n 10:   3.1: inline3:700\n   2: 650 malloc:650\n",
    ),
    (
        "read-context",
        "[a:x.1 @ b:-1.y @ c]:9:1\n 1: 9\n[a:1 @ b:7:4\n 1: 4\n",
    ),
    (
        "read-reset",
        "foo:9:1\n 1: 9\n !Attributes: 2\n !CFGChecksum: 7\n",
    ),
    (
        "read-trimmed",
        "foo:9:1\n 1: 9\n !CFGChecksum: 7\n !Attributes: 2\x0b\n",
    ),
    ("read-again", "foo:9:1\nfoo:9:1\n 1: 9\n !CFGChecksum: 7\n"),
    ("read-flat", "foo:9:1\n 1: bar:9\n  2: 9\n  !Flat\n"),
    ("no-lines", "main:0:0\n"),
    ("no-lines-but-samples", "main:5:7\n"),
    ("two-without-lines", "main:0:0\nfoo:0:0\n"),
    ("one-without-lines", "main:0:0\nfoo:0:0\n 1: 0\n"),
    ("inlined-line", "main:0:0\n 1: g:0\n  1: 0\nfoo:0:0\n"),
    ("beside-a-hot-one", "main:5:0\nfoo:10:0\n 1: 10\n"),
    (
        "fs-places",
        "foo:1000:10\n 1: 10\n 2.3: 20 bar:15 baz:5\n 2.259: 40 bar:40\n 2.20000: 1\n 2.4000000: 2\n \
     2.3000000003: 3\n 3.1: bar:100\n  1: 50\n  1.257: 50\n 3.257: bar:200\n  1: 200\n  4.300: 7\nmain:5:1\n 1.511: 5\n",
    ),
    (
        "fs-contexts",
        "[main:3.259 @ foo]:100:10\n 1: 10\n 2.3: 5\n 2.259: 6\n[main:3.3 @ foo]:100:10\n 2.259: 6\n",
    ),
    (
        "fs-vtables",
        "foo:100:10\n 1: 10\n 2.3: 5\n 2.259: 6\n 2.3: vtables _ZTVa:5 _ZTVb:7\n 2.259: vtables _ZTVa:9 _ZTVc:1\n",
    ),
];
