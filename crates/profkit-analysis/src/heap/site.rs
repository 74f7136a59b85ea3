//! The function that people look for in a table of contexts.
use super::profile::{HeapFrame, HeapProfile};
use crate::names;
use profkit_data::memprof::StackId;

/// The beginnings of the file names of the C and C++ libraries of a system.
const LIBRARIES: [&str; 7] = [
    "libstdc++.",
    "libc++.",
    "libc++abi.",
    "libc.",
    "libc-",
    "libgcc_s.",
    "ld-linux",
];

impl HeapFrame<'_> {
    /// Whether the frame belongs to a standard library, or allocates memory for its caller.
    pub fn is_of_standard_library(&self) -> bool {
        let of_library = |binary: &str| LIBRARIES.iter().any(|name| binary.starts_with(name));
        self.name.is_some_and(names::is_of_standard_library) || self.binary.is_some_and(of_library)
    }
}

impl HeapProfile {
    /// The place of the frame of a call stack at which a program's own code allocates: the first one that is of no
    /// standard library. It is the innermost frame, which is 0, if all frames are of standard libraries, or if
    /// `innermost` asks for it.
    pub fn site(&self, stack: StackId, innermost: bool) -> usize {
        if innermost {
            return 0;
        }
        let own = self
            .frames(stack)
            .position(|frame| !frame.is_of_standard_library());
        own.unwrap_or(0)
    }
}
