//! Where the numbers of a KV cache are in llama.cpp's file of a sequence, version 4:
//!
//! | part | bytes |
//! |---|---|
//! | start | magic, version, count of tokens, the tokens: 4 each |
//! | each cache | streams (4), cells (4), the cells, whether V is transposed (4), layers (4), two rotations (4 each), K and V of each layer |
//! | a cell | position (4), sequences (4), 8 more if a position has three parts, the sequence (4) |
//! | K of a layer, V | type (4), bytes of a row (8), a row per cell |
//! | V, transposed | type (4), bytes of a number (4), rows (4), a row per channel |
//!
//! A model with sliding windows has two caches. Other states, such as those of recurrent layers, come after them. The file says
//! of no part what it is, so a cache is recognized only if each of its fields is as it must be.

use crate::file::STATE_MAGIC;
use std::io::{self, Read, Seek, SeekFrom};

/// llama.cpp's `LLAMA_STATE_SEQ_VERSION`.
const VERSION: u32 = 4;
/// ggml's type of halves.
const HALF: u32 = 1;
/// Beyond those of any model.
const MOST_LAYERS: u32 = 1024;
const MOST_CHANNELS: u64 = 1 << 16;

/// Halves of one kind: rows of `width` channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    pub kind: Kind,
    /// Where they begin, in bytes.
    pub at: u64,
    pub width: usize,
    pub count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Keys,
    Values,
}

/// Returns the halves that are recognized in a state of so many bytes, in their order; none if its form is unknown.
///
/// # Errors
/// What reading it gives.
pub fn layout(state: &mut (impl Read + Seek), bytes: u64) -> io::Result<Vec<Rows>> {
    let mut reader = Reader {
        state,
        at: 0,
        bytes,
    };
    let mut all = Vec::new();
    if reader.tokens()?.is_none() {
        return Ok(all);
    }
    while let Some(rows) = reader.cache()? {
        all.extend(rows);
    }
    Ok(all)
}

struct Reader<'a, S> {
    state: &'a mut S,
    at: u64,
    bytes: u64,
}

/// `None`: the form is unknown.
type IfKnown<T> = io::Result<Option<T>>;

impl<S: Read + Seek> Reader<'_, S> {
    fn tokens(&mut self) -> IfKnown<()> {
        let Some([magic, version, count]) = self.words()? else {
            return Ok(None);
        };
        if magic != STATE_MAGIC || version != VERSION {
            return Ok(None);
        }
        Ok(self.skip(u64::from(count) * 4))
    }

    fn cache(&mut self) -> IfKnown<Vec<Rows>> {
        let Some([1, cells]) = self.words()? else {
            return Ok(None);
        };
        if cells == 0 {
            return Ok(Some(Vec::new()));
        }
        let Some(layers) = self.cells(cells)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for _ in 0..layers.count {
            let Some(rows) = self.rows(Kind::Keys, cells)? else {
                return Ok(None);
            };
            all.push(rows);
        }
        for _ in 0..layers.count {
            if layers.transposed {
                let Some(channels) = self.channels(cells)? else {
                    return Ok(None);
                };
                all.extend(channels);
            } else {
                let Some(rows) = self.rows(Kind::Values, cells)? else {
                    return Ok(None);
                };
                all.push(rows);
            }
        }
        Ok(Some(all))
    }

    /// Skips the cells, and reads what follows them.
    fn cells(&mut self, count: u32) -> IfKnown<Layers> {
        let start = self.at;
        for more in [0, 2] {
            self.at = start;
            let each = 3 + more;
            let bytes = u64::from(count) * 4 * each as u64;
            let Some(end) = self.at.checked_add(bytes).filter(|end| *end <= self.bytes) else {
                continue;
            };
            let mut cells = vec![0; bytes as usize];
            self.state.seek(SeekFrom::Start(start))?;
            self.state.read_exact(&mut cells)?;
            let (words, _) = cells.as_chunks::<4>();
            let of_one_sequence = words
                .chunks_exact(each)
                .all(|cell| u32::from_le_bytes(cell[1]) == 1);
            self.at = end;
            if of_one_sequence
                && let Some([transposed @ 0..=1, layers @ 1..=MOST_LAYERS, _, _]) = self.words()?
            {
                return Ok(Some(Layers {
                    transposed: transposed == 1,
                    count: layers,
                }));
            }
        }
        Ok(None)
    }

    fn rows(&mut self, kind: Kind, count: u32) -> IfKnown<Rows> {
        let Some([HALF, low, high]) = self.words()? else {
            return Ok(None);
        };
        let row = u64::from(low) | u64::from(high) << 32;
        if row == 0 || row % 2 != 0 || row / 2 > MOST_CHANNELS {
            return Ok(None);
        }
        let at = self.at;
        Ok(self.skip(row * u64::from(count)).map(|()| Rows {
            kind,
            at,
            width: (row / 2) as usize,
            count: count as usize,
        }))
    }

    /// Values by channel: the cells of a channel follow each other.
    fn channels(&mut self, cells: u32) -> IfKnown<Vec<Rows>> {
        let Some([HALF, 2, channels]) = self.words()? else {
            return Ok(None);
        };
        let (start, each) = (self.at, 2 * u64::from(cells));
        if channels == 0 || u64::from(channels) > MOST_CHANNELS {
            return Ok(None);
        }
        let channel = |channel: u32| Rows {
            kind: Kind::Values,
            at: start + u64::from(channel) * each,
            width: 1,
            count: cells as usize,
        };
        Ok(self
            .skip(each * u64::from(channels))
            .map(|()| (0..channels).map(channel).collect()))
    }

    fn words<const COUNT: usize>(&mut self) -> IfKnown<[u32; COUNT]> {
        let at = self.at;
        if self.skip(4 * COUNT as u64).is_none() {
            return Ok(None);
        }
        self.state.seek(SeekFrom::Start(at))?;
        let mut words = [0; COUNT];
        for word in &mut words {
            let mut bytes = [0; 4];
            self.state.read_exact(&mut bytes)?;
            *word = u32::from_le_bytes(bytes);
        }
        Ok(Some(words))
    }

    /// `None` if there are fewer bytes.
    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.at = self
            .at
            .checked_add(bytes)
            .filter(|end| *end <= self.bytes)?;
        Some(())
    }
}

struct Layers {
    transposed: bool,
    count: u32,
}
