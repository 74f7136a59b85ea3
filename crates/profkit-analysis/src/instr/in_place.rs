//! Indexed profiles whose records are read in their files.
use crate::heap::is_heap_alone;
use profkit_data::detect::{FileKind, detect};
use profkit_data::instr::indexed::{InPlace, IndexedProfile, IndexedReadOptions, ReleaseBytes};
use profkit_data::instr::{InstrKind, Record};

/// Opens an undamaged indexed profile, and passes each of its records to `see` on the way. `None` for any other profile,
/// and for one that holds a heap profile alone; what was passed then counts for nothing.
pub(crate) fn in_place<'d>(
    data: &'d [u8],
    release: Option<&'d ReleaseBytes<'d>>,
    mut see: impl FnMut(InstrKind, &Record),
) -> Option<InPlace<'d>> {
    if detect(data) != FileKind::InstrIndexed || is_heap_alone(data) {
        return None;
    }
    let options = IndexedReadOptions::new()
        .salvage(true)
        .table_is_checked(true);
    let profile = IndexedProfile::parse_with(data, &options).ok()?;
    let kind = profile.kind();
    InPlace::check(profile, release, |record| see(kind, record))
}
