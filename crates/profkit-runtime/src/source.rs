//! The source text of the runtime. The profkit command compiles it for other targets.

/// The source files of the runtime: the path of each below `src`, and its text.
pub const FILES: &[(&str, &str)] = &[
    ("lib.rs", include_str!("lib.rs")),
    ("copy.rs", include_str!("copy.rs")),
    ("exports.rs", include_str!("exports.rs")),
    ("exports_buffer.rs", include_str!("exports_buffer.rs")),
    ("exports_file.rs", include_str!("exports_file.rs")),
    ("file.rs", include_str!("file.rs")),
    ("file/continuous.rs", include_str!("file/continuous.rs")),
    ("file/replace.rs", include_str!("file/replace.rs")),
    ("hidden.rs", include_str!("hidden.rs")),
    ("image.rs", include_str!("image.rs")),
    ("init.rs", include_str!("init.rs")),
    ("layout.rs", include_str!("layout.rs")),
    ("libc.rs", include_str!("libc.rs")),
    ("memory.rs", include_str!("memory.rs")),
    ("message.rs", include_str!("message.rs")),
    ("name.rs", include_str!("name.rs")),
    ("output.rs", include_str!("output.rs")),
    ("process.rs", include_str!("process.rs")),
    ("profile.rs", include_str!("profile.rs")),
    ("system.rs", include_str!("system.rs")),
    ("values/data.rs", include_str!("values/data.rs")),
    ("values/mod.rs", include_str!("values/mod.rs")),
    ("values/record.rs", include_str!("values/record.rs")),
    ("values/recorded.rs", include_str!("values/recorded.rs")),
];
