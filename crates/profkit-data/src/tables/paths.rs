//! The table of file paths. Each node is a path component and refers to the node of its folder.
use super::strings::{StringId, Strings};
use super::{Depths, next_index, optional, out_of_range, put_words, stored};
use crate::bytes::{Cursor, Sink};
use crate::{ErrorKind, Result, Structure};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

const TABLE: Structure = Structure::PathTable;
const NODE: u64 = 8;

/// The index of the last component of a path. The index identifies the whole path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    folder: Option<u32>,
    component: StringId,
}

/// A table of file paths that is read from a file's bytes.
#[derive(Clone, Copy, Debug)]
pub struct PathTable<'data> {
    nodes: &'data [[u8; 8]],
}

impl<'data> PathTable<'data> {
    /// Reads a table of file paths at the cursor. Checks that each folder comes before its contents, and that the
    /// string index of each component is below `strings`.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the table is longer than the data, [`ErrorKind::Malformed`] if a reference is out of
    /// range.
    pub fn read(cursor: &mut Cursor<'data>, strings: usize) -> Result<Self> {
        Self::read_inner(cursor, strings).map_err(|error| error.within(TABLE))
    }

    fn read_inner(cursor: &mut Cursor<'data>, strings: usize) -> Result<Self> {
        let count = cursor.u32()?;
        let at = cursor.offset();
        let (nodes, _) = cursor.take_u64(u64::from(count) * NODE)?.as_chunks::<8>();
        let table = PathTable { nodes };
        let mut depths = Depths::new(nodes.len());
        for (index, place) in (0..count).zip((at..).step_by(8)) {
            if let Some(node) = table.node(index) {
                node.check(index, strings)
                    .and_then(|()| depths.add(node.folder))
                    .map_err(|error| error.at(place))?;
            }
        }
        Ok(table)
    }

    fn node(&self, index: u32) -> Option<Node> {
        let [a, b, c, d, rest @ ..] = *self.nodes.get(index as usize)?;
        Some(Node {
            folder: optional(u32::from_le_bytes([a, b, c, d])),
            component: StringId(u32::from_le_bytes(rest)),
        })
    }

    /// The number of nodes. Each node is one path component.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the table has no paths.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Makes a copy of the table, to which paths can be added.
    pub fn to_owned(&self) -> Paths {
        let nodes = (0..).map_while(|index| self.node(index));
        Paths {
            nodes: nodes.collect(),
            ..Paths::default()
        }
    }
}

impl Node {
    fn check(self, index: u32, strings: usize) -> Result<()> {
        if let Some(folder) = self.folder
            && folder >= index
        {
            return Err(ErrorKind::Malformed
                .error("a folder does not come before its contents")
                .found(folder)
                .expected(format_args!("an index below {index}")));
        }
        if self.component.0 as usize >= strings {
            return Err(out_of_range(
                "a string",
                Structure::Path,
                self.component.0,
                strings,
            ));
        }
        Ok(())
    }
}

/// A table of file paths to which paths can be added.
///
/// A path is split into components at every `/`. Joining the components with `/` gives exactly the bytes of the path,
/// so the first component of an absolute path is empty. Backslashes do not separate components.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    nodes: Vec<Node>,
    index: FxHashMap<Node, u32>,
    indexed: usize,
}

impl Paths {
    /// Returns the id of a path. If the table does not have the path, it is added. `strings` has the components of the
    /// paths.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if a table is full.
    pub fn intern(&mut self, path: &[u8], strings: &mut Strings) -> Result<PathId> {
        while let Some(&node) = self.nodes.get(self.indexed) {
            let id = next_index(self.indexed, TABLE)?;
            self.index.entry(node).or_insert(id);
            self.indexed += 1;
        }
        let mut folder = None;
        for component in path.split(|&byte| byte == b'/') {
            let node = Node {
                folder,
                component: strings.intern(component)?,
            };
            folder = Some(match self.index.get(&node) {
                Some(&id) => id,
                None => {
                    let id = next_index(self.nodes.len(), TABLE)?;
                    self.nodes.push(node);
                    self.index.insert(node, id);
                    self.indexed += 1;
                    id
                }
            });
        }
        // There is always a last component, because `split` returns at least one.
        Ok(PathId(folder.unwrap_or(0)))
    }

    /// Returns the bytes of a path; `None` if the path refers to a node or a string that is not in its table. `strings`
    /// has the components of the paths.
    pub fn get<'a>(&'a self, id: PathId, strings: &'a Strings) -> Option<Cow<'a, [u8]>> {
        let last = self.nodes.get(id.0 as usize)?;
        let name = strings.get(last.component)?;
        if last.folder.is_none() {
            return Some(Cow::Borrowed(name));
        }
        let mut components = vec![name];
        let mut node = last;
        while let Some(folder) = node.folder {
            node = self.nodes.get(folder as usize)?;
            components.push(strings.get(node.component)?);
        }
        components.reverse();
        Some(Cow::Owned(components.join(&b'/')))
    }

    /// The number of nodes. Each node is one path component.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the table has no paths.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn check(&self, strings: usize) -> Result<()> {
        (0..).zip(&self.nodes).try_for_each(|(index, node)| {
            node.check(index, strings)
                .map_err(|error| error.within(TABLE))
        })
    }

    /// The number of bytes that the table takes in a file.
    pub fn encoded_len(&self) -> usize {
        4 + 8 * self.nodes.len()
    }

    /// Writes the table of file paths.
    pub fn write(&self, sink: &mut dyn Sink) -> Result<()> {
        put_words(sink, &[next_index(self.nodes.len(), TABLE)?])?;
        self.nodes
            .iter()
            .try_for_each(|node| put_words(sink, &[stored(node.folder), node.component.0]))
    }
}

/// Two tables are equal if they have the same nodes in the same order.
impl PartialEq for Paths {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Eq for Paths {}
