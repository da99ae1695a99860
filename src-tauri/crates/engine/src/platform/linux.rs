//! Linux: times of threads from `/proc`.

use rustix::param::clock_ticks_per_second;
use std::{fs, time::Duration};

/// Frees the pages, which read as zeros afterwards.
pub(super) const RELEASE: libc::c_int = libc::MADV_DONTNEED;

/// How long one thread has computed, as any thread can ask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ThreadClock(rustix::process::Pid);

impl ThreadClock {
    pub(crate) fn of_this_thread() -> Self {
        Self(rustix::thread::gettid())
    }

    /// Nothing once it has ended.
    pub(crate) fn spent(&self) -> Duration {
        let file = format!("/proc/self/task/{}/stat", self.0);
        let text = fs::read_to_string(file).unwrap_or_default();
        // Its name may hold anything; the fields behind it are numbers (proc_pid_stat(5): utime and stime are the 14th and 15th).
        let (_, fields) = text.rsplit_once(')').unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / clock_ticks_per_second().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{hint::black_box, sync::mpsc::channel, thread};

    #[test]
    fn a_thread_clock_counts_only_computation() {
        let (sender, receiver) = channel();
        let (stop, stopped) = channel::<()>();
        let computing = thread::spawn(move || {
            sender.send(ThreadClock::of_this_thread()).unwrap();
            while stopped.try_recv().is_err() {
                black_box((0..10_000_u64).sum::<u64>());
            }
            // Waits from here on.
            assert!(stopped.recv().is_err());
        });
        let clock = receiver.recv().unwrap();
        while clock.spent() < Duration::from_millis(50) {
            thread::yield_now();
        }
        stop.send(()).unwrap();
        let waiting = ThreadClock::of_this_thread();
        assert!(waiting != clock);
        drop(stop);
        computing.join().unwrap();
        // A little later than that, the kernel has forgotten it.
        let joined = std::time::Instant::now();
        while clock.spent() > Duration::ZERO {
            assert!(joined.elapsed() < Duration::from_secs(60), "it has ended");
            thread::yield_now();
        }
    }
}
