//! Connections of a command with the network, which the launcher makes in its place: to the launcher's proxy, and to nothing else.
//!
//! A rule of Landlock names a port of all addresses, and a filter cannot look at an address, which is in memory and may change
//! meanwhile. So the kernel hands each `connect` to the launcher, which takes the command's very socket and connects that to the address
//! of the proxy, its own. What the command has asked for only decides whether it is done.

use super::modes::{low_int, memory_of};
use libc::seccomp_notif;
use rustix::{
    io::Errno,
    net::connect,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::fs::FileExt,
};

/// The sizes of the kernel's addresses of IPv4 and IPv6.
const V4_BYTES: usize = 16;
const V6_BYTES: usize = 28;

/// Connects a socket of the process that made the call to the proxy at this port, if that is what it wants.
pub(super) fn perform(
    call: &seccomp_notif,
    proxy: u16,
    is_waiting: impl Fn() -> bool,
) -> Result<(), Errno> {
    let [socket, address, length, ..] = call.data.args;
    let mut bytes = [0; V6_BYTES];
    // The kernel takes the low half, and reads no more than its own form.
    let length = usize::try_from(low_int(length)).map_err(|_| Errno::INVAL)?;
    let given = &mut bytes[..length.min(V6_BYTES)];
    memory_of(call)?
        .read_exact_at(given, address)
        .map_err(|_| Errno::FAULT)?;
    let wanted = read_address(given).ok_or(Errno::ACCESS)?;
    let is_proxy = wanted.ip().to_canonical() == IpAddr::V4(Ipv4Addr::LOCALHOST);
    if !is_proxy || wanted.port() != proxy {
        return Err(Errno::ACCESS);
    }
    let process = pidfd_open(process_of(call.pid)?, PidfdFlags::empty())?;
    let socket = pidfd_getfd(&process, low_int(socket), PidfdGetfdFlags::empty())?;
    // Only now is it certain that the number was still that process's.
    if !is_waiting() {
        return Err(Errno::SRCH);
    }
    let ip: IpAddr = match wanted {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv4Addr::LOCALHOST.to_ipv6_mapped().into(),
    };
    connect(&socket, &SocketAddr::new(ip, proxy))
}

/// Reads an address in the kernel's form; `None` for one that is not of IPv4 or IPv6.
fn read_address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    let ip: IpAddr = match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET if bytes.len() >= V4_BYTES => {
            Ipv4Addr::from(*rest.first_chunk::<4>()?).into()
        }
        // The flow's number comes first.
        libc::AF_INET6 if bytes.len() >= V6_BYTES => {
            Ipv6Addr::from(*rest.get(4..)?.first_chunk::<16>()?).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

/// The process that a thread belongs to.
fn process_of(thread: u32) -> Result<Pid, Errno> {
    let status = fs::read_to_string(format!("/proc/{thread}/status"));
    let status = status.map_err(|_| Errno::SRCH)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.and_then(Pid::from_raw).ok_or(Errno::SRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_the_kernels_form() {
        let v4 = |family: i32| {
            let mut bytes = vec![0; V4_BYTES];
            bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
            bytes[2..8].copy_from_slice(&[0x11, 0x5C, 127, 0, 0, 1]);
            bytes
        };
        let expected = "127.0.0.1:4444".parse().unwrap();
        assert_eq!(read_address(&v4(libc::AF_INET)), Some(expected));
        assert_eq!(read_address(&v4(libc::AF_INET)[..15]), None);
        for family in [libc::AF_UNSPEC, libc::AF_UNIX, libc::AF_INET6] {
            assert_eq!(read_address(&v4(family)), None, "{family}");
        }
        let mut v6 = vec![0; V6_BYTES];
        v6[..4].copy_from_slice(&[libc::AF_INET6 as u8, 0, 0x11, 0x5C]);
        v6[23] = 1;
        let expected = "[::1]:4444".parse().unwrap();
        assert_eq!(read_address(&v6), Some(expected));
        assert_eq!(read_address(&[]), None);
    }

    #[test]
    fn a_thread_belongs_to_its_process() {
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
        let own = rustix::process::getpid();
        // It may have ended by now.
        let found = process_of(thread.join().unwrap() as u32);
        assert!(found == Ok(own) || found == Err(Errno::SRCH), "{found:?}");
        let this = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert_eq!(process_of(this), Ok(own));
    }
}
