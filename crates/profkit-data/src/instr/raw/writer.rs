//! Writes raw profiles of every version, byte order and pointer width.
use super::header::{RawDialect, RawHeader};
use super::image::{RawImage, RawImageRecord};
use super::layout::{RecordLayout, VTableLayout};
use super::sections::padding_to_8;
use crate::bytes::{Sink, assert_planned};
use crate::ids::NameRef;
use crate::instr::{Losses, ValueData, value_data};
use crate::names::{NAME_SEPARATOR, encode_blob_stored, encode_blob_zlib};
use crate::{Error, ErrorKind, Result, Structure};
use profkit_abi::{value_kind, variant};
use std::collections::HashSet;

/// The address of the first section before the slide is added. (The slide is the distance by which the system moves a
/// program in memory.) The number is arbitrary: readers only compare addresses
/// and subtract them.
const FIRST_ADDRESS: u64 = 0x1_0000;
/// The largest page size that the writer accepts; no machine has larger pages.
const MAX_PAGE: u64 = 1 << 30;

/// Writes a raw profile. Nothing is left out: contents that the version cannot hold give an error.
///
/// # Errors
/// [`ErrorKind::CannotRepresent`] if the version or the format cannot hold the contents; nothing is written then.
/// Otherwise the errors of the sink.
pub fn write(image: &RawImage, sink: &mut dyn Sink) -> Result<Losses> {
    let plan = Plan::of(image)?;
    let mut head = Vec::with_capacity(plan.header.len);
    plan.header.encode(&mut head);
    assert_planned(
        "header of the raw profile",
        plan.header.len as u64,
        head.len() as u64,
    );
    sink.put(&head)?;
    for (bytes, padding) in plan.sections {
        sink.put(&bytes)?;
        put_zeros(sink, padding)?;
    }
    Ok(Losses::default())
}

impl RawImage {
    /// Returns the bytes that [`write()`] writes.
    ///
    /// # Errors
    /// The errors of [`write()`], except those of a sink.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        write(self, &mut bytes)?;
        Ok(bytes)
    }
}

fn put_zeros(sink: &mut dyn Sink, mut count: u64) -> Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    while count > 0 {
        let some = usize::try_from(count)
            .unwrap_or(ZEROS.len())
            .min(ZEROS.len());
        sink.put(ZEROS.get(..some).unwrap_or_default())?;
        count -= some as u64;
    }
    Ok(())
}

struct Plan {
    header: RawHeader,
    sections: Vec<(Vec<u8>, u64)>,
}

struct Addresses {
    data: u64,
    counters: u64,
    bitmap: u64,
    uniform: u64,
    names: u64,
}

impl Plan {
    fn of(image: &RawImage) -> Result<Self> {
        let mut header = RawHeader::empty(image.dialect).ok_or_else(|| {
            cannot("the raw format has no such version").found(image.dialect.version)
        })?;
        if image.form.short_v5_header {
            header = header.as_short_v5();
        }
        check(image)?;
        header.value_kind_last = value_kind_last(image.dialect.version);
        let layout = RecordLayout::of(&header);

        let binary_ids = binary_ids(image, header.pads_binary_ids());
        let counters = counters(image);
        let bitmap = image
            .records
            .iter()
            .flat_map(|record| record.bitmap.iter().copied());
        let bitmap: Vec<u8> = bitmap.collect();
        let uniform = uniform_counters(image);
        let names = if image.form.correlate {
            Vec::new()
        } else {
            names(image)
        };
        let vtable_names = if image.form.correlate {
            Vec::new()
        } else {
            vtable_names(image)
        };
        let record_count = if image.form.correlate {
            0
        } else {
            image.records.len()
        };
        let data_len = (record_count * layout.stride) as u64;

        header.binary_ids_size = binary_ids.len() as u64;
        header.num_data = record_count as u64;
        header.num_counters = (counters.len() / image.dialect.counter_len()) as u64;
        header.num_bitmap_bytes = bitmap.len() as u64;
        header.num_uniform_counters = uniform.len() as u64 / 8;
        header.names_size = names.len() as u64;
        header.vnames_size = vtable_names.len() as u64;
        pad(&mut header, image, data_len, counters.len() as u64);

        let addresses = place(&header, image, data_len, counters.len() as u64);
        let relative = image.dialect.version >= 8
            || (image.form.relative_snapshot && matches!(image.dialect.version, 6 | 7));
        set_deltas(&mut header, image, &addresses, relative);

        let (data, values, vtables) = if image.form.correlate {
            (Vec::new(), Vec::new(), Vec::new())
        } else {
            let records = Records {
                image,
                layout: &layout,
                addresses: &addresses,
                relative,
            };
            (records.encode(), values(image)?, vtables(image))
        };
        assert_planned("data records", data_len, data.len() as u64);
        header.num_vtables = (vtables.len() / VTableLayout::of(image.dialect.width).stride) as u64;
        if matches!(image.dialect.version, 2 | 3) {
            header.value_data_size = values.len() as u64;
        }
        let names_padding = match image.dialect.version {
            // In version 1, 8 bytes of padding follow the names even if the length of the names is already a multiple
            // of 8.
            1 => 8 - header.names_size % 8,
            _ => padding_to_8(header.names_size),
        };
        let vtables_padding = padding_to_8(vtables.len() as u64);
        let vtable_names_padding = padding_to_8(header.vnames_size);
        let sections = vec![
            (binary_ids, 0),
            (data, header.padding_before_counters),
            (counters, header.padding_after_counters),
            (bitmap, header.padding_after_bitmap),
            (uniform, header.padding_after_uniform_counters),
            (names, names_padding),
            (vtables, vtables_padding),
            (vtable_names, vtable_names_padding),
            (values, 0),
        ];
        Ok(Plan { header, sections })
    }
}

#[cold]
fn cannot(message: &'static str) -> Error {
    ErrorKind::CannotRepresent
        .error(message)
        .within(Structure::RawProfile)
}

/// Returns the ValueKindLast that the run-time libraries of each version wrote. The first libraries recorded only
/// indirect calls (0); LLVM 5 added memory sizes (1), and LLVM 19 added vtables (2).
fn value_kind_last(version: u32) -> u64 {
    match version {
        1..=3 => 0,
        4..=9 => 1,
        _ => 2,
    }
}

fn check(image: &RawImage) -> Result<()> {
    let version = image.dialect.version;
    let needs = |message: &'static str, first: u32, used: bool| {
        if used && version < first {
            return Err(cannot(message)
                .found(format_args!("version {version}"))
                .expected(format_args!("version {first} or later")));
        }
        Ok(())
    };
    let any = |test: fn(&RawImageRecord) -> bool| image.records.iter().any(test);
    needs(
        "this raw version has no build ids",
        6,
        !image.binary_ids.is_empty(),
    )?;
    needs(
        "this raw version has no bitmaps",
        9,
        any(|record| !record.bitmap.is_empty()),
    )?;
    needs(
        "this raw version has no vtables",
        10,
        !image.vtables.is_empty(),
    )?;
    needs(
        "this raw version has no uniform counters",
        11,
        any(|record| !record.uniform_counts.is_empty()),
    )?;
    let has_kind = |record: &RawImageRecord, kind| {
        record
            .values
            .kind(kind)
            .is_some_and(|sites| sites.site_count() > 0)
    };
    for (kind, first) in [
        (value_kind::INDIRECT_CALL_TARGET, 2),
        (value_kind::MEM_OP_SIZE, 4),
        (value_kind::VTABLE_TARGET, 10),
    ] {
        let used = image.records.iter().any(|record| has_kind(record, kind));
        needs(
            "this raw version does not have this value kind",
            first,
            used,
        )?;
    }
    let padding_from_5 = image.form.page_size.is_some() && image.form.short_v5_header;
    needs(
        "this raw version has no padding around counters",
        if padding_from_5 { 6 } else { 5 },
        image.form.page_size.is_some(),
    )?;
    for record in &image.records {
        check_record(record, version).map_err(|error| {
            error.within(Structure::Function(
                String::from_utf8_lossy(&record.name).into_owned(),
            ))
        })?;
    }
    if image
        .form
        .page_size
        .is_some_and(|page| !page.is_power_of_two() || page > MAX_PAGE)
    {
        return Err(cannot("the page size is not valid").expected("a power of two up to 1 GiB"));
    }
    if image.binary_ids.iter().any(|id| id.0.is_empty()) {
        return Err(cannot("a build id is empty"));
    }
    Ok(())
}

fn check_record(record: &RawImageRecord, version: u32) -> Result<()> {
    if version > 2 && (record.name.is_empty() || record.name.contains(&NAME_SEPARATOR)) {
        return Err(cannot("a name is empty or holds byte 0x01"));
    }
    let sites = record
        .values
        .kinds()
        .map(|(_, sites)| sites.site_count())
        .max();
    if sites.is_some_and(|sites| u16::try_from(sites).is_err()) {
        return Err(cannot("a function has too many value sites").expected("at most 65535"));
    }
    // A time stamp of 8 bytes precedes the counters. With single-byte coverage it takes the space of 8 counters.
    let longest = record
        .counts
        .len()
        .max(record.bitmap.len())
        .saturating_add(8);
    if u32::try_from(longest).is_err() {
        return Err(cannot("a function has too many counters or bitmap bytes"));
    }
    if !record.uniform_counts.is_empty() && record.uniform_counts.len() != record.counts.len() {
        return Err(cannot(
            "a function has different numbers of uniform counters and counters",
        ));
    }
    Ok(())
}

fn binary_ids(image: &RawImage, padded: bool) -> Vec<u8> {
    let mut out = Vec::new();
    for id in &image.binary_ids {
        out.extend_from_slice(&image.dialect.endian.u64_bytes(id.0.len() as u64));
        out.extend_from_slice(&id.0);
        if padded {
            out.resize(out.len().next_multiple_of(8), 0);
        }
    }
    out
}

/// Returns the space that a function takes in the counter section, as a number of counters. A time stamp takes the
/// space of one counter of 8 bytes, or of eight counters of 1 byte.
fn counter_elements(image: &RawImage, record: &RawImageRecord) -> usize {
    let stamp = match (
        image.dialect.has(variant::TEMPORAL),
        image.dialect.counter_len(),
    ) {
        (false, _) => 0,
        (true, len) => 8 / len,
    };
    stamp + record.counts.len()
}

fn counters(image: &RawImage) -> Vec<u8> {
    let endian = image.dialect.endian;
    let mut out = Vec::new();
    for record in &image.records {
        if image.dialect.has(variant::TEMPORAL) {
            out.extend_from_slice(&endian.u64_bytes(record.time_stamp));
        }
        if image.dialect.has(variant::BYTE_COVERAGE) {
            // With single-byte coverage, a counter starts as 0xff and is set to 0 when its code runs.
            out.extend(
                record
                    .counts
                    .iter()
                    .map(|&count| if count == 0 { 0xff } else { 0 }),
            );
        } else {
            record
                .counts
                .iter()
                .for_each(|&count| out.extend_from_slice(&endian.u64_bytes(count)));
        }
    }
    out
}

/// Returns the space that a function takes in the section of uniform counters, as a number of uniform counters. A
/// function without uniform counters takes no space. Every other function takes as much as in the counter section,
/// including the space of the time stamp.
fn uniform_elements(image: &RawImage, record: &RawImageRecord) -> usize {
    if record.uniform_counts.is_empty() {
        0
    } else {
        counter_elements(image, record)
    }
}

fn uniform_counters(image: &RawImage) -> Vec<u8> {
    let mut out = Vec::new();
    for record in &image.records {
        let stamp = uniform_elements(image, record) - record.uniform_counts.len();
        out.extend(std::iter::repeat_n(0, 8 * stamp));
        for &count in &record.uniform_counts {
            out.extend_from_slice(&image.dialect.endian.u64_bytes(count));
        }
    }
    out
}

fn names(image: &RawImage) -> Vec<u8> {
    let names = image.records.iter().map(|record| record.name.as_slice());
    if image.dialect.version <= 2 {
        return names.flatten().copied().collect();
    }
    let mut seen = HashSet::new();
    let unique: Vec<_> = names.filter(|name| seen.insert(*name)).collect();
    chunks(image, &unique)
}

fn vtable_names(image: &RawImage) -> Vec<u8> {
    let names: Vec<_> = image
        .vtables
        .iter()
        .map(|vtable| vtable.name.as_slice())
        .collect();
    chunks(image, &names)
}

fn chunks(image: &RawImage, names: &[&[u8]]) -> Vec<u8> {
    let per_chunk = match image.form.names_per_chunk {
        0 => names.len().max(1),
        some => some,
    };
    let encode = |chunk: &[&[u8]]| {
        let names = chunk.iter().copied();
        if image.form.compress_names {
            encode_blob_zlib(names)
        } else {
            encode_blob_stored(names)
        }
    };
    names.chunks(per_chunk).flat_map(encode).collect()
}

fn pad(header: &mut RawHeader, image: &RawImage, data_len: u64, counters_len: u64) {
    if !header.has_counter_padding() {
        return;
    }
    if let Some(page) = image.form.page_size.filter(|&page| page > 0) {
        let to_page = |size: u64| size.next_multiple_of(page) - size;
        let before = header.len as u64 + header.binary_ids_size + data_len;
        header.padding_before_counters = to_page(before);
        header.padding_after_counters = to_page(counters_len);
        if image.dialect.version >= 9 {
            header.padding_after_bitmap = to_page(header.num_bitmap_bytes);
        }
    } else {
        header.padding_after_counters = padding_to_8(counters_len);
        header.padding_after_bitmap = padding_to_8(header.num_bitmap_bytes);
    }
}

fn place(header: &RawHeader, image: &RawImage, data_len: u64, counters_len: u64) -> Addresses {
    let data = FIRST_ADDRESS.wrapping_add(image.form.slide);
    let counters = data.wrapping_add(data_len + header.padding_before_counters);
    let bitmap = counters.wrapping_add(counters_len + header.padding_after_counters);
    let uniform = bitmap.wrapping_add(header.num_bitmap_bytes + header.padding_after_bitmap);
    let names = uniform.wrapping_add(header.num_uniform_counters * 8);
    Addresses {
        data,
        counters,
        bitmap,
        uniform,
        names,
    }
}

fn set_deltas(header: &mut RawHeader, image: &RawImage, addresses: &Addresses, relative: bool) {
    if image.form.correlate {
        return;
    }
    let dialect = image.dialect;
    let from_data = |address: u64| pointer(dialect, address.wrapping_sub(addresses.data));
    header.counters_delta = if relative {
        from_data(addresses.counters)
    } else {
        pointer(dialect, addresses.counters)
    };
    if dialect.version >= 9 {
        // If there is no bitmap, compiler-rt takes 0 (a null pointer) as the address of the bitmaps when it computes
        // BitmapDelta.
        let bitmap = if header.num_bitmap_bytes > 0 {
            addresses.bitmap
        } else {
            0
        };
        header.bitmap_delta = from_data(bitmap);
    }
    if header.num_uniform_counters > 0 {
        header.uniform_counters_delta = from_data(addresses.uniform);
    }
    header.names_delta = pointer(dialect, addresses.names);
}

/// Cuts an address to the pointer width of the program: keeps the low 32 bits in a 32-bit program, and all bits
/// otherwise.
fn pointer(dialect: RawDialect, address: u64) -> u64 {
    match dialect.width.bytes() {
        4 => address & u64::from(u32::MAX),
        _ => address,
    }
}

struct Records<'a> {
    image: &'a RawImage,
    layout: &'a RecordLayout,
    addresses: &'a Addresses,
    relative: bool,
}

/// For each section that data records point to, the offset up to which the section is filled so far.
#[derive(Default)]
struct Ends {
    counters: u64,
    bitmap: u64,
    uniform: u64,
    names: u64,
}

impl Records<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.image.records.len() * self.layout.stride);
        let mut ends = Ends::default();
        for record in &self.image.records {
            self.encode_one(record, &mut ends, &mut out);
        }
        out
    }

    fn encode_one(&self, record: &RawImageRecord, ends: &mut Ends, out: &mut Vec<u8>) {
        let (image, layout, addresses) = (self.image, self.layout, self.addresses);
        let dialect = image.dialect;
        let own = addresses.data.wrapping_add(out.len() as u64);
        let mut bytes = vec![0; layout.stride];
        let mut fields = Fields {
            dialect,
            bytes: &mut bytes,
        };
        let elements = counter_elements(image, record);
        let name_size = u32::try_from(record.name.len()).unwrap_or(u32::MAX);
        fields.u64(layout.name_ref, NameRef::of(&record.name).0);
        fields.u32(layout.name_size, name_size);
        fields.pointer(layout.name_ptr, addresses.names.wrapping_add(ends.names));
        fields.u64(Some(layout.func_hash), record.func_hash.0);
        let counter = addresses.counters.wrapping_add(ends.counters);
        let counter = if self.relative {
            counter.wrapping_sub(own)
        } else {
            counter
        };
        fields.pointer(Some(layout.counter_ptr), counter);
        if !record.uniform_counts.is_empty() {
            let uniform = addresses
                .uniform
                .wrapping_add(ends.uniform)
                .wrapping_sub(own);
            fields.pointer(layout.uniform_counter_ptr, uniform);
        }
        if !record.bitmap.is_empty() {
            let bitmap = addresses.bitmap.wrapping_add(ends.bitmap).wrapping_sub(own);
            fields.pointer(layout.bitmap_ptr, bitmap);
        }
        if record.address != 0 {
            let address = record.address.wrapping_add(image.form.slide);
            fields.pointer(layout.function_pointer, address);
        }
        fields.u32(
            Some(layout.num_counters),
            u32::try_from(elements).unwrap_or(u32::MAX),
        );
        for (kind, sites) in record.values.kinds().take(layout.value_kinds) {
            let at = layout.num_value_sites + 2 * kind as usize;
            fields.u16(
                Some(at),
                u16::try_from(sites.site_count()).unwrap_or(u16::MAX),
            );
        }
        fields.u16(layout.offload_device_wave_size, record.wave_size);
        let bitmap_len = u32::try_from(record.bitmap.len()).unwrap_or(u32::MAX);
        fields.u32(layout.num_bitmap_bytes, bitmap_len);
        out.append(&mut bytes);

        ends.counters += (elements * dialect.counter_len()) as u64;
        ends.bitmap += record.bitmap.len() as u64;
        ends.uniform += 8 * uniform_elements(image, record) as u64;
        ends.names += record.name.len() as u64;
    }
}

/// Writes numbers into the bytes of a data record. If the version does not have a field, its number is skipped.
struct Fields<'a> {
    dialect: RawDialect,
    bytes: &'a mut [u8],
}

impl Fields<'_> {
    fn put(&mut self, at: Option<usize>, value: &[u8]) {
        let place = at.and_then(|at| self.bytes.get_mut(at..at + value.len()));
        if let Some(place) = place {
            place.copy_from_slice(value);
        }
    }

    fn u16(&mut self, at: Option<usize>, value: u16) {
        self.put(at, &self.dialect.endian.u16_bytes(value));
    }

    fn u32(&mut self, at: Option<usize>, value: u32) {
        self.put(at, &self.dialect.endian.u32_bytes(value));
    }

    fn u64(&mut self, at: Option<usize>, value: u64) {
        self.put(at, &self.dialect.endian.u64_bytes(value));
    }

    fn pointer(&mut self, at: Option<usize>, value: u64) {
        let value = pointer(self.dialect, value);
        match u32::try_from(value) {
            Ok(value) if self.dialect.width.bytes() == 4 => self.u32(at, value),
            _ => self.u64(at, value),
        }
    }
}

fn values(image: &RawImage) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut slid = ValueData::default();
    for record in image
        .records
        .iter()
        .filter(|record| !record.values.is_empty())
    {
        slid.clone_from(&record.values);
        for (kind, sites) in slid.kinds_mut() {
            if kind != value_kind::MEM_OP_SIZE {
                let addresses = sites
                    .entries_mut()
                    .iter_mut()
                    .filter(|entry| entry.value != 0);
                addresses.for_each(|entry| {
                    let address = entry.value.wrapping_add(image.form.slide);
                    entry.value = pointer(image.dialect, address);
                });
            }
        }
        value_data::encode(&slid, image.dialect.endian, &mut out)?;
    }
    Ok(out)
}

fn vtables(image: &RawImage) -> Vec<u8> {
    let layout = VTableLayout::of(image.dialect.width);
    let mut out = Vec::new();
    for vtable in &image.vtables {
        let mut bytes = vec![0; layout.stride];
        let mut fields = Fields {
            dialect: image.dialect,
            bytes: &mut bytes,
        };
        fields.u64(Some(layout.name_hash), vtable.name_hash().0);
        let address = vtable.address.wrapping_add(image.form.slide);
        fields.pointer(Some(layout.pointer), address);
        fields.u32(Some(layout.size), vtable.size);
        out.append(&mut bytes);
    }
    out
}
