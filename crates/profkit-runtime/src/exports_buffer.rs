//! The functions of LLVM's runtime for profiles in memory, and those that return the bounds and sizes of sections. They
//! are a separate object file, which is linked only into programs that call one of them.
use crate::image;
use crate::layout::{padding, Layout, LAYOUT, RAW, VTABLE_SIZE};
use crate::memory::{read, write, Area};
use crate::output::{Output, Segment};
use crate::profile::{ids_size, Parts, Sections, MAGIC};
use crate::values;

fn bounds(start: usize, end: usize) -> Area {
    Area::between(start, end)
}

fn sections(data: Area, counters: Area, bitmap: Area, names: Area) -> Sections {
    Sections {
        data,
        with_sites: data,
        counters,
        bitmap,
        names,
        vtables: Area::EMPTY,
        vtable_names: Area::EMPTY,
        version: image::version(),
    }
}

unsafe extern "C" fn to_memory(context: *mut u8, segments: *mut Segment, count: usize) -> i32 {
    // SAFETY: the context points to an address at which the caller has room for the whole profile. There are `count`
    // segments, and their bytes are readable.
    unsafe {
        let place = context.cast::<*mut u8>();
        for index in 0..count {
            let [start, length] = *segments.add(index);
            for at in 0..length {
                (*place).write_volatile((start as *const u8).add(at).read_volatile());
                *place = (*place).add(1);
            }
        }
    }
    0
}

type Receive = unsafe extern "C" fn(*mut u8, *const u8, usize) -> i32;

/// `context` points to the program's function and its context. Stops if that returns another number than 0.
unsafe extern "C" fn to_program(context: *mut u8, segments: *mut Segment, count: usize) -> i32 {
    // SAFETY: the context points to a function and its context. There are `count` segments, and their bytes are
    // readable.
    unsafe {
        let (receive, context) = *context.cast::<(Receive, *mut u8)>();
        for index in 0..count {
            let [start, length] = *segments.add(index);
            let result = receive(context, start as *const u8, length);
            if result != 0 {
                return result;
            }
        }
    }
    0
}

/// # Safety
/// The caller must ensure that there is room for the whole profile at `place`, and that the sections are readable.
unsafe fn write_to_memory(mut place: *mut u8, sections: &Sections, build_id: &[u8]) -> i32 {
    // SAFETY: the caller promises room for the profile and readable sections; their layout is checked before.
    unsafe {
        if sections.check().is_err() {
            return -1;
        }
        let mut buffer = [0; 64];
        let context = (&mut place as *mut *mut u8).cast();
        let mut output = Output::new(to_memory, context, &mut buffer);
        sections.write(
            &mut output,
            &Parts {
                build_id,
                values: false,
                // Without value data, readers reject records with value sites.
                no_sites: true,
                old: None,
                counts: None,
            },
        );
        output.finish()
    }
}

hidden! {
    fn __llvm_profile_begin_data() -> usize { image::data().start }
    fn __llvm_profile_end_data() -> usize { end(image::data()) }
    fn __llvm_profile_begin_counters() -> usize { image::counters().start }
    fn __llvm_profile_end_counters() -> usize { end(image::counters()) }
    fn __llvm_profile_begin_bitmap() -> usize { image::bitmap().start }
    fn __llvm_profile_end_bitmap() -> usize { end(image::bitmap()) }
    fn __llvm_profile_begin_names() -> usize { image::names().start }
    fn __llvm_profile_end_names() -> usize { end(image::names()) }
    fn __llvm_profile_begin_vnodes() -> usize { image::nodes().start }
    fn __llvm_profile_end_vnodes() -> usize { end(image::nodes()) }
    fn __llvm_profile_begin_vtables() -> usize { image::vtables().start }
    fn __llvm_profile_end_vtables() -> usize { end(image::vtables()) }
    fn __llvm_profile_begin_vtabnames() -> usize { image::vtable_names().start }
    fn __llvm_profile_end_vtabnames() -> usize { end(image::vtable_names()) }
    fn __llvm_profile_get_magic() -> u64 { MAGIC }
    fn __llvm_profile_get_version() -> u64 { image::version() }

    /// Returns the number of records in a section. LLVM 13 gives this function a different name.
    fn __llvm_profile_get_num_data(begin: usize, end: usize) -> u64 {
        (bounds(begin, end).length / LAYOUT.stride) as u64
    }
    fn __llvm_profile_get_data_size(begin: usize, end: usize) -> u64 {
        let size = bounds(begin, end).length / LAYOUT.stride;
        (if RAW == 7 { size } else { size * LAYOUT.stride }) as u64
    }
    fn __llvm_profile_counter_entry_size() -> u64 { image::sections().entry_size() as u64 }
    fn __llvm_profile_get_num_counters(begin: usize, end: usize) -> u64 {
        (bounds(begin, end).length / image::sections().entry_size()) as u64
    }
    fn __llvm_profile_get_counters_size(begin: usize, end: usize) -> u64 { bounds(begin, end).length as u64 }
    fn __llvm_profile_get_num_bitmap_bytes(begin: usize, end: usize) -> u64 { bounds(begin, end).length as u64 }
    fn __llvm_profile_get_name_size(begin: usize, end: usize) -> u64 { bounds(begin, end).length as u64 }
    fn __llvm_profile_get_num_vtable(begin: usize, end: usize) -> u64 {
        (bounds(begin, end).length / VTABLE_SIZE) as u64
    }
    fn __llvm_profile_get_vtable_section_size(begin: usize, end: usize) -> u64 { bounds(begin, end).length as u64 }
    fn __llvm_profile_get_num_padding_bytes(size: u64) -> u8 { (size.wrapping_neg() & 7) as u8 }

    fn __llvm_profile_get_size_for_buffer() -> u64 {
        image::sections().size(ids_size(image::build_id())) as u64
    }

    /// Writes without value data. Returns 0, or −1 if the image was compiled for another raw version.
    fn __llvm_profile_write_buffer(place: *mut u8) -> i32 {
        // SAFETY: the caller has asked for the size of the profile, and has room for it at this address.
        unsafe { write_to_memory(place, &image::sections(), image::build_id()) }
    }
    /// Writes sections with these bounds. Returns 0, or −1 if the image is of another raw version.
    fn __llvm_profile_write_buffer_internal(
        place: *mut u8,
        data: usize,
        data_end: usize,
        counters: usize,
        counters_end: usize,
        names: usize,
        names_end: usize,
    ) -> i32 {
        let sections = sections(
            bounds(data, data_end),
            bounds(counters, counters_end),
            Area::EMPTY,
            bounds(names, names_end),
        );
        // SAFETY: the caller has asked for the size of the profile, and has room for it at this address.
        unsafe { write_to_memory(place, &sections, &[]) }
    }

    /// Returns 0 if the counts of another profile can be added to those of this image, otherwise 1.
    fn __llvm_profile_check_compatibility(start: *const u8, length: u64) -> i32 {
        let bytes = Area { start: start as usize, length: length as usize };
        // SAFETY: the caller passes readable bytes.
        i32::from(unsafe { image::sections().old(bytes, false, false) }.is_none())
    }
    fn __llvm_profile_merge_from_buffer(start: *const u8, length: u64) -> i32 {
        let bytes = Area { start: start as usize, length: length as usize };
        let sections = image::sections();
        // SAFETY: the caller passes readable bytes.
        unsafe {
            if sections.check().is_err() {
                return 1;
            }
            let with_values = bytes.length as u64 != sections.size(0) as u64;
            let found = match sections.old(bytes, false, with_values) {
                None if with_values => sections.old(bytes, false, false),
                found => found,
            };
            match found {
                Some(old) => {
                    sections.add_counts(&old);
                    0
                }
                None => 1,
            }
        }
    }

    fn lprofMergeValueProfData(data: usize, record: usize) {
        // SAFETY: the caller passes value data, which begin with their size, and a record.
        unsafe { values::OldValues::add_one(data, record) }
    }
    fn __llvm_profile_set_num_value_sites(record: usize, kind: u32, count: u16) {
        // SAFETY: the caller passes a writable record.
        unsafe { values::set_sites(record, kind as usize, count) }
    }
    fn __llvm_get_function_addr(record: usize) -> usize {
        // SAFETY: the caller passes a record.
        unsafe { read(record + LAYOUT.function) }
    }
    fn __llvm_profile_iterate_data(record: usize) -> usize { record + LAYOUT.stride }

    /// Returns 0, the first other number that `receive` returns, or −1 for another raw version. One call at a time.
    fn __profkit_profile_capture(receive: Receive, context: *mut u8) -> i32 {
        let sections = image::sections();
        // SAFETY: the caller passes a function for this context; the sections are checked.
        unsafe {
            if sections.check().is_err() {
                return -1;
            }
            let mut buffer = [0; 64];
            let mut context = (receive, context);
            let context = (&mut context as *mut (Receive, *mut u8)).cast();
            let mut output = Output::new(to_program, context, &mut buffer);
            sections.write(
                &mut output,
                &Parts {
                    build_id: image::build_id(),
                    values: true,
                    no_sites: false,
                    old: None,
                    counts: None,
                },
            );
            output.finish()
        }
    }
}

fn end(area: Area) -> usize {
    area.start + area.length
}

// The following functions have different arguments in different releases of LLVM.
#[cfg(any(profkit_raw = "7", profkit_raw = "8"))]
hidden! {
    fn __llvm_profile_get_size_for_buffer_internal(
        data: usize, data_end: usize, counters: usize, counters_end: usize, names: usize, names_end: usize,
    ) -> u64 {
        let none = Area::EMPTY;
        sections(bounds(data, data_end), bounds(counters, counters_end), none, bounds(names, names_end)).size(0) as u64
    }
    fn __llvm_profile_get_padding_sizes_for_counters(
        _data: u64, counters: u64, names: u64, before: *mut u64, after: *mut u64, after_names: *mut u64,
    ) {
        // SAFETY: the caller passes the addresses of three writable numbers.
        unsafe {
            write(before as usize, 0_u64);
            write(after as usize, padding(counters as usize) as u64);
            write(after_names as usize, padding(names as usize) as u64);
        }
    }
}

#[cfg(profkit_raw = "9")]
hidden! {
    fn __llvm_profile_get_size_for_buffer_internal(
        data: usize, data_end: usize, counters: usize, counters_end: usize, bitmap: usize, bitmap_end: usize,
        names: usize, names_end: usize,
    ) -> u64 {
        sections(
            bounds(data, data_end), bounds(counters, counters_end), bounds(bitmap, bitmap_end), bounds(names, names_end),
        )
        .size(0) as u64
    }
    fn __llvm_profile_get_padding_sizes_for_counters(
        _data: u64, counters: u64, bitmap: u64, names: u64, before: *mut u64, after: *mut u64, after_bitmap: *mut u64,
        after_names: *mut u64,
    ) {
        // SAFETY: the caller passes the addresses of four writable numbers.
        unsafe {
            write(before as usize, 0_u64);
            write(after as usize, padding(counters as usize) as u64);
            write(after_bitmap as usize, padding(bitmap as usize) as u64);
            write(after_names as usize, padding(names as usize) as u64);
        }
    }
}

#[cfg(any(profkit_raw = "10", profkit_raw = "11"))]
hidden! {
    fn __llvm_profile_get_size_for_buffer_internal(
        data: usize, data_end: usize, counters: usize, counters_end: usize, bitmap: usize, bitmap_end: usize,
        names: usize, names_end: usize, vtables: usize, vtables_end: usize, vtable_names: usize, vtable_names_end: usize,
    ) -> u64 {
        let mut sections = sections(
            bounds(data, data_end), bounds(counters, counters_end), bounds(bitmap, bitmap_end), bounds(names, names_end),
        );
        sections.vtables = bounds(vtables, vtables_end);
        sections.vtable_names = bounds(vtable_names, vtable_names_end);
        sections.size(0) as u64
    }
    fn __llvm_profile_get_padding_sizes_for_counters(
        _data: u64, counters: u64, bitmap: u64, names: u64, vtables: u64, vtable_names: u64, before: *mut u64,
        after: *mut u64, after_bitmap: *mut u64, after_names: *mut u64, after_vtables: *mut u64,
        after_vtable_names: *mut u64,
    ) -> i32 {
        // SAFETY: the caller passes the addresses of writable numbers, or null for the last two.
        unsafe {
            write(before as usize, 0_u64);
            write(after as usize, padding(counters as usize) as u64);
            write(after_bitmap as usize, padding(bitmap as usize) as u64);
            write(after_names as usize, padding(names as usize) as u64);
            if !after_vtables.is_null() {
                write(after_vtables as usize, padding(vtables as usize) as u64);
            }
            if !after_vtable_names.is_null() {
                write(after_vtable_names as usize, padding(vtable_names as usize) as u64);
            }
        }
        0
    }
}

const _: () = assert!(Layout::of(RAW).version == RAW);
