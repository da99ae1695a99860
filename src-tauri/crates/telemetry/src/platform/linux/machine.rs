//! The whole machine, or the container of this process.

use super::{
    cgroup::{self, GroupLimit},
    number, page_size, stalls,
};
use crate::figures::{Figures, Ticks};
use std::{fs, path::Path};

/// Reads all figures but the clocks and the slow ones.
pub(crate) fn read() -> Figures {
    figures_of_tree(Path::new("/"))
}

pub(crate) fn held_by_all() -> Option<u64> {
    held_in(Path::new("/"))
}

/// Available memory would not do: the kernel counts a page as free only after a while.
fn held_in(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = |name| number(&text, name);
    let limit = cgroup::limit(root)
        .filter(|limit| line("MemTotal:").is_none_or(|total| limit.total_bytes < total));
    match limit {
        Some(limit) => limit
            .total_bytes
            .checked_sub(limit.available_bytes)?
            .checked_add(limit.swap_used_bytes.unwrap_or(0)),
        None => line("AnonPages:")?
            .checked_add(line("Shmem:")?)?
            .checked_add(line("SwapTotal:")?)?
            .checked_sub(line("SwapFree:")?),
    }
}

/// `root` is `/` except in tests.
fn figures_of_tree(root: &Path) -> Figures {
    let read = |name: &str| fs::read_to_string(root.join(name)).ok();
    let mut figures = Figures::default();
    if let Some(text) = read("proc/meminfo") {
        figures.ram_total_bytes = number(&text, "MemTotal:");
        figures.ram_available_bytes = number(&text, "MemAvailable:");
        figures.swap_total_bytes = number(&text, "SwapTotal:");
        let swap = figures.swap_total_bytes.zip(number(&text, "SwapFree:"));
        figures.swap_used_bytes = swap.and_then(|(total, free)| total.checked_sub(free));
    }
    if let Some(text) = read("proc/vmstat") {
        let pages = number(&text, "pswpout");
        figures.swapped_out_bytes = pages.map(|pages| pages.saturating_mul(page_size()));
    }
    figures.cpu = read("proc/stat").as_deref().and_then(parse_ticks);
    if let Some((read, written)) = read("proc/diskstats").as_deref().map(disk_bytes) {
        figures.disk_read_bytes = Some(read);
        figures.disk_written_bytes = Some(written);
    }
    let limit = cgroup::limit(root).filter(|limit| {
        figures
            .ram_total_bytes
            .is_none_or(|total| limit.total_bytes < total)
    });
    // The stall information of the group with a limit, or else of the machine.
    figures.pressure = limit
        .as_ref()
        .and_then(|limit| limit.pressure.clone())
        .or_else(|| read(stalls::MACHINE.trim_start_matches('/')))
        .as_deref()
        .and_then(stalls::grade_stalls);
    if let Some(limit) = &limit {
        apply_limit(limit, &mut figures);
    }
    figures
}

/// Limits the machine's figures to the tightest limit on this process.
fn apply_limit(limit: &GroupLimit, figures: &mut Figures) {
    figures.ram_total_bytes = Some(limit.total_bytes);
    figures.ram_available_bytes = figures
        .ram_available_bytes
        .map(|machine| machine.min(limit.available_bytes));
    if let Some(most) = limit.swap_total_bytes {
        figures.swap_total_bytes = figures.swap_total_bytes.map(|machine| machine.min(most));
    }
    // Older kernels do not count a group's traffic; the machine's is the best approximation.
    if limit.swap_used_bytes.is_some() {
        figures.swap_used_bytes = limit.swap_used_bytes;
    }
    figures.swapped_out_bytes = limit.swapped_out_bytes.or(figures.swapped_out_bytes);
}

/// The first line of `/proc/stat`: `cpu  user nice system idle iowait irq softirq steal guest guest_nice`. Those of
/// guests are part of the first two.
fn parse_ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    let total = ticks.iter().copied().fold(0, u64::saturating_add);
    let idle = ticks
        .get(3)?
        .saturating_add(ticks.get(4).copied().unwrap_or(0));
    // Some sandboxes show a file of zeroes.
    (total > 0).then(|| Ticks {
        busy: total.saturating_sub(idle),
        total,
    })
}

/// `/proc/diskstats`: bytes read from whole disks, and written to them. Partitions and stacked devices would count twice.
fn disk_bytes(text: &str) -> (u64, u64) {
    const SECTOR: u64 = 512;
    const NO_DISKS: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];
    let mut disks: Vec<&str> = Vec::new();
    let (mut read, mut written) = (0_u64, 0_u64);
    for line in text.lines() {
        let mut fields = line.split_whitespace().skip(2);
        let Some(name) = fields.next() else {
            continue;
        };
        if NO_DISKS.iter().any(|prefix| name.starts_with(prefix))
            || disks.iter().any(|disk| is_partition(disk, name))
        {
            continue;
        }
        // Reads, those merged, sectors read and the time it took; then the same of writes.
        let sectors = |field: Option<&str>| field.and_then(|field| field.parse::<u64>().ok());
        let (reads, writes) = (sectors(fields.nth(2)), sectors(fields.nth(3)));
        if let Some((reads, writes)) = reads.zip(writes) {
            disks.push(name);
            read = read.saturating_add(reads);
            written = written.saturating_add(writes);
        }
    }
    (read.saturating_mul(SECTOR), written.saturating_mul(SECTOR))
}

/// `sda1` of `sda`, `nvme0n1p1` of `nvme0n1`.
fn is_partition(disk: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else {
        return false;
    };
    let number = if disk.ends_with(|last: char| last.is_ascii_digit()) {
        rest.strip_prefix('p')
    } else {
        Some(rest)
    };
    number.is_some_and(|number| {
        !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests;
