//! Tables as JSON: the document that `export` writes, an array of objects, or an object per line.
use super::cells::{Cells, TextBuilder};
use super::{Fault, Parts};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// In this many bytes at the start, the facts of a document name its schema.
const SEARCHED: usize = 1 << 16;

pub(super) fn is_table(data: &[u8]) -> bool {
    let start = data.trim_ascii_start();
    let start = start.get(..SEARCHED).unwrap_or(start);
    let has = |text: &[u8]| start.windows(text.len()).any(|part| part == text);
    match start.first() {
        Some(b'[') => has(b"{\"") || has(b"{ \""),
        Some(b'{') => {
            let names: [&[u8]; 7] = [
                b"\"profkit-table\"",
                b"\"symbol\"",
                b"\"address\"",
                b"\"stack_id\"",
                b"\"function\"",
                b"\"property\"",
                b"\"from\"",
            ];
            names.into_iter().any(has)
        }
        _ => false,
    }
}

pub(super) fn read(data: &[u8]) -> Result<Parts, Fault> {
    let wrong = |error: serde_json::Error| Fault::new(format!("not JSON: {error}"));
    let mut facts = BTreeMap::new();
    let mut rows: Vec<Value> = Vec::new();
    for document in serde_json::Deserializer::from_slice(data).into_iter::<Value>() {
        match document.map_err(wrong)? {
            Value::Array(all) => rows.extend(all),
            Value::Object(mut head)
                if head.get("schema").is_some_and(|it| it == "profkit-table") =>
            {
                if let Some(Value::Array(all)) = head.remove("rows") {
                    rows.extend(all);
                }
                facts.extend(head.into_iter().map(|(name, value)| (name, fact(value))));
            }
            row => rows.push(row),
        }
    }
    let mut names: Vec<String> = Vec::new();
    let mut objects: Vec<Map<String, Value>> = Vec::with_capacity(rows.len());
    for (number, row) in (1..).zip(rows) {
        let Value::Object(row) = row else {
            return Err(Fault {
                row: Some(number),
                ..Fault::new("a row is not an object")
            });
        };
        for name in row
            .keys()
            .filter(|name| !names.contains(name))
            .cloned()
            .collect::<Vec<_>>()
        {
            names.push(name);
        }
        objects.push(row);
    }
    let columns = names.into_iter().map(|name| {
        let cells = cells(
            objects
                .iter()
                .map(|row| row.get(&name).unwrap_or(&Value::Null)),
        );
        (name, cells)
    });
    Ok((columns.collect(), facts))
}

fn fact(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Array(texts) => {
            let texts: Vec<String> = texts.into_iter().map(fact).collect();
            texts.join(", ")
        }
        other => other.to_string(),
    }
}

fn cells<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Cells {
    let known = || values.clone().filter(|value| !value.is_null());
    if known().all(Value::is_u64) {
        return Cells::Numbers(values.map(Value::as_u64).collect());
    }
    if known().all(Value::is_number) {
        return Cells::Floats(values.map(Value::as_f64).collect());
    }
    // Texts beside numbers are read as numbers if the column is one of numbers.
    let scalar = |value: &Value| value.is_string() || value.is_number();
    if !known().all(scalar) {
        return Cells::Other("objects or lists".to_owned(), values.count());
    }
    let mut texts = TextBuilder::default();
    for value in values {
        match value {
            Value::String(text) => texts.push(Some(text)),
            Value::Null => texts.push(None),
            number => texts.push(Some(&number.to_string())),
        }
    }
    texts.finish()
}
