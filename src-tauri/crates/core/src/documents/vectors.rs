//! Vectors of passages, packed to a byte a number: a quarter of the room and of the reads, and nearly the same order.

/// Bytes before the numbers: the scale, and it alone.
const HEAD: usize = 4;
const MOST: f32 = 127.0;

/// Packs a vector of any length as one of length 1. A vector without a length is packed as zeros.
pub fn pack(vector: &[f32]) -> Vec<u8> {
    let largest = vector
        .iter()
        .fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let (scale, unit) = match length(vector) {
        Some(length) => (largest / length / MOST, MOST / largest),
        None => (0.0, 0.0),
    };
    let mut packed = Vec::with_capacity(HEAD + vector.len());
    packed.extend(scale.to_le_bytes());
    let bytes = vector.iter().map(|number| number * unit);
    packed.extend(bytes.map(|byte| byte.round().clamp(-MOST, MOST) as i8 as u8));
    packed
}

/// Returns the signs of a packed vector's numbers, a bit each: in vectors that are alike, most are equal.
pub fn sketch(packed: &[u8]) -> Vec<u8> {
    let numbers = packed.get(HEAD..).unwrap_or_default();
    let signs = |eight: &[u8]| {
        let eight = eight.iter();
        eight.fold(0_u8, |signs, number| signs << 1 | number >> 7)
    };
    numbers.chunks(8).map(signs).collect()
}

/// Returns in how many signs two sketches of one length differ.
pub fn distance(one: &[u8], other: &[u8]) -> u32 {
    let ((rows, rest), (others, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let rows = rows.iter().zip(others).map(|(one, other)| {
        let (one, other) = (u64::from_le_bytes(*one), u64::from_le_bytes(*other));
        (one ^ other).count_ones()
    });
    let rest = rest.iter().zip(other_rest);
    let rest = rest.map(|(one, other)| (one ^ other).count_ones());
    rows.chain(rest).sum()
}

/// Returns how alike a packed vector and a whole one of length 1 are: 1 for the same direction. `None` if their lengths differ.
pub fn similarity(packed: &[u8], vector: &[f32]) -> Option<f32> {
    let (head, numbers) = packed.split_first_chunk::<HEAD>()?;
    if numbers.len() != vector.len() {
        return None;
    }
    // Eight sums side by side, which compilers turn into vector instructions.
    let mut sums = [0.0_f32; 8];
    let mut rows = vector.chunks_exact(8);
    let mut packed_rows = numbers.chunks_exact(8);
    for (row, packed) in rows.by_ref().zip(packed_rows.by_ref()) {
        for ((sum, number), packed) in sums.iter_mut().zip(row).zip(packed) {
            *sum += number * f32::from(i8::from_le_bytes([*packed]));
        }
    }
    let rest = rows.remainder().iter().zip(packed_rows.remainder());
    let rest: f32 = rest
        .map(|(number, packed)| number * f32::from(i8::from_le_bytes([*packed])))
        .sum();
    Some((sums.iter().sum::<f32>() + rest) * f32::from_le_bytes(*head))
}

/// Returns the vector with length 1; one without a length as it is.
pub fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    if let Some(length) = length(&vector) {
        for number in &mut vector {
            *number /= length;
        }
    }
    vector
}

fn length(vector: &[f32]) -> Option<f32> {
    let squares = vector.iter().map(|number| number * number);
    let length = squares.sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, without a source of them.
    fn vector(seed: u32, length: u32) -> Vec<f32> {
        let number = |at: u32| {
            let mixed = (seed.wrapping_mul(2_654_435_761) ^ at.wrapping_mul(40_503))
                .wrapping_mul(2_246_822_519);
            f32::from(u16::try_from(mixed >> 16).unwrap_or_default()) / 32_768.0 - 1.0
        };
        (0..length).map(number).collect()
    }

    #[test]
    fn packing_keeps_similarities_to_a_hundredth() {
        for length in [1, 7, 384, 1027] {
            for seed in 1..40 {
                let (one, other) = (vector(seed, length), normalized(vector(seed + 100, length)));
                let whole: f32 = normalized(one.clone())
                    .iter()
                    .zip(&other)
                    .map(|(one, other)| one * other)
                    .sum();
                let packed = similarity(&pack(&one), &other).unwrap();
                assert!(
                    (packed - whole).abs() < 0.01,
                    "{length} {seed}: {packed} {whole}"
                );
            }
        }
    }

    #[test]
    fn a_sketch_has_the_sign_of_each_number() {
        let signs = sketch(&pack(&[1.0, -1.0, 0.5, -0.1, 0.0, 2.0, -3.0, 1.0, -1.0]));
        assert_eq!(signs, [0b0101_0010, 0b1]);
        for length in [1, 8, 64, 100, 1027] {
            let (one, other) = (vector(1, length), vector(2, length));
            let differ = one.iter().zip(&other);
            let differ = differ
                .filter(|(one, other)| one.is_sign_negative() != other.is_sign_negative())
                .count();
            let (one, other) = (sketch(&pack(&one)), sketch(&pack(&other)));
            let found = distance(&one, &other) as usize;
            // Numbers near zero are packed as zero.
            assert!(
                found.abs_diff(differ) <= 1 + length as usize / 50,
                "{length}"
            );
            assert_eq!(distance(&one, &one), 0);
        }
        assert!(sketch(&pack(&[])).is_empty() && sketch(&[1]).is_empty());
    }

    #[test]
    fn odd_vectors_are_harmless() {
        assert_eq!(similarity(&pack(&[0.0; 3]), &[1.0, 0.0, 0.0]), Some(0.0));
        assert_eq!(
            similarity(&pack(&[f32::NAN; 3]), &[1.0, 0.0, 0.0]),
            Some(0.0)
        );
        assert_eq!(similarity(&pack(&[1.0, 0.0]), &[1.0]), None);
        assert_eq!(similarity(&pack(&[]), &[1.0]), None);
        assert_eq!(similarity(&[1, 2], &[]), None);
        assert!((similarity(&pack(&[3.0, 4.0]), &[0.6, 0.8]).unwrap() - 1.0).abs() < 0.01);
    }
}
