//! Fuzzes text instrumentation profiles.
use crate::source::{located, read_all};
use profkit_data::instr::text::{TextReader, TextWriter};
use profkit_data::instr::{InstrSource, Record};

/// Reads any bytes as text. If there is no error, the result must be the same after it is written and read again. After
/// an error, reading must continue only where the reader allows it, and must end.
///
/// # Panics
/// If one of these rules or a rule of [`read_all`] does not hold.
pub(crate) fn text(data: &[u8]) {
    match TextReader::parse(data) {
        Ok(reader) => read_all(reader, data.len()),
        Err(error) => return located(&error),
    };
    let mut reader = TextReader::parse(data).expect("what was parsed before");
    let mut records = Vec::new();
    let mut record = Record::default();
    let mut whole = true;
    loop {
        match reader.read_record(&mut record) {
            Ok(true) => records.push(record.clone()),
            Ok(false) => break,
            Err(_) => whole = false,
        }
    }
    let traces = &reader.traces().traces;
    let mut in_traces = traces
        .iter()
        .flat_map(|trace| &trace.functions)
        .filter_map(|&function| reader.symbols().get(function));
    if !whole
        || in_traces.any(|name| name.starts_with(b"#"))
        || !records.iter().all(|record| is_spellable(&record.name))
    {
        return;
    }
    let mut written = Vec::new();
    write(&reader, &records, &mut written).expect("a Vec takes all bytes");
    let mut again = TextReader::parse(&written).expect("our own header");
    for expected in &records {
        assert!(again.read_record(&mut record).expect("our own record"));
        assert_eq!(&record, expected);
    }
    assert!(!again.read_record(&mut record).expect("our own end"));
    assert_eq!(
        again.temporal_traces().map(|traces| traces.stream_size),
        reader.temporal_traces().map(|traces| traces.stream_size)
    );
}

/// Whether a name is always read back as the same name. The text form has no quotes or escapes, so some names are read
/// as something else.
fn is_spellable(name: &[u8]) -> bool {
    !name.starts_with(b":")
        && !matches!(name, [b'$', b'0'..=b'9' | b' ' | 0x09..=0x0d, ..])
        && !name.ends_with(b"\r")
        && !name.iter().all(u8::is_ascii_digit)
}

fn write(
    reader: &TextReader<'_>,
    records: &[Record],
    out: &mut Vec<u8>,
) -> profkit_data::Result<()> {
    let names = |name_ref| reader.symbols().get(name_ref);
    let mut writer = TextWriter::new(out);
    writer.header(reader.kind())?;
    if reader
        .kind()
        .contains(profkit_data::instr::InstrKind::TEMPORAL)
    {
        writer.traces(reader.traces(), &names)?;
    }
    for record in records {
        writer.record(
            &record.name,
            record.func_hash,
            &record.counts,
            &record.bitmap,
            Some(&record.values),
            &names,
        )?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::text;

    const SEED: &[u8] = b":ir\n:temporal_prof_traces\n2\n2\n1\nm,x\n1\n,\n# c\nm\r\n0x10\n2\n3\n0\n$2\n1\n0xff\n\n3\n0\n1\n2\nx:1\n** External Symbol **:2\n1\n1\n1\n8:3\n2\n1\n0\n\n$sx\n1\n1\n1\n";

    #[test]
    fn every_cut_and_every_changed_byte_of_a_text() {
        text(SEED);
        for end in 0..SEED.len() {
            text(&SEED[..end]);
            let mut changed = SEED.to_vec();
            for byte in [0, b'\n', b'\r', b'#', b':', b'$', b'1', b' ', 0xff] {
                changed[end] = byte;
                text(&changed);
            }
        }
    }
}
