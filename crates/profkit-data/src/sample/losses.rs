//! Counts the parts of a sample profile that an encoding cannot hold.

losses! {
    /// The number of parts that were left out of a file because its encoding cannot hold them.
    pub struct Losses {
        /// The number of names of the profile symbol list that were left out.
        symbols = "names from the symbol list",
        /// The number of vtable counts that were left out.
        vtables = "vtables",
        /// The number of function checksums that were left out.
        checksums = "checksums",
        /// The number of function attributes that were left out.
        attributes = "attributes",
        /// The number of names whose text was left out. Only the hash of the name was written.
        names = "names as text",
        /// The number of locations whose line number is above 65535. LLVM rejects a file with such a location. In the text
        /// encoding, only locations without a discriminator are counted, because with a discriminator LLVM accepts larger
        /// line numbers. In the binary encodings, the locations of samples, vtables and the frames of calling contexts are
        /// counted.
        large_lines = "line numbers above 65535",
        /// The number of names that a text profile cannot hold. Such a name is empty, contains a line break or a zero byte,
        /// or begins with a blank or `#`; or it is the hash of an inlined function, whose first digits would be read as a count.
        /// A name that occurs several times is counted each time.
        unspeakable_names = "names that a text cannot hold",
    }
}
