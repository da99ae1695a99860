//! Mutations that keep a header's form, so that they reach more than its first length.

use crate::layout::{Layout, Pair, Tensor, size};

/// Numbers at limits.
const NUMBERS: [u64; 24] = [
    0,
    1,
    2,
    3,
    5,
    6,
    31,
    32,
    63,
    64,
    255,
    256,
    511,
    512,
    513,
    1024,
    1025,
    4096,
    65_535,
    65_536,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// A small pseudo-random generator: each mutation must follow from its seed.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed) ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `end`, which must not be 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn number(&mut self) -> u64 {
        NUMBERS[self.below(NUMBERS.len())]
    }
}

/// Changes the header in one or a few places; returns `None` if it is malformed. `bytes` changes some bytes in place.
pub fn mutate(header: &[u8], seed: u32, bytes: &mut dyn FnMut(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let mut dice = Dice::new(seed);
    let mut layout = Layout::read(header)?;
    for _ in 0..=dice.below(3) {
        let of_pairs = layout.tensors.is_empty() || dice.below(3) > 0;
        if of_pairs && !layout.pairs.is_empty() {
            mutate_pairs(&mut layout.pairs, &mut dice, bytes);
        } else if !layout.tensors.is_empty() {
            mutate_tensors(&mut layout.tensors, &mut dice);
        }
    }
    let mut file = layout.write();
    // The counts are wrong as well.
    if dice.below(16) == 0 {
        let at = if dice.below(2) == 0 { 8 } else { 16 };
        let number = dice.number();
        file.get_mut(at..at + 8)?
            .copy_from_slice(&number.to_le_bytes());
    }
    Some(file)
}

fn mutate_pairs(pairs: &mut Vec<Pair>, dice: &mut Dice, bytes: &mut dyn FnMut(&mut Vec<u8>)) {
    let (at, other) = (dice.below(pairs.len()), dice.below(pairs.len()));
    match dice.below(10) {
        0 => drop(pairs.remove(at)),
        1 => pairs.push(pairs[at].clone()),
        2 => pairs.swap(at, other),
        // Another's value under this key.
        3 => {
            let Pair { kind, value, .. } = pairs[other].clone();
            pairs[at] = Pair {
                key: pairs[at].key.clone(),
                kind,
                value,
            };
        }
        4 => bytes(&mut pairs[at].key),
        5 => pairs[at].kind = dice.below(14) as u32,
        6 => bytes(&mut pairs[at].value),
        // A length, where there is one: of a string at the front, of a list behind its elements' type.
        7 => {
            let place = match pairs[at].kind {
                8 => 0..8,
                9 => 4..12,
                _ => return,
            };
            let number = dice.number();
            if let Some(length) = pairs[at].value.get_mut(place) {
                length.copy_from_slice(&number.to_le_bytes());
            }
        }
        // A number, or each of a list's the same.
        _ => {
            let number = dice.number().to_le_bytes();
            let Pair { kind, value, .. } = &mut pairs[at];
            let (front, width) = match (*kind, value.first_chunk()) {
                (9, Some(element)) => (12, size(u32::from_le_bytes(*element))),
                (scalar, _) => (0, size(scalar)),
            };
            if let (Some(width), Some(numbers)) = (width, value.get_mut(front..)) {
                for old in numbers.chunks_exact_mut(width) {
                    old.copy_from_slice(&number[..width]);
                }
            }
        }
    }
}

fn mutate_tensors(tensors: &mut Vec<Tensor>, dice: &mut Dice) {
    let (at, other) = (dice.below(tensors.len()), dice.below(tensors.len()));
    match dice.below(8) {
        0 => drop(tensors.remove(at)),
        1 => tensors.push(tensors[at].clone()),
        2 => tensors.swap(at, other),
        3 => tensors[at].kind = dice.below(44) as u32,
        4 => tensors[at].offset = dice.number(),
        5 => tensors[at].shape.push(dice.number()),
        6 => tensors[at].name = tensors[other].name.clone(),
        _ => {
            let number = dice.number();
            let shape = &mut tensors[at].shape;
            if !shape.is_empty() {
                let dimension = dice.below(shape.len());
                shape[dimension] = number;
            }
        }
    }
}
