//! Tests the syntax of the options of LLVM's tool, and the tool's messages about mistakes.
use super::harness::{Pair, compare_all};
use profkit_testkit::{Llvm, require_or_skip};

const PROFILE: &str = "foo\n10\n2\n1\n2\n\n";

fn pair(llvm: &Llvm) -> Pair {
    Pair::new(llvm)
        .file("a.proftext", PROFILE)
        .file("folder/b.proftext", PROFILE)
        .file("same", "@same")
        .file("outer", "merge --dump-input-file-list @inner")
        .file("inner", "a.proftext 'folder/b.proftext' \"\" fold\\er")
        .file("crlf", "merge\r\n-dump-input-file-list\r\n\ta.proftext")
        .file(
            "mark",
            b"\xef\xbb\xbfmerge -dump-input-file-list a.proftext",
        )
        .file("utf16", b"\xff\xfem\0e\0r\0g\0e\0")
        .file("list", "# comment\n\na.proftext\n 7,a.proftext \t\n")
        .file("badlist", "x,a.proftext\n")
}

#[test]
fn mistakes_are_named_in_llvms_words() {
    let llvm = require_or_skip!(22);
    let lines = "
        merge
        merg
        mergee
        erge
        shw
        xx yy
        ''
        '' merge
        -- merge
        --
        -
        - merge
        --color
        --color=0
        --color merge
        @nofile
        @same
        merge @same
        merge @folder
        @utf16
        merge @nofile
        merge -o
        merge --output
        merge -o=
        merge -j
        merge -j=
        merge -j2 a.proftext
        merge -j x a.proftext
        merge -j -1 a.proftext
        merge -j +1 a.proftext
        merge -j 08 a.proftext
        merge -j 0x a.proftext
        merge -j 4294967296 a.proftext
        merge --num-threads=1.5 a.proftext
        merge -j2=3 a.proftext
        merge -jo a.proftext
        merge -oz a.proftext
        merge -foo=1
        merge -fo
        merge --fail=3
        merge -r
        merge -rx
        merge -xh
        merge -xx
        merge -h=1
        merge --help=1
        merge --help-list=
        merge --help-hidden=yes
        merge --version=1
        merge ---sparse
        merge -=x
        merge -=
        merge --=
        merge --==
        merge -unknown a.proftext
        merge -spars a.proftext
        merge --spars=1 a.proftext
        merge --spars= a.proftext
        merge --tex
        merge --tex=1
        merge -Sparse
        merge -SPARSE=1
        merge --sparse=foo
        merge --sparse=tRUE
        merge --sparse=2
        merge -sparse=yes
        merge --sparse=foo --sparse=bar -j=z --unknown
        merge -text=1 a.proftext
        merge -text= a.proftext
        merge -binary=true a.proftext
        merge -instr=1 a.proftext
        merge --sample=0 a.proftext
        merge --failure-mode=foo a.proftext
        merge --failure-mode= a.proftext
        merge --failure-mode a.proftext
        merge --failure-mode
        merge --failure-mode=ANY a.proftext
        merge -memprof-version=9 a.proftext
        merge -memprof-version a.proftext
        merge --convert-sample-profile-layout=x a.proftext
        merge --correlate=x a.proftext
        merge --zero-counter-threshold=x a.proftext
        merge --zero-counter-threshold a.proftext
        merge --output-size-limit=99999999999999999999 a.proftext
        merge --output-size-limit=-1 a.proftext
        merge --temporal-profile-trace-reservoir-size=x a.proftext
        merge --temporal-profile-max-trace-length= a.proftext
        merge --max-debug-info-correlation-warnings=-1 a.proftext
        merge --weighted-input
        merge --weighted-input a.proftext
        merge --weighted-input=a.proftext,1
        merge --weighted-input=0,a.proftext
        merge --weighted-input=-1,a.proftext
        merge --weighted-input=1.5,a.proftext
        merge --weighted-input=0x2,a.proftext
        merge --weighted-input=,a.proftext
        merge --weighted-input=1,
        merge --weighted-input=2
        merge --weighted-input=18446744073709551616,a.proftext
        merge --weighted-input=1,nofile
        merge -- -x
        merge -- --output=x a.proftext
        merge nofile
        merge nofile --color
        merge --color nofile
        merge --color=0 nofile
        merge --color=2 nofile
        merge nofile --color=false
        merge a.proftext nofile
        merge --failure-mode=all a.proftext nofile
        merge --failure-mode=warn nofile
        merge ''
        merge -f
        merge -f nofile
        merge --input-files=nofile
        merge -f badlist
        merge -f -
        merge -f folder
        merge -r nofile a.proftext
        merge folder/nothing
        merge /dev/null
        merge --all-functions
        merge -counts
        merge -topn=3
        merge --memory a.proftext
        show
        show ''
        show --
        show a.proftext b.proftext
        show a b c
        show nofile
        show folder
        show --counts=2 a.proftext
        show --topn=x a.proftext
        show --topn a.proftext
        show --topn
        show --topn=-1 a.proftext
        show --value-cutoff=99999999999 a.proftext
        show --detailed-summary-cutoffs=1,2,x a.proftext
        show --detailed-summary-cutoffs=1,,2 a.proftext
        show --detailed-summary-cutoffs= a.proftext
        show --detailed-summary-cutoffs a.proftext
        show --show-format=xml a.proftext
        show --show-format a.proftext
        show --instr=1 a.proftext
        show --memory=1 a.proftext
        show --text=maybe a.proftext
        show --json a.proftext
        show --show-format=json a.proftext
        show --show-format=yaml a.proftext
        show --json=0 --show-format=yaml a.proftext
        show -o a.proftext a.proftext
        show -o ./a.proftext nofile
        show -o nofolder/x a.proftext
        show -o folder a.proftext
        show -o= a.proftext
        show --sparse a.proftext
        show --merge a.proftext
        show --all a.proftext
        show -all-function=1 a.proftext
        show --shw=1
        show -j 2
        show --color nofile
        order a b
        order --num-test-traces=x a.proftext
        order --num-test a.proftext
        order --all-functions a.proftext
        overlap
        overlap a.proftext
        overlap a b c
        overlap --cs=x a b
        overlap --value-cutoff=-1 a b
        overlap --similarity-cutoff=x a b
        overlap --memory a b
        overlap --cz a.proftext
    ";
    compare_all(
        &pair(&llvm),
        lines.lines().map(str::trim).filter(|line| !line.is_empty()),
    );
}

#[test]
fn inputs_are_listed_alike() {
    let llvm = require_or_skip!(22);
    let lines = "
        merge --dump-input-file-list a.proftext
        merge -dump-input-file-list=1 folder a.proftext
        merge -dump-input-file-list=TRUE a.proftext a.proftext
        merge -dump-input-file-list --weighted-input=3,a.proftext a.proftext -weighted-input 010,folder
        merge -dump-input-file-list --weighted-input=007,a.proftext
        merge -dump-input-file-list -f list
        merge -dump-input-file-list -f nofile -f=list a.proftext
        merge -dump-input-file-list --input-files list -weighted-input=2,a.proftext folder
        merge -dump-input-file-list -
        merge -dump-input-file-list - a.proftext /dev/null -
        merge -dump-input-file-list -weighted-input=4,-
        merge -dump-input-file-list -- -
        merge -dump-input-file-list -sparse -j 2 -j=3 --num-threads=0x4 a.proftext
        merge -dump-input-file-list -o x -o=y -output z --output= a.proftext
        merge -dump-input-file-list -text -binary -gcc -extbinary -instr -sample a.proftext
        merge --dump-input-file-list --write-prev-version --keep-vtable-symbols --use-md5 --split-layout a.proftext
        merge --dump-input-file-list --print-options --print-all-options=1 a.proftext
        merge --dump-input-file-list --memprof-version=3 --memprof-full-schema --memprof-random-hotness --memprof-random-hotness-seed=3 a.proftext
        merge --dump-input-file-list --failure-mode=warn --failure-mode=any --failure-mode all a.proftext
        merge --dump-input-file-list --zero-counter-threshold=1e3 --zero-counter-threshold=.5 --zero-counter-threshold= a.proftext
        merge --dump-input-file-list --convert-sample-profile-layout=nest --prof-sym-list=nofile a.proftext
        merge --dump-input-file-list --debug-file-directory=a --debug-file-directory=b --correlate= --correlate=binary a.proftext
        merge --dump-input-file-list a.proftext ./a.proftext folder/ ./folder
        merge --dump-input-file-list=0 --dump-input-file-list nofile
        @outer
        @crlf
        @mark
        merge @inner --dump-input-file-list
        @outer @outer
    ";
    compare_all(
        &pair(&llvm),
        lines.lines().map(str::trim).filter(|line| !line.is_empty()),
    );
    let pair = pair(&llvm);
    let args = ["merge", "-dump-input-file-list", "-f", "-", "a.proftext"];
    pair.compare(&args, b"a.proftext\n5,a.proftext\r\n#x\n\n")
        .unwrap();
}

/// `profkit llvm-profdata` lists the same options as LLVM's tool, each with a description of profkit's own.
#[test]
fn help_lists_the_options_that_llvm_lists() {
    let llvm = require_or_skip!(22);
    let pair = pair(&llvm);
    for command in ["merge", "show", "order", "overlap"] {
        for help in [
            "--help",
            "--help-hidden",
            "--help-list",
            "--help-list-hidden",
            "-h",
        ] {
            let args = [command, help, "nofile"];
            let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
            assert_eq!(
                (ours.code, &ours.stderr[..]),
                (Some(0), &b""[..]),
                "{args:?}"
            );
            assert_eq!(options(&ours.stdout), options(&theirs.stdout), "{args:?}");
        }
    }
    let args = ["--help"];
    let (theirs, ours) = (pair.llvm(&args, b""), pair.profkit(&args, b""));
    assert_eq!(ours.code, theirs.code);
    for command in ["  merge ", "  order ", "  overlap ", "  show "] {
        assert!(
            String::from_utf8_lossy(&ours.stdout).contains(command),
            "{command}"
        );
    }
}

/// Returns the options in a help text, sorted. An option is the text before ` - `, with its value.
fn options(help: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(help).into_owned();
    let mut options: Vec<String> = text
        .lines()
        .filter_map(|line| {
            line.split_once(" - ")
                .map(|(left, _)| left.trim().to_owned())
        })
        // LLVM lists only one of `--help-list` and `--help-list-hidden`, without a rule. So these are left out.
        .filter(|option| option.starts_with('-') && !option.starts_with("--help-list"))
        .collect();
    options.sort();
    options
}

#[test]
fn the_version_is_what_scripts_look_for() {
    let llvm = require_or_skip!(22);
    let pair = pair(&llvm);
    for args in [
        &["--version"][..],
        &["-version"],
        &["merge", "-version", "nofile"],
        &["show", "--version"],
    ] {
        let (theirs, ours) = (pair.llvm(args, b""), pair.profkit(args, b""));
        assert_eq!(
            (ours.code, &ours.stderr[..]),
            (theirs.code, &b""[..]),
            "{args:?}"
        );
        let version = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            let (_, after) = text.split_once("LLVM version ").expect("LLVM version");
            after.split(char::is_whitespace).next().map(str::to_owned)
        };
        assert_eq!(version(&ours.stdout), version(&theirs.stdout), "{args:?}");
        assert_eq!(version(&ours.stdout).as_deref(), Some("22.1.8"));
    }
}
