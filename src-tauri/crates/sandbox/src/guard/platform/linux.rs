//! Linux: the children that `/proc` lists.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::fs;

/// Kills all children, in any group. Their children are then adopted by this process.
pub(crate) fn kill_adopted() {
    let me = getpid();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw)
            && parent(pid) == Some(me)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it may contain anything.
    let (_, behind) = stat.rsplit_once(')')?;
    Pid::from_raw(behind.split_ascii_whitespace().nth(1)?.parse().ok()?)
}
