mod inferred;
mod map;
mod profile;
mod raw;
mod sweep;
mod yaml_text;

use super::*;
use crate::ids::BuildId;
use crate::index_vec::Id;
use crate::tables::{Frame, StackFlags, Tables};
use crate::{Error, Result};
use profkit_testkit::mip::{self as made, V8_MAP, V8_RAW, mixed_image};
use profkit_testkit::{ByteBuilder, Endian};
use std::borrow::Cow;

fn function(index: usize) -> FunctionId {
    FunctionId::from_index(index)
}

fn message(error: &Error) -> String {
    assert!(
        !error.structures().is_empty()
            && (error.offset().is_some() || error.line_column().is_some())
            || error.kind() == crate::ErrorKind::Empty,
        "{error}"
    );
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

fn created(map: &[u8], facts: &ImageFacts) -> Result<Created> {
    MipProfile::create(&MipMap::parse(map)?, facts)
}

/// The profile of the test program `mixed` without any run.
fn mixed() -> MipProfile {
    let image = mixed_image();
    let facts = ImageFacts::new()
        .build_id(Some(BuildId(image.build_id.clone())))
        .width(Some(Width::Bits64))
        .section_size(Some(image.layout().1 as u64));
    created(&image.map().finish(), &facts).unwrap().profile
}

fn full() -> MipProfile {
    let mut profile = mixed();
    profile.runs = 7;
    for (index, function) in (1u64..).zip(&mut profile.functions) {
        function.raw_runs = 7;
        function.called_runs = 5 - index;
        if function.modes.contains(Modes::CALLS) {
            function.calls = 1000 * index;
            function.order_sum = 10 * index;
            function.order_runs = 5 - index;
            function.order_min = Some(2);
            function.calls_at_least = index == 2;
        }
        for (block, more) in function.blocks.iter_mut().zip(0..) {
            block.runs = more;
        }
    }
    profile.edges = vec![
        CallEdge {
            caller: None,
            call_site: 0xffff_0000,
            callee: function(0),
            weight: 3,
        },
        CallEdge {
            caller: Some(function(0)),
            call_site: 0x15,
            callee: function(1),
            weight: 1 << 40,
        },
    ];
    let frame = |function: &'static [u8], path: Option<&'static [u8]>, line, flags| Frame {
        function,
        path: path.map(Cow::Borrowed),
        line,
        column: 3,
        flags,
    };
    let mut tables = Tables::default();
    let main = [frame(
        b"main",
        Some(b"/src/main.c"),
        10,
        StackFlags::default(),
    )];
    profile.functions[function(0)].location = tables.intern_stack(&main).unwrap();
    let inlined = [
        frame(b"inner", Some(b"/src/lib/a b.h"), 4, StackFlags::INLINED),
        frame(b"_ZN3one3twoEi", None, 30, StackFlags::default()),
    ];
    profile.functions[function(1)].location = tables.intern_stack(&inlined).unwrap();
    profile.tables = tables;
    profile
}

fn encoded(profile: &MipProfile, version: ProfileVersion) -> Vec<u8> {
    let mut out = Vec::new();
    write(profile, &MipWriteOptions::new().version(version), &mut out).unwrap();
    out
}
