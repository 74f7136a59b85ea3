//! The interface for programs that have no file system. Its names are those of the crate minicov, so that a program can replace
//! that crate by this one.
use core::fmt;

// The functions below that call these are inlined, so that only a program that uses one needs the runtime: linkers for Windows
// want every function of an object that they take, used or not.
extern "C" {
    fn __profkit_profile_capture(
        write: unsafe extern "C" fn(*mut u8, *const u8, usize) -> i32,
        context: *mut u8,
    ) -> i32;
    fn __llvm_profile_get_size_for_buffer() -> u64;
    fn __llvm_profile_merge_from_buffer(start: *const u8, length: u64) -> i32;
    fn __llvm_profile_reset_counters();
}

/// The destination of a profile, such as a serial line, a file or memory.
pub trait CoverageWriter {
    /// The reason why a write failed.
    type Error;

    /// Takes the next bytes of the profile.
    ///
    /// # Errors
    /// If the bytes cannot be written. The rest of the profile is then dropped.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}

#[cfg(feature = "alloc")]
impl CoverageWriter for alloc::vec::Vec<u8> {
    type Error = core::convert::Infallible;

    fn write(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

impl CoverageWriter for &mut [u8] {
    type Error = NoRoom;

    fn write(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        if bytes.len() > self.len() {
            return Err(NoRoom);
        }
        let (now, rest) = core::mem::take(self).split_at_mut(bytes.len());
        now.copy_from_slice(bytes);
        *self = rest;
        Ok(())
    }
}

/// The error of a destination in memory: the profile is longer than the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom;

/// The reason why no profile was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureError<E> {
    /// The linked runtime is for a different raw version from the one that the program's compiler writes.
    OtherVersion,
    /// The destination has failed.
    Write(E),
}

/// The profile is damaged or belongs to another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncompatibleProfile;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the profile is longer than the memory for it: get_coverage_data_size() says how much it needs, to which value data add")
    }
}

impl<E: fmt::Display> fmt::Display for CaptureError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::OtherVersion => f.write_str(
                "the compiler writes another raw version than the profile runtime that is linked: link the one for this compiler (profkit runtime --for …)",
            ),
            CaptureError::Write(error) => write!(f, "the profile cannot be written: {error}"),
        }
    }
}

impl fmt::Display for IncompatibleProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the profile is damaged, or of another build of this program: the counts are unchanged",
        )
    }
}

struct Context<'a, W: CoverageWriter> {
    writer: &'a mut W,
    error: Option<W::Error>,
}

unsafe extern "C" fn write<W: CoverageWriter>(
    context: *mut u8,
    start: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: `capture_coverage` passes its context, and the runtime passes readable bytes.
    let (context, bytes) = unsafe {
        (
            &mut *context.cast::<Context<'_, W>>(),
            core::slice::from_raw_parts(start, length),
        )
    };
    match context.writer.write(bytes) {
        Ok(()) => 0,
        Err(error) => {
            context.error = Some(error);
            1
        }
    }
}

/// Writes a raw profile of this program, with value data, to `writer`. Allocates no memory.
///
/// # Errors
/// If the linked runtime is for another raw version, or the destination fails.
///
/// # Safety
/// The caller must ensure that no other thread and no interrupt captures, merges or resets at the same time. If other
/// threads run instrumented code meanwhile, their counts may be missing.
pub unsafe fn capture_coverage<W: CoverageWriter>(
    writer: &mut W,
) -> Result<(), CaptureError<W::Error>> {
    let mut context = Context {
        writer,
        error: None,
    };
    let address = (&mut context as *mut Context<'_, W>).cast();
    // SAFETY: the function `write` is called with this context only.
    let result = unsafe { __profkit_profile_capture(write::<W>, address) };
    match context.error {
        Some(error) => Err(CaptureError::Write(error)),
        None if result == 0 => Ok(()),
        None => Err(CaptureError::OtherVersion),
    }
}

/// The size in bytes of the program's profile without value data.
#[must_use]
#[inline]
pub fn get_coverage_data_size() -> u64 {
    // SAFETY: the function only reads the bounds of sections.
    unsafe { __llvm_profile_get_size_for_buffer() }
}

/// Adds the counts of an earlier profile of this program to the counters.
///
/// # Errors
/// If the profile is damaged or of another program. The counters are then unchanged.
///
/// # Safety
/// The same as for [`capture_coverage`].
#[inline]
pub unsafe fn merge_coverage(profile: &[u8]) -> Result<(), IncompatibleProfile> {
    // SAFETY: the bytes are readable.
    match unsafe { __llvm_profile_merge_from_buffer(profile.as_ptr(), profile.len() as u64) } {
        0 => Ok(()),
        _ => Err(IncompatibleProfile),
    }
}

/// Sets all counts to 0.
///
/// # Safety
/// The same as for [`capture_coverage`].
#[inline]
pub unsafe fn reset_coverage() {
    // SAFETY: the caller promises that nobody else resets or captures.
    unsafe { __llvm_profile_reset_counters() };
}
