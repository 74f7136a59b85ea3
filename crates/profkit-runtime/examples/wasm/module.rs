//! A WebAssembly module in Rust, which gives its profile to whoever runs it: `profile` returns the address of
//! `profile_size` bytes in the memory of the module.
use profkit_runtime::capture_coverage;
use std::sync::Mutex;

static PROFILE: Mutex<[u8; 65536]> = Mutex::new([0; 65536]);
static SIZE: Mutex<usize> = Mutex::new(0);

#[inline(never)]
fn collatz(mut number: u32) -> u32 {
    let mut steps = 0;
    while number != 1 {
        number = if number % 2 == 1 {
            3 * number + 1
        } else {
            number / 2
        };
        steps += 1;
    }
    steps
}

#[no_mangle]
pub extern "C" fn work(count: u32) -> u32 {
    (1..=count).map(collatz).sum()
}

#[no_mangle]
pub extern "C" fn profile() -> *const u8 {
    let Ok(mut place) = PROFILE.lock() else {
        return std::ptr::null();
    };
    let room = place.len();
    let mut rest = &mut place[..];
    // SAFETY: a module without threads captures once at a time.
    if unsafe { capture_coverage(&mut rest) }.is_err() {
        return std::ptr::null();
    }
    let used = room - rest.len();
    if let Ok(mut size) = SIZE.lock() {
        *size = used;
    }
    place.as_ptr()
}

#[no_mangle]
pub extern "C" fn profile_size() -> usize {
    SIZE.lock().map_or(0, |size| *size)
}
