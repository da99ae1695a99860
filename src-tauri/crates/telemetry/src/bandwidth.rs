//! The bandwidth of this machine's memory and of a disk, which limits decoding.
//!
//! Each measurement takes a few hundred milliseconds of all cores but one, or of the disk. Other work makes it appear slower, so
//! measure while the machine [`is_quiet`], and keep the best of several.

use crate::{
    figures::{Figures, Ticks},
    platform,
};
use std::{
    fs::{self, File},
    hint::black_box,
    io::{self, Write},
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
use tempfile::NamedTempFile;

/// Read per round by all threads together: more than any supported machine has cache.
const MEMORY_BYTES: usize = 256 << 20;
const ROUNDS: usize = 9;
/// About a matrix of an expert.
const BLOCK: usize = 512 << 10;
/// Reads at once. One alone leaves a good part of a fast disk idle.
const DEPTHS: [usize; 2] = [4, 16];
/// At each depth.
const BLOCKS: u64 = 64;
/// No disk is faster: PCI Express 5.0 with four lanes.
const FASTEST_DISK: u64 = 16_000_000_000;
/// No further round, and no read of a depth, starts after this time.
const ENOUGH: Duration = Duration::from_millis(200);
const ENOUGH_AT_A_DEPTH: Duration = Duration::from_millis(150);
/// What the name of its file begins with.
const PREFIX: &str = ".tierbar-disk-";
/// The alignment of buffers for uncached reads; no disk has larger blocks.
const ALIGNMENT: usize = 16 << 10;
/// How long the machine is watched, and what other programs may do in that time.
const WATCH: Duration = Duration::from_millis(200);
const QUIET_PERCENT: f64 = 25.0;
const QUIET_DISK_BYTES: u64 = 8 << 20;

/// Returns whether other programs leave the cores and the disks to a measurement. Blocking.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "it watches for a time, and waits for nothing"
)]
pub fn is_quiet() -> bool {
    let before = platform::read();
    thread::sleep(WATCH);
    was_quiet(&before, &platform::read())
}

fn was_quiet(before: &Figures, now: &Figures) -> bool {
    let share = now.cpu.zip(before.cpu);
    let percent = share.and_then(|(now, before)| used_share(now, before));
    let moved = |now: Option<u64>, before: Option<u64>| {
        now.zip(before)
            .map_or(0, |(now, before)| now.saturating_sub(before))
    };
    let disk = moved(now.disk_read_bytes, before.disk_read_bytes)
        + moved(now.disk_written_bytes, before.disk_written_bytes);
    percent.is_some_and(|percent| percent < QUIET_PERCENT) && disk < QUIET_DISK_BYTES
}

/// Returns the percentage of busy ticks between two readings.
fn used_share(now: Ticks, before: Ticks) -> Option<f64> {
    let busy = now.busy.checked_sub(before.busy)?;
    let total = now.total.checked_sub(before.total)?;
    // Some kernels let idle ticks run a little backwards, which makes the busy ones more than all.
    (total > 0).then(|| (busy as f64 / total as f64 * 100.0).min(100.0))
}

/// Measures the bytes per second at which all cores but one read memory, as the best of several rounds.
pub fn memory() -> u64 {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let times = read_memory(cores.saturating_sub(1).max(1), MEMORY_BYTES);
    let best = times.into_iter().min().unwrap_or_default();
    rate(MEMORY_BYTES as u128, best)
}

/// Measures the bytes per second at which blocks of a file in `folder` are read in random order without the page cache, with as many
/// reads at once as suit the disk. The file has 64 MiB, and is written for this: one that is there may be cached.
///
/// # Errors
/// The error of writing or reading the file.
pub fn disk(folder: &Path) -> io::Result<u64> {
    let file = scratch(folder, BLOCKS * DEPTHS.len() as u64)?;
    let mut best = 0;
    for (depth, turn) in DEPTHS.into_iter().zip(0..) {
        let read = read_blocks(file.path(), depth, turn)?;
        // A use of what was read.
        black_box(read.sum);
        best = best.max(read.rate());
    }
    Ok(best.min(FASTEST_DISK))
}

/// Writes a file of no two equal pages, which no file system stores as one, of noise, which none compresses.
fn scratch(folder: &Path, blocks: u64) -> io::Result<NamedTempFile> {
    // One of a host that was killed while it measured. Another user's stays, and so does one in use.
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_ours = name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_ours && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(path);
        }
    }
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(folder)?;
    // A file system without locks holds no file that is in use.
    let _ = file.as_file().try_lock();
    platform::skip_cache(file.as_file())?;
    let mut noise = 0x9E37_79B9_7F4A_7C15_u64;
    let mut block: Vec<u8> = (0..BLOCK / size_of::<u64>())
        .flat_map(|_| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise.to_le_bytes()
        })
        .collect();
    let mut number = 0_u64;
    for _ in 0..blocks {
        for page in block.chunks_mut(4096) {
            number += 1;
            page[..size_of::<u64>()].copy_from_slice(&number.to_le_bytes());
        }
        file.write_all(&block)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the time of each round, without the first, which warms up.
fn read_memory(threads: usize, bytes: usize) -> Vec<Duration> {
    let bytes = bytes / threads;
    let (step, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let mut times = Vec::new();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // Written, so that its pages are memory of its own and not one page of zeroes.
                let buffer = vec![1_u8; bytes];
                loop {
                    step.wait();
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    // Reads all of it, as wide as the cores can.
                    black_box(memchr::memchr(0, black_box(&buffer)));
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
        rate(u128::from(self.count) * BLOCK as u128, self.took)
    }
}

/// Reads blocks with `depth` reads at once; other ones in each turn, while there are any.
fn read_blocks(path: &Path, depth: usize, turn: u64) -> io::Result<ReadBlocks> {
    let file = platform::open_uncached(path)?;
    let blocks = file.metadata()?.len() / BLOCK as u64;
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

fn rate(bytes: u128, time: Duration) -> u64 {
    u64::try_from(bytes * 1_000_000_000 / time.as_nanos().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_round_reads_the_buffer_of_each_thread() {
        let times = read_memory(3, 3 << 20);
        assert!((3..=ROUNDS).contains(&times.len()), "{times:?}");
        assert!(times.iter().all(|time| !time.is_zero()));
        assert_eq!(rate(4_000_000, Duration::from_millis(4)), 1_000_000_000);
    }

    #[test]
    fn a_machine_that_computes_or_copies_is_not_quiet() {
        let at = |busy, total, read| Figures {
            cpu: Some(Ticks { busy, total }),
            disk_read_bytes: Some(read),
            ..Figures::default()
        };
        let before = at(1000, 10_000, 0);
        assert!(was_quiet(&before, &at(1010, 10_160, 1 << 20)));
        assert!(!was_quiet(&before, &at(1080, 10_160, 0)));
        assert!(!was_quiet(&before, &at(1010, 10_160, 40 << 20)));
        assert!(!was_quiet(&before, &before), "unknown");
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
    }

    #[test]
    fn a_disk_is_measured_with_a_file_that_does_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".tierbar-disk-killed"), "").unwrap();
        let rate = disk(folder.path()).unwrap();
        assert!(rate > 0 && rate <= FASTEST_DISK);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(disk(&folder.path().join("none")).is_err());
        let file = scratch(folder.path(), 3).unwrap();
        let bytes = fs::read(file.path()).unwrap();
        drop(scratch(folder.path(), 1).unwrap());
        assert!(file.path().exists(), "in use");
        let pages: BTreeSet<_> = bytes.chunks(4096).collect();
        assert_eq!(pages.len(), 3 * BLOCK / 4096);
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
