//! Tasks that check and measure heap profiles of real programs.
pub mod bench;
pub mod programs;
mod shown;

use crate::mip::succeed;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// The number of call stacks in a dump, and the size of their source locations in bytes in three forms, as `profkit
/// show` states it: as portable tables, as text with each frame once, and as text with each stack in full.
#[derive(Debug)]
struct LocationSizes {
    stacks: u64,
    tables: u64,
    frames: u64,
    plain: u64,
}

impl LocationSizes {
    const HEAD: &str = "\
| program | stacks | tables, bytes | each frame once as text, bytes | ratio | each stack as text, bytes | ratio |
|---|---|---|---|---|---|---|";

    fn of(profkit: &Path, raw: &Path, binary: &Path) -> Result<LocationSizes> {
        let mut command = Command::new(profkit);
        command.arg("show").arg(raw).arg("--binaries").arg(binary);
        let text = succeed(command.args(["--format", "json", "--top", "1"]))?;
        let json: serde_json::Value = serde_json::from_str(&text).context("show's JSON")?;
        let number = |key: &str| {
            let found = json["locations"][key].as_u64();
            found.with_context(|| format!("show's JSON lacks locations.{key}"))
        };
        Ok(LocationSizes {
            stacks: number("stacks")?,
            tables: number("table_bytes")?,
            frames: number("frame_bytes")?,
            plain: number("plain_bytes")?,
        })
    }

    fn row(&self, name: &str) -> String {
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let ratio = |plain: u64| plain as f64 / self.tables.max(1) as f64;
        format!(
            "| {name} | {} | {} | {} | {:.1} | {} | {:.1} |",
            self.stacks,
            self.tables,
            self.frames,
            ratio(self.frames),
            self.plain,
            ratio(self.plain)
        )
    }
}
