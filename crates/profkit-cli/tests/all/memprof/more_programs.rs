//! Heap profiles of programs that consist of several files, of Rust programs, and of stripped programs whose debug info
//! is on a server.
use super::{Heap, profkit};
use profkit_testkit::{HEAP_FLAGS, HEAP_LINK_FLAGS, heap_dump, on_path, skip, succeed};
use std::path::Path;
use std::process::Command;

#[test]
fn several_files_are_compiled_the_same_with_both_profiles_of_each_version() {
    let Some(heap) = Heap::new(22) else { return };
    let sources = ["heap_shelf.cpp", "heap_items.cpp"].map(|name| super::programs().join(name));
    succeed(
        Command::new(heap.llvm.clangxx())
            .args(HEAP_FLAGS)
            .args(HEAP_LINK_FLAGS)
            .args(&sources)
            .args(["-o", "shelf"])
            .current_dir(heap.folder()),
    );
    heap.dump("shelf", "shelf");
    let ir = |source: &Path, profile: &str| {
        // The output contains the name of the profile. So every profile is copied to the same name.
        let read = |name: &str| heap.folder().join(name);
        std::fs::copy(read(profile), read("used")).unwrap();
        let mut clang = Command::new(heap.llvm.clangxx());
        clang
            .args(["-O2", "-gmlt", "-fdebug-info-for-profiling"])
            .args(["-fmemory-profile-use=used", "-emit-llvm", "-S", "-o", "-"])
            // With these thresholds, the items on the shelf are cold, and the items that are dropped at once are not.
            .args([
                "-mllvm",
                "-memprof-lifetime-access-density-cold-threshold=30",
            ])
            .args(["-mllvm", "-memprof-ave-lifetime-cold-threshold=0"]);
        let output = succeed(clang.arg(source).current_dir(heap.folder()));
        String::from_utf8(output.stdout).unwrap()
    };
    for version in ["2", "3", "4"] {
        let version = format!("--memprof-version={version}");
        heap.llvm_merge("shelf", "shelf", &[&version]);
        heap.profkit_merge("shelf", "shelf", &[&version]);
        let mut all = String::new();
        for source in &sources {
            let ours = ir(source, "ours");
            assert_eq!(ours, ir(source, "theirs"), "{version}");
            all += &ours;
        }
        // clang uses the profile in each of the files. One allocation is always cold and gets an attribute; another
        // allocation is cold in only one of its contexts and gets metadata.
        assert_eq!(all.matches("\"memprof\"=\"cold\"").count(), 1, "{all}");
        assert!(all.contains(", !memprof !"), "{all}");
    }
}

#[test]
fn a_rust_program_is_symbolised_whole() {
    let Some(heap) = Heap::new(22) else { return };
    let Some(rustc) = on_path("rustc") else {
        return skip("rustc is not on the path");
    };
    let said = succeed(Command::new(&rustc).arg("-vV"));
    let said = String::from_utf8(said.stdout).unwrap();
    if !said.contains("LLVM version: 22.") {
        // The MemProf pass of another LLVM release does not fit the run-time library of clang 22.
        return skip(&format!("rustc has another LLVM than 22:\n{said}"));
    }
    succeed(
        Command::new(&rustc)
            .args(["-O", "-Cdebuginfo=1", "-Cforce-frame-pointers=yes"])
            .args(["-Cpasses=memprof-module function(memprof)"])
            .arg(format!("-Clinker={}", heap.llvm.clang().display()))
            .args(["-Clink-arg=-fmemory-profile", "-Clink-arg=-Wl,--build-id"])
            .arg(super::programs().join("heap_boxes.rs"))
            .args(["-o", "boxes"])
            .current_dir(heap.folder()),
    );
    heap.dump("boxes", "boxes");
    heap.llvm_merge("boxes", "boxes", &[]);
    heap.profkit_merge("boxes", "boxes", &["--llvm=22"]);
    heap.same_bytes("a Rust program");
    let show = |what: &[&str]| {
        let mut args = vec!["show", "boxes.memprofraw", "--binaries", "boxes"];
        args.extend(what);
        let output = profkit(heap.folder(), &args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let bytes = show(&["--folded", "bytes"]);
    let total = |folded: &str, name: &str| {
        let of_name = folded.lines().filter(|line| line.contains(name));
        let weights = of_name.map(|line| line.rsplit(' ').next().unwrap());
        weights
            .map(|weight| weight.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    let nested = ";heap_boxes::main".to_owned() + &";heap_boxes::nested".repeat(4) + ";";
    assert_eq!(total(&bytes, &nested), 1000, "{bytes}");
    // The function allocates five vectors of ten 8-byte numbers, 400 bytes in all. The allocating code is inlined
    // through an iterator.
    let short_lived = ";heap_boxes::main;heap_boxes::short_lived;";
    assert_eq!(total(&bytes, short_lived), 400, "{bytes}");
    // A vector of 4-byte numbers grows to 128 numbers: it allocates 16 bytes, then 32 and so on up to 512, 1008 bytes
    // in all.
    let push = ";heap_boxes::main;alloc::vec::Vec<T,A>::push;";
    assert_eq!(total(&bytes, push), 1008, "{bytes}");
    // The report names what is left out: rustc's entry point, because it has no debug info, and the libraries, because
    // they were not given.
    let reported = |binaries: &[&str]| {
        let mut args = vec!["merge", "boxes.memprofraw", "-o", "out"];
        args.extend(binaries.iter().flat_map(|binary| ["--binaries", binary]));
        let output = profkit(heap.folder(), &args);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let notes = said.lines().filter(|line| {
            line.starts_with("note: not symbolised: ") || line.starts_with("note: left out ")
        });
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let entry = |notes: &[String]| {
        let of_main = notes.first().is_some_and(|note| {
            note.starts_with("note: not symbolised: 1 of ")
                && note.ends_with(": boxes has no debug info for main")
        });
        assert!(of_main, "{notes:?}");
    };
    let alone = reported(&["boxes"]);
    entry(&alone);
    let [_, library, left_out] = alone.as_slice() else {
        panic!("{alone:?}");
    };
    assert!(library.contains(", because no binary was given for this build id: "));
    assert!(left_out.starts_with("note: left out "), "{alone:?}");
    let libraries = succeed(Command::new("ldd").arg(heap.folder().join("boxes")));
    let libraries = String::from_utf8(libraries.stdout).unwrap();
    let mut paths = libraries.split_whitespace();
    let libc = paths.find(|path| path.ends_with("/libc.so.6")).unwrap();
    let file = profkit_object::binary::BinaryFile::open(Path::new(libc)).unwrap();
    let id = profkit_object::build_id::build_id(&file.image(|_| true).unwrap());
    let id = id.unwrap().unwrap().to_string();
    assert!(
        library.contains(&format!(": {}… (", &id[..12])),
        "{library}"
    );
    let (folder, rest) = id.split_at(2);
    let debug_file = format!("/usr/lib/debug/.build-id/{folder}/{rest}.debug");
    if Path::new(&debug_file).is_file() {
        // With libc and its debug info, no context loses a frame, except for the frame of the program's entry point.
        let whole = reported(&["boxes", libc]);
        entry(&whole);
        assert_eq!(whole.len(), 1, "{whole:?}");
        let folded = show(&["--folded", "bytes", "--binaries", libc]);
        assert_eq!(
            total(&folded, "heap_boxes::main;"),
            total(&bytes, "heap_boxes::main;")
        );
        assert!(total(&folded, "fopen") > 0, "{folded}");
    } else {
        skip("libc6-dbg is not installed: no debug info of libc");
    }
    // The program reads its bytes in a loop, and the loads of this loop are counted. This shows that the function pass
    // of MemProf has run too.
    let accesses = show(&["--folded", "accesses"]);
    assert!(total(&accesses, &nested) >= 1000, "{accesses}");
}

#[cfg(feature = "debuginfod")]
#[test]
fn a_stripped_program_is_symbolised_by_a_server() {
    use std::io::{Read, Write};
    let Some(heap) = Heap::new(22) else { return };
    heap.build("one", &[]);
    heap.dump("one", "one");
    heap.profkit_merge("one", "one", &["--llvm=22"]);
    let expected = std::fs::read(heap.folder().join("ours")).unwrap();
    let whole = std::fs::read(heap.folder().join("one")).unwrap();
    let file = profkit_object::binary::BinaryFile::open(&heap.folder().join("one")).unwrap();
    let id = {
        let image = file.image(|_| true).unwrap();
        profkit_object::build_id::build_id(&image).unwrap().unwrap()
    };
    drop(file);
    std::fs::create_dir(heap.folder().join("bin")).unwrap();
    succeed(
        Command::new("strip")
            .args(["--strip-all", "one", "-o", "bin/one"])
            .current_dir(heap.folder()),
    );
    std::fs::remove_file(heap.folder().join("one")).unwrap();
    // A server that has only this file.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let wanted = format!("GET /buildid/{id}/debuginfo ");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                request.push(byte[0]);
            }
            let (status, body) = match request.starts_with(wanted.as_bytes()) {
                true => ("200 OK", whole.as_slice()),
                false => ("404 Not Found", [].as_slice()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body);
        }
    });
    // Three cases are tested: without the program; with the stripped program; and with the stripped program but without
    // a server for the debug info.
    for (cache, servers, given) in [
        ("first", url.as_str(), [].as_slice()),
        ("second", &url, &["--binaries", "bin/one"]),
        ("third", "", &["--binaries", "bin/one"]),
    ] {
        let _ = std::fs::remove_file(heap.folder().join("out"));
        let output = Command::new(env!("CARGO_BIN_EXE_profkit"))
            .args(["merge", "--llvm=22", "one.memprofraw", "-o", "out"])
            .arg("--debuginfod")
            .args(given)
            .env("DEBUGINFOD_URLS", servers)
            .env("DEBUGINFOD_CACHE_PATH", heap.folder().join(cache))
            .env("XDG_CACHE_HOME", heap.folder())
            .envs(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, "")))
            .current_dir(heap.folder())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let written = std::fs::read(heap.folder().join("out")).unwrap_or_default();
        assert_eq!(written == expected, !servers.is_empty(), "{cache}: {said}");
        if servers.is_empty() {
            assert!(said.contains("not symbolised"), "{said}");
        }
    }
}

/// The personality reads several dumps at the same time. The number of threads changes neither the output nor the
/// messages: empty profiles are reported in the order of the command line, and of several damaged dumps the first one
/// ends the merge.
#[test]
fn the_personality_merges_dumps_the_same_with_any_number_of_threads() {
    let Some(heap) = Heap::new(22) else { return };
    heap.build("one", &[]);
    let mut files = Vec::new();
    for dump in ["1", "2", "3", "4", "5", "6", "7"] {
        heap.dump("one", dump);
        files.push(format!("{dump}.memprofraw"));
    }
    for (at, empty) in [(1, "a.yaml"), (4, "b.yaml"), (5, "c.yaml")] {
        let text = "---\nHeapProfileRecords: []\n...\n";
        std::fs::write(heap.folder().join(empty), text).unwrap();
        files.insert(at, empty.to_owned());
    }
    let merge = |threads: &str| {
        let mut args = vec!["llvm-profdata", "merge", "--failure-mode=all", "-o", "out"];
        args.extend(["--profiled-binary=one", "-j", threads]);
        args.extend(files.iter().map(String::as_str));
        let said = profkit(heap.folder(), &args);
        let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
        // If the merge fails, this is the output of the merge before it.
        (said, std::fs::read(heap.folder().join("out")).unwrap())
    };
    let all_equal = |code: i32, lines: &[&str]| {
        let serial = merge("1");
        let ((found, said), _) = &serial;
        assert_eq!(
            (*found, said.lines().collect()),
            (Some(code), lines.to_vec())
        );
        for threads in ["2", "3", "8", "0"] {
            let parallel = merge(threads);
            assert_eq!(parallel.0, serial.0, "-j {threads}");
            assert!(parallel.1 == serial.1, "-j {threads}: bytes differ");
        }
    };
    let empty = ["a", "b", "c"].map(|name| format!("warning: {name}.yaml: The profile is empty."));
    let empty = empty.each_ref().map(String::as_str);
    all_equal(0, &empty);
    for damaged in ["3.memprofraw", "5.memprofraw", "6.memprofraw"] {
        let path = heap.folder().join(damaged);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() - 8]).unwrap();
    }
    let error = "error: 3.memprofraw: 3.memprofraw";
    let malformed = "malformed instrumentation profile data";
    all_equal(1, &[empty[0], error, malformed]);
}

/// Running a program that writes no heap dump is an error, and the message gives the reason.
#[test]
fn a_program_that_leaves_no_dump_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let error = heap_dump(&mut Command::new("true"), folder.path(), "none").unwrap_err();
    assert!(error.to_string().contains("no dump"), "{error}");
}
