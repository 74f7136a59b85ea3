use super::Bytes;
use crate::{Error, ErrorKind, Result};

/// The byte order of the numbers in a file. A reader determines the byte order once, from the magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endian {
    /// Little-endian: the least significant byte comes first.
    Little,
    /// Big-endian: the most significant byte comes first.
    Big,
}

impl Endian {
    /// Reads eight bytes as a number in this byte order.
    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Reads four bytes as a number in this byte order.
    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Reads two bytes as a number in this byte order.
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Endian::Little => u16::from_le_bytes(bytes),
            Endian::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Writes a number as eight bytes in this byte order.
    #[inline]
    pub fn u64_bytes(self, value: u64) -> [u8; 8] {
        match self {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        }
    }

    /// Writes a number as four bytes in this byte order.
    #[inline]
    pub fn u32_bytes(self, value: u32) -> [u8; 4] {
        match self {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        }
    }

    /// Writes a number as two bytes in this byte order.
    #[inline]
    pub fn u16_bytes(self, value: u16) -> [u8; 2] {
        match self {
            Endian::Little => value.to_le_bytes(),
            Endian::Big => value.to_be_bytes(),
        }
    }
}

/// A reading position in a part of a file. Each cursor knows the offset of its part in the file, so errors state
/// offsets in the file. A read beyond the end of the part is an error.
///
/// ```
/// use profkit_data::bytes::{Cursor, Endian};
///
/// let mut cursor = Cursor::new(&[1, 0, 2], 100, Endian::Little);
/// assert_eq!(cursor.u16()?, 1);
/// assert_eq!(cursor.u16().unwrap_err().offset(), Some(102));
/// # Ok::<(), profkit_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'data> {
    data: &'data [u8],
    position: usize,
    base: u64,
    endian: Endian,
}

impl<'data> Cursor<'data> {
    /// Makes a cursor at the start of `data`. `base` is the offset in the file at which `data` begins.
    #[inline]
    pub fn new(data: &'data [u8], base: u64, endian: Endian) -> Self {
        Cursor {
            data,
            position: 0,
            base,
            endian,
        }
    }

    /// The offset in the file of the byte that is read next.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// The number of bytes that were not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len() - self.position
    }

    /// Whether all bytes were read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes that were not read yet.
    #[inline]
    pub fn rest(&self) -> &'data [u8] {
        self.data.get(self.position..).unwrap_or_default()
    }

    /// The byte order in which the cursor reads numbers.
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// Reads the next `len` bytes.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] at the cursor's offset if fewer bytes are left. The cursor then does not move.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'data [u8]> {
        match self
            .position
            .checked_add(len)
            .and_then(|end| Some((end, self.data.get(self.position..end)?)))
        {
            Some((end, bytes)) => {
                self.position = end;
                Ok(bytes)
            }
            None => Err(self.truncated(len as u64)),
        }
    }

    /// Reads the next `len` bytes, where `len` is a number from the file.
    ///
    /// # Errors
    /// The errors of [`take`](Self::take). A length that does not fit `usize` gives [`ErrorKind::Truncated`] too.
    #[inline]
    pub fn take_u64(&mut self, len: u64) -> Result<&'data [u8]> {
        match usize::try_from(len) {
            Ok(len) => self.take(len),
            Err(_) => Err(self.truncated(len)),
        }
    }

    /// Returns a new cursor over the next `len` bytes, and moves past these bytes.
    pub fn window(&mut self, len: u64) -> Result<Cursor<'data>> {
        let base = self.offset();
        let data = self.take_u64(len)?;
        Ok(Cursor {
            data,
            position: 0,
            base,
            endian: self.endian,
        })
    }

    /// Reads a fixed number of bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest().first_chunk::<N>() {
            Some(bytes) => {
                self.position += N;
                Ok(*bytes)
            }
            None => Err(self.truncated(N as u64)),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a 16-bit number in the cursor's byte order.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(|bytes| self.endian.u16(bytes))
    }

    /// Reads a 32-bit number in the cursor's byte order.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(|bytes| self.endian.u32(bytes))
    }

    /// Reads a 64-bit number in the cursor's byte order.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(|bytes| self.endian.u64(bytes))
    }

    /// Reads an unsigned LEB128 number of at most 64 bits.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the data end before the number does, [`ErrorKind::Malformed`] if it does not fit 64
    /// bits.
    #[inline]
    pub fn uleb128(&mut self) -> Result<u64> {
        // Most numbers are small.
        match self.data.get(self.position) {
            Some(&byte) if byte < 0x80 => {
                self.position += 1;
                Ok(byte.into())
            }
            _ => self.long_uleb128(),
        }
    }

    fn long_uleb128(&mut self) -> Result<u64> {
        let start = self.offset();
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            let low = u64::from(byte & 0x7f);
            let fits = shift < 64 && (low << shift) >> shift == low;
            if !fits && low != 0 {
                return Err(ErrorKind::Malformed
                    .error("a ULEB128 number does not fit 64 bits")
                    .at(start));
            }
            if shift < 64 {
                value |= low << shift;
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
    }

    /// Skips all zero bytes that follow, and returns their number.
    pub fn skip_zeros(&mut self) -> usize {
        let zeros = self.rest().iter().take_while(|&&byte| byte == 0).count();
        self.position += zeros;
        zeros
    }

    #[cold]
    fn truncated(&self, wanted: u64) -> Error {
        ErrorKind::Truncated
            .error("the data are too short here")
            .at(self.offset())
            .found(format_args!("{} left", Bytes(self.remaining())))
            .expected(Bytes(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_keeps_absolute_offsets() {
        let data = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut cursor = Cursor::new(&data, 100, Endian::Little);
        cursor.u16().unwrap();
        let mut window = cursor.window(4).unwrap();
        assert_eq!(window.offset(), 102);
        assert_eq!(window.u32().unwrap(), 0x0605_0403);
        assert_eq!(window.u8().unwrap_err().offset(), Some(106));
        assert_eq!(cursor.u16().unwrap(), 0x0807);
    }

    #[test]
    fn uleb128_rejects_what_does_not_fit() {
        let mut max = Cursor::new(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            0,
            Endian::Little,
        );
        assert_eq!(max.uleb128().unwrap(), u64::MAX);
        let mut over = Cursor::new(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            0,
            Endian::Little,
        );
        assert_eq!(over.uleb128().unwrap_err().kind(), ErrorKind::Malformed);
        let mut open = Cursor::new(&[0x80], 0, Endian::Little);
        assert_eq!(open.uleb128().unwrap_err().kind(), ErrorKind::Truncated);
    }
}
