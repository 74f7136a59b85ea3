//! Reproduces `order` (`order_main` in `llvm-profdata.cpp`), which orders functions by the temporal traces of a
//! profile.
use super::input::Profile;
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use crate::output;
use profkit_analysis::order::{Partitioning, Trace, balanced, page_fault_area};
use profkit_data::ids::NameRef;
use profkit_data::instr::Record;
use profkit_merge::files::Content;

/// The number of functions that LLVM assumes to be on one page of code. LLVM has to assume it, because it does not know
/// the sizes of functions.
const FUNCTIONS_PER_PAGE: usize = 32;
const WARNING: &[u8] = b"# Warning: Mach-O may prefix symbols with \"_\" depending on the linkage and this output does \
not take that into account. Some post-processing may be required before passing to the linker via -order_file.";

/// Runs `order`.
pub fn run(parsed: &Parsed, session: &Session<'_>) -> Result<(), Fault> {
    let name = parsed.output();
    let output = output::create(session, name, Content::Text)?;
    let file = parsed
        .positionals
        .first()
        .map_or(b"".as_slice(), Vec::as_slice);
    let bytes = session.read(file)?;
    let mut profile = Profile::open(bytes.as_ref(), session.release(), true)
        .map_err(|error| Fault::profile(file, &error))?;
    let mut record = Record::default();
    // Reading ends at the first damaged record. LLVM does not report the damage, because `order` needs only the traces
    // and the names.
    while let Ok(true) = profile.read_record(&mut record) {}
    let traces = profile.temporal_traces();
    let traces = traces.map_err(|error| Fault::profile(file, &error))?.traces;
    // LLVM 22 ignores the weights of the traces.
    let mut traces: Vec<Trace<NameRef>> = traces
        .into_iter()
        .map(|trace| Trace::new(trace.functions))
        .collect();
    let tests = parsed.number("num-test-traces").unwrap_or(0);
    let tests = usize::try_from(tests).unwrap_or(usize::MAX);
    if tests > 0 && tests >= traces.len() {
        return Err(Fault::new(format!(
            "--num-test-traces must be smaller than the total number of traces: expected: < {}, actual: {tests}",
            traces.len()
        )));
    }
    let tests = traces.split_off(traces.len() - tests);
    let order = balanced(&traces, &Partitioning::default());
    output::write(session, output, name, |lines| {
        lines
            .text(b"# Ordered ")
            .number(order.len() as u64)
            .text(b" functions")
            .end();
        if !tests.is_empty() {
            let area = page_fault_area(&order, &tests, FUNCTIONS_PER_PAGE);
            lines.text(b"# Total area under the page fault curve: ");
            lines.text(exponent(area)).end();
        }
        lines.text(WARNING).end();
        for &function in &order {
            let name = profile.name(function).unwrap_or_default();
            // The name of a function that is local to a file has the form `FILE;FUNCTION`.
            let split = memchr::memchr(b';', name).and_then(|at| name.split_at_checked(at));
            match split {
                Some((file, function)) if function.len() > 1 => {
                    if !file.is_empty() {
                        lines.text(b"# ").text(file).end();
                    }
                    lines.text(function.get(1..).unwrap_or_default()).end();
                }
                _ => lines.text(name).end(),
            }
        }
        Ok(())
    })
}

/// Formats the area under the page fault curve as C's `%e` does. LLVM stores the area in 32 bits, and prints it with
/// the precision of a `float`.
#[expect(clippy::cast_possible_truncation, reason = "LLVM's arithmetic")]
fn exponent(area: u64) -> String {
    let text = format!("{:.6e}", f64::from(area as u32 as f32));
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{digits}e+{exponent:0>2}"),
        None => text,
    }
}
