//! Feature sections. They state how and where the recording was made, the names of events, and the build ids of
//! binaries.
use super::Attr;
use super::header::{Head, Section, section};
use profkit_data::Result;
use profkit_data::bytes::Cursor;

/// The numbers of the feature sections that are read. Other feature sections are ignored.
mod number {
    pub const BUILD_ID: u32 = 2;
    pub const HOSTNAME: u32 = 3;
    pub const OS_RELEASE: u32 = 4;
    pub const VERSION: u32 = 5;
    pub const ARCH: u32 = 6;
    pub const CPU: u32 = 8;
    pub const COMMAND: u32 = 11;
    pub const EVENT_DESC: u32 = 12;
    pub const COMPRESSED: u32 = 27;
}

/// The content of the feature sections of a recording: how and where it was made. A value that the recording does not
/// state is `None` or empty. Texts may contain any bytes, so they must be made safe before they are printed to a
/// terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Features<'data> {
    /// The name of the machine.
    pub host: Option<&'data [u8]>,
    /// The version of the kernel.
    pub kernel: Option<&'data [u8]>,
    /// The version of perf.
    pub perf: Option<&'data [u8]>,
    /// The architecture, as `uname -m` prints it.
    pub machine: Option<&'data [u8]>,
    /// The processor.
    pub cpu: Option<&'data [u8]>,
    /// The command line of perf.
    pub command: Vec<&'data [u8]>,
    /// Whether the records are compressed.
    pub compressed: bool,
    /// The events in the table of names. Each has its attributes, its ids and its name.
    pub(crate) events: Vec<(Attr, Vec<u64>, &'data [u8])>,
    pub(crate) build_ids: Vec<BuildIdEntry<'data>>,
}

/// An entry of the list of build ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdEntry<'data> {
    /// Whether the binary is the kernel or a module of the kernel.
    pub kernel: bool,
    pub id: Vec<u8>,
    pub path: &'data [u8],
}

/// Reads a text whose length stands before it. The text ends at its first zero byte.
fn string<'data>(cursor: &mut Cursor<'data>) -> Result<&'data [u8]> {
    let len = cursor.u32()?;
    let bytes = cursor.take_u64(len.into())?;
    Ok(until_zero(bytes))
}

/// Returns the bytes before the first zero byte.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or_default()
}

impl<'data> Features<'data> {
    /// Reads the feature sections of a file. Returns the number of sections that could not be read.
    pub(crate) fn of_file(data: &'data [u8], head: &Head<'data>) -> (Features<'data>, u64) {
        let mut features = Features::default();
        let mut damaged = 0;
        let mut table = Cursor::new(head.features.bytes, head.features.offset, head.endian);
        for &number in &head.feature_numbers {
            let place = table.u64().and_then(|offset| Ok((offset, table.u64()?)));
            let Ok((offset, size)) = place else {
                damaged += 1;
                continue;
            };
            let found = section(data, offset, size);
            let cut = found.bytes.len() as u64 != size;
            let read = features.take(number, found, head);
            damaged += u64::from(cut || read.is_err());
        }
        (features, damaged)
    }

    /// Reads one feature section. If the section is damaged, the values read before the damage are kept.
    pub(crate) fn take(
        &mut self,
        feature: u32,
        section: Section<'data>,
        head: &Head<'data>,
    ) -> Result<()> {
        let mut cursor = Cursor::new(section.bytes, section.offset, head.endian);
        match feature {
            number::BUILD_ID => return build_ids(cursor, &mut self.build_ids),
            number::HOSTNAME => self.host = Some(string(&mut cursor)?),
            number::OS_RELEASE => self.kernel = Some(string(&mut cursor)?),
            number::VERSION => self.perf = Some(string(&mut cursor)?),
            number::ARCH => self.machine = Some(string(&mut cursor)?),
            number::CPU => self.cpu = Some(string(&mut cursor)?),
            number::COMMAND => {
                let count = cursor.u32()?;
                self.command.clear();
                for _ in 0..count {
                    self.command.push(string(&mut cursor)?);
                }
            }
            number::EVENT_DESC => return self.event_names(&mut cursor),
            number::COMPRESSED => self.compressed = true,
            _ => {}
        }
        Ok(())
    }

    fn event_names(&mut self, cursor: &mut Cursor<'data>) -> Result<()> {
        let count = cursor.u32()?;
        let attr_size = cursor.u32()?;
        for _ in 0..count {
            let mut window = cursor.window(attr_size.into())?;
            let (attr, _) = Attr::parse(&mut window)?;
            let ids = cursor.u32()?;
            let name = string(cursor)?;
            let mut ids = cursor.window(u64::from(ids) * 8)?;
            let mut list = Vec::with_capacity(ids.remaining() / 8);
            while !ids.is_empty() {
                list.push(ids.u64()?);
            }
            self.events.push((attr, list, name));
        }
        Ok(())
    }
}

/// Reads a list of build ids. Each entry has the form of a record.
fn build_ids<'data>(mut cursor: Cursor<'data>, list: &mut Vec<BuildIdEntry<'data>>) -> Result<()> {
    while !cursor.is_empty() {
        cursor.u32()?;
        let misc = cursor.u16()?;
        let size = cursor.u16()?;
        let mut body = cursor.window(u64::from(size).saturating_sub(8))?;
        list.push(BuildIdEntry::parse(&mut body, misc)?);
    }
    Ok(())
}

impl<'data> BuildIdEntry<'data> {
    /// Reads an entry after its header: the process, the build id and the path. `misc` is a field of the header.
    pub fn parse(body: &mut Cursor<'data>, misc: u16) -> Result<Self> {
        body.u32()?;
        let id: [u8; 24] = body.array()?;
        Ok(BuildIdEntry {
            kernel: misc & 7 == 1,
            id: build_id(&id, misc),
            path: until_zero(body.rest()),
        })
    }
}

/// Returns the build id in an entry. If bit 15 of `misc` is set, byte 20 is the length of the build id. Otherwise the
/// build id has 20 bytes, and groups of four zero bytes at its end are removed.
fn build_id(bytes: &[u8; 24], misc: u16) -> Vec<u8> {
    let len = if misc & 0x8000 != 0 {
        usize::from(bytes[20]).min(20)
    } else {
        let groups = bytes[..20].chunks(4);
        let zeros = groups.rev().take_while(|group| *group == [0; 4]).count();
        20 - 4 * zeros
    };
    bytes[..len].to_vec()
}
