//! This machine's figures for verdicts: what its chip is published to do, and bandwidths that are measured while it is quiet.

use crate::measured;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{
    config::MaxLoaded,
    fit::{DecodeRate, Machine, published_bandwidth},
};
use tierbar_telemetry::{bandwidth, hardware};
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Instant, timeout},
};

/// How often each figure is measured in a run, of which the best is kept: what disturbs a measurement makes it smaller.
const SAMPLES: u32 = 3;
/// The least time between two attempts.
const PACE: Duration = Duration::from_secs(30);
/// How long a verdict waits for the first measurement. It is in the next verdict if that takes longer.
const PATIENCE: Duration = Duration::from_millis(700);

/// This machine. One measurement at a time.
#[derive(Debug)]
pub(crate) struct ThisMachine {
    /// The machine without bandwidths.
    machine: Machine,
    /// The published bandwidth of its memory.
    chip: Option<u64>,
    file: PathBuf,
    known: Mutex<Bandwidths>,
    sampled: Mutex<SampleState>,
}

/// The best that was measured, in bytes per second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Bandwidths {
    /// Read by the cores.
    memory: Option<u64>,
    /// The bandwidth of each models folder's disk.
    disks: BTreeMap<PathBuf, u64>,
}

#[derive(Debug, Default)]
struct SampleState {
    running: bool,
    attempted: Option<Instant>,
    memory: u32,
    disks: BTreeMap<PathBuf, u32>,
}

/// A measurement, until it is dropped.
struct Running(Arc<ThisMachine>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.sampled.lock().running = false;
    }
}

impl ThisMachine {
    /// Creates it; `file` stores the measurements. Blocking.
    pub(crate) fn new(machine: Machine, file: PathBuf) -> Self {
        let hardware = hardware();
        Self {
            machine,
            chip: published_bandwidth(&hardware.processor, hardware.gpu_cores),
            known: Mutex::new(measured::read(&file)),
            file,
            sampled: Mutex::default(),
        }
    }

    /// Returns the machine with its bandwidths, for models in `folder`. Has them measured in the background, unless `busy`: beside a
    /// computing model the result would be wrong. If nothing is known yet, waits a moment for that.
    pub(crate) async fn with_bandwidths(
        self: &Arc<Self>,
        max_loaded: MaxLoaded,
        folder: &Path,
        busy: bool,
        decode: Option<DecodeRate>,
    ) -> Machine {
        let lacks_memory = self.chip.is_none() && self.known.lock().memory.is_none();
        let lacks = lacks_memory || !self.known.lock().disks.contains_key(folder);
        if !busy
            && let Some(sampling) = self.sample(folder)
            && lacks
        {
            wait_a_moment(sampling).await;
        }
        let known = self.known.lock();
        Machine {
            max_loaded,
            disk_bandwidth: known.disks.get(folder).copied(),
            ..self.machine.with_memory(self.chip, known.memory, decode)
        }
    }

    /// Starts a measurement, if one is due.
    fn sample(self: &Arc<Self>, folder: &Path) -> Option<JoinHandle<()>> {
        {
            let mut sampled = self.sampled.lock();
            let rests = sampled.attempted.is_some_and(|at| at.elapsed() < PACE);
            let disks = sampled.disks.get(folder).copied().unwrap_or(0);
            if sampled.running || rests || sampled.memory.min(disks) >= SAMPLES {
                return None;
            }
            (sampled.running, sampled.attempted) = (true, Some(Instant::now()));
        }
        let (running, folder) = (Running(Arc::clone(self)), folder.to_owned());
        Some(spawn_blocking(move || {
            let this = &running.0;
            if bandwidth::is_quiet() {
                this.keep(&folder, bandwidth::memory(), bandwidth::disk(&folder));
                let known = this.known.lock().clone();
                measured::write(&this.file, &known);
            }
        }))
    }

    fn keep(&self, folder: &Path, memory: u64, disk: io::Result<u64>) {
        let (mut known, mut sampled) = (self.known.lock(), self.sampled.lock());
        known.memory = known.memory.max(Some(memory));
        sampled.memory += 1;
        *sampled.disks.entry(folder.to_owned()).or_default() += 1;
        match disk {
            Ok(rate) => {
                let best = known.disks.entry(folder.to_owned()).or_default();
                *best = rate.max(*best);
            }
            Err(error) => tracing::warn!(
                "the speed of the disk of {} is unknown: {error}",
                folder.display()
            ),
        }
    }
}

/// Waits for a measurement, for at most [`PATIENCE`].
async fn wait_a_moment(sampling: impl Future) {
    // A panic in it would only lose a measurement.
    let _ = timeout(PATIENCE, sampling).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future;

    const FOLDER: &str = "/models";

    fn machine(file: &Path, known: &Bandwidths) -> Arc<ThisMachine> {
        measured::write(file, known);
        let machine = ThisMachine::new(Machine::new(16 << 30, None), file.to_owned());
        Arc::new(ThisMachine {
            chip: None,
            ..machine
        })
    }

    fn known(memory: u64, disk: u64) -> Bandwidths {
        Bandwidths {
            memory: Some(memory),
            disks: BTreeMap::from([(PathBuf::from(FOLDER), disk)]),
        }
    }

    #[tokio::test]
    async fn what_was_measured_is_used_at_once_and_never_beside_a_model() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bandwidth.json");
        let machine = machine(&file, &known(7, 5));
        let folder = Path::new(FOLDER);
        let found = machine
            .with_bandwidths(MaxLoaded::Auto, folder, true, None)
            .await;
        assert_eq!(
            (found.memory_bandwidth, found.disk_bandwidth),
            (Some(7), Some(5))
        );
        assert!(machine.sampled.lock().attempted.is_none());
        let elsewhere = machine
            .with_bandwidths(MaxLoaded::Auto, home.path(), true, None)
            .await;
        assert_eq!(elsewhere.disk_bandwidth, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_verdict_gives_up_a_measurement_within_a_second() {
        let begun = Instant::now();
        wait_a_moment(future::ready(())).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        wait_a_moment(future::pending::<()>()).await;
        // By the paused clock. The rest of the second is for the answer.
        let waited = begun.elapsed();
        assert!((PATIENCE..Duration::from_secs(1)).contains(&waited));
    }

    #[test]
    fn the_best_of_the_samples_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("bandwidth.json");
        let machine = machine(&file, &known(7, 5));
        let folder = Path::new(FOLDER);
        for (memory, disk) in [(3, Ok(9)), (11, Ok(2)), (8, Err(std::io::ErrorKind::Other))] {
            machine.keep(folder, memory, disk.map_err(Into::into));
        }
        assert_eq!(*machine.known.lock(), known(11, 9));
        let sampled = machine.sampled.lock();
        assert_eq!((sampled.memory, sampled.disks[folder]), (3, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn samples_are_few_and_apart() {
        let home = tempfile::tempdir().unwrap();
        let machine = machine(&home.path().join("bandwidth.json"), &known(7, 5));
        let missing = home.path().join("none");
        let due = || machine.sample(&missing);
        due().unwrap().await.unwrap();
        assert!(due().is_none(), "a moment later");
        tokio::time::advance(PACE).await;
        let running = due().unwrap();
        assert!(due().is_none());
        running.await.unwrap();
        machine.sampled.lock().memory = SAMPLES;
        machine.sampled.lock().disks = BTreeMap::from([(missing.clone(), SAMPLES)]);
        tokio::time::advance(PACE).await;
        assert!(due().is_none(), "enough");
        assert!(machine.sample(home.path()).is_some(), "another disk");
    }
}
