//! A number has one meaning: every view of a profile shows the same value under the same name.
//!
//! Each test opens one profile in all views (terminal, JSON, CSV, tables, the data of the page and its HTML, pprof,
//! speedscope, the Firefox Profiler, folded stacks, the report of a merge, `doctor`, `diff`, `overlap`, `match`), reads the
//! numbers as a reader of that format does, and compares all that have the same name.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]
use base64::Engine as _;
use profkit_testkit::repo_root;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::Command;
use tempfile::TempDir;

/// A profile that is opened in all views, and the numbers that were found.
struct Views {
    folder: TempDir,
    file: String,
    /// Options that name the binaries of a heap profile.
    binaries: Vec<String>,
    /// The values by the name of the number; each with the view that shows it.
    found: BTreeMap<String, Vec<(String, String)>>,
}

/// The numbers of functions by name. Several functions of one name are added to one list.
type Functions = BTreeMap<String, Vec<u64>>;

impl Views {
    fn new(file: &str, binaries: &[&str]) -> Self {
        let path = |name: &str| {
            repo_root()
                .join("tests/fixtures")
                .join(name)
                .display()
                .to_string()
        };
        let binaries = binaries
            .iter()
            .flat_map(|one| ["--binaries".to_owned(), path(one)]);
        Views {
            folder: tempfile::tempdir().expect("a folder"),
            file: path(file),
            binaries: binaries.collect(),
            found: BTreeMap::new(),
        }
    }

    /// Runs the command in the scratch folder, with the binaries if `with_binaries` is set.
    fn run_with(&self, arguments: &[&str], with_binaries: bool) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profkit"));
        command.args(arguments).current_dir(self.folder.path());
        if with_binaries {
            command.args(&self.binaries);
        }
        let output = command.output().expect("profkit runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "profkit {arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.run_with(arguments, true)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).expect("JSON")
    }

    fn export(&self, to: &str, more: &[&str]) -> Vec<u8> {
        let output = self.folder.path().join(format!("exported.{to}"));
        let name = output.display().to_string();
        let arguments = [&["export", &self.file, "--to", to, "-o", &name], more].concat();
        self.run(&arguments);
        std::fs::read(output).expect("an export")
    }

    fn add(&mut self, name: &str, view: &str, value: impl ToString) {
        let values = self.found.entry(name.to_owned()).or_default();
        values.push((view.to_owned(), value.to_string()));
    }

    /// Adds the numbers of all functions above 0, their sum, and how many functions there are.
    fn add_functions(&mut self, view: &str, what: &str, functions: &Functions) {
        let mut total = 0u64;
        for (name, values) in functions {
            let mut values: Vec<u64> = values.iter().copied().filter(|&one| one > 0).collect();
            values.sort_unstable();
            total += values.iter().sum::<u64>();
            if !values.is_empty() {
                let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
                self.add(&format!("{what} of {name}"), view, texts.join(" and "));
            }
        }
        self.add(&format!("all {what}"), view, total);
    }

    /// Compares the values. At least `least` views must have each of the numbers in `wanted`.
    #[track_caller]
    fn check(&self, least: usize, wanted: &[&str]) {
        let mut wrong = Vec::new();
        for (name, values) in &self.found {
            if values.iter().any(|(_, value)| *value != values[0].1) {
                let shown = values
                    .iter()
                    .map(|(view, value)| format!("    {view}: {value}\n"));
                wrong.push(format!("{name}\n{}", shown.collect::<String>()));
            }
        }
        assert!(
            wrong.is_empty(),
            "{}: views differ\n{}",
            self.file,
            wrong.concat()
        );
        for name in wanted {
            let views = self.found.get(*name).map_or(0, Vec::len);
            assert!(
                views >= least,
                "{}: {name} is in {views} views only",
                self.file
            );
        }
    }
}

/// The last or only number of a line of facts: `  functions  18  15 entered`.
fn fact(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| {
        let rest = line.strip_prefix("  ")?.strip_prefix(label)?;
        rest.starts_with(' ').then_some(rest)
    })?;
    number(line.split_whitespace().next()?)
}

fn number(text: &str) -> Option<u64> {
    text.replace(',', "").parse().ok()
}

fn two_stages(text: &str) -> bool {
    text.contains("Summary of context-sensitive records")
}

/// The rows of the first table of functions in a text: sum, share, name.
fn ranking(text: &str) -> Vec<(u64, String, String)> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Top "));
    let title = lines.nth(1).expect("the titles of the table");
    // The names begin where the last title does.
    let at = title.rfind("  ").expect("columns") + 2;
    let rows = lines.take_while(|line| !line.is_empty());
    rows.map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let name = line[at..].split(" (hash ").next().expect("a name");
        (
            number(cells[0]).expect("a sum"),
            cells[1].to_owned(),
            name.to_owned(),
        )
    })
    .collect()
}

/// The rows of the table below a heading: the text of each column of numbers by its title, and the name under `function`.
fn table_below(text: &str, heading: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with(heading));
    let Some(titles) = lines.nth(1) else {
        return Vec::new();
    };
    let at = titles.rfind("  ").expect("columns") + 2;
    let titles: Vec<&str> = titles
        .split("  ")
        .map(str::trim)
        .filter(|title| !title.is_empty())
        .collect();
    let rows = lines.take_while(|line| !line.is_empty());
    rows.map(|line| {
        let cells = line.split_whitespace().map(str::to_owned);
        let titles = titles.iter().map(|title| (*title).to_owned());
        let mut row: BTreeMap<String, String> = titles.zip(cells).collect();
        let name = line[at..].split(" (hash ").next().expect("a name");
        row.insert("function".to_owned(), name.to_owned());
        row
    })
    .collect()
}

/// The numbers of a line of facts after its label, and the remark: `  functions  18  15 entered (83.3%)`.
fn fact_with_remark(text: &str, label: &str) -> Option<(u64, u64, String)> {
    let line = text.lines().find_map(|line| {
        let rest = line.strip_prefix("  ")?.strip_prefix(label)?;
        rest.starts_with(' ').then_some(rest)
    })?;
    let mut words = line.split_whitespace();
    let first = number(words.next()?)?;
    let part = number(words.next()?)?;
    let share = line.rsplit_once('(')?.1.strip_suffix(')')?;
    Some((first, part, share.to_owned()))
}

/// A share as people read it, for shares that no rule about the ends of the scale concerns.
fn rounded(share: f64) -> Option<String> {
    (0.001..0.999)
        .contains(&share)
        .then(|| format!("{:.1}%", share * 100.0))
}

/// The rows of a CSV file by column.
fn csv(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(|line| {
        let mut cells = vec![String::new()];
        let mut quoted = false;
        for one in line.chars() {
            match one {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                _ => cells.last_mut().expect("a cell").push(one),
            }
        }
        cells
    });
    let titles = lines.next().expect("titles");
    lines
        .map(|cells| titles.iter().cloned().zip(cells).collect())
        .collect()
}

/// A name for people: the demangled one where there is one.
fn name_of(row: &BTreeMap<String, String>) -> String {
    let demangled = row.get("demangled").filter(|name| !name.is_empty());
    demangled.unwrap_or(&row["function"]).clone()
}

fn json_name(row: &Value) -> String {
    let name = row["demangled"].as_str().or(row["function"].as_str());
    name.expect("a name").to_owned()
}

fn by_name(rows: impl IntoIterator<Item = (String, u64)>) -> Functions {
    let mut functions = Functions::new();
    for (name, value) in rows {
        functions.entry(name).or_default().push(value);
    }
    functions
}

/// The data blocks of a page, read as its script reads them.
struct PageData(String);

impl PageData {
    fn block(&self, name: &str) -> Vec<u8> {
        let start = format!("id=\"b-{name}\">");
        let Some((_, rest)) = self.0.split_once(&start) else {
            return Vec::new();
        };
        let text = rest.split('<').next().expect("the end of a block");
        let packed = base64::engine::general_purpose::STANDARD
            .decode(text)
            .expect("base64");
        let mut bytes = Vec::new();
        let mut inflate = flate2::read::DeflateDecoder::new(&*packed);
        inflate.read_to_end(&mut bytes).expect("deflate");
        bytes
    }

    fn facts(&self) -> Value {
        serde_json::from_slice(&self.block("facts")).expect("facts")
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        let bytes = self.block(name);
        let mut rest = bytes.as_slice();
        let mut list = Vec::new();
        while !rest.is_empty() {
            list.push(leb128(&mut rest));
        }
        list
    }

    fn names(&self) -> Vec<String> {
        let bytes = self.block("names");
        let mut rest = bytes.as_slice();
        let count = leb128(&mut rest);
        leb128(&mut rest);
        let mut before: Vec<u8> = Vec::new();
        (0..count)
            .map(|_| {
                let shared = usize::try_from(leb128(&mut rest)).expect("a size");
                let own = usize::try_from(leb128(&mut rest)).expect("a size");
                before.truncate(shared);
                before.extend_from_slice(&rest[..own]);
                rest = &rest[own..];
                String::from_utf8(before.clone()).expect("UTF-8")
            })
            .collect()
    }

    /// The functions with their sums.
    fn sums(&self) -> Functions {
        by_name(self.names().into_iter().zip(self.numbers("sum")))
    }

    /// How many functions never ran, are cold, are warm and are hot.
    fn heat(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        self.block("flags")
            .iter()
            .for_each(|flags| counts[usize::from(flags >> 3 & 3)] += 1);
        counts
    }

    /// The rows of a table in the HTML: the texts of its cells.
    fn table(&self, title: &str) -> Vec<Vec<String>> {
        let Some((_, rest)) = self.0.split_once(&format!("<h3>{title}</h3>")) else {
            return Vec::new();
        };
        let body = rest
            .split("<tbody>")
            .nth(1)
            .and_then(|rest| rest.split("</tbody>").next());
        let rows = body.expect("a table").split("<tr>").skip(1);
        let text = |cell: &str| {
            let mut plain = String::new();
            for (at, part) in cell.split('<').enumerate() {
                plain += if at == 0 {
                    part
                } else {
                    part.split('>').nth(1).unwrap_or_default()
                };
            }
            plain
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&#39;", "'")
                .replace("&amp;", "&")
        };
        rows.map(|row| {
            let cells = row.split("<td class=").skip(1);
            let cells = cells.filter_map(|cell| cell.split_once('>')?.1.split("</td>").next());
            cells.map(text).collect()
        })
        .collect()
    }

    /// The value of a fact in the summary.
    fn fact(&self, name: &str) -> Option<String> {
        let (_, rest) = self.0.split_once(&format!("<dt>{name}</dt><dd>"))?;
        Some(rest.split("</dd>").next()?.to_owned())
    }
}

fn leb128(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte & 128 == 0 {
            break;
        }
    }
    value
}

/// The fields of a protobuf message: number, value, bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let key = leb128(&mut bytes);
        let value = leb128(&mut bytes);
        let mut text = &[][..];
        if key & 7 == 2 {
            (text, bytes) = bytes.split_at(usize::try_from(value).expect("a size"));
        }
        list.push((key >> 3, value, text));
    }
    list
}

/// The sample types of a file of pprof, each with the sums by the innermost function.
fn pprof(packed: &[u8]) -> Vec<(String, Functions)> {
    let mut bytes = Vec::new();
    let mut inflate = flate2::read::GzDecoder::new(packed);
    inflate.read_to_end(&mut bytes).expect("gzip");
    let whole = fields(&bytes);
    let of = |field: u64| {
        whole
            .iter()
            .filter(move |one| one.0 == field)
            .map(|one| one.2)
    };
    let strings: Vec<String> = of(6)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    let string = |at: u64| strings[usize::try_from(at).expect("an index")].clone();
    let first = |message: &[u8], field: u64| {
        let found = fields(message).into_iter().find(|one| one.0 == field);
        found.map_or(0, |one| one.1)
    };
    let names: BTreeMap<u64, String> = of(5)
        .map(|one| (first(one, 1), string(first(one, 2))))
        .collect();
    let places: BTreeMap<u64, String> = of(4)
        .map(|one| {
            let line = fields(one)
                .into_iter()
                .find(|one| one.0 == 4)
                .expect("a line")
                .2;
            (first(one, 1), names[&first(line, 1)].clone())
        })
        .collect();
    let types = of(1).enumerate().map(|(at, one)| {
        let rows = of(2).map(|sample| {
            let parts = fields(sample);
            let list = |field: u64| {
                let mut bytes = parts.iter().find(|one| one.0 == field).expect("a list").2;
                let mut list = Vec::new();
                while !bytes.is_empty() {
                    list.push(leb128(&mut bytes));
                }
                list
            };
            (places[&list(1)[0]].clone(), list(2)[at])
        });
        (string(first(one, 1)), by_name(rows))
    });
    types.collect()
}

/// The profiles of a file of speedscope, each with the sums by the innermost function.
fn speedscope(text: &[u8]) -> Vec<(String, Functions)> {
    let file: Value = serde_json::from_slice(text).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    let profiles = file["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(|profile| {
            let name = profile["name"]
                .as_str()
                .expect("a name")
                .split(" of ")
                .next()
                .expect("a word");
            let stacks = profile["samples"].as_array().expect("stacks").iter();
            let weights = profile["weights"].as_array().expect("weights").iter();
            let rows = stacks.zip(weights).map(|(stack, weight)| {
                let frame = stack
                    .as_array()
                    .and_then(|stack| stack.last()?.as_u64())
                    .expect("a frame");
                let frame = &frames[usize::try_from(frame).expect("an index")];
                (
                    frame["name"].as_str().expect("a name").to_owned(),
                    weight.as_u64().expect("a weight"),
                )
            });
            (name.to_owned(), by_name(rows))
        });
    profiles.collect()
}

/// The sum of all numbers in folded stacks.
fn folded(text: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .map(|line| number(line.rsplit(' ').next().expect("a number")).expect("a number"))
        .sum()
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

impl Views {
    /// Adds all numbers of the terminal beside those of the JSON.
    fn add_terminal(&mut self, text: &str, json: &Value, sum: &str) {
        let tables = [("Top ", sum, "share"), ("Top ", "self", "self_share")];
        let second = text.find("\nTop ").and_then(|first| {
            text[first + 1..]
                .find("\nTop ")
                .map(|at| &text[first + 1 + at..])
        });
        for ((heading, member, share), text) in tables.into_iter().zip([Some(text), second]) {
            let Some(text) = text else { continue };
            let rows = table_below(text, heading);
            let title = rows.first().and_then(|row| {
                ["sum", "samples", "calls"]
                    .into_iter()
                    .find(|title| row.contains_key(*title))
            });
            let title = title.expect("a column of sums");
            let value = |row: &BTreeMap<String, String>| number(&row[title]).expect("a number");
            let own = by_name(rows.iter().map(|row| (row["function"].clone(), value(row))));
            self.add_functions("terminal, all columns", member, &own);
            let all = json["hot"].as_array().expect("hot functions").iter();
            let stated = all.map(|row| (json_name(row), row[member].as_u64().unwrap_or(0)));
            self.add_functions("JSON, all columns", member, &by_name(stated));
            let whole: u64 = json["hot"]
                .as_array()
                .expect("hot functions")
                .iter()
                .filter_map(|row| row[sum].as_u64())
                .sum();
            let mut before = 0;
            for (at, row) in rows.iter().enumerate() {
                before += value(row);
                let name = format!("{share} of row {at}");
                if let Some(part) = rounded(value(row) as f64 / whole as f64) {
                    self.add(&name, "terminal", &row["share"]);
                    self.add(&name, "computed", part);
                }
                let name = format!("{share} together of row {at}");
                if let Some(part) = rounded(before as f64 / whole as f64) {
                    self.add(&name, "terminal", &row["together"]);
                    self.add(&name, "computed", part);
                }
                if let Some(total) = row.get("header total") {
                    let name = format!("header total of {}", row["function"]);
                    self.add(
                        &name,
                        &format!("terminal, {share}"),
                        number(total).expect("a number"),
                    );
                    let function = json["hot"].as_array().into_iter().flatten();
                    let function = function
                        .clone()
                        .find(|one| json_name(one) == row["function"]);
                    self.add(
                        &name,
                        &format!("JSON, {share}"),
                        &function.expect("the row")["header_total"],
                    );
                }
            }
        }
        if two_stages(text) {
            return;
        }
        let (summary, totals) = (&json["summary"], &json["totals"]);
        for (label, stated) in [
            ("largest first counter", &summary["max_function_count"]),
            ("largest other counter", &summary["max_internal_count"]),
        ] {
            if let Some(found) = fact(text, label) {
                self.add(label, "terminal", found);
                self.add(label, "JSON", stated);
            }
        }
        for (label, stated, part) in [
            (
                "functions",
                &summary["functions"],
                &totals["functions_entered"],
            ),
            (
                "counters",
                &summary["counters"],
                &totals["counters_above_zero"],
            ),
        ] {
            let Some((found, above, share)) = fact_with_remark(text, label) else {
                continue;
            };
            if totals.is_null() {
                continue;
            }
            let name = format!("{label} in the summary");
            self.add(&name, "terminal", format!("{above} of {found}"));
            self.add(&name, "JSON", format!("{part} of {stated}"));
            if let Some(text) = rounded(above as f64 / found as f64) {
                self.add(&format!("share of {label} that ran"), "terminal", share);
                self.add(&format!("share of {label} that ran"), "computed", text);
            }
        }
    }

    /// Adds the views in which all profiles with functions are alike. `sum` is the name of the column with the number of
    /// each function; `unit` the name of the number in stacks.
    fn all_with_functions(&mut self, sum: &str, unit: &str, heat: bool) {
        let file = self.file.clone();
        // The terminal.
        let text = self.run(&["show", &file, "--top", "100000"]);
        let rows = ranking(&text);
        let names = rows.iter().map(|(sum, _, name)| (name.clone(), *sum));
        self.add_functions("terminal", unit, &by_name(names));
        for (_, share, name) in &rows {
            if share.starts_with(|one: char| one.is_ascii_digit()) && share != "100.0%" {
                self.add_share(name, "terminal", share.clone());
            }
        }
        // In a profile with two stages, the text has a summary of each.
        if let Some(functions) = fact(&text, "functions").filter(|_| !two_stages(&text)) {
            self.add("functions", "terminal", functions);
        }
        if heat {
            for class in ["hot", "warm", "cold", "never ran"] {
                self.add(class, "terminal", fact(&text, class).expect("a class"));
            }
        }
        // JSON.
        let json = self.json(&["show", &file, "--top", "100000", "--format", "json"]);
        let stated = match &json["totals"]["records"] {
            Value::Null => &json["summary"]["functions"],
            records => records,
        };
        self.add("functions", "JSON", stated);
        self.add_terminal(&text, &json, sum);
        let hot = json["hot"].as_array().expect("hot functions");
        let of = |row: &Value| (json_name(row), row[sum].as_u64().expect("a sum"));
        self.add_functions("JSON", unit, &by_name(hot.iter().map(of)));
        for row in hot {
            if let Some(share) = rounded(row["share"].as_f64().expect("a share")) {
                self.add_share(&json_name(row), "JSON", share);
            }
        }
        if heat {
            for (class, word) in [
                ("hot", "hot"),
                ("warm", "warm"),
                ("cold", "cold"),
                ("never ran", "never_ran"),
            ] {
                self.add(class, "JSON", &json["heat"][word]);
            }
        }
        // CSV, and the table in CSV and JSON.
        let rows = csv(&self.run(&["show", &file, "--format", "csv"]));
        let value = |row: &BTreeMap<String, String>| row[sum].parse().unwrap_or(0);
        self.add("functions", "CSV", rows.len());
        self.add_functions(
            "CSV",
            unit,
            &by_name(rows.iter().map(|row| (name_of(row), value(row)))),
        );
        let rows = csv(&String::from_utf8_lossy(&self.export("csv", &[])));
        self.add("functions", "table", rows.len());
        self.add_functions(
            "table",
            unit,
            &by_name(rows.iter().map(|row| (name_of(row), value(row)))),
        );
        if heat {
            for class in ["hot", "warm", "cold", "never ran"] {
                self.add(
                    class,
                    "table",
                    rows.iter().filter(|row| row["heat"] == class).count(),
                );
            }
        }
        let table: Value = serde_json::from_slice(&self.export("json", &[])).expect("JSON");
        let rows = table["rows"].as_array().expect("rows");
        self.add("functions", "JSON table", rows.len());
        let of = |row: &Value| (json_name(row), row[sum].as_u64().unwrap_or(0));
        self.add_functions("JSON table", unit, &by_name(rows.iter().map(of)));
        self.add("kind", "JSON table", &table["kind"]);
        self.add("kind", "JSON", &json["file"]["kind"]);
        if !json["file"]["instrumentation"].is_null() {
            self.add(
                "instrumentation",
                "JSON",
                texts(&json["file"]["instrumentation"]).join(", "),
            );
            self.add(
                "instrumentation",
                "JSON table",
                texts(&table["instrumentation"]).join(", "),
            );
        }
        self.page(unit, heat);
        self.stacks(unit);
        // Comparisons with itself.
        let diff = self.json(&["diff", &file, &file, "--format", "json"]);
        self.add("kind", "diff", &diff["kind"]);
        let overlap = self.json(&["overlap", &file, &file, "--format", "json"]);
        self.add("kind", "overlap", &overlap["kind"]);
        for (view, side) in [("diff", &diff["old"]), ("overlap", &overlap["profiles"][1])] {
            self.add("functions", view, &side["functions"]);
            if diff["unit"] == unit {
                self.add(&format!("all {unit}"), view, &side["total"]);
            }
        }
        let matched = self.json(&["match", &file, &file, "--format", "json"]);
        self.add(&format!("all {unit}"), "match", &matched["counts"]["total"]);
        self.add(
            &format!("all {unit}"),
            "match, matched",
            &matched["counts"]["matched"],
        );
    }

    fn add_share(&mut self, name: &str, view: &str, share: String) {
        // Functions of one name have several shares; those of the first rows are compared.
        let name = format!("share of {name}");
        let seen = |values: &Vec<(String, String)>| values.iter().any(|(other, _)| other == view);
        if !self.found.get(&name).is_some_and(seen) {
            self.add(&name, view, share);
        }
    }

    fn page(&mut self, unit: &str, heat: bool) {
        let page = self.folder.path().join("page.html");
        let name = page.display().to_string();
        self.run(&["report", &self.file.clone(), "-o", &name]);
        let page = PageData(std::fs::read_to_string(page).expect("a page"));
        let facts = page.facts();
        self.add("functions", "page", &facts["functions"]);
        self.add(
            &format!("all {unit}"),
            "facts of the page",
            facts["total"].as_f64().expect("a total"),
        );
        self.add_functions("page", unit, &page.sums());
        assert_eq!(facts["heat"], heat, "{}", self.file);
        if heat {
            let [never, cold, warm, hot] = page.heat();
            for (class, count) in [
                ("hot", hot),
                ("warm", warm),
                ("cold", cold),
                ("never ran", never),
            ] {
                self.add(class, "page", count);
            }
        }
        // The first view has the ten hottest functions.
        let rows = page.table("Hottest functions");
        assert!(
            !rows.is_empty(),
            "{}: the first view has no functions",
            self.file
        );
        let sums = page.sums();
        for row in rows.iter().take(10) {
            let sum = number(&row[1]).expect("a sum");
            let known = sums.get(&row[0]).is_some_and(|sums| sums.contains(&sum));
            assert!(known, "{}: the first view has {row:?}", self.file);
            if row[2].starts_with(|one: char| one.is_ascii_digit()) && row[2] != "100.0%" {
                self.add_share(&row[0], "first view of the page", row[2].clone());
            }
        }
        if let Some(functions) = page.fact("Functions") {
            let count = functions
                .split(';')
                .next()
                .and_then(number)
                .expect("a number");
            self.add("functions", "HTML of the page", count);
        }
    }

    /// Stacks have samples of own lines, so only the sums over all functions are compared for sample profiles.
    fn stacks(&mut self, unit: &str) {
        let (pprof, speedscope) = (
            pprof(&self.export("pprof", &[])),
            speedscope(&self.export("speedscope", &[])),
        );
        for (view, list) in [("pprof", pprof), ("speedscope", speedscope)] {
            assert_eq!(
                list[0].0, unit,
                "{}: {view} begins with another number",
                self.file
            );
            for (what, functions) in list {
                if what == "samples" {
                    let total = functions.values().flatten().sum::<u64>();
                    self.add("all samples", view, total);
                } else {
                    self.add_functions(view, &what, &functions);
                }
            }
        }
        let total = folded(&self.export("folded", &[]));
        self.add(&format!("all {unit}"), "folded", total);
        let firefox: Value = serde_json::from_slice(&self.export("firefox", &[])).expect("JSON");
        let weights = firefox["threads"][0]["samples"]["weight"]
            .as_array()
            .expect("weights");
        let total = weights.iter().filter_map(Value::as_u64).sum::<u64>();
        self.add(&format!("all {unit}"), "firefox", total);
    }

    /// Adds what a merge of the file alone, and `doctor` about its result, say.
    fn merged(&mut self, extension: &str) {
        let out = format!("merged.{extension}");
        let file = self.file.clone();
        let report = self.folder.path().join("report.json");
        self.run_with(
            &["merge", &file, "-o", &out, "--report", "report.json"],
            false,
        );
        let report: Value =
            serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
        self.add(
            "functions",
            "report of merge",
            &report["outputs"][0]["functions"],
        );
        self.add(
            "functions",
            "totals of merge",
            &report["totals"]["functions"],
        );
        for (view, path) in [("doctor", file.as_str()), ("doctor, merged", &out)] {
            let found = &self.json_plain(&["doctor", path, "--format", "json"])["files"][0];
            if let Some(functions) = found["functions"].as_u64() {
                self.add("functions", view, functions);
            }
        }
    }

    fn json_plain(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run_with(arguments, false)).expect("JSON")
    }
}

fn instr(file: &str) -> Views {
    let mut views = Views::new(file, &[]);
    views.all_instr();
    views
}

impl Views {
    fn all_instr(&mut self) {
        self.all_with_functions("sum", "counts", true);
        self.merged("profdata");
        let file = self.file.clone();
        let json = self.json(&["show", &file, "--format", "json"]);
        self.add("all counts", "totals in JSON", &json["totals"]["sum"]);
        let text = self.run(&["show", &file]);
        if !two_stages(&text) {
            let sum = &json["summary"]["total_count"];
            self.add("all counts", "summary in JSON", sum);
            let sum = fact(&text, "sum of counters").expect("a sum");
            self.add("all counts", "summary in the terminal", sum);
        }
        let matched = self.json(&["match", &file, &file, "--format", "json"]);
        let functions = &matched["functions"];
        self.add("functions", "match", &functions["total"]);
        self.add("functions", "match, matched", &functions["matched"]);
        let diff = self.json(&["diff", &file, &file, "--format", "json"]);
        self.add("functions", "diff, unchanged", &diff["unchanged"]);
    }
}

#[test]
fn of_a_front_end_profile() {
    let views = instr("indexed/clang-22-fe-shapes.profdata");
    views.check(11, &["functions", "all counts"]);
    views.check(4, &["hot", "warm", "cold", "never ran"]);
    // The first counter counts calls.
    views.check(2, &["all executions"]);
}

#[test]
fn of_an_ir_profile() {
    let views = instr("indexed/clang-22-ir-plain.profdata");
    views.check(11, &["functions", "all counts"]);
    assert!(
        !views.found.contains_key("all executions"),
        "the first counter counts no calls"
    );
    let views = instr("indexed/clang-22-entry-first-plain.profdata");
    views.check(2, &["all executions"]);
}

#[test]
fn of_a_profile_whose_functions_share_a_name() {
    let mut views = Views::new("readme", &[]);
    views.run(&["merge", &views.file, "-o", "two.profdata"]);
    let file = views.folder.path().join("two.profdata");
    views.file = file.display().to_string();
    views.all_instr();
    views.check(11, &["functions", "all counts"]);
    let records = views.found["functions"][0]
        .1
        .parse::<usize>()
        .expect("a number");
    let names = csv(&views.run(&["show", &views.file.clone(), "--format", "csv"]));
    let names: std::collections::BTreeSet<_> = names.iter().map(|row| &row["function"]).collect();
    assert!(
        names.len() < records,
        "{} names, {records} functions",
        names.len()
    );
}

#[test]
fn of_a_profile_with_two_stages() {
    let views = instr("indexed/clang-22-cs-ir-shapes.profdata");
    views.check(10, &["functions", "all counts"]);
    views.check(4, &["hot", "warm", "cold", "never ran"]);
}

#[test]
fn of_a_sample_profile() {
    let mut views = Views::new("sample/llvm-22-nested-text.sampleprof", &[]);
    views.all_with_functions("samples", "samples", true);
    views.merged("prof");
    let file = views.file.clone();
    let json = views.json(&["show", &file, "--format", "json"]);
    views.add(
        "all samples",
        "summary in JSON",
        &json["summary"]["samples"],
    );
    let text = views.run(&["show", &file]);
    let sum = fact(&text, "samples of lines").expect("a sum");
    views.add("all samples", "summary in the terminal", sum);
    views.check(11, &["all samples"]);
    views.check(8, &["functions"]);
    views.check(4, &["hot", "warm", "cold", "never ran"]);
}

#[test]
fn of_a_mip_profile() {
    let mut views = Views::new("mip/mixed-1.mipraw", &[]);
    let fixture = |name: &str| {
        repo_root()
            .join("tests/fixtures/mip")
            .join(name)
            .display()
            .to_string()
    };
    views.run(&["mip", "create", "-p", "run.mip", &fixture("mixed.mipmap")]);
    views.run(&[
        "mip",
        "merge",
        "-p",
        "run.mip",
        &fixture("mixed-1.mipraw"),
        &fixture("mixed-2.mipraw"),
    ]);
    views.file = views.folder.path().join("run.mip").display().to_string();
    views.all_with_functions("calls", "calls", true);
    views.check(7, &["functions", "all calls"]);
    views.check(4, &["hot", "warm", "cold", "never ran"]);
}

#[test]
fn of_a_heap_profile() {
    let mut views = Views::new("heap/heap.memprofraw", &["heap/heap.debug"]);
    let file = views.file.clone();
    let text = views.run(&["show", &file]);
    let json = views.json(&["show", &file, "--format", "json"]);
    let diff = views.json(&["diff", &file, &file, "--format", "json"]);
    for (word, label) in [
        ("contexts", "contexts"),
        ("allocations", "allocations"),
        ("bytes", "bytes"),
    ] {
        views.add(word, "terminal", fact(&text, label).expect("a fact"));
        views.add(word, "JSON", &json["total"][word]);
        views.add(word, "diff", &diff["old"][word]);
    }
    let rows = csv(&views.run(&["show", &file, "--format", "csv"]));
    let table = csv(&String::from_utf8_lossy(&views.export("csv", &[])));
    for (view, rows) in [("CSV", rows), ("table", table)] {
        views.add("contexts", view, rows.len());
        for word in ["bytes", "allocations"] {
            let numbers = rows
                .iter()
                .map(|row| row[word].parse::<u64>().expect("a number"));
            views.add(word, view, numbers.sum::<u64>());
        }
        for class in ["hot", "warm", "cold"] {
            views.add(
                &format!("{class} contexts"),
                view,
                rows.iter().filter(|row| row["heat"] == class).count(),
            );
        }
    }
    for class in ["hot", "warm", "cold"] {
        views.add(
            &format!("{class} contexts"),
            "JSON",
            &json[class]["contexts"],
        );
        views.add(
            &format!("{class} contexts"),
            "terminal",
            fact(&text, class).expect("a class"),
        );
    }
    let page = views.folder.path().join("page.html");
    views.run(&["report", &file, "-o", &page.display().to_string()]);
    let page = PageData(std::fs::read_to_string(page).expect("a page"));
    views.add("contexts", "page", &page.facts()["contexts"]);
    views.add(
        "bytes",
        "page",
        page.facts()["total"].as_f64().expect("a total"),
    );
    for (word, label) in [
        ("contexts", "Contexts"),
        ("allocations", "Allocations"),
        ("bytes", "Bytes allocated"),
    ] {
        let value = page
            .fact(label)
            .as_deref()
            .and_then(number)
            .expect("a fact");
        views.add(word, "HTML of the page", value);
    }
    let rows = page.table("Functions that allocate most");
    assert!(!rows.is_empty(), "the first view has no functions");
    if rows.len() < 10 {
        let sum = |at: usize| {
            rows.iter()
                .map(|row| number(&row[at]).expect("a number"))
                .sum::<u64>()
        };
        views.add("bytes", "first view of the page", sum(1));
        views.add("allocations", "first view of the page", sum(3));
    }
    for (view, list) in [
        ("pprof", pprof(&views.export("pprof", &[]))),
        ("speedscope", speedscope(&views.export("speedscope", &[]))),
    ] {
        for (what, functions) in list {
            let word = if what == "alloc_space" {
                "bytes"
            } else {
                "allocations"
            };
            views.add(word, view, functions.values().flatten().sum::<u64>());
        }
    }
    let total = folded(&views.export("folded", &[]));
    views.add("bytes", "folded", total);
    views.check(6, &["contexts"]);
    views.check(9, &["bytes", "allocations"]);
    // The same profile with its names in one file, as the commands that compare need it.
    views.found.clear();
    views.run(&["merge", &file, "--portable", "-o", "heap.profdata"]);
    let heap = "heap.profdata";
    let json = views.json_plain(&["show", heap, "--format", "json"]);
    let diff = views.json_plain(&["diff", heap, heap, "--format", "json"]);
    let binary = views.binaries[1].clone();
    let matched = views.json_plain(&["match", heap, &binary, "--format", "json"]);
    for word in ["contexts", "allocations", "bytes"] {
        views.add(word, "JSON", &json["total"][word]);
        views.add(word, "diff", &diff["new"][word]);
        views.add(word, "match", &matched["total"][word]);
    }
    let overlap = views.json_plain(&["overlap", heap, heap, "--format", "json"]);
    let profile = &overlap["profiles"][0];
    views.add("contexts", "overlap", &profile["functions"]);
    views.add("bytes", "overlap", &profile["total"]);
    views.check(4, &["contexts", "bytes"]);
}
