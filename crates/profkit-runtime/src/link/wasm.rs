//! Makes undefined symbols of a WebAssembly object weak. A program need not have every section of a profile, but stable
//! Rust cannot declare weak symbols. The format is described in the tool conventions of WebAssembly, "Linking".

const MAGIC: &[u8] = b"\0asm\x01\0\0\0";
/// The id of custom sections, which are distinguished by name.
const CUSTOM: u8 = 0;
/// The type of the subsection of `linking` that contains the symbol table.
const SYMBOL_TABLE: u8 = 8;
const KIND_DATA: u8 = 1;
const KIND_SECTION: u8 = 3;
const WEAK: u8 = 1;
const UNDEFINED: u8 = 0x10;
const EXPLICIT_NAME: u8 = 0x40;

struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Rest<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0;
        for shift in (0..32).step_by(7) {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&[u8]> {
        let length = self.number()?;
        let end = self.at.checked_add(length)?;
        let text = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(text)
    }
}

/// Makes all undefined data symbols weak, in place.
///
/// # Errors
/// If the bytes are not an object file of WebAssembly with a symbol table. The error is a message for the user.
pub fn make_weak(object: &mut [u8]) -> Result<(), &'static str> {
    let places =
        undefined(object).ok_or("rustc has written an object file without a list of symbols")?;
    for place in places {
        if let Some(flags) = object.get_mut(place) {
            *flags |= WEAK;
        }
    }
    Ok(())
}

/// The offsets of the flags of undefined data symbols, all in the first byte of a LEB128 number.
fn undefined(object: &[u8]) -> Option<std::vec::Vec<usize>> {
    let mut rest = Rest {
        bytes: object,
        at: MAGIC.len(),
    };
    if !object.starts_with(MAGIC) {
        return None;
    }
    loop {
        let kind = rest.byte()?;
        let end = rest.number()?.checked_add(rest.at)?;
        if kind == CUSTOM && rest.text()? == b"linking" {
            // Skips the version of the section `linking`.
            rest.number()?;
            while rest.at < end {
                let part = rest.byte()?;
                let next = rest.number()?.checked_add(rest.at)?;
                if part == SYMBOL_TABLE {
                    return symbols(&mut rest);
                }
                rest.at = next;
            }
        }
        rest.at = end;
    }
}

fn symbols(rest: &mut Rest<'_>) -> Option<std::vec::Vec<usize>> {
    let mut places = std::vec::Vec::new();
    for _ in 0..rest.number()? {
        let kind = rest.byte()?;
        let place = rest.at;
        rest.number()?;
        let flags = *rest.bytes.get(place)?;
        let is_undefined = flags & UNDEFINED != 0;
        if kind == KIND_DATA {
            rest.text()?;
            if is_undefined {
                places.push(place);
            } else {
                // Skips three fields of the symbol: the index of its segment, its offset in the segment, and its size.
                for _ in 0..3 {
                    rest.number()?;
                }
            }
        } else {
            rest.number()?;
            if kind != KIND_SECTION && (!is_undefined || flags & EXPLICIT_NAME != 0) {
                rest.text()?;
            }
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::{make_weak, MAGIC};

    fn object() -> std::vec::Vec<u8> {
        let mut symbols = std::vec![3];
        symbols.extend(b"\x00\x00\x00\x01f");
        symbols.extend(b"\x01\x10\x05start");
        symbols.extend(b"\x01\x04\x03own\x00\x00\x08");
        let mut linking = std::vec::Vec::from(&b"\x07linking\x02\x08"[..]);
        linking.push(u8::try_from(symbols.len()).expect("a short table"));
        linking.extend(symbols);
        let mut object = std::vec::Vec::from(MAGIC);
        object.extend(b"\x01\x01\x00\x00");
        object.push(u8::try_from(linking.len()).expect("a short section"));
        object.extend(linking);
        object
    }

    #[test]
    fn only_undefined_data_symbols_become_weak() {
        let before = object();
        let mut after = before.clone();
        make_weak(&mut after).expect("an object");
        let changed: std::vec::Vec<_> = (0..before.len())
            .filter(|&at| before[at] != after[at])
            .collect();
        assert_eq!(changed.len(), 1);
        assert_eq!((before[changed[0]], after[changed[0]]), (0x10, 0x11));
        assert_eq!(&after[changed[0] + 2..changed[0] + 7], b"start");
    }

    #[test]
    fn objects_that_are_cut_are_refused() {
        let whole = object();
        for length in 0..whole.len() {
            assert!(
                make_weak(&mut whole[..length].to_vec()).is_err(),
                "{length}"
            );
        }
    }
}
