//! Loads that the host or the machine did not survive: their models load only on request.
//!
//! A load is recorded before it starts and removed when it has ended, however it ended. Records found when the host starts
//! never ended. They stay, even over restarts, until a load of the same model succeeds.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tierbar_core::{ModelId, TierId};
use tokio::{sync::watch, task::spawn_blocking, time::timeout};

/// More records belong to models long gone.
const KEPT: usize = 16;

/// The most that a load waits for its record: beside a download, a disk may take seconds. Tests wait longer, since they
/// read the file.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 100 });

/// A load that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunLoad {
    pub tier: TierId,
    pub model: ModelId,
    /// Seconds since 1970.
    pub at: u64,
}

/// The file of loads. One is under way at a time.
#[derive(Debug)]
pub(crate) struct LoadRecord {
    /// `None` to record nothing.
    file: Option<PathBuf>,
    under_way: Mutex<Option<BegunLoad>>,
    /// Held while the file is written.
    writing: Mutex<()>,
    never_ended: watch::Sender<Vec<BegunLoad>>,
}

impl LoadRecord {
    /// Reads the records of an earlier host. Blocking.
    pub(crate) fn open(file: Option<PathBuf>) -> Arc<Self> {
        let left = file.as_deref().map_or_else(Vec::new, |file| {
            read_loads(file).unwrap_or_else(|error| {
                tracing::warn!("{} cannot be read: {error}", file.display());
                Vec::new()
            })
        });
        for BegunLoad { tier, model, .. } in &left {
            tracing::warn!(%tier, %model, "an earlier load did not finish, so this tier loads only on request");
        }
        Arc::new(Self {
            file,
            under_way: Mutex::default(),
            writing: Mutex::default(),
            never_ended: watch::Sender::new(left),
        })
    }

    /// Returns the loads that never ended, the last of each model.
    pub(crate) fn never_ended(&self) -> watch::Receiver<Vec<BegunLoad>> {
        self.never_ended.subscribe()
    }

    /// Returns the load of this model that never ended.
    pub(crate) fn begun_load(&self, model: &ModelId) -> Option<BegunLoad> {
        let left = self.never_ended.borrow();
        left.iter().find(|load| load.model == *model).cloned()
    }

    /// Returns once the record is on disk, or if the disk is slow: it will be there soon after.
    pub(crate) async fn begin(self: &Arc<Self>, tier: TierId, model: ModelId) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = since.map_or(0, |since| since.as_secs());
        let load = BegunLoad { tier, model, at };
        self.change(move |_| Some(load)).await;
    }

    pub(crate) async fn end(self: &Arc<Self>, succeeded: bool) {
        let loads = Arc::clone(self);
        self.change(move |load| {
            if let Some(load) = load.filter(|_| succeeded) {
                loads.never_ended.send_if_modified(|left| {
                    let before = left.len();
                    left.retain(|each| each.model != load.model);
                    left.len() != before
                });
            }
            None
        })
        .await;
    }

    async fn change(self: &Arc<Self>, next: impl FnOnce(Option<BegunLoad>) -> Option<BegunLoad>) {
        {
            let mut under_way = self.under_way.lock();
            let before = under_way.take();
            if before.is_none() && self.file.is_none() {
                return;
            }
            *under_way = next(before);
        }
        let loads = Arc::clone(self);
        // The write continues without a waiter. A panic in it would only lose a record.
        let _ = timeout(PATIENCE, spawn_blocking(move || loads.write())).await;
    }

    /// Writes the current records: of several writers, the last one writes the latest.
    fn write(&self) {
        let Some(file) = &self.file else { return };
        let _one = self.writing.lock();
        let under_way = self.under_way.lock().clone();
        let under_way = under_way.as_ref();
        let mut all: Vec<_> = under_way.into_iter().cloned().collect();
        let left = self.never_ended.borrow();
        let others = left
            .iter()
            .filter(|load| under_way.is_none_or(|now| now.model != load.model));
        all.extend(others.cloned());
        all.truncate(KEPT);
        // A load must not fail because a disk is full.
        if let Err(error) = write_loads(file, &all, under_way.is_some()) {
            tracing::warn!("{} cannot be written: {error}", file.display());
        }
    }
}

fn read_loads(file: &Path) -> io::Result<Vec<BegunLoad>> {
    match fs::read(file) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// With `safely`, the record survives a power cut. The end of a load may be lost, which is safe.
fn write_loads(file: &Path, loads: &[BegunLoad], safely: bool) -> io::Result<()> {
    if loads.is_empty() {
        return match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec(loads)?)?;
    if safely {
        new.as_file().sync_all()?;
    }
    new.persist(file)?;
    if safely {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(loads: &LoadRecord) -> Vec<String> {
        let left = loads.never_ended();
        let left = left.borrow();
        left.iter().map(|load| load.model.to_string()).collect()
    }

    async fn begin(loads: &Arc<LoadRecord>, model: &str) {
        let tier = TierId::new("fast").unwrap();
        loads.begin(tier, ModelId(model.to_owned())).await;
    }

    #[tokio::test]
    async fn an_unfinished_load_is_kept_until_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loads.json");
        let open = || LoadRecord::open(Some(file.clone()));
        let first = open();
        begin(&first, "good").await;
        first.end(true).await;
        assert!(!file.exists());
        begin(&first, "bad").await;

        let second = open();
        assert_eq!(models(&second), ["bad"]);
        // Another's success, its own failure and another restart change nothing.
        begin(&second, "good").await;
        second.end(true).await;
        begin(&second, "bad").await;
        second.end(false).await;
        assert!(second.begun_load(&ModelId("bad".to_owned())).is_some());
        let third = open();
        assert_eq!(models(&third), ["bad"]);
        begin(&third, "bad").await;
        assert_eq!(models(&open()), ["bad"], "once, though twice begun");
        third.end(true).await;
        assert_eq!(models(&third), [""; 0]);
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_damaged_or_read_only_file_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loads.json");
        fs::write(&file, "[{").unwrap();
        let loads = LoadRecord::open(Some(file.clone()));
        assert_eq!(models(&loads), [""; 0]);
        begin(&loads, "good").await;
        assert_eq!(models(&LoadRecord::open(Some(file))), ["good"]);
        let nowhere = LoadRecord::open(Some(folder.path().join("no/loads.json")));
        begin(&nowhere, "good").await;
        nowhere.end(true).await;
    }
}
