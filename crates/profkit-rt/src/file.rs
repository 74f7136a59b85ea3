//! Files that the runtime writes.
use crate::stream::Sink;
use crate::sys::{self, error};
use core::arch::asm;

pub struct File(pub i32);

impl Sink for File {
    fn write(&mut self, mut bytes: &[u8]) -> i32 {
        while !bytes.is_empty() {
            let written = signed(sys::write(self.0, bytes).map(|written| written as i32));
            if written > 0 {
                // SAFETY: the kernel has written `written` bytes, which are not more than the slice has.
                bytes = unsafe { bytes.get_unchecked(written as usize..) };
            } else if written == 0 {
                return error::NO_SPACE;
            } else if written != -error::INTERRUPTED {
                return -written;
            }
        }
        0
    }
}

/// As the kernel returns results: an error is a negative number. That makes smaller code than a `Result`.
#[inline(always)]
pub fn signed(result: sys::Result<i32>) -> i32 {
    match result {
        Ok(value) => value,
        Err(number) => -number,
    }
}

#[cfg(not(profkit_rt_small))]
#[inline(always)]
pub fn number_of(result: sys::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(number) => number,
    }
}

/// Hides from the compiler that this is the same pointer. Code is smaller if it does not know the address.
pub fn hidden<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: the assembly consists of a comment only, without any instruction.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}
