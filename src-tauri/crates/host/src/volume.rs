//! Whether a volume has room for a download.

use std::{os::unix::fs::MetadataExt, path::Path};
use tierbar_core::{Code, Error, setup::FolderRoom, units::file_size, volume};

/// Above this, a solid-state disk has few free blocks, and swapping becomes slow.
const FULL_PERCENT: u64 = 80;

/// A volume, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) size: u64,
    /// The bytes that this user may still use.
    pub(crate) free: u64,
}

impl Volume {
    /// Reads the volume of the folder.
    ///
    /// # Errors
    /// `Storage`.
    pub(crate) fn of(folder: &Path) -> Result<Self, Error> {
        let shown = folder.display();
        let volume = rustix::fs::statvfs(folder).map_err(|error| {
            let message = format!("the models folder {shown} cannot be used: {error}");
            Error::new(Code::Storage, message).hint("create the folder, or connect its volume")
        })?;
        Ok(Self {
            size: volume.f_blocks.saturating_mul(volume.f_frsize),
            free: volume.f_bavail.saturating_mul(volume.f_frsize),
        })
    }

    /// Returns the room for downloads to a folder on it.
    ///
    /// # Errors
    /// `Storage` if the folder is gone.
    pub(crate) fn room(self, folder: &Path) -> Result<FolderRoom, Error> {
        let metadata = std::fs::metadata(folder)
            .map_err(|error| Error::new(Code::Storage, format!("{}: {error}", folder.display())))?;
        Ok(FolderRoom {
            path: folder.display().to_string(),
            disk: metadata.dev().to_string(),
            free_bytes: self.free,
            room_bytes: self.free.saturating_sub(volume::margin(self.size)),
        })
    }

    /// Checks the room for `bytes` more; returns a warning if the volume becomes nearly full.
    ///
    /// # Errors
    /// `Storage` with the figures if they do not fit beside the margin.
    pub(crate) fn take(self, folder: &Path, bytes: u64) -> Result<Option<String>, Error> {
        let margin = volume::margin(self.size);
        let wanted = bytes.saturating_add(margin);
        if self.free < wanted {
            let message = format!(
                "the download needs {} on the volume of {} and {} must stay free, but {} is free",
                file_size(bytes),
                folder.display(),
                file_size(margin),
                file_size(self.free)
            );
            return Err(Error::new(Code::Storage, message)
                .hint("free up space, choose a smaller quant, or set `models_dir` to a folder on another volume")
                .detail("needed_bytes", wanted)
                .detail("free_bytes", self.free));
        }
        let used = u128::from(self.size - self.free.min(self.size)) + u128::from(bytes);
        let percent = used * 100 / u128::from(self.size.max(1));
        Ok((percent > u128::from(FULL_PERCENT)).then(|| {
            format!(
                "the volume will be {percent} % full; above {FULL_PERCENT} % it slows down when memory is swapped to it"
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_full_volume_is_refused_and_a_tight_one_warned_of() {
        let folder = Path::new("/m");
        let room = Volume {
            size: 100 * GIB,
            free: 40 * GIB,
        };
        assert_eq!(room.take(folder, 20 * GIB), Ok(None));
        let warning = room.take(folder, 21 * GIB).unwrap().unwrap();
        assert!(warning.contains("81 % full"), "{warning}");
        assert!(room.take(folder, 39 * GIB).unwrap().is_some());
        let error = room.take(folder, 39 * GIB + 1).unwrap_err();
        assert_eq!(error.code, Code::Storage);
        assert!(error.message.contains("42.9 GB is free"), "{error}");
        let small = Volume {
            size: 10 * GIB,
            free: GIB,
        };
        assert!(small.take(folder, GIB / 2).is_ok());
        assert!(small.take(folder, GIB / 2 + 1).is_err());
        assert!(room.take(folder, u64::MAX).is_err());
    }

    #[test]
    fn a_missing_folder_is_reported() {
        let error = Volume::of(Path::new("/nonexistent/models")).unwrap_err();
        assert!(error.message.contains("/nonexistent/models"), "{error}");
        let room = Volume::of(&std::env::temp_dir()).unwrap();
        assert!(room.free <= room.size && room.size > 0);
        assert!(room.room(Path::new("/nonexistent/models")).is_err());
        let folder = room.room(&std::env::temp_dir()).unwrap();
        assert!(folder.room_bytes <= folder.free_bytes);
    }
}
