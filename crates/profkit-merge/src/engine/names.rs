//! Finds the names of functions that an input has only as hashes, in the other inputs. An input lacks names if its end is
//! cut off, or if an object file of the program was built or stripped without its section of names.
use super::Context;
use super::read::functions;
use super::worker::{Group, Worker};
use crate::accumulate::input_of;
use crate::report::{Action, Event, EventLog, Reason};
use profkit_data::ids::NameRef;
use profkit_data::names::SymbolTable;
use std::collections::BTreeMap;

/// Functions of which no input has the name stay under the text of their hash.
pub(super) fn find(context: &Context<'_, '_>, worker: &mut Worker<'_, '_>, log: &mut EventLog) {
    if !worker.groups.iter().any(lacks_names) {
        return;
    }
    let names = all_names(&worker.groups);
    let mut found: BTreeMap<usize, u64> = BTreeMap::new();
    for group in &mut worker.groups {
        // Accumulators that are disjoint may get functions of the same name.
        for acc in std::mem::take(&mut group.disjoint) {
            group.acc.merge(acc, |_, _| {});
        }
        group.acc.rename(|name, order| {
            let name = names.get(NameRef::from_stand_in(name)?)?;
            *found.entry(input_of(order)).or_default() += 1;
            let remapping = context.options.remapping.as_ref();
            Some(remapping.and_then(|table| table.get(name)).unwrap_or(name))
        });
    }
    for (input, count) in found {
        let message = format!("the names of {} come from other inputs", functions(count));
        log.push(Event::new(
            input,
            Action::Repaired,
            Reason::NamesFromSibling,
            message,
        ));
    }
}

fn lacks_names(group: &Group) -> bool {
    let accumulators = group.disjoint.iter().chain([&group.acc]);
    let mut functions = accumulators.flat_map(|acc| acc.table().functions());
    functions.any(|function| NameRef::from_stand_in(function.name()).is_some())
}

fn all_names(groups: &[Group]) -> SymbolTable {
    let mut names = SymbolTable::new();
    for group in groups {
        names.extend(&group.symbols);
        for acc in group.disjoint.iter().chain([&group.acc]) {
            for function in acc.table().functions() {
                names.insert_hashed(function.name_ref(), function.name());
            }
        }
    }
    names
}
