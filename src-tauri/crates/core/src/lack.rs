//! What this computer lacks, which is not the fault of what it was needed for: a server, a model, a file.

use crate::{Code, Error};
use std::{error, io, iter};

/// This process, or all together, have as many files and connections open as they may; on Linux and on macOS.
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// Returns what this computer lacked, if that is what an error comes from.
pub fn own_lack(error: &(dyn error::Error + 'static)) -> Option<Error> {
    iter::successors(Some(error), |error| error.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .find_map(lack_of_io)
}

fn lack_of_io(error: &io::Error) -> Option<Error> {
    use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull};
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
        ] {
            let lack = own_lack(&ConnectError(io::Error::from_raw_os_error(errno)));
            assert_eq!(lack.unwrap().code, code, "{errno}");
        }
        for kind in [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::NotFound,
            io::ErrorKind::UnexpectedEof,
        ] {
            assert_eq!(own_lack(&ConnectError(kind.into())), None, "{kind}");
        }
    }
}
