//! This machine's figures for verdicts: read once, with bandwidths measured when a verdict first needs them.

use crate::measured;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use tierbar_core::{config::MaxLoaded, fit::Machine};
use tierbar_telemetry::bandwidth;
use tokio::{sync::Mutex, task::spawn_blocking};

/// The least size of a file for a measurement of the disk.
const LARGE_FILE: u64 = 64 << 20;

/// This machine. One measurement at a time.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    /// The machine without bandwidths.
    machine: Machine,
    file: PathBuf,
    known: Mutex<Bandwidths>,
    /// Whether memory has been measured in this run.
    looked: AtomicBool,
}

/// Bytes per second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Bandwidths {
    memory: Option<u64>,
    /// The bandwidth of each models folder's disk.
    disks: BTreeMap<PathBuf, u64>,
}

/// A models folder, and a large file in it to measure its disk with.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) folder: PathBuf,
    pub(crate) file: Option<(PathBuf, u64)>,
}

impl ThisMachine {
    /// Creates it; `file` stores the measurements. Blocking.
    pub(crate) fn new(machine: Machine, file: PathBuf) -> Self {
        Self {
            machine,
            known: Mutex::new(measured::read(&file)),
            file,
            looked: AtomicBool::new(false),
        }
    }

    /// Returns the machine with its bandwidths. Missing ones are measured first, unless `busy`: beside a computing model
    /// the result would be wrong. A measurement takes less than a second.
    pub(crate) async fn measured(
        &self,
        max_loaded: MaxLoaded,
        sample: Sample,
        busy: bool,
    ) -> Machine {
        let mut known = self.known.lock().await;
        let large_file = sample.file.filter(|(_, size)| *size >= LARGE_FILE);
        let lacking = known.memory.is_none()
            || (large_file.is_some() && !known.disks.contains_key(&sample.folder));
        if lacking && !busy {
            let (file, folder, before) = (
                self.file.clone(),
                sample.folder.clone(),
                Bandwidths::clone(&known),
            );
            let large_file = large_file.map(|(path, _)| path);
            if known.memory.is_none() {
                self.looked.store(true, Ordering::Relaxed);
            }
            let measuring =
                spawn_blocking(move || measure(before, folder, large_file.as_deref(), &file));
            match measuring.await {
                Ok(now) => *known = now,
                Err(ended) => tracing::error!("the bandwidths could not be measured: {ended}"),
            }
        }
        self.with(&known, max_loaded, &sample.folder)
    }

    /// Measures memory once more in each run, and keeps the larger figure: other work makes it appear slower.
    pub(crate) async fn look_again(&self) {
        if self.looked.swap(true, Ordering::Relaxed) {
            return;
        }
        let Ok(rate) = spawn_blocking(bandwidth::memory).await else {
            return;
        };
        let mut known = self.known.lock().await;
        if known.memory < Some(rate) {
            known.memory = Some(rate);
            let (file, now) = (self.file.clone(), Bandwidths::clone(&known));
            // A panic in it would only lose a measurement.
            let _ = spawn_blocking(move || measured::write(&file, &now)).await;
        }
    }

    /// Returns the machine with the bandwidths known now; none while they are being measured.
    pub(crate) fn known(&self, max_loaded: MaxLoaded, sample: &Sample) -> Machine {
        match self.known.try_lock() {
            Ok(known) => self.with(&known, max_loaded, &sample.folder),
            Err(_) => self.with(&Bandwidths::default(), max_loaded, &sample.folder),
        }
    }

    fn with(&self, known: &Bandwidths, max_loaded: MaxLoaded, folder: &Path) -> Machine {
        Machine {
            max_loaded,
            memory_bandwidth: known.memory,
            disk_bandwidth: known.disks.get(folder).copied(),
            ..self.machine
        }
    }
}

fn measure(
    mut known: Bandwidths,
    folder: PathBuf,
    large_file: Option<&Path>,
    kept_in: &Path,
) -> Bandwidths {
    if known.memory.is_none() {
        known.memory = Some(bandwidth::memory());
    }
    if let Some(path) = large_file
        && !known.disks.contains_key(&folder)
    {
        match bandwidth::disk(path) {
            Ok(rate) => {
                known.disks.insert(folder, rate);
            }
            Err(error) => {
                tracing::warn!(
                    "the speed of the disk of {} is unknown: {error}",
                    path.display()
                )
            }
        }
    }
    measured::write(kept_in, &known);
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn measurements_are_reused_and_wait_for_idle_models() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bandwidth.json");
        let folder = home.path().join("models");
        let sample = Sample {
            folder: folder.clone(),
            file: Some((folder.join("small.gguf"), LARGE_FILE - 1)),
        };
        let measured = async |busy| {
            let machine = ThisMachine::new(Machine::new(16 << 30, None), file.clone());
            machine
                .measured(MaxLoaded::Auto, sample.clone(), busy)
                .await
        };
        let busy = measured(true).await;
        assert_eq!((busy.memory_bandwidth, busy.disk_bandwidth), (None, None));
        assert!(!file.exists());

        let known = Bandwidths {
            memory: Some(7),
            disks: BTreeMap::from([(folder.clone(), 5)]),
        };
        measured::write(&file, &known);
        let machine = measured(false).await;
        assert_eq!(
            (machine.memory_bandwidth, machine.disk_bandwidth),
            (Some(7), Some(5))
        );

        std::fs::remove_file(&file).unwrap();
        let machine = measured(false).await;
        assert!(machine.memory_bandwidth.is_some_and(|rate| rate > 0));
        assert_eq!(
            machine.disk_bandwidth, None,
            "no file of the folder is large enough"
        );
        assert_eq!(
            measured::read::<Bandwidths>(&file).memory,
            machine.memory_bandwidth
        );
    }

    #[tokio::test]
    async fn a_disturbed_measurement_is_repeated_in_the_next_run() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bandwidth.json");
        for (kept, grows) in [(1, true), (u64::MAX, false)] {
            measured::write(
                &file,
                &Bandwidths {
                    memory: Some(kept),
                    disks: BTreeMap::new(),
                },
            );
            let machine = ThisMachine::new(Machine::new(16 << 30, None), file.clone());
            machine.look_again().await;
            let now = measured::read::<Bandwidths>(&file).memory.unwrap();
            assert_eq!(now > kept, grows);
            assert_eq!(machine.known.lock().await.memory, Some(now));
        }
    }
}
