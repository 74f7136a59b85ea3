//! The instrumenter on any bytes.
use profkit_mip::instrument::{Counter, IgnoreList, Mode, Options, Target, instrument};
use std::borrow::Cow;

/// Instruments the input for a target and in a mode that its bytes choose, and reads it as an ignore list.
///
/// # Panics
/// If a file without a probe is not the same bytes, if what was put in moved a line or left out a byte of x86-64
/// assembly, or if what was instrumented can be instrumented again.
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
    // Other targets rewrite jump tables and branches that no longer reach.
    if matches!(target, Target::X86_64Elf) {
        let mut lines = made.text.split(|&byte| byte == b'\n');
        for (number, old) in data.split(|&byte| byte == b'\n').enumerate() {
            let new = lines.next().expect("no line is left out");
            // After `.end` nothing is assembled, and what is added stands before it.
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
