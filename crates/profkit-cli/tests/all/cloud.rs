//! Inputs and outputs in an object store: SeaweedFS on loopback, alone and behind a proxy that answers wrongly.
#![cfg(feature = "cloud")]
use profkit_testkit::fault_proxy::{Fault, fault_proxy};
use profkit_testkit::measure;
use profkit_testkit::{
    Llvm, fixture, fixtures, repo_root, require_or_skip, short_or_whole, skip, succeed,
    target_folder,
};
use std::collections::HashSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A store that runs until the value is dropped. The bucket is `runs`.
struct Store {
    folder: TempDir,
    process: Child,
    s3: SocketAddr,
    filer: SocketAddr,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    // SeaweedFS uses the port 10000 above each of its own too.
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        if port > 12_000 && TcpListener::bind(("127.0.0.1", port - 10_000)).is_ok() {
            return port - 10_000;
        }
    }
}

impl Store {
    fn start() -> Option<Self> {
        let program = std::env::var_os("PROFKIT_SEAWEED")
            .map_or_else(|| target_folder().join("seaweed/weed"), Into::into);
        if !program.is_file() {
            skip("no SeaweedFS: .ci/seaweed lays it");
            return None;
        }
        let folder = TempDir::new().unwrap();
        let config = r#"{"identities":[{"name":"t","credentials":[{"accessKey":"key","secretKey":"secret"}],"actions":["Admin","Read","Write","List"]}]}"#;
        fs::write(folder.path().join("s3.json"), config).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        let [master, volume, filer, s3] = [(); 4].map(|()| free_port());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new(program)
            .args([
                "server",
                "-dir=data",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-filer",
                "-s3",
                "-s3.config=s3.json",
            ])
            .args([
                "-master.volumeSizeLimitMB=1024",
                "-volume.max=20",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
            ])
            .args([
                format!("-master.port={master}"),
                format!("-volume.port={volume}"),
                format!("-filer.port={filer}"),
                format!("-s3.port={s3}"),
            ])
            .current_dir(folder.path())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        let store = Store {
            folder,
            process,
            s3: address(s3),
            filer: address(filer),
        };
        let start = Instant::now();
        // Until the first object can be written: the parts of the server begin one after the other.
        while TcpStream::connect(store.s3).is_err() || !store.try_put("ready", b"x") {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{}",
                fs::read_to_string(store.folder.path().join("log")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(store)
    }

    /// Writes an object through the server's own door, which wants no signature.
    fn try_put(&self, key: &str, bytes: &[u8]) -> bool {
        let Ok(mut connection) = TcpStream::connect(self.filer) else {
            return false;
        };
        let head = format!(
            "PUT /buckets/runs/{key} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            bytes.len()
        );
        let mut answer = String::new();
        connection.write_all(head.as_bytes()).is_ok()
            && connection.write_all(bytes).is_ok()
            && connection.read_to_string(&mut answer).is_ok()
            && answer.starts_with("HTTP/1.1 201")
    }

    fn put(&self, key: &str, bytes: &[u8]) {
        assert!(self.try_put(key, bytes), "{key}");
    }

    fn profkit(&self, endpoint: SocketAddr, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("AWS_") || name.to_ascii_lowercase().ends_with("_proxy") {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("AWS_ENDPOINT_URL", format!("http://{endpoint}"))
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            // Nothing may ask for the role of the machine that the test runs on.
            .env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
            .env("PROFKIT_CLOUD_TIMEOUT", "20")
            .env("TMPDIR", self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.profkit(self.s3, args).output().unwrap()
    }

    fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Front-end profiles of one release, each as a file below `raw/` and as an object of the same name.
fn runs(store: &Store) -> Vec<String> {
    fs::create_dir_all(store.folder.path().join("raw")).unwrap();
    let bytes = fixture("readme/clang-22.profraw");
    let names: Vec<String> = (0..40)
        .map(|number| format!("raw/{number:02}.profraw"))
        .collect();
    for name in &names {
        fs::write(store.folder.path().join(name), &bytes).unwrap();
        store.put(name, &bytes);
    }
    names
}

#[test]
fn objects_are_read_and_written_as_files_are() {
    let Some(store) = Store::start() else { return };
    let mut count = 0;
    for name in fixtures()
        .iter()
        .filter(|name| name.starts_with("raw") || name.starts_with("indexed"))
    {
        let name = name.to_str().unwrap();
        let bytes = fixture(name);
        store.put(name, &bytes);
        let path = repo_root().join("tests/fixtures").join(name);
        let there = store.run(&["show", "--format", "json", &format!("s3://runs/{name}")]);
        let here = store.run(&["show", "--format", "json", path.to_str().unwrap()]);
        let named = |output: &Output| {
            String::from_utf8_lossy(&output.stdout)
                .replace(path.to_str().unwrap(), &format!("s3://runs/{name}"))
        };
        assert_eq!(named(&there), named(&here), "{name}");
        assert_eq!(there.status, here.status, "{name}");
        count += 1;
        if count == 12 {
            break;
        }
    }
    let names = runs(&store);
    let list: String = names
        .iter()
        .map(|name| format!("2,s3://runs/{name}\n"))
        .collect();
    store.put("list.txt", list.as_bytes());
    store.put("raw/notes.txt", b"int main() {}");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&fixture("readme/clang-22.profraw")).unwrap();
    store.put("gz/a.profraw.gz", &gz.finish().unwrap());
    fs::create_dir_all(store.folder.path().join("none")).unwrap();
    for (there, here) in [
        (&["s3://runs/raw/"][..], &["raw"][..]),
        (&["s3://runs/raw"], &["raw"]),
        (&["s3://runs/raw/1?.profraw"], &["raw/1?.profraw"]),
        (
            &["3,s3://runs/raw/00.profraw", "raw/01.profraw"],
            &["3,raw/00.profraw", "raw/01.profraw"],
        ),
        (&["-f", "s3://runs/list.txt"], &["2,raw"]),
        (&["s3://runs/gz/"], &["raw/00.profraw"]),
    ] {
        let merged = |inputs: &[&str], output: &str| {
            let args: Vec<&str> = ["merge"]
                .iter()
                .chain(inputs)
                .chain(&["-o", output])
                .copied()
                .collect();
            let output = store.run(&args);
            assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output));
        };
        merged(there, "there");
        merged(here, "here");
        assert!(store.file("there") == store.file("here"), "{there:?}");
        // Out to the store, and back.
        merged(there, "s3://runs/out/merged.profdata");
        merged(&["s3://runs/out/merged.profdata"], "back");
        assert!(store.file("back") == store.file("here"), "{there:?}");
    }
    let skipped = store.run(&[
        "merge",
        "s3://runs/raw",
        "-o",
        "s3://runs/raw/00out.profdata",
        "--report",
        "s3://runs/report.json",
    ]);
    assert!(
        text(&skipped).contains("1 other file is skipped"),
        "{}",
        text(&skipped)
    );
    // The output of the run before is none of the inputs.
    let again = store.run(&[
        "merge",
        "s3://runs/raw",
        "-o",
        "s3://runs/raw/00out.profdata",
    ]);
    assert!(
        text(&again).contains("17 functions from 40 files"),
        "{}",
        text(&again)
    );
    let replaced = store.run(&[
        "merge",
        "s3://runs/raw/00.profraw",
        "-o",
        "s3://runs/raw/00.profraw",
    ]);
    assert!(
        text(&replaced).contains("is both an input and the output"),
        "{}",
        text(&replaced)
    );
    let report = store.run(&["merge", "s3://runs/report.json", "-o", "x"]);
    assert!(text(&report).contains("report"), "{}", text(&report));
}

#[test]
fn requests_that_fail_once_are_made_again() {
    let Some(store) = Store::start() else { return };
    let names = runs(&store);
    let local = store.run(&["merge", "raw", "-o", "here"]);
    assert!(local.status.success());
    let faults = [
        Fault::SlowDown,
        Fault::Reset,
        Fault::Short(300),
        Fault::Short(900),
        Fault::Stall(Duration::from_secs(3)),
    ];
    for fault in faults {
        // The first request for each tenth object, and the first of all listings.
        let met = Arc::new(Mutex::new(HashSet::new()));
        let tenth: HashSet<String> = names
            .iter()
            .step_by(10)
            .map(|name| format!("/runs/{name}"))
            .collect();
        let proxy = fault_proxy(store.s3, move |request| {
            let chosen = tenth.contains(&request.target) || request.target.contains("list-type");
            (chosen
                && request.method == "GET"
                && met.lock().unwrap().insert(request.target.clone()))
            .then_some(fault)
        });
        let mut command = store.profkit(proxy.unwrap(), &["merge", "s3://runs/raw", "-o", "there"]);
        command.env(
            "PROFKIT_CLOUD_TIMEOUT",
            if matches!(fault, Fault::Stall(_)) {
                "2"
            } else {
                "20"
            },
        );
        let output = command.output().unwrap();
        if matches!(fault, Fault::Stall(_)) {
            // A request that is silent for as long as it may take is given up; what is left is merged.
            assert!(
                text(&output).contains("cannot be read"),
                "{}",
                text(&output)
            );
            continue;
        }
        assert_eq!(
            output.status.code(),
            Some(0),
            "{fault:?}: {}",
            text(&output)
        );
        assert!(store.file("there") == store.file("here"), "{fault:?}");
    }
    // One request in ten of all kinds fails, in an order that does not change.
    let number = AtomicUsize::new(0);
    let proxy = fault_proxy(store.s3, move |request| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        let fault = [Fault::SlowDown, Fault::Reset, Fault::Short(200)][number / 10 % 3];
        (number % 10 == 7 && request.method == "GET").then_some(fault)
    });
    let output = store
        .profkit(proxy.unwrap(), &["merge", "s3://runs/raw", "-o", "there"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(store.file("there") == store.file("here"));
}

#[test]
fn objects_that_cannot_be_read_are_named_and_the_others_merged() {
    let Some(store) = Store::start() else { return };
    let names = runs(&store);
    let lost: Vec<String> = names.iter().step_by(10).cloned().collect();
    let rest: Vec<&str> = names
        .iter()
        .filter(|name| !lost.contains(name))
        .map(String::as_str)
        .collect();
    let args: Vec<&str> = ["merge"]
        .iter()
        .chain(&rest)
        .chain(&["-o", "here"])
        .copied()
        .collect();
    assert!(store.run(&args).status.success());
    for (fault, says) in [
        (Fault::SlowDown, "SlowDown"),
        (Fault::Reset, ""),
        (Fault::Short(100), ""),
        (Fault::Changed, "the object was changed while it was read"),
        (
            Fault::Expired,
            "the store refuses access (403 Forbidden: ExpiredToken: as the test wants)",
        ),
    ] {
        let targets: HashSet<String> = lost.iter().map(|name| format!("/runs/{name}")).collect();
        let proxy = fault_proxy(store.s3, move |request| {
            (request.method == "GET" && targets.contains(&request.target)).then_some(fault)
        });
        let mut command = store.profkit(
            proxy.unwrap(),
            &[
                "merge",
                "s3://runs/raw",
                "-o",
                "there",
                "--report",
                "report.json",
            ],
        );
        let output = command.env("PROFKIT_CLOUD_TIMEOUT", "2").output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(0), "{fault:?}: {said}");
        assert!(said.contains("from 36 of 40 files"), "{fault:?}: {said}");
        assert!(said.contains(says), "{fault:?}: {said}");
        let report = String::from_utf8(store.file("report.json")).unwrap();
        for name in &lost {
            assert!(
                report.contains(&format!("s3://runs/{name}")),
                "{fault:?}: {name}: {report}"
            );
        }
        assert!(
            !said.contains("Signature") && !report.contains("secret"),
            "{said}"
        );
        assert!(store.file("there") == store.file("here"), "{fault:?}");
    }
    // The store is gone after the listing.
    let proxy = fault_proxy(store.s3, |request| {
        (request.method == "GET" && !request.target.contains("list-type")).then_some(Fault::Reset)
    });
    let mut command = store.profkit(proxy.unwrap(), &["merge", "s3://runs/raw", "-o", "nothing"]);
    let output = command.env("PROFKIT_CLOUD_TIMEOUT", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!store.folder.path().join("nothing").exists());
}

#[test]
fn what_is_wrong_with_a_store_is_said() {
    let Some(store) = Store::start() else { return };
    runs(&store);
    let check = |command: &mut Command, says: &str| {
        let output = command.output().unwrap();
        let said = text(&output);
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(said.contains(says), "{said}");
        said
    };
    let merge = |input| store.profkit(store.s3, &["merge", input, "-o", "x"]);
    check(
        &mut merge("s3://runs/missing"),
        "s3://runs/missing: cannot be read: the store has no object and no folder of this name",
    );
    check(
        &mut merge("s3://runs/raw/*.none"),
        "no object matches this pattern",
    );
    check(&mut merge("s3://nobucket/"), "404 Not Found: NoSuchBucket");
    check(
        merge("s3://runs/raw").env("AWS_SECRET_ACCESS_KEY", "wrong"),
        "the store refuses access (403 Forbidden",
    );
    check(
        merge("s3://runs/raw")
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_SECRET_ACCESS_KEY")
            .env("PROFKIT_CLOUD_TIMEOUT", "1"),
        "there are no credentials in the environment",
    );
    let command = r#"echo '{"Version":1,"AccessKeyId":"key","SecretAccessKey":"secret"}'"#;
    let mut by_command = merge("s3://runs/raw");
    by_command
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY");
    assert!(
        by_command
            .env("PROFKIT_CREDENTIALS_COMMAND", command)
            .output()
            .unwrap()
            .status
            .success()
    );
    check(
        by_command.env("PROFKIT_CREDENTIALS_COMMAND", "exit 3"),
        "gives no credentials: it ended with exit status: 3",
    );
    // An output that cannot be written is kept.
    let proxy = fault_proxy(store.s3, |request| {
        (request.method != "GET" && request.method != "HEAD").then_some(Fault::Expired)
    })
    .unwrap();
    let mut command = store.profkit(proxy, &["merge", "s3://runs/raw", "-o", "s3://runs/out"]);
    let said = check(&mut command, "; the output is kept as ");
    let (_, rest) = said.split_once("kept as ").unwrap();
    let kept = Path::new(rest.lines().next().unwrap().trim());
    assert!(store.run(&["merge", "raw", "-o", "here"]).status.success());
    assert!(fs::read(kept).unwrap() == store.file("here"), "{said}");
}

#[test]
fn memory_does_not_grow_with_the_number_of_objects() {
    let llvm = require_or_skip!(22);
    let Some(store) = Store::start() else { return };
    // 400 MB in all.
    let count = short_or_whole(1_000, 10_000);
    let object = raw_of(&store, &llvm, 400_000_000 / count);
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (store, object) = (&store, &object);
            scope.spawn(move || {
                for number in (part..count).step_by(4) {
                    store.put(&format!("many/{number}.profraw"), object);
                }
            });
        }
    });
    let measured =
        measure(&mut store.profkit(store.s3, &["merge", "s3://runs/many", "-o", "there"])).unwrap();
    let said = String::from_utf8_lossy(&measured.stderr).into_owned();
    assert_eq!(measured.code(), Some(0), "{said}");
    eprintln!(
        "{:?}, {} MB: {said}",
        measured.wall,
        measured.peak_rss >> 20
    );
    let written = short_or_whole("from 1,000 files", "from 10,000 files");
    assert!(said.contains(written), "{said}");
    assert!(
        measured.peak_rss < (256 + 100) << 20,
        "{}",
        measured.peak_rss
    );
}

/// A raw profile of about this size.
fn raw_of(store: &Store, llvm: &Llvm, size: usize) -> Vec<u8> {
    let mut source = String::new();
    for number in 0..size / 84 {
        source += &format!("int f{number}(int x) {{ return x > {number} ? x : {number}; }}\n");
    }
    source += "int main(void) { return f0(1); }\n";
    let dir = store.folder.path();
    fs::write(dir.join("many.c"), source).unwrap();
    let mut clang = Command::new(llvm.clang());
    clang.args(["-O0", "-fprofile-instr-generate", "many.c", "-o", "many"]);
    succeed(clang.current_dir(dir));
    let mut run = Command::new(dir.join("many"));
    run.env("LLVM_PROFILE_FILE", dir.join("many.profraw"));
    // It ends with what `f0` returns.
    assert!(run.status().unwrap().code().is_some());
    fs::read(dir.join("many.profraw")).unwrap()
}

#[test]
fn objects_are_folded_once_each() {
    let Some(store) = Store::start() else { return };
    runs(&store);
    let fold = ["fold", "s3://runs/raw/", "--store", "s3://runs/store"];
    // Two that begin together, and one that is killed before.
    let mut killed = store.profkit(store.s3, &fold).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(60));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let both = [(); 2].map(|()| {
        let mut command = store.profkit(store.s3, &fold);
        command.stderr(Stdio::piped()).spawn().unwrap()
    });
    for process in both {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("40 inputs in "), "{}", text(&output));
    }
    for number in 40..43 {
        store.put(
            &format!("raw/{number}.profraw"),
            &fixture("readme/clang-22.profraw"),
        );
        succeed(&mut store.profkit(store.s3, &[&fold[..], &["--every", "hour"]].concat()));
    }
    let more = [
        "-o",
        "s3://runs/all.profdata",
        "--diff-markdown",
        "changes.md",
    ];
    let output = store.run(&[&fold[..], &more].concat());
    assert!(output.status.success(), "{}", text(&output));
    assert!(
        text(&output).contains("there before     43 inputs"),
        "{}",
        text(&output)
    );
    succeed(&mut store.profkit(
        store.s3,
        &[
            "merge",
            "--order-free",
            "s3://runs/raw/",
            "-o",
            "all.profdata",
        ],
    ));
    succeed(&mut store.profkit(
        store.s3,
        &[
            "merge",
            "s3://runs/all.profdata",
            "--to",
            "text",
            "-o",
            "a.proftext",
        ],
    ));
    succeed(&mut store.profkit(
        store.s3,
        &["merge", "all.profdata", "--to", "text", "-o", "b.proftext"],
    ));
    assert!(store.file("a.proftext") == store.file("b.proftext"));
    // Another process that is faster, and a store that takes nothing.
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let proxy = fault_proxy(store.s3, move |request| {
        let is_ledger = request.method == "PUT" && request.target.contains("ledger.txt");
        let is_first = is_ledger && count.fetch_add(1, Ordering::Relaxed) == 0;
        is_first.then_some(Fault::Changed)
    })
    .unwrap();
    store.put("raw/43.profraw", &fixture("readme/clang-22.profraw"));
    let reported = [&fold[..], &["--report", "fold.json"]].concat();
    succeed(&mut store.profkit(proxy, &reported));
    assert_eq!(written.load(Ordering::Relaxed), 2);
    let report = String::from_utf8(store.file("fold.json")).unwrap();
    assert!(
        report.contains("\"retries\": 1,") && report.contains("\"inputs\": 44,"),
        "{report}"
    );
    let proxy = fault_proxy(store.s3, |request| {
        (request.method == "PUT").then_some(Fault::Expired)
    })
    .unwrap();
    store.put("raw/44.profraw", &fixture("readme/clang-22.profraw"));
    let refused = store.profkit(proxy, &fold).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused).contains(".pkpart: cannot be written: the store refuses access"),
        "{}",
        text(&refused)
    );
    let output = store.run(&[&fold[..], &["--compact"]].concat());
    assert!(text(&output).contains("45 inputs in "), "{}", text(&output));
}
