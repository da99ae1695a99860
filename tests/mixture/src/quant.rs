//! Quants: the sizes of their blocks, and random blocks.

use crate::numbers::Stream;
use anyhow::Result;

/// How a tensor's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quant {
    /// ggml's number.
    pub(crate) number: u32,
    /// Elements in a block.
    pub(crate) elements: usize,
    /// Bytes of a block.
    pub(crate) bytes: usize,
    /// The root of the mean square of the elements of random blocks whose scale is one.
    size: f32,
}

const fn quant(number: u32, elements: usize, bytes: usize, size: f32) -> Quant {
    Quant {
        number,
        elements,
        bytes,
        size,
    }
}

pub(crate) const F32: Quant = quant(0, 1, 4, 0.577);
pub(crate) const F16: Quant = quant(1, 1, 2, 0.577);
pub(crate) const Q4_1: Quant = quant(3, 32, 20, 4.61);
pub(crate) const Q8_0: Quant = quant(8, 32, 34, 73.9);
pub(crate) const Q4_K: Quant = quant(12, 256, 144, 168.0);
pub(crate) const Q6_K: Quant = quant(14, 256, 210, 1370.0);
pub(crate) const IQ4_XS: Quant = quant(23, 256, 136, 1250.0);
pub(crate) const MXFP4: Quant = quant(39, 32, 17, 4.63);
pub(crate) const BY_NUMBER: [Quant; 8] = [F32, F16, Q4_1, Q8_0, Q4_K, Q6_K, IQ4_XS, MXFP4];

impl Quant {
    /// The bytes of a tensor.
    pub(crate) fn bytes_of(self, shape: &[u64]) -> Result<usize> {
        let elements = usize::try_from(shape.iter().product::<u64>())?;
        Ok(elements / self.elements * self.bytes)
    }

    /// Random blocks, of the layouts in ggml-common.h, whose elements have a mean of about zero.
    ///
    /// # Arguments
    /// `size` is the root of the mean square of the elements.
    pub(crate) fn blocks(self, count: usize, size: f32, stream: &mut Stream) -> Vec<u8> {
        let mut data = Vec::with_capacity(count * self.bytes);
        for _ in 0..count {
            // Blocks whose scales are equal would hide one that is read from the wrong place.
            let scale = size / self.size * (1.0 + 0.25 * stream.signed());
            match self {
                F32 => data.extend((size / self.size * stream.signed()).to_le_bytes()),
                F16 => data.extend(to_half(size / self.size * stream.signed())),
                Q4_1 => {
                    // The middle of the quants from 0 to 15 is zero.
                    data.extend([to_half(scale), to_half(-7.5 * scale)].as_flattened());
                    stream.append(16, &mut data);
                }
                Q4_K => {
                    // Eight scales and minima of 6 bits. A minimum that equals its scale keeps the mean at zero.
                    data.extend([to_half(scale), to_half(7.5 * scale)].as_flattened());
                    let low: [u8; 4] = stream.bytes();
                    let high: [u8; 4] = stream.bytes();
                    data.extend([low, low, high.map(|bits| (bits & 15) * 17)].as_flattened());
                    stream.append(128, &mut data);
                }
                Q6_K => {
                    stream.append(208, &mut data);
                    data.extend(to_half(scale));
                }
                MXFP4 => {
                    // The scale is a power of two, with its exponent in a byte.
                    let [exponent, ..] = (scale.to_bits() >> 23).to_le_bytes();
                    let [odd] = stream.bytes::<1>().map(|byte| byte & 1);
                    data.push(exponent + odd);
                    stream.append(16, &mut data);
                }
                // A scale and random bytes.
                _ => {
                    data.extend(to_half(scale));
                    stream.append(self.bytes - 2, &mut data);
                }
            }
        }
        data
    }
}

/// A number of 16 bits, rounded toward zero. Its exponent must fit.
fn to_half(number: f32) -> [u8; 2] {
    let bits = number.to_bits();
    let (sign, exponent) = (bits >> 16 & 0x8000, bits >> 23 & 0xff);
    let fraction = bits & 0x007f_ffff;
    let half = match exponent {
        113.. => (exponent - 112) << 10 | fraction >> 13,
        // Below 2^-14, where a half has no leading one.
        103..113 => (fraction | 0x0080_0000) >> (126 - exponent),
        _ => 0,
    };
    let [low, high, ..] = (sign | half).to_le_bytes();
    [low, high]
}
