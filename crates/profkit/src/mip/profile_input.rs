//! Opening MIP profiles.
use crate::exit::{Failure, Result};
use crate::io::Input;
use profkit_data::mip::MipProfile;
use std::path::Path;

/// Reads a profile.
pub(super) fn open(path: &Path) -> Result<MipProfile> {
    let input = Input::open(path)?;
    MipProfile::parse(&input).map_err(|error| Failure::file(input.name(), &error))
}
