//! `cargo xtask page`: tests the pages of `profkit report` in a browser. Every view of every kind of profile is opened,
//! sorted, searched and left, by mouse and by keyboard. axe-core checks that the pages are accessible. The types of the
//! script are checked.
pub mod bridges;
mod browser;
mod firefox;
mod tables;

use crate::mip::succeed;
use crate::steps::built_profkit;
use anyhow::{Context as _, Result, ensure};
use browser::{Browser, DOWN, ENTER, ESCAPE, RIGHT, TAB};
use profkit_testkit::{fixture_path, repo_root, skip, target_folder};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of a function that would become an HTML element if the page did not treat it as text.
const HOSTILE: &str = "</script><img src=x onerror=document.title='broken'>";

const AXE: &str = "axe-core@4.14.1";

/// Runs the checks; with `only_pictures`, makes the pictures of the README.
pub fn run(only_pictures: bool) -> Result<()> {
    let folder = target_folder().join("page");
    fs::create_dir_all(&folder)?;
    types()?;
    let Some(browser) = Browser::start()? else {
        require("the pages are not opened: chromium or chromium-driver is not installed")?;
        return Ok(());
    };
    let profkit = built_profkit()?;
    if only_pictures {
        return documented(&browser, &profkit, &folder);
    }
    let pages = pages(&profkit, &folder)?;
    let axe = axe(&folder)?;
    let mut problems = String::new();
    for page in &pages {
        visit(&browser, page, axe.as_deref(), &folder, &mut problems)
            .with_context(|| format!("{}", page.file.display()))?;
    }
    functions(&browser, &pages[0].file).context("the list of functions")?;
    hostile(&browser, &pages[0].file).context("a hostile name")?;
    pictures(&browser, &pages).context("pictures by keyboard")?;
    for page in &pages {
        let name = page.file.file_stem().unwrap_or_default();
        if name == "source" || name == "counted" {
            source(&browser, &page.file).with_context(|| format!("{}", page.file.display()))?;
        }
    }
    let logged = browser.logged()?;
    ensure!(logged.is_empty(), "the pages were not quiet:\n{logged}");
    ensure!(problems.is_empty(), "axe-core found:\n{problems}");
    println!(
        "{} pages, every view; screenshots in {}",
        pages.len(),
        folder.display()
    );
    Ok(())
}

/// Reports that a part of the check is skipped. This is an error on machines on which every part has to run.
fn require(text: &str) -> Result<()> {
    ensure!(std::env::var_os("PROFKIT_REQUIRE_LLVM").is_none(), "{text}");
    skip(text);
    Ok(())
}

/// Checks the types of the script.
fn types() -> Result<()> {
    let config = repo_root().join("crates/profkit-page/src/assets/tsconfig.json");
    let Ok(output) = Command::new("tsc").arg("-p").arg(&config).output() else {
        return require(
            "the types of the script are not checked: node-typescript is not installed",
        );
    };
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "the types of the page's script:\n{text}"
    );
    Ok(())
}

struct Page {
    file: PathBuf,
    views: &'static [&'static str],
}

/// Makes a page of each kind of profile.
fn pages(profkit: &Path, folder: &Path) -> Result<Vec<Page>> {
    let instr = |scale: u64| {
        let mut text = ":ir\n:temporal_prof_traces\n# Num Traces\n1\n# Stream Size\n1\n1\nmain,_ZN2ns5parseEi,_ZN2ns5writeEv\n".to_owned();
        let functions = [
            "main",
            "_ZN2ns5parseEi",
            "_ZN2ns5writeEv",
            "a.c;local",
            "_RNvC3lib3run",
            HOSTILE,
        ];
        for (at, name) in (1..).zip(functions) {
            let _ = write!(
                text,
                "{name}\n{at}\n3\n{}\n{}\n0\n1\n0\n1\n1\n_ZN2ns5parseEi:{}\n\n",
                at * 100,
                at * scale,
                at * 10
            );
        }
        for at in 0..500 {
            let _ = write!(text, "_ZN2ns4deep{}fn{at:03}Ev\n{at}\n1\n{}\n\n", 5, at % 7);
        }
        text
    };
    let sample = "main:700:1\n 1: 100\n 2.1: 200 parse:150 other:50\n 3: inner:400\n  1: 300\n  2: deeper:100\n   1: 100\nparse:90:10\n 1: 90\n";
    let contexts = "[main:3 @ work]:500:20\n 1: 500\n[main:3 @ work:1 @ leaf]:100:5\n 1: 100\n[main]:50:1\n 3: 50\n";
    // The source is tests/programs/inlined.c, whose debug info is among the fixtures.
    let source = "work:500:10\n 1: 10\n 4: 7\n 1: folded:400\n  2: 100\n  3: 90\n  3: twice:200\n   1: 200\nrare:3:3\n 1: 3\nother:9:1\n 1: 9\n";
    let counted = ":ir\nwork\n1\n2\n10\n490\n\ninlined.c;rare\n1\n1\n3\n\nother\n1\n1\n2\n\n";
    let tests = repo_root().join("tests");
    let program = tests.join("fixtures/debug_info/clang-22-dwarf-5.elf");
    let [program, programs] =
        [program, tests.join("programs")].map(|path| path.display().to_string());
    let with_source = |profile| vec![profile, "--binaries", &program, "--source", &programs];
    let heap = repo_root().join("tests/fixtures/heap");
    let files = [
        ("new.proftext", instr(1000)),
        ("old.proftext", instr(40)),
        ("flat.prof", sample.to_owned()),
        ("contexts.prof", contexts.to_owned()),
        ("source.prof", source.to_owned()),
        ("source.proftext", counted.to_owned()),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text)?;
    }
    let fixtures = repo_root().join("tests/fixtures/mip");
    for (command, files) in [
        ("create", &["mixed.mipmap"][..]),
        ("merge", &["mixed-1.mipraw", "mixed-2.mipraw"]),
    ] {
        let files = files.iter().map(|file| fixtures.join(file));
        succeed(
            Command::new(profkit)
                .current_dir(folder)
                .args(["mip", command, "-p", "runs.mip"])
                .args(files),
        )?;
    }
    let (dump, debug) = (heap.join("heap.memprofraw"), heap.join("heap.debug"));
    let [dump, debug] = [&dump, &debug].map(|path| path.display().to_string());
    let jobs: [(&str, Vec<&str>, &[&str]); 8] = [
        (
            "instr",
            vec!["new.proftext"],
            &["summary", "functions", "map", "start-up", "function/main"],
        ),
        (
            "diff",
            vec!["new.proftext", "old.proftext"],
            &[
                "summary",
                "what-changed",
                "functions",
                "map",
                "start-up",
                "function/ns::parse(int)",
            ],
        ),
        (
            "sample",
            vec!["flat.prof"],
            &[
                "summary",
                "functions",
                "map",
                "flame-graph",
                "function/main",
            ],
        ),
        (
            "contexts",
            vec!["contexts.prof"],
            &["summary", "functions", "map", "flame-graph"],
        ),
        (
            "heap",
            vec![&dump, "--binaries", &debug],
            &["summary", "heap"],
        ),
        (
            "mip",
            vec!["runs.mip"],
            &["summary", "functions", "map", "start-up"],
        ),
        (
            "source",
            with_source("source.prof"),
            &[
                "summary",
                "functions",
                "map",
                "flame-graph",
                "function/work",
            ],
        ),
        (
            "counted",
            with_source("source.proftext"),
            &["summary", "functions", "map", "function/work"],
        ),
    ];
    let mut pages = Vec::new();
    for (name, arguments, views) in jobs {
        let file = folder.join(format!("{name}.html"));
        succeed(
            Command::new(profkit)
                .current_dir(folder)
                .arg("report")
                .args(arguments)
                .arg("-o")
                .arg(&file),
        )?;
        pages.push(Page { file, views });
    }
    Ok(pages)
}

/// Opens all views of a page in a light window, a dark window and on two phones, and takes pictures. One of the phones
/// is narrow, because fonts differ between machines: a text that just fits on the wider phone here may not fit
/// elsewhere.
fn visit(
    browser: &Browser,
    page: &Page,
    axe: Option<&str>,
    folder: &Path,
    problems: &mut String,
) -> Result<()> {
    let name = page.file.file_stem().context("no name")?.to_string_lossy();
    for (mode, width, height, dark) in [
        ("light", 1200, 850, false),
        ("dark", 1200, 850, true),
        ("phone", 390, 800, false),
        ("narrow", 320, 640, false),
    ] {
        browser.look(width, height, dark)?;
        browser.open(&page.file, "")?;
        let shown = browser.run(
            "return [...document.querySelectorAll('#views a')].map((a) => a.hash.slice(1));",
        )?;
        let expected: Vec<_> = page
            .views
            .iter()
            .filter(|view| !view.contains('/'))
            .collect();
        let shown: Vec<_> = shown
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        ensure!(
            shown.iter().collect::<Vec<_>>() == expected,
            "found the views {shown:?}, expected {expected:?}"
        );
        for view in page.views {
            browser.run(&format!(
                "location.hash = '#{}';",
                view.replace("::", "%3A%3A")
            ))?;
            let view = view.split('/').next().unwrap_or(view);
            browser.wait(&format!("document.documentElement.dataset.view === '{view}' && document.querySelector('main h2')"))?;
            let wide = browser.text("document.documentElement.scrollWidth - innerWidth")?;
            ensure!(
                wide.parse::<i64>().is_ok_and(|wide| wide <= 0),
                "{view}, {mode}: the page is {wide} pixels too wide"
            );
            if mode == "narrow" {
                continue;
            }
            browser.picture(&folder.join(format!("{name}-{view}-{mode}.png")))?;
            if let Some(axe) = axe {
                browser.run(axe)?;
                let found = browser.run_async("return (await axe.run(document)).violations.map((one) => [one.impact, one.id, one.help, one.nodes[0].html].join(' | '));")?;
                for one in found
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                {
                    if one.starts_with("serious") || one.starts_with("critical") {
                        let _ = writeln!(problems, "{name} {view} {mode}: {one}");
                    }
                }
            }
        }
    }
    browser.look(1200, 850, false)
}

/// A JavaScript expression whose value is a list: the text of the first cell of each row in the list of functions.
const ROWS: &str = "[...document.querySelectorAll('main tbody tr:not(.space)')].map((row) => row.cells[0].textContent)";

/// Sorts, searches and follows links by keyboard.
fn functions(browser: &Browser, file: &Path) -> Result<()> {
    let first = |browser: &Browser| browser.text(&format!("{ROWS}[0]"));
    browser.open(file, "#functions")?;
    ensure!(
        first(browser)? == HOSTILE,
        "the function with the largest sum is not first: {}",
        first(browser)?
    );
    browser.click("th button")?;
    ensure!(
        browser.text("document.querySelector('th[aria-sort]').textContent")? == "Function",
        "not sorted by name"
    );
    ensure!(
        first(browser)? == HOSTILE,
        "the first name is {}",
        first(browser)?
    );
    browser.click("th button")?;
    ensure!(
        first(browser)? == "ns::write()",
        "the last name is {}",
        first(browser)?
    );
    browser.press(&["/"])?;
    browser.press(&["fn0", "01"])?;
    browser.wait(&format!("{ROWS}.length === 1"))?;
    ensure!(
        browser
            .text("document.querySelector('.status').textContent")?
            .starts_with("1 of 506 functions"),
        "the search says something else"
    );
    browser.wait("location.hash.includes('q=fn001')")?;
    browser.run("const input = document.querySelector('input'); input.value = '/^ns::deep.*fn49\\\\d/'; input.dispatchEvent(new Event('input'));")?;
    browser.wait(&format!("{ROWS}.length === 10"))?;
    // The arrow keys move from row to row.
    browser.run("document.querySelector('.scroll').focus();")?;
    browser.press(&[DOWN, DOWN, ENTER])?;
    browser.wait("document.documentElement.dataset.view === 'function'")?;
    ensure!(
        browser
            .text("document.querySelector('main h2').textContent")?
            .starts_with("ns::deep"),
        "another function was opened"
    );
    browser.run("history.back();")?;
    browser.wait("document.documentElement.dataset.view === 'functions'")?;
    browser.wait(&format!("{ROWS}.length === 10"))?;
    browser.open(file, "#functions")?;
    browser.press(&[TAB, ENTER])?;
    browser.wait("document.documentElement.dataset.view === 'summary'")?;
    browser.open(file, "#function/ns%3A%3Awrite()")?;
    ensure!(
        browser.text("document.querySelector('main a').textContent")? == "ns::parse(int)",
        "the call target has no link"
    );
    browser.click("main a")?;
    browser.wait("document.querySelector('h2').textContent === 'ns::parse(int)'")
}

/// Checks that a name that looks like HTML stays text.
fn hostile(browser: &Browser, file: &Path) -> Result<()> {
    for view in [
        "#summary",
        "#functions",
        "#map",
        &format!(
            "#function/{}",
            HOSTILE.replace('%', "%25").replace('#', "%23")
        ),
    ] {
        browser.open(file, view)?;
        let state = browser.text("document.querySelectorAll('img').length + document.title")?;
        ensure!(
            state == "0new.proftext",
            "{view}: the name became an element: {state}"
        );
    }
    ensure!(
        browser.text("document.querySelector('h2').textContent")? == HOSTILE,
        "the name is not shown"
    );
    Ok(())
}

/// Filters functions by source file, and looks at the source code of one function.
fn source(browser: &Browser, file: &Path) -> Result<()> {
    browser.open(file, "#functions?file=inlined")?;
    browser.wait(&format!(
        "{ROWS}.join() === 'work,rare' || {ROWS}.join() === 'work,inlined.c;rare'"
    ))?;
    browser.run("const input = document.querySelectorAll('input')[1]; input.value = '/[/'; input.dispatchEvent(new Event('input'));")?;
    browser.wait("document.querySelector('.status').textContent.startsWith('The pattern')")?;
    browser.open(file, "#function/work")?;
    let row = "[...document.querySelectorAll('section tr')].map((row) => [...row.cells].map((cell) => cell.textContent).join('|'))";
    let rows = browser.text(&format!("{row}.join('\\n')"))?;
    let samples = file.ends_with("source.html");
    let expected: &[&str] = if samples {
        &[
            "Line|Samples|Source",
            "19||__attribute__((noinline)) int work(int count) {",
            "20|10|  int result = folded(count);",
            "9|200|  return value * 2 + (value > 5 ? sink : 1);",
        ]
    } else {
        &[
            "Line|Sum|Source",
            "19|500|__attribute__((noinline)) int work(int count) {",
            "20||  int result = folded(count);",
        ]
    };
    for line in expected {
        ensure!(
            rows.lines().any(|row| row == *line),
            "the source lacks {line:?}:\n{rows}"
        );
    }
    browser.open(file, "#function/other")?;
    browser.wait("[...document.querySelectorAll('.status')].some((one) => one.textContent === 'The page does not have the source of this function.')")
}

/// Checks that the keyboard can move through the flame graph and the other pictures of a page.
fn pictures(browser: &Browser, pages: &[Page]) -> Result<()> {
    let live = "document.getElementById('live').textContent";
    browser.open(&pages[0].file, "#map")?;
    browser.run("document.querySelector('canvas').focus();")?;
    browser.press(&[RIGHT])?;
    let said = browser.text(live)?;
    ensure!(said.contains("% of counts"), "the map said {said:?}");
    for page in pages.iter().filter(|page| {
        page.views
            .iter()
            .any(|view| ["flame-graph", "heap"].contains(view))
    }) {
        browser.open(&page.file, "#flame")?;
        browser.run("document.querySelector('canvas').focus();")?;
        browser.press(&[DOWN, ENTER])?;
        let said = browser.text(live)?;
        let hottest = if page.file.ends_with("source.html") {
            "work: "
        } else if page.views.contains(&"heap") {
            // Memory that libstdc++ takes for exceptions, without its library.
            "build id "
        } else {
            "main: "
        };
        ensure!(said.starts_with(hottest), "the flame graph said {said:?}");
        browser.press(&[ESCAPE])?;
        ensure!(
            browser.text(live)?.starts_with("all: "),
            "Escape did not go back"
        );
        browser.click("button[aria-pressed]")?;
        ensure!(
            browser.text("document.querySelector('button[aria-pressed]').ariaPressed")? == "true",
            "not inverted"
        );
    }
    Ok(())
}

/// Makes the pictures of the README and the guide. They show the pages of lua, which `cargo xtask two-commits`
/// profiled, and the page of a heap profile.
fn documented(browser: &Browser, profkit: &Path, folder: &Path) -> Result<()> {
    let work = target_folder().join("two-commits/work");
    for (name, profile) in [
        ("lua-old", "lua-old-fprofile-generate"),
        ("lua-new", "lua-new-fprofile-generate"),
    ] {
        let from = work.join(format!("{profile}.profdata"));
        fs::copy(&from, folder.join(format!("{name}.profdata")))
            .with_context(|| format!("{}: run cargo xtask two-commits first", from.display()))?;
    }
    let pictures = repo_root().join("docs/pictures");
    // The page shows the path of a profile, so the files are named without the folders of this machine.
    for name in ["heap.memprofraw", "heap.debug"] {
        fs::copy(fixture_path("heap").join(name), folder.join(name))?;
    }
    let pages: [(&str, &[&str]); 2] = [
        ("lua", &["lua-new.profdata", "lua-old.profdata"]),
        ("heap", &["heap.memprofraw", "--binaries", "heap.debug"]),
    ];
    for (name, arguments) in pages {
        succeed(
            Command::new(profkit)
                .current_dir(folder)
                .arg("report")
                .args(arguments)
                .args(["-o", &format!("{name}.html")]),
        )?;
    }
    let views = [
        ("page-functions", "lua", "#functions", false),
        ("page-changes", "lua", "#what-changed", false),
        ("page-map", "lua", "#map", true),
        ("page-heap", "heap", "#flame", false),
    ];
    for (name, page, view, dark) in views {
        browser.look(1000, 640, dark)?;
        browser.open(&folder.join(format!("{page}.html")), view)?;
        if name == "page-map" {
            browser.run("const choice = document.querySelector('select'); choice.value = 'sum'; choice.dispatchEvent(new Event('change'));")?;
        }
        browser.picture(&pictures.join(format!("{name}.png")))?;
    }
    Ok(())
}

/// Returns the script of axe-core, which is fetched once. It is a tool of this check and no part of profkit.
fn axe(folder: &Path) -> Result<Option<String>> {
    let Some(package) = bridges::fetched(folder, AXE)? else {
        // A failed download is not an error in CI, because npm's registry may not be reachable from CI.
        eprintln!(
            "skipped: axe-core does not look at the pages: npm is not installed, or has no network"
        );
        return Ok(None);
    };
    Ok(Some(fs::read_to_string(package.join("axe.min.js"))?))
}
