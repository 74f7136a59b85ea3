//! The output of `profkit match`. [docs/formats/match-json.md] describes the JSON.
//!
//! [docs/formats/match-json.md]: https://github.com/profkit/profkit/blob/main/docs/formats/match-json.md
use crate::annotations::{Annotation, Annotations, Level};
use crate::document::write_json;
use crate::{
    Answer, Cell, Document, Style, Table, grouped, percent, percent_beside, plural, quoted,
};
use profkit_analysis::matching::{
    BinaryFunctions, CountShares, DebugInfo, FunctionShares, MatchShares, Outcome,
    ProfileFunctions, SuccessorReason,
};
use profkit_analysis::names;
use profkit_data::instr::InstrKind;
use profkit_object::functions::Origin;
use serde::Serialize;
use std::io::{self, Write};

/// Version of the JSON. It is raised when a member is renamed or removed, or changes its meaning.
const SCHEMA_VERSION: u32 = 5;

/// The result of a comparison, in the form in which it is printed.
#[derive(Clone, Debug, Serialize)]
pub struct MatchReport {
    schema: &'static str,
    schema_version: u32,
    profile: String,
    /// The build ids of the programs from which the profile was collected; empty if the profile does not state them.
    build_ids: Vec<String>,
    /// The stage of instrumentation, `IR` or `front-end`; `None` if the profile does not state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    instrumentation: Option<[&'static str; 1]>,
    /// The name of what the profile counts: `counters`, `calls` or `samples`.
    unit: &'static str,
    binaries: Vec<BinaryReport>,
    /// Programs and libraries that were found in a folder, but whose functions could not be read.
    skipped: Vec<Skipped>,
    functions: WithShare<FunctionShares>,
    counts: WithShare<CountShares>,
    hot_lost: Vec<Lost>,
    hot_lost_more: u64,
    /// Whether [`text`](Self::text) writes names as they are in the profile, without demangling them.
    #[serde(skip)]
    pub mangled: bool,
}

#[derive(Clone, Debug, Serialize)]
struct BinaryReport {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<String>,
    /// Whether the profile is of this build; `None` if it or the binary has no build id.
    #[serde(skip_serializing_if = "Option::is_none")]
    same_build: Option<bool>,
    #[serde(serialize_with = "origin")]
    origin: Option<Origin>,
    /// Whether `path` is a profile in place of a binary, and this profile lists only functions that ran.
    lists_only_used: bool,
    functions: u64,
    /// Whether the binary has no symbol table, but only the names that it exports.
    stripped: bool,
    /// The state of the debug info, in which inlined functions are looked for: `absent`, `unread`, `read` or `damaged`.
    debug_info: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    debug_info_error: Option<String>,
    /// The stage of instrumentation, `IR` or `front-end`; `None` if the binary shows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    instrumentation: Option<[&'static str; 1]>,
    /// Whether the counters were placed in different stages of the compiler, so that no hash can agree.
    other_instrumentation: bool,
}

#[derive(Clone, Debug, Serialize)]
struct Skipped {
    path: String,
    reason: String,
}

#[derive(Clone, Debug, Serialize)]
struct WithShare<T> {
    #[serde(flatten)]
    of: T,
    /// The matched share, from 0 to 1; `None` if the whole is 0.
    matched_share: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct Lost {
    function: String,
    demangled: String,
    count: u64,
    share: Option<f64>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    successor: Option<Succeeding>,
    #[serde(skip)]
    is_name_hash: bool,
}

/// The function in the binaries that a lost function probably became, for example after it was renamed.
#[derive(Clone, Debug, Serialize)]
struct Succeeding {
    function: String,
    demangled: String,
    reason: SuccessorReason,
}

impl MatchReport {
    /// Makes the report of a comparison, with at most `top` lost functions.
    pub fn new(
        name: &str,
        profile: &ProfileFunctions,
        binaries: &BinaryFunctions,
        top: usize,
    ) -> Self {
        let MatchShares {
            functions,
            counts,
            hot_lost,
        } = MatchShares::new(profile, binaries);
        let hot_lost_more = hot_lost.len().saturating_sub(top) as u64;
        let lost = hot_lost.into_iter().take(top).map(|lost| Lost {
            function: String::from_utf8_lossy(&lost.name).into_owned(),
            demangled: names::display(&lost.name).into_owned(),
            count: lost.count,
            share: counts.percent(lost.count.into()).map(|one| one / 100.0),
            outcome: lost.outcome,
            is_name_hash: lost.is_name_hash,
            successor: lost.successor.map(|successor| Succeeding {
                function: String::from_utf8_lossy(&successor.name).into_owned(),
                demangled: names::display(&successor.name).into_owned(),
                reason: successor.reason,
            }),
        });
        MatchReport {
            schema: "profkit-match",
            schema_version: SCHEMA_VERSION,
            profile: name.to_owned(),
            build_ids: profile.build_ids.iter().map(ToString::to_string).collect(),
            instrumentation: match profile.instrumentation {
                kind if kind.intersects(InstrKind::IR | InstrKind::FRONT_END) => Some(stage(kind)),
                _ => None,
            },
            unit: if profile.samples.is_some() {
                "samples"
            } else if profile.is_mip {
                "calls"
            } else {
                "counters"
            },
            skipped: binaries
                .skipped
                .iter()
                .map(|(path, error)| Skipped {
                    path: path.clone(),
                    reason: error.to_string(),
                })
                .collect(),
            binaries: binaries
                .binaries
                .iter()
                .map(|binary| BinaryReport {
                    path: binary.path.clone(),
                    build_id: binary.build_id.as_ref().map(ToString::to_string),
                    same_build: binary
                        .build_id
                        .as_ref()
                        .filter(|_| !profile.build_ids.is_empty())
                        .map(|id| profile.build_ids.contains(id)),
                    origin: binary.origin,
                    lists_only_used: binary.lists_only_used,
                    functions: binary.functions as u64,
                    stripped: binary.is_stripped,
                    debug_info: match binary.debug_info {
                        DebugInfo::Absent => "absent",
                        DebugInfo::Unread => "unread",
                        DebugInfo::Read => "read",
                        DebugInfo::Damaged(_) => "damaged",
                    },
                    debug_info_error: match &binary.debug_info {
                        DebugInfo::Damaged(error) => Some(error.clone()),
                        _ => None,
                    },
                    instrumentation: binary.instrumentation.map(stage),
                    other_instrumentation: binary.is_other_stage(profile),
                })
                .collect(),
            functions: WithShare {
                of: functions,
                matched_share: functions.matched_percent().map(|one| one / 100.0),
            },
            counts: WithShare {
                of: counts,
                matched_share: counts.matched_percent().map(|one| one / 100.0),
            },
            hot_lost: lost.collect(),
            hot_lost_more,
            mangled: false,
        }
    }
}

impl MatchReport {
    fn parts(&self) -> CountShares {
        self.counts.of
    }

    fn is_other_everywhere(&self) -> bool {
        self.binaries
            .iter()
            .all(|binary| binary.other_instrumentation)
    }

    fn is_stripped(&self) -> bool {
        self.binaries.iter().any(|binary| binary.stripped)
    }

    /// What to give for binaries that do not show inlined functions.
    fn what_shows_all(&self) -> &'static str {
        match self.unit {
            "counters" => "give the instrumented build, or a build with debug info (-g)",
            "samples" => "give a build with debug info (-g)",
            _ => "give the binary as it was before strip",
        }
    }

    /// The annotations of a comparison: a warning for each hot function whose counts are stale or lost.
    pub fn annotations(&self) -> Annotations {
        let mut list = Annotations::default();
        let counts = self.parts();
        if counts.inlined_or_gone > 0 {
            list.push(Annotation {
                level: Level::Warning,
                file: Some(self.profile.clone()),
                title: "profkit match: functions cannot be judged".to_owned(),
                text: format!(
                    "{} of all {} are of functions that are inlined or gone: {}",
                    percent(counts.inlined_or_gone, counts.total),
                    self.unit_word(),
                    self.what_shows_all()
                ),
            });
        }
        let judged = |lost: &&Lost| lost.outcome != Outcome::InlinedOrGone;
        for lost in self.hot_lost.iter().filter(judged) {
            let share = percent(lost.count.into(), counts.total);
            let (title, what) = match lost.outcome {
                Outcome::Changed => ("stale", "has changed since the profile was made"),
                Outcome::Inlined => ("lost", "is only inlined in the binaries"),
                _ => ("lost", "is in none of the binaries"),
            };
            list.push(Annotation {
                level: Level::Warning,
                file: Some(self.profile.clone()),
                title: format!("profkit match: {title} function"),
                text: format!("{} {what}: {share} of all counts", lost.demangled),
            });
        }
        list
    }

    fn unit_word(&self) -> &'static str {
        match self.unit {
            "samples" => "samples",
            _ => "counts",
        }
    }

    /// Says why `--fail-under` is not met: less than `least` percent of all counts are of matched functions, or of
    /// functions that the debug info shows as inlined, which have no hash to compare. Functions that may be inlined or
    /// gone are not judged: if they decide, the message says so and has no share.
    pub fn gate(&self, least: f64) -> Option<String> {
        let counts = self.parts();
        if !self.binaries.is_empty() && self.is_other_everywhere() {
            let profile = words(self.instrumentation);
            return Some(format!(
                "the profile has {profile}, but no binary has such counters: no count can be used"
            ));
        }
        let with = |more: u128| counts.percent(counts.matched + counts.inlined + more);
        let Some(share) = with(0) else {
            return Some(format!(
                "all counts of the profile are 0: no share of them can match, so --fail-under {least} is not met"
            ));
        };
        let unit = self.unit_word();
        // A binary with symbols that has not one function of the profile is of another program.
        let is_same = counts.matched > 0 || self.is_stripped();
        if share < least && is_same && with(counts.inlined_or_gone).is_some_and(|it| it >= least) {
            let why = if self.is_stripped() {
                "a binary is stripped, so its functions have no names"
            } else {
                "the binary has symbols only, which do not show inlined functions"
            };
            return Some(format!(
                "cannot be judged: {why}: {}",
                self.what_shows_all()
            ));
        }
        (share < least).then(|| {
            let share = percent_beside(share, least);
            let inlined = match counts.inlined {
                0 => String::new(),
                part => format!(
                    " ({} are of inlined functions, whose hashes are not known)",
                    percent(part, counts.total)
                ),
            };
            format!(
                "{share} of all {unit} are matched{inlined}, but --fail-under requires {least}%"
            )
        })
    }
}

fn stage(kind: InstrKind) -> [&'static str; 1] {
    [if kind.is_ir() { "IR" } else { "front-end" }]
}

fn words(stage: Option<[&str; 1]>) -> &'static str {
    match stage {
        Some(["IR"]) => "counters of LLVM IR (-fprofile-generate)",
        _ => "counters of the front end (-fprofile-instr-generate)",
    }
}

/// Serializes the place where the functions were found: `sections`, `debug-info`, `symbols`, `probes`,
/// `mip-map` or `profile`.
fn origin<S: serde::Serializer>(origin: &Option<Origin>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match origin {
        Some(Origin::Sections) => "sections",
        Some(Origin::DebugInfo) => "debug-info",
        Some(Origin::Symbols) => "symbols",
        Some(Origin::Probes) => "probes",
        Some(Origin::MipMap) => "mip-map",
        None => "profile",
    })
}

fn reason_text(reason: SuccessorReason) -> &'static str {
    match reason {
        SuccessorReason::OtherHash => "same name, other hash",
        SuccessorReason::SameHash => "same hash",
        SuccessorReason::SameHashAndNeighbours => "same hash, same neighbours",
        SuccessorReason::SameHashAndName => "same hash, name alike",
        SuccessorReason::NameAlike => "name alike",
    }
}

impl BinaryReport {
    /// The binary in one line. `builds` says whether the line tells if the profile is of this build.
    fn line(&self, unit: &str, builds: bool) -> String {
        let from = match self.origin {
            None if unit == "counters" => "names and hashes of a profile",
            None => "names of a profile",
            // A profile of MIP, and a program that was built without it.
            Some(Origin::Sections) if unit == "calls" => {
                "names from its sections for LLVM's profiles: without a MIP map, signatures cannot be compared"
            }
            Some(Origin::DebugInfo) if unit == "calls" => {
                "names from its debug info: without a MIP map, signatures cannot be compared"
            }
            Some(Origin::Symbols) if unit == "calls" && !self.stripped => {
                "symbols only: without a MIP map, signatures cannot be compared"
            }
            Some(Origin::Sections) => "names and hashes from its profile sections",
            Some(Origin::DebugInfo) => "names and hashes from its debug info",
            Some(Origin::Symbols) if self.stripped => {
                "stripped: only the names that it exports are known"
            }
            Some(Origin::Symbols) if unit == "samples" && self.debug_info == "read" => {
                "names from its symbols and debug info"
            }
            Some(Origin::Symbols) if unit == "samples" => "names from its symbols",
            Some(Origin::Symbols) => "symbols only: hashes cannot be compared",
            Some(Origin::Probes) => "names and checksums from its pseudo probes",
            Some(Origin::MipMap) => "names and signatures from its MIP map",
        };
        let build = match self.same_build.filter(|_| builds) {
            Some(true) => "; the profile is of this build",
            Some(false) => "; the profile is of another build",
            None => "",
        };
        let functions = plural(self.functions, "function");
        format!("{}: {functions}, {from}{build}", self.path)
    }
}

/// Adds a table of the parts of a whole. Each part has a row with a bar.
fn add_shares(document: &mut Document, whole: u128, rows: &[(&str, Style, u128)]) {
    let mut table = Table::new(["<", ">", ">", "<"]);
    for &(what, style, part) in rows {
        let share = match whole {
            0 => String::new(),
            _ => percent(part, whole),
        };
        let bar = Cell::bar(style, part, whole);
        table.row([what.into(), part.into(), share.into(), bar]);
    }
    document.table(table);
}

impl Answer for MatchReport {
    fn document(&self) -> Document {
        let mut document = Document::default();
        self.add_title(&mut document, (&self.profile, ""), true);
        let FunctionShares {
            total,
            matched,
            changed,
            unknown,
        } = self.functions.of;
        let is_profile = self.binaries.iter().all(|one| one.origin.is_none());
        let what = if is_profile && !self.binaries.is_empty() {
            "new build"
        } else {
            "binaries"
        };
        document.section(format_args!("Functions of the {what}: {}", grouped(total)));
        let rows = [
            ("matched by the profile", Style::Hot, matched.into()),
            ("changed since", Style::Warm, changed.into()),
            ("not in the profile", Style::Cold, unknown.into()),
        ];
        add_shares(&mut document, total.into(), &rows);
        let counts = self.parts();
        let unit = match self.unit {
            "samples" => "Samples of the profile",
            _ => "Counts of the profile",
        };
        document.section(format_args!("{unit}: {}", grouped(counts.total)));
        if counts.total == 0 {
            document.line("  all are 0: nothing of the profile can be used");
            return document;
        }
        let mut rows = vec![
            ("of matched functions", Style::Hot, counts.matched),
            ("of changed functions", Style::Warm, counts.changed),
        ];
        if counts.inlined > 0 {
            rows.push(("of inlined functions", Style::Warm, counts.inlined));
        }
        if counts.inlined_or_gone > 0 {
            let row = (
                "of functions inlined or gone",
                Style::Cold,
                counts.inlined_or_gone,
            );
            rows.push(row);
        }
        if counts.gone > 0 || counts.inlined_or_gone == 0 {
            rows.push(("of missing functions", Style::Cold, counts.gone));
        }
        add_shares(&mut document, counts.total, &rows);
        if matched == 0
            && changed == 0
            && counts.gone + counts.inlined_or_gone == counts.total
            && !self.is_stripped()
        {
            document.wrapped(
                "  ",
                "The profile has no function in common with what it is compared with: it is of another program, or of another language or mangling of names. `profkit show` and `llvm-nm` list the names of both.",
            );
        }
        if counts.inlined > 0 {
            document.wrapped(
                "  ",
                "Inlined functions are in the binary only as parts of others, so their hashes are not known: a compiler uses their counts if the functions have not changed. An instrumented build has all hashes.",
            );
        }
        if counts.inlined_or_gone > 0 {
            let why = if self.is_stripped() {
                "A stripped binary has no names of functions but those that it exports"
            } else {
                "A function that was inlined everywhere has no symbol, so symbols do not show whether it is inlined or gone"
            };
            document.wrapped("  ", format_args!("{why}: {}.", self.what_shows_all()));
        }
        if !self.hot_lost.is_empty() {
            self.add_lost(&mut document);
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, self)
    }
}

impl MatchReport {
    fn add_lost(&self, document: &mut Document) {
        document.section("Hot functions lost");
        let mut table = Table::new([">share", "<?", "<now", "<function"]);
        let total = self.parts().total;
        let spelled = |name: &str, demangled: &str| match self.mangled {
            true => names::printable(name.as_bytes()).into_owned(),
            false => demangled.to_owned(),
        };
        for lost in &self.hot_lost {
            let mut name = spelled(&lost.function, &lost.demangled);
            if let Some(now) = &lost.successor {
                if now.function != lost.function {
                    name += &format!(" -> {}", spelled(&now.function, &now.demangled));
                }
                name += &format!(" ({})", reason_text(now.reason));
            }
            let word = match lost.outcome {
                Outcome::Changed => "changed",
                Outcome::Inlined => "inlined",
                Outcome::InlinedOrGone => "inlined or gone",
                _ => "gone",
            };
            table.row([
                percent(lost.count.into(), total).into(),
                Cell::bar(Style::Bar, lost.count, total),
                word.into(),
                name.into(),
            ]);
        }
        document.table(table);
        if self.hot_lost_more > 0 {
            let more = grouped(self.hot_lost_more);
            document.line(format_args!("  … and {more} more"));
        }
        if self.hot_lost.iter().any(|lost| lost.is_name_hash) {
            document.wrapped(
                "  ",
                "A number is the hash of a name: the profile has no names, and no binary has a name with this hash.",
            );
        }
    }

    /// Adds the profile and the binaries; with `builds` also whether the profile is from their builds.
    fn add_title(&self, document: &mut Document, (name, of): (&str, &str), builds: bool) {
        let count = self.binaries.len();
        let binaries = match count {
            _ if self.binaries.iter().all(|one| one.origin.is_none()) => {
                plural(count as u64, "profile")
            }
            1 => "1 binary".to_owned(),
            _ => format!("{} binaries", grouped(count as u64)),
        };
        document.title(name, format_args!("{of}compared with {binaries}"));
        for binary in &self.binaries {
            document.wrapped("  ", binary.line(self.unit, builds));
            if binary.lists_only_used && self.parts().gone > 0 && builds {
                document.wrapped(
                    "    ",
                    "the profile has only functions that ran: one that looks missing may be in its build",
                );
            }
            if let Some(error) = &binary.debug_info_error {
                document.wrapped(
                    "    ",
                    format_args!(
                        "warning: the debug info is damaged, so functions that were inlined may look missing: {error}"
                    ),
                );
            }
            if binary.other_instrumentation && builds {
                document.wrapped(
                    "    ",
                    format_args!(
                        "{} has {}, the profile has {}: their hashes never agree",
                        binary.origin.map_or("it", |_| "the binary"),
                        words(binary.instrumentation),
                        words(self.instrumentation)
                    ),
                );
            }
        }
        for skipped in &self.skipped {
            let (path, reason) = (&skipped.path, &skipped.reason);
            document.wrapped("  ", format_args!("{path}: skipped: {reason}"));
        }
    }
}

/// The results of comparing several profiles with the same binaries.
#[derive(Clone, Debug, Serialize)]
pub struct MatchList {
    schema: &'static str,
    schema_version: u32,
    from: String,
    profiles: Vec<MatchReport>,
    unreadable: Vec<Skipped>,
}

impl MatchList {
    /// Makes an empty list of the profiles of a folder, archive or list.
    pub fn new(from: String) -> Self {
        MatchList {
            schema: "profkit-match-list",
            schema_version: 2,
            from,
            profiles: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// The path of the folder, archive or list that names the profiles.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Adds a comparison.
    pub fn push(&mut self, report: MatchReport) {
        self.profiles.push(report);
    }

    /// Adds a profile that cannot be read.
    pub fn push_unreadable(&mut self, path: String, reason: String) {
        self.unreadable.push(Skipped { path, reason });
    }

    /// Whether all profiles could be read, and there is at least one.
    pub fn is_complete(&self) -> bool {
        self.unreadable.is_empty() && !self.profiles.is_empty()
    }

    /// The annotations of all comparisons.
    pub fn annotations(&self) -> Annotations {
        let mut list = Annotations::default();
        for report in &self.profiles {
            list.extend(report.annotations());
        }
        list
    }

    /// Checks `--fail-under`. Returns a message for each profile with less than `least` percent of its counts matched.
    pub fn gate(&self, least: f64) -> Vec<String> {
        let reason = |report: &MatchReport| {
            let reason = report.gate(least)?;
            Some(format!("{}: {reason}", report.profile))
        };
        self.profiles.iter().filter_map(reason).collect()
    }
}

impl Answer for MatchList {
    /// A row for each profile, the one with the smallest matched share first.
    fn document(&self) -> Document {
        let mut document = Document::default();
        let mut reports: Vec<&MatchReport> = self.profiles.iter().collect();
        let share = |report: &&MatchReport| report.counts.matched_share.unwrap_or(-1.0);
        reports.sort_by(|one, two| share(one).total_cmp(&share(two)));
        let Some(first) = reports.first() else {
            return document;
        };
        let count = plural(reports.len() as u64, "profile") + ", ";
        first.add_title(&mut document, (&self.from, &count), false);
        document.section("Counts of the profiles");
        let mut table = Table::new([">matched", "<?", ">changed", ">missing", "<profile"]);
        for report in &reports {
            let counts = report.parts();
            let remark = match counts.total {
                0 => " (all counts are 0)",
                _ if report.is_other_everywhere() => " (other instrumentation: no hash can agree)",
                _ => "",
            };
            table.row([
                percent(counts.matched, counts.total).into(),
                Cell::bar(Style::Bar, counts.matched, counts.total),
                percent(counts.changed, counts.total).into(),
                percent(
                    counts.gone + counts.inlined + counts.inlined_or_gone,
                    counts.total,
                )
                .into(),
                format!("{}{remark}", report.profile).into(),
            ]);
        }
        document.table(table);
        if first.parts().matched < first.parts().total {
            let profile = quoted(&first.profile);
            document.line("");
            document.wrapped(
                "",
                format_args!(
                    "profkit match {profile} BINARY lists the hot functions that are lost"
                ),
            );
        }
        document
    }

    fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        write_json(out, self)
    }
}
