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

/// Returns the result of a system call as the kernel does: an error is a negative number. The code for such a result is
/// smaller than that for a `Result`.
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

/// Returns the same pointer, but the compiler does not see that it is the same. The code of a function is smaller if it
/// gets the address of an object in this way than if the compiler knows the address.
pub fn hidden<T>(mut pointer: *mut T) -> *mut T {
    // SAFETY: the assembly consists of a comment only, without any instruction.
    unsafe {
        asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}
