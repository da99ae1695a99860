//! What the system denies a program, to a thread of a test that may run as root: permission bits do not hold for root, and a privacy
//! setting of macOS denies by other errors than they do.

/// A system call that reads a folder.
#[derive(Debug, Clone, Copy)]
pub enum Call {
    Open,
    ReadNames,
    Stat,
}

/// Does the work in a thread of an ordinary user. Folders of the test are read by permission bits then.
pub fn as_ordinary_user<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    within(system::become_ordinary, work)
}

/// Does the work in a thread whose calls of this kind all fail, by EPERM as for what privacy settings deny.
pub fn denying<T: Send>(call: Call, work: impl FnOnce() -> T + Send) -> Option<T> {
    within(|| system::deny(call), work)
}

/// `None` where the system has no such way.
fn within<T: Send>(
    prepare: impl FnOnce() -> bool + Send,
    work: impl FnOnce() -> T + Send,
) -> Option<T> {
    let name = std::thread::current().name().map(str::to_owned);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(name.unwrap_or_default());
        let done = thread.spawn_scoped(scope, || prepare().then(work)).ok()?;
        done.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no safe interface limits one thread")]
mod system {
    use super::Call;
    use libc::{
        BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, c_ulong, sock_filter,
        sock_fprog,
    };

    /// One that every system has.
    const ORDINARY: c_long = 65534;

    pub(super) fn become_ordinary() -> bool {
        // SAFETY: it has no arguments.
        if unsafe { libc::geteuid() } != 0 {
            return true;
        }
        // SAFETY: it takes numbers; unlike libc's function, the call is about this thread alone.
        unsafe { libc::syscall(libc::SYS_setresuid, ORDINARY, ORDINARY, ORDINARY) == 0 }
    }

    pub(super) fn deny(call: Call) -> bool {
        let numbers: &[c_long] = match call {
            Call::Open => &[libc::SYS_openat, libc::SYS_openat2],
            Call::ReadNames => &[libc::SYS_getdents64],
            Call::Stat => &[libc::SYS_newfstatat, libc::SYS_statx],
        };
        let statement = |code: u32, k: u32, jf: u8| sock_filter {
            code: code as u16,
            jt: 0,
            jf,
            k,
        };
        // The number of the call is the first of what a filter sees.
        let mut program = vec![statement(BPF_LD | BPF_W | BPF_ABS, 0, 0)];
        for number in numbers {
            let denied = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
            program.push(statement(BPF_JMP | BPF_JEQ | BPF_K, *number as u32, 1));
            program.push(statement(BPF_RET | BPF_K, denied, 0));
        }
        program.push(statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW, 0));
        let program = sock_fprog {
            len: program.len() as u16,
            filter: program.as_mut_ptr(),
        };
        let (yes, none): (c_ulong, c_ulong) = (1, 0);
        // SAFETY: it takes numbers.
        let is_bound =
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, none, none, none) == 0 };
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        // SAFETY: the program lives until the call is over, which copies it.
        is_bound && unsafe { libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Call;

    pub(super) fn become_ordinary() -> bool {
        false
    }

    pub(super) fn deny(_: Call) -> bool {
        false
    }
}
