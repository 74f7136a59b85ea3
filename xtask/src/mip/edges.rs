//! Compares MIP's call edges with exact ones, which `-finstrument-functions` and `tests/programs/mip/callers.c` count.
//! `cargo xtask mip-edges` prints what they cost and how exact they are on lua.
use super::make::{Real, Toolchain};
use super::packages::Sources;
use super::{fresh, mip_profile, succeed};
use crate::steps::built_profkit;
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSymbol, SymbolKind};
use profkit_testkit::program::{MipMode, Program, Setting, WEAK_FUNCTION, outcome};
use profkit_testkit::{measure, repo_root, target_folder};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often each function was called from each function. Calls from other code are not in it.
type Edges = BTreeMap<String, BTreeMap<String, u64>>;

/// The calls of a function of which all are sampled.
const ALL_SAMPLED: u64 = 1023;
/// Options with which both kinds of instrumentation see the same calls.
const SAME_CALLS: [&str; 2] = ["-fno-optimize-sibling-calls", "-fno-inline"];

/// The calls and the edges in a profile.
fn of_profile(profkit: &Path, profile: &Path) -> Result<(BTreeMap<String, u64>, Edges)> {
    let text = succeed(
        Command::new(profkit)
            .args(["mip", "show", "--format", "json", "-p"])
            .arg(profile),
    )?;
    let json: serde_json::Value = serde_json::from_str(&text).context("mip show's JSON")?;
    let functions = json["functions"].as_array().context("functions")?;
    let (mut calls, mut edges) = (BTreeMap::new(), Edges::new());
    for function in functions {
        let name = function["function"].as_str().context("a name")?.to_owned();
        *calls.entry(name.clone()).or_default() += function["calls"].as_u64().context("calls")?;
        for edge in function["callers"].as_array().context("callers")? {
            let weight = edge["weight"].as_u64().context("a weight")?;
            let caller = edge["caller"].as_str().unwrap_or_default();
            let callers = edges.entry(name.clone()).or_default();
            *callers.entry(caller.to_owned()).or_default() += weight;
        }
    }
    Ok((calls, edges))
}

/// Checks that the edges to each function have as many calls as it has: exactly, unless not all were sampled.
pub fn check_sums(profkit: &Path, folder: &Path, mode: MipMode) -> Result<()> {
    let profile = folder.join(format!("{}.mip", mode.name));
    let raw = folder.join(format!("{}.mipraw", mode.name));
    mip_profile(profkit, &folder.join(mode.name), &[raw], &profile)?;
    let (calls, edges) = of_profile(profkit, &profile)?;
    for (name, &calls) in &calls {
        let sum: u64 = edges.get(name).map_or(0, |callers| callers.values().sum());
        let most = if calls <= ALL_SAMPLED {
            calls
        } else {
            calls + calls / 500
        };
        if !(calls..=most).contains(&sum) {
            bail!(
                "mode {}: {name} has {calls} calls, and its callers make {sum}",
                mode.name
            );
        }
    }
    Ok(())
}

/// Reads what `callers.c` has written.
fn of_callers(executable: &Path, file: &Path) -> Result<Edges> {
    let bytes = std::fs::read(executable)?;
    let image = object::File::parse(&*bytes)?;
    let mut functions: Vec<(u64, u64, String)> = image
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
        .filter_map(|symbol| {
            Some((
                symbol.address(),
                symbol.size(),
                symbol.name().ok()?.to_owned(),
            ))
        })
        .collect();
    functions.sort();
    let function = |address: u64| {
        let after = functions.partition_point(|&(start, ..)| start <= address);
        let (start, size, name) = functions.get(after.checked_sub(1)?)?;
        (address < start + size).then(|| name.clone())
    };
    let mut edges = Edges::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let address = |at: usize| u64::from_str_radix(words.get(at).unwrap_or(&""), 16);
        let callee = function(address(0)?).context("a function without a symbol")?;
        // The return address may already be that of the next function.
        let caller = function(address(1)?.wrapping_sub(1)).unwrap_or_default();
        let count: u64 = words.get(2).context("a count")?.parse()?;
        *edges.entry(callee).or_default().entry(caller).or_default() += count;
    }
    Ok(edges)
}

/// Builds a generated program with call edges and with exact counts of calls, and compares all edges of functions of which
/// all calls were sampled.
pub fn compare_program(profkit: &Path, program: &Program, folder: &Path) -> Result<()> {
    let sources = program.write_to(folder)?;
    let flags = |more: &[&str]| {
        let all = ["-O0", "-no-pie", "-fno-pie"]
            .iter()
            .chain(&SAME_CALLS)
            .chain(more);
        all.map(|flag| (*flag).to_owned()).collect()
    };
    let mode = MipMode::named("calls-returns").context("a mode")?;
    let (sampled, exact) = (folder.join("sampled"), folder.join("exact"));
    let setting = Setting {
        compiler: "clang-22".into(),
        flags: flags(&[]),
    };
    setting.build(Some((profkit, mode)), folder, &sources, &sampled)?;
    outcome(&sampled, &[], &folder.join("sampled.mipraw"))?;
    let profile = folder.join("sampled.mip");
    mip_profile(
        profkit,
        &sampled,
        &[folder.join("sampled.mipraw")],
        &profile,
    )?;
    let setting = Setting {
        flags: flags(&["-finstrument-functions"]),
        ..setting
    };
    let mut all = sources;
    all.push(repo_root().join("tests/programs/mip/callers.c"));
    setting.build(None, folder, &all, &exact)?;
    let file = folder.join("callers.txt");
    Command::new(&exact)
        .current_dir(folder)
        .env("CALLERS_FILE", &file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let truth = of_callers(&exact, &file)?;
    let (calls, edges) = of_profile(profkit, &profile)?;
    for (callee, callers) in &truth {
        let sum: u64 = callers.values().sum();
        // Each file has the weak function, and the linker keeps one.
        if callee == WEAK_FUNCTION || !calls.contains_key(callee) || sum > ALL_SAMPLED {
            continue;
        }
        let found = edges.get(callee).cloned().unwrap_or_default();
        if found != *callers {
            bail!("the callers of {callee} are {callers:?}, and in the profile {found:?}");
        }
    }
    Ok(())
}

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How often each program is run; the medians are compared
    #[arg(long, default_value_t = 15)]
    runs: usize,
    /// The number of slots of the table
    #[arg(long, default_value_t = 4096)]
    slots: u32,
}

/// Measures lua.
pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = target_folder().join("mip-edges");
    fresh(&folder)?;
    let sources = Sources::new(&target_folder().join("mip-programs"));
    let profkit = built_profkit()?;
    let slots = arguments.slots.to_string();
    let returns = |more: &'static [&'static str]| -> Vec<String> {
        let all = ["--mode", "calls", "--return-addresses", &slots];
        all.iter()
            .chain(more)
            .map(|word| (*word).to_owned())
            .collect()
    };
    let calls = |more: &[&str]| -> Vec<String> {
        let all = ["--mode", "calls"];
        all.iter()
            .chain(more)
            .map(|word| (*word).to_owned())
            .collect()
    };
    let builds: [(&str, Option<Vec<String>>); 5] = [
        ("plain", None),
        ("calls", Some(calls(&[]))),
        ("calls, call edges", Some(returns(&[]))),
        ("calls, atomic", Some(calls(&["--atomic"]))),
        ("calls, call edges, atomic", Some(returns(&["--atomic"]))),
    ];
    let mut trees: Vec<PathBuf> = Vec::new();
    for (number, (_, options)) in builds.iter().enumerate() {
        let tree = folder.join(number.to_string());
        lua(
            &sources,
            &tree,
            options.as_deref().map(|options| (&*profkit, options)),
            &[],
            &[],
        )?;
        trees.push(tree);
    }
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); builds.len()];
    for _ in 0..arguments.runs {
        for (tree, times) in trees.iter().zip(&mut times) {
            times.push(work(tree, &folder.join("time"), None)?);
        }
    }
    let median = |times: &[f64]| {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let plain = median(&times[0]);
    println!(
        "lua, {} runs, median of the plain program {plain:.3} s",
        arguments.runs
    );
    for ((name, _), times) in builds.iter().zip(&times) {
        let wanted = match *name {
            "calls, call edges" => ", wanted at most 1.25",
            _ => "",
        };
        println!("{name}: {:.3} × time{wanted}", median(times) / plain);
    }
    let share = median(&times[2]) / median(&times[1]);
    println!("call edges beside calls: {share:.3} × time, wanted at most 1.10");
    exactness(&profkit, &sources, &folder, &returns(&[]))
}

/// Compares the edges of two builds in which the same calls are made.
fn exactness(profkit: &Path, sources: &Sources, folder: &Path, options: &[String]) -> Result<()> {
    let (sampled, exact) = (folder.join("sampled"), folder.join("exact"));
    lua(
        sources,
        &sampled,
        Some((profkit, options)),
        &SAME_CALLS,
        &[],
    )?;
    let object = folder.join("callers.o");
    succeed(
        Command::new("clang-22")
            .args(["-O2", "-c"])
            .arg(repo_root().join("tests/programs/mip/callers.c"))
            .arg("-o")
            .arg(&object),
    )?;
    let path = object.display().to_string();
    let flags = [SAME_CALLS[0], SAME_CALLS[1], "-finstrument-functions"];
    lua(sources, &exact, None, &flags, &[&path])?;
    let raws = folder.join("raws");
    work(&sampled, &raws, None)?;
    let profile = folder.join("lua.mip");
    mip_profile(
        profkit,
        &Real::Lua.executable(&sampled),
        &super::raws_in(&raws)?,
        &profile,
    )?;
    let (calls, edges) = of_profile(profkit, &profile)?;
    // lua's hash tables depend on addresses and the time, so two exact runs differ too.
    let truths = ["one", "two"].map(|name| {
        let files = folder.join(name);
        work(&exact, &files, Some("CALLERS_FILE"))?;
        of_callers(&Real::Lua.executable(&exact), &files.join("0.mipraw"))
    });
    let [one, two] = truths;
    let truths = [one?, two?];
    let all: u64 = calls.values().sum();
    let mut hottest: Vec<(&String, &u64)> = calls.iter().collect();
    hottest.sort_by_key(|&(name, &calls)| (std::cmp::Reverse(calls), name));
    let mut sum = 0;
    let (mut hot, mut with_callers) = (0, 0);
    let mut worst = (0.0_f64, String::new());
    let mut apart = 0.0_f64;
    let part = |callers: Option<&BTreeMap<String, u64>>, caller: &str| {
        let callers = callers?;
        let all: u64 = callers.values().sum();
        Some(callers.get(caller).copied().unwrap_or(0) as f64 / all.max(1) as f64)
    };
    for (name, &calls) in hottest {
        if sum * 100 >= all * 99 {
            break;
        }
        sum += calls;
        hot += 1;
        let found = edges.get(name);
        with_callers += u64::from(found.is_some());
        let exact = truths.each_ref().map(|truth| truth.get(name));
        let all = exact.into_iter().chain([found]).flatten();
        let callers: BTreeSet<&String> = all.flat_map(|callers| callers.keys()).collect();
        for caller in callers {
            let [Some(one), Some(two)] = exact.map(|exact| part(exact, caller)) else {
                continue;
            };
            let found = part(found, caller).unwrap_or(0.0);
            apart = apart.max(100.0 * (one - two).abs());
            // How far the share is outside of what the exact runs have.
            let error = 100.0 * (found - one.max(two)).max(one.min(two) - found);
            if error > worst.0 {
                worst = (error, format!("{caller} in the calls of {name}"));
            }
        }
    }
    println!(
        "{all} calls; {hot} functions have 99 % of them, and {with_callers} of these have callers: {:.1} %, wanted at least 95 %",
        100.0 * with_callers as f64 / f64::from(hot)
    );
    println!("two exact runs differ by up to {apart:.2} points");
    println!(
        "largest error of a caller's share: {:.2} points ({}), wanted at most 3",
        worst.0, worst.1
    );
    if with_callers * 100 < u64::from(hot as u32) * 95 || worst.0 > 3.0 {
        bail!("the call edges are not as exact as wanted");
    }
    Ok(())
}

fn lua(
    sources: &Sources,
    tree: &Path,
    mip: Option<(&Path, &[String])>,
    flags: &[&str],
    link: &[&str],
) -> Result<()> {
    let mut tools = Toolchain::plain("clang-22");
    if let Some((profkit, options)) = mip {
        tools = Toolchain::mip_with("clang-22", profkit, "edges", &options.join(" "));
    }
    Real::Lua.build(sources, &tools.with("edges", flags, link), tree)?;
    Ok(())
}

/// Runs lua's workload in one process, and returns its processor time in seconds. The program writes `folder/0.mipraw`, which is a raw file, or what `variable` names.
fn work(tree: &Path, folder: &Path, variable: Option<&str>) -> Result<f64> {
    std::fs::create_dir_all(folder)?;
    let mut chunk = String::new();
    for line in Real::Lua.workload(tree, 1)? {
        let [_, script, rounds] = line.as_slice() else {
            bail!("lua's workload has other arguments");
        };
        chunk += &format!(
            "arg = {{ [0] = '{script}', '{rounds}' }}; assert(loadfile('{script}'))('{rounds}') "
        );
    }
    let measured = measure(
        Command::new(Real::Lua.executable(tree))
            .args(["-e", &chunk])
            .env(
                variable.unwrap_or("LLVM_MIP_PROFILE_FILENAME"),
                folder.join("0.mipraw"),
            ),
    )?;
    if !measured.status.success() {
        bail!("lua: {}", String::from_utf8_lossy(&measured.stderr));
    }
    Ok(measured.cpu.as_secs_f64())
}
