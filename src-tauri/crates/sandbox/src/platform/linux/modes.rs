//! Changes of modes and times, which Landlock does not restrict and many programs need: a linker makes its output executable, Git
//! and `cp -p` set modes and times. The kernel hands these calls to the launcher, outside of the sandbox, which opens the path or the
//! open file itself, looks where it has led, and changes that very file if the command may write there. The command's memory is read
//! once, so nothing can be exchanged in between.
//!
//! And connections ([`super::connect`]).
//!
//! And shared memory without a file, which the launcher counts as held from its mapping to the end of the command: a process can give up
//! its part, and the memory stays. What decides is in registers, so that the kernel goes on with the call that was looked at.
//!
//! Until the launcher has heard of a call, a signal can break it off, which programs do not expect of most: of `fork`, for one, after
//! which Debian's `sh` gives up. So the kernel hands over as few calls as possible.

use super::connect;
use libc::{seccomp_notif, seccomp_notif_resp};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, chmod, open, utimensat},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{IoSlice, IoSliceMut},
    mem::{self, MaybeUninit},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt, net::UnixStream},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The longest path, with its end.
const PATH_BYTES: usize = 4096;
/// Of the kernels here, in bytes.
const LARGEST_PAGE: u64 = 64 * 1024;
/// Has the kernel make the call itself.
const CONTINUE: u32 = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;

/// Sends the filter's listener to the launcher.
pub(super) fn hand_over(listener: &OwnedFd, launcher: impl AsFd) -> Result<(), String> {
    let descriptors = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(
        launcher,
        &[IoSlice::new(b"x")],
        &mut control,
        SendFlags::empty(),
    );
    sent.map(drop)
        .map_err(|error| format!("the launcher cannot be reached: {error}"))
}

/// Receives the listener of a command, and answers its calls until the launcher ends. `places`: where the command may write, without
/// symbolic links. `shared`: how much shared memory it has mapped, in bytes, and `most`, how much it may. `proxy`: the port that it may
/// connect to.
pub(crate) fn serve(
    command: &UnixStream,
    places: &[PathBuf],
    shared: &AtomicU64,
    most: u64,
    proxy: Option<u16>,
) {
    let Some(listener) = receive(command) else {
        return;
    };
    while let Some(call) = receive_call(&listener) {
        let is_waiting = || is_waiting(&listener, call.id);
        let result = match i64::from(call.data.nr) {
            libc::SYS_mmap => share(call.data.args[1], shared, most).map(|()| CONTINUE),
            libc::SYS_connect => {
                let proxy = proxy.ok_or(Errno::ACCESS);
                let done = proxy.and_then(|port| connect::perform(&call, port, is_waiting));
                done.map(|()| 0)
            }
            _ => perform(&call, places, is_waiting).map(|()| 0),
        };
        answer(&listener, call.id, result);
    }
}

/// Counts a mapping of so many bytes, if it may still be made.
fn share(bytes: u64, shared: &AtomicU64, most: u64) -> Result<(), Errno> {
    let bytes = bytes.checked_next_multiple_of(LARGEST_PAGE);
    let bytes = bytes.ok_or(Errno::NOMEM)?;
    let add = |now: u64| now.checked_add(bytes).filter(|sum| *sum <= most);
    let added = shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    added.map(drop).map_err(|_| Errno::NOMEM)
}

fn receive(command: &UnixStream) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(command, &mut bytes, &mut control, flags).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}

/// Waits for a call; `None` once there can be no more.
fn receive_call(listener: &OwnedFd) -> Option<seccomp_notif> {
    loop {
        // The call below would return at once, again and again, when nothing is left that the filter holds.
        let mut waiting = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) if waiting[0].revents().contains(PollFlags::IN) => {}
            Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => return None,
        }
        // SAFETY: the struct is plain integers, for which all zeroes is a value; the kernel wants them so.
        let mut call: seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the call writes one `seccomp_notif`.
        if unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } {
            return Some(call);
        }
        let error = std::io::Error::last_os_error().raw_os_error();
        // Its process was killed before it was heard.
        if !matches!(error, Some(libc::EINTR | libc::ENOENT)) {
            return None;
        }
    }
}

/// Whether the process that made the call still waits, so that what was read of it is its own.
fn is_waiting(listener: &OwnedFd, mut id: u64) -> bool {
    // SAFETY: the call reads one number.
    unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw mut id) }
}

/// `result`: the flags of a success.
fn answer(listener: &OwnedFd, id: u64, result: Result<u32, Errno>) {
    let mut response = seccomp_notif_resp {
        id,
        val: 0,
        error: result.map_or_else(|error| -error.raw_os_error(), |_| 0),
        flags: result.unwrap_or(0),
    };
    // SAFETY: the call reads one `seccomp_notif_resp`.
    let _is_there = unsafe { control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) };
}

/// Makes a request about a call; `false` if it failed.
///
/// # Safety
/// The request must be for a value of this type.
unsafe fn control<T>(listener: &OwnedFd, request: libc::Ioctl, value: *mut T) -> bool {
    // SAFETY: as the caller says; the value outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), request, value) == 0 }
}

/// What a call wants changed.
enum Change {
    Mode(Mode),
    Times(Timestamps),
    /// To a user and a group; all ones keep it.
    Owner(u32, u32),
}

fn perform(
    call: &seccomp_notif,
    places: &[PathBuf],
    is_waiting: impl Fn() -> bool,
) -> Result<(), Errno> {
    let [first, second, third, fourth, ..] = call.data.args;
    let number = i64::from(call.data.nr);
    // The folder, the path, what is changed, and the flags. An open file is a folder with an empty path.
    let (folder, path, changed, flags) = match number {
        // Its address is null.
        libc::SYS_utimensat if second == 0 => (low_int(first), None, third, libc::AT_EMPTY_PATH),
        libc::SYS_fchmod | libc::SYS_fchown => (low_int(first), None, second, libc::AT_EMPTY_PATH),
        super::filter::FCHMODAT2 | libc::SYS_utimensat => {
            (low_int(first), Some(second), third, low_int(fourth))
        }
        libc::SYS_fchmodat => (low_int(first), Some(second), third, 0),
        number if Some(number) == super::filter::CHMOD => (libc::AT_FDCWD, Some(first), second, 0),
        _ => return Err(Errno::NOSYS),
    };
    let pid = call.pid;
    let memory = memory_of(call)?;
    let path = match path {
        Some(address) => read_path(&memory, address)?,
        // The working folder is no open file.
        None if folder == libc::AT_FDCWD => return Err(Errno::FAULT),
        None => PathBuf::new(),
    };
    let change = if number == libc::SYS_utimensat {
        Change::Times(read_times(&memory, changed)?)
    } else if number == libc::SYS_fchown {
        Change::Owner(low_int(changed) as u32, low_int(third) as u32)
    } else {
        // The right to be another user is never given.
        let mode = u32::try_from(changed & 0o7777).unwrap_or(0);
        if mode & 0o6000 != 0 {
            return Err(Errno::PERM);
        }
        Change::Mode(Mode::from_raw_mode(mode))
    };
    let from = match folder {
        libc::AT_FDCWD => format!("/proc/{pid}/cwd"),
        folder => format!("/proc/{pid}/fd/{folder}"),
    };
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    let target = target(
        Path::new(&from),
        &path,
        follow,
        flags & libc::AT_EMPTY_PATH != 0,
    )?;
    if !is_waiting() {
        return Err(Errno::SRCH);
    }
    // By its number: whatever now has the path, this is the file that was looked at.
    let exactly = format!("/proc/self/fd/{}", target.as_raw_fd());
    let place = fs::read_link(&exactly).map_err(|_| Errno::PERM)?;
    if !places.iter().any(|allowed| place.starts_with(allowed)) {
        return Err(Errno::PERM);
    }
    match change {
        Change::Mode(mode) => chmod(&exactly, mode),
        Change::Times(times) => utimensat(rustix::fs::CWD, &exactly, &times, AtFlags::empty()),
        // An owner is never changed. `cp -p` of root asks for the one that the file has.
        Change::Owner(user, group) => {
            let stat = rustix::fs::fstat(&target)?;
            let stays = |wanted: u32, has: u32| wanted == u32::MAX || wanted == has;
            if stays(user, stat.st_uid) && stays(group, stat.st_gid) {
                Ok(())
            } else {
                Err(Errno::PERM)
            }
        }
    }
}

/// The memory of the process that made a call.
pub(super) fn memory_of(call: &seccomp_notif) -> Result<File, Errno> {
    File::open(format!("/proc/{}/mem", call.pid)).map_err(|_| Errno::PERM)
}

/// An `int` in a register.
pub(super) fn low_int(argument: u64) -> i32 {
    argument as u32 as i32
}

fn target(from: &Path, path: &Path, follow: bool, may_be_empty: bool) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    let path = if path.as_os_str().is_empty() {
        if !may_be_empty {
            return Err(Errno::NOENT);
        }
        from.to_owned()
    } else {
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        // An absolute path replaces the folder.
        from.join(path)
    };
    let target = open(&path, flags, Mode::empty())?;
    // What changes a link itself changes nothing that is used.
    let stat = rustix::fs::fstat(&target)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink {
        return Err(Errno::OPNOTSUPP);
    }
    Ok(target)
}

/// Reads a path of a process up to its NUL, which may be near the end of what is mapped.
fn read_path(memory: &File, address: u64) -> Result<PathBuf, Errno> {
    let mut bytes = Vec::new();
    while bytes.len() < PATH_BYTES {
        let at = address
            .checked_add(bytes.len() as u64)
            .ok_or(Errno::FAULT)?;
        // Not beyond a page.
        let size = 256 - usize::try_from(at % 256).unwrap_or(0);
        let mut piece = [0; 256];
        let count = memory.read_at(&mut piece[..size], at);
        let count = count.map_err(|_| Errno::FAULT)?;
        if count == 0 {
            return Err(Errno::FAULT);
        }
        if let Some(end) = piece[..count].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return Ok(PathBuf::from(OsStr::from_bytes(&bytes)));
        }
        bytes.extend_from_slice(&piece[..count]);
    }
    Err(Errno::NAMETOOLONG)
}

fn read_times(memory: &File, address: u64) -> Result<Timestamps, Errno> {
    let mut numbers = [0, UTIME_NOW, 0, UTIME_NOW];
    if address != 0 {
        let mut bytes = [[0; 8]; 4];
        memory
            .read_exact_at(bytes.as_flattened_mut(), address)
            .map_err(|_| Errno::FAULT)?;
        numbers = bytes.map(i64::from_ne_bytes);
    }
    let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    Ok(Timestamps {
        last_access: time(numbers[0], numbers[1]),
        last_modification: time(numbers[2], numbers[3]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_counted_in_pages_up_to_its_limit() {
        let shared = AtomicU64::new(0);
        let most = 4 * LARGEST_PAGE;
        assert_eq!(share(1, &shared, most), Ok(()));
        assert_eq!(share(2 * LARGEST_PAGE, &shared, most), Ok(()));
        for refused in [LARGEST_PAGE + 1, u64::MAX, u64::MAX - LARGEST_PAGE] {
            assert_eq!(
                share(refused, &shared, most),
                Err(Errno::NOMEM),
                "{refused}"
            );
        }
        assert_eq!(share(LARGEST_PAGE, &shared, most), Ok(()));
        assert_eq!(shared.into_inner(), most);
    }
}
