//! Types for hashes and ids: name hashes, function hashes, build ids.
use md5::{Digest, Md5};
use std::fmt;

/// The hash of a function's PGO name: the low 64 bits of its MD5. LLVM calls it `NameRef` or `GUID`. In the function
/// table of an indexed profile, which is a hash table by name, it is the hash of the key.
///
/// The low bits are the first eight bytes of the digest, read as a little-endian number
/// (`IndexedInstrProf::ComputeHash` in LLVM's `InstrProf.h`).
///
/// ```
/// use profkit_data::ids::NameRef;
///
/// assert_eq!(NameRef::of(b"main").to_string(), "0xdb956436e78dd5fa");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameRef(pub u64);

impl NameRef {
    /// Computes the hash of a function's name.
    pub fn of(name: &[u8]) -> Self {
        let digest = Md5::digest(name);
        let mut low = [0; 8];
        low.copy_from_slice(&digest[..8]);
        NameRef(u64::from_le_bytes(low))
    }

    /// The hash that a text stands for, if it is the text by which a hash is printed (`0x` and 16 hexadecimal digits).
    /// Functions whose names are not known have such a text as their name.
    ///
    /// ```
    /// use profkit_data::ids::NameRef;
    ///
    /// let hash = NameRef::of(b"main");
    /// assert_eq!(NameRef::from_stand_in(hash.to_string().as_bytes()), Some(hash));
    /// assert_eq!(NameRef::from_stand_in(b"main"), None);
    /// ```
    pub fn from_stand_in(name: &[u8]) -> Option<Self> {
        let digits = name
            .strip_prefix(b"0x")
            .filter(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))?;
        let digits = std::str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok().map(NameRef)
    }
}

impl fmt::Display for NameRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// The function hash: a hash of a function's control flow (LLVM's `FuncHash`). If two records have the same name and
/// different function hashes, they belong to different functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FuncHash(pub u64);

impl FuncHash {
    /// Whether the record is context-sensitive. Bit 60 of the function hash is set for such records (from raw version
    /// 5).
    #[inline]
    pub fn is_context_sensitive(self) -> bool {
        self.0 & profkit_abi::raw::CS_FUNC_HASH_BIT != 0
    }
}

impl fmt::Display for FuncHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// A build id as it is stored in a file (ELF `--build-id` note, Mach-O UUID, PE CodeView id). Its length is between one
/// and a few dozen bytes.
///
/// ```
/// assert_eq!(profkit_data::ids::BuildId(vec![0xab, 0xc]).to_string(), "ab0c");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Returns a file name without extension for the profile of a program. The name is the build id of the program. For a
/// profile of several programs (an executable and its libraries), the name consists of the first build id, the number
/// of further build ids, and a hash of all build ids. Without build ids, the name is `no-build-id`.
pub fn program_name(ids: &[BuildId]) -> String {
    match ids {
        [] => "no-build-id".to_owned(),
        [id] => id.to_string(),
        [first, rest @ ..] => {
            let all: Vec<_> = ids.iter().map(ToString::to_string).collect();
            let NameRef(hash) = NameRef::of(all.join(" ").as_bytes());
            format!("{first}+{}-{hash:016x}", rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_differ_if_any_id_does() {
        let name = |ids: &[u8]| {
            let ids: Vec<_> = ids.iter().map(|&id| BuildId(vec![id, 0xb0])).collect();
            program_name(&ids)
        };
        assert_eq!(name(&[]), "no-build-id");
        assert_eq!(name(&[1]), "01b0");
        assert_eq!(name(&[1, 2]), "01b0+1-05f762d1a48dcb66");
        assert_ne!(name(&[1, 2]), name(&[1, 3]));
    }

    #[test]
    fn name_ref_is_the_first_eight_digest_bytes_little_endian() {
        // The MD5 of the text "main" is fad58de7366495db4650cfefac2fcd61.
        assert_eq!(NameRef::of(b"main"), NameRef(0xdb95_6436_e78d_d5fa));
    }
}
