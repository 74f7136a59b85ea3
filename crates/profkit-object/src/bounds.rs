//! Bounds on what is read of a damaged binary. Many symbols can share one long name, and many sections the same bytes, so that a
//! small file has more to read than any memory holds.
use object::{CompressionFormat, ObjectSection, ObjectSymbol, ReadRef, Section};
use profkit_data::limits::{INFLATE_RATIO, INFLATE_TOTAL_FLOOR};
use profkit_data::{Error, ErrorKind, Result, Structure};
use std::borrow::Cow;

/// The bytes that the names of a file's symbols may have together: this many times the size of the file, and
/// [`NAMES_FLOOR`] more.
const NAMES_RATIO: u64 = 4;
const NAMES_FLOOR: u64 = 16 << 20;
/// A name without an end takes as much time as this part of the file.
const ENDLESS: u64 = 64;

/// Symbols with their names; without those whose names cannot be read. If the names are longer together than a file of this size can
/// have, the last item is an error: in a damaged file, the names can be ends of one long text, each beginning at another byte of
/// it, so that reading them would never end.
pub fn named<'data, R: ReadRef<'data>, S: ObjectSymbol<'data>>(
    image: &object::File<'data, R>,
    symbols: impl Iterator<Item = S>,
) -> impl Iterator<Item = Result<(S, &'data [u8])>> {
    with_names(image, symbols).filter_map(|symbol| match symbol {
        Ok((symbol, name)) => Some(Ok((symbol, name?))),
        Err(error) => Some(Err(error)),
    })
}

/// As [`named`], also with the symbols whose names cannot be read.
pub fn with_names<'data, R: ReadRef<'data>, S: ObjectSymbol<'data>>(
    image: &object::File<'data, R>,
    symbols: impl Iterator<Item = S>,
) -> impl Iterator<Item = Result<(S, Option<&'data [u8]>)>> {
    let size = size_of(image).unwrap_or(NAMES_FLOOR);
    let most = size.saturating_mul(NAMES_RATIO).saturating_add(NAMES_FLOOR);
    let mut left = Some(most);
    symbols.map_while(move |symbol| {
        let before = left?;
        let name = symbol.name_bytes();
        let cost = name.map_or(size / ENDLESS, |name| name.len() as u64);
        left = before.checked_sub(cost);
        if left.is_none() {
            return Some(Err(too_long_names(most)));
        }
        Some(Ok((symbol, name.ok())))
    })
}

#[cold]
fn too_long_names(most: u64) -> Error {
    Error::new(
        ErrorKind::LimitExceeded,
        "the names of the symbols are longer than the file",
    )
    .within(Structure::ObjectFile)
    .found(format_args!("more than {most} bytes"))
    .expected(format_args!("at most {most} bytes"))
    .with_hint("the file is damaged: build or fetch it again")
}

/// The size of the file that an object file is in. `None` for an object file for Windows, which does not tell it.
fn size_of<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> Option<u64> {
    let data = match image {
        object::File::Elf32(file) => file.data(),
        object::File::Elf64(file) => file.data(),
        object::File::MachO32(file) => file.data(),
        object::File::MachO64(file) => file.data(),
        object::File::Pe32(file) => file.data(),
        object::File::Pe64(file) => file.data(),
        _ => return None,
    };
    data.len().ok()
}

/// The bytes that the sections of a file may still have.
pub(crate) struct SectionBytes {
    /// Sections do not overlap, so that they are not longer together than the file.
    stored: u64,
    /// What compressed sections may unpack to.
    unpacked: u64,
}

impl SectionBytes {
    pub(crate) fn of<'data, R: ReadRef<'data>>(image: &object::File<'data, R>) -> Self {
        let size = size_of(image);
        SectionBytes {
            stored: size.unwrap_or(u64::MAX),
            unpacked: size
                .unwrap_or_default()
                .saturating_mul(INFLATE_RATIO as u64)
                .saturating_add(INFLATE_TOTAL_FLOOR as u64),
        }
    }

    /// The bytes of a section; they are unpacked if they are compressed.
    ///
    /// # Errors
    /// If the section lies outside of the file or cannot be unpacked, or if it has more bytes than are left.
    pub(crate) fn read<'data, R: ReadRef<'data>>(
        &mut self,
        section: &Section<'data, '_, R>,
    ) -> Result<Cow<'data, [u8]>> {
        let unreadable = |error: object::Error| {
            let what = format!("a section cannot be read: {error}");
            Error::new(ErrorKind::Malformed, what)
        };
        let data = section.compressed_data().map_err(unreadable)?;
        self.stored = take(
            self.stored,
            data.data.len() as u64,
            "the sections overlap, or are longer than the file",
        )?;
        if data.format != CompressionFormat::None {
            let what =
                "a compressed section claims to have more bytes than a file of this size can have";
            self.unpacked = take(self.unpacked, data.uncompressed_size, what)?;
        }
        data.decompress().map_err(unreadable)
    }
}

fn take(left: u64, bytes: u64, what: &str) -> Result<u64> {
    left.checked_sub(bytes).ok_or_else(|| {
        Error::new(ErrorKind::LimitExceeded, what.to_owned())
            .found(format_args!("{bytes} bytes"))
            .expected(format_args!("at most {left} more bytes"))
            .with_hint("the file is damaged: build or fetch it again")
    })
}
