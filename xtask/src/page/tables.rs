//! Checks the tables that `profkit export` writes: pyarrow reads them, and DuckDB runs queries on them.
use crate::mip::succeed;
use anyhow::{Result, ensure};
use profkit_testkit::{Llvm, skip, target_folder};
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
        "SELECT count(*) > 3, bool_and(stack[-1].\"function\" = '_start' OR len(stack) > 1), sum(bytes) > 0 FROM TABLE",
        "[(True, True, True)]",
    ),
];

/// A script that changes the counters of a profile in two engines: it keeps functions in Polars, and adds two profiles
/// up in DuckDB.
const CHANGE: &str = r#"
import duckdb, polars
counters = polars.read_parquet("way.counters.parquet")
kept = counters.filter(polars.col("function") != "idle")
kept.write_parquet("kept.parquet", compression="snappy")
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
    check_way_back(folder, &python)
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
