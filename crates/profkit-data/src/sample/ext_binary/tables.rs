//! The tables to which the functions of an extensible binary profile refer, and the decoding of functions with these
//! tables.
use super::composite::{self, Findings};
use super::contexts::Contexts;
use super::eytzinger::Spans;
use super::metadata::Metadata;
use crate::bytes::Cursor;
use crate::limits::SAMPLE_CONTEXT_DEPTH;
use crate::sample::SampleNames;
use crate::sample::binary::body::Decoder;
use crate::sample::binary::names::{Mapping, NameTable, index_below};
use crate::sample::context::{ContextFault, frames};
use crate::sample::flat::{FlatFunction, Repeated};
use crate::sample::model::Frame;
use crate::sample::names::SampleName;
use crate::sample::report::ReadReport;
use crate::{ErrorKind, Result, Structure};
use profkit_abi::sample::section;

pub(super) struct Tables<'a> {
    pub(super) names: &'a NameTable,
    pub(super) names_section: &'a [u8],
    /// The sizes of the parts of a name table in Eytzinger order; `None` if the name table has a different order.
    pub(super) spans: Option<Spans>,
    pub(super) contexts: Option<Contexts>,
    /// Whether the name table has calling contexts as text, as before LLVM 14.
    pub(super) are_names_contexts: bool,
    pub(super) metadata: Metadata<'a>,
    pub(super) vtables: bool,
    /// A mask with the discriminator bits that are kept; `None` keeps all bits.
    pub(super) mask: Option<u32>,
    pub(super) composite: Findings,
}

impl Tables<'_> {
    /// Reads a function: its entry count, the index of its name or calling context, and its body. In a composite
    /// section, a function has no separate entry count, and its blocks take the place of the body. Then adds the
    /// checksum and attributes of the function.
    pub(super) fn function(
        &self,
        is_composite: bool,
        cursor: &mut Cursor<'_>,
        function: &mut FlatFunction,
        mapping: &mut Mapping<'_>,
        names: &mut SampleNames,
        report: &mut ReadReport,
    ) -> Result<()> {
        function.clear();
        if !is_composite {
            function.head = cursor.uleb128()?;
        }
        let mut decoder = Decoder {
            mapping,
            names,
            vtables: self.vtables,
        };
        let at = cursor.offset();
        let number;
        match &self.contexts {
            None => {
                let mut again = *cursor;
                number = again.uleb128()?;
                if self.are_names_contexts {
                    self.spelled_context(cursor, function, &mut decoder)?;
                } else {
                    function.name = decoder.name(cursor)?;
                }
            }
            Some(contexts) => {
                number = cursor.uleb128()?;
                let frames = contexts.get(number).ok_or_else(|| {
                    ErrorKind::OutOfTable
                        .error("the index of a calling context is beyond the context table")
                        .at(at)
                        .found(number)
                        .expected(index_below(contexts.len()))
                })?;
                for &(name, location) in frames {
                    let name = decoder.mapping.id(name, decoder.names)?;
                    function.callers.push(Frame { name, location });
                }
                // The calling context has at least one frame, because the function itself is a frame.
                function.name = function.callers.pop().unwrap_or_default().name;
            }
        }
        if is_composite {
            composite::function(&mut decoder, cursor, function, &self.composite)?;
        } else {
            decoder.body(cursor, function)?;
        }
        // If the metadata of a function are damaged, its samples are kept.
        if let Err(error) = self.metadata.apply(number, function, &mut decoder) {
            report.fault(error.within(Structure::SampleSection(section::METADATA)));
        }
        // Bits of discriminators are removed only after the metadata were read, because metadata refer to inlined
        // functions by their complete discriminators.
        if let Some(mask) = self.mask {
            function.cut_discriminators(mask, Repeated::First);
        }
        Ok(())
    }

    /// Returns the name or the calling context with this index, in the form of text profiles but without brackets;
    /// `None` if there is none. `is_top` states whether the function is at the top level; only such functions have
    /// calling contexts.
    pub(super) fn written_name(&self, number: u64, is_top: bool) -> Option<Vec<u8>> {
        let name = |index: usize| {
            let name = self.names.get(index, self.names_section)?;
            Some(match name {
                SampleName::Text(text) => text.to_vec(),
                SampleName::Guid(_) => name.to_string().into_bytes(),
            })
        };
        let Some(contexts) = self.contexts.as_ref().filter(|_| is_top) else {
            return name(usize::try_from(number).ok()?);
        };
        let (leaf, callers) = contexts.get(number)?.split_last()?;
        let mut text = Vec::new();
        for &(index, location) in callers {
            text.extend(name(index as usize)?);
            text.extend_from_slice(format!(":{}", location.line).as_bytes());
            if location.discriminator != 0 {
                text.extend_from_slice(format!(".{}", location.discriminator).as_bytes());
            }
            text.extend_from_slice(b" @ ");
        }
        text.extend(name(leaf.0 as usize)?);
        Some(text)
    }

    /// Finds the calling contexts of the wanted functions in a name table that has contexts as text. Returns the
    /// indexes of these contexts in the name table.
    pub(super) fn spelled_contexts_of(&self, wanted: &[&[u8]]) -> Vec<u64> {
        let leaf = |index: usize| match self.names.get(index, self.names_section)? {
            SampleName::Text(text @ [b'[', ..]) => frames(text).ok()?.last()?.ok(),
            _ => None,
        };
        (0..self.names.len())
            .filter(|&index| leaf(index).is_some_and(|(name, ..)| wanted.contains(&name)))
            .map(|index| index as u64)
            .collect()
    }

    /// Reads the index of an entry in the name table. The entry may be a calling context as text; otherwise it is the
    /// name of the function.
    fn spelled_context(
        &self,
        cursor: &mut Cursor<'_>,
        function: &mut FlatFunction,
        decoder: &mut Decoder<'_, '_>,
    ) -> Result<()> {
        let start = cursor.offset();
        let mut again = *cursor;
        let index = usize::try_from(again.uleb128()?).unwrap_or(usize::MAX);
        let text = match self.names.get(index, self.names_section) {
            Some(SampleName::Text(text)) if text.first() == Some(&b'[') => text,
            // The entry is a hash, or a name without a calling context, or it is outside the table.
            _ => {
                function.name = decoder.name(cursor)?;
                return Ok(());
            }
        };
        *cursor = again;
        let fault = |fault: ContextFault| {
            ErrorKind::Malformed
                .error(fault.message)
                .at(start)
                .found(text.escape_ascii())
                .expected(fault.expected)
        };
        for frame in frames(text).map_err(fault)? {
            let (name, location, _) = frame.map_err(fault)?;
            let name = decoder
                .names
                .insert(SampleName::Text(name))
                .ok_or_else(|| {
                    ErrorKind::LimitExceeded
                        .error("there are too many names")
                        .at(start)
                })?;
            match location {
                Some(_) if function.callers.len() == SAMPLE_CONTEXT_DEPTH => {
                    return Err(ErrorKind::LimitExceeded
                        .error("a calling context has too many frames")
                        .at(start)
                        .expected(format_args!("at most {SAMPLE_CONTEXT_DEPTH} callers")));
                }
                Some(location) => function.callers.push(Frame { name, location }),
                None => function.name = name,
            }
        }
        Ok(())
    }
}
