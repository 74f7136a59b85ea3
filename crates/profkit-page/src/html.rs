//! The page as HTML.
use super::encode::{column, index, packed};
use super::functions::{Blocks, Cut, FunctionList, Interner, PageFunction};
use super::{Detail, PAGE_VERSION, Page};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use profkit_report::{grouped, percent};
use rayon::prelude::*;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::fmt::Write as _;

const SCRIPT: &str = include_str!("assets/page.js");
const STYLE: &str = include_str!("assets/page.css");

/// The number of functions in the table that the page shows without its script.
const WITHOUT_SCRIPT: usize = 200;

/// The number of functions in the table on the first view.
const FIRST: usize = 10;

/// An upper bound in bytes for the parts of a page other than its data blocks: the text around the blocks, and the
/// sentence about what was left out.
const MARGIN: usize = 3000;

/// A page as text.
#[derive(Clone, Debug)]
pub struct Html {
    /// The HTML.
    pub text: String,
    /// What was left out to keep the size limit, and what pages of this kind of profile never contain.
    pub left_out: Vec<String>,
}

impl Page {
    /// Writes the page. If the page would be larger than `limit` bytes, details and cold functions are left out,
    /// beginning with the least important ones. If even the smallest page is larger, it is returned as it is.
    pub fn html(&mut self, limit: usize) -> Html {
        self.functions.finish();
        let mut blocks = self.fixed_blocks();
        let list = &self.functions;
        let mut kept = list.kept(Cut::Nothing);
        // The symbols are compressed although the size limit may later leave them out. This takes no longer: names and
        // symbols are the largest parts of a page, and one core compresses the names while another one compresses the
        // symbols.
        let (mut columns, (inside, symbols)) = rayon::join(
            || all_packed(list.columns(&kept)),
            || {
                rayon::join(
                    || all_packed(list.inside(&kept, true)),
                    || all_packed(FunctionList::symbols(&kept)),
                )
            },
        );
        let source = self.source.as_ref().map_or_else(Packed::new, |source| {
            all_packed(list.source(&kept, &source.lines))
        });
        let mut drawn = self.drawn(&kept);
        let around = self.document(&drawn, &Packed::new(), &self.left_out).len();
        let fixed = size(&blocks) + around + MARGIN;
        let fits =
            |parts: &[&Packed]| fixed + parts.iter().copied().map(size).sum::<usize>() <= limit;
        let mut rest = Vec::new();
        let mut cut = Cut::Symbols;
        if fits(&[&columns, &inside]) {
            if fits(&[&columns, &inside, &symbols]) {
                cut = Cut::Source;
                if fits(&[&columns, &inside, &symbols, &source]) {
                    cut = Cut::Nothing;
                    rest = source;
                }
                rest.extend(symbols);
            }
            rest.extend(inside);
        } else {
            drop((inside, symbols));
            let inside = all_packed(list.inside(&kept, false));
            cut = if fits(&[&columns, &inside]) {
                rest = inside;
                Cut::ColdDetails
            } else {
                Cut::Details
            };
            for less in [Cut::Idle, Cut::Cold] {
                if !fits(&[&columns, &rest]) {
                    cut = less;
                    kept = list.kept(cut);
                    columns = all_packed(list.columns(&kept));
                    drawn = self.drawn(&kept);
                }
            }
        }
        blocks.extend(columns);
        blocks.extend(rest);
        let facts = self.data(kept.len(), cut).to_string();
        blocks.push(("facts", packed(facts.as_bytes())));
        let mut left_out = self.left_out.clone();
        left_out.extend(self.lost(cut, kept.len()));
        Html {
            text: self.document(&drawn, &blocks, &left_out),
            left_out,
        }
    }

    fn lost(&self, cut: Cut, kept: usize) -> Vec<String> {
        let mut list = Vec::new();
        let gone = self.functions.functions.len() - kept;
        if cut >= Cut::Source && self.source.is_some() {
            list.push("the source of functions".to_owned());
        }
        if cut >= Cut::Symbols {
            list.push("symbols before demangling, and function hashes".to_owned());
        }
        match cut {
            Cut::ColdDetails => list.push("counters and values of cold functions".to_owned()),
            Cut::Details | Cut::Idle | Cut::Cold => {
                list.push("counters and values of functions".to_owned())
            }
            Cut::Nothing | Cut::Source | Cut::Symbols => {}
        }
        if gone > 0 {
            let which = if cut == Cut::Idle {
                "that never ran"
            } else {
                "that are cold or never ran"
            };
            list.push(format!("{} functions {which}", grouped(gone)));
        }
        list
    }

    /// Returns the facts that the script needs before it reads the blocks.
    fn data(&self, functions: usize, cut: Cut) -> serde_json::Value {
        let [entry, sum, max] = self.titles;
        let (detail, parts) = match self.detail {
            Detail::Nothing => ("", ""),
            Detail::Counts(title) => ("counts", title),
            Detail::Lines => ("lines", ""),
        };
        json!({
            "schema": PAGE_VERSION,
            "file": self.file,
            "kind": self.kind,
            "functions": functions,
            "total": to_f64(self.total),
            "unit": self.unit,
            "titles": { "entry": entry, "sum": sum, "max": max },
            "heat": self.has_heat,
            "detail": detail,
            "parts": parts,
            "source": self.source.as_ref().filter(|_| cut < Cut::Source).map(|source| json!({
                "title": source.title, "note": source.note,
            })),
            "flame": self.flame.as_ref().map(|flame| json!({
                "title": flame.title, "unit": flame.unit, "temperature": flame.by_temperature, "note": flame.note,
            })),
            "contexts": self.contexts.as_ref().map_or(0, |contexts| contexts.count),
            "traces": self.traces.len(),
            "order": self.proposal.as_ref().map_or(0, |proposal| proposal.order.len()),
            "startup": self.proposal.as_ref().map_or(&[][..], |proposal| &proposal.lines),
            "diff": self.diff.as_ref().map(|diff| diff.facts().clone()),
            "kinds": ["Indirect call", "Memory operation", "Virtual table"],
        })
    }

    fn fixed_blocks(&self) -> Packed {
        let mut blocks = Vec::new();
        if let Some(flame) = &self.flame {
            let mut names = Interner::default();
            let mut bytes = Vec::new();
            let frames: Vec<_> = flame.graph.frames().collect();
            index(frames.len(), &mut bytes);
            for frame in frames {
                index(frame.depth, &mut bytes);
                index(names.number(frame.name) - 1, &mut bytes);
                bytes.extend(column([
                    frame.weight,
                    thousandths(frame.cold),
                    thousandths(frame.hot),
                ]));
            }
            blocks.push(("flame-names", names.block()));
            blocks.push(("flame", bytes));
        }
        if let Some(contexts) = &self.contexts {
            blocks.push(("contexts", contexts.bytes.clone()));
            blocks.push(("stack-names", contexts.names.clone()));
        }
        if !self.traces.is_empty() {
            let mut bytes = Vec::new();
            for trace in &self.traces {
                bytes.extend(column([trace.weight.into()]));
                index(trace.functions.len(), &mut bytes);
                for &function in &trace.functions {
                    index(function, &mut bytes);
                }
            }
            blocks.push(("traces", bytes));
            if let Some(proposal) = &self.proposal {
                let numbers = proposal.order.iter();
                blocks.push(("order", column(numbers.map(|&number| number as u128))));
            }
        }
        if let Some(diff) = &self.diff {
            blocks.extend(diff.blocks());
        }
        all_packed(blocks)
    }

    /// Draws the curve and makes the table of the hottest functions, from the counts of these functions.
    fn drawn(&self, functions: &[&PageFunction]) -> Drawn {
        let mut drawn = Drawn::default();
        super::curve::draw(functions, self.total, self.unit, &mut drawn.curve);
        self.first_functions(functions, &mut drawn.first);
        self.hottest(functions, &mut drawn.hottest);
        drawn
    }

    fn document(&self, drawn: &Drawn, blocks: &Packed, left_out: &[String]) -> String {
        let (script, style) = (SCRIPT.trim(), STYLE.trim());
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"profkit\">\n<title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n<p>{}</p>\n<p>{}</p>\n<nav id=\"views\" aria-label=\"Views\"></nav>\n</header>\n<main id=\"main\">\n",
            source_hash(script),
            source_hash(style),
            escaped(base_name(&self.file)),
            escaped(base_name(&self.file)),
            escaped(&self.what),
            escaped(if base_name(&self.file) == self.file {
                ""
            } else {
                &self.file
            }),
        );
        self.summary(drawn, left_out, &mut out);
        out.push_str(&drawn.hottest);
        out.push_str("</main>\n<div id=\"live\" role=\"status\" aria-live=\"polite\"></div>\n<footer>Made by profkit. The page needs no network and sends nothing. Press / to search.</footer>\n");
        for (name, text) in blocks {
            let _ = writeln!(
                out,
                "<script type=\"text/plain\" id=\"b-{name}\">{text}</script>"
            );
        }
        let _ = write!(out, "<script>{script}</script>\n</body>\n</html>\n");
        out
    }

    /// Writes the summary of the profile, which is readable without the script.
    fn summary(&self, drawn: &Drawn, left_out: &[String], out: &mut String) {
        out.push_str("<section id=\"overview\">\n<h2 tabindex=\"-1\">Summary</h2>\n");
        if !self.notes.is_empty() {
            out.push_str("<div class=\"notes\" role=\"note\">\n");
            for note in &self.notes {
                let _ = writeln!(out, "<p>{}</p>", with_code(note));
            }
            out.push_str("</div>\n");
        }
        out.push_str("<div class=\"columns\">\n<dl class=\"facts\">\n");
        let mut before = "";
        for (name, value) in &self.facts {
            if *name != before && !name.is_empty() {
                let _ = write!(out, "<dt>{}</dt>", escaped(name));
                before = name;
            } else {
                out.push_str("<dt></dt>");
            }
            let _ = writeln!(out, "<dd>{}</dd>", with_code(value));
        }
        out.push_str("</dl>\n<div>\n");
        out.push_str(&drawn.curve);
        out.push_str("</div>\n</div>\n");
        out.push_str(&drawn.first);
        if !self.cutoffs.is_empty() {
            let rows = self.cutoffs.iter().filter(|row| {
                [
                    500_000, 900_000, 990_000, 999_000, 999_900, 999_990, 999_999,
                ]
                .contains(&row.0)
            });
            let parts = if self.detail == Detail::Lines {
                "Lines"
            } else {
                "Counters"
            };
            let rows = rows.map(|&(share, blocks, least)| {
                [share_text(share), grouped(blocks), grouped(least)]
            });
            let title = format!("Of all {}", self.unit);
            out.push_str("<div class=\"narrow\">\n");
            let columns = [&title, parts, "Smallest count"];
            table("How few make how much", &columns, rows, out);
            out.push_str("</div>\n");
        }
        if !self.coverage.is_empty() {
            let mut rows: Vec<_> = self.coverage.iter().collect();
            rows.sort_by_key(|(_, [functions, ..])| Reverse(*functions));
            let rows =
                rows.into_iter()
                    .take(500)
                    .map(|(file, [functions, called, blocks, ran])| {
                        [
                            file.clone(),
                            grouped(*functions),
                            percent((*called).into(), (*functions).into()),
                            grouped(*blocks),
                            percent((*ran).into(), (*blocks).into()),
                        ]
                    });
            table(
                "Coverage by file",
                &["File", "Functions", "Called", "Blocks", "Ran"],
                rows,
                out,
            );
        }
        if !left_out.is_empty() {
            let _ = writeln!(
                out,
                "<p class=\"status\">Not on this page: {}.</p>",
                escaped(&left_out.join("; "))
            );
        }
        out.push_str("</section>\n");
    }

    /// Writes the few hottest functions, or those that allocate most, for the first view.
    fn first_functions(&self, functions: &[&PageFunction], out: &mut String) {
        let hottest = FunctionList::hottest(functions, FIRST);
        if !hottest.is_empty() {
            let rows = hottest.into_iter().map(|(name, text, sum)| {
                let link = format!(
                    "<a href=\"#function/{}\">{}</a>",
                    in_address(&name),
                    escaped(&text)
                );
                [link, grouped(sum), percent(sum, self.total)]
            });
            let columns = ["Function", self.titles[1], "Share"];
            html_table("Hottest functions", &columns, rows, out);
        }
        if !self.allocating.is_empty() {
            let total = self
                .allocating
                .iter()
                .map(|one| u128::from(one.bytes))
                .sum();
            let rows = self.allocating.iter().take(FIRST).map(|one| {
                [
                    escaped(&one.function),
                    grouped(one.bytes),
                    percent(one.bytes.into(), total),
                    grouped(one.allocations),
                ]
            });
            let columns = ["Function", "Bytes", "Share", "Allocations"];
            html_table("Functions that allocate most", &columns, rows, out);
        }
    }

    /// Writes the hottest functions as a table, for readers without the script.
    fn hottest(&self, functions: &[&PageFunction], out: &mut String) {
        if functions.is_empty() {
            return;
        }
        let ran = functions.iter().filter(|one| one.numbers.sum > 0);
        let mut hottest: Vec<_> = ran.enumerate().collect();
        let order = |at: &(usize, &&PageFunction)| (Reverse(at.1.numbers.sum), at.0);
        if hottest.len() > WITHOUT_SCRIPT {
            hottest.select_nth_unstable_by_key(WITHOUT_SCRIPT, order);
            hottest.truncate(WITHOUT_SCRIPT);
        }
        hottest.sort_unstable_by_key(order);
        let rows = hottest.into_iter().map(|(_, one)| {
            [
                one.shown.clone(),
                grouped(one.numbers.sum),
                percent(one.numbers.sum, self.total),
            ]
        });
        out.push_str("<section id=\"plain\">\n");
        table(
            "Hottest functions",
            &["Function", self.titles[1], "Share"],
            rows,
            out,
        );
        out.push_str("</section>\n");
    }
}

#[derive(Debug, Default)]
struct Drawn {
    curve: String,
    first: String,
    hottest: String,
}

type Packed = Vec<(&'static str, String)>;

fn size(blocks: &Packed) -> usize {
    blocks.iter().map(|(_, text)| text.len()).sum()
}

fn all_packed(blocks: Blocks) -> Packed {
    let blocks = blocks.into_par_iter();
    blocks.map(|(name, bytes)| (name, packed(&bytes))).collect()
}

/// Writes a table with a heading. The first column has text, the others have numbers.
fn table<const N: usize>(
    title: &str,
    columns: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    out: &mut String,
) {
    let rows = rows.map(|row| row.map(|cell| escaped(&cell)));
    html_table(title, columns, rows, out);
}

/// Writes a table as [`table`] does; the cells are HTML.
fn html_table<const N: usize>(
    title: &str,
    columns: &[&str; N],
    rows: impl Iterator<Item = [String; N]>,
    out: &mut String,
) {
    let class = |at: usize| if at == 0 { "wide" } else { "num" };
    let title = escaped(title);
    let _ = write!(
        out,
        "<h3>{title}</h3>\n<div class=\"scroll auto\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table aria-label=\"{title}\">\n<thead><tr>"
    );
    for (at, column) in columns.iter().enumerate() {
        let _ = write!(
            out,
            "<th scope=\"col\" class=\"{}\">{}</th>",
            class(at),
            escaped(column)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td class=\"{}\">{cell}</td>", class(at));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .find(|part| !part.is_empty())
        .unwrap_or(path)
}

/// Escapes text for HTML, also for use in quoted attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Encodes a text for the part of an address after `#`.
fn in_address(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Returns a share in millionths as a percentage: `99.99%`.
fn share_text(millionths: u64) -> String {
    let text = format!("{}.{:04}", millionths / 10_000, millionths % 10_000);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The hash by which a content security policy allows a script or style.
fn source_hash(source: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(Sha256::digest(source.as_bytes()))
    )
}

#[expect(clippy::cast_possible_truncation, reason = "a share is from 0 to 1")]
fn thousandths(share: f64) -> u128 {
    (share.clamp(0.0, 1.0) * 1000.0).round() as u128
}

fn to_f64(number: u128) -> f64 {
    number as f64
}

/// Converts a text to HTML. In the text, commands stand between grave accents.
fn with_code(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, after)) = after.split_once('`')
    {
        let _ = write!(html, "{}<code>{}</code>", escaped(before), escaped(code));
        rest = after;
    }
    html + &escaped(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_texts_are_code() {
        assert_eq!(
            with_code("a < b after `profkit <x>`, 1 ` alone"),
            "a &lt; b after <code>profkit &lt;x&gt;</code>, 1 ` alone"
        );
    }

    #[test]
    fn the_script_is_small() {
        assert!(SCRIPT.len() <= 64_500, "{}", SCRIPT.len());
    }

    #[test]
    fn shares_have_no_needless_zeros() {
        assert_eq!(
            [500_000, 999_900, 999_999].map(share_text),
            ["50%", "99.99%", "99.9999%"]
        );
    }
}
