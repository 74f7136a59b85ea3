//! A heap profile inside an indexed profile, as bytes.
/// The MemProf section of an indexed profile, unread. Its inner offsets are absolute in the file it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemProfSection {
    /// The bytes of the section.
    pub bytes: Vec<u8>,
    /// Where the section began in its file.
    pub offset: u64,
}
