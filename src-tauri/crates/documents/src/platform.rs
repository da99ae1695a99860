//! What a process may use of the machine.

#[expect(unsafe_code, reason = "an allocator is unsafe to implement")]
pub(crate) mod memory;

use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// Seconds of computing for one document.
const SECONDS: u64 = 120;
const MEMORY: u64 = 1 << 30;

/// Takes from this process what reading a document does not need: files, sockets and processes beyond those that it has, writing to
/// files, and memory and time without an end. Limits cannot be raised again but by an administrator.
///
/// # Errors
/// If the system refuses a limit; what follows must not be done then.
pub fn limit_this_process() -> std::io::Result<()> {
    let exactly = |limit| Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    // Documents wait for whatever else the machine does.
    nice(10)?;
    memory::limit(MEMORY);
    setrlimit(Resource::Cpu, exactly(SECONDS))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Nproc, exactly(0))?;
    // A second bound, beside the one above: macOS refuses it, since its libraries alone have a larger address space.
    #[cfg(not(feature = "as-on-macos"))]
    let _ = setrlimit(Resource::As, exactly(2 * MEMORY));
    // No further descriptor means no socket and no file. Those that are open stay.
    setrlimit(Resource::Nofile, exactly(0))?;
    Ok(())
}
