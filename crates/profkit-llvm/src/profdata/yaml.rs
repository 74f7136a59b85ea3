//! Writes the YAML that the tool needs, in the form of LLVM's `yaml::Output`.
use crate::lines::Lines;
use profkit_data::memprof::yaml::scalar;
use profkit_object::correlate::dwarf::Probe;

/// The number of columns from the start of a key to the start of its value.
const COLUMN: usize = 17;

/// Writes the output of `show --debug-info --show-format=yaml`.
pub fn probes(probes: &[Probe], lines: &mut Lines<'_>) {
    lines.text("---\nProbes:\n");
    for probe in probes {
        let mut first = true;
        let mut field = |key: &str, value: &[u8]| {
            lines.text(if first { "  - " } else { "    " });
            first = false;
            let spaces = COLUMN.saturating_sub(key.len() + 1).max(1);
            lines.text(key).text(":").text(" ".repeat(spaces));
            lines.text(value).end();
        };
        field("Function Name", &scalar(&probe.function_name));
        if let Some(name) = &probe.linkage_name {
            field("Linkage Name", &scalar(name));
        }
        field("CFG Hash", format!("0x{:X}", probe.cfg_hash).as_bytes());
        let offset = format!("0x{:X}", probe.counter_offset);
        field("Counter Offset", offset.as_bytes());
        field("Num Counters", probe.num_counters.to_string().as_bytes());
        if let Some(file) = &probe.file {
            field("File", &scalar(file));
        }
        if let Some(line) = probe.line.filter(|&line| line != 0) {
            field("Line", line.to_string().as_bytes());
        }
    }
    lines.text("...\n");
}
