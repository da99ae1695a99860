//! How streams are packed (7.4).

use super::lexer::digit;
use flate2::read::{DeflateDecoder, ZlibDecoder};
use std::io::Read;

/// The most bytes that one stream unpacks to: far more than the text of any page.
const LONGEST: usize = 64 << 20;

pub(super) enum Undecoded {
    TooLarge,
    /// Packed in a way that only pictures are.
    Picture,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Predictor {
    pub(super) kind: usize,
    pub(super) colors: usize,
    pub(super) bits: usize,
    pub(super) columns: usize,
}

pub(super) fn decode(
    name: &str,
    bytes: &[u8],
    predictor: Predictor,
    early: bool,
) -> Result<Vec<u8>, Undecoded> {
    match name {
        "FlateDecode" | "Fl" => Ok(predictor.undo(flate(bytes)?)),
        "LZWDecode" | "LZW" => Ok(predictor.undo(lzw(bytes, early)?)),
        "ASCIIHexDecode" | "AHx" => Ok(hexadecimal(bytes)),
        "ASCII85Decode" | "A85" => Ok(base85(bytes)),
        "RunLengthDecode" | "RL" => run_length(bytes),
        _ => Err(Undecoded::Picture),
    }
}

/// What a damaged stream has up to the damage is kept.
fn flate(bytes: &[u8]) -> Result<Vec<u8>, Undecoded> {
    let most = LONGEST as u64 + 1;
    let mut unpacked = Vec::new();
    let ended = ZlibDecoder::new(bytes)
        .take(most)
        .read_to_end(&mut unpacked);
    if ended.is_err() && unpacked.is_empty() {
        // Without its first two bytes, a stream with a wrong header is one without.
        let raw = bytes.get(2..).unwrap_or_default();
        let _ = DeflateDecoder::new(raw)
            .take(most)
            .read_to_end(&mut unpacked);
    }
    match unpacked.len() > LONGEST {
        true => Err(Undecoded::TooLarge),
        false => Ok(unpacked),
    }
}

fn lzw(bytes: &[u8], early: bool) -> Result<Vec<u8>, Undecoded> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    const FIRST: usize = 258;
    let mut unpacked: Vec<u8> = Vec::new();
    // Each entry is a part of what is unpacked already: its start and length.
    let mut table: Vec<(usize, usize)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut width, mut bits, mut buffer) = (9, 0, 0_usize);
    for &byte in bytes {
        buffer = (buffer << 8 | usize::from(byte)) & 0xff_ffff;
        bits += 8;
        if bits < width {
            continue;
        }
        bits -= width;
        let code = (buffer >> bits) & ((1 << width) - 1);
        if code == END {
            break;
        }
        if code == CLEAR {
            table.clear();
            (width, last) = (9, None);
            continue;
        }
        let start = unpacked.len();
        if let Ok(byte) = u8::try_from(code) {
            unpacked.push(byte);
        } else {
            match (table.get(code - FIRST), last) {
                (Some(&(at, length)), _) => unpacked.extend_from_within(at..at + length),
                (None, Some((at, length))) if code - FIRST == table.len() => {
                    unpacked.extend_from_within(at..at + length);
                    unpacked.extend_from_within(at..=at);
                }
                _ => break,
            }
        }
        // The letter behind the last one is the first of this one.
        if let Some((at, length)) = last
            && table.len() < 4096 - FIRST
        {
            table.push((at, length + 1));
        }
        last = Some((start, unpacked.len() - start));
        width = match table.len() + FIRST + usize::from(early) {
            0..=511 => 9,
            512..=1023 => 10,
            1024..=2047 => 11,
            _ => 12,
        };
        if unpacked.len() > LONGEST {
            return Err(Undecoded::TooLarge);
        }
    }
    Ok(unpacked)
}

/// To a `>` or the end. Other bytes are left out, and a single digit at the end has a 0 behind it.
pub(super) fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digits = bytes.iter().take_while(|&&byte| byte != b'>');
    let digits: Vec<u8> = digits.filter_map(|&byte| digit(byte)).collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or_default())
        .collect()
}

fn base85(bytes: &[u8]) -> Vec<u8> {
    let (mut decoded, mut group) = (Vec::new(), Vec::new());
    let value = |group: &[u8]| {
        let digits = group.iter().chain(std::iter::repeat(&84)).take(5);
        digits.fold(0_u32, |sum, &digit| {
            sum.wrapping_mul(85).wrapping_add(u32::from(digit))
        })
    };
    for &byte in bytes {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => decoded.extend([0; 4]),
            b'!'..=b'u' => {
                group.push(byte - b'!');
                if group.len() == 5 {
                    decoded.extend(value(&group).to_be_bytes());
                    group.clear();
                }
            }
            _ => {}
        }
    }
    if group.len() > 1 {
        decoded.extend(&value(&group).to_be_bytes()[..group.len() - 1]);
    }
    decoded
}

fn run_length(bytes: &[u8]) -> Result<Vec<u8>, Undecoded> {
    let (mut unpacked, mut at) = (Vec::new(), 0);
    while let Some(&length) = bytes.get(at) {
        match length {
            128 => break,
            0..=127 => {
                let end = (at + 2 + usize::from(length)).min(bytes.len());
                unpacked.extend_from_slice(&bytes[at + 1..end]);
                at = end;
            }
            _ => {
                let byte = bytes.get(at + 1).copied().unwrap_or_default();
                unpacked.extend(std::iter::repeat_n(byte, 257 - usize::from(length)));
                at += 2;
            }
        }
        if unpacked.len() > LONGEST {
            return Err(Undecoded::TooLarge);
        }
    }
    Ok(unpacked)
}

impl Predictor {
    /// PNG's predictors; of TIFF's, only that of whole bytes.
    fn undo(self, mut bytes: Vec<u8>) -> Vec<u8> {
        let bits = self.colors.clamp(1, 64) * self.bits.clamp(1, 32);
        let pixel = bits.div_ceil(8);
        let row = bits.saturating_mul(self.columns).div_ceil(8).max(1);
        match self.kind {
            2 if self.bits == 8 => {
                for row in bytes.chunks_mut(row) {
                    for at in pixel..row.len() {
                        row[at] = row[at].wrapping_add(row[at - pixel]);
                    }
                }
                bytes
            }
            10..=15 => png(&bytes, row, pixel),
            _ => bytes,
        }
    }
}

fn png(bytes: &[u8], row: usize, pixel: usize) -> Vec<u8> {
    let mut decoded: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0; row.min(bytes.len())];
    for line in bytes.chunks(row.saturating_add(1)) {
        let (kind, line) = (line[0], &line[1..]);
        let mut current = vec![0; above.len()];
        for (at, &byte) in line.iter().enumerate() {
            let before = at.checked_sub(pixel);
            let left = before.map_or(0, |at| current[at]);
            let corner = before.map_or(0, |at| above[at]);
            let up = above[at];
            let predicted = match kind {
                1 => left,
                2 => up,
                3 => u8::midpoint(left, up),
                4 => paeth(left, up, corner),
                _ => 0,
            };
            current[at] = byte.wrapping_add(predicted);
        }
        decoded.extend_from_slice(&current[..line.len()]);
        above = current;
    }
    decoded
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (a, b, c) = (i32::from(left), i32::from(up), i32::from(corner));
    let guess = a + b - c;
    let (to_a, to_b, to_c) = ((guess - a).abs(), (guess - b).abs(), (guess - c).abs());
    if to_a <= to_b && to_a <= to_c {
        left
    } else if to_b <= to_c {
        up
    } else {
        corner
    }
}
