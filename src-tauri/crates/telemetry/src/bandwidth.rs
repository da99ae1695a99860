//! The bandwidth of this machine's memory and of a disk, which limits decoding.
//!
//! Each measurement takes a few hundred milliseconds of all cores but one, or of the disk: measure once, in a blocking
//! context, and keep the result.

use crate::platform;
use std::{
    hint::black_box,
    io,
    num::NonZero,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Read per round by all threads together: more than any supported machine has cache.
const MEMORY_BYTES: usize = 256 << 20;
const ROUNDS: usize = 9;
/// About a matrix of an expert.
const BLOCK: usize = 512 << 10;
/// Reads at once. One alone leaves a good part of a fast disk idle.
const DEPTHS: [usize; 4] = [1, 4, 8, 16];
/// At each depth.
const BLOCKS: u64 = 512;
/// No further round, and no read of a depth, starts after this time.
const ENOUGH: Duration = Duration::from_millis(300);
const ENOUGH_AT_A_DEPTH: Duration = Duration::from_millis(150);
/// The alignment of buffers for uncached reads; no disk has larger blocks.
const ALIGNMENT: usize = 16 << 10;

/// Measures the bytes per second at which all cores but one read memory, as the median of several rounds.
#[must_use]
pub fn memory() -> u64 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    median_rate(
        MEMORY_BYTES,
        read_memory(cores.saturating_sub(1).max(1), MEMORY_BYTES),
    )
}

/// Measures the bytes per second at which blocks of `file` are read in random order without the page cache, with as many reads
/// at once as suit the disk.
///
/// On macOS, data already in the cache is read from there, so a file that was just written gives too high a rate.
///
/// # Errors
/// The error of opening or reading the file; [`io::ErrorKind::InvalidInput`] if it has less than 512 KiB.
pub fn disk(file: &Path) -> io::Result<u64> {
    let mut best = 0;
    for (depth, turn) in DEPTHS.into_iter().zip(0..) {
        let read = read_blocks(file, depth, turn)?;
        // A use of what was read.
        black_box(read.sum);
        best = best.max(read.rate());
    }
    Ok(best)
}

/// Returns the time of each round, without the first, which warms up.
fn read_memory(threads: usize, bytes: usize) -> Vec<Duration> {
    let words = bytes / size_of::<u64>() / threads;
    let (step, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let mut times = Vec::new();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Written, so that its pages are memory of its own and not one page of zeroes.
                let buffer: Vec<u64> = (0..words as u64).collect();
                loop {
                    step.wait();
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    black_box(sum(black_box(&buffer)));
                    step.wait();
                }
            });
        }
        let began = Instant::now();
        for round in 0..=ROUNDS {
            if times.len() >= 3 && began.elapsed() > ENOUGH {
                break;
            }
            step.wait();
            let start = Instant::now();
            step.wait();
            if round > 0 {
                times.push(start.elapsed());
            }
        }
        over.store(true, Ordering::Release);
        step.wait();
    });
    times
}

fn sum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
}

/// What was read in how long.
#[derive(Debug)]
struct ReadBlocks {
    count: u64,
    took: Duration,
    /// The sum of their first bytes.
    sum: u64,
}

impl ReadBlocks {
    fn rate(&self) -> u64 {
        let bytes = u128::from(self.count) * BLOCK as u128;
        let nanos = self.took.as_nanos().max(1);
        u64::try_from(bytes * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }
}

/// Reads blocks with `depth` reads at once; other ones in each turn, while there are any.
fn read_blocks(path: &Path, depth: usize, turn: u64) -> io::Result<ReadBlocks> {
    let file = platform::open_uncached(path)?;
    let blocks = file.metadata()?.len() / BLOCK as u64;
    if blocks == 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is too small to measure a disk by", path.display()),
        ));
    }
    let most = BLOCKS.min(blocks);
    let next = AtomicU64::new(0);
    let began = Instant::now();
    let read = || -> io::Result<(u64, u64)> {
        let mut buffer = vec![0_u8; BLOCK + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let buffer = &mut buffer[start..start + BLOCK];
        let (mut count, mut sum) = (0, 0_u64);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // Some at any rate, however slow the disk is.
            if number >= most || (number >= 4 && began.elapsed() > ENOUGH_AT_A_DEPTH) {
                return Ok((count, sum));
            }
            let at = scattered_block(turn * most + number, blocks) * BLOCK as u64;
            file.read_exact_at(buffer, at)?;
            count += 1;
            sum = buffer.first().map_or(sum, |byte| sum + u64::from(*byte));
        }
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..depth).map(|_| scope.spawn(read)).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended
            .map(|ended| ended.unwrap_or_else(|_| Err(io::Error::other("a reading thread died"))))
            .collect::<io::Result<_>>()
    })?;
    Ok(ReadBlocks {
        count: parts.iter().map(|(count, _)| count).sum(),
        took: began.elapsed(),
        sum: parts.iter().map(|(_, sum)| sum).sum(),
    })
}

/// Returns the `count`-th block of a walk that visits each of `blocks` once, and never two neighbors in order if there are
/// many: steps of about the golden ratio of them.
fn scattered_block(count: u64, blocks: u64) -> u64 {
    let divides = |step: u64| {
        let (mut a, mut b) = (blocks, step);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    let about = blocks.saturating_mul(618) / 1000;
    let step = (about.max(1)..=blocks).find(|step| divides(*step));
    (count % blocks) * (step.unwrap_or(1) % blocks) % blocks
}

fn median_rate(bytes: usize, mut times: Vec<Duration>) -> u64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let nanos = median.as_nanos().max(1);
    u64::try_from(bytes as u128 * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, io::Write};

    #[test]
    fn each_round_reads_the_buffer_of_each_thread() {
        let times = read_memory(3, 3 << 20);
        assert!((3..=ROUNDS).contains(&times.len()), "{times:?}");
        assert!(times.iter().all(|time| !time.is_zero()));
        assert_eq!(sum(&[1, 2, u64::MAX]), 2);
    }

    #[test]
    fn the_rate_is_that_of_the_median_round() {
        let times = [1, 900, 4, 2, 4].map(Duration::from_millis).to_vec();
        assert_eq!(median_rate(4_000_000, times), 1_000_000_000);
    }

    #[test]
    fn the_disk_is_measured_with_uncached_reads() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut expected = 0;
        for block in 1..=4_u8 {
            file.write_all(&vec![block; BLOCK]).unwrap();
            expected += u64::from(block);
        }
        // Part of a block, which is left out.
        file.write_all(&[255; 100]).unwrap();
        file.as_file().sync_all().unwrap();
        for (depth, turn) in [(1, 0), (3, 1), (16, 2)] {
            let read = read_blocks(file.path(), depth, turn).unwrap();
            assert_eq!((read.count, read.sum), (4, expected), "{depth} at once");
        }
        assert!(disk(file.path()).unwrap() > 0);
    }

    #[test]
    fn a_small_or_missing_file_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"small").unwrap();
        let error = disk(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let missing = disk(&file.path().join("none")).unwrap_err();
        assert_ne!(missing.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn blocks_are_visited_once_each_and_not_in_order() {
        for blocks in [1_u64, 2, 3, 10, 97, 2500] {
            let visited: Vec<_> = (0..blocks)
                .map(|count| scattered_block(count, blocks))
                .collect();
            let each: BTreeSet<_> = visited.iter().copied().collect();
            assert_eq!(each, (0..blocks).collect(), "of {blocks}");
            let neighbours = visited.windows(2).filter(|pair| pair[1] == pair[0] + 1);
            if blocks > 3 {
                assert_eq!(neighbours.count(), 0, "of {blocks}");
            }
        }
    }
}
