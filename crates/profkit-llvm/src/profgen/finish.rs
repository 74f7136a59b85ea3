//! The last steps for a profile: removes cold functions and ambiguous names, prints the density, and writes the
//! profile.
use super::binary::Binary;
use crate::command_line::Parsed;
use crate::messages::{Fault, Session};
use crate::output;
use crate::profdata::{no_cutoff, sample_fault, thresholds};
use profkit_data::sample::{
    FormOptions, ProfileKind, SampleForm, SampleProfile, SampleReadOptions, read_with, summarize,
};
use profkit_merge::files::Content;
use profkit_profgen::{Density, density, drop_ambiguous, mark_preinlined};

/// Reads a sample profile that llvm-profgen has written earlier.
///
/// # Errors
/// If it cannot be read. LLVM's tool crashes in this case.
pub fn read(parsed: &Parsed, path: &[u8], session: &Session<'_>) -> Result<SampleProfile, Fault> {
    let bytes = session.read(path)?;
    let options = SampleReadOptions::new()
        .assume_fs(parsed.flag("profile-isfs"))
        .llvm_checks(true)
        .symbols(parsed.number("profile-symbol-list-cutoff"));
    let mut profile = SampleProfile::new();
    let report = read_with(bytes.as_ref(), &mut profile, 1, &options);
    report
        .strict()
        .map_err(|error| sample_fault(path, bytes.as_ref(), &error))?;
    Ok(profile)
}

/// Removes cold functions if an option asks for it, and then does all that [`conclude`] does.
pub fn run(
    parsed: &Parsed,
    binary: &Binary<'_>,
    profile: &mut SampleProfile,
    session: &Session<'_>,
) -> Result<(), Fault> {
    let summary = summarize(profile);
    let cold = thresholds(parsed).cold(&summary).ok_or_else(no_cutoff)?;
    if parsed.flag("trim-cold-profile") {
        profile.retain(|function| function.samples.total >= cold);
    }
    conclude(parsed, binary, profile, session)
}

/// Removes ambiguous names, prints the density, and writes the profile.
pub fn conclude(
    parsed: &Parsed,
    binary: &Binary<'_>,
    profile: &mut SampleProfile,
    session: &Session<'_>,
) -> Result<(), Fault> {
    drop_ambiguous(profile);
    if parsed.flag("mark-all-context-preinlined") {
        mark_preinlined(profile);
    }
    show_density(parsed, profile, session);
    if parsed.flag("populate-profile-symbol-list") {
        let names = binary.program.function_names();
        profile.symbols.extend(names.map(Into::into));
    } else {
        profile.clear_symbols();
    }
    write(parsed, profile, session)
}

fn show_density(parsed: &Parsed, profile: &SampleProfile, session: &Session<'_>) {
    let cutoff = parsed
        .signed("profile-density-cutoff-hot")
        .map_or(Density::CUTOFF, |cutoff| cutoff.max(0).unsigned_abs());
    let text = std::str::from_utf8(parsed.text("profile-density-threshold")).unwrap_or_default();
    let enough = text.trim_start().parse().unwrap_or(Density::ENOUGH);
    let density = density(profile, cutoff);
    if density.samples_per_line == 0.0 {
        let text = "The output profile is empty or the --profile-density-cutoff-hot option is set too low. Please check your command.";
        session.warning(b"", text);
    } else if let Some(more) = density.more_samples(enough) {
        let text = format!(
            "Sample PGO is estimated to optimize better with {more:.1}x more samples. Please consider increasing sampling rate or profiling for longer duration to get more samples."
        );
        session.warning(b"", &text);
    }
    if parsed.flag("show-density") {
        let text = format!(
            "Functions with density >= {:.1} account for {:.2}% total sample counts.\n",
            density.samples_per_line,
            f64::from(cutoff) / 10_000.0
        );
        // If the write fails, the error is ignored, as in LLVM's tool.
        let _ = session.stdout().write_all(text.as_bytes());
    }
}

fn write(parsed: &Parsed, profile: &SampleProfile, session: &Session<'_>) -> Result<(), Fault> {
    let name = parsed.output();
    let form = parsed.word("format").unwrap_or("extbinary");
    let content = if form == "text" {
        Content::Text
    } else {
        Content::Binary
    };
    let output = output::create(session, name, content)?;
    let needs_sections = [ProfileKind::CONTEXT_SENSITIVE, ProfileKind::PROBE_BASED];
    let is_lost = |kind: &ProfileKind| profile.kind.contains(*kind);
    if form == "gcc" || form == "binary" && needs_sections.iter().any(is_lost) {
        let text = "Profile encoding format unsupported for writing operations";
        return Err(Fault::of(name, text));
    }
    let md5 = parsed.flag("use-md5");
    if md5 && form != "extbinary" {
        session.warning(
            b"",
            "-use-md5 is ignored. Specify --format=extbinary to enable it",
        );
    }
    let mut options = FormOptions::new();
    options.ext_binary.vtables = parsed.flag("extbinary-write-vtable-type-prof");
    options.ext_binary.md5_names = md5;
    let form = form.parse().unwrap_or(SampleForm::ExtBinary);
    let mut bytes = Vec::new();
    // As LLVM's tool, this one does not say what the encoding cannot hold.
    form.write(profile, &options, &mut bytes)
        .map_err(|error| Fault::profile(name, &error))?;
    output::write_bytes(session, output, name, |sink| sink.put(&bytes).map(Ok))
}
