//! Names and paths as salted hashes.
use profkit_data::ids::NameRef;
use std::fmt;

/// Turns names and paths into hashes that depend on a salt. The same salt gives the same names in every profile and every
/// form of it, whether a file holds the names or only their hashes.
///
/// ```
/// use profkit_analysis::filter::Redaction;
/// use profkit_data::ids::NameRef;
///
/// let (one, two) = (Redaction::new("salt"), Redaction::new("other salt"));
/// let main = NameRef::of(b"main");
/// assert_eq!(one.name(main), Redaction::new("salt").name(main));
/// assert_ne!(one.name(main), two.name(main));
/// ```
#[derive(Clone)]
pub struct Redaction {
    key: [u8; 32],
}

impl fmt::Debug for Redaction {
    /// Keeps the salt secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

impl Redaction {
    /// Uses this salt. Who knows the salt can find out names by trying.
    pub fn new(salt: &str) -> Self {
        let key = blake3::derive_key("profkit 2026 redacted names of profiles", salt.as_bytes());
        Redaction { key }
    }

    /// The new name of the function or virtual table with this name: `f_` and 16 hexadecimal digits.
    pub fn name(&self, name: NameRef) -> Vec<u8> {
        format!("f_{:016x}", self.hash(b'f', &name.0.to_le_bytes())).into_bytes()
    }

    /// The new path of a source file: `p_` and 16 hexadecimal digits.
    pub fn path(&self, path: &[u8]) -> Vec<u8> {
        format!("p_{:016x}", self.hash(b'p', path)).into_bytes()
    }

    fn hash(&self, kind: u8, bytes: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[kind]).update(bytes);
        let hash = hasher.finalize();
        hash.as_bytes()
            .first_chunk()
            .map_or(0, |low| u64::from_le_bytes(*low))
    }
}
