//! What identifies a file: a merge that meets the same file twice must not count it twice, and must never take two files
//! for one.
use std::borrow::Cow;
use std::fs;
use std::path::{MAIN_SEPARATOR, Path};
use std::time::{SystemTime, UNIX_EPOCH};

/// The machine, the absolute path, and what the system knows of the file. `None` if there is no such file. Copies of a
/// file have other ids, because the time of their last change is another; the programs of two machines may well write
/// equal bytes at equal paths.
pub(crate) fn of_file(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let absolute = std::path::absolute(path).ok()?;
    let absolute = absolute.display().to_string();
    let nanoseconds =
        |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
    let modified = metadata.modified().map_or(0, nanoseconds);
    Some(format!(
        "file {} {} {modified} {} {}",
        machine(),
        metadata.len(),
        of_system(&metadata),
        portable_name(&absolute),
    ))
}

/// The name of an input as it is written down for other systems, where the separator of folders may be another: with `/`.
pub fn portable_name(name: &str) -> Cow<'_, str> {
    with_slashes(name, MAIN_SEPARATOR)
}

/// A backslash in a name of a file is a separator on Windows alone.
fn with_slashes(name: &str, separator: char) -> Cow<'_, str> {
    if separator != '/' && name.contains(separator) {
        name.replace(separator, "/").into()
    } else {
        name.into()
    }
}

#[cfg(unix)]
fn of_system(metadata: &fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    format!("{} {seconds}.{nanoseconds:09}", metadata.ino())
}

#[cfg(not(unix))]
fn of_system(metadata: &fs::Metadata) -> String {
    let created = metadata.created().ok();
    let since = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |time| time.as_nanos()).to_string()
}

/// The name of this machine, as far as a file or the environment tells it.
fn machine() -> String {
    let kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = || {
        ["HOSTNAME", "COMPUTERNAME"]
            .iter()
            .find_map(|name| std::env::var(name).ok())
    };
    kernel.or_else(named).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_slashes_where_the_system_has_another_separator() {
        let on_windows = with_slashes(r"runs\monday/a.zip!in\b.profraw", '\\');
        assert_eq!(on_windows, "runs/monday/a.zip!in/b.profraw");
        let on_unix = r"runs/back\slash.profraw";
        assert_eq!(with_slashes(on_unix, '/'), on_unix);
    }

    #[test]
    fn a_file_keeps_its_id_and_a_copy_has_another() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&one, "x").unwrap();
        fs::copy(&one, &two).unwrap();
        assert_eq!(of_file(&one), of_file(&one));
        assert_ne!(of_file(&one), of_file(&two));
        // Written again with the same bytes, it is the file of another run.
        let before = of_file(&one);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&one, "x").unwrap();
        assert_ne!(before, of_file(&one));
        assert_eq!(of_file(&folder.path().join("none")), None);
    }
}
