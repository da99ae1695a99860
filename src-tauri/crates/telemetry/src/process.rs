//! Single processes: their memory, and whether an ended one has freed it.

use crate::platform;
use std::io;

/// A process, distinguished from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pid: u32,
    started: u64,
}

impl Process {
    /// Returns the process that has this number now; `None` if there is none, or it is not visible to this user. Call it
    /// while the number's owner is certain, such as right after starting it.
    pub fn of(pid: u32) -> Option<Self> {
        let started = platform::started(pid)?;
        Some(Self { pid, started })
    }

    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Returns whether its anonymous memory, and on macOS its share of the GPU's, is freed: it is gone, or all its threads
    /// are zombies. `false` when in doubt. Files that it had mapped may stay cached.
    pub fn memory_is_back(self) -> bool {
        platform::memory_is_back(self.pid, self.started)
    }
}

/// Returns the members of a process group that hold memory. Blocking: it reads every process of the system.
///
/// # Errors
/// The processes could not be listed.
pub fn members_of_group(group: u32) -> io::Result<Vec<Process>> {
    Ok(platform::of_group(group)?
        .into_iter()
        .filter_map(Process::of)
        .collect())
}

/// Returns the bytes that the processes hold in memory and swap, without mapped files, by the kernel's counters; 0 once
/// none holds memory. Shared memory may be counted for each.
///
/// # Errors
/// A process that holds memory belongs to another user.
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
