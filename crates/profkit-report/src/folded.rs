//! Folded stacks: each line of text is a call stack and its weight. Programs that draw flame graphs read such text.
use profkit_data::memprof::{Field, MemInfoBlock};

/// The quantity that weights a call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeapWeight {
    /// The number of bytes allocated.
    #[default]
    Bytes,
    /// The number of allocations.
    Allocations,
    /// The number of accesses.
    Accesses,
    /// The number of bytes allocated, multiplied by the average lifetime in milliseconds.
    ByteLifetime,
}

impl HeapWeight {
    /// The weight of a context.
    pub fn of(self, block: &MemInfoBlock) -> u64 {
        match self {
            HeapWeight::Bytes => block.get(Field::TotalSize),
            HeapWeight::Allocations => block.get(Field::AllocCount),
            HeapWeight::Accesses => block.get(Field::TotalAccessCount),
            HeapWeight::ByteLifetime => {
                let product = u128::from(block.get(Field::TotalSize))
                    * u128::from(block.get(Field::TotalLifetime))
                    / u128::from(block.get(Field::AllocCount).max(1));
                u64::try_from(product).unwrap_or(u64::MAX)
            }
        }
    }

    /// The field that a profile must have for this weight.
    pub fn field(self) -> Field {
        match self {
            HeapWeight::Bytes => Field::TotalSize,
            HeapWeight::Allocations => Field::AllocCount,
            HeapWeight::Accesses => Field::TotalAccessCount,
            HeapWeight::ByteLifetime => Field::TotalLifetime,
        }
    }
}

/// The number of characters to which a function name in a stack is cut. A graph has no space for longer names, and a
/// malicious profile could repeat a long name in many frames.
const MOST_NAME: usize = 1024;

/// Returns a function name in a form that folded stacks can hold. Readers of folded stacks trim white space. They take
/// `;` as the end of a name, a number at the end of a line as a weight, and `# ` at the beginning of a line as a
/// comment. In XML, the format of the flame graph, U+FFFE and U+FFFF are not allowed. This function replaces or removes
/// all of these.
pub fn frame_name(name: &str) -> String {
    let mut name: String = name
        .trim()
        .chars()
        .map(|one| match one {
            ';' => ',',
            '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
            one => one,
        })
        .collect();
    if name.len() > MOST_NAME {
        let end = (0..=MOST_NAME)
            .rev()
            .find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
        name.push('…');
    }
    if name.starts_with("# ") {
        name.replace_range(1..2, "_");
    }
    let last = name.rfind(' ');
    if let Some(space) = last
        && name
            .chars()
            .rev()
            .take_while(|&one| one != ' ')
            .all(|one| one.is_ascii_digit() || one == '.')
    {
        name.replace_range(space..=space, "_");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::frame_name;

    #[test]
    fn names_cannot_be_taken_for_anything_else_in_a_folded_stack() {
        for (name, shown) in [
            ("foo(int, char*)", "foo(int, char*)"),
            ("a.c;b", "a.c,b"),
            ("f 7", "f_7"),
            ("operator new 1.5", "operator new_1.5"),
            ("f 7x", "f 7x"),
            (" padded ", "padded"),
            ("# comment", "#_comment"),
            ("a\u{fffe}b\u{ffff}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(frame_name(name), shown);
        }
        assert_eq!(
            frame_name(&"é".repeat(2000)),
            format!("{}…", "é".repeat(512))
        );
    }
}
