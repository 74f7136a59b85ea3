//! Lists the addresses at which the source location of the code changes, so that all locations of a program can be
//! symbolised.
use super::Symbolizer;
use super::functions::Functions;
use super::visits::{UnitView, UnitVisitor};
use super::work::ROW;
use profkit_data::Error;

/// The addresses at which the source location may change.
#[derive(Clone, Debug, Default)]
pub struct CodePlaces {
    /// The addresses, sorted, each once.
    pub addresses: Vec<u64>,
    /// The number of compile units whose split debug info was not found.
    pub missing_split: usize,
    /// The errors of debug info that could not be read.
    pub warnings: Vec<Error>,
}

impl Symbolizer<'_> {
    /// Lists the addresses at which the source location or the inline stack may change: where a row of a line table
    /// begins, and where the range of a function or of an inlined copy begins. All locations of the program's code are
    /// those of these addresses. All processor cores are used.
    pub fn code_places(&self) -> CodePlaces {
        let visited = self.debug.visit_units(OfUnit::default);
        let units = visited.units.into_iter();
        let mut addresses: Vec<u64> = units.flat_map(|unit| unit.0).collect();
        addresses.sort_unstable();
        addresses.dedup();
        CodePlaces {
            addresses,
            missing_split: visited.missing_split.len(),
            warnings: visited.warnings,
        }
    }
}

#[derive(Default)]
struct OfUnit(Vec<u64>);

impl UnitVisitor for OfUnit {
    fn visit(&mut self, view: UnitView<'_, '_, '_>) -> gimli::Result<()> {
        let functions = Functions::read(view.dwarf, view.unit, view.work);
        self.0.extend(functions.ranges().map(|(low, ..)| low));
        let (_, unit) = view.files;
        if let Some(program) = unit.line_program.clone() {
            let mut rows = program.rows();
            while let Some((_, row)) = rows.next_row()? {
                view.work.take(ROW)?;
                if !row.end_sequence() {
                    self.0.push(row.address());
                }
            }
        }
        self.0.sort_unstable();
        self.0.dedup();
        functions.error.map_or(Ok(()), Err)
    }
}
