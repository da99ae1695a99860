//! Measurements kept over restarts, in small JSON files of the data folder. Losing one costs a measurement, so an invalid
//! file is ignored.

use crate::whole_file;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use tierbar_inference::speed::SpeedMeter;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// How many results a list of them keeps.
pub(crate) const KEPT: usize = 256;

/// Blocking.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path) -> T {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return T::default(),
        Err(error) => {
            tracing::warn!("{} cannot be read: {error}", path.display());
            return T::default();
        }
    };
    serde_json::from_slice(&text).unwrap_or_else(|error| {
        tracing::warn!("{} is invalid and starts empty: {error}", path.display());
        T::default()
    })
}

/// Writes the whole file or nothing, and creates its folder. Blocking.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) {
    let replace = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        whole_file::write_private(path, &serde_json::to_vec(value)?, false)
    };
    if let Err(error) = replace() {
        tracing::warn!("{} cannot be written: {error}", path.display());
    }
}

/// Stores a result in a file's list, in place of those that it replaces.
pub(crate) async fn store_newest<T: Serialize + DeserializeOwned + Send + 'static>(
    path: PathBuf,
    newest: T,
    replaces: fn(&T, &T) -> bool,
) {
    // Of two that read the list at once, one would be lost.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // A panic in it would only lose a measurement.
    let _ = spawn_blocking(move || {
        let _turn = ONE_AT_A_TIME.lock();
        write(&path, &add_newest(read(&path), newest, replaces));
    })
    .await;
}

/// The newest comes first.
pub(crate) fn add_newest<T>(
    mut results: Vec<T>,
    newest: T,
    replaces: fn(&T, &T) -> bool,
) -> Vec<T> {
    results.retain(|known| !replaces(&newest, known));
    results.insert(0, newest);
    results.truncate(KEPT);
    results
}

/// Returns the time as reports state it: RFC 3339, in UTC.
pub(crate) fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Stores the models' speeds as they are measured, until `closing`.
pub(crate) async fn keep_speeds(path: PathBuf, speed: SpeedMeter, closing: CancellationToken) {
    let mut history = speed.history();
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            changed = history.changed() => if changed.is_err() { return },
        }
        let (path, now) = (path.clone(), history.borrow_and_update().clone());
        // A panic in it would only lose a measurement.
        let _ = spawn_blocking(move || write(&path, &now)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use tierbar_core::ModelId;
    use tierbar_inference::speed::SpeedHistory;

    #[test]
    fn measurements_read_back_and_a_damaged_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("speeds.json");
        assert_eq!(read::<SpeedHistory>(&path), SpeedHistory::new());
        let speeds = BTreeMap::from([(ModelId("small".to_owned()), [41.5, 40.0].into())]);
        write(&path, &speeds);
        assert_eq!(read::<SpeedHistory>(&path), speeds);
        fs::write(&path, "{\"small\": [41.5, ").unwrap();
        assert_eq!(read::<SpeedHistory>(&path), SpeedHistory::new());
    }
}
