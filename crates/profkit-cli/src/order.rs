//! `profkit order`: the order in which a linker should place functions.
use crate::exit::{self, Failure, Status};
use crate::print::{self, Format, plural};
use clap::{Args, ValueEnum};
use profkit_analysis::order::{OrderFile, Startup};
use profkit_data::path_text;
use profkit_merge::files::{Content, Input, Output, is_stdio};
use profkit_object::binary::BinaryFile;
use profkit_object::code_symbols::code_symbols;
use profkit_report::order::OrderReport;
use std::io::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Functions that the start of the program needs at the same time are placed next to each other, so
that it touches few pages. Temporal traces are ordered by LLVM's balanced partitioning; a trace of
weight 2 counts twice. Several inputs are one set of traces; order files may be among them.

Examples:
  profkit order app.profdata -o order.txt
      then: clang -fuse-ld=lld -Wl,--symbol-ordering-file=order.txt …
  profkit order --for ld app.profdata -o order.ld
      then: gcc -ffunction-sections -Wl,-T,order.ld …
  profkit order --for macho --binary app app.profdata cold.order -o app.order
      then: clang -Wl,-order_file,app.order …
  profkit order --for coff app.mip -o order.txt
      then: link /ORDER:@order.txt …";

/// Arguments of `profkit order`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct OrderArgs {
    /// Profiles with temporal traces, MIP profiles, or order files
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,

    /// Write the order to this file; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// The linker that is to read the file
    #[arg(long = "for", value_enum, default_value_t, value_name = "LINKER")]
    linker: Linker,

    /// Leave out functions that this program does not have, and report the text that its start touches
    #[arg(long, value_name = "PROGRAM")]
    binary: Option<PathBuf>,

    /// The size of a memory page, for the numbers of pages in the report
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = crate::spelling::between(1, u64::MAX))]
    page_size: u64,

    /// The form of the report on standard error; docs/formats/order-json.md describes the JSON. Without --output, json
    /// is printed on standard output, with the order in it
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Linker {
    /// lld for ELF: --symbol-ordering-file
    #[default]
    Lld,
    /// gold: --section-ordering-file
    Gold,
    /// GNU ld: -T
    Ld,
    /// Mach-O linkers: -order_file
    Macho,
    /// Microsoft's linker and lld-link: /ORDER:@FILE
    Coff,
}

/// Runs `profkit order`.
///
/// # Errors
/// If a file cannot be read or has no order of calls, or if the order cannot be written.
pub fn run(args: &OrderArgs) -> exit::Result {
    let output = Output::new(&args.output, Content::Text)?;
    // A failed write is ignored: stderr is closed.
    let mut stderr = print::stderr();
    let mut startup = Startup::default();
    for path in &args.inputs {
        let input = Input::open(path)?;
        let name = input.name();
        let added = startup
            .add(&input)
            .map_err(|error| Failure::file(name, &error))?;
        for error in &added.damage {
            let _ = writeln!(stderr, "warning: {name}: {error}");
        }
        for (line, text) in &added.foreign {
            let text: String = String::from_utf8_lossy(text).chars().take(60).collect();
            let _ = writeln!(
                stderr,
                "warning: {name}:{line}: left out: found {text:?}, expected a symbol name"
            );
        }
        if let more @ 1.. = (added.foreign_lines - added.foreign.len()) as u64 {
            let more = plural(more, "more line");
            let _ = writeln!(stderr, "warning: {name}: left out: {more}");
        }
    }
    let file = match args.linker {
        Linker::Lld => OrderFile::Lld,
        Linker::Gold => OrderFile::Gold,
        Linker::Ld => OrderFile::GnuLd,
        Linker::Macho => OrderFile::MachO,
        Linker::Coff => OrderFile::Coff,
    };
    let mut order = startup.order(file);
    let symbols = match &args.binary {
        None => None,
        Some(path) => {
            let failed = |error: &_| Failure::file(path_text(path), error);
            let binary = BinaryFile::open(path)
                .map_err(|error| Failure::io("cannot read", path_text(path), &error))?;
            let symbols = code_symbols(&binary.image(|_| true).map_err(|error| failed(&error))?);
            if symbols.is_empty() {
                let text = format_args!(
                    "{}: the program has no symbols of functions",
                    path_text(path)
                );
                return Err(
                    Failure::input(text).with_hint("give the program as it was before strip")
                );
            }
            order.keep_known(&symbols);
            Some(symbols)
        }
    };
    let binary = symbols.as_deref().map(|symbols| (symbols, args.page_size));
    let report = OrderReport::new(&startup, &order, file, binary);
    let json = || {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&report).unwrap_or_default()
        )
    };
    if order.names().is_empty() {
        let _ = write!(stderr, "{report}");
        return Err(
            Failure::input("no function is left to order, so nothing is written").with_hint(
                "is the program that of the profile? `profkit match PROFILE PROGRAM` says",
            ),
        );
    }
    if args.format == Format::Json && is_stdio(&args.output) {
        output.write(|sink| sink.put(json().as_bytes()))?;
        return Ok(Status::Done);
    }
    let bytes = file.write(&order.names());
    output.write(|sink| sink.put(&bytes))?;
    let _ = match args.format {
        Format::Json => write!(stderr, "{}", json()),
        Format::Text => write!(stderr, "{report}"),
    };
    Ok(Status::Done)
}
