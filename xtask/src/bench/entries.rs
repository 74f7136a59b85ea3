//! The benchmarks: what is run, and what must hold.
use super::Place;
use super::{inputs, programs, shapes};
use crate::mip::make::Real;
use anyhow::Result;

/// Commands that do the same work. [`Place::expand`] says what names may stand in them.
#[derive(Debug)]
pub struct Entry {
    pub name: &'static str,
    /// Its line in the table of the README; empty for entries that have none.
    pub row: &'static str,
    /// Whether it is run with a profile of each shape.
    pub shaped: bool,
    /// The folder of its inputs, which several entries may share.
    pub folder: &'static str,
    pub prepare: fn(&Place) -> Result<()>,
    /// The commands of other tools. Ratios are to the fastest of them.
    pub theirs: &'static [&'static str],
    /// The same with profkit. The first command is the one of the README's table.
    pub ours: &'static [&'static str],
    /// Commands that do only what cannot be left out of the work: they show how far profkit is from the limit.
    pub bare: &'static [&'static str],
    /// Shell that is run before each command and not measured.
    pub before: &'static str,
    /// Shell that must succeed for each output of ours.
    pub check: &'static str,
    /// The least ratio of their time to ours.
    pub faster: f64,
    /// The largest ratio of our peak memory to that of their first command.
    pub memory: f64,
    /// Whether its inputs take too long for `--small`.
    pub full_only: bool,
}

const BASE: Entry = Entry {
    name: "",
    row: "",
    shaped: false,
    folder: "instr",
    prepare: |_| Ok(()),
    theirs: &[],
    ours: &[],
    bare: &[],
    before: "",
    check: "",
    faster: 0.0,
    memory: f64::INFINITY,
    full_only: false,
};

/// Work on a profile of each shape.
const SHAPED: Entry = Entry {
    shaped: true,
    folder: "shapes",
    prepare: shapes::merged,
    memory: 1.0,
    ..BASE
};

const EQUAL: &str = "cmp $THEIRS $OUT";

pub const ALL: &[Entry] = &[
    Entry {
        name: "merge",
        row: "`merge` of two indexed profiles",
        theirs: &["llvm-profdata-22 merge 1.profdata 2.profdata -o $OUT"],
        ours: &[
            "$PROFKIT merge -q 1.profdata 2.profdata -o $OUT",
            "$PROFKIT llvm-profdata merge 1.profdata 2.profdata -o $OUT",
        ],
        bare: &[
            "cat 1.profdata 2.profdata > $OUT",
            "$EXAMPLES/bare_loop add 1.profdata 2.profdata $OUT",
        ],
        check: EQUAL,
        faster: 10.0,
        memory: 0.15,
        ..SHAPED
    },
    Entry {
        name: "text-to-indexed",
        row: "`merge` of a text profile",
        theirs: &["llvm-profdata-22 merge 1.proftext -o $OUT"],
        ours: &["$PROFKIT merge -q 1.proftext -o $OUT", "$PROFKIT llvm-profdata merge 1.proftext -o $OUT"],
        bare: &["cat 1.proftext > $OUT", "$EXAMPLES/bare_loop parse 1.proftext $OUT"],
        check: EQUAL,
        faster: 8.0,
        ..SHAPED
    },
    Entry {
        name: "indexed-to-text",
        row: "an indexed profile as text (`convert`)",
        theirs: &["llvm-profdata-22 merge --text 1.profdata -o $OUT"],
        ours: &[
            "$PROFKIT convert -q --to text 1.profdata -o $OUT",
            "$PROFKIT llvm-profdata merge --text 1.profdata -o $OUT",
        ],
        bare: &["cat 1.profdata > $OUT", "$EXAMPLES/bare_loop print 1.profdata $OUT"],
        check: EQUAL,
        faster: 8.0,
        ..SHAPED
    },
    Entry {
        name: "show",
        row: "`show` of an indexed profile",
        theirs: &["llvm-profdata-22 show 1.profdata -o $OUT"],
        ours: &["$PROFKIT show 1.profdata > $OUT", "$PROFKIT llvm-profdata show 1.profdata -o $OUT"],
        bare: &["cat 1.profdata > $OUT", "$EXAMPLES/bare_loop sum 1.profdata > $OUT"],
        faster: 6.0,
        memory: 0.2,
        ..SHAPED
    },
    Entry {
        name: "show-counts",
        row: "`llvm-profdata show` of all functions with their counts",
        theirs: &["llvm-profdata-22 show --all-functions --counts 1.profdata -o $OUT"],
        ours: &["$PROFKIT llvm-profdata show --all-functions --counts 1.profdata -o $OUT"],
        bare: &["cat 1.profdata > $OUT", "$EXAMPLES/bare_loop print 1.profdata $OUT"],
        check: EQUAL,
        faster: 8.0,
        ..SHAPED
    },
    Entry {
        name: "show-function",
        row: "`show` of one function",
        theirs: &["llvm-profdata-22 show --function=$FUNCTION --counts 1.profdata -o $OUT"],
        ours: &["$PROFKIT show --function $FUNCTION 1.profdata > $OUT"],
        bare: &["cat 1.profdata > $OUT"],
        faster: 30.0,
        ..SHAPED
    },
    Entry {
        name: "overlap",
        row: "`overlap`",
        theirs: &["llvm-profdata-22 overlap 1.profdata 2.profdata -o $OUT"],
        ours: &[
            "$PROFKIT overlap 1.profdata 2.profdata > $OUT",
            "$PROFKIT llvm-profdata overlap 1.profdata 2.profdata -o $OUT",
        ],
        bare: &["cat 1.profdata 2.profdata > $OUT", "$EXAMPLES/bare_loop sum 1.profdata 2.profdata > $OUT"],
        faster: 8.0,
        memory: 0.3,
        ..SHAPED
    },
    Entry {
        name: "raw",
        row: "`merge` of 100 raw profiles of one program",
        prepare: shapes::raws,
        theirs: &["llvm-profdata-22 merge -f raw.list -o $OUT"],
        ours: &[
            "$PROFKIT merge -q --input-files raw.list -o $OUT",
            "$PROFKIT llvm-profdata merge -f raw.list -o $OUT",
        ],
        bare: &["cat raw/* > $OUT", "$EXAMPLES/bare_loop add raw/* $OUT"],
        check: EQUAL,
        faster: 20.0,
        memory: 0.25,
        ..SHAPED
    },
    Entry {
        name: "small",
        prepare: inputs::small_raw,
        theirs: &["llvm-profdata-22 merge small.profraw -o $OUT"],
        ours: &[
            "$PROFKIT merge -q small.profraw -o $OUT",
            "$PROFKIT llvm-profdata merge small.profraw -o $OUT",
        ],
        check: EQUAL,
        faster: 3.0,
        memory: 1.0,
        ..BASE
    },
    Entry {
        name: "order",
        prepare: inputs::traces,
        theirs: &["llvm-profdata-22 order traces.profdata -o $OUT"],
        ours: &["$PROFKIT llvm-profdata order traces.profdata -o $OUT"],
        check: EQUAL,
        faster: 2.0,
        ..BASE
    },
    Entry {
        name: "diff",
        prepare: inputs::functions,
        theirs: &["llvm-profdata-22 show 1.profdata > $OUT; llvm-profdata-22 show 2.profdata > $OUT"],
        ours: &["$PROFKIT diff 1.profdata 2.profdata > $OUT"],
        faster: 2.0,
        ..BASE
    },
    // What a new build can use may take twice as long as LLVM's tool takes to show both profiles.
    Entry {
        name: "match",
        prepare: inputs::functions,
        theirs: &["llvm-profdata-22 show 1.profdata > $OUT; llvm-profdata-22 show 2.profdata > $OUT"],
        ours: &["$PROFKIT match 1.profdata 2.profdata > $OUT"],
        faster: 0.5,
        ..BASE
    },
    Entry {
        name: "match-binary",
        prepare: inputs::library,
        theirs: &["llvm-profdata-22 show 1.profdata > $OUT; llvm-nm-22 functions.so > $OUT"],
        ours: &["$PROFKIT match 1.profdata functions.so > $OUT"],
        faster: 0.3,
        ..BASE
    },
    Entry {
        name: "report",
        prepare: inputs::functions,
        theirs: &["$PROFKIT show --functions 1.profdata > $OUT"],
        ours: &["$PROFKIT report 1.profdata -o $OUT"],
        faster: 0.1,
        ..BASE
    },
    Entry {
        name: "sample-merge",
        row: "`merge` of 20 sample profiles",
        folder: "sample",
        prepare: inputs::samples,
        theirs: &["llvm-profdata-22 merge --sample -f few.list -o $OUT"],
        ours: &[
            "$PROFKIT merge -q --input-files few.list -o $OUT",
            "$PROFKIT llvm-profdata merge --sample -f few.list -o $OUT",
        ],
        check: EQUAL,
        faster: 4.0,
        memory: 1.0 / 3.0,
        ..BASE
    },
    // 25 times as many profiles need no more memory. LLVM's tool keeps a reader of about 12 MB for each.
    Entry {
        name: "sample-many",
        folder: "sample-many",
        prepare: inputs::many_samples,
        theirs: &["$PROFKIT merge -q --input-files some.list -o $OUT"],
        ours: &["$PROFKIT merge -q --input-files many.list -o $OUT"],
        faster: 0.03,
        memory: 1.3,
        ..BASE
    },
    Entry {
        name: "sample-text",
        row: "`merge` of a sample profile in text",
        folder: "sample",
        prepare: inputs::sample_text,
        theirs: &["llvm-profdata-22 merge --sample text.proftext -o $OUT"],
        ours: &[
            "$PROFKIT merge -q text.proftext -o $OUT",
            "$PROFKIT llvm-profdata merge --sample text.proftext -o $OUT",
        ],
        check: EQUAL,
        faster: 4.0,
        memory: 1.0,
        ..BASE
    },
    Entry {
        name: "sample-to-text",
        row: "a sample profile as text (`convert`)",
        folder: "sample",
        prepare: inputs::sample_text,
        theirs: &["llvm-profdata-22 merge --sample --text text.extbinary -o $OUT"],
        ours: &[
            "$PROFKIT convert -q --to text text.extbinary -o $OUT",
            "$PROFKIT llvm-profdata merge --sample --text text.extbinary -o $OUT",
        ],
        check: EQUAL,
        faster: 8.0,
        memory: 1.0,
        ..BASE
    },
    Entry {
        name: "sample-function",
        folder: "sample",
        prepare: inputs::sample_text,
        theirs: &["llvm-profdata-22 show --sample --function=_ZN4prof6parser9parser_40Ev text.extbinary -o $OUT"],
        ours: &["$PROFKIT llvm-profdata show --sample --function=_ZN4prof6parser9parser_40Ev text.extbinary -o $OUT"],
        check: EQUAL,
        faster: 50.0,
        memory: 1.0,
        ..BASE
    },
    Entry {
        name: "correlate-binary",
        folder: "correlate-binary",
        prepare: |place| programs::correlated(place, "binary", "--binary-file"),
        theirs: &["sh loop.sh $OUT"],
        ours: &["$PROFKIT merge -q --llvm 22 raw --binaries bin -o $OUT"],
        before: "rm -rf cache",
        check: EQUAL,
        faster: 10.0,
        ..BASE
    },
    Entry {
        name: "correlate-debug-info",
        folder: "correlate-debug-info",
        prepare: |place| programs::correlated(place, "debug-info", "--debug-info"),
        theirs: &["sh loop.sh $OUT"],
        ours: &["$PROFKIT merge -q --llvm 22 raw --binaries bin -o $OUT"],
        before: "rm -rf cache",
        check: EQUAL,
        faster: 10.0,
        ..BASE
    },
    // LLVM 22 does not add up dumps: each of its threads keeps the first that it meets. All dumps of this program have
    // the same contexts, so the sum must be as large as one dump.
    Entry {
        name: "heap",
        folder: "heap",
        prepare: programs::heap,
        theirs: &["llvm-profdata-22 merge --input-files=list --profiled-binary=program --memprof-version=3 -o $OUT"],
        ours: &["$PROFKIT merge -q --llvm 22 --input-files=list --binaries program --memprof-version=3 -o $OUT"],
        check: "test $(wc -c < $OUT) = $(wc -c < one)",
        faster: 10.0,
        memory: 0.5,
        ..BASE
    },
    Entry {
        name: "heap-one",
        folder: "heap",
        prepare: programs::heap,
        theirs: &["llvm-profdata-22 merge raw/0.memprofraw --profiled-binary=program --memprof-version=4 -o $OUT"],
        ours: &["$PROFKIT merge -q --llvm 22 raw/0.memprofraw --binaries program --memprof-version=4 -o $OUT"],
        check: EQUAL,
        faster: 1.0,
        ..BASE
    },
    Entry {
        name: "symbolize",
        folder: "symbolize",
        prepare: programs::symbolized,
        theirs: &[
            "llvm-symbolizer-22 --obj=program --functions=linkage --inlines --no-demangle --no-debuginfod < addresses > $OUT",
        ],
        ours: &["$EXAMPLES/llvm_symbolizer program < addresses > $OUT"],
        check: EQUAL,
        faster: 5.0,
        ..BASE
    },
    Entry {
        name: "perf-program",
        folder: "symbolize",
        prepare: programs::recorded,
        theirs: &[
            "llvm-profgen-22 --format=text --perfdata=program.data --binary=program -o $OUT",
            "create_llvm_prof --format=text --profile=program.data --binary=program --out=$OUT",
        ],
        ours: &["$PROFKIT sample --to=text -o $OUT --binary program program.data"],
        faster: 10.0,
        ..BASE
    },
    Entry {
        name: "perf-count",
        folder: "symbolize",
        prepare: programs::recorded,
        theirs: &["cat program.data | wc -l > $OUT"],
        ours: &["$PROFKIT sample --addresses $OUT program.data"],
        faster: 0.2,
        ..BASE
    },
    Entry {
        name: "mip-merge-calls",
        folder: "mip-calls",
        prepare: |place| inputs::mip_raws(place, profkit_testkit::mip::CALLS),
        theirs: &["cat raw/* > $OUT"],
        ours: &["$PROFKIT mip merge -q -p $OUT --binary map.mipmap raw"],
        faster: 1.0 / 3.0,
        ..BASE
    },
    Entry {
        name: "mip-merge-coverage",
        folder: "mip-coverage",
        prepare: |place| inputs::mip_raws(place, profkit_testkit::mip::COVERAGE),
        theirs: &["cat raw/* > $OUT"],
        ours: &["$PROFKIT mip merge -q -p $OUT --binary map.mipmap raw"],
        faster: 1.0 / 3.0,
        ..BASE
    },
    // Starts with nothing of the program in the page cache; the faults are what the order of functions saves.
    Entry {
        name: "cold-start",
        folder: "cold-start",
        prepare: programs::ordered,
        theirs: &["sh start.sh by-llvm > $OUT"],
        ours: &["sh start.sh by-profkit > $OUT", "sh start.sh unordered > $OUT"],
        check: EQUAL,
        ..BASE
    },
    Entry {
        name: "runtime-start",
        folder: "runtime",
        prepare: programs::runtime,
        theirs: &["mkdir $OUT; for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT/%m.profraw ./start-c; done"],
        ours: &["mkdir $OUT; for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT/%m.profraw ./start-profkit; done"],
        faster: 1.0,
        ..BASE
    },
    Entry {
        name: "runtime-start-static",
        folder: "runtime",
        prepare: programs::runtime,
        theirs: &["for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT ./static-c; done"],
        ours: &["for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT ./static-profkit; done"],
        faster: 1.0,
        ..BASE
    },
    // All processes add to one file at once, and no count may be lost.
    Entry {
        name: "runtime-pool",
        folder: "runtime",
        prepare: programs::runtime,
        theirs: &["mkdir $OUT; for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT/%m.profraw ./pool-c & done; wait"],
        ours: &["mkdir $OUT; for run in $(seq $N); do LLVM_PROFILE_FILE=$OUT/%m.profraw ./pool-profkit & done; wait"],
        check: "test $(sh total.sh $OUT/*.profraw) = $(($(sh total.sh one.profraw) * $N))",
        faster: 1.0,
        ..BASE
    },
    Entry {
        name: "runtime-values",
        folder: "runtime",
        prepare: programs::runtime,
        theirs: &["LLVM_PROFILE_FILE=$OUT; export LLVM_PROFILE_FILE; ./values-c"],
        ours: &["LLVM_PROFILE_FILE=$OUT; export LLVM_PROFILE_FILE; ./values-profkit"],
        faster: 0.95,
        ..BASE
    },
    // The bytes that the runtime adds to a program: at most half of those of the C runtime.
    Entry {
        name: "runtime-size",
        folder: "runtime",
        prepare: programs::runtime,
        theirs: &["clang-22 -fprofile-instr-generate start.o -o $OUT"],
        ours: &["clang-22 -fprofile-instr-generate start.o libprofile.a -o $OUT"],
        check: "bytes() { size $1 | awk 'NR == 2 { print $1 + $2 }'; }
            none=$(bytes start-none); test $((2 * ($(bytes $OUT) - none))) -le $(($(bytes $THEIRS) - none))",
        ..BASE
    },
    Entry {
        name: "mip-station",
        folder: "mip-station",
        prepare: |place| programs::mip_cost(place, Real::Station),
        ..MIP_COST
    },
    Entry {
        name: "mip-lua",
        folder: "mip-lua",
        prepare: |place| programs::mip_cost(place, Real::Lua),
        full_only: true,
        ..MIP_COST
    },
    Entry {
        name: "mip-zstd",
        folder: "mip-zstd",
        prepare: |place| programs::mip_cost(place, Real::Zstd),
        full_only: true,
        ..MIP_COST
    },
    Entry {
        name: "mip-re2",
        folder: "mip-re2",
        prepare: |place| programs::mip_cost(place, Real::Re2),
        full_only: true,
        ..MIP_COST
    },
];

/// A real program as it is, instrumented by MIP in three modes, and by clang.
const MIP_COST: Entry = Entry {
    theirs: &["sh plain.sh"],
    ours: &[
        "sh function.sh",
        "sh unary.sh",
        "sh calls.sh",
        "sh clang.sh",
    ],
    ..BASE
};
