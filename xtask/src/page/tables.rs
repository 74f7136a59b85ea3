//! Checks the tables that `profkit export` writes: pyarrow reads them, and DuckDB runs queries on them.
use crate::mip::succeed;
use anyhow::{Result, ensure};
use profkit_testkit::{Llvm, fixture_path, skip, target_folder};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const READERS: [&str; 3] = ["pyarrow==26.0.1", "duckdb==2.0.0", "polars==2.1.0"];

/// A script that reads a table in three forms, compares them, and prints the answer to a query.
const QUERY: &str = r#"
import sys, duckdb, pyarrow.csv, pyarrow.feather, pyarrow.parquet
name, query = sys.argv[1:]
parquet = pyarrow.parquet.read_table(name + ".parquet")
arrow = pyarrow.feather.read_table(name + ".arrow")
assert parquet.schema.metadata[b"profkit.schema_version"] == b"4", parquet.schema
assert parquet.schema.metadata == arrow.schema.metadata
assert parquet.to_pylist() == arrow.to_pylist()
rows = pyarrow.csv.read_csv(name + ".csv")
assert rows.num_rows == parquet.num_rows and rows.column_names == parquet.column_names, rows.column_names
print(duckdb.sql(query.replace("TABLE", f"'{name}.parquet'")).fetchall())
"#;

/// A check: the profile, the table, a query for DuckDB, and the expected answer.
type Check = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static str,
);
const CHECKS: &[Check] = &[
    (
        "counts.proftext",
        &[],
        "functions",
        "SELECT demangled, entry, sum, cutoff FROM TABLE ORDER BY sum DESC",
        "[('ns::parse(int)', 400, 400, 0.01), ('main', 9, 14, 0.99), ('idle', 0, 0, None)]",
    ),
    (
        "counts.proftext",
        &[],
        "counters",
        "SELECT function, sum(count)::UBIGINT FROM TABLE GROUP BY function ORDER BY 2 DESC, 1",
        "[('_ZN2ns5parseEi', 400), ('main', 14), ('idle', 0)]",
    ),
    (
        "contexts.prof",
        &[],
        "lines",
        "SELECT context, function, line, samples FROM TABLE ORDER BY samples DESC",
        "[('main:3', 'work', 1, 500), ('main:3 @ work:1', 'leaf', 1, 100), (None, 'main', 3, 50)]",
    ),
    (
        "heap.memprofraw",
        &["--binaries", "heap.debug"],
        "contexts",
        "SELECT count(*) > 3, bool_or(stack[-1].\"function\" = 'main'), sum(bytes) > 0 FROM TABLE",
        "[(True, True, True)]",
    ),
];

/// A script that changes the counters of a profile in two engines: it keeps functions in Polars, and adds two profiles
/// up in DuckDB.
const CHANGE: &str = r#"
import duckdb, polars
counters = polars.read_parquet("way.counters.parquet")
kept = counters.filter(polars.col("function") != "idle")
kept.write_parquet("kept.parquet")
duckdb.sql("""COPY (SELECT "function", hash, "index", sum(count)::UBIGINT AS count
  FROM (SELECT * FROM 'way.counters.parquet' UNION ALL SELECT * FROM 'way.counters.parquet') GROUP BY ALL)
  TO 'sum.parquet' (FORMAT parquet, COMPRESSION snappy)""")
duckdb.sql("COPY (SELECT * FROM 'way.counters.parquet') TO 'same.json'")
"#;

/// Makes profiles of what engines left of the tables, and reads them.
fn check_way_back(folder: &Path, python: &Path) -> Result<()> {
    let profkit = |args: &[&str]| {
        let command = target_folder().join("debug/profkit");
        succeed(Command::new(command).current_dir(folder).args(args))
    };
    for table in ["counters", "profile"] {
        let file = format!("way.{table}.parquet");
        profkit(&[
            "export",
            "counts.proftext",
            "--to",
            "parquet",
            "--table",
            table,
            "-o",
            &file,
        ])?;
    }
    succeed(
        Command::new(python)
            .current_dir(folder)
            .args(["-c", CHANGE]),
    )?;
    for (table, expected) in [
        ("kept.parquet", [9, 400]),
        ("sum.parquet", [18, 800]),
        ("same.json", [9, 400]),
    ] {
        profkit(&[
            "convert",
            table,
            "way.profile.parquet",
            "-o",
            "way.profdata",
        ])?;
        let mut show = profkit(&["show", "way.profdata", "--functions", "--format", "csv"])?;
        if let Some(tool) = Llvm::find(22) {
            let arguments = ["show", "--all-functions", "--counts", "way.profdata"];
            show += &succeed(
                Command::new(tool.profdata())
                    .current_dir(folder)
                    .args(arguments),
            )?;
        } else {
            skip("LLVM 22 does not read what engines wrote: it is not installed");
        }
        for number in expected {
            ensure!(
                show.contains(&number.to_string()),
                "{table}: no {number} in {show}"
            );
        }
        let has_idle = table != "kept.parquet";
        ensure!(show.contains("idle") == has_idle, "{table}: {show}");
    }
    println!("3 tables of DuckDB and Polars made profiles again");
    Ok(())
}

/// A script that changes the tables of a sample and of a heap profile: all samples twice in DuckDB, and the contexts of
/// many bytes in Polars.
const CHANGE_OTHERS: &str = r#"
import duckdb, polars
for table in ["functions", "lines", "values", "inlined"]:
    key = {"functions": "function, context, hash", "lines": "function, context, inlined, line, discriminator",
      "values": "function, context, inlined, line, discriminator, kind, target",
      "inlined": "function, context, inlined, hash"}[table]
    count = {"functions": "header_total", "lines": "samples", "values": "count", "inlined": "header_total"}[table]
    head = ", sum(head)::UBIGINT AS head" if table == "functions" else ""
    one = f"SELECT * FROM 'samples.{table}.parquet'"
    duckdb.sql(f"""COPY (SELECT {key}, sum({count})::UBIGINT AS {count}{head} FROM ({one} UNION ALL {one}) GROUP BY ALL)
      TO 'twice.{table}.parquet' (FORMAT parquet, COMPRESSION snappy)""")
contexts = polars.read_parquet("dump.contexts.parquet")
contexts.filter(polars.col("bytes") >= 1000).write_parquet("large.contexts.parquet")
frames = polars.read_parquet("dump.frames.parquet")
polars.concat([frames, frames]).write_parquet("large.frames.parquet")
print(contexts.filter(polars.col("bytes") >= 1000).height)
"#;

/// Makes sample and heap profiles of what engines left of their tables.
fn check_others(folder: &Path, heap: &Path, python: &Path) -> Result<()> {
    let profkit = |args: &[&str]| {
        let command = target_folder().join("debug/profkit");
        succeed(Command::new(command).current_dir(folder).args(args))
    };
    let samples = fixture_path("sample/llvm-22-nested-text.sampleprof");
    let samples = samples.display().to_string();
    for table in ["functions", "lines", "values", "inlined", "profile"] {
        let file = format!("samples.{table}.parquet");
        profkit(&[
            "export", &samples, "--to", "parquet", "--table", table, "-o", &file,
        ])?;
    }
    let [dump, debug] = ["heap.memprofraw", "heap.debug"].map(|name| heap.join(name));
    profkit(&[
        "merge",
        &dump.display().to_string(),
        "--binaries",
        &debug.display().to_string(),
        "-o",
        "dump.profdata",
    ])?;
    for table in ["contexts", "frames", "profile"] {
        let file = format!("dump.{table}.parquet");
        profkit(&[
            "export",
            "dump.profdata",
            "--to",
            "parquet",
            "--table",
            table,
            "-o",
            &file,
        ])?;
    }
    let large = succeed(
        Command::new(python)
            .current_dir(folder)
            .args(["-c", CHANGE_OTHERS]),
    )?;
    let tables = ["functions", "lines", "values", "inlined"];
    let tables = tables.map(|table| format!("twice.{table}.parquet"));
    let [one, two, three, four] = tables.each_ref().map(String::as_str);
    let facts = "samples.profile.parquet";
    profkit(&[
        "convert",
        one,
        two,
        three,
        four,
        facts,
        "--to",
        "text",
        "-o",
        "twice.prof",
    ])?;
    profkit(&[
        "merge",
        &samples,
        &samples,
        "--to",
        "text",
        "-o",
        "merged.prof",
    ])?;
    let [twice, merged] = ["twice.prof", "merged.prof"].map(|name| fs::read(folder.join(name)));
    ensure!(
        twice? == merged?,
        "DuckDB's sum of samples is not that of merge"
    );
    let parts = [
        "large.contexts.parquet",
        "large.frames.parquet",
        "dump.profile.parquet",
    ];
    let [contexts, frames, facts] = parts;
    profkit(&["convert", contexts, frames, facts, "-o", "large.profdata"])?;
    let rows = profkit(&["show", "large.profdata", "--format", "csv"])?;
    let found = rows.lines().count().saturating_sub(1).to_string();
    ensure!(found == large.trim(), "{found} contexts, expected {large}");
    println!("tables of a sample and of a heap profile of DuckDB and Polars made profiles again");
    Ok(())
}

/// Writes the tables of the profiles in the folder, and reads them.
pub fn check(folder: &Path, heap: &Path) -> Result<()> {
    let Some(python) = python(folder)? else {
        skip("tables are not read: pyarrow and duckdb cannot be had from PyPI");
        return Ok(());
    };
    for (profile, options, table, query, answer) in CHECKS {
        let name = format!("{profile}.{table}");
        for form in ["parquet", "arrow", "csv"] {
            succeed(
                Command::new(target_folder().join("debug/profkit"))
                    .current_dir(if options.is_empty() { folder } else { heap })
                    .args(["export", profile])
                    .args(*options)
                    .args(["--to", form, "--table", table, "-o"])
                    .arg(folder.join(format!("{name}.{form}"))),
            )?;
        }
        let found = succeed(
            Command::new(&python)
                .current_dir(folder)
                .args(["-c", QUERY, &name, query]),
        )?;
        ensure!(
            found.trim() == *answer,
            "{name}: found {found}, expected {answer}"
        );
    }
    println!("{} tables read by pyarrow and DuckDB", CHECKS.len());
    check_way_back(folder, &python)?;
    check_others(folder, heap, &python)
}

/// Returns a Python with pyarrow and DuckDB, installed once in its own environment. `None` if they cannot be installed.
fn python(folder: &Path) -> Result<Option<PathBuf>> {
    let home = folder.join("python");
    let python = home.join("bin/python");
    let done = home.join("done");
    if !done.exists() {
        let made = Command::new("python3")
            .args(["-m", "venv"])
            .arg(&home)
            .status();
        if !made.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let installed = Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(READERS)
            .status()?;
        if !installed.success() {
            return Ok(None);
        }
        fs::write(&done, "")?;
    }
    Ok(Some(python))
}
