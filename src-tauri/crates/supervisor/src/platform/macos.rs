//! macOS: `sysctl`, whose `hw.optional` lists what a processor can do beyond the least.

use std::process::Command;

pub(crate) fn processor() -> Option<(String, String)> {
    let read = |arguments: &[&str]| {
        let output = Command::new("/usr/sbin/sysctl").args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let name = read(&["-n", "machdep.cpu.brand_string"])?;
    let optional = read(&["hw.optional"])?;
    Some((name, optional.lines().collect::<Vec<_>>().join(" ")))
}
