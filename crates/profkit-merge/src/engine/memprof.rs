//! MemProf sections, which are carried along unread: that of the first input that has one.
use crate::Totals;
use crate::report::{Action, Event, EventLog, Reason};
use profkit_data::ids::NameRef;
use profkit_data::instr::MemProfSection;

/// The section that is kept, and what is known of the others: which of them differ shows only when all inputs are read.
#[derive(Default)]
pub(crate) struct MemProfs {
    first: Option<(usize, MemProfSection)>,
    seen: Vec<SeenSection>,
}

/// An input that has a section. Sections of all inputs would be too much to hold.
struct SeenSection {
    input: usize,
    digest: Digest,
    bytes: usize,
    /// Whether nothing else was wrong with the input.
    sound: bool,
}

/// Place and MD5 of a section: offsets in it count from the start of its file.
type Digest = (u64, NameRef);

fn digest(section: &MemProfSection) -> Digest {
    (section.offset, NameRef::of(&section.bytes))
}

impl MemProfs {
    /// Takes the section of an input; `sound` if nothing else was wrong with it.
    pub(crate) fn take(&mut self, input: usize, section: MemProfSection, sound: bool) {
        self.seen.push(SeenSection {
            input,
            digest: digest(&section),
            bytes: section.bytes.len(),
            sound,
        });
        if self.first.as_ref().is_none_or(|(first, _)| input < *first) {
            self.first = Some((input, section));
        }
    }

    /// Takes those of another lane.
    pub(crate) fn absorb(&mut self, other: MemProfs) {
        self.seen.extend(other.seen);
        if let Some((input, section)) = other.first
            && self.first.as_ref().is_none_or(|(first, _)| input < *first)
        {
            self.first = Some((input, section));
        }
    }

    /// The section that is kept. Reports the inputs whose sections differ from it.
    pub(crate) fn finish(self, log: &mut EventLog, totals: &mut Totals) -> Option<MemProfSection> {
        let (first, kept) = self.first?;
        let kept_digest = digest(&kept);
        for odd in self.seen.iter().filter(|seen| seen.digest != kept_digest) {
            log.push(
                Event::new(
                    odd.input,
                    Action::Repaired,
                    Reason::MemProfDropped,
                    "its MemProf section is left out: another input has a different one, and MemProf sections are not merged yet",
                )
                .sides(
                    format_args!("{} bytes", odd.bytes),
                    format_args!("the section of input {}", first + 1),
                )
                .hint("merge the MemProf data with LLVM's llvm-profdata"),
            );
            if odd.sound {
                totals.files_kept = totals.files_kept.saturating_sub(1);
                totals.files_repaired += 1;
            }
        }
        Some(kept)
    }
}
