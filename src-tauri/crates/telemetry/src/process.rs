//! Single processes: what they hold and use, and whether one that ended has given its memory back.

use crate::platform;
use std::io;

/// A process, told from another that has its number later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pid: u32,
    started: u64,
}

/// What a process has used since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Of all its threads.
    pub cpu_ms: u64,
    /// Read from disks on its behalf, by reads and by faults in mapped files.
    pub disk_read_bytes: Option<u64>,
    /// Of the files that it has mapped, what is in memory: on Linux with shared memory, on macOS no less than told.
    pub mapped_resident_bytes: Option<u64>,
}

impl Process {
    /// The process that has this number now; `None` if there is none or it is not ours to see. Ask while it is certain
    /// whose number it is, such as right after starting it.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        let started = platform::started(pid)?;
        Some(Self { pid, started })
    }

    #[must_use]
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Whether nothing is left that holds its anonymous memory, and on macOS its share of the GPU's: it is gone, or is
    /// a zombie in all its threads. `false` when in doubt. What it had mapped may stay cached.
    #[must_use]
    pub fn memory_is_back(self) -> bool {
        platform::memory_is_back(self.pid, self.started)
    }
}

/// `None` if there is no such process or it is not ours to read.
#[must_use]
pub fn usage(pid: u32) -> Option<Usage> {
    platform::usage(pid)
}

/// The members of a process group that hold memory. Blocking; it looks at every process of the system.
///
/// # Errors
/// The processes could not be listed.
pub fn members_of_group(group: u32) -> io::Result<Vec<Process>> {
    Ok(platform::of_group(group)?
        .into_iter()
        .filter_map(Process::of)
        .collect())
}

/// Bytes that the processes hold in memory and swap and have not mapped from files, by the kernel's counters: 0 once none
/// holds memory. What several share may be counted for each.
///
/// # Errors
/// One that holds memory is not ours to read.
pub fn held_by(processes: &[Process]) -> io::Result<u64> {
    let mut sum = 0_u64;
    for process in processes {
        match platform::held(process.pid) {
            Some(bytes) => sum = sum.saturating_add(bytes),
            // It may have ended since it was listed.
            None if process.memory_is_back() => {}
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    format!("the memory of process {} cannot be read", process.pid),
                ));
            }
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn this_process_holds_memory_and_an_ended_group_none() {
        let this = Process::of(std::process::id()).unwrap();
        assert_eq!(this.pid(), std::process::id());
        assert!(!this.memory_is_back());
        assert_eq!(Process::of(u32::MAX), None);

        use std::os::unix::process::CommandExt;
        let mut child = Command::new("cat")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let process = Process::of(child.id()).unwrap();
        let members = members_of_group(child.id()).unwrap();
        assert_eq!(members, [process]);
        assert!(held_by(&members).unwrap() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(process.memory_is_back());
        assert_eq!(members_of_group(child.id()).unwrap(), []);
        assert_eq!(held_by(&members).unwrap(), 0);
    }
}
