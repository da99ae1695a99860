//! What is known of a file that has not wholly arrived. Written after the bytes that it claims lie on the disk,
//! so it may claim too little after a crash, never too much.

use super::{destination::NO_LINKS, ranges::Ranges};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

const VERSION: u32 = 1;
/// A journal of the most pieces that a file can be in has a few kilobytes.
const LARGEST: u64 = 1 << 20;

/// The identity of the file, from the request and from the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Without its query, which may hold a signature.
    pub(super) url: String,
    pub(super) sha256: Option<String>,
    pub(super) total: u64,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: u32,
    #[serde(flatten)]
    identity: Identity,
    ranges: Vec<(u64, u64)>,
}

/// Where the bytes and the journal of `dest` lie until it is whole: beside it, so that a rename suffices.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) part: PathBuf,
    pub(super) journal: PathBuf,
    new_journal: PathBuf,
}

impl Paths {
    pub(super) fn of(dest: &Path) -> Self {
        let with = |ending: &str| {
            let mut name = dest.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        Self {
            part: with(".part"),
            journal: with(".part.json"),
            new_journal: with(".part.json.new"),
        }
    }

    pub(super) fn remove_journal(&self) -> io::Result<()> {
        remove(&self.new_journal)?;
        remove(&self.journal)
    }

    pub(super) fn remove_all(&self) -> io::Result<()> {
        // The journal first: bytes without it are nothing, but it must not outlive them.
        self.remove_journal()?;
        remove(&self.part)
    }

    /// Returns `None` if there is no journal, or one that cannot match the file, which then starts over.
    ///
    /// # Errors
    /// If the journal cannot be read now: it may be good, and what was received with it.
    pub(super) fn read_journal(&self, part_length: u64) -> io::Result<Option<(Identity, Ranges)>> {
        let mut text = Vec::new();
        match File::open(&self.journal) {
            Ok(journal) => journal.take(LARGEST + 1).read_to_end(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(parse(&text, part_length))
    }

    /// `sync` is [`crate::platform::sync`], but for tests.
    pub(super) fn write_journal(
        &self,
        identity: &Identity,
        ranges: &Ranges,
        sync: &dyn Fn(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let document = Document {
            version: VERSION,
            identity: identity.clone(),
            ranges: ranges.list(),
        };
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(NO_LINKS)
            .open(&self.new_journal)?;
        file.write_all(&serde_json::to_vec(&document)?)?;
        // Else a power cut could leave the new name with nothing behind it.
        sync(&file)?;
        fs::rename(&self.new_journal, &self.journal)?;
        // And the old journal, or none, where the new one should be.
        let folder = self.journal.parent().unwrap_or(Path::new("/"));
        sync(&File::open(folder)?)
    }
}

fn parse(text: &[u8], part_length: u64) -> Option<(Identity, Ranges)> {
    if text.len() as u64 > LARGEST {
        return None;
    }
    let document: Document = serde_json::from_slice(text).ok()?;
    let ranges = Ranges::from_list(&document.ranges)?;
    let possible = document.version == VERSION
        && ranges.end() <= document.identity.total
        && ranges.end() <= part_length;
    possible.then_some((document.identity, ranges))
}

/// Removes a file. That there is none is no error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn a_journal_is_synced_before_its_rename_its_folder_after() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::of(&folder.path().join("model.gguf"));
        let identity = Identity {
            url: "https://hub.test/model.gguf".to_owned(),
            sha256: None,
            total: 100,
            etag: None,
            last_modified: None,
        };
        let read = || {
            let journal = paths.read_journal(100).unwrap();
            journal.map(|(_, ranges)| ranges.bytes())
        };
        let steps = RefCell::new(Vec::new());
        let sync = |file: &File| {
            let step = (file.metadata()?.is_dir(), read());
            steps.borrow_mut().push(step);
            Ok(())
        };
        for end in [10, 20] {
            let ranges = Ranges::from_list(&[(0, end)]).unwrap();
            paths.write_journal(&identity, &ranges, &sync).unwrap();
        }
        let (file, folder) = (false, true);
        let wanted = [
            (file, None),
            (folder, Some(10)),
            (file, Some(10)),
            (folder, Some(20)),
        ];
        assert_eq!(steps.into_inner(), wanted);
    }

    #[test]
    fn a_journal_that_cannot_be_read_now_is_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::of(&folder.path().join("model.gguf"));
        assert!(paths.read_journal(100).unwrap().is_none());
        fs::write(&paths.journal, "[").unwrap();
        assert!(paths.read_journal(100).unwrap().is_none());
        fs::remove_file(&paths.journal).unwrap();
        // It opens, and no byte of it can be read.
        fs::create_dir(&paths.journal).unwrap();
        assert!(paths.read_journal(100).is_err());
    }
}
