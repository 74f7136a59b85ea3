//! The hashes of many names, four at a time. MD5 is a chain of operations that each wait for the one before; four names
//! side by side let a processor work while it waits, and fill its vector registers. With the instructions that every
//! x86-64 processor has, four at a time take a third of the time of one by one; eight take no less. So one name alone takes
//! longer here than in the crate `md-5`, with which [`NameRef::of`] hashes it.
use crate::ids::NameRef;

/// The number of names that are hashed side by side.
const LANES: usize = 4;
/// The number of bytes that one step of MD5 takes in.
const BLOCK: usize = 64;
/// The bytes of the last block that hold the name and its end mark; the length follows them.
const BEFORE_LENGTH: usize = BLOCK - 8;

type Word = [u32; LANES];

/// Calls `put` with the position and the hash of each name. The hashes come in no certain order.
pub(crate) fn hash_names<'n>(
    names: impl IntoIterator<Item = &'n [u8]>,
    mut put: impl FnMut(usize, NameRef),
) {
    let mut names = names.into_iter().enumerate();
    let mut lanes: [Option<Lane<'n>>; LANES] =
        std::array::from_fn(|_| names.next().map(Lane::begin));
    let mut state = START.map(|word| [word; LANES]);
    let mut message = [[0; LANES]; BLOCK / 4];
    while lanes.iter().any(Option::is_some) {
        for (number, lane) in lanes.iter_mut().enumerate() {
            let Some(lane) = lane else { continue };
            let block = lane.next_block();
            let (bytes, _) = block.as_chunks::<4>();
            for (word, bytes) in message.iter_mut().zip(bytes) {
                word[number] = u32::from_le_bytes(*bytes);
            }
        }
        take_block(&mut state, &message);
        for (number, slot) in lanes.iter_mut().enumerate() {
            let Some(lane) = slot.take_if(|lane| lane.is_done) else {
                continue;
            };
            let [low, high, ..] = state.map(|word| u64::from(word[number]));
            put(lane.position, NameRef(low | high << 32));
            for (word, start) in state.iter_mut().zip(START) {
                word[number] = start;
            }
            *slot = names.next().map(Lane::begin);
        }
    }
}

/// A name of which some blocks are hashed.
struct Lane<'n> {
    position: usize,
    rest: &'n [u8],
    bits: u64,
    /// Whether the mark after the last byte of the name was given out.
    is_marked: bool,
    /// Whether the last block was given out.
    is_done: bool,
}

impl<'n> Lane<'n> {
    fn begin((position, name): (usize, &'n [u8])) -> Self {
        Lane {
            position,
            rest: name,
            bits: (name.len() as u64).wrapping_mul(8),
            is_marked: false,
            is_done: false,
        }
    }

    #[inline]
    fn next_block(&mut self) -> [u8; BLOCK] {
        if let Some((block, rest)) = self.rest.split_first_chunk() {
            self.rest = rest;
            return *block;
        }
        let mut block = [0; BLOCK];
        let taken = self.rest.len();
        for (to, from) in block.iter_mut().zip(std::mem::take(&mut self.rest)) {
            *to = *from;
        }
        if !self.is_marked {
            block[taken] = 0x80;
            self.is_marked = true;
        }
        if taken < BEFORE_LENGTH {
            block[BEFORE_LENGTH..].copy_from_slice(&self.bits.to_le_bytes());
            self.is_done = true;
        }
        block
    }
}

/// The state before the first block (RFC 1321, 3.3).
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The constants of the 64 steps: 2^32 times the sine of the step's number, counted from 1 (RFC 1321, 3.4).
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// Sixteen steps of MD5: the function of a round, the number of its first step, how its steps walk through the message
/// (every `step`-th word from word `from` on), and by how many bits its steps rotate. The steps are written out, so that
/// each number is known when the code is compiled.
macro_rules! round {
    ($state:ident, $message:ident, $function:expr, $first:literal, $step:literal, $from:literal, $turns:expr) => {
        round!(@steps $state, $message, $function, $first, $step, $from, $turns,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@steps $state:ident, $message:ident, $function:expr, $first:literal, $step:literal, $from:literal, $turns:expr,
        $($number:literal)*) => {
        $(
            let [a, b, c, d] = $state;
            let sum = step::<{ $turns[$number % 4] }>(
                a, b, c, d, $message[($number * $step + $from) % 16], SINES[$first + $number], $function);
            $state = [d, sum, b, c];
        )*
    };
}

#[inline(never)]
fn take_block(state: &mut [Word; 4], message: &[Word; BLOCK / 4]) {
    let mut now = *state;
    round!(
        now,
        message,
        |b, c, d| d ^ (b & (c ^ d)),
        0,
        1,
        0,
        [7, 12, 17, 22]
    );
    round!(
        now,
        message,
        |b, c, d| c ^ (d & (b ^ c)),
        16,
        5,
        1,
        [5, 9, 14, 20]
    );
    round!(now, message, |b, c, d| b ^ c ^ d, 32, 3, 5, [4, 11, 16, 23]);
    round!(
        now,
        message,
        |b, c, d| c ^ (b | !d),
        48,
        7,
        0,
        [6, 10, 15, 21]
    );
    for (word, more) in state.iter_mut().zip(now) {
        for (lane, more) in word.iter_mut().zip(more) {
            *lane = lane.wrapping_add(more);
        }
    }
}

#[inline(always)]
fn step<const TURN: u32>(
    a: Word,
    b: Word,
    c: Word,
    d: Word,
    word: Word,
    sine: u32,
    mixed: impl Fn(u32, u32, u32) -> u32,
) -> Word {
    let mut result = [0; LANES];
    for lane in 0..LANES {
        result[lane] = a[lane]
            .wrapping_add(mixed(b[lane], c[lane], d[lane]))
            .wrapping_add(word[lane])
            .wrapping_add(sine)
            .rotate_left(TURN)
            .wrapping_add(b[lane]);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agree(names: &[Vec<u8>]) {
        let mut found = vec![None; names.len()];
        hash_names(names.iter().map(Vec::as_slice), |position, hash| {
            assert_eq!(found[position].replace(hash), None, "a name is hashed once");
        });
        for (name, found) in names.iter().zip(found) {
            assert_eq!(found, Some(NameRef::of(name)), "{} bytes", name.len());
        }
    }

    #[test]
    fn every_length_has_the_hash_that_it_has_alone() {
        let name = |length: usize| {
            (0..length)
                .map(|byte| (byte * 7 + length).to_le_bytes()[0])
                .collect()
        };
        agree(&(0..300).map(name).collect::<Vec<_>>());
        agree(&[]);
        agree(&[Vec::new()]);
    }

    proptest! {
        #[test]
        fn names_of_different_lengths_do_not_disturb_each_other(
            names in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
        ) {
            agree(&names);
        }
    }
}
