//! Faults of records that are added to others, and their events.
use crate::report::{Action, Event, LlvmCode, Reason};
use profkit_abi::value_kind;

/// Why a record, or a part of it, does not fit the existing record. Of two numbers, the first is that of the new
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Counters(usize, usize),
    Pseudo,
    Bitmap(usize, usize),
    ValueSites(u32, usize, usize),
    Overflow,
}

/// Which of the records of a function that do not fit each other was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    First,
    /// The one that most inputs have.
    MostSeen,
}

impl Fault {
    pub(crate) fn event(self, input: usize, name: &[u8], kept: Kept) -> Event {
        let other = match kept {
            Kept::First => "the function's first record",
            Kept::MostSeen => "the record of the function that most inputs have",
        };
        let event = match self {
            Fault::Counters(found, expected) => Event::new(
                input,
                Action::Dropped,
                Reason::CounterMismatch,
                format!("the number of counters differs from that of {other}"),
            )
            .sides(plural(found, "counter"), plural(expected, "counter"))
            .llvm(LlvmCode::CountMismatch),
            Fault::Pseudo => Event::new(
                input,
                Action::Dropped,
                Reason::CounterMismatch,
                "one record has counts, the other record only a hot or warm marker",
            )
            .llvm(LlvmCode::CountMismatch),
            Fault::Bitmap(found, expected) => Event::new(
                input,
                Action::Repaired,
                Reason::BitmapMismatch,
                match kept {
                    Kept::First => "the record has a bitmap of another size than the first record of the function, so only its counters are merged".to_owned(),
                    Kept::MostSeen => format!("the record has a bitmap of another size than {other}, so only its counters are merged"),
                },
            )
            .sides(plural(found, "byte"), plural(expected, "byte"))
            .llvm(LlvmCode::BitmapMismatch),
            Fault::ValueSites(kind, found, expected) => Event::new(
                input,
                Action::Repaired,
                Reason::ValueSiteMismatch,
                format!(
                    "the number of sites of {} differs from that of {other}, so the values are left out",
                    match kind {
                        value_kind::INDIRECT_CALL_TARGET => "indirect calls".to_owned(),
                        value_kind::MEM_OP_SIZE => "memory intrinsics".to_owned(),
                        value_kind::VTABLE_TARGET => "virtual tables".to_owned(),
                        _ => format!("value kind {kind}"),
                    }
                ),
            )
            .sides(plural(found, "site"), plural(expected, "site"))
            .llvm(LlvmCode::ValueSiteCountMismatch),
            Fault::Overflow => Event::new(
                input,
                Action::Repaired,
                Reason::CounterOverflow,
                "a counter exceeded the largest possible value and was limited to it",
            )
            .llvm(LlvmCode::CounterOverflow),
        };
        let event = event.function(name);
        match self {
            Fault::Overflow => event,
            _ => event.hint("merge only profiles of one build of the program together"),
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{s}")
}
