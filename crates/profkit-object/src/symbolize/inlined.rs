//! Lists the functions that a compiler inlined. Debug info has an entry for such a function even if no code of its own
//! is left.
use super::sections::Sections;
use super::table::Strings;
use super::visits::{DebugData, UnitView, UnitVisitor, for_each_function};
use gimli::constants as dw;
use object::ReadRef;
use profkit_data::Result;

/// The functions that debug info describes as inlined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlinedFunctions {
    /// The linkage names of the functions, or their plain names if they have no linkage name. Names can be repeated.
    pub names: Vec<Vec<u8>>,
    /// The number of damaged compile units. Only their functions before the damage are listed.
    pub damaged_units: usize,
}

/// Returns the functions that were inlined at least once. Split debug info is not read.
///
/// # Errors
/// If the debug sections cannot be read or decompressed.
pub fn inlined_functions<'data, R: ReadRef<'data>>(
    image: &object::File<'data, R>,
) -> Result<InlinedFunctions> {
    let debug = DebugData {
        sections: Sections::load(image)?,
        package: None,
        split_files: None,
    };
    let visited = debug.visit_units(OfUnit::default);
    Ok(InlinedFunctions {
        names: visited.units.into_iter().flat_map(|unit| unit.0).collect(),
        damaged_units: visited.warnings.len(),
    })
}

#[derive(Default)]
struct OfUnit(Vec<Vec<u8>>);

impl UnitVisitor for OfUnit {
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()> {
        let mut names = view.names;
        let mut strings = Strings::default();
        for_each_function(
            view.unit,
            |it| {
                it.attributes()
                    .iter()
                    .any(|spec| spec.name() == dw::DW_AT_inline)
            },
            |_, own| {
                if own.inlined {
                    let named = names.resolve(&own, |name| strings.intern(name));
                    let name = named.function.and_then(|name| strings.get(name));
                    view.work.take(name.map_or(0, |name| 2 * name.len()))?;
                    self.0.extend(name.map(<[u8]>::to_vec));
                }
                Ok(())
            },
        )
    }
}
