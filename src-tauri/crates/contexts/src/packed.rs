//! The compressed form of a state: Zstandard, after the two bytes of each half float have been separated.
//!
//! The high bytes of neighboring floats (sign, exponent) are alike, their low bytes are nearly random. Apart, they take 84 % of
//! an f16 cache; together, 92 %. Quantized cells are not halves, and are compressed as they are.

use crate::{compact, layout::Rows};
use std::io::{self, BufRead, Cursor, Read, Seek, Write};

/// Bytes that are separated together.
const BLOCK: usize = 256 << 10;
/// The memory that unpacking takes, as a power of two: above what [`LEVEL`] needs. A file may ask for more than it is large.
const WINDOW: u32 = 23;
/// Higher levels take longer and save nothing: what is left is noise.
const LEVEL: i32 = 1;

pub(crate) fn pack(raw: &mut impl Read, out: impl Write, halves: bool) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, LEVEL)?;
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        let read = Read::by_ref(raw)
            .take(BLOCK as u64)
            .read_to_end(&mut block)?;
        if read == 0 {
            break;
        }
        if halves {
            block = separate_bytes(&block);
        }
        encoder.write_all(&block)?;
    }
    encoder.finish()?;
    Ok(())
}

/// Compresses the compact form of a state of so many bytes, in which these rows were recognized.
pub(crate) fn pack_compact(
    raw: &mut (impl Read + Seek),
    bytes: u64,
    recognized: &[Rows],
    out: impl Write,
) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, LEVEL)?;
    compact::encode(raw, bytes, recognized, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}

fn separate_bytes(block: &[u8]) -> Vec<u8> {
    let evens = block.iter().step_by(2);
    evens
        .chain(block.iter().skip(1).step_by(2))
        .copied()
        .collect()
}

fn join_bytes(block: &[u8]) -> Vec<u8> {
    let (evens, odds) = block.split_at(block.len().div_ceil(2));
    let pairs = evens.iter().zip(odds);
    let mut joined: Vec<u8> = pairs.flat_map(|(&even, &odd)| [even, odd]).collect();
    joined.extend(evens.get(odds.len()));
    joined
}

/// Reads what [`pack`] has written.
pub(crate) struct UnpackReader<R: BufRead> {
    decoder: zstd::Decoder<'static, R>,
    halves: bool,
    block: Cursor<Vec<u8>>,
}

impl<R: BufRead> UnpackReader<R> {
    pub(crate) fn new(packed: R, halves: bool) -> io::Result<Self> {
        let mut decoder = zstd::Decoder::with_buffer(packed)?;
        decoder.window_log_max(WINDOW)?;
        Ok(Self {
            decoder,
            halves,
            block: Cursor::default(),
        })
    }
}

impl<R: BufRead> Read for UnpackReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.block.fill_buf()?.is_empty() {
            let mut block = std::mem::take(&mut self.block).into_inner();
            block.clear();
            let mut next = (&mut self.decoder).take(BLOCK as u64);
            next.read_to_end(&mut block)?;
            if self.halves {
                block = join_bytes(&block);
            }
            self.block = Cursor::new(block);
        }
        self.block.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half floats between 1 and 4, as a KV cache has them.
    fn cells(count: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..count)
            .flat_map(|_| [next(), 0x3c | (next() & 7)])
            .collect()
    }

    fn packed(bytes: &[u8], halves: bool) -> Vec<u8> {
        let mut out = Vec::new();
        pack(&mut &*bytes, &mut out, halves).unwrap();
        out
    }

    #[test]
    fn what_is_packed_comes_back() {
        for length in [0, 1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
            let bytes = &cells(length / 2 + 1)[..length];
            for halves in [false, true] {
                let packed = packed(bytes, halves);
                let mut unpacked = Vec::new();
                let mut reader = UnpackReader::new(&*packed, halves).unwrap();
                reader.read_to_end(&mut unpacked).unwrap();
                assert!(unpacked == bytes, "{length} {halves}");
            }
        }
    }

    #[test]
    fn separated_halves_compress_better() {
        let cells = cells(200_000);
        let (apart, together) = (packed(&cells, true), packed(&cells, false));
        assert!(apart.len() < together.len());
        assert!(apart.len() * 4 < cells.len() * 3);
    }

    #[test]
    fn a_stream_that_asks_for_much_memory_is_an_error() {
        let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(&cells(1000)).unwrap();
        let bytes = encoder.finish().unwrap();
        let mut reader = UnpackReader::new(&*bytes, true).unwrap();
        reader.read_to_end(&mut Vec::new()).unwrap_err();
    }

    #[test]
    fn a_damaged_stream_is_an_error() {
        let mut bytes = packed(&cells(1000), true);
        bytes.truncate(bytes.len() - 3);
        let mut reader = UnpackReader::new(&*bytes, true).unwrap();
        reader.read_to_end(&mut Vec::new()).unwrap_err();
    }
}
