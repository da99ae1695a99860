//! Room on the volumes that Tierbar writes to: what is reported while it is short, and what is given up for it.

use crate::{folder::Folder, live_config::LiveConfig, notices::Topic, volume::Volume};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_contexts::SwapFolder;
use tierbar_core::{
    Config,
    journal::{Journal, Kind, LogEvent},
    units::file_size,
    volume::margin,
};
use tierbar_store::{Store, damaged_copies};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

/// What a start writes: the index of the database's log, and small files.
const LEAST: u64 = 8 << 20;
/// How often volumes are looked at, and the database's log is emptied.
const LOOK: Duration = Duration::from_secs(10);

pub(crate) struct WrittenVolume {
    /// What of it is named, such as `the data folder`.
    pub(crate) of: String,
    pub(crate) path: PathBuf,
    /// What needs the room.
    needs: &'static str,
}

impl WrittenVolume {
    /// Returns that of the data folder, and that of the models if it is another one.
    pub(crate) fn all(folder: &Folder, config: &Config) -> Vec<Self> {
        let models = Self {
            of: "the models".to_owned(),
            path: folder.models_dir(&config.models_dir),
            needs: "swap, downloads and saved contexts need it",
        };
        let data = Self {
            of: format!("the data folder {}", folder.home().display()),
            path: folder.home().to_owned(),
            needs: "chats, queued requests and settings cannot be saved without it",
        };
        let device = |path: &Path| fs::metadata(path).ok().map(|found| found.dev());
        let is_one = device(&models.path) == device(&data.path);
        match is_one {
            true => vec![data],
            false => vec![data, models],
        }
    }

    /// Returns what is wrong and what to do, if less is free than should stay free.
    pub(crate) fn shortage(&self, volume: Volume) -> Option<(String, String)> {
        (volume.free < margin(volume.size)).then(|| {
            let what = format!(
                "the volume of {} has only {} free",
                self.of,
                file_size(volume.free)
            );
            (what, format!("free up space: {}", self.needs))
        })
    }
}

/// Returns what is known to be lost of the database, and what to do.
pub(crate) fn lost_changes(folder: &Folder) -> Vec<(String, String)> {
    let copies = damaged_copies(&folder.database()).into_iter();
    let lost = copies.map(|copy| {
        let what = format!(
            "damage to the database's log has lost changes; what could not be read is kept in {}",
            copy.display()
        );
        let remedy = "see `tierbar log` for how many and when, and delete the file when you no longer need it";
        (what, remedy.to_owned())
    });
    lost.collect()
}

/// Removes the saved conversations if the data folder's volume has no room for a start: they only save time. Returns the sentence for the
/// event log.
pub(crate) fn free_conversations(folder: &Folder) -> Option<String> {
    let free = Volume::of(folder.home()).ok()?.free;
    free_conversations_below(folder, free, LEAST)
}

fn free_conversations_below(folder: &Folder, free: u64, least: u64) -> Option<String> {
    if free >= least {
        return None;
    }
    let removed = SwapFolder::new(folder.conversations(), 0).clear();
    (removed > 0).then(|| {
        format!(
            "removed the saved conversations ({}), which are read again when they continue, because the volume of the data folder had only {} free",
            file_size(removed),
            file_size(free)
        )
    })
}

/// Moves what was written lately from the database's log into the database, until `closing`.
pub(crate) async fn keep_log_short(store: Store, closing: CancellationToken) {
    while closing.run_until_cancelled(sleep(LOOK)).await.is_some() {
        // The next change reports what is wrong with the disk.
        if let Err(error) = store.checkpoint_if_written().await {
            tracing::debug!("the database's log stays: {error}");
        }
    }
}

/// Keeps room and reports what is short, until `closing`.
pub(crate) async fn keep_room(
    config: Arc<LiveConfig>,
    journal: Arc<dyn Journal>,
    closing: CancellationToken,
) {
    loop {
        let (folder, configured) = (config.folder.clone(), config.get());
        let look = move || (free_conversations(&folder), notices(&folder, &configured));
        if let Ok((freed, notices)) = spawn_blocking(look).await {
            if let Some(freed) = freed {
                tracing::warn!("{freed}");
                journal.record(LogEvent::new(Kind::Note, freed));
            }
            config.report(Topic::Disks, notices);
        }
        if closing.run_until_cancelled(sleep(LOOK)).await.is_none() {
            return;
        }
    }
}

fn notices(folder: &Folder, config: &Config) -> Vec<String> {
    let all = WrittenVolume::all(folder, config).into_iter();
    let short = all.filter_map(|one| one.shortage(Volume::of(&one.path).ok()?));
    let sentences = |(what, remedy): (String, String)| {
        format!("{}. {}", capitalized(&what), capitalized(&remedy))
    };
    short.chain(lost_changes(folder)).map(sentences).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(home.path().to_owned())).unwrap();
        (home, folder)
    }

    #[test]
    fn conversations_give_way_only_when_room_is_short() {
        let (_home, folder) = folder();
        let one = folder.conversations().join("one.context");
        fs::create_dir(folder.conversations()).unwrap();
        fs::write(&one, vec![0; 3_000_000]).unwrap();
        assert_eq!(free_conversations_below(&folder, 100, 100), None);
        assert!(one.exists());
        let freed = free_conversations_below(&folder, 99, 100).unwrap();
        assert!(freed.contains("(3 MB)"), "{freed}");
        assert!(!one.exists() && folder.conversations().exists());
        assert_eq!(free_conversations_below(&folder, 99, 100), None);
    }

    #[test]
    fn both_volumes_are_looked_at() {
        let (_home, folder) = folder();
        let config = |models: &str| Config {
            models_dir: models.to_owned(),
            ..Config::default()
        };
        let one = WrittenVolume::all(&folder, &config(""));
        assert_eq!(one.len(), 1);
        assert!(one[0].of.starts_with("the data folder"), "{}", one[0].of);
        // On another device, on every system.
        let two = WrittenVolume::all(&folder, &config("/dev"));
        assert_eq!(two.len(), 2);
        let volume = |free| Volume { size: 100, free };
        for each in &two {
            assert_eq!(each.shortage(volume(5)), None);
            let (what, remedy) = each.shortage(volume(4)).unwrap();
            assert!(what.contains(&each.of), "{what}");
            assert!(remedy.starts_with("free up space"), "{remedy}");
        }
    }

    #[test]
    fn what_is_lost_has_a_notice_until_its_copy_is_deleted() {
        let (_home, folder) = folder();
        assert_eq!(lost_changes(&folder), []);
        let copy = folder
            .home()
            .join("tierbar.db-wal.damaged-20261128T100000Z");
        fs::write(&copy, "a log").unwrap();
        let notices = notices(&folder, &Config::default());
        assert!(
            notices
                .iter()
                .any(|notice| notice.starts_with("Damage to the database")
                    && notice.contains(&copy.display().to_string())),
            "{notices:?}"
        );
        fs::remove_file(&copy).unwrap();
        assert_eq!(lost_changes(&folder), []);
    }
}
