//! The list on the disk: JSON that only the user can read, replaced whole. No tokens, no signed URLs.

use super::entry::{Entry, EntryState};
use crate::blocking;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error};

const VERSION: u32 = 1;
/// Far more than the longest list.
const LARGEST: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct SavedQueue<Downloads> {
    version: u32,
    /// By age.
    downloads: Downloads,
}

/// The file, and what it held when it was last written.
#[derive(Debug)]
pub(super) struct StateFile {
    path: PathBuf,
    written: Vec<u8>,
}

impl StateFile {
    /// The list as it was left, and what the user should know about it.
    pub(super) fn open(path: PathBuf) -> (Self, Vec<Entry>, Option<String>) {
        let read = read_entries(&path);
        let file = Self {
            path,
            written: Vec::new(),
        };
        match read {
            Ok(entries) => (file, entries, None),
            Err(why) => {
                let mut bad = file.path.clone().into_os_string();
                bad.push(".bad");
                let kept = match fs::rename(&file.path, &bad) {
                    Ok(()) => format!("it is kept as {}", Path::new(&bad).display()),
                    Err(error) => format!("it cannot be renamed: {error}"),
                };
                let notice = format!(
                    "The list of downloads in {} cannot be used: {why}. The list starts empty; {kept}. Partial \
                     files are kept; download a model again to resume it.",
                    file.path.display()
                );
                (file, Vec::new(), Some(notice))
            }
        }
    }

    /// What is to be written; `None` if that is there already.
    pub(super) fn unwritten(&self, entries: &[Entry]) -> Option<Vec<u8>> {
        let saved = SavedQueue {
            version: VERSION,
            downloads: entries,
        };
        // Cannot fail: strings, numbers and lists of them.
        let text = serde_json::to_vec_pretty(&saved).ok()?;
        (text != self.written).then_some(text)
    }

    /// # Errors
    /// [`Code::Storage`]; what was there before is still there.
    pub(super) async fn write(&mut self, text: Vec<u8>) -> Result<(), Error> {
        let path = self.path.clone();
        self.written = blocking("storing the list of downloads", move || {
            replace(&path, &text).map(|()| text).map_err(|error| {
                let message = format!(
                    "The list of downloads cannot be written to {}: {error}. Downloads continue, but the latest \
                     changes are lost at the next start.",
                    path.display()
                );
                Error::new(Code::Storage, message).hint("free up space")
            })
        })
        .await?;
        Ok(())
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    // 0600 from its first byte.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The new name is on the disk only once the folder is.
    File::open(folder)?.sync_all()
}

fn read_entries(path: &Path) -> Result<Vec<Entry>, String> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(LARGEST + 1).read_to_end(&mut text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    }
    .map_err(|error| format!("it cannot be read ({error})"))?;
    if text.len() as u64 > LARGEST {
        return Err(format!("it is larger than {LARGEST} bytes"));
    }
    let garbage = |error: &dyn std::fmt::Display| format!("it is damaged ({error})");
    let json: serde_json::Value = serde_json::from_slice(&text).map_err(|error| garbage(&error))?;
    if let Some(version) = json["version"].as_u64().filter(|&it| it > VERSION.into()) {
        return Err(format!(
            "a newer Tierbar wrote it (format {version}; this one reads {VERSION})"
        ));
    }
    let mut saved: SavedQueue<Vec<Entry>> =
        serde_json::from_value(json).map_err(|error| garbage(&error))?;
    saved
        .downloads
        .iter_mut()
        .try_for_each(restore)
        .map_err(|error| garbage(&error))?;
    Ok(saved.downloads)
}

/// Checks an entry as it was read. One whose URL had a secret cannot go on without it.
fn restore(entry: &mut Entry) -> Result<(), Error> {
    super::entry::check(&entry.job)?;
    if entry.parts.len() != entry.job.files.len() {
        let message = "the numbers of files and parts differ";
        return Err(Error::new(Code::Storage, message));
    }
    if entry.withheld && matches!(entry.standing, EntryState::Wanted | EntryState::Paused) {
        entry.standing = EntryState::Failed(
            "Its address contained a secret, which is not saved. Download it again with the full address to resume."
                .to_owned(),
        );
    }
    Ok(())
}
