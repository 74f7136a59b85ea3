//! Which inputs are heap profiles.
use crate::memprof::is_memprof_input;
use profkit_data::memprof::yaml;
use profkit_merge::Inputs;
use profkit_merge::files::{InputList, is_stdio};
use std::fs::File;
use std::io::{self, Read};

/// The indexes of heap profiles, and those of all other inputs. An input that cannot be read is left to the merge,
/// which reports it.
pub(super) fn split_heap_profiles(inputs: &InputList) -> (Vec<usize>, Vec<usize>) {
    (0..inputs.files.len()).partition(|&index| is_heap_profile(inputs, index).unwrap_or(false))
}

fn is_heap_profile(inputs: &InputList, index: usize) -> io::Result<bool> {
    let file = inputs.files.get(index);
    if let Some(file) = file.filter(|file| !is_stdio(&file.path)) {
        let mut head = [0; 8];
        let read = File::open(&file.path)?.read(&mut head)?;
        let head = head.get(..read).unwrap_or_default();
        if !yaml::is_yaml(head) {
            return Ok(is_memprof_input(head));
        }
    }
    let mut scratch = Vec::new();
    Ok(is_memprof_input(inputs.open(index, &mut scratch)?.as_ref()))
}
