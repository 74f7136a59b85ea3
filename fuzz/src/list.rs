//! Fuzzes two text formats that are not profiles: lists of inputs, and remapping files with new names.
use profkit_data::list::parse_list;
use profkit_data::remap::Remapping;

/// Reads any bytes as a list of inputs, and as a remapping file.
///
/// # Panics
/// If the line number of an entry is not that of a line in the bytes, or is not larger than that of the entry before;
/// if a remapping file has more entries than lines; or if the error about a remapping file does not name a line.
pub(crate) fn list(data: &[u8]) {
    let lines = data.split(|&byte| byte == b'\n').count();
    for some_exist in [false, true] {
        let mut last = 0;
        for entry in parse_list(data, |name| some_exist && name.len() % 2 == 0) {
            assert!(entry.line > last && entry.line <= lines, "{entry:?}");
            last = entry.line;
        }
    }
    match Remapping::parse(data) {
        Ok(table) => {
            assert!(table.len() <= lines);
            let old = data.split(|&byte| byte == b' ').next().unwrap_or_default();
            let _ = table.get(old);
        }
        Err(error) => assert!(error.to_string().contains("line"), "{error}"),
    }
}
