//! Checks the links of the documentation of the crate `profkit`, which shows the items of all libraries. rustdoc warns
//! about a link that does not resolve where the item is defined, but not about one that only dies when the item is
//! shown in another crate.
use anyhow::{Context, Result, bail};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The folder of the crate whose pages are checked. Its pages link to each other, to those of the other crates, and
/// to the web.
const CRATE: &str = "profkit";

/// Fails if a page of the crate has a dead link. `docs` is the folder that `cargo doc` wrote.
pub fn check(docs: &Path) -> Result<()> {
    let mut pages = Vec::new();
    collect(&docs.join(CRATE), &mut pages)?;
    let mut known = HashMap::new();
    let mut problems = BTreeSet::new();
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
        if is_redirect(&text) {
            continue;
        }
        for problem in problems_of(&text, page, docs, &mut known) {
            let page = page.strip_prefix(docs).unwrap_or(page).display();
            problems.insert(format!("{page}: {problem}"));
        }
    }
    if problems.is_empty() {
        println!("the links of {} pages lead somewhere", pages.len());
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    bail!("{} dead links in the documentation", problems.len());
}

/// Removes the pages of the crate, if there are any. `cargo doc` then writes all of them again.
pub fn remove_pages(docs: &Path) -> Result<()> {
    let folder = docs.join(CRATE);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    Ok(())
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, pages)?;
        } else if path.extension().is_some_and(|it| it == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

/// The ids of a page. `None` if there is no such page, or if it only leads to another page.
type Known = HashMap<PathBuf, Option<BTreeSet<String>>>;

fn ids_of<'k>(page: &Path, known: &'k mut Known) -> Option<&'k BTreeSet<String>> {
    let ids = known.entry(page.to_owned()).or_insert_with(|| {
        let text = fs::read_to_string(page).ok()?;
        let ids = || values(&text, " id=\"").map(str::to_owned).collect();
        (!is_redirect(&text)).then(ids)
    });
    ids.as_ref()
}

/// Whether a page only leads to another page. rustdoc writes such pages for items that are shown under another path.
/// The address of such a page does not tell a reader how to name the item.
fn is_redirect(page: &str) -> bool {
    page.contains("<p>Redirecting to ")
}

fn problems_of(text: &str, page: &Path, docs: &Path, known: &mut Known) -> Vec<String> {
    // What is before the main part is the sidebar, which rustdoc makes by itself.
    let main = text.find("<main").and_then(|at| text.get(at..));
    let main = main.unwrap_or(text);
    let mut problems: Vec<String> = values(main, "href=\"")
        .filter_map(|link| problem_of(link, page, docs, known))
        .collect();
    problems.extend(unresolved(main).map(|link| format!("`[{link}]` is not a link")));
    problems
}

fn problem_of(link: &str, page: &Path, docs: &Path, known: &mut Known) -> Option<String> {
    let on_the_web = ["https:", "http:", "javascript:"];
    if on_the_web.iter().any(|start| link.starts_with(start)) {
        return None;
    }
    if link.contains("::") {
        return Some(format!("{link} is a path of Rust, not an address"));
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        _ => joined(page.parent()?, file),
    };
    let inside = target.strip_prefix(docs).ok()?;
    if inside.starts_with("src") {
        return None;
    }
    // rustdoc leads from the module that defines an item to the one that shows it.
    if !inside.starts_with(CRATE) {
        return (!target.is_file()).then(|| format!("{link} is no page"));
    }
    let Some(ids) = ids_of(&target, known) else {
        return Some(format!("{link} is no page, or one that leads to another"));
    };
    let found = anchor.is_empty() || ids.contains(anchor);
    (!found).then(|| format!("{link} names a place that the page does not have"))
}

fn joined(folder: &Path, link: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path
}

/// The values that stand between `start` and the next quotation mark.
fn values<'t>(text: &'t str, start: &'static str) -> impl Iterator<Item = &'t str> {
    let parts = text.split(start).skip(1);
    parts.filter_map(|part| Some(part.split_once('"')?.0))
}

/// Returns the names of code that stand in square brackets outside of code blocks. rustdoc leaves such text if it
/// cannot resolve a link.
fn unresolved(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split("<pre").enumerate().map(|(index, part)| {
        let after = part.split_once("</pre>").map_or("", |(_, after)| after);
        if index == 0 { part } else { after }
    });
    let brackets = outside.flat_map(|part| part.split("[<code>").skip(1));
    brackets.filter_map(|part| {
        let (name, after) = part.split_once("</code>")?;
        after.starts_with(']').then_some(name)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn each_kind_of_dead_link_is_found() {
        let docs = tempfile::tempdir().unwrap();
        let folder = docs.path().join(CRATE).join("data");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("struct.There.html"), "<h2 id=\"method.new\">").unwrap();
        let redirect = "<p>Redirecting to <a href=\"x\">x</a>...</p>";
        fs::write(folder.join("struct.Moved.html"), redirect).unwrap();
        let page = folder.join("index.html");
        let problems = |body: &str| {
            let text = format!("<a href=\"sidebar\"></a><main>{body}</main>");
            problems_of(&text, &page, docs.path(), &mut Known::new())
        };
        for sound in [
            "<a href=\"https://example.org\"></a>",
            "<a href=\"struct.There.html\"></a>",
            "<a href=\"../data/struct.There.html#method.new\"></a>",
            "<a href=\"../../src/profkit/lib.rs.html#1\"></a>",
            "<pre>[<code>array</code>]</pre> [<code>a</code>, b] [1]",
        ] {
            assert_eq!(problems(sound), Vec::<String>::new(), "{sound}");
        }
        for (dead, part) in [
            ("<a href=\"crate::There::new\"></a>", "a path of Rust"),
            ("<a href=\"struct.Gone.html\"></a>", "is no page"),
            ("<a href=\"struct.Moved.html\"></a>", "leads to another"),
            (
                "<a href=\"struct.There.html#method.old\"></a>",
                "does not have",
            ),
            ("<a href=\"../../other/index.html\"></a>", "is no page"),
            ("see [<code>There</code>] <pre>x</pre>", "`[There]`"),
        ] {
            let found = problems(dead);
            assert_eq!(found.len(), 1, "{dead}: {found:?}");
            assert!(found[0].contains(part), "{dead}: {found:?}");
        }
    }
}
