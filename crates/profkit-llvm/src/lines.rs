//! A buffer for text that is written to an output.
use profkit_data::bytes::Sink;
use profkit_data::{Error, ErrorKind};

/// When the buffer holds at least this many bytes, it is passed to the sink. The sink of an output file has a buffer of
/// the same size. It writes a text that is at least as large as its own buffer without copying it. A larger value would
/// only use more cache.
const FLUSH_AT: usize = 256 << 10;
/// The room that the buffer has beyond [`FLUSH_AT`], in bytes. The line that fills the buffer may go beyond
/// [`FLUSH_AT`] by this much before the buffer must grow.
const SPARE: usize = 16 << 10;

/// A buffer for text that is written to a sink. An error of the sink is kept until [`finish`](Lines::finish), so that
/// printing need not check each line. After an error, no more text is passed to the sink.
pub struct Lines<'s> {
    sink: &'s mut dyn Sink,
    buffer: Vec<u8>,
    error: Option<Error>,
}

impl<'s> Lines<'s> {
    /// Makes an empty buffer for `sink`.
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

    /// Appends a number as 16 hexadecimal digits.
    #[inline]
    pub fn hex(&mut self, number: u64) -> &mut Self {
        let mut digits = [0; 16];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
            pair.copy_from_slice(&hex_digits(byte));
        }
        self.text(digits)
    }

    /// Appends a byte as two hexadecimal digits.
    pub fn hex_byte(&mut self, byte: u8) -> &mut Self {
        self.text(hex_digits(byte))
    }

    /// Ends a line, and passes the text to the sink if the buffer is full. Code that prints long lists must call this
    /// or [`flush_if_full`](Self::flush_if_full) from time to time.
    #[inline]
    pub fn end(&mut self) {
        self.buffer.push(b'\n');
        self.flush_if_full();
    }

    /// Passes the text to the sink if the buffer is full.
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

    /// Passes the rest of the text to the sink.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Whether the sink has failed.
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
            return Err(ErrorKind::WriteFailed.error("the output takes no more bytes"));
        }
        Ok(())
    }
}
