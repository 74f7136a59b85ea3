//! Messages on standard error, in the form of LLVM's runtime.
use crate::name::Name;
use crate::system::{self, error};

/// The largest number of bytes that are printed of each part of a message. The rest of a longer part is left out.
const SHOWN: usize = 800;

#[derive(Clone, Copy)]
pub enum Message {
    Error,
    Warning,
    Note,
}

impl Message {
    /// Prints a message of one part, like [`Self::say`].
    #[inline(never)]
    pub fn tell(self, line: &mut Name, text: &[u8], number: i32) {
        self.say(line, &[text], number);
    }

    pub fn say(self, line: &mut Name, parts: &[&[u8]], number: i32) {
        line.clear();
        line.extend(match self {
            Message::Error => b"LLVM Profile Error: ",
            Message::Warning => b"LLVM Profile Warning: ",
            Message::Note => b"LLVM Profile Note: ",
        });
        for part in parts {
            for &byte in part.iter().take(SHOWN) {
                line.push(if byte < b' ' || byte == 127 {
                    b'?'
                } else {
                    byte
                });
            }
        }
        if number != 0 {
            line.extend(match number {
                error::NO_ENTRY => b": no such folder",
                error::ACCESS | error::NOT_PERMITTED => b": permission denied",
                error::NOT_A_FOLDER => b": not a folder",
                error::IS_A_FOLDER => b": it is a folder",
                error::NO_SPACE => b": no space left on device",
                error::READ_ONLY => b": read-only file system",
                error::FILE_TOO_LARGE => b": the process may not write files of this size",
                error::BROKEN_PIPE => b": nobody reads the pipe",
                error::TOO_MANY_LINKS => b": too many symbolic links",
                error::NAME_TOO_LONG => b": its name is too long",
                _ => b"",
            });
            line.extend(b" (error ");
            line.decimal(u64::from(number as u32));
            line.push(b')');
        }
        line.push(b'\n');
        // An error of this write is ignored, because there is no other place to report the error.
        let _ = system::write(2, line.as_bytes());
    }
}
