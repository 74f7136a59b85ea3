//! The line formats around profiles: lists of inputs, and tables of new names.
use profkit_data::list::parse_list;
use profkit_data::remap::Remapping;

/// Reads a list of inputs and a remapping file.
///
/// # Panics
/// If an entry of the list has no line of the input, or two have the same; if a new name cannot be looked up.
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
