//! `profkit order`: the order in which a linker should place functions.
use crate::choice::{choice, choices};
use crate::correlate::args::BinaryArgs;
use crate::exit::{self, Failure, Status};
use crate::io::Opened;
use crate::print::{self, FORMATS, Format};
use clap::Args;
use profkit_analysis::order::{OrderFile, Startup};
use profkit_data::path_text;
use profkit_merge::files::{Content, Output, check_outputs, is_stdio};
use profkit_object::code_symbols::read_code_symbols;
use profkit_report::order::{Order, OrderReport, warnings};
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
    #[arg(long = "for", value_parser = choice(LINKERS), default_value = "lld", value_name = "LINKER")]
    linker: OrderFile,

    /// Leave out functions that this program does not have, and report how much of its code the start touches
    #[arg(long, value_name = "PROGRAM")]
    binary: Option<PathBuf>,

    /// The size of a memory page, for the numbers of pages in the report
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = profkit_report::typed::between(1, u64::MAX))]
    page_size: u64,

    /// The form of the report on standard error; docs/formats/order-json.md describes the JSON. Without --output, json
    /// is printed on standard output, with the order in it
    #[arg(long, value_parser = choice(FORMATS), default_value = "text", value_name = "FORMAT")]
    format: Format,

    #[command(flatten)]
    binaries: BinaryArgs,
}

choices! {
    /// The words of `--for`.
    pub LINKERS: OrderFile =
        "lld" => OrderFile::Lld, "lld for ELF: --symbol-ordering-file";
        "gold" => OrderFile::Gold, "gold: --section-ordering-file";
        "ld" => OrderFile::GnuLd, "GNU ld: -T";
        "macho" => OrderFile::MachO, "Mach-O linkers: -order_file";
        "coff" => OrderFile::Coff, "Microsoft's linker and lld-link: /ORDER:@FILE";
}

pub fn run(args: &OrderArgs) -> exit::Result {
    let read = args.inputs.iter().chain(&args.binary);
    check_outputs(&[("the order", Some(&args.output))], read)?;
    let output = Output::new(&args.output, Content::Text)?;
    let mut startup = Startup::default();
    for path in &args.inputs {
        let opened = Opened {
            input: crate::io::open(path)?,
            status: Status::Done,
        };
        let input = crate::io::complete(opened, &args.binaries)?.input;
        let added = startup.add(&input);
        let added = added.map_err(|error| Failure::file(input.name(), &error))?;
        for warning in warnings(&added) {
            print::say(format_args!("warning: {}: {warning}", input.name()));
        }
    }
    let mut order = startup.order(args.linker);
    let symbols = args.binary.as_ref().map(|path| {
        exit::must_exist(path)?;
        read_code_symbols(path).map_err(|error| Failure::file(path_text(path), &error))
    });
    let symbols = symbols.transpose()?;
    if let Some(symbols) = &symbols {
        order.keep_known(symbols);
    }
    let binary = symbols.as_deref().map(|symbols| (symbols, args.page_size));
    let report = OrderReport::new(&startup, &order, args.linker, binary);
    if order.names().is_empty() {
        print::tell(report.document());
        let failure = Failure::input("no function is left to order, so nothing is written");
        return Err(failure.with_hint(
            "perhaps the profile is of another program: `profkit match PROFILE PROGRAM` checks that",
        ));
    }
    write(output, is_stdio(&args.output), args.format, &report)
}

/// Writes the order file, and the report to standard error. If `stdout` is true and the format is JSON, writes only one
/// JSON document, which has the report and the order.
pub fn write(output: Output, stdout: bool, format: Format, order: &dyn Order) -> exit::Result {
    if stdout && format == Format::Json {
        let mut bytes = Vec::new();
        order
            .json(true, &mut bytes)
            .map_err(|error| Failure::print(&error))?;
        output.write(|sink| sink.put(&bytes))?;
        return Ok(Status::Done);
    }
    output.write(|sink| sink.put(&order.file()))?;
    match format {
        Format::Json => drop(order.json(false, &mut print::json_stderr())),
        _ => print::tell_as(format, order.document()),
    }
    Ok(Status::Done)
}
