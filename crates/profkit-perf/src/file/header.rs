//! The header of a recording, and the positions of its sections.
use super::Form;
use profkit_data::bytes::{Cursor, Endian};
use profkit_data::{Error, ErrorKind, Result, Structure};

/// The magic number of recordings from machines with little-endian numbers. Machines with big-endian numbers write the
/// same bytes in reverse order.
const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";
/// The magic number of recordings by perf before Linux 2.6.32.
const MAGIC_1: &[u8; 8] = b"PERFFILE";
/// The size in bytes of the header of a file.
const FILE_HEADER: u64 = 104;
/// The size in bytes of the header of a pipe.
const PIPE_HEADER: u64 = 16;

/// A part of the file: its offset and its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'data> {
    pub offset: u64,
    pub bytes: &'data [u8],
}

/// The header.
#[derive(Clone, Debug)]
pub struct Head<'data> {
    pub endian: Endian,
    pub form: Form,
    /// Whether the header does not state the size of the records. This happens if perf was stopped.
    pub unfinished: bool,
    /// The table of events; empty in a pipe.
    pub attrs: Section<'data>,
    /// The size in bytes of an entry in the table of events.
    pub attr_entry: u64,
    /// The records.
    pub records: Section<'data>,
    /// The table of feature sections; empty in a pipe and in an unfinished file.
    pub features: Section<'data>,
    /// The numbers of the features that the file has, in the order of the table of feature sections.
    pub feature_numbers: Vec<u32>,
}

/// Returns the section of `data` at an offset. If the section ends beyond the end of the file, it is cut there.
pub fn section(data: &[u8], offset: u64, size: u64) -> Section<'_> {
    let len = data.len() as u64;
    let start = offset.min(len);
    let end = offset.saturating_add(size).min(len);
    let bytes = usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| data.get(start..end));
    Section {
        offset,
        bytes: bytes.unwrap_or_default(),
    }
}

impl<'data> Head<'data> {
    /// Reads the header of a file or of a pipe.
    ///
    /// # Errors
    /// [`ErrorKind::BadMagic`] if the data are no recording, [`ErrorKind::Unsupported`] for a recording of perf's first
    /// format, [`ErrorKind::BadHeader`] or [`ErrorKind::Truncated`] if the header is damaged.
    pub fn parse(data: &'data [u8]) -> Result<Self> {
        Self::parse_header(data).map_err(|error| {
            let error = match error.kind() {
                ErrorKind::BadHeader | ErrorKind::Truncated => error
                    .with_hint("the recording was cut or damaged: copy it again, or record again"),
                _ => error,
            };
            error.within(Structure::Header).within(Structure::Recording)
        })
    }

    fn parse_header(data: &'data [u8]) -> Result<Self> {
        let endian = match data.first_chunk::<8>() {
            Some(MAGIC) => Endian::Little,
            Some(MAGIC_BIG) => Endian::Big,
            Some(MAGIC_1) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "this is a recording of perf's first format, from before Linux 2.6.32",
                )
                .at(0)
                .with_hint("record again with a newer perf"));
            }
            _ => {
                return Err(
                    Error::new(ErrorKind::BadMagic, "this is no recording of perf")
                        .at(0)
                        .expected("PERFILE2 or 2ELIFREP"),
                );
            }
        };
        let mut cursor = Cursor::new(data, 0, endian);
        cursor.take(8)?;
        let size = cursor.u64()?;
        if size == PIPE_HEADER {
            return Ok(Head {
                endian,
                form: Form::Pipe,
                unfinished: false,
                attrs: Section::default(),
                attr_entry: 0,
                records: section(data, PIPE_HEADER, u64::MAX),
                features: Section::default(),
                feature_numbers: Vec::new(),
            });
        }
        if size < FILE_HEADER {
            return Err(
                Error::new(ErrorKind::BadHeader, "the size of the header is wrong")
                    .at(8)
                    .found(size)
                    .expected(format_args!(
                        "{FILE_HEADER} for a file, {PIPE_HEADER} for a pipe"
                    )),
            );
        }
        let attr_entry = cursor.u64()?;
        let attrs = (cursor.u64()?, cursor.u64()?);
        let records = (cursor.u64()?, cursor.u64()?);
        cursor.take(16)?;
        let mut feature_numbers = Vec::new();
        for word in 0..4 {
            let bits = cursor.u64()?;
            feature_numbers.extend(
                (0..64)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| word * 64 + bit),
            );
        }
        let (offset, size) = records;
        let unfinished = size == 0;
        let records = section(data, offset, if unfinished { u64::MAX } else { size });
        let cut = (records.bytes.len() as u64) < size;
        let after = records.offset.saturating_add(records.bytes.len() as u64);
        // An unfinished file has no feature sections, because perf writes them after all records.
        let features = if unfinished || cut {
            feature_numbers.clear();
            Section::default()
        } else {
            section(data, after, feature_numbers.len() as u64 * 16)
        };
        Ok(Head {
            endian,
            form: Form::File,
            unfinished,
            attrs: section(data, attrs.0, attrs.1),
            attr_entry,
            records,
            features,
            feature_numbers,
        })
    }
}
