//! Binaries from debuginfod servers: Debian's real server, and bad servers of our own.
#![cfg(feature = "debuginfod")]
use profkit_testkit::{Llvm, require_or_skip, skip, succeed};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const APP: &str = "
static int helper(int x) { return x > 2 ? x * 2 : x + 1; }
int main(int argc, char **argv) {
  (void)argv;
  int s = 0;
  for (int i = 0; i < argc + 9; i++) s += helper(i);
  return s > 1000;
}
";

/// A program in the folder `served/`, its raw profile, and the profile that LLVM's tool makes of the program and the
/// raw profile.
struct Program {
    folder: TempDir,
    id: String,
    expected: Vec<u8>,
}

impl Program {
    fn new(llvm: &Llvm) -> Self {
        let folder = TempDir::new().unwrap();
        let dir = folder.path();
        fs::create_dir(dir.join("served")).unwrap();
        fs::write(dir.join("app.c"), APP).unwrap();
        let mut clang = Command::new(llvm.clang());
        clang.args(["-O1", "-g", "-fprofile-generate", "-Wl,--build-id=sha1"]);
        clang.args(["-mllvm", "-profile-correlate=binary"]);
        clang.args(["-mllvm", "-disable-vp=true", "app.c", "-o", "served/app"]);
        succeed(clang.current_dir(dir));
        let mut run = Command::new(dir.join("served/app"));
        succeed(run.env("LLVM_PROFILE_FILE", dir.join("raw")));
        let mut merge = Command::new(llvm.profdata());
        merge.args(["merge", "--binary-file=served/app", "raw", "-o", "expected"]);
        succeed(merge.current_dir(dir));
        let file = profkit_object::binary::BinaryFile::open(&dir.join("served/app")).unwrap();
        let image = file.image(|_| true).unwrap();
        let id = profkit_object::build_id::build_id(&image).unwrap().unwrap();
        let expected = fs::read(dir.join("expected")).unwrap();
        Program {
            id: id.to_string(),
            expected,
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that gets debuginfod's environment variables from the test. All other variables that could influence
    /// it are removed.
    fn command(&self, program: &Path, servers: &str, cache: &str) -> Command {
        let mut command = Command::new(program);
        for name in [
            "DEBUGINFOD_TIMEOUT",
            "http_proxy",
            "HTTP_PROXY",
            "all_proxy",
            "ALL_PROXY",
        ] {
            command.env_remove(name);
        }
        command
            .env("DEBUGINFOD_URLS", servers)
            .env("DEBUGINFOD_CACHE_PATH", self.path(cache))
            .env("HOME", self.path("home"))
            .env("XDG_CACHE_HOME", "/nonexistent")
            .current_dir(self.folder.path());
        command
    }

    fn profkit(&self, servers: &str, cache: &str) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_profkit")), servers, cache)
    }

    /// Runs `profkit merge raw --debuginfod`. Returns the merged profile and the messages.
    fn merge(&self, servers: &str, cache: &str, more: &[&str]) -> (Vec<u8>, String) {
        let mut command = self.profkit(servers, cache);
        command.args(["merge", "--llvm", "22", "raw", "-o", "out"]);
        self.output(command.arg("--debuginfod").args(more))
    }

    fn output(&self, command: &mut Command) -> (Vec<u8>, String) {
        let out = self.path("out");
        let _ = fs::remove_file(&out);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (fs::read(out).unwrap_or_default(), said)
    }
}

/// A running server, Debian's debuginfod. It ends when this value is dropped, or when the test program is killed.
struct Debuginfod(Child, u16);

impl Debuginfod {
    /// Starts a server for the folder `served/` of a program, and returns when the server has the files.
    fn start(program: &Program) -> Self {
        let log = fs::File::create(program.path("log")).unwrap();
        // These ports are below the range from which systems choose ports themselves, so only another debuginfod can
        // occupy one.
        for attempt in 0..50 {
            let port = 20_000 + u16::try_from(std::process::id() % 1000).unwrap() * 10 + attempt;
            if TcpListener::bind(("127.0.0.1", port)).is_err() {
                continue;
            }
            let mut command = Command::new("setpriv");
            command
                .args(["--pdeathsig", "KILL", "debuginfod", "-F", "-d", ":memory:"])
                .args(["-t", "0", "-g", "0", "-p", &port.to_string(), "served"])
                .current_dir(program.folder.path())
                .env("HOME", program.folder.path())
                .env_remove("DEBUGINFOD_URLS")
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log.try_clone().unwrap());
            let mut server = Debuginfod(command.spawn().unwrap(), port);
            let start = Instant::now();
            while server.0.try_wait().unwrap().is_none() {
                if server.has(&program.id) && server.0.try_wait().unwrap().is_none() {
                    return server;
                }
                assert!(start.elapsed() < Duration::from_secs(60), "no answer");
                thread::sleep(Duration::from_millis(50));
            }
        }
        panic!("{}", fs::read_to_string(program.path("log")).unwrap());
    }

    fn has(&self, id: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.1)) else {
            return false;
        };
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        let request = format!("GET /buildid/{id}/debuginfo HTTP/1.0\r\n\r\n");
        let mut status = [0; 12];
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_exact(&mut status).is_ok()
            && status.ends_with(b" 200")
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.1)
    }
}

impl Drop for Debuginfod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn debians_server_and_client_work_with_profkit() {
    let llvm = require_or_skip!(22);
    let installed = |name: &str| Path::new("/usr/bin").join(name).exists();
    if !installed("debuginfod") || !installed("debuginfod-find") {
        return skip("debuginfod is not installed");
    }
    let program = Program::new(&llvm);
    let server = Debuginfod::start(&program);
    let url = server.url();
    let find = |servers: &str, cache: &str| {
        let mut find = program.command(Path::new("debuginfod-find"), servers, cache);
        let output = find.args(["debuginfo", &program.id]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };

    // The first merge downloads the file. The second merge has no server, and takes the file from the cache. Then
    // elfutils' client finds the file that profkit has left in the cache, and profkit finds a file that elfutils'
    // client has left.
    for servers in [url.as_str(), ""] {
        let (ours, said) = program.merge(servers, "cache", &[]);
        assert_eq!(ours, program.expected, "{said}");
    }
    let kept = program.path("cache").join(&program.id).join("debuginfo");
    assert_eq!(
        fs::read(&kept).unwrap(),
        fs::read(program.path("served/app")).unwrap()
    );
    let unreachable = "http://127.0.0.1:9";
    assert_eq!(find(unreachable, "cache"), kept.display().to_string());
    assert!(!find(&url, "theirs").is_empty());
    let (ours, said) = program.merge(unreachable, "theirs", &[]);
    assert_eq!(ours, program.expected, "{said}");

    // If the given binary is stripped, profkit still asks the server.
    let mut objcopy = Command::new("/usr/lib/llvm-22/bin/llvm-objcopy");
    succeed(
        objcopy
            .args(["--strip-all", "served/app", "stripped"])
            .current_dir(program.folder.path()),
    );
    let (ours, said) = program.merge(&url, "cache-2", &["--binaries", "stripped"]);
    assert_eq!(ours, program.expected, "{said}");
    let mut correlate = program.profkit(&url, "cache-2");
    let (ours, said) =
        program.output(correlate.args(["correlate", "raw", "--debuginfod", "-o", "out"]));
    assert!(
        !ours.is_empty() && said.contains("binaries found for 1 of 1 programs"),
        "{said}"
    );

    // The `profkit llvm-profdata` command and LLVM's own tool, each with a cache of its own.
    let merge = [
        "merge",
        "--debuginfod",
        "--correlate=binary",
        "raw",
        "-o",
        "out",
    ];
    let mut theirs = program.command(llvm.profdata(), &url, "llvm");
    let mut ours = program.profkit(&url, "ours");
    let (theirs, ours) = (
        program.output(theirs.args(merge)),
        program.output(ours.arg("llvm-profdata").args(merge)),
    );
    assert_eq!(theirs, (program.expected.clone(), String::new()));
    assert_eq!(ours, theirs);

    // The cache remembers that the server does not have a file, as elfutils' cache does.
    let mut raw = fs::read(program.path("raw")).unwrap();
    let id = raw
        .windows(4)
        .position(|bytes| hex(bytes) == program.id[..8])
        .unwrap();
    raw[id] ^= 0xff;
    fs::write(program.path("raw"), raw).unwrap();
    let (_, said) = program.merge(&url, "cache", &[]);
    assert!(said.contains("the server does not have the file"), "{said}");
    drop(server);
    let (_, said) = program.merge(&url, "cache", &[]);
    assert!(
        said.contains("no server had the file at the last request"),
        "{said}"
    );
    let (_, said) = program.merge(&url, "fresh", &[]);
    assert!(said.contains("Connection refused"), "{said}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that answers every request with these bytes, in pieces with pauses between.
struct Bad {
    url: String,
}

impl Bad {
    fn serving(pieces: Vec<Vec<u8>>, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (pieces, Ok(mut stream)) = (pieces.clone(), stream) else {
                    return;
                };
                thread::spawn(move || {
                    let mut request = Vec::new();
                    let mut byte = [0];
                    while !request.ends_with(b"\r\n\r\n")
                        && stream.read(&mut byte).unwrap_or(0) == 1
                    {
                        request.push(byte[0]);
                    }
                    for piece in pieces {
                        thread::sleep(pause);
                        if stream.write_all(&piece).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Bad { url }
    }

    fn saying(status: &str, body: &[u8], stated_len: usize) -> Self {
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {stated_len}\r\nConnection: close\r\n\r\n"
        )
        .into_bytes();
        answer.extend(body);
        Self::serving(vec![answer], Duration::ZERO)
    }
}

#[test]
fn bad_servers_and_caches_are_told_and_passed_over() {
    let llvm = require_or_skip!(22);
    let program = Program::new(&llvm);
    let app = fs::read(program.path("served/app")).unwrap();
    let dir = program.folder.path();
    fs::write(dir.join("other.c"), "int main(void) { return 0; }").unwrap();
    let mut clang = Command::new(llvm.clang());
    succeed(
        clang
            .args(["-Wl,--build-id=0xabcd", "other.c", "-o", "other"])
            .current_dir(dir),
    );
    let other = fs::read(dir.join("other")).unwrap();

    let good = Bad::saying("200 OK", &app, app.len());
    let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    let silent = Bad::serving(vec![Vec::new()], Duration::from_secs(20));
    let drops = app.chunks(64).map(<[u8]>::to_vec);
    let trickling = Bad::serving(
        [head].into_iter().chain(drops).collect(),
        Duration::from_millis(100),
    );
    let stopping = Bad::serving(
        vec![
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", app.len()).into_bytes(),
            vec![0; 99],
            Vec::new(),
        ],
        Duration::from_secs(3),
    );
    let cases = [
        ("no such file", Bad::saying("404 Not Found", b"", 0)),
        (
            "a fault of the server",
            Bad::saying("503 Service Unavailable", b"later", 5),
        ),
        ("a page", Bad::saying("200 OK", b"<html>log in</html>", 19)),
        ("another file", Bad::saying("200 OK", &other, other.len())),
        ("cut", Bad::saying("200 OK", &app[..1000], app.len())),
        (
            "cut, and nobody knows the length",
            Bad::serving(
                vec![
                    [
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
                        &app[..1000],
                    ]
                    .concat(),
                ],
                Duration::ZERO,
            ),
        ),
        (
            "no HTTP",
            Bad::serving(vec![b"hello\r\n\r\n".to_vec()], Duration::ZERO),
        ),
        ("silent", silent),
        ("trickling", trickling),
        ("silent in the middle", stopping),
    ];
    let mut all = String::new();
    let mut told = |what: &str, said: &str, url: &str| {
        let said = said
            .replace(url, "URL")
            .replace(&program.id, "ID")
            .replace(&format!("of {} bytes", app.len()), "of LEN bytes");
        let mut said = said.replace(dir.to_str().unwrap(), "[TMP]");
        // How much of the file comes within the second depends on the load of the machine.
        while let Some((before, after)) = said.split_once("too slow: ")
            && let Some((_, after)) = after.split_once(" bytes in")
        {
            said = format!("{before}too slow; SOME bytes in{after}");
        }
        // The report and the warning have the same text, so only one line is kept.
        let line = said
            .lines()
            .find(|line| line.contains("no binary"))
            .unwrap_or(&said);
        all.push_str(&format!("-- {what}\n{}\n", line.trim()));
    };
    for (number, (what, server)) in cases.iter().enumerate() {
        let cache = format!("cache-{number}");
        let mut command = program.profkit(&server.url, &cache);
        command.args(["merge", "--debuginfod", "raw", "-o", "out"]);
        let (out, said) = program.output(command.env("DEBUGINFOD_TIMEOUT", "1"));
        assert!(out.is_empty(), "{what}");
        told(what, &said, &server.url);
        // After a bad server the next server is asked, and nothing of the bad server's answer stays in the cache.
        if number < 7 {
            let (ours, said) = program.merge(
                &format!("{} {}", server.url, good.url),
                &format!("{cache}-b"),
                &[],
            );
            assert_eq!(ours, program.expected, "{what}: {said}");
        }
        let left: Vec<_> = fs::read_dir(program.path(&cache).join(&program.id))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        let miss = left
            .iter()
            .all(|path| fs::metadata(path).unwrap().len() == 0);
        assert!(
            miss && left.len() == if number == 0 { 2 } else { 0 },
            "{what}: {left:?}"
        );
    }
    let said = |command: &mut Command| {
        program
            .output(command.args(["merge", "--debuginfod", "raw", "-o", "out"]))
            .1
    };
    told(
        "nobody to ask",
        &said(&mut program.profkit("", "none")),
        "-",
    );
    for servers in ["ftp://a", "file://a/b", "file:///nonexistent"] {
        told(servers, &said(&mut program.profkit(servers, "none-2")), "-");
    }
    if cfg!(not(feature = "https")) {
        told(
            "https",
            &said(&mut program.profkit("https://127.0.0.1:9", "none")),
            "-",
        );
    }
    fs::write(program.path("occupied"), "").unwrap();
    told(
        "no room for the cache",
        &said(&mut program.profkit(&good.url, "occupied")),
        &good.url,
    );
    let mut small = program.profkit(&good.url, "small");
    let said_small = said(small.env("DEBUGINFOD_MAXSIZE", "1000"));
    told(
        "larger than allowed",
        &said_small.replace(&format!("{} bytes", app.len()), "LEN bytes"),
        &good.url,
    );
    let silent = Bad::serving(vec![Vec::new()], Duration::from_secs(20));
    let (_, over) = program.merge(
        &format!("{0} {0}/", silent.url),
        "over",
        &["--debuginfod-budget", "1"],
    );
    told("budget", &over, &silent.url);
    let mut wrong = program.profkit(&good.url, "wrong");
    told(
        "a variable",
        &said(wrong.env("DEBUGINFOD_MAXTIME", "1h")),
        "-",
    );
    insta::assert_snapshot!(all, @"
    -- no such file
    no binary: debuginfod has no debuginfo of build id ID (URL: the server does not have the file)
    -- a fault of the server
    no binary: debuginfod has no debuginfo of build id ID (URL: the server answered with HTTP status 503)
    -- a page
    no binary: debuginfod has no debuginfo of build id ID (URL: the debuginfod server sent the wrong file: the file is not an ELF, PE, COFF or Mach-O file)
    -- another file
    no binary: debuginfod has no debuginfo of build id ID (URL: the debuginfod server sent the wrong file: found build id abcd)
    -- cut
    no binary: debuginfod has no debuginfo of build id ID (URL: the download stopped after 1000 of LEN bytes: Peer disconnected)
    -- cut, and nobody knows the length
    no binary: debuginfod has no debuginfo of build id ID (URL: the debuginfod server sent the wrong file: object file: Invalid ELF section header offset/size/alignment)
    -- no HTTP
    no binary: debuginfod has no debuginfo of build id ID (URL: protocol: http parse fail: invalid HTTP version)
    -- silent
    no binary: debuginfod has no debuginfo of build id ID (URL: no answer in 1 seconds (DEBUGINFOD_TIMEOUT))
    -- trickling
    no binary: debuginfod has no debuginfo of build id ID (URL: the download was too slow; SOME bytes in 1 seconds)
    -- silent in the middle
    no binary: debuginfod has no debuginfo of build id ID (URL: no answer in 1 seconds (DEBUGINFOD_TIMEOUT))
    -- nobody to ask
    no binary: debuginfod has no debuginfo of build id ID
    -- ftp://a
    no binary: debuginfod has no debuginfo of build id ID (ftp://a: the address is neither http, https nor file)
    -- file://a/b
    no binary: debuginfod has no debuginfo of build id ID (file://a/b: the path in the address does not begin with /, or has a % without two hexadecimal digits)
    -- file:///nonexistent
    no binary: debuginfod has no debuginfo of build id ID (file:///nonexistent: the server does not have the file)
    -- https
    no binary: debuginfod has no debuginfo of build id ID (https://127.0.0.1:9: this program was built without https (cargo feature `https`))
    -- no room for the cache
    no binary: debuginfod has no debuginfo of build id ID (URL: the file cannot be saved in [TMP]/occupied/ID: Not a directory; set DEBUGINFOD_CACHE_PATH to a folder with enough space)
    -- larger than allowed
    no binary: debuginfod has no debuginfo of build id ID (URL: the file is larger than DEBUGINFOD_MAXSIZE: LEN bytes, allowed 1000)
    -- budget
    no binary: debuginfod has no debuginfo of build id ID (URL: the download was not complete after 1 seconds; URL/: not asked: the 1 seconds that all downloads together may take are over)
    -- a variable
    error: DEBUGINFOD_MAXTIME=1h: not a number
    ");

    // A damaged file in the cache is downloaded again. Files of a `file://` server are used where they are, and are not
    // copied into the cache.
    let kept = program.path("cache").join(&program.id);
    fs::create_dir_all(&kept).unwrap();
    fs::write(kept.join("debuginfo"), &other).unwrap();
    let (ours, said) = program.merge(&good.url, "cache", &[]);
    assert_eq!(ours, program.expected, "{said}");
    assert_eq!(fs::read(kept.join("debuginfo")).unwrap(), app);
    fs::create_dir(program.path("mirror")).unwrap();
    fs::rename(program.path("cache"), program.path("mirror/buildid")).unwrap();
    let mirror = format!("file://{}", program.path("mirror").display());
    let (ours, said) = program.merge(&mirror, "unused", &[]);
    assert_eq!(ours, program.expected, "{said}");
    assert!(!program.path("unused").exists());
}
