//! Files of speedscope (<https://www.speedscope.app>) in its JSON schema "file format". A file has one sampled profile
//! for each kind of number that the stacks have, such as calls or bytes.
use super::Stacks;
use serde_json::{Value, json};

impl Stacks {
    /// The stacks as a file of speedscope. Numbers above 2^53 are rounded by the viewer.
    pub fn speedscope(&self) -> Value {
        let frames: Vec<Value> = self
            .frames
            .iter()
            .map(|frame| {
                let mut value = json!({ "name": frame.name });
                if let Some(members) = value.as_object_mut() {
                    if !frame.file.is_empty() {
                        members.insert("file".to_owned(), frame.file.clone().into());
                    }
                    if frame.line > 0 {
                        members.insert("line".to_owned(), frame.line.into());
                    }
                }
                value
            })
            .collect();
        let profiles: Vec<Value> = self
            .units
            .iter()
            .enumerate()
            .map(|(at, unit)| {
                let weights = self
                    .stacks
                    .iter()
                    .map(|(_, numbers)| numbers.get(at).copied().unwrap_or(0));
                let rows: Vec<(&[u32], u64)> = self
                    .stacks
                    .iter()
                    .map(|(stack, _)| stack.as_slice())
                    .zip(weights)
                    .filter(|(_, weight)| *weight > 0)
                    .collect();
                let total: u64 = rows
                    .iter()
                    .fold(0, |sum, (_, weight)| sum.saturating_add(*weight));
                json!({
                    "type": "sampled",
                    "name": format!("{} of {}", unit.what, self.file),
                    "unit": if unit.unit == "bytes" { "bytes" } else { "none" },
                    "startValue": 0,
                    "endValue": total,
                    "samples": rows.iter().map(|(stack, _)| stack).collect::<Vec<_>>(),
                    "weights": rows.iter().map(|(_, weight)| weight).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": concat!("profkit ", env!("CARGO_PKG_VERSION")),
            "name": self.file,
            "activeProfileIndex": self.first,
            "shared": { "frames": frames },
            "profiles": profiles,
        })
    }
}
