//! Temporary folders of commands and programs.

use crate::platform;
use std::{fs::Permissions, io, os::unix::fs::PermissionsExt};
use tempfile::{Builder, TempDir};

/// Creates a folder by its real path, on a disk if there is one, that this user alone can open.
///
/// # Errors
/// Those of the system.
pub fn create_temporary_folder(prefix: &str) -> io::Result<TempDir> {
    // Symbolic links in its path would lead out of what a command may read.
    let around = platform::temporary_folder().canonicalize()?;
    Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(around)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_user_opens_a_temporary_folder() {
        let folder = create_temporary_folder("tierbar-test-").unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        assert_eq!(folder.path().canonicalize().unwrap(), folder.path());
    }
}
