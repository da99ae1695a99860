//! What the answers of macOS's `libproc` about processes mean.

use std::io;

/// A process, as `proc_pidinfo` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// In microseconds of the time of day.
    pub(crate) started: u64,
    /// A zombie has freed its memory.
    pub(crate) is_zombie: bool,
}

impl Entry {
    pub(crate) fn new(seconds: u64, microseconds: u64, is_zombie: bool) -> Self {
        Self {
            started: seconds
                .saturating_mul(1_000_000)
                .saturating_add(microseconds),
            is_zombie,
        }
    }
}

/// Returns whether the process that started then has freed its memory, by what its number has now.
pub(crate) fn memory_is_back(entry: &io::Result<Entry>, started: u64) -> bool {
    match entry {
        Ok(entry) => entry.started != started || entry.is_zombie,
        Err(error) => error.raw_os_error() == Some(libc::ESRCH),
    }
}

/// Returns all process numbers of a call that writes them into a buffer, and answers how many there are and what `errno` is.
pub(crate) fn list(mut call: impl FnMut(&mut [i32]) -> (i32, i32)) -> io::Result<Vec<i32>> {
    let mut pids = vec![0; 64];
    loop {
        let (found, errno) = call(&mut pids);
        // An empty group and an error are both 0 (libproc.c); only the second sets `errno`.
        if found <= 0 && errno != 0 {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let found = usize::try_from(found).unwrap_or(0);
        // A full buffer may have left some out.
        if found < pids.len() {
            pids.truncate(found);
            return Ok(pids);
        }
        pids.resize(pids.len() * 2, 0);
    }
}

/// Returns those that hold memory.
pub(crate) fn holders(pids: Vec<i32>, entry: impl Fn(u32) -> io::Result<Entry>) -> Vec<u32> {
    pids.into_iter()
        .filter_map(|pid| u32::try_from(pid).ok())
        .filter(|pid| entry(*pid).is_ok_and(|entry| !entry.is_zombie))
        .collect()
}

/// Returns the milliseconds of ticks, of which `base` has the fraction that makes them nanoseconds.
pub(crate) fn to_milliseconds(ticks: u64, base: (u32, u32)) -> u64 {
    let (numerator, denominator) = (u128::from(base.0), u128::from(base.1.max(1)));
    let nanos = u128::from(ticks) * numerator / denominator;
    u64::try_from(nanos / 1_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(errno: i32) -> io::Result<Entry> {
        Err(io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_process_that_cannot_be_seen_may_hold_its_memory() {
        let began = Entry::new(7, 5, false);
        for (entry, is_back) in [
            (Ok(began), false),
            (Ok(Entry::new(7, 5, true)), true),
            // Another process has its number.
            (Ok(Entry::new(7, 6, false)), true),
            (error(libc::ESRCH), true),
            (error(libc::EPERM), false),
        ] {
            assert_eq!(memory_is_back(&entry, 7_000_005), is_back, "{entry:?}");
        }
    }

    #[test]
    fn a_full_buffer_is_asked_for_again() {
        for members in [0, 63, 64, 65, 1000] {
            let all: Vec<i32> = (1..=members).collect();
            let listed = list(|pids| {
                let found = pids.len().min(all.len());
                pids[..found].copy_from_slice(&all[..found]);
                (i32::try_from(found).unwrap(), 0)
            });
            assert_eq!(listed.unwrap(), all);
        }
    }

    #[test]
    fn an_empty_group_is_no_error() {
        assert_eq!(list(|_| (0, 0)).unwrap(), Vec::<i32>::new());
        let denied = list(|_| (0, libc::EPERM)).unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        // What an earlier call has left there says nothing.
        let mut answers = [(1, libc::EPERM)].into_iter();
        assert_eq!(list(|_| answers.next().unwrap()).unwrap(), [0]);
    }

    #[test]
    fn zombies_and_processes_that_are_gone_hold_no_memory() {
        let entry = |pid| match pid {
            1 => Ok(Entry::new(1, 0, false)),
            2 => Ok(Entry::new(1, 0, true)),
            _ => error(libc::ESRCH),
        };
        assert_eq!(holders(vec![-1, 1, 2, 3], entry), [1]);
    }

    #[test]
    fn ticks_are_milliseconds_by_the_processors_clock() {
        // Of Apple silicon, and of Intel.
        assert_eq!(to_milliseconds(24_000_000, (125, 3)), 1000);
        assert_eq!(to_milliseconds(1_999_999, (1, 1)), 1);
        assert_eq!(to_milliseconds(u64::MAX, (u32::MAX, 0)), u64::MAX);
    }
}
