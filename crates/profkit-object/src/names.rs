//! Works with names of functions as compilers and linkers write them: the files and suffixes in names of local
//! functions, and the search for similar names.
use rustc_hash::FxHashMap;

/// The largest number of names that may share a part of a name. If more names share a part, such as `new`, the part
/// does not show which of them is meant, and is not used in a search.
const LARGEST_BUCKET: usize = 64;
/// Names are compared letter by letter only if neither path (the name without parameters, template arguments and return
/// type) is longer than this, in bytes. Of the whole names, at most this number of characters from the start is
/// compared.
const LONGEST_NAME: usize = 250;
/// The number of bytes at the beginning and at the end of a name by which similar names are searched.
const AFFIX: usize = 4;

/// Returns the symbol for a function name in a profile. Names of local functions begin with the source file (`a.c;f`;
/// before LLVM 17 `a.c:f`), which is not part of the symbol.
pub fn symbol_of(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|byte| matches!(byte, b';'));
    let start = start.or_else(|| {
        // Objective-C names contain colons that do not follow a file. Such names begin with `+` or `-`.
        let method = name.starts_with(b"-") || name.starts_with(b"+");
        name.iter()
            .rposition(|&byte| byte == b':')
            .filter(|_| !method)
    });
    start.map_or(name, |start| name.get(start + 1..).unwrap_or_default())
}

/// Returns the name of a local function with the other separator after its source file: `a.c;f` for `a.c:f` and `a.c:f`
/// for `a.c;f`. Compilers before LLVM 17 wrote the colon. `None` for a name without a file.
///
/// ```
/// use profkit_object::names::with_other_separator;
///
/// assert_eq!(with_other_separator(b"a.c:f").as_deref(), Some(&b"a.c;f"[..]));
/// assert_eq!(with_other_separator(b"f"), None);
/// ```
pub fn with_other_separator(name: &[u8]) -> Option<Vec<u8>> {
    let at = (name.len() - symbol_of(name).len()).checked_sub(1)?;
    let mut other = name.to_vec();
    let separator = other.get_mut(at)?;
    *separator = if *separator == b';' { b':' } else { b';' };
    Some(other)
}

/// Removes the suffixes that compilers append to the names of copies and parts of a function. Names in sample profiles
/// lack these suffixes.
pub fn without_suffix(name: &[u8]) -> &[u8] {
    [&b".llvm."[..], b".part.", b".isra.", b".constprop."]
        .iter()
        .fold(name, |name, suffix| {
            match name.windows(suffix.len()).rposition(|part| part == *suffix) {
                Some(end) if end > 0 => name.get(..end).unwrap_or(name),
                _ => name,
            }
        })
}

/// Removes the suffix that `-funique-internal-linkage-names` gives to local functions.
pub fn without_unique(name: &[u8]) -> &[u8] {
    const UNIQUE: &[u8] = b".__uniq.";
    let end = name.windows(UNIQUE.len()).position(|part| part == UNIQUE);
    end.and_then(|end| name.get(..end)).unwrap_or(name)
}

/// A demangled name, and its path. The path is the name without the parameters, the template arguments and the return
/// type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demangled {
    /// The whole name: `ns::parse(int)`.
    pub whole: String,
    /// The path: `ns::parse`.
    pub path: String,
}

impl Demangled {
    /// The last part of the path: the name of the function alone.
    fn base(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or(&self.path)
    }

    /// The trait of a method of Rust that implements one: `io::Write` of `<Vec<u8> as io::Write>::write`.
    fn implemented_trait(&self) -> Option<&str> {
        let inside = self.whole.strip_prefix('<')?;
        let (mut depth, mut start) = (0usize, None);
        for (at, one) in inside.char_indices() {
            match one {
                '<' => depth += 1,
                '>' if depth == 0 => return inside.get(start?..at),
                '>' => depth -= 1,
                ' ' if depth == 0 => {
                    let rest = inside.get(at..).unwrap_or_default();
                    start = start.or(rest.starts_with(" as ").then_some(at + 4));
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the parts of the name that a similar name may also have. The part that shows the similarity best comes
    /// first.
    fn parts(&self) -> Vec<(Part, String)> {
        let base = self.base();
        let end = base.len().checked_sub(AFFIX);
        let parts = [
            (Part::Whole, Some(self.whole.as_str())),
            (Part::Base, Some(base)),
            (Part::Start, base.get(..AFFIX)),
            (Part::End, end.and_then(|end| base.get(end..))),
        ];
        let owned = |(part, text): (Part, Option<&str>)| Some((part, text?.to_owned()));
        parts.into_iter().filter_map(owned).collect()
    }

    /// Whether two functions may be in the same scope: the innermost type or namespace has a similar name, or those around
    /// it are the same. Many unrelated types have methods of one name, as `write`.
    fn is_near(&self, other: &Demangled) -> bool {
        let [own, others] = [self, other].map(|name| {
            let scope = name.path.rsplit_once("::").map_or("", |(scope, _)| scope);
            scope.rsplit_once("::").unwrap_or(("", scope))
        });
        let longer = own.1.len().max(others.1.len());
        let is_short = longer <= LONGEST_NAME;
        let similar = is_short && 2 * strsim::levenshtein(own.1, others.1) <= longer;
        similar || own.0 == others.0
    }

    /// Returns the edit distance between the paths of two names, and the edit distance between the whole names. `None`
    /// if the names are not similar: at most a quarter of the letters in the paths may differ, or half of them if the
    /// base names are equal and the types or namespaces before them have to do with each other.
    fn distance(&self, other: &Demangled) -> Option<(usize, usize)> {
        // Methods such as `write` belong to many traits. Those of different traits have nothing in common.
        if self.implemented_trait() != other.implemented_trait() {
            return None;
        }
        let longer = self.path.len().max(other.path.len());
        let is_moved = self.base() == other.base() && self.is_near(other);
        let most = longer / if is_moved { 2 } else { 4 };
        if longer > LONGEST_NAME || self.path.len().abs_diff(other.path.len()) > most {
            return None;
        }
        let paths = strsim::levenshtein(&self.path, &other.path);
        let short = |text: &str| text.chars().take(LONGEST_NAME).collect::<String>();
        (paths <= most).then(|| {
            let wholes = strsim::levenshtein(&short(&self.whole), &short(&other.whole));
            (paths, wholes)
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Whole,
    Base,
    Start,
    End,
}

/// A set of names in which similar names can be found. Only names that have a part in common are compared letter by
/// letter, and only if few names have this part.
///
/// ```
/// use profkit_object::names::{Demangled, LikeNames};
///
/// let name = |scope: &str, base: &str| Demangled {
///     whole: format!("{scope}::{base}(int)"),
///     path: format!("{scope}::{base}"),
/// };
/// let names = LikeNames::new(vec![name("ns", "parse_it"), name("other", "print")]);
/// assert_eq!(names.nearest(&name("ns", "parse"), None, |_| true), Some(0));
/// assert_eq!(names.nearest(&name("ns", "write"), None, |_| true), None);
/// ```
#[derive(Debug)]
pub struct LikeNames {
    names: Vec<Demangled>,
    buckets: FxHashMap<(Part, String), Vec<usize>>,
}

impl LikeNames {
    /// Takes the names.
    pub fn new(names: Vec<Demangled>) -> Self {
        let mut buckets: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (index, name) in names.iter().enumerate() {
            for part in name.parts() {
                buckets.entry(part).or_default().push(index);
            }
        }
        LikeNames { names, buckets }
    }

    /// Returns the index of the name that is most similar to `name`. Only names for whose index `free` returns true are
    /// considered. If `among` is given, only the names with these indexes are considered. If a name is the same as
    /// `name`, its index is returned (the first, if there are several such names). `None` if no name is similar, or if
    /// the two most similar names are equally similar but not the same as `name`.
    pub fn nearest(
        &self,
        name: &Demangled,
        among: Option<&[usize]>,
        free: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        for part in name.parts() {
            let bucket = among.or_else(|| self.buckets.get(&part).map(Vec::as_slice));
            let bucket = bucket.unwrap_or_default();
            let mut candidates = bucket.iter().filter(|&&index| free(index));
            if part.0 == Part::Whole {
                // Instances of one Rust function, and local functions in several files, have the same name. Any of them
                // is returned.
                let is_same = |index: &usize| {
                    self.names
                        .get(*index)
                        .is_some_and(|it| it.whole == name.whole)
                };
                if let Some(&same) = candidates.find(|index| is_same(index)) {
                    return Some(same);
                }
                continue;
            }
            if bucket.len() > LARGEST_BUCKET {
                continue;
            }
            let distance = |&index: &usize| Some((name.distance(self.names.get(index)?)?, index));
            let mut alike: Vec<_> = candidates.filter_map(distance).collect();
            alike.sort_unstable();
            match alike.as_slice() {
                [(best, _), (second, _), ..] if best == second => return None,
                [(_, index), ..] => return Some(*index),
                [] => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_different_traits_are_not_alike() {
        let name = |whole: &str, path: &str| Demangled {
            whole: whole.to_owned(),
            path: path.to_owned(),
        };
        let write = name("<Vec<u8> as io::Write>::write", "Vec::write");
        let names = LikeNames::new(vec![write.clone()]);
        let hasher = name("<Sip as Hasher>::write", "Sip::write");
        assert_eq!(names.nearest(&hasher, None, |_| true), None);
        assert_eq!(
            names.nearest(&name("Hasher::write", "Hasher::write"), None, |_| true),
            None
        );
        let other = name("<Bec<u8> as io::Write>::write", "Bec::write");
        assert_eq!(names.nearest(&other, None, |_| true), Some(0));
    }

    #[test]
    fn methods_of_unrelated_types_are_not_alike() {
        let name = |path: &str| Demangled {
            whole: path.to_owned(),
            path: path.to_owned(),
        };
        let hasher = name("core::hash::Hasher::write");
        let names = LikeNames::new(vec![name("alloc::vec::Vec::write"), name("lib::Type::run")]);
        assert_eq!(names.nearest(&hasher, None, |_| true), None);
        // The file moved, or the type has another name.
        for (old, new) in [
            ("lib::io::Box::put", "lib::Box::put"),
            ("lib::Old::put", "lib::New::put"),
        ] {
            let names = LikeNames::new(vec![name(new)]);
            assert_eq!(names.nearest(&name(old), None, |_| true), Some(0));
        }
    }

    #[test]
    fn files_and_suffixes_are_no_part_of_a_symbol() {
        assert_eq!(symbol_of(b"src/a.c;helper"), b"helper");
        assert_eq!(symbol_of(b"a.c:helper"), b"helper");
        assert_eq!(symbol_of(b"_ZN1a1bEv"), b"_ZN1a1bEv");
        assert_eq!(symbol_of(b"-[A b:c:]"), b"-[A b:c:]");
        assert_eq!(without_suffix(b"f.llvm.12"), b"f");
        assert_eq!(without_suffix(b"f.part.0.llvm.12"), b"f");
        assert_eq!(without_unique(b"f.__uniq.12"), b"f");
        assert_eq!(without_unique(b"f"), b"f");
    }
}
