//! Why the system does not let something be read, in words.

use crate::platform;
use rustix::io::Errno;
use std::io;

/// Returns the reason for a sentence such as `X cannot be read: …`. On macOS, privacy settings deny what permissions allow.
pub fn reason(error: &io::Error) -> String {
    reason_with(error, platform::PRIVACY)
}

fn reason_with(error: &io::Error, privacy: Option<&str>) -> String {
    // Permissions refuse with EACCES.
    let is_private = error.raw_os_error() == Some(Errno::PERM.raw_os_error());
    match privacy {
        Some(privacy) if is_private => privacy.to_owned(),
        _ if error.kind() == io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_privacy_settings_deny_is_not_what_permissions_do() {
        let privacy = Some("System Settings");
        for (errno, on_linux, on_mac) in [
            (Errno::PERM, "permission denied", "System Settings"),
            (Errno::ACCESS, "permission denied", "permission denied"),
        ] {
            let error = io::Error::from(errno);
            assert_eq!(reason_with(&error, None), on_linux);
            assert_eq!(reason_with(&error, privacy), on_mac);
        }
        let error = io::Error::from(Errno::IO);
        assert!(reason_with(&error, privacy).starts_with("Input/output error"));
    }
}
