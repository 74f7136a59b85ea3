//! What a symbol in Rust's v0 mangling (RFC 2603) says without being demangled: its crate, and a number that all symbols
//! with one demangled name share. The demangled name of a method has its type and its trait, but not the crate of the
//! `impl`, so the symbol itself is read.

/// The largest depth of paths and types. Symbols that rustc makes are far below it.
const DEEPEST: u32 = 200;

/// The largest number of steps. Symbols of 16 KiB that refer to themselves could need any number.
const MOST_STEPS: u32 = 10_000;

/// Returns the crate that contains the function of a v0 symbol: for a method the crate of the `impl`, and for a default
/// method the crate of the trait. `None` if the symbol is of another mangling or damaged.
pub(crate) fn crate_of(symbol: &str) -> Option<&str> {
    // A digit would be the version of the mangling; none has been used so far.
    std::str::from_utf8(Reader::of(symbol.as_bytes())?.path()?).ok()
}

/// Returns a number that is equal for symbols whose demangled names without hashes are equal, and differs for others, unless
/// they begin with the same names, `most` of them. `None` if the symbol is of another mangling, or damaged as far as it is read.
pub(super) fn key(symbol: &[u8], most: u32) -> Option<u64> {
    let mut reader = Reader::of(symbol)?;
    reader.names = most;
    if reader.path().is_none() {
        return (reader.names == 0).then_some(reader.key);
    }
    // The crate that an instance was compiled for is not part of its name.
    if matches!(reader.peek(), Some(b'A'..=b'Z')) {
        reader.hidden += 1;
        reader.path()?;
    }
    let suffix = reader.text.get(reader.at..)?;
    let suffix = super::hash_of(super::shown_suffix(suffix));
    Some(super::mix(reader.key, suffix))
}

/// Reads the text after `_R`. References count from its beginning.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    steps: u32,
    /// The hash of everything that the demangled name shows, in an order that does not depend on references: what a path
    /// begins with, then its names. Other things that contain a path have a mark after it, or a name that follows could
    /// belong to either.
    key: u64,
    /// How many of the things that are being read are not shown.
    hidden: u32,
    /// How many names that are shown are read before reading ends, as at a damaged place.
    names: u32,
}

impl<'a> Reader<'a> {
    fn of(symbol: &'a [u8]) -> Option<Self> {
        let rest = symbol
            .strip_prefix(b"__R")
            .or_else(|| symbol.strip_prefix(b"_R"));
        Some(Reader {
            text: rest?,
            at: 0,
            depth: 0,
            steps: 0,
            key: 0,
            hidden: 0,
            names: u32::MAX,
        })
    }

    fn shows(&mut self, what: u64) {
        if self.hidden == 0 {
            self.key = super::mix(self.key, what);
        }
    }

    /// Reads a number in base 62 that is shown, such as that of a lifetime.
    fn shown_number(&mut self) -> Option<()> {
        let number = self.base_62()?;
        self.shows(number);
        Some(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.steps += 1;
        let byte = self.peek().filter(|_| self.steps <= MOST_STEPS)?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Calls `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let found = match self.depth {
            ..=DEEPEST => read(self),
            _ => None,
        };
        self.depth -= 1;
        found
    }

    /// A number in base 62 up to `_`; `_` alone is 0.
    fn base_62(&mut self) -> Option<u64> {
        if self.eat(b'_') {
            return Some(0);
        }
        let mut number = 0u64;
        loop {
            let digit = match self.next()? {
                b'_' => return number.checked_add(1),
                digit @ b'0'..=b'9' => digit - b'0',
                letter @ b'a'..=b'z' => letter - b'a' + 10,
                letter @ b'A'..=b'Z' => letter - b'A' + 36,
                _ => return None,
            };
            number = number.checked_mul(62)?.checked_add(digit.into())?;
        }
    }

    /// A number that tells apart what has one name: from 1, or 0 if there is none.
    fn disambiguator(&mut self) -> Option<u64> {
        match self.eat(b's') {
            true => self.base_62()?.checked_add(1),
            false => Some(0),
        }
    }

    /// A name with its length before it. `space` is a letter that says what has the name; a capital letter shows the
    /// disambiguator too.
    fn identifier(&mut self, space: u8) -> Option<&'a [u8]> {
        let number = self.disambiguator()?;
        if space.is_ascii_uppercase() {
            self.shows(number << 8 | u64::from(space));
        }
        // Names with letters outside of ASCII are in Punycode; crates have none.
        let punycode = self.eat(b'u');
        let mut len = usize::from(self.next()?.checked_sub(b'0').filter(|&it| it <= 9)?);
        if len != 0 {
            while let Some(digit @ b'0'..=b'9') = self.peek() {
                self.at += 1;
                len = len
                    .checked_mul(10)?
                    .checked_add(usize::from(digit - b'0'))?;
            }
        }
        // The underscore separates a name that begins with a digit or an underscore from its length.
        self.eat(b'_');
        let name = self.text.get(self.at..)?.get(..len)?;
        self.at += len;
        if self.hidden == 0 {
            let what = u64::from(punycode) << 8 | u64::from(space);
            self.key = super::mix(self.key, super::hash_of(name).wrapping_add(what));
            self.names -= 1;
            if self.names == 0 {
                return None;
            }
        }
        Some(name)
    }

    /// Reads at an earlier place what a reference stands for.
    fn reference<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let own = self.at;
        let to = usize::try_from(self.base_62()?).ok()?;
        // A reference to itself or to a later place would have no end.
        if to >= own.saturating_sub(1) {
            return None;
        }
        let after = self.at;
        self.at = to;
        let found = self.deeper(read);
        self.at = after;
        found
    }

    /// Reads a path, and returns its crate.
    fn path(&mut self) -> Option<&'a [u8]> {
        // Modules, types and functions within each other.
        let mut within = 0u32;
        while let Some([b'N', b'a'..=b'z']) = self.text.get(self.at..).and_then(<[u8]>::first_chunk)
        {
            self.next()?;
            self.next()?;
            within += 1;
        }
        let of = self.deeper(|reader| match reader.next()? {
            b'C' => reader.identifier(b'c'),
            b'N' => {
                // Closures and shims have a capital letter, and are shown with their numbers.
                let space = reader.next().filter(u8::is_ascii_uppercase)?;
                let of = reader.path()?;
                reader.identifier(space)?;
                Some(of)
            }
            b'M' => {
                reader.shows(b'M'.into());
                let of = reader.place_of_impl()?;
                reader.kind()?;
                reader.shows(b'E'.into());
                Some(of)
            }
            b'X' => {
                let of = reader.place_of_impl()?;
                reader.type_and_trait()?;
                Some(of)
            }
            b'Y' => reader.type_and_trait(),
            b'I' => {
                reader.shows(b'I'.into());
                let of = reader.path()?;
                reader.shows(b'I'.into());
                while !reader.eat(b'E') {
                    reader.argument()?;
                }
                reader.shows(b'E'.into());
                Some(of)
            }
            b'B' => reader.reference(Self::path),
            _ => None,
        })?;
        for _ in 0..within {
            self.identifier(b'n')?;
        }
        Some(of)
    }

    /// A type and a trait that it implements. Returns the crate of the trait.
    fn type_and_trait(&mut self) -> Option<&'a [u8]> {
        self.shows(b'Y'.into());
        self.kind()?;
        self.shows(b'A'.into());
        let of = self.path()?;
        self.shows(b'E'.into());
        Some(of)
    }

    /// The path of an `impl`, which is not shown.
    fn place_of_impl(&mut self) -> Option<&'a [u8]> {
        self.hidden += 1;
        self.disambiguator()?;
        let of = self.path()?;
        self.hidden -= 1;
        Some(of)
    }

    /// A generic argument: a lifetime, a constant or a type.
    fn argument(&mut self) -> Option<()> {
        if self.eat(b'L') {
            self.shows(b'L'.into());
            return self.shown_number();
        }
        match self.eat(b'K') {
            true => self.constant(),
            false => self.kind(),
        }
    }

    /// A type.
    fn kind(&mut self) -> Option<()> {
        self.deeper(|reader| match reader.peek()? {
            letter @ b'a'..=b'z' => {
                reader.shows(letter.into());
                reader.next().map(drop)
            }
            b'C' | b'N' | b'M' | b'X' | b'Y' | b'I' => reader.path().map(drop),
            letter => {
                reader.next()?;
                if letter != b'B' {
                    reader.shows(letter.into());
                }
                match letter {
                    b'A' => {
                        reader.kind()?;
                        reader.constant()
                    }
                    b'S' | b'P' | b'O' => reader.kind(),
                    b'R' | b'Q' => {
                        if reader.eat(b'L') {
                            reader.shown_number()?;
                        }
                        reader.kind()
                    }
                    b'T' => {
                        while !reader.eat(b'E') {
                            reader.kind()?;
                        }
                        reader.shows(b'E'.into());
                        Some(())
                    }
                    b'F' => reader.function(),
                    b'D' => reader.trait_objects(),
                    b'B' => reader.reference(Self::kind),
                    _ => None,
                }
            }
        })
    }

    fn binder(&mut self) -> Option<()> {
        if self.eat(b'G') {
            self.shows(b'G'.into());
            self.shown_number()?;
        }
        Some(())
    }

    fn function(&mut self) -> Option<()> {
        self.binder()?;
        let is_unsafe = self.eat(b'U');
        self.shows(is_unsafe.into());
        if self.eat(b'K') {
            self.shows(b'K'.into());
            if !self.eat(b'C') {
                self.identifier(b'n')?;
            }
        }
        while !self.eat(b'E') {
            self.kind()?;
        }
        self.shows(b'E'.into());
        self.kind()
    }

    fn trait_objects(&mut self) -> Option<()> {
        self.binder()?;
        while !self.eat(b'E') {
            self.path()?;
            while self.eat(b'p') {
                self.shows(b'p'.into());
                self.identifier(b'n')?;
                self.kind()?;
            }
        }
        self.shows(b'E'.into());
        if !self.eat(b'L') {
            return None;
        }
        self.shown_number()
    }

    fn constant(&mut self) -> Option<()> {
        self.deeper(|reader| {
            let letter = reader.next()?;
            if letter != b'B' {
                reader.shows(letter.into());
            }
            match letter {
                b'p' => Some(()),
                b'B' => reader.reference(Self::constant),
                b'R' | b'Q' => reader.constant(),
                b'A' | b'T' => {
                    while !reader.eat(b'E') {
                        reader.constant()?;
                    }
                    reader.shows(b'E'.into());
                    Some(())
                }
                b'V' => {
                    reader.path()?;
                    match reader.next()? {
                        b'U' => Some(()),
                        b'T' => {
                            while !reader.eat(b'E') {
                                reader.constant()?;
                            }
                            Some(())
                        }
                        b'S' => {
                            while !reader.eat(b'E') {
                                reader.identifier(b'n')?;
                                reader.constant()?;
                            }
                            Some(())
                        }
                        _ => None,
                    }
                }
                // An integer, a Boolean, a character or a string (`e`): a sign, and hexadecimal digits up to `_`.
                b'a'..=b'z' => {
                    let start = reader.at;
                    reader.eat(b'n');
                    while !reader.eat(b'_') {
                        reader.next().filter(u8::is_ascii_hexdigit)?;
                    }
                    let digits = reader.text.get(start..reader.at)?;
                    reader.shows(super::hash_of(digits));
                    Some(())
                }
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::crate_of;

    #[test]
    fn the_crate_is_that_of_the_impl() {
        for (symbol, of) in [
            ("_RNvC6crate_4main", Some("crate_")),
            ("_RNvCs1234_7mycrate3foo", Some("mycrate")),
            // `impl V for Duration` in `v`, and a default method of `v::V`.
            (
                "_RNvXCs4f_1vNtNtCs12_4core4time8DurationNtB2_1V1v",
                Some("v"),
            ),
            ("_RNvYNtNtCs12_4core4time8DurationNtCs4f_1v1V1v", Some("v")),
            ("_RNvMs_Cs4f_1vNtB4_4Type3new", Some("v")),
            (
                "_RINvNtCs12_4core3ptr13drop_in_placeNtCs4f_1v4TypeEB4_",
                Some("core"),
            ),
            ("_RNvXCs4f_1vRShNtB2_1V1v", Some("v")),
            ("_RNvXCs4f_1vAhj10_NtB2_1V1v", Some("v")),
            // What rustc wrote for `impl`s of a trait for a tuple behind a reference, a type with constants, a `dyn`.
            (
                "_RNvXs0_Cs4Jz2Mtfmu5I_1vRTAhj4_FhEhENtB5_1V1vB5_",
                Some("v"),
            ),
            (
                "_RNvXs1_Cs4Jz2Mtfmu5I_1vINtB5_1WKj3_Kc78_ENtB5_1V1vB5_",
                Some("v"),
            ),
            (
                "_RNvXs2_Cs4Jz2Mtfmu5I_1vDINtNtNtCsgEmfK2I1SDS_4core3ops8function2FnThEEp6OutputyNtNtBt_6marker4SendEL_NtB5_1V1v",
                Some("v"),
            ),
            ("_ZN3lib4pushEi", None),
            ("_RNvB_3foo", None),
            ("_R", None),
        ] {
            assert_eq!(crate_of(symbol), of, "{symbol}");
        }
    }

    #[test]
    fn damaged_symbols_end() {
        let symbol = "_RNvXCs4f_1vTDNtCs12_4core3fooEL_FEuAhj10_ENtB2_1V1v";
        for at in 2..symbol.len() {
            for letter in ["B_", "B0_", "I", "N", "X", "T", "99", "E", "s", ""] {
                let damaged = [&symbol[..at], letter, &symbol[at + 1..]].concat();
                let _ = crate_of(&damaged);
            }
        }
        assert_eq!(crate_of(&format!("_R{}", "X".repeat(5000))), None);
        // Each type refers twice to the one before it.
        let doubling: String = std::iter::repeat_n("TB2_B2_E", 1000).collect();
        let _ = crate_of(&format!("_RNvXC1v{doubling}C1v1f"));
    }
}
