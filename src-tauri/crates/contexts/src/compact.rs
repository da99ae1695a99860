//! The compact form of a state: halves have 4 bits each, and the rest is as it was.
//!
//! A channel's numbers in 64 successive rows are `low + code × step`, with the `low` and `step` that make the squared error
//! least. Channels of keys differ much more from each other than a channel's numbers do, so that this errs less than blocks
//! along a row, as llama.cpp's `q4_0` has them. The first rows, which models attend to most, are exact.
//!
//! The form is a sequence of parts that says nothing of a model:
//!
//! | part | bytes |
//! |---|---|
//! | exact | 0, length (u64), the bytes |
//! | coded | 1, width (u32), groups (u32); each group has `low` and `step` of every channel (halves), then the codes of every channel, two to a byte |

use crate::{half, layout::Rows};
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

/// Rows that are coded together.
const GROUP: usize = 64;
/// The most exact rows at the start are this many and a group, less one.
const EXACT_ROWS: usize = 4;
const MOST_CODE: f32 = 15.0;
const EXACT: u8 = 0;
const CODED: u8 = 1;
/// Wider rows than any model's are damage.
const WIDEST: u32 = 1 << 16;
/// Channels that are fitted at a time: as many as a processor's vectors have lanes, or a few times that.
const LANES: usize = 16;
/// Adding and subtracting it rounds a small number: 1.5 × 2^23.
const ROUNDING: f32 = 12_582_912.0;

type Lane = [f32; LANES];
type Block = [Lane; GROUP];

/// How many groups there are in so many rows, and the exact rows before them.
fn groups(rows: usize) -> (usize, usize) {
    let groups = rows.saturating_sub(EXACT_ROWS) / GROUP;
    (groups, rows - groups * GROUP)
}

/// Whether any of these rows would be coded.
pub(crate) fn is_worth(layout: &[Rows]) -> bool {
    layout.iter().any(|rows| groups(rows.count).0 > 0)
}

/// Writes the compact form of a state of so many bytes.
pub(crate) fn encode(
    state: &mut (impl Read + Seek),
    bytes: u64,
    layout: &[Rows],
    out: &mut impl Write,
) -> io::Result<()> {
    state.seek(SeekFrom::Start(0))?;
    let mut at = 0;
    for rows in layout {
        let (groups, before) = groups(rows.count);
        let row = 2 * rows.width as u64;
        if groups == 0 {
            continue;
        }
        let start = rows.at + before as u64 * row;
        copy_exact(state, out, start - at)?;
        out.write_all(&[CODED])?;
        for count in [rows.width, groups] {
            let count = u32::try_from(count).map_err(io::Error::other)?;
            out.write_all(&count.to_le_bytes())?;
        }
        let mut halves = vec![0; GROUP * 2 * rows.width];
        for _ in 0..groups {
            state.read_exact(&mut halves)?;
            out.write_all(&encode_group(&halves, rows.width))?;
        }
        at = start + (groups * GROUP) as u64 * row;
    }
    copy_exact(state, out, bytes - at)
}

fn copy_exact(state: &mut impl Read, out: &mut impl Write, bytes: u64) -> io::Result<()> {
    out.write_all(&[EXACT])?;
    out.write_all(&bytes.to_le_bytes())?;
    if io::copy(&mut state.take(bytes), out)? != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn coded_bytes(width: usize) -> usize {
    width * (2 + 2 + GROUP / 2)
}

fn encode_group(halves: &[u8], width: usize) -> Vec<u8> {
    let mut group = vec![0; coded_bytes(width)];
    let (lows, rest) = group.split_at_mut(2 * width);
    let (steps, codes) = rest.split_at_mut(2 * width);
    for first in (0..width).step_by(LANES) {
        let lanes = LANES.min(width - first);
        let block = read_block(halves, width, first, lanes);
        let fit = fit(&block);
        let code = fit.code(&block);
        for lane in 0..lanes {
            let at = first + lane;
            let half = |float| half::from_float(float).to_le_bytes();
            lows[2 * at..2 * at + 2].copy_from_slice(&half(fit.low[lane]));
            steps[2 * at..2 * at + 2].copy_from_slice(&half(fit.step[lane]));
            let codes = &mut codes[at * GROUP / 2..(at + 1) * GROUP / 2];
            for (byte, pair) in codes.iter_mut().zip(code.as_chunks::<2>().0) {
                *byte = pair[0][lane] as u8 | (pair[1][lane] as u8) << 4;
            }
        }
    }
    group
}

fn read_block(halves: &[u8], width: usize, first: usize, lanes: usize) -> Block {
    let mut block = [[0.0; LANES]; GROUP];
    for (row, lane) in halves.chunks_exact(2 * width).zip(&mut block) {
        let row = row[2 * first..2 * (first + lanes)].as_chunks::<2>().0;
        for (float, half) in lane.iter_mut().zip(row) {
            *float = half::to_float(u16::from_le_bytes(*half));
        }
    }
    block
}

#[derive(Debug, Clone, Copy)]
struct Fit {
    low: Lane,
    step: Lane,
}

impl Fit {
    /// As it can be written.
    fn rounded(mut self) -> Self {
        for float in self.low.iter_mut().chain(&mut self.step) {
            *float = half::to_float(half::from_float(*float));
        }
        self
    }

    fn per_step(&self) -> Lane {
        self.step
            .map(|step| if step > 0.0 { 1.0 / step } else { 0.0 })
    }

    fn code(&self, block: &Block) -> Block {
        let per_step = self.per_step();
        let mut code = *block;
        for row in &mut code {
            for lane in 0..LANES {
                let code = (row[lane] - self.low[lane]) * per_step[lane];
                // Not `round`, which is a call for each number on older processors.
                row[lane] = code.clamp(0.0, MOST_CODE) + ROUNDING - ROUNDING;
            }
        }
        code
    }
}

/// Finds the line of codes with about the least squared error: alternately the nearest codes, and the best line for them, from
/// the whole range and from one that leaves the ends out.
fn fit(block: &Block) -> Fit {
    let (mut least, mut most) = (block[0], block[0]);
    let mut sum = [0.0; LANES];
    for row in block {
        for lane in 0..LANES {
            least[lane] = least[lane].min(row[lane]);
            most[lane] = most[lane].max(row[lane]);
            sum[lane] += row[lane];
        }
    }
    let mut best = Fit {
        low: least,
        step: [0.0; LANES],
    };
    let mut best_error = [f32::INFINITY; LANES];
    for share in [1.0, 0.85] {
        let mut next = best;
        for lane in 0..LANES {
            let range = (most[lane] - least[lane]) * share;
            next.low[lane] = (most[lane] + least[lane] - range) / 2.0;
            next.step[lane] = range / MOST_CODE;
        }
        for _ in 0..3 {
            let tried = next.rounded();
            let codes = tried.code(block);
            let [mut error, mut code, mut squared, mut product] = [[0.0; LANES]; 4];
            for (row, codes) in block.iter().zip(&codes) {
                for lane in 0..LANES {
                    let missed = tried.low[lane] + codes[lane] * tried.step[lane] - row[lane];
                    error[lane] += missed * missed;
                    code[lane] += codes[lane];
                    squared[lane] += codes[lane] * codes[lane];
                    product[lane] += codes[lane] * (row[lane] - least[lane]);
                }
            }
            for lane in 0..LANES {
                if error[lane] < best_error[lane] {
                    best_error[lane] = error[lane];
                    best.low[lane] = tried.low[lane];
                    best.step[lane] = tried.step[lane];
                }
                let (rows, sum) = (GROUP as f32, sum[lane] - GROUP as f32 * least[lane]);
                let spread = rows * squared[lane] - code[lane] * code[lane];
                if spread > 0.0 {
                    let step = (rows * product[lane] - code[lane] * sum) / spread;
                    next.step[lane] = step;
                    next.low[lane] = least[lane] + (sum - step * code[lane]) / rows;
                }
            }
        }
    }
    best
}

/// Reads a state from its compact form.
#[derive(Debug)]
pub(crate) struct CompactReader<R> {
    form: R,
    left: PartRest,
    rows: Cursor<Vec<u8>>,
}

/// What is left of a part.
#[derive(Debug, Clone, Copy)]
enum PartRest {
    Exact(u64),
    Groups { width: usize, count: u32 },
}

impl<R: Read> CompactReader<R> {
    pub(crate) fn new(form: R) -> Self {
        Self {
            form,
            left: PartRest::Exact(0),
            rows: Cursor::default(),
        }
    }

    /// Reads on to a part that has something; `false` at the end.
    fn next(&mut self) -> io::Result<bool> {
        while let PartRest::Exact(0) | PartRest::Groups { count: 0, .. } = self.left {
            let mut tag = [0];
            if self.form.read(&mut tag)? == 0 {
                return Ok(false);
            }
            let mut counts = [0; 8];
            self.form.read_exact(&mut counts)?;
            let [a, b, c, d, e, f, g, h] = counts;
            let (width, count) = (
                u32::from_le_bytes([a, b, c, d]),
                u32::from_le_bytes([e, f, g, h]),
            );
            self.left = match tag[0] {
                EXACT => PartRest::Exact(u64::from_le_bytes(counts)),
                CODED if (1..=WIDEST).contains(&width) => PartRest::Groups {
                    width: width as usize,
                    count,
                },
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
        }
        Ok(true)
    }
}

impl<R: Read> Read for CompactReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.rows.read(into)?;
        if count > 0 || into.is_empty() || !self.next()? {
            return Ok(count);
        }
        match &mut self.left {
            PartRest::Exact(left) => {
                let read = Read::by_ref(&mut self.form).take(*left).read(into)?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                *left -= read as u64;
                Ok(read)
            }
            PartRest::Groups { width, count } => {
                let width = *width;
                *count -= 1;
                let mut group = vec![0; coded_bytes(width)];
                self.form.read_exact(&mut group)?;
                self.rows = Cursor::new(decode_group(&group, width));
                self.rows.read(into)
            }
        }
    }
}

fn decode_group(group: &[u8], width: usize) -> Vec<u8> {
    let (lows, rest) = group.split_at(2 * width);
    let (steps, codes) = rest.split_at(2 * width);
    let float = |halves: &[u8], channel: usize| {
        half::to_float(u16::from_le_bytes([
            halves[2 * channel],
            halves[2 * channel + 1],
        ]))
    };
    let mut rows = vec![0; GROUP * 2 * width];
    for (channel, codes) in codes.chunks_exact(GROUP / 2).enumerate() {
        let (low, step) = (float(lows, channel), float(steps, channel));
        let numbers: [[u8; 2]; 16] =
            std::array::from_fn(|code| half::from_float(low + code as f32 * step).to_le_bytes());
        for (pair, byte) in codes.iter().enumerate() {
            for (row, code) in [(2 * pair, byte & 15), (2 * pair + 1, byte >> 4)] {
                let at = 2 * (row * width + channel);
                rows[at..at + 2].copy_from_slice(&numbers[usize::from(code)]);
            }
        }
    }
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout::{Kind, layout};
    use std::io::Cursor;

    const CELLS: usize = 200;
    const WIDTH: usize = 40;

    /// Numbers around a mean of each channel, as keys are.
    fn number(row: usize, channel: usize, seed: u32) -> f32 {
        let hash = (row * WIDTH + channel) as u32 ^ seed;
        let noise = hash.wrapping_mul(2_654_435_761) >> 8;
        let noise = noise as f32 / (1 << 24) as f32 - 0.5;
        (channel % 7) as f32 * 3.0 - 9.0 + noise
    }

    fn halves(rows: usize, width: usize, seed: u32) -> Vec<u8> {
        (0..rows * width)
            .flat_map(|at| half::from_float(number(at / width, at % width, seed)).to_le_bytes())
            .collect()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// A state as llama.cpp writes it: positions of one or three parts, two layers, and something that is no cache.
    pub(crate) fn state(parts: u32, transposed: bool) -> Vec<u8> {
        let mut state = words(&[0x6767_7371, 4, 3, 7, 8, 9, 1, CELLS as u32]);
        for cell in 0..CELLS as u32 {
            state.extend(words(&[cell, 1]));
            state.extend(words(&[cell, cell][..if parts == 3 { 2 } else { 0 }]));
            state.extend(words(&[0]));
        }
        state.extend(words(&[u32::from(transposed), 2, 0, 0]));
        let row = 2 * WIDTH as u32;
        for layer in 0..2 {
            state.extend(words(&[1, row, 0]));
            state.extend(halves(CELLS, WIDTH, layer));
        }
        for layer in 2..4 {
            if transposed {
                state.extend(words(&[1, 2, WIDTH as u32]));
                state.extend(halves(WIDTH, CELLS, layer));
            } else {
                state.extend(words(&[1, row, 0]));
                state.extend(halves(CELLS, WIDTH, layer));
            }
        }
        state.extend([0xab; 77]);
        state
    }

    fn recognized(state: &[u8]) -> Vec<Rows> {
        layout(&mut Cursor::new(state), state.len() as u64).unwrap()
    }

    fn encoded(state: &[u8]) -> Vec<u8> {
        let mut form = Vec::new();
        let bytes = state.len() as u64;
        let rows = recognized(state);
        encode(&mut Cursor::new(state), bytes, &rows, &mut form).unwrap();
        form
    }

    fn back(form: &[u8]) -> io::Result<Vec<u8>> {
        let mut state = Vec::new();
        CompactReader::new(form).read_to_end(&mut state)?;
        Ok(state)
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        let halves = bytes.as_chunks::<2>().0.iter();
        halves
            .map(|half| half::to_float(u16::from_le_bytes(*half)))
            .collect()
    }

    #[test]
    fn numbers_come_back_nearly_and_all_else_exactly() {
        for (parts, transposed) in [(1, false), (3, false), (1, true)] {
            let state = state(parts, transposed);
            let rows = recognized(&state);
            assert_eq!(rows.len(), if transposed { 2 + 2 * WIDTH } else { 4 });
            let form = encoded(&state);
            assert!(form.len() * 2 < state.len(), "{}", form.len());
            let back = back(&form).unwrap();
            assert_eq!(back.len(), state.len());
            let mut exact_from = 0;
            for Rows {
                at, width, count, ..
            } in rows
            {
                let at = at as usize;
                let (groups, before) = groups(count);
                assert_eq!((groups, before), (3, 8));
                let start = at + 2 * width * before;
                assert!(back[exact_from..start] == state[exact_from..start]);
                exact_from = at + 2 * width * count;
                let [was, is] = [&state, &back].map(|state| floats(&state[start..exact_from]));
                // A step and a half: of a range of 1, or of the range of all means.
                let most = if width == 1 { 1.9 } else { 0.1 };
                for (was, is) in was.iter().zip(&is) {
                    assert!((was - is).abs() <= most, "{was} {is}");
                }
            }
            assert!(back[exact_from..] == state[exact_from..]);
        }
    }

    /// The middle of each of 16 steps is at most half a step away.
    #[test]
    fn the_error_is_less_than_that_of_equal_steps() {
        let halves = halves(GROUP, WIDTH, 5);
        let rows = decode_group(&encode_group(&halves, WIDTH), WIDTH);
        let (was, is) = (floats(&halves), floats(&rows));
        let squares = was.iter().zip(&is).map(|(a, b)| (a - b) * (a - b));
        let error = squares.sum::<f32>() / was.len() as f32;
        let step = 1.0 / 15.0;
        assert!(error < step * step / 12.0, "{error}");
    }

    #[test]
    fn equal_and_huge_numbers_stay() {
        for number in [0.0, -3.5, 65_504.0, 6e-8] {
            let halves = half::from_float(number).to_le_bytes().repeat(GROUP);
            assert!(
                decode_group(&encode_group(&halves, 1), 1) == halves,
                "{number} did not come back"
            );
        }
    }

    #[test]
    fn an_unknown_form_is_not_taken_apart() {
        let state = state(1, false);
        for (word, other) in [
            (0, 1),       // magic
            (1, 5),       // version
            (2, 1 << 30), // tokens
            (6, 2),       // streams
            (7, 1 << 30), // cells
            (9, 2),       // sequences
        ] {
            let mut state = state.clone();
            state[4 * word..4 * word + 4].copy_from_slice(&u32::to_le_bytes(other));
            assert_eq!(recognized(&state), [], "{word}");
        }
        let first = recognized(&state)[0];
        assert_eq!(first.kind, Kind::Keys);
        // Another type of numbers, an odd row.
        for (before, other) in [(12, 8), (8, 81)] {
            let mut state = state.clone();
            state[first.at as usize - before] = other;
            assert_eq!(recognized(&state), []);
            assert!(!is_worth(&recognized(&state)));
            assert!(back(&encoded(&state)).unwrap() == state);
        }
        for length in (0..state.len()).step_by(997) {
            recognized(&state[..length]);
        }
    }

    #[test]
    fn a_damaged_form_is_an_error() {
        let form = encoded(&state(1, false));
        back(&form[..form.len() - 1]).unwrap_err();
        for damage in [7, CODED] {
            let mut form = form.clone();
            form[0] = damage;
            back(&form).unwrap_err();
        }
    }
}
