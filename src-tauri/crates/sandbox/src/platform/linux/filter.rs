//! The seccomp filter: system calls that lead out of the sandbox past Landlock, or that attack the kernel.
//!
//! What is not listed is allowed, because programs need most calls and the list of all grows with each kernel. A call that is
//! refused returns EPERM, or ENOSYS, EOPNOTSUPP or EINVAL where programs then try another one. Calls of another architecture or ABI have
//! other numbers, so they end the process.

use ArgumentTest::{NoneOf, NotAlone, OneOf, Without};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long,
    sock_filter, sock_fprog,
};
use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
};

/// What the filter depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether sockets for TCP can be made. The launcher makes their connections.
    pub(super) network: bool,
    /// Whether Landlock keeps signals inside. Otherwise none can be sent.
    pub(super) signals_stay_inside: bool,
}

/// What is looked at of a call's argument. Arguments have 64 bits, of which the kernel takes the low 32 where it wants an `int`.
#[derive(Debug, Clone, Copy)]
enum ArgumentTest {
    /// The low 32 bits are one of these.
    OneOf(&'static [u32]),
    /// The low 32 bits are none of these.
    NoneOf(&'static [u32]),
    /// None of these bits is set.
    Without(u32),
    /// The first bit is not set without the second.
    NotAlone(u32, u32),
}

/// When a call is refused.
#[derive(Debug)]
enum RefusalCase {
    Always,
    /// The C library has another way.
    Unknown,
    /// As by a file system that does not have this.
    Unsupported,
    /// As for a file that the call does not take. Programs then read and write.
    Unfit,
    /// Done by the launcher.
    Served,
    /// Done by the launcher if it maps memory that is shared and has no file.
    ServedIfShared,
    /// Unless each of these arguments is as given.
    Unless(Vec<(u32, ArgumentTest)>),
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
/// On x86-64, numbers from here on belong to x32, and none of ours does.
const OTHER_ABI: u32 = 0x4000_0000;

// Offsets in `seccomp_data`.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

/// Calls with the same number on all architectures, newer than their names in the C library.
pub(super) const FCHMODAT2: c_long = 452;
/// Not on all architectures.
#[cfg(target_arch = "x86_64")]
pub(super) const CHMOD: Option<c_long> = Some(libc::SYS_chmod);
#[cfg(target_arch = "aarch64")]
pub(super) const CHMOD: Option<c_long> = None;
const STATMOUNT: c_long = 457;
const LISTMOUNT: c_long = 458;
const SETXATTRAT: c_long = 463;
const GETXATTRAT: c_long = 464;
const LISTXATTRAT: c_long = 465;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;

const IPPROTO_TCP: u32 = 6;
/// `SOCK_STREAM`, with `SOCK_NONBLOCK` and `SOCK_CLOEXEC`.
const STREAMS: &[u32] = &[1, 0x801, 0x8_0001, 0x8_0801];
/// Levels of options that a command may set: of sockets, TCP, and IPv6, which Java needs. One of IPv4 sends packets over a host of its
/// choice (`IP_OPTIONS`), wherever the socket is connected to.
const LEVELS: &[u32] = &[1, IPPROTO_TCP, 41];
/// Options that it may not: `TCP_ULP`, for another protocol; `SO_BINDTODEVICE` and `SO_BINDTOIFINDEX`, past the loopback interface; and
/// `SO_SNDBUF` and `SO_ZEROCOPY`: how much waits in a socket, up to megabytes, and whether it keeps a program's pages. No reading finds
/// that, so that the least is counted.
const REFUSED_OPTIONS: &[u32] = &[31, 25, 62, 7, 60];
/// Connects without `connect`.
const MSG_FASTOPEN: u32 = 0x2000_0000;
/// All `CLONE_NEW…`: a new user namespace has all rights inside, and with them more of the kernel to attack.
const NAMESPACES: u32 = 0x7E02_0080;
/// `ioctl`s that programs use on pipes, sockets and files, and to find out that these are no terminals. All others are refused: the
/// kernel has thousands, and some change a file, a folder or a file system that is open for reading alone, or type into a terminal.
const IOCTLS: &[u32] = &[
    // TCGETS, TCGETS2, TIOCGPGRP and TIOCGWINSZ.
    0x5401,
    0x802C_542A,
    0x540F,
    0x5413,
    // TIOCOUTQ, FIONREAD, FIONBIO, FIONCLEX and FIOCLEX.
    0x5411,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
    // FICLONE and FICLONERANGE, by which `cp` copies; they need a file that is open for writing.
    0x4004_9409,
    0x4020_940D,
];
/// The kind of a mapping and whether it has no file (`MAP_TYPE`, `MAP_ANONYMOUS`), and shared memory without a file. What a process
/// has written there stays when no process has it in its tables any more, so that no reading finds it.
const MAPPING_KIND: u32 = 0x2F;
const SHARED_MEMORY: u32 = 0x21;
/// Kinds of Unix sockets whose two ends stay with each other: `SOCK_STREAM` and `SOCK_SEQPACKET`, with `SOCK_NONBLOCK` and
/// `SOCK_CLOEXEC`. An end of a pair for datagrams could send to any Unix socket, such as the system log's.
const PAIRS: &[u32] = &[1, 0x801, 0x8_0001, 0x8_0801, 5, 0x805, 0x8_0005, 0x8_0805];
/// Operations of `prctl`: that which gives huge pages back.
const REFUSED_OPERATIONS: &[u32] = &[libc::PR_SET_THP_DISABLE as u32];
/// Threads share their open files, or those of one alone would be counted.
const WITH_FILES: ArgumentTest = NotAlone(libc::CLONE_THREAD as u32, libc::CLONE_FILES as u32);
/// Operations of `fcntl` that have signals sent: `F_SETOWN`, `F_SETSIG`, `F_SETOWN_EX`.
const SIGNALING: &[u32] = &[8, 10, 15];

/// Refused in any case.
const NEVER: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Large parts of the kernel that a command does not need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    // It tells what happens in folders that cannot be read.
    libc::SYS_inotify_init1,
    // The system.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // No client is served, and no address or abstract name is taken from another program.
    libc::SYS_listen,
    libc::SYS_bind,
    // Files by handles, past their folders.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // Owners and inode flags: Landlock does not restrict them, the path may be any, and a file need not be open for writing.
    libc::SYS_fchownat,
    FILE_SETATTR,
    // Memory that no limit counts, or that others share.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // It puts a program's own pages into a pipe, where they stay when they are unmapped.
    libc::SYS_vmsplice,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_msgget,
    // By its number, another program's can be used and removed without these.
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Extended attributes, for the same reason; what they hold of a file outside could be read as well. A command sees a file system
/// without them: then `cp -p` sets the mode instead.
const ATTRIBUTES: &[c_long] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    GETXATTRAT,
    LISTXATTRAT,
];

/// The older calls, which this architecture still has.
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[c_long] = &[
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_inotify_init,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
];
#[cfg(target_arch = "aarch64")]
const NEVER_HERE: &[c_long] = &[];

/// They put pages of files into pipes and sockets.
const OF_FILES: [c_long; 2] = [libc::SYS_splice, libc::SYS_sendfile];

/// Signals to others, where Landlock does not keep them inside.
const SIGNALS: [c_long; 6] = [
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_pidfd_send_signal,
];

/// Each call that is refused in some case.
fn calls(rules: Rules) -> Vec<(c_long, RefusalCase)> {
    // A process number: this process.
    const SELF: ArgumentTest = OneOf(&[0]);
    let never = NEVER.iter().chain(NEVER_HERE);
    let mut calls: Vec<_> = never.map(|number| (*number, RefusalCase::Always)).collect();
    let attributes = ATTRIBUTES.iter();
    calls.extend(attributes.map(|number| (*number, RefusalCase::Unsupported)));
    let mut unless = |number, arguments: &[(u32, ArgumentTest)]| {
        calls.push((number, RefusalCase::Unless(arguments.to_vec())));
    };
    // Not those of another user's process, and neither the host's.
    unless(libc::SYS_prlimit64, &[(0, SELF)]);
    unless(libc::SYS_sched_setaffinity, &[(0, SELF)]);
    unless(libc::SYS_sched_setscheduler, &[(0, SELF)]);
    unless(libc::SYS_sched_setparam, &[(0, SELF)]);
    unless(libc::SYS_sched_setattr, &[(0, SELF)]);
    unless(libc::SYS_setpriority, &[(0, OneOf(&[0])), (1, SELF)]);
    unless(libc::SYS_ioprio_set, &[(0, OneOf(&[1])), (1, SELF)]);
    unless(libc::SYS_personality, &[(0, OneOf(&[0, u32::MAX]))]);
    unless(libc::SYS_prctl, &[(0, NoneOf(REFUSED_OPERATIONS))]);
    unless(libc::SYS_socketpair, &[(0, OneOf(&[1])), (1, OneOf(PAIRS))]);
    unless(libc::SYS_ioctl, &[(1, OneOf(IOCTLS))]);
    const LEVEL: ArgumentTest = OneOf(LEVELS);
    const OPTION: ArgumentTest = NoneOf(REFUSED_OPTIONS);
    unless(libc::SYS_setsockopt, &[(1, LEVEL), (2, OPTION)]);
    // `connect` is not needed for these.
    unless(libc::SYS_sendto, &[(3, Without(MSG_FASTOPEN))]);
    unless(libc::SYS_sendmsg, &[(2, Without(MSG_FASTOPEN))]);
    unless(libc::SYS_sendmmsg, &[(3, Without(MSG_FASTOPEN))]);
    unless(
        libc::SYS_clone,
        &[(0, Without(NAMESPACES)), (0, WITH_FILES)],
    );
    unless(
        libc::SYS_close_range,
        &[(2, Without(libc::CLOSE_RANGE_UNSHARE))],
    );
    if rules.network {
        // No Unix socket, which could be the host's, the desktop's or Docker's, and no datagrams: what they name, no launcher sees.
        let internet = OneOf(&[libc::AF_INET as u32, libc::AF_INET6 as u32]);
        let protocol = OneOf(&[0, IPPROTO_TCP]);
        let streams = OneOf(STREAMS);
        let socket = [(0, internet), (1, streams), (2, protocol)];
        unless(libc::SYS_socket, &socket);
        calls.push((libc::SYS_connect, RefusalCase::Served));
    } else {
        calls.push((libc::SYS_socket, RefusalCase::Always));
    }
    if !rules.signals_stay_inside {
        let fcntl = vec![(1, NoneOf(SIGNALING))];
        calls.push((libc::SYS_fcntl, RefusalCase::Unless(fcntl)));
        calls.extend(SIGNALS.map(|number| (number, RefusalCase::Always)));
    }
    // Of an open file, too: a file that can only be read has an owner who can change it.
    let modes = [
        Some(libc::SYS_utimensat),
        Some(libc::SYS_fchmodat),
        Some(FCHMODAT2),
        Some(libc::SYS_fchmod),
        Some(libc::SYS_fchown),
        CHMOD,
    ];
    let modes = modes.into_iter().flatten();
    calls.extend(modes.map(|number| (number, RefusalCase::Served)));
    calls.push((libc::SYS_mmap, RefusalCase::ServedIfShared));
    // Its flags are in memory, where a filter cannot look. The C library then uses `clone`.
    calls.push((libc::SYS_clone3, RefusalCase::Unknown));
    // They tell what `/proc/mounts` does, which cannot be read.
    calls.extend([STATMOUNT, LISTMOUNT].map(|number| (number, RefusalCase::Unknown)));
    // In a pipe or a socket, a page of a file keeps all that was read or written with it, up to 2 MiB, also when the file is deleted.
    calls.extend(OF_FILES.map(|number| (number, RefusalCase::Unfit)));
    calls
}

/// Whether the kernel takes such filters.
pub(super) fn is_available() -> bool {
    const GET_ACTION: libc::c_uint = 2;
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the call reads one number at the address, which outlives it.
    let status = unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION, 0, &raw const action) };
    status == 0
}

/// Installs the filter for this process and all that it starts, and returns what hears of the calls that the launcher does.
/// `no_new_privs` must be set.
pub(super) fn install(rules: Rules) -> Result<OwnedFd, String> {
    const SET_FILTER: libc::c_uint = 1;
    let mut filter = program(rules);
    let length = u16::try_from(filter.len()).map_err(|_| "the filter is too long".to_owned())?;
    let program = sock_fprog {
        len: length,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program, whose address and length are those of a vector that outlives the call.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            SET_FILTER,
            // A signal does not break off a call that the launcher has heard of.
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            &raw const program,
        )
    };
    match i32::try_from(listener) {
        // SAFETY: the call has made this descriptor, and nothing else owns it.
        Ok(listener) if listener >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(listener) }),
        _ => Err(format!("seccomp: {}", io::Error::last_os_error())),
    }
}

/// The filter as the kernel's program.
fn program(rules: Rules) -> Vec<sock_filter> {
    let mut program = vec![
        load(ARCH),
        jump(BPF_JEQ, ARCHITECTURE, 1, 0),
        return_statement(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(BPF_JGE, OTHER_ABI, 0, 1),
        return_statement(libc::SECCOMP_RET_KILL_PROCESS),
    ];
    for (number, refused) in calls(rules) {
        let body = call_filter(&refused);
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let length = u8::try_from(body.len()).unwrap_or(u8::MAX);
        program.push(jump(BPF_JEQ, number, 0, length));
        program.extend(body);
    }
    program.push(return_statement(libc::SECCOMP_RET_ALLOW));
    program
}

/// What is done for one call. It never falls through.
fn call_filter(refused: &RefusalCase) -> Vec<sock_filter> {
    let arguments = match refused {
        RefusalCase::Always => return vec![return_statement(error_action(libc::EPERM))],
        RefusalCase::Unknown => return vec![return_statement(error_action(libc::ENOSYS))],
        RefusalCase::Unsupported => return vec![return_statement(error_action(libc::EOPNOTSUPP))],
        RefusalCase::Unfit => return vec![return_statement(error_action(libc::EINVAL))],
        RefusalCase::Served => return vec![return_statement(libc::SECCOMP_RET_USER_NOTIF)],
        RefusalCase::ServedIfShared => {
            return vec![
                load(ARGUMENTS + 8 * 3),
                statement(BPF_ALU | BPF_AND | BPF_K, MAPPING_KIND),
                jump(BPF_JEQ, SHARED_MEMORY, 0, 1),
                return_statement(libc::SECCOMP_RET_USER_NOTIF),
                return_statement(libc::SECCOMP_RET_ALLOW),
            ];
        }
        RefusalCase::Unless(arguments) => arguments,
    };
    let mut body = Vec::new();
    for (argument, is) in arguments {
        let low = ARGUMENTS + 8 * argument;
        match is {
            OneOf(values) => {
                body.push(load(low));
                for (at, value) in values.iter().enumerate() {
                    // Over the values that follow and the refusal.
                    let over = u8::try_from(values.len() - at).unwrap_or(u8::MAX);
                    body.push(jump(BPF_JEQ, *value, over, 0));
                }
                body.push(return_statement(error_action(libc::EPERM)));
            }
            NoneOf(values) => {
                body.push(load(low));
                for value in *values {
                    body.push(jump(BPF_JEQ, *value, 0, 1));
                    body.push(return_statement(error_action(libc::EPERM)));
                }
            }
            Without(bits) => {
                body.push(load(low));
                body.push(statement(BPF_ALU | BPF_AND | BPF_K, *bits));
                body.push(jump(BPF_JEQ, 0, 1, 0));
                body.push(return_statement(error_action(libc::EPERM)));
            }
            NotAlone(first, second) => {
                body.push(load(low));
                body.push(statement(BPF_ALU | BPF_AND | BPF_K, first | second));
                body.push(jump(BPF_JEQ, *first, 0, 1));
                body.push(return_statement(error_action(libc::EPERM)));
            }
        }
    }
    body.push(return_statement(libc::SECCOMP_RET_ALLOW));
    body
}

fn error_action(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number.unsigned_abs()
}

fn load(offset: u32) -> sock_filter {
    statement(BPF_LD | BPF_W | BPF_ABS, offset)
}

fn return_statement(action: u32) -> sock_filter {
    statement(BPF_RET | BPF_K, action)
}

fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt: 0,
        jf: 0,
        k,
    }
}

/// Jumps over `jt` statements if the condition holds, otherwise over `jf`.
fn jump(condition: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        jt,
        jf,
        ..statement(BPF_JMP | condition | BPF_K, k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const KILLED: u32 = libc::SECCOMP_RET_KILL_PROCESS;
    const CLOSED: Rules = Rules {
        network: false,
        signals_stay_inside: true,
    };
    const OPEN: Rules = Rules {
        network: true,
        signals_stay_inside: true,
    };

    /// Runs a filter as the kernel does.
    fn verdict(rules: Rules, arch: u32, number: c_long, arguments: [u64; 6]) -> u32 {
        let mut words = vec![u32::try_from(number).unwrap(), arch, 0, 0];
        for argument in arguments {
            words.extend([argument as u32, (argument >> 32) as u32]);
        }
        let program = program(rules);
        let (mut at, mut value) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            let code = u32::from(step.code);
            let jump = |holds| usize::from(if holds { step.jt } else { step.jf });
            if code == BPF_LD | BPF_W | BPF_ABS {
                value = words[step.k as usize / 4];
            } else if code == BPF_ALU | BPF_AND | BPF_K {
                value &= step.k;
            } else if code == BPF_JMP | BPF_JEQ | BPF_K {
                at += jump(value == step.k);
            } else if code == BPF_JMP | BPF_JGE | BPF_K {
                at += jump(value >= step.k);
            } else {
                assert_eq!(code, BPF_RET | BPF_K);
                return step.k;
            }
        }
    }

    fn call(rules: Rules, number: c_long, arguments: &[u64]) -> u32 {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        verdict(rules, ARCHITECTURE, number, all)
    }

    #[test]
    fn ordinary_calls_are_allowed() {
        for number in [
            libc::SYS_read,
            libc::SYS_openat,
            libc::SYS_execve,
            libc::SYS_mmap,
            libc::SYS_fsync,
            libc::SYS_kill,
            libc::SYS_pipe2,
            libc::SYS_wait4,
        ] {
            assert_eq!(call(CLOSED, number, &[]), ALLOWED, "{number}");
        }
    }

    #[test]
    fn every_listed_system_call_is_refused() {
        for number in NEVER.iter().chain(NEVER_HERE) {
            for rules in [CLOSED, OPEN] {
                let got = call(rules, *number, &[0; 6]);
                assert_eq!(got, error_action(libc::EPERM), "{number}");
            }
        }
        for number in ATTRIBUTES {
            let got = call(OPEN, *number, &[0; 6]);
            assert_eq!(got, error_action(libc::EOPNOTSUPP), "{number}");
        }
        for number in OF_FILES {
            let got = call(OPEN, number, &[]);
            assert_eq!(got, error_action(libc::EINVAL), "{number}");
        }
        for number in [libc::SYS_clone3, STATMOUNT, LISTMOUNT] {
            assert_eq!(
                call(OPEN, number, &[]),
                error_action(libc::ENOSYS),
                "{number}"
            );
        }
    }

    #[test]
    fn another_abi_ends_the_process() {
        let arguments = [0; 6];
        let i386 = 0x4000_0003;
        assert_eq!(verdict(CLOSED, i386, libc::SYS_read, arguments), KILLED);
        let x32 = c_long::from(OTHER_ABI) | libc::SYS_read;
        assert_eq!(verdict(CLOSED, ARCHITECTURE, x32, arguments), KILLED);
    }

    #[test]
    fn sockets_need_the_network_and_are_of_tcp() {
        let socket = |rules, domain: i32, kind: i32, protocol: u64| {
            let arguments = [domain as u64, kind as u64, protocol];
            call(rules, libc::SYS_socket, &arguments) == ALLOWED
        };
        let (inet, unix) = (libc::AF_INET, libc::AF_UNIX);
        let stream = libc::SOCK_STREAM;
        for domain in [inet, libc::AF_INET6, unix, libc::AF_NETLINK] {
            assert!(!socket(CLOSED, domain, stream, 0), "{domain}");
        }
        assert!(socket(OPEN, inet, stream | libc::SOCK_CLOEXEC, 0));
        assert!(socket(OPEN, libc::AF_INET6, stream, 6));
        for (kind, protocol) in [
            (libc::SOCK_DGRAM, 0),
            (libc::SOCK_DGRAM, 17),
            (libc::SOCK_RAW, 6),
        ] {
            assert!(!socket(OPEN, inet, kind, protocol), "{kind} {protocol}");
        }
        for domain in [unix, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, 43] {
            assert!(!socket(OPEN, domain, stream, 0), "{domain}");
        }
        // MPTCP, SMC, SCTP, UDP and UDP-Lite.
        for protocol in [262, 256, 132, 17, 136] {
            assert!(!socket(OPEN, inet, stream, protocol), "{protocol}");
        }
        // The kernel looks at the low half alone.
        let high = 1 << 32;
        assert!(!socket(CLOSED, inet, stream, high));
        let arguments = [high | 1, 0, 0];
        assert_ne!(call(OPEN, libc::SYS_socket, &arguments), ALLOWED);
        let pair = |domain, kind| call(OPEN, libc::SYS_socketpair, &[domain, kind]) == ALLOWED;
        for kind in [1, 0x8_0001, 0x8_0805] {
            assert!(pair(1, kind), "{kind:x}");
        }
        for (domain, kind) in [(2, 1), (1, 2), (1, 0x8_0002), (1, 0x802), (1, 3)] {
            assert!(!pair(domain, kind), "{domain} {kind:x}");
        }
        let connect = |rules| call(rules, libc::SYS_connect, &[3, 0, 16]);
        assert_eq!(connect(OPEN), libc::SECCOMP_RET_USER_NOTIF);
        let option =
            |level, number| call(OPEN, libc::SYS_setsockopt, &[3, level, number]) == ALLOWED;
        // TCP_NODELAY, SO_KEEPALIVE and IPV6_V6ONLY; IP_OPTIONS, by which a packet takes another way.
        assert!(option(6, 1) && option(1, 9) && option(41, 26) && !option(0, 4));
        for (level, number) in [(6, 31), (1, 25), (1, 62), (1, 7), (1, 60)] {
            assert!(!option(level, number), "{level} {number}");
        }
        let fast = u64::from(MSG_FASTOPEN);
        assert_ne!(call(OPEN, libc::SYS_sendto, &[3, 0, 0, fast]), ALLOWED);
        assert_eq!(call(OPEN, libc::SYS_sendto, &[3, 0, 0, 0x4000]), ALLOWED);
    }

    #[test]
    fn other_processes_keep_their_limits() {
        for number in [libc::SYS_prlimit64, libc::SYS_sched_setaffinity] {
            assert_eq!(call(CLOSED, number, &[0]), ALLOWED);
            assert_ne!(call(CLOSED, number, &[1234]), ALLOWED);
        }
        let setpriority = |which, who| call(CLOSED, libc::SYS_setpriority, &[which, who]);
        assert_eq!(setpriority(0, 0), ALLOWED);
        for (which, who) in [(0, 7), (1, 0), (2, 0)] {
            assert_ne!(setpriority(which, who), ALLOWED, "{which} {who}");
        }
    }

    #[test]
    fn modes_owners_and_times_are_served() {
        for number in [
            libc::SYS_utimensat,
            libc::SYS_fchmodat,
            FCHMODAT2,
            libc::SYS_fchmod,
            libc::SYS_fchown,
        ] {
            let got = call(CLOSED, number, &[]);
            assert_eq!(got, libc::SECCOMP_RET_USER_NOTIF, "{number}");
        }
    }

    #[test]
    fn only_known_ioctls_are_made() {
        let ioctl = |request| call(CLOSED, libc::SYS_ioctl, &[3, request]);
        // Terminals; flags and versions of inodes; verity; folders and receipts of Btrfs; FAT; keys; owners of sockets; numbers that
        // no kernel has yet.
        for request in [
            0x5412,
            0x541C,
            0x4008_6602,
            0x4004_6602,
            0x401C_5820,
            0x4008_7602,
            0x4008_6604,
            0x4080_6685,
            0x5000_940E,
            0xC0C8_9425,
            0x4004_7211,
            0xC050_6617,
            0x8901,
            0xC0FF_EE00,
            // The low half is the number.
            0xFFFF_0000_0000_5412,
        ] {
            assert_eq!(ioctl(request), error_action(libc::EPERM), "{request:x}");
        }
        // Whether this is a terminal, FIONREAD and FICLONE.
        for request in [0x5401, 0x541B, 0x4004_9409, 0xFFFF_0000_0000_541B] {
            assert_eq!(ioctl(request), ALLOWED, "{request:x}");
        }
    }

    #[test]
    fn shared_memory_without_a_file_is_served() {
        let mmap = |flags| call(CLOSED, libc::SYS_mmap, &[0, 1 << 20, 3, flags, u64::MAX]);
        // MAP_SHARED, with MAP_ANONYMOUS, and MAP_NORESERVE, MAP_HUGETLB and MAP_POPULATE.
        for flags in [0x21, 0x4021, 0x4_0021, 0x8021, 0xFFFF_0000_0000_0021] {
            assert_eq!(mmap(flags), libc::SECCOMP_RET_USER_NOTIF, "{flags:x}");
        }
        // Private memory; files, which MAP_SHARED_VALIDATE is for as well.
        for flags in [0x22, 0x4022, 0x1, 0x2, 0x3, 0x8001] {
            assert_eq!(mmap(flags), ALLOWED, "{flags:x}");
        }
    }

    #[test]
    fn pages_stay_small_and_with_their_process() {
        let prctl = |operation| call(CLOSED, libc::SYS_prctl, &[operation, 0]);
        // PR_SET_THP_DISABLE; the kernel looks at the low half alone.
        for operation in [41, 0xFFFF_0000_0000_0029] {
            assert_eq!(prctl(operation), error_action(libc::EPERM), "{operation:x}");
        }
        // PR_SET_NAME and PR_GET_THP_DISABLE.
        for operation in [15, 42] {
            assert_eq!(prctl(operation), ALLOWED, "{operation}");
        }
        let vmsplice = call(CLOSED, libc::SYS_vmsplice, &[1, 0, 0, 0]);
        assert_eq!(vmsplice, error_action(libc::EPERM));
    }

    #[test]
    fn threads_and_forks_are_no_namespaces() {
        let clone = |flags: i32| call(CLOSED, libc::SYS_clone, &[flags as u32 as u64]);
        assert_eq!(clone(libc::SIGCHLD), ALLOWED);
        let thread = libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
        assert_eq!(clone(thread | libc::CLONE_FILES), ALLOWED);
        // With open files of its own.
        assert_eq!(clone(thread), error_action(libc::EPERM));
        let close_range = |flags| call(CLOSED, libc::SYS_close_range, &[3, 9, flags]);
        // CLOSE_RANGE_CLOEXEC and CLOSE_RANGE_UNSHARE.
        assert_eq!(close_range(4), ALLOWED);
        for flags in [2, 6] {
            assert_eq!(close_range(flags), error_action(libc::EPERM), "{flags}");
        }
        for flag in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
            0x80,
        ] {
            assert_eq!(
                clone(flag | libc::SIGCHLD),
                error_action(libc::EPERM),
                "{flag:x}"
            );
        }
    }

    #[test]
    fn without_landlocks_scope_no_signal_is_sent() {
        let rules = Rules {
            signals_stay_inside: false,
            ..CLOSED
        };
        for number in SIGNALS {
            assert_ne!(call(rules, number, &[1, 9]), ALLOWED, "{number}");
            assert_eq!(call(CLOSED, number, &[1, 9]), ALLOWED, "{number}");
        }
        let fcntl = |operation| call(rules, libc::SYS_fcntl, &[3, operation]) == ALLOWED;
        assert!(fcntl(2) && !fcntl(8) && !fcntl(15));
    }
}
