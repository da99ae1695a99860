use std::{
    fs::{File, Metadata},
    os::macos::fs::MetadataExt,
    path::Path,
};
use trash::{
    TrashContext,
    macos::{DeleteMethod, TrashContextExtMacos},
};

/// One stream of events covers everything below a folder.
pub(crate) const WATCHES_TREES: bool = true;

/// Keeps what is read of the file out of the file cache. A file system that cannot do it reads as ever.
pub(crate) fn uncached(file: &File) {
    let _ = rustix::fs::fcntl_nocache(file, true);
}

/// [`uncached`] has kept it out already.
pub(crate) fn spare_cache(_file: &File, _offset: u64, _length: u64) {}

/// `st_flags`.
pub(crate) fn flags(metadata: &Metadata) -> u32 {
    metadata.st_flags()
}

/// # Errors
/// Why the file stays where it is, such as a volume without a Trash.
pub(crate) fn to_trash(path: &Path) -> Result<(), String> {
    let mut trash = TrashContext::new();
    // The other way asks the Finder by a script, for which macOS asks the user.
    trash.set_delete_method(DeleteMethod::NsFileManager);
    trash.delete(path).map_err(|error| error.to_string())
}
