//! Half floats, as KV caches have them.

/// 2^-24: the smallest number that a half has.
const SMALLEST: f32 = 1.0 / 16_777_216.0;
/// 2^-14: smaller ones are multiples of the smallest.
const SMALLEST_NORMAL: f32 = 1.0 / 16_384.0;
const LARGEST: f32 = 65_504.0;
/// Between the exponents of both formats.
const EXPONENTS: u32 = 127 - 15;

/// Returns the number of a half float's bits.
pub fn to_float(half: u16) -> f32 {
    let (exponent, fraction) = ((half >> 10) & 31, half & 0x3ff);
    let magnitude = match exponent {
        0 => f32::from(fraction) * SMALLEST,
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((u32::from(half & 0x7fff) << 13) + (EXPONENTS << 23)),
    };
    f32::from_bits(magnitude.to_bits() | u32::from(half & 0x8000) << 16)
}

/// Returns the bits of the nearest half float; of the largest for what is larger.
pub fn from_float(float: f32) -> u16 {
    let bits = float.to_bits();
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, float.abs());
    let half = if magnitude.is_nan() {
        0x7e00
    } else if magnitude < SMALLEST_NORMAL {
        (magnitude / SMALLEST).round_ties_even() as u16
    } else {
        let bits = magnitude.min(LARGEST).to_bits();
        let nearest = bits + 0xfff + ((bits >> 13) & 1);
        ((nearest >> 13) - (EXPONENTS << 10)) as u16
    };
    sign | half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_comes_back() {
        for half in 0..=u16::MAX {
            let float = to_float(half);
            if float.is_finite() {
                assert_eq!(from_float(float), half, "{half:#x}");
            }
        }
        assert!(to_float(from_float(f32::NAN)).is_nan());
    }

    #[test]
    fn others_are_rounded_to_the_nearest() {
        for (float, nearest) in [
            (1.000_4, 1.0),
            (1.000_5, 1.000_976_6),
            (-1e9, -65_504.0),
            (f32::INFINITY, 65_504.0),
            (3e-8, 5.960_464_5e-8),
            (1e-9, 0.0),
            (6.103e-5, 6.103_515_6e-5),
        ] {
            assert_eq!(to_float(from_float(float)), nearest, "{float}");
        }
    }
}
