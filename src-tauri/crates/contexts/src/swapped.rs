//! Swapped-out conversations, which were in memory when their tier was unloaded. They are kept for a while, within a limit.
//!
//! They are saved contexts in a separate folder, which the host creates and removes: without it, nothing is kept. Losing one
//! only costs a prefill, so writes are not synced, and damaged files are removed.

use crate::{ContextDescription, Contexts, Draft, draft, file, hash, storage_error};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tierbar_core::Error;

const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The most conversations: each worker reads the start of every file.
const MOST: usize = 64;
/// The most bytes of a file besides its state.
const ABOUT: u64 = 1 << 10;
/// A draft that has not grown for this long is abandoned: a worker has seconds to end.
const FORGOTTEN_DRAFT: Duration = Duration::from_secs(60);

/// The folder of swapped-out conversations, and its bound.
#[derive(Debug, Clone)]
pub struct SwapFolder {
    contexts: Contexts,
    most_bytes: u64,
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    /// When it was written, or found again in memory.
    used: SystemTime,
}

impl SwapFolder {
    pub fn new(folder: PathBuf, most_bytes: u64) -> Self {
        Self {
            contexts: Contexts::new(folder),
            most_bytes,
        }
    }

    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Makes the folder, and brings it within its bounds.
    ///
    /// # Errors
    /// [`tierbar_core::Code::Storage`] if it cannot be made.
    pub fn open(&self) -> Result<(), Error> {
        let folder = self.contexts.folder();
        draft::create_private(folder)
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)))
            .map_err(|error| storage_error("cannot make", folder, &error))?;
        self.tidy();
        Ok(())
    }

    /// Removes the folder and its contents. Workers write nothing from then on.
    ///
    /// # Errors
    /// [`tierbar_core::Code::Storage`] if something of it stays.
    pub fn close(&self) -> Result<(), Error> {
        let folder = self.contexts.folder();
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| storage_error("cannot remove", folder, &error)),
        }
    }

    /// Removes all conversations, because something else needs their room. Returns how many bytes they had.
    pub fn clear(&self) -> u64 {
        let all = entries(self.contexts.folder()).into_iter();
        // What is still being written has its own bounds.
        let kept = all.filter(|entry| !entry.path.file_name().is_some_and(draft::is_draft));
        let removed = kept.filter(|entry| fs::remove_file(&entry.path).is_ok());
        removed.map(|entry| entry.bytes).sum()
    }

    /// Removes what is damaged, forgotten, too old, or too much, the oldest first.
    pub fn tidy(&self) {
        self.make_room(0, &[]);
    }

    /// A file for the state of these tokens, which may take so many bytes; room is made for it: first of those named,
    /// which it makes superfluous, then of the oldest. `None` if there is no folder, or the bound is too small for it.
    ///
    /// # Errors
    /// [`tierbar_core::Code::Storage`] if the folder cannot be written.
    pub fn draft(
        &self,
        identity: &str,
        bytes: u64,
        superfluous: &[String],
    ) -> Result<Option<Draft>, Error> {
        let folder = self.contexts.folder();
        let bytes = bytes + ABOUT;
        if bytes > self.most_bytes || !folder.is_dir() {
            return Ok(None);
        }
        self.make_room(bytes, superfluous);
        // The same conversation in two tiers has one name, and they write the same.
        let name = hash(identity);
        Draft::new(folder, &name, self.contexts.path(&name), false)
            .map(Some)
            .map_err(|error| storage_error("cannot write to", folder, &error))
    }

    /// It is as good as written now.
    pub fn touch(&self, name: &str) {
        let file = fs::File::options()
            .append(true)
            .open(self.contexts.path(name));
        let _gone = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    fn make_room(&self, bytes: u64, superfluous: &[String]) {
        let now = SystemTime::now();
        let (mut kept, mut drafts) = (Vec::new(), 0);
        for entry in entries(self.contexts.folder()) {
            let age = now.duration_since(entry.used).unwrap_or_default();
            let is_draft = entry.path.file_name().is_some_and(draft::is_draft);
            if is_draft {
                // Its worker is still writing it, or was killed.
                if age > FORGOTTEN_DRAFT {
                    remove(&entry.path);
                } else {
                    drafts += entry.bytes;
                }
            } else if age > LONGEST || is_useless(&entry.path, &self.contexts) {
                remove(&entry.path);
            } else {
                kept.push(entry);
            }
        }
        let superfluous: Vec<_> = superfluous
            .iter()
            .map(|name| self.contexts.path(name))
            .collect();
        // The first to go last.
        kept.sort_by_key(|entry| {
            let last = !superfluous.contains(&entry.path);
            std::cmp::Reverse((last, entry.used))
        });
        let mut total = drafts + kept.iter().map(|entry| entry.bytes).sum::<u64>();
        let most = if bytes > 0 { MOST - 1 } else { MOST };
        while total + bytes > self.most_bytes || kept.len() > most {
            let Some(oldest) = kept.pop() else { return };
            remove(&oldest.path);
            total -= oldest.bytes;
        }
    }
}

fn entries(folder: &Path) -> Vec<Entry> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let file = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        Some(Entry {
            path: entry.path(),
            bytes: file.len(),
            used: file.modified().ok()?,
        })
    })
    .collect()
}

/// Whether the file is no context of its name, by its end. One that cannot be read now may be one.
fn is_useless(path: &Path, contexts: &Contexts) -> bool {
    match file::read_description(path) {
        Ok(ContextDescription { name, .. }) => contexts.path(&name) != *path,
        Err(error) => file::is_damage(&error) || error.kind() == io::ErrorKind::Unsupported,
    }
}

fn remove(path: &Path) {
    // Another process may have removed it first.
    let _gone = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;
    use tierbar_core::{ModelId, config::KvCache};

    fn swapped(most_bytes: u64) -> (tempfile::TempDir, SwapFolder) {
        let home = tempfile::tempdir().unwrap();
        let swapped = SwapFolder::new(home.path().join("swapped"), most_bytes);
        swapped.open().unwrap();
        (home, swapped)
    }

    /// Written so many seconds after all others.
    fn keep(swapped: &SwapFolder, identity: &str, at: u64, superfluous: &[String]) -> String {
        let mut draft = swapped
            .draft(identity, 10_000, superfluous)
            .unwrap()
            .unwrap();
        fs::write(draft.path(), [7; 9000]).unwrap();
        draft.add_back(2, &[9; 1000]).unwrap();
        let key = Key {
            model: "m".into(),
            template: "t".into(),
            kv_cache: KvCache::F16,
            engine: "e".into(),
        };
        let saved = draft.seal(ModelId("small".into()), 3, key, 9000).unwrap();
        let path = swapped.contexts().path(&saved.name);
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1000 - at))
            .unwrap();
        saved.name
    }

    fn names(swapped: &SwapFolder) -> Vec<String> {
        let all = swapped.contexts().list().unwrap().into_iter();
        let mut names: Vec<_> = all.map(|saved| saved.name).collect();
        names.sort();
        names
    }

    fn sorted(names: &[&String]) -> Vec<String> {
        let mut names: Vec<_> = names.iter().map(|name| (*name).clone()).collect();
        names.sort();
        names
    }

    #[test]
    fn drafts_count_toward_the_limit() {
        let (_home, swapped) = swapped(40_000);
        let [a, b] = [("a", 1), ("b", 2)].map(|(name, at)| keep(&swapped, name, at, &[]));
        let draft = swapped.draft("d", 10_000, &[]).unwrap().unwrap();
        fs::write(draft.path(), [7; 15_000]).unwrap();
        // Its writer was killed: nothing removed it.
        std::mem::forget(draft);
        assert_eq!(names(&swapped), sorted(&[&a, &b]));
        let c = keep(&swapped, "c", 3, &[]);
        assert_eq!(names(&swapped), sorted(&[&b, &c]));
    }

    #[test]
    fn superseded_states_go_first_then_the_oldest() {
        let (_home, swapped) = swapped(40_000);
        let [a, b, c] =
            [("a", 1), ("b", 2), ("c", 3)].map(|(name, at)| keep(&swapped, name, at, &[]));
        let d = keep(&swapped, "d", 4, std::slice::from_ref(&b));
        assert_eq!(names(&swapped), sorted(&[&a, &c, &d]));
        swapped.touch(&a);
        let e = keep(&swapped, "e", 5, &[]);
        assert_eq!(names(&swapped), sorted(&[&a, &d, &e]));
        assert!(swapped.draft("f", 40_001, &[]).unwrap().is_none());
        assert_eq!(names(&swapped).len(), 3);
    }

    #[test]
    fn the_checkpoint_is_part_of_the_checksum() {
        let (_home, swapped) = swapped(40_000);
        let name = keep(&swapped, "a", 1, &[]);
        let path = swapped.contexts().path(&name);
        swapped.contexts().check(&name).unwrap();
        assert_eq!(
            crate::read_earlier_end(&path).unwrap(),
            Some((2, vec![9; 1000]))
        );
        let mut bytes = fs::read(&path).unwrap();
        bytes[9500] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(swapped.contexts().check(&name).is_err());
    }

    #[test]
    fn the_number_of_files_is_limited() {
        let (_home, swapped) = swapped(u64::MAX);
        for at in 0..70 {
            keep(&swapped, &at.to_string(), at, &[]);
        }
        assert_eq!(names(&swapped).len(), MOST);
    }

    #[test]
    fn nothing_is_written_without_the_folder() {
        let (_home, swapped) = swapped(40_000);
        keep(&swapped, "a", 1, &[]);
        swapped.close().unwrap();
        assert!(swapped.draft("b", 1000, &[]).unwrap().is_none());
        assert!(!swapped.contexts().folder().exists());
        swapped.close().unwrap();
        // A draft that was begun before has nowhere to go.
        swapped.open().unwrap();
        let draft = swapped.draft("c", 1000, &[]).unwrap().unwrap();
        swapped.close().unwrap();
        assert!(!draft.path().exists());
    }

    #[test]
    fn a_file_that_cannot_be_read_now_is_kept() {
        let (home, swapped) = swapped(40_000);
        assert!(!is_useless(home.path(), swapped.contexts()));
        let name = keep(&swapped, "a", 1, &[]);
        let path = swapped.contexts().path(&name);
        assert!(!is_useless(&path, swapped.contexts()));
        fs::write(&path, b"half").unwrap();
        assert!(is_useless(&path, swapped.contexts()));
    }
}
