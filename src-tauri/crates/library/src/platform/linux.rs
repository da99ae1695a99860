use rustix::fs::{Access, access};
use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The system watches single folders.
pub(crate) const WATCHES_TREES: bool = false;

/// None: files have their content here.
pub(crate) fn flags(_: &fs::Metadata) -> u32 {
    0
}

/// # Errors
/// Why the file stays where it is, such as a volume without a Trash.
pub(crate) fn to_trash(path: &Path) -> Result<(), String> {
    // On a volume without one the library would copy the file, gigabytes, to the Trash in the home folder.
    if !same_volume(path) && !has_trash(&top_of_volume(path)) {
        return Err("its volume has no Trash, and none can be created".to_owned());
    }
    trash::delete(path).map_err(|error| error.to_string())
}

/// Returns whether the user's own Trash, freedesktop's `$XDG_DATA_HOME/Trash`, is on the file's volume.
fn same_volume(path: &Path) -> bool {
    let set = |name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")));
    let existing = |place: &Path| place.ancestors().find_map(device);
    data.is_some_and(|data| existing(&data).is_some_and(|home| folder_device(path) == Some(home)))
}

fn device(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.dev())
}

/// Of the folder that the name is in: a link is moved, not what it leads to.
fn folder_device(path: &Path) -> Option<u64> {
    path.parent().and_then(device)
}

/// Returns the topmost folder of the file's volume.
fn top_of_volume(path: &Path) -> PathBuf {
    let volume = folder_device(path);
    let folder = path.parent().unwrap_or(path);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    folder
        .ancestors()
        .take_while(|above| device(above) == volume)
        .last()
        .unwrap_or(&folder)
        .to_owned()
}

/// Freedesktop's Trash specification 1.0: `.Trash/$uid` or `.Trash-$uid`, which may be made.
fn has_trash(top: &Path) -> bool {
    let uid = rustix::process::getuid().as_raw();
    let usable = |folder: &Path| folder.is_dir() && access(folder, Access::WRITE_OK).is_ok();
    let own = top.join(format!(".Trash-{uid}"));
    usable(&top.join(".Trash").join(uid.to_string()))
        || usable(&own)
        || (!own.exists() && usable(top))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_has_a_trash_if_it_exists_or_can_be_created() {
        let top = tempfile::tempdir().unwrap();
        assert!(has_trash(top.path()));
        let uid = rustix::process::getuid().as_raw();
        let own = top.path().join(format!(".Trash-{uid}"));
        fs::write(&own, "in its way").unwrap();
        assert!(!has_trash(top.path()));
        fs::create_dir_all(top.path().join(format!(".Trash/{uid}"))).unwrap();
        assert!(has_trash(top.path()));
    }

    #[test]
    fn the_top_of_a_volume_is_its_mount_point() {
        assert_eq!(
            top_of_volume(Path::new("/proc/self/status")),
            Path::new("/proc")
        );
        assert!(!same_volume(Path::new("/proc/self/status")));
    }
}
