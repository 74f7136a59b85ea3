//! `cargo xtask bridges`: opens the outputs of `profkit export` in the programs for which they are made: speedscope (in
//! Chromium), the Firefox Profiler, and a reader of pprof that is not part of profkit. Its tables are read by pyarrow
//! and DuckDB.
use super::browser::Browser;
use super::firefox::{self, Counted, Firefox};
use crate::mip::succeed;
use crate::steps::cargo;
use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use profkit_testkit::{fixture_path, skip, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const READER: &str = "pprof-format@2.3.2";
const SPEEDSCOPE: &str = "speedscope@1.25.0";

/// A script that prints the stacks of a pprof file: first the names of the units, then for each stack its frames,
/// outermost first, and its numbers.
const PRINT: &str = r#"
const { Profile } = require(process.argv[1]);
const profile = Profile.decode(require("zlib").gunzipSync(require("fs").readFileSync(process.argv[2])));
const text = (id) => profile.stringTable.strings[Number(id)];
console.log(profile.sampleType.map((one) => text(one.type) + "/" + text(one.unit)).join(" "));
const functions = new Map(profile.function.map((one) => [Number(one.id), one]));
const locations = new Map(profile.location.map((one) => [Number(one.id), one]));
for (const sample of profile.sample) {
  const names = sample.locationId.map((id) => {
    const line = locations.get(Number(id)).line[0];
    const found = functions.get(Number(line.functionId));
    return text(found.name) + (Number(line.line) ? ":" + line.line : "");
  });
  console.log(names.reverse().join(";") + " " + sample.value.join(" "));
}
"#;

/// An export: its name, the arguments of the command, and lines that the reader of pprof must print.
struct Export {
    name: &'static str,
    arguments: Vec<String>,
    lines: &'static [&'static str],
    /// A text that speedscope must show for the export.
    shown: &'static str,
    /// What the Firefox Profiler counts.
    counted: &'static [Counted],
}

pub fn run() -> Result<()> {
    cargo(
        &["build", "-q", "-p", "profkit-cli", "--features", "zstd"],
        &[],
    )?;
    let folder = target_folder().join("bridges");
    fs::create_dir_all(&folder)?;
    let exports = exports(&folder)?;
    super::tables::check(&folder, &fixture_path("heap"))?;
    let (Some(reader), Some(speedscope), Some(profiler)) = (
        fetched(&folder, READER)?,
        fetched(&folder, SPEEDSCOPE)?,
        fetched(&folder, firefox::PACKAGE)?,
    ) else {
        skip("exports are not opened: npm is not installed, or has no network");
        return Ok(());
    };
    let firefox = Firefox::new(&profiler, &folder);
    let browser = Browser::start()?;
    if browser.is_none() {
        skip("exports are not opened in speedscope: chromium or chromium-driver is not installed");
    }
    for export in &exports {
        for (form, suffix) in [
            ("pprof", "pb.gz"),
            ("speedscope", "speedscope.json"),
            ("firefox", "firefox.json"),
        ] {
            let file = folder.join(format!("{}.{suffix}", export.name));
            succeed(
                Command::new(target_folder().join("debug/profkit"))
                    .current_dir(&folder)
                    .arg("export")
                    .args(&export.arguments)
                    .args(["--to", form, "-o"])
                    .arg(&file),
            )?;
            match form {
                "pprof" => read(&reader, &file, export.lines)?,
                "firefox" => {
                    firefox.check(&file, export.counted)?;
                    continue;
                }
                _ => {}
            }
            if let Some(browser) = &browser {
                let shown = if form == "pprof" { "" } else { export.shown };
                open(browser, &speedscope, &file, shown)
                    .with_context(|| format!("{} in speedscope", file.display()))?;
            }
        }
    }
    println!("{} profiles exported and read", exports.len());
    Ok(())
}

fn exports(folder: &Path) -> Result<Vec<Export>> {
    fs::write(
        folder.join("counts.proftext"),
        ":ir\n:entry_first\nmain\n1\n2\n9\n5\n\n_ZN2ns5parseEi\n2\n1\n400\n\nidle\n3\n1\n0\n\n",
    )?;
    fs::write(
        folder.join("contexts.prof"),
        "[main:3 @ work]:500:20\n 1: 500\n[main:3 @ work:1 @ leaf]:100:5\n 1: 100\n[main]:50:1\n 3: 50\n",
    )?;
    let heap = fixture_path("heap");
    let [dump, debug] =
        ["heap.memprofraw", "heap.debug"].map(|name| heap.join(name).display().to_string());
    Ok(vec![
        Export {
            name: "counts",
            arguments: vec!["counts.proftext".to_owned()],
            lines: &[
                "counts/count executions/count",
                "main 14 9",
                "ns::parse(int) 400 400",
            ],
            shown: "counts of counts.proftext",
            counted: &[
                ("t-0", "main", 14, 14),
                ("t-0", "ns::parse(int)", 400, 400),
                ("t-1", "main", 9, 9),
            ],
        },
        Export {
            name: "contexts",
            arguments: vec!["contexts.prof".to_owned()],
            lines: &[
                "samples/count",
                "main;work 500",
                "main;work;leaf 100",
                "main 50",
            ],
            shown: "samples of contexts.prof",
            counted: &[
                ("t-0", "main", 50, 650),
                ("t-0", "work", 500, 600),
                ("t-0", "leaf", 100, 100),
            ],
        },
        Export {
            name: "heap",
            arguments: vec![dump, "--binaries".to_owned(), debug],
            lines: &["alloc_objects/count alloc_space/bytes"],
            shown: "alloc_space of ",
            counted: &[
                ("t-0", "main", 0, 35),
                ("t-1", "main", 0, 4220),
                ("t-1", "buffer(int)", 2000, 2000),
            ],
        },
    ])
}

/// Downloads and unpacks an npm package, unless this was done before. `None` if npm cannot fetch it. The packages are
/// tools of this check and no part of profkit.
pub fn fetched(folder: &Path, package: &str) -> Result<Option<PathBuf>> {
    // A name may begin with its owner: `@owner/name@version`.
    let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
    let home = folder.join(name.trim_start_matches('@').replace('/', "-"));
    if !home.join("package/package.json").exists() {
        fs::create_dir_all(&home)?;
        let Ok(packed) = Command::new("npm")
            .args(["pack", "--silent", package])
            .current_dir(&home)
            .output()
        else {
            return Ok(None);
        };
        if !packed.status.success() {
            return Ok(None);
        }
        let archive = String::from_utf8_lossy(&packed.stdout).trim().to_owned();
        let status = Command::new("tar")
            .arg("xzf")
            .arg(&archive)
            .current_dir(&home)
            .status()?;
        ensure!(status.success(), "{archive} cannot be unpacked");
    }
    Ok(Some(home.join("package")))
}

/// Reads a pprof file with the other reader, which must print all of `lines`.
fn read(reader: &Path, file: &Path, lines: &[&str]) -> Result<()> {
    let text = succeed(
        Command::new("node")
            .args(["-e", PRINT])
            .arg(reader)
            .arg(file),
    )?;
    let found: Vec<_> = text.lines().collect();
    if lines.len() > 1 {
        ensure!(
            found == lines,
            "{}: found {found:#?}, expected {lines:#?}",
            file.display()
        );
    } else {
        ensure!(
            found.first() == lines.first() && found.len() > 3,
            "{}: found {found:#?}",
            file.display()
        );
        ensure!(
            text.contains("main:") && text.contains(';'),
            "{}: no stacks with lines: {text}",
            file.display()
        );
    }
    Ok(())
}

/// Opens a file in speedscope as speedscope's own command does, and waits until the page shows a text.
fn open(browser: &Browser, speedscope: &Path, file: &Path, shown: &str) -> Result<()> {
    let name = file.file_name().context("no name")?.to_string_lossy();
    let script = file.with_extension("js");
    let data = STANDARD.encode(fs::read(file)?);
    fs::write(
        &script,
        format!("speedscope.loadFileFromBase64({name:?}, {data:?})"),
    )?;
    let index = speedscope.join("dist/release/index.html");
    browser.show(&index, &format!("#localProfilePath={}", script.display()))?;
    let wanted = if shown.is_empty() {
        name.as_ref()
    } else {
        shown
    };
    for _ in 0..200 {
        let text = browser.text("document.title + ' ' + document.body.innerText")?;
        ensure!(
            !text.contains("Something went wrong"),
            "speedscope cannot read the file"
        );
        if text.contains(wanted) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    bail!(
        "speedscope shows {}",
        browser.text("document.title + ' ' + document.body.innerText")?
    )
}
