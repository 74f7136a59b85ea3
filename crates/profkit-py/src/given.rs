//! Inputs as Python's callers give them.
use crate::error::Fault;
use profkit_data::Weight;
use profkit_merge::files::{GivenInput, InputSource};
use pyo3::pybacked::PyBackedBytes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// A path or a name, the bytes of an input in memory, its weight as text, and its id.
pub type Given = (Vec<u8>, Option<PyBackedBytes>, String, Option<String>);

/// # Errors
/// If a weight is no positive number.
pub fn inputs_of(given: Vec<Given>, missing_ok: bool) -> Result<Vec<GivenInput>, Box<Fault>> {
    let inputs = given.into_iter().map(|(name, bytes, weight, id)| {
        let weight = weight.parse::<Weight>();
        Ok(GivenInput {
            source: match bytes {
                Some(bytes) => InputSource::Memory {
                    name: String::from_utf8_lossy(&name).into_owned(),
                    bytes: Box::new(bytes),
                },
                None => InputSource::Path(OsString::from_vec(name).into()),
            },
            weight: weight.map_err(|error| Box::new(Fault::new("usage", error)))?,
            id,
            missing_ok,
        })
    });
    inputs.collect()
}
