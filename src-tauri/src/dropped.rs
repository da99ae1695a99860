//! What was dropped onto the chat window last: the only files that its page can read.

use crate::lock;
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Mutex,
};
use tauri::{DragDropEvent, Manager, WebviewWindow, WindowEvent};
use tierbar_core::units::file_size;
use tierbar_host::named;

/// As large as the largest file that a chat takes: a document, of which the text is sent.
const MOST_BYTES: u64 = 32 << 20;

#[derive(Default)]
pub(crate) struct DroppedPaths(Mutex<Vec<PathBuf>>);

impl DroppedPaths {
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let mut paths = lock(&self.0).clone();
        paths.retain(|path| path.is_dir());
        paths
    }

    /// Returns the path again if it was dropped.
    pub(crate) fn find(&self, path: &Path) -> Option<PathBuf> {
        let paths = lock(&self.0);
        paths.iter().find(|dropped| *dropped == path).cloned()
    }

    fn replace(&self, paths: &[PathBuf]) {
        *lock(&self.0) = paths.to_vec();
    }
}

/// Remembers what is dropped onto a window.
pub(crate) fn follow(window: &WebviewWindow) {
    let app = window.app_handle().clone();
    window.on_window_event(move |event| {
        if let WindowEvent::DragDrop(DragDropEvent::Drop { paths, .. }) = event {
            app.state::<DroppedPaths>().replace(paths);
        }
    });
}

/// Reads a file for a chat.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    let unread = |error: io::Error| format!("{name} can’t be read: {error}");
    // Before it is opened, which waits for the other end of a pipe.
    if !fs::metadata(path).map_err(unread)?.is_file() {
        return Err(format!("{name} is not a file."));
    }
    let mut file = named::open(path).map_err(|error| error.message)?;
    let mut data = Vec::new();
    let read = (&mut file).take(MOST_BYTES + 1).read_to_end(&mut data);
    if read.map_err(unread)? as u64 > MOST_BYTES {
        let size = file_size(file.metadata().map_err(unread)?.len());
        let most = file_size(MOST_BYTES);
        return Err(format!("{name} has {size}; at most {most} are sent."));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_the_last_dropped_files_are_found() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = folder.join("Cargo.toml");
        let dropped = DroppedPaths::default();
        assert_eq!(dropped.find(&file), None);
        dropped.replace(&[file.clone(), folder.to_owned()]);
        assert_eq!(dropped.folders(), [folder]);
        let found = dropped.find(&file).unwrap();
        assert!(read(&found).unwrap().starts_with(b"["));
        let refused = read(folder).unwrap_err();
        assert!(refused.ends_with(" is not a file."), "{refused}");
        dropped.replace(&[]);
        assert_eq!(dropped.find(&file), None);
    }
    #[test]
    fn a_dropped_link_to_tierbars_data_is_not_read() {
        let root = std::env::temp_dir().join(format!("tierbar-dropped-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        for name in ["tierbar.db", "token"] {
            fs::write(root.join(name), "secret").unwrap();
        }
        let link = root.with_extension("md");
        symlink(root.join("token"), &link).unwrap();
        let refused = read(&link).unwrap_err();
        assert!(refused.contains("own data"), "{refused}");
        fs::remove_file(root.join("tierbar.db")).unwrap();
        assert_eq!(read(&link).unwrap(), b"secret");
        let large = fs::File::options().write(true).open(&link).unwrap();
        large.set_len(MOST_BYTES + 1).unwrap();
        let refused = read(&link).unwrap_err();
        assert!(refused.ends_with(" are sent."), "{refused}");
        fs::remove_file(&link).unwrap();
        fs::remove_dir_all(&root).unwrap();
    }
}
