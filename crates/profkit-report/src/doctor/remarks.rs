//! Lines about what is odd in a profile that is not damaged.
use crate::{numbered, percent};
use profkit_analysis::doctor::Remarks;

/// Returns a line for each kind of odd record, with its share of all counts.
pub fn record_remarks(remarks: &Remarks) -> Vec<String> {
    let share = |part: u128| percent(part, remarks.counts);
    let mut list = Vec::new();
    if remarks.never_called > 0 {
        list.push(format!(
            "{} never called although code in {} ran ({} of all counts): the program reset its counters while it ran, or the file was changed",
            numbered(remarks.never_called, "{function was|functions were}"),
            if remarks.never_called == 1 { "it" } else { "them" },
            share(remarks.never_called_counts),
        ));
    }
    if remarks.zero_hash > 0 {
        list.push(format!(
            "{} the hash 0 ({} of all counts), which LLVM does not compute: no compiler uses the counts",
            numbered(remarks.zero_hash, "{function has|functions have}"),
            share(remarks.zero_hash_counts),
        ));
    }
    if remarks.nameless > 0 {
        list.push(format!(
            "{} no name, only its hash ({} of all counts): compilers find functions by name. A merge takes the names from any other profile that has them. If this file is not damaged, an object file of the program was built or stripped without its section __llvm_prf_names",
            numbered(remarks.nameless, "{function has|functions have}"),
            share(remarks.nameless_counts),
        ));
    }
    list
}

/// Returns the lines of [`record_remarks`], and one about value sites that may lack values.
pub fn remarks(remarks: &Remarks) -> Vec<String> {
    let mut list = record_remarks(remarks);
    if remarks.full_sites > 0 {
        list.push(format!(
            "{} of {} with values {} 24 or 255 values, the most that are kept: others may be missing. LLVM_VP_MAX_NUM_VALS_PER_SITE=255 in the environment of the program keeps more",
            numbered(remarks.full_sites, "value {site|sites}"),
            numbered(remarks.sites, "{site|sites}"),
            if remarks.full_sites == 1 { "has" } else { "have" },
        ));
    }
    list
}
