//! Text on its way to an output.
use profkit_data::bytes::Sink;
use profkit_data::{Error, ErrorKind};

/// Handed to the sink when this much is waiting: as much as outputs gather themselves, so that they write it without
/// copying it once more. More would only cost cache.
const FLUSH_AT: usize = 256 << 10;
/// Room for the line that crosses [`FLUSH_AT`], without growing the buffer.
const SPARE: usize = 16 << 10;

/// A buffer of text before a sink. What the sink says is kept until [`finish`](Lines::finish), so that printing needs
/// no checks line by line; after an error nothing more is handed over.
pub struct Lines<'s> {
    sink: &'s mut dyn Sink,
    buffer: Vec<u8>,
    error: Option<Error>,
}

impl<'s> Lines<'s> {
    /// A buffer before `sink`.
    pub fn new(sink: &'s mut dyn Sink) -> Self {
        Lines {
            sink,
            buffer: Vec::with_capacity(FLUSH_AT + SPARE),
            error: None,
        }
    }

    /// Appends text.
    #[inline]
    pub fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.buffer.extend_from_slice(text.as_ref());
        self
    }

    /// Appends a decimal number.
    #[inline]
    pub fn number(&mut self, number: u64) -> &mut Self {
        match u8::try_from(number) {
            Ok(digit @ 0..=9) => self.buffer.push(b'0' + digit),
            _ => self.text_of(number),
        }
        self
    }

    fn text_of(&mut self, number: u64) {
        let mut digits = itoa::Buffer::new();
        self.buffer
            .extend_from_slice(digits.format(number).as_bytes());
    }

    /// Appends a number, right-aligned in `width` columns.
    pub fn padded(&mut self, number: impl itoa::Integer, width: usize) -> &mut Self {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number);
        let spaces = width.saturating_sub(digits.len());
        self.buffer.resize(self.buffer.len() + spaces, b' ');
        self.text(digits)
    }

    /// Appends 16 hexadecimal digits.
    #[inline]
    pub fn hex(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; 16];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
            pair.copy_from_slice(&hex_digits(byte));
        }
        self.text(digits)
    }

    /// Appends two hexadecimal digits.
    pub fn hex_byte(&mut self, byte: u8) -> &mut Self {
        self.text(hex_digits(byte))
    }

    /// Ends a line. Long lists call this, or [`flush_if_full`](Self::flush_if_full), now and then.
    #[inline]
    pub fn end(&mut self) {
        self.buffer.push(b'\n');
        self.flush_if_full();
    }

    /// Hands text over if much is waiting.
    #[inline]
    pub fn flush_if_full(&mut self) {
        if self.buffer.len() >= FLUSH_AT {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.sink.put(&self.buffer).err();
        }
        self.buffer.clear();
    }

    /// Hands the rest over.
    ///
    /// # Errors
    /// The first that the sink returned.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Whether the sink takes no more.
    pub fn is_broken(&self) -> bool {
        self.error.is_some()
    }
}

fn hex_digits(byte: u8) -> [u8; 2] {
    let digit = |value: u8| {
        if value < 10 {
            b'0' + value
        } else {
            b'a' - 10 + value
        }
    };
    [digit(byte >> 4), digit(byte & 0xf)]
}

impl Sink for Lines<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.text(bytes).flush_if_full();
        if self.is_broken() {
            return Err(Error::new(
                ErrorKind::WriteFailed,
                "the output takes no more bytes",
            ));
        }
        Ok(())
    }
}
