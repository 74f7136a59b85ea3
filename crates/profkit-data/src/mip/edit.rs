//! MIP profiles with fewer functions, or with other names.
use super::edges::{EdgeMap, key, sorted};
use super::{FunctionId, MipProfile};
use crate::Result;
use crate::index_vec::IndexVec;
use crate::tables::Frame;
use std::borrow::Cow;
use std::mem;

impl MipProfile {
    /// Keeps the functions for which `keeps` returns true. Calls of other functions are removed, and calls by them become
    /// calls by code that is not known, as they would be if these functions were not instrumented. Nothing of the other
    /// functions is left in the tables.
    ///
    /// Raw files can be added to the profile as before: they count for the functions that are left.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) if a table is full.
    pub fn retain(&mut self, mut keeps: impl FnMut(FunctionId) -> bool) -> Result<()> {
        let mut kept = IndexVec::new();
        let mut places: IndexVec<FunctionId, Option<FunctionId>> =
            IndexVec::with_capacity(self.functions.len());
        for (id, function) in self.functions.ids().zip(mem::take(&mut self.functions)) {
            places.push(keeps(id).then(|| kept.push(function)));
        }
        self.functions = kept;
        if places.iter().all(Option::is_some) {
            return Ok(());
        }
        let mut edges = EdgeMap::new();
        for edge in &self.edges {
            let Some(callee) = places[edge.callee] else {
                continue;
            };
            let (_, site, _) = key(edge);
            let caller = edge.caller.and_then(|caller| places[caller]);
            let site = caller.map_or(0, |_| site);
            let sum = edges.entry((caller, site, callee)).or_insert(0);
            *sum = edge.weight.saturating_add(*sum);
        }
        self.edges = sorted(edges);
        self.rename_locations(|_| None, |_| None)
    }

    /// Gives functions and source files other names. `new_name` and `new_path` return the new name, or `None` to keep the old
    /// one.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) if a table is full.
    pub fn rename(
        &mut self,
        new_name: impl Fn(&[u8]) -> Option<Vec<u8>>,
        new_path: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<()> {
        for function in &mut self.functions {
            if let Some(new) = new_name(&function.name) {
                function.name = new;
            }
        }
        self.rename_locations(new_name, new_path)
    }

    /// Copies the source locations of all functions into new tables, with other names.
    fn rename_locations(
        &mut self,
        new_name: impl Fn(&[u8]) -> Option<Vec<u8>>,
        new_path: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let old = mem::take(&mut self.tables);
        for function in &mut self.functions {
            let frames: Vec<Frame<'_>> = old.frames(function.location).collect();
            // The name of a function that was inlined may not be known.
            let named = |name: &[u8]| {
                Some(name)
                    .filter(|name| !name.is_empty())
                    .and_then(&new_name)
            };
            let names: Vec<_> = frames.iter().map(|frame| named(frame.function)).collect();
            let renamed = frames.into_iter().zip(&names).map(|(frame, name)| Frame {
                function: name.as_deref().unwrap_or(frame.function),
                path: frame.path.map(|path| match new_path(&path) {
                    Some(new) => Cow::Owned(new),
                    None => path,
                }),
                ..frame
            });
            let renamed: Vec<_> = renamed.collect();
            function.location = self.tables.intern_stack(&renamed)?;
        }
        Ok(())
    }
}
