//! Fuzzes the instrumenter for assembly.
use profkit_mip::instrument::{Counter, IgnoreList, Mode, Options, Target, instrument};
use std::borrow::Cow;

/// Reads the input as an ignore list, and instruments it. The bytes choose the target and the mode.
///
/// # Panics
/// If a file in which nothing was instrumented changes, if an instrumented file can be instrumented again, or if an
/// x86-64 line is moved or loses a byte.
pub(crate) fn assembly(data: &[u8]) {
    let _ = IgnoreList::default().add(data, "input");
    let choice = data.iter().fold(data.len(), |sum, &byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(byte))
    });
    let mut options = Options::default();
    options.mode = match choice % 4 {
        0 => Mode::Function(Counter::Store),
        1 => Mode::Function(Counter::Unary),
        2 => Mode::Calls {
            return_addresses: None,
        },
        _ => Mode::Calls {
            return_addresses: Some(100),
        },
    };
    options.blocks = choice / 4 % 3 > 0;
    options.large_code_model = choice / 12 % 8 == 0;
    let target = match choice / 96 % 8 {
        0 => Target::ALL[choice / 768 % Target::ALL.len()],
        _ => match profkit_mip::instrument::detect(data) {
            Some(target) => target,
            None => Target::X86_64Elf,
        },
    };
    let Ok(made) = instrument(data, "input", Some(target), &options) else {
        return;
    };
    if made.functions == 0 {
        assert!(matches!(made.text, Cow::Borrowed(text) if text == data));
        return;
    }
    assert!(
        instrument(&made.text, "input", Some(target), &options).is_err(),
        "instrumented twice"
    );
    // For other targets, the instrumenter also rewrites jump tables and branches whose targets are too far away.
    if matches!(target, Target::X86_64Elf) {
        let mut lines = made.text.split(|&byte| byte == b'\n');
        for (number, old) in data.split(|&byte| byte == b'\n').enumerate() {
            let new = lines.next().expect("no line is left out");
            // Nothing after `.end` is assembled, and additions are placed before it. So the lines from here on need not
            // match.
            if old.windows(4).any(|word| word == b".end") {
                break;
            }
            let mut rest = new.iter();
            assert!(
                old.iter().all(|byte| rest.any(|other| other == byte)),
                "line {}: {} became {}",
                number + 1,
                String::from_utf8_lossy(old),
                String::from_utf8_lossy(new)
            );
        }
    }
}
