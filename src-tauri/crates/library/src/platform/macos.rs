use std::{fs::Metadata, os::macos::fs::MetadataExt, path::Path};
use trash::{
    TrashContext,
    macos::{DeleteMethod, TrashContextExtMacos},
};

/// One stream of events covers everything below a folder.
pub(crate) const WATCHES_TREES: bool = true;

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
