//! The profile file of an image (a program or shared library). This module makes the name of the file, writes the file
//! completely or not at all, and adds the counts that are in it already.
mod continuous;
mod earlier;
mod replace;

use crate::image;
use crate::layout;
use crate::libc;
use crate::memory::{has, numbered, same, Area};
use crate::message::Message;
use crate::name::{decimal, expand, Asked, BadPattern, Facts, Name};
use crate::output::{Output, Segment};
use crate::profile::{Parts, Sections, Wrong};
use crate::system::{self, error, Open};
use crate::values::{self, Change};
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use replace::{contents, Target};

static BUSY: AtomicBool = AtomicBool::new(false);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The signals that were blocked when the current fork began.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
/// Whether the program has asked for its last profile, so that no further profile is written.
static DUMPED: AtomicBool = AtomicBool::new(false);
/// The address of the counters in a mapped file; 0 if there is none.
static MAPPED_COUNTERS: AtomicUsize = AtomicUsize::new(0);
/// The address of the bitmaps in a mapped file; 0 if there is none.
static MAPPED_BITMAP: AtomicUsize = AtomicUsize::new(0);
/// Whether the program has asked for continuous mode, as the name of the file may do by `%c`.
static CONTINUOUS: AtomicBool = AtomicBool::new(false);
pub static FOLDER_MODE: AtomicU32 = AtomicU32::new(0o755);

/// The most words of counts for which the stack has room, with their sums. Others are copied to new memory.
const FEW_COUNTS: usize = 64;
/// The name of the file if neither the program, the environment nor the compiler gives one.
const DEFAULT: &[u8] = b"default.profraw";
/// The file that was made empty last. Processes that this process starts do not make it empty again.
const ONCE: &[u8] = b"__LLVM_PROFILE_RT_INIT_ONCE\0";

/// The message about an open file of the program that contains no usable profile.
const INVALID_OPEN_FILE: &[u8] =
    b"Invalid profile data to merge: the open file is damaged or of another program";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Nobody,
    Environment,
    Program,
}

/// The state of the file. The state contains buffers and is static, because the stack of a signal handler may be small.
struct State {
    pattern: Name,
    chosen: Chosen,
    name: Name,
    target: Name,
    asked: Asked,
    /// Whether the pattern asks for counters in the mapped file (`%c`), but the file could not be mapped.
    unmapped: bool,
    /// One more than the descriptor of the program's open file; 0 if there is none.
    descriptor: i32,
    descriptor_pool: bool,
    other: Name,
    pool: Name,
    room: usize,
    line: Name,
    buffer: [u8; 4096],
}

static mut STATE: State = State {
    pattern: Name::EMPTY,
    chosen: Chosen::Nobody,
    name: Name::EMPTY,
    target: Name::EMPTY,
    asked: Asked {
        pool: false,
        continuous: false,
    },
    unmapped: false,
    descriptor: 0,
    descriptor_pool: false,
    other: Name::EMPTY,
    pool: Name::EMPTY,
    room: 0,
    line: Name::EMPTY,
    buffer: [0; 4096],
};

/// Blocks all signals, waits for the state and reserves it. Returns the signals that were blocked before the call.
fn take() -> u64 {
    // Signals are blocked, because a signal handler that interrupts this thread would wait for this thread for ever.
    let blocked = system::block_signals();
    while BUSY.swap(true, Ordering::Acquire) {
        if PROCESS.load(Ordering::Relaxed) != system::process() {
            // The thread of the parent that used the state does not exist in this process.
            PROCESS.store(system::process(), Ordering::Relaxed);
            break;
        }
        system::pause();
    }
    blocked
}

/// Makes the state available to other threads, and restores the blocked signals.
fn give_back(blocked: u64) {
    BUSY.store(false, Ordering::Release);
    system::restore_signals(blocked);
}

fn with_state<T>(function: impl FnOnce(&mut State) -> T) -> T {
    let blocked = take();
    // SAFETY: BUSY is set, so nobody else uses the state.
    let result = function(unsafe { &mut *addr_of_mut!(STATE) });
    give_back(blocked);
    result
}

/// Reserves the state, so that the child gets a consistent one and no locked file.
pub fn before_fork() {
    BLOCKED.store(take(), Ordering::Relaxed);
}

pub fn after_fork() {
    PROCESS.store(system::process(), Ordering::Relaxed);
    give_back(BLOCKED.load(Ordering::Relaxed));
}

impl State {
    fn failed(&mut self, number: i32) -> i32 {
        Message::Error.say(
            &mut self.line,
            &[b"Failed to write file \"", self.name.as_bytes(), b"\""],
            number,
        );
        -1
    }

    fn check(&mut self, sections: &Sections) -> bool {
        // SAFETY: the sections are those of this image.
        let wrong = match unsafe { sections.check() } {
            Ok(()) => return true,
            Err(wrong) => wrong,
        };
        // Records of versions 9 and 10 look the same.
        let nine = matches!(wrong, Wrong::Records(10));
        let (Wrong::Version(found) | Wrong::Records(found)) = wrong;
        let (mut number, mut mine) = ([0; 20], [0; 20]);
        let known = layout::is_known(found);
        let unknown = found != 0 && !known;
        let found = decimal(u64::from(found), &mut number);
        Message::Error.say(
            &mut self.line,
            &[
                b"Runtime and instrumentation version mismatch: no profile is written, because the compiler has made records of ",
                if known || unknown {
                    b"raw version "
                } else {
                    b"another raw version"
                },
                if nine { b"9 or " } else { b"" },
                if known || unknown { found } else { b"" },
                b", but the profile runtime in this program is for raw version ",
                decimal(u64::from(layout::RAW), &mut mine),
                b". Link the right one: profkit runtime --for raw-",
                if known {
                    found
                } else {
                    b"N (7: LLVM 13, 8: 14 to 17, 9: 18, 10: 19 to 22, 11: 23)"
                },
                if nine { b", or raw-9 for LLVM 18" } else { b"" },
            ],
            0,
        );
        false
    }

    fn expand(&mut self) {
        let build_id = image::build_id();
        let pattern = self.pattern.as_bytes();
        let pool = has(pattern, b'm');
        // SAFETY: the sections are readable. No thread may change the environment now, as in every program that calls
        // `getenv`.
        let (signature, folder) = unsafe {
            (
                if pool {
                    image::sections().signature(build_id)
                } else {
                    0
                },
                libc::variable(b"TMPDIR\0"),
            )
        };
        let mut facts = Facts {
            process: system::process(),
            host: if has(pattern, b'h') {
                system::host(&mut self.buffer)
            } else {
                &[]
            },
            folder,
            signature,
            build_id,
        };
        let mut again = !self.unmapped;
        let result = loop {
            let result = expand(pattern, &facts, &mut self.name);
            match result {
                Ok(asked)
                    if again
                        && asked.pool
                        && (asked.continuous || CONTINUOUS.load(Ordering::Relaxed)) =>
                {
                    // With `%m%c` processes map the pool and count in it, with only `%m` they replace it by a new file.
                    // So the two kinds of pools have different names: counts in a mapped file would be lost.
                    facts.signature = !facts.signature;
                    again = false;
                }
                _ => break result,
            }
        };
        self.name.too_long |= self.pattern.too_long;
        self.asked = match result {
            Ok(asked) => asked,
            Err(wrong) => {
                Message::Warning.say(
                    &mut self.line,
                    &[
                        match wrong {
                            BadPattern::TwoPools => b"%m specifier can only be specified once in ".as_slice(),
                            BadPattern::NoFolder => b"Unable to get the TMPDIR environment variable, referenced in ",
                            BadPattern::NoBuildId => {
                                b"Unable to get the build id of the program (link it with -Wl,--build-id), referenced in "
                            }
                        },
                        pattern,
                        b". Using the default path.",
                    ],
                    0,
                );
                self.name.clear();
                self.name.extend(DEFAULT);
                Asked {
                    pool: false,
                    continuous: false,
                }
            }
        };
        if self.asked.continuous && self.name.as_bytes().is_empty() {
            self.name.extend(DEFAULT);
        }
    }

    fn set(&mut self, pattern: &[u8], chosen: Chosen) {
        self.pattern.clear();
        self.pattern.extend(pattern);
        self.chosen = chosen;
        self.unmapped = false;
        self.prepare();
    }

    /// Makes the name of the file, and makes the file empty if this process is the first, unless counts are added.
    fn prepare(&mut self) {
        self.expand();
        if self.asked.continuous || CONTINUOUS.load(Ordering::Relaxed) {
            if self.map() {
                return;
            }
            self.unmapped = true;
            self.expand();
        }
        if self.name.too_long {
            return;
        }
        if self.asked.pool {
            // The folders are made now, because programs may write their own files beside the profile.
            self.other.copy(&self.name);
            make_folders(&mut self.other);
            return;
        }
        if !self.first_use() {
            return;
        }
        // An error is ignored here. It occurs again when the profile is written, and is reported then.
        if let Ok(Target::Named | Target::Open) = self.follow_links() {
            if let Ok(file) = self.open(system::open_empty) {
                let _ = system::close(file);
            }
        }
    }

    /// Whether neither this process nor one that started it has used the file; from here on it is in use.
    fn first_use(&mut self) -> bool {
        // SAFETY: no thread may change the environment now, as in every program that calls `getenv`; all texts are
        // zero-terminated.
        unsafe {
            if same(libc::variable(ONCE), self.name.as_bytes()) {
                return false;
            }
            libc::set_variable(ONCE, self.name.as_ptr());
        }
        true
    }

    /// Returns 0, or −1 after a message. With `once`, or if counts are added to a file, those of the program become 0,
    /// so that nothing is counted twice.
    fn write(&mut self, once: bool) -> i32 {
        if DUMPED.load(Ordering::Relaxed) {
            Message::Note.tell(
                &mut self.line,
                b"Profile data not written to file: already written",
                0,
            );
            return 0;
        }
        let mut sections = image::sections();
        if MAPPED_COUNTERS.load(Ordering::Relaxed) != 0 {
            continuous::copy_bitmap(&sections);
            return 0;
        }
        if !self.check(&sections) {
            return -1;
        }
        // SAFETY: the sections are those of this image.
        unsafe { sections.find_sites() };
        let lost = values::take_lost();
        if lost != 0 {
            Message::Warning.tell(
                &mut self.line,
                b"some values of value sites were not recorded: there is no memory",
                0,
            );
        }
        let mut parts = Parts {
            build_id: image::build_id(),
            values: true,
            no_sites: false,
            old: None,
            counts: None,
        };
        let once = once
            || if self.descriptor != 0 {
                self.descriptor_pool
            } else {
                self.asked.pool
            };
        let size = sections.counts_size();
        // The stack of a signal handler may be small. If no other thread can change the counts meanwhile, they need not
        // be copied.
        let mut few = [0_u64; 2 * FEW_COUNTS];
        let few_counts = size <= FEW_COUNTS * 8;
        let alone = libc::has_one_thread();
        let mapped = once && !few_counts && !alone;
        let copy = if mapped {
            system::map_all(size)
        } else if once && few_counts && size != 0 {
            few.as_mut_ptr() as usize
        } else {
            0
        };
        if copy != 0 {
            // SAFETY: the sections were checked, and the new memory has the size of their counts.
            parts.counts = Some(unsafe { sections.take(copy) });
        }
        if !alone {
            // SAFETY: the sections were checked, and no other thread is here.
            unsafe { sections.change_values(Change::Share) };
        }
        if once && few_counts {
            self.room = few.as_mut_ptr() as usize + FEW_COUNTS * 8;
        }
        let parent_signal = system::set_parent_signal(0);
        let result = if self.descriptor != 0 {
            self.write_in_place(self.descriptor - 1, &sections, parts, self.descriptor_pool)
        } else {
            self.write_named(&sections, parts)
        };
        self.room = 0;
        if parent_signal != 0 {
            system::set_parent_signal(parent_signal);
        }
        // SAFETY: the sections were checked; the counts that were taken are those of these sections.
        unsafe {
            match parts.counts {
                Some(taken) if result != 0 => sections.put_back(taken),
                // The counts were not copied: there is one thread, or there was no memory.
                None if result == 0 && once => sections.reset_counters(),
                _ => {}
            }
            if result == 0 && once {
                sections.change_values(Change::End);
            }
        }
        if mapped && copy != 0 {
            system::unmap(copy, size);
        }
        // Both errors also send a signal, which is pending here and must not end the program.
        if result == error::FILE_TOO_LARGE {
            system::forget_signal(system::SIGXFSZ);
        } else if result == error::BROKEN_PIPE {
            system::forget_signal(system::SIGPIPE);
        }
        if result == 0 {
            0
        } else {
            self.failed(result)
        }
    }

    fn write_named(&mut self, sections: &Sections, mut parts: Parts<'static>) -> i32 {
        if self.name.as_bytes().is_empty() {
            self.pattern.clear();
            self.pattern.extend(DEFAULT);
            self.expand();
        }
        if self.name.too_long {
            return error::NAME_TOO_LONG;
        }
        let target = match self.follow_links() {
            Ok(target) => target,
            Err(number) => return number,
        };
        if target == Target::Special {
            // SAFETY: a `Name` is always zero-terminated.
            return match unsafe { system::open(self.name.as_ptr(), Open::Write) } {
                Ok(file) => {
                    let result = self.emit(file, sections, &parts, Area::EMPTY);
                    let closed = system::close(file);
                    first_error(result, closed)
                }
                Err(number) => number,
            };
        }
        let file = match self.open_locked(target) {
            Ok(file) => file,
            Err(number) => return number,
        };
        let pool = self.asked.pool;
        let before = if pool {
            self.add_old(file.descriptor, sections, &mut parts)
        } else {
            contents(file.descriptor).map(Some)
        };
        let before = match before {
            Ok(Some(before)) => before,
            Ok(None) => {
                file.close();
                return self.write_own(sections, parts);
            }
            Err(number) => {
                file.close();
                return number;
            }
        };
        let kept = if pool { Area::EMPTY } else { before };
        let mut short = None;
        if kept.length == 0 && (before.length == 0 || self.room != 0) {
            short = self.write_short(&file, sections, &parts, before);
        }
        let result = match short {
            Some(result) => result,
            None => self.replace_file(&file, sections, &parts, kept),
        };
        file.close();
        if before.length != 0 {
            system::unmap(before.start, before.length);
        }
        result
    }

    /// The pool is damaged or of another program: writes a separate file.
    fn write_own(&mut self, sections: &Sections, parts: Parts<'static>) -> i32 {
        self.choose_own();
        self.asked.pool = false;
        let result = self.write_named(sections, parts);
        if result == 0 {
            self.asked.pool = true;
            self.name.copy(&self.pool);
        }
        result
    }

    /// The pool is damaged or of another program: chooses a separate file, and warns.
    #[inline(never)]
    fn choose_own(&mut self) {
        self.pool.copy(&self.name);
        self.name.own_of(&self.pool, system::process());
        Message::Warning.say(
            &mut self.line,
            &[
                b"Invalid profile data to merge: \"",
                self.pool.as_bytes(),
                b"\" is damaged or of another program. It is kept, and this profile is written to \"",
                self.name.as_bytes(),
                b"\"",
            ],
            0,
        );
    }

    /// Writes at the position of an open file, or with `pool` adds to its counts. Returns 0 or an error number.
    fn write_in_place(
        &mut self,
        file: i32,
        sections: &Sections,
        mut parts: Parts<'static>,
        pool: bool,
    ) -> i32 {
        if !pool {
            return self.emit(file, sections, &parts, Area::EMPTY);
        }
        if let Err(number) = system::lock(file) {
            return number;
        }
        let before = match self.add_old(file, sections, &mut parts) {
            Ok(Some(before)) => before,
            Ok(None) => {
                Message::Error.tell(&mut self.line, INVALID_OPEN_FILE, 0);
                system::unlock(file);
                return error::INVALID;
            }
            Err(number) => {
                system::unlock(file);
                return number;
            }
        };
        let result = self.overwrite(file, sections, &parts, Area::EMPTY);
        if before.length != 0 {
            system::unmap(before.start, before.length);
        }
        system::unlock(file);
        result
    }

    fn emit(&mut self, file: i32, sections: &Sections, parts: &Parts<'_>, kept: Area) -> i32 {
        // SAFETY: the file is open; the sections were checked; only one thread is here at a time.
        unsafe {
            let mut output = Output::new(to_file, file as usize as *mut u8, &mut self.buffer);
            output.bytes(kept.start, kept.length);
            sections.write(&mut output, parts);
            output.finish()
        }
    }
}

pub fn make_folders_of(path: &[u8]) {
    with_state(|state| {
        state.other.clear();
        state.other.extend(path);
        make_folders(&mut state.other);
    });
}

fn make_folders(path: &mut Name) {
    let mode = FOLDER_MODE.load(Ordering::Relaxed);
    let end = path.folder_length();
    // Usually all folders exist, so the last one is tried first.
    let mut at = end.saturating_sub(1);
    let mut all = false;
    while at < end {
        if at != 0 && path.as_bytes().get(at) == Some(&b'/') {
            path.set(at, 0);
            // SAFETY: a `Name` is always zero-terminated; its zero stands in the place of the slash now.
            let parent_missing = unsafe { system::make_folder(path.as_ptr(), mode) };
            path.set(at, b'/');
            if parent_missing && !all {
                all = true;
                at = 0;
            }
        }
        at += 1;
    }
}

/// Returns the error number of the first step if it failed, otherwise that of the second step; 0 if both succeeded.
fn first_error(result: i32, then: system::Result<()>) -> i32 {
    match then {
        Err(number) if result == 0 => number,
        _ => result,
    }
}

unsafe extern "C" fn to_file(context: *mut u8, segments: *mut Segment, count: usize) -> i32 {
    let mut first = 0;
    while first < count {
        // SAFETY: the caller passes `count` segments, and their bytes are readable.
        unsafe {
            let next = segments.add(first);
            match system::write_all(context as usize as i32, next, count - first) {
                Ok(0) => return error::NO_SPACE,
                Ok(mut written) => {
                    // The system may write less than everything.
                    while first < count && written >= (*segments.add(first))[1] {
                        written -= (*segments.add(first))[1];
                        first += 1;
                    }
                    if first < count {
                        let [start, length] = &mut *segments.add(first);
                        *start += written;
                        *length -= written;
                    }
                }
                Err(error::INTERRUPTED) => {}
                Err(number) => return number,
            }
        }
    }
    0
}

/// Chooses the name of the file from the environment, or else from the compiler's options, or else the default.
pub fn initialize() {
    PROCESS.store(system::process(), Ordering::Relaxed);
    with_state(|state| {
        if state.chosen == Chosen::Program || MAPPED_COUNTERS.load(Ordering::Relaxed) != 0 {
            return;
        }
        // SAFETY: no thread may change the environment now, as in every program that calls `getenv`.
        let mut pattern = unsafe { libc::variable(b"LLVM_PROFILE_FILE\0") };
        if pattern.is_empty() {
            // SAFETY: the compiler's name is a zero-terminated text.
            pattern = unsafe { libc::text(image::file_name() as *const u8) };
        }
        if pattern.is_empty() {
            pattern = DEFAULT;
        }
        state.set(pattern, Chosen::Environment);
    });
}

/// Sets the name of the file. A null pointer or an empty text means the default name.
///
/// # Safety
/// The caller must pass null or a zero-terminated text.
pub unsafe fn set_name(pattern: *const u8) {
    if MAPPED_COUNTERS.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: the caller promises that the text is zero-terminated.
    let pattern = unsafe { libc::text(pattern) };
    with_state(|state| {
        if pattern.is_empty() {
            state.set(DEFAULT, Chosen::Program);
        } else {
            state.set(pattern, Chosen::Program);
        }
    });
}

/// Makes the runtime write the profile to `file`, an open `FILE` of the program. If `pool` is true, the counts are
/// added to those in the file. If the counters are in a mapped file already, they move to the open file; this needs
/// `pool`. If the file cannot be used, prints a message and returns false.
///
/// # Safety
/// The caller must pass an open `FILE`.
pub unsafe fn set_file(file: usize, pool: bool) -> bool {
    // SAFETY: the caller promises that the file is open.
    let descriptor = unsafe { libc::descriptor(file) };
    with_state(|state| {
        if MAPPED_COUNTERS.load(Ordering::Relaxed) == 0 {
            state.descriptor = descriptor + 1;
            state.descriptor_pool = pool;
            return true;
        }
        if pool {
            return state.map_open(descriptor);
        }
        let mut digits = [0; 20];
        Message::Warning.say(
            &mut state.line,
            &[
                b"__llvm_profile_set_file_object(fd=",
                decimal(descriptor as u64, &mut digits),
                b") not supported in continuous sync mode when merging is disabled",
            ],
            0,
        );
        false
    })
}

pub fn write() -> i32 {
    with_state(|state| state.write(false))
}

/// Sets the counts to 0, so that a later signal or the exit does not write them again.
pub fn write_once() {
    with_state(|state| state.write(true));
}

pub fn dump() -> i32 {
    with_state(|state| {
        let result = state.write(false);
        DUMPED.store(true, Ordering::Relaxed);
        result
    })
}

pub fn set_dumped(dumped: bool) {
    DUMPED.store(dumped, Ordering::Relaxed);
}

pub fn reset() {
    let sections = image::sections();
    DUMPED.store(false, Ordering::Relaxed);
    let mut mapped = sections;
    mapped.counters.start = MAPPED_COUNTERS.load(Ordering::Relaxed);
    mapped.bitmap.start = MAPPED_BITMAP.load(Ordering::Relaxed);
    // SAFETY: `sections` are the sections of this image; `mapped` are those in the mapped file, with the same sizes.
    unsafe {
        if sections.check().is_ok() {
            sections.reset();
            if mapped.counters.start != 0 {
                mapped.reset();
            }
        }
    }
}

pub fn is_continuous() -> bool {
    CONTINUOUS.load(Ordering::Relaxed) || MAPPED_COUNTERS.load(Ordering::Relaxed) != 0
}

/// Whether the counters are in the file even without `%c`. Affects names that are set later.
pub fn set_continuous(on: bool) {
    CONTINUOUS.store(on, Ordering::Relaxed);
}

pub fn name(only_folder: bool) -> *const u8 {
    with_state(|state| {
        let mut length = state.name.as_bytes().len();
        if only_folder {
            length = state.name.folder_length();
        }
        let copy = libc::allocate(length + 1);
        if copy.is_null() {
            return state.name.as_ptr();
        }
        for (at, &byte) in numbered(state.name.as_bytes()).take(length) {
            // SAFETY: the place is in the new memory.
            unsafe { copy.add(at).write(byte) };
        }
        // SAFETY: one more byte was allocated than the name has.
        unsafe { copy.add(length).write(0) };
        copy
    })
}

/// The parent writes the counts from before the fork.
pub fn in_child() {
    if MAPPED_COUNTERS.load(Ordering::Relaxed) != 0 {
        return;
    }
    reset();
    // The file may be of another image of this process, or of an older one with this id: it is added to.
    with_state(State::expand);
}
