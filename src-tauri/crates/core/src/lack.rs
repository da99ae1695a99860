//! What this computer lacks, which is not the fault of what it was needed for: a server, a model, a file.

use crate::{Code, Error};
use std::{error, io, iter};

/// This process, or all together, have as many files and connections open as they may; on Linux and on macOS.
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// A socket has no room for its buffers: on Linux, and on macOS. The other system has no such error of a socket.
const NO_BUFFERS: [i32; 2] = [105, 55];

/// Returns what this computer lacked, if that is what an error comes from.
pub fn own_lack(error: &(dyn error::Error + 'static)) -> Option<Error> {
    iter::successors(Some(error), |error| error.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .find_map(lack_of_io)
}

/// Returns the same of the error of starting a process, which the system may refuse for how many there are.
pub fn own_lack_of_start(error: &io::Error) -> Option<Error> {
    if error.kind() != io::ErrorKind::WouldBlock {
        return own_lack(error);
    }
    let message = format!("this computer runs as many processes as the system allows ({error})");
    Some(Error::new(Code::Overloaded, message).hint("quit other programs, then try again"))
}

fn lack_of_io(error: &io::Error) -> Option<Error> {
    use io::ErrorKind::{AddrNotAvailable, OutOfMemory, QuotaExceeded, StorageFull};
    let is_too_many = |errno| TOO_MANY_OPEN.contains(&errno);
    let (code, what, hint) = match error.kind() {
        StorageFull | QuotaExceeded => (
            Code::Storage,
            "a disk of this computer is full",
            "free up space, then try again",
        ),
        OutOfMemory => (
            Code::Overloaded,
            "this computer has no memory left",
            "quit other programs, then try again",
        ),
        _ if error.raw_os_error().is_some_and(is_too_many) => (
            Code::Overloaded,
            "this computer has as many files and connections open as the system allows",
            "try again when fewer requests are running",
        ),
        // Of a connection to elsewhere: its own end has no port.
        AddrNotAvailable => (
            Code::Overloaded,
            "this computer has no port left for a connection",
            "try again when fewer requests are running",
        ),
        _ if error
            .raw_os_error()
            .is_some_and(|errno| NO_BUFFERS.contains(&errno)) =>
        {
            (
                Code::Overloaded,
                "this computer has no memory left for connections",
                "try again when fewer requests are running",
            )
        }
        _ => return None,
    };
    Some(Error::new(code, format!("{what} ({error})")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot connect")]
    struct ConnectError(#[source] io::Error);

    #[test]
    fn what_is_lacking_here_is_known_by_its_cause() {
        // Linux and macOS have the same numbers for these.
        for (errno, code) in [
            (24, Code::Overloaded),
            (23, Code::Overloaded),
            (12, Code::Overloaded),
            (28, Code::Storage),
            (NO_BUFFERS[0], Code::Overloaded),
        ] {
            let lack = own_lack(&ConnectError(io::Error::from_raw_os_error(errno)));
            assert_eq!(lack.unwrap().code, code, "{errno}");
        }
        let no_port = own_lack(&ConnectError(io::ErrorKind::AddrNotAvailable.into()));
        assert_eq!(no_port.unwrap().code, Code::Overloaded);
        for kind in [
            io::ErrorKind::WouldBlock,
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::NotFound,
            io::ErrorKind::UnexpectedEof,
        ] {
            assert_eq!(own_lack(&ConnectError(kind.into())), None, "{kind}");
        }
    }

    #[test]
    fn a_process_that_is_one_too_many_is_lacking_here() {
        let too_many = own_lack_of_start(&io::ErrorKind::WouldBlock.into()).unwrap();
        assert_eq!(too_many.code, Code::Overloaded);
        let full = own_lack_of_start(&io::ErrorKind::StorageFull.into()).unwrap();
        assert_eq!(full.code, Code::Storage);
        assert_eq!(own_lack_of_start(&io::ErrorKind::NotFound.into()), None);
    }
}
