//! Whether a worker's memory is back, by this machine's figures; [`tierbar_core::reclaim`] judges.
//!
//! Measured on Linux 6.18: a killed process of 1 GiB of anonymous memory takes 55 to 75 ms to end, and when its parent is
//! notified, the anonymous memory of the machine and of its control group has already fallen. `MemAvailable` follows up to
//! seconds later, so it proves nothing. Processes that the worker has started and that are still in its group are killed.
//! On macOS the GPU's driver frees wired memory by itself.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{fmt, io, sync::Arc, time::Duration};
use tierbar_core::reclaim::{MEMORY, MemoryAfter, MemoryBefore, MissingMemory, PATIENCE, missing};
use tierbar_telemetry::{
    MEMORY_INTERVAL, Process, held_by, machine_memory, members_of_group, oom_kills,
};
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep},
};

/// The first check is immediate: nearly always all memory is back by then.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(100);
/// The interval between checks when no request waits.
const LATER: Duration = Duration::from_secs(1);

/// Measures the memory of a worker's process group. Both measurements block.
pub trait MemoryProbe: Send + Sync + fmt::Debug {
    /// The least time between two measurements that may differ.
    fn interval(&self) -> Duration {
        MEMORY_INTERVAL
    }

    /// Counts the processes that the kernel has killed for want of memory, if it publishes that.
    fn oom_kills(&self) -> Option<u64> {
        oom_kills()
    }

    /// Measures while the worker lives.
    fn before(&self, worker: Process) -> MemoryBefore;

    /// Measures after the worker has ended, and kills what is left of its group.
    fn after(&self, worker: Process) -> MemoryAfter;
}

/// Measures by the system's figures.
#[derive(Debug)]
pub struct MachineProbe;

impl MemoryProbe for MachineProbe {
    fn before(&self, worker: Process) -> MemoryBefore {
        let held = members_of_group(worker.pid()).and_then(|members| held_by(&members));
        MemoryBefore {
            group_bytes: ok_or_log(held),
            machine_bytes: machine_memory().held_bytes,
        }
    }

    fn after(&self, worker: Process) -> MemoryAfter {
        let machine = machine_memory();
        MemoryAfter {
            group_bytes: ok_or_log(end_group(worker)),
            machine_bytes: machine.held_bytes,
            available_bytes: machine.available_bytes,
        }
    }
}

fn ok_or_log(held: io::Result<u64>) -> Option<u64> {
    held.inspect_err(|error| tracing::warn!("a worker's memory is unknown: {error}"))
        .ok()
}

/// Kills what is left of a group whose leader has ended; returns what it holds.
fn end_group(leader: Process) -> io::Result<u64> {
    let members = members_of_group(leader.pid())?;
    // A number is not reused while a group has it. So if another process leads the group, the old one is gone.
    let of_another = |member: &Process| member.pid() == leader.pid() && *member != leader;
    if members.is_empty() || members.iter().any(of_another) {
        return Ok(0);
    }
    if let Some(group) = i32::try_from(leader.pid()).ok().and_then(Pid::from_raw) {
        kill_process_group(group, Signal::KILL)?;
    }
    // A live process always holds something.
    Ok(held_by(&members)?.max(1))
}

#[derive(Debug)]
pub(crate) struct MemoryReclaim {
    probe: Arc<dyn MemoryProbe>,
    /// `None` if it was gone at once.
    worker: Option<Process>,
    before: Option<MemoryBefore>,
}

impl MemoryReclaim {
    /// For a process that has just started and leads a group.
    pub(crate) fn new(probe: Arc<dyn MemoryProbe>, pid: u32) -> Self {
        Self {
            probe,
            worker: Process::of(pid),
            before: None,
        }
    }

    /// Call it just before the worker is ended.
    pub(crate) async fn look(&mut self) {
        if let (None, Some(worker)) = (self.before, self.worker) {
            let probe = Arc::clone(&self.probe);
            self.before = spawn_blocking(move || probe.before(worker)).await.ok();
        }
    }

    /// Reports what is missing until all is back, or counts as another program's. Call it when the worker has ended.
    /// Returns the available memory.
    pub(crate) async fn follow(self, report: impl Fn(MissingMemory, Duration)) -> Option<u64> {
        let worker = self.worker?;
        let before = self.before.unwrap_or_default();
        let (ended, mut pause) = (Instant::now(), SHORTEST);
        loop {
            let probe = Arc::clone(&self.probe);
            let after = spawn_blocking(move || probe.after(worker)).await.ok()?;
            let waited = ended.elapsed();
            let Some(missing) = missing(&before, &after).filter(|_| waited < MEMORY) else {
                return after.available_bytes;
            };
            report(missing, waited);
            if waited < PATIENCE {
                let next = pause.max(self.probe.interval());
                sleep(next.min(PATIENCE - waited)).await;
                pause = (pause * 2).min(LONGEST);
            } else {
                sleep(LATER).await;
            }
        }
    }
}
