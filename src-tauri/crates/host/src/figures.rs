//! What the machine is and what Tierbar itself uses, for a diagnosis.

use crate::{HostKind, services::Admin, volume::Volume};
use std::{
    io::{self, Write},
    path::Path,
    time::Instant,
};
use tierbar_measure::{
    bench::Figure,
    diagnosis::{HostFigures, MachineFigures},
};
use tierbar_telemetry::{cpu_ms, footprint, hardware, working_set};
use tokio::task::spawn_blocking;

/// How often a small write is timed, and how large it is: a page of the database.
const WRITES: usize = 8;
const WRITE_BYTES: usize = 4096;

impl Admin {
    pub(crate) async fn read_figures(&self) -> (MachineFigures, HostFigures) {
        let known = self.local.machine_for(&self.local.readable().await).await;
        let folder = self.config.models.library().models_dir().to_owned();
        let home = self.config.home().to_owned();
        let read = spawn_blocking(move || {
            let hardware = hardware();
            let pid = std::process::id();
            let count = |cores: usize| u32::try_from(cores).unwrap_or(u32::MAX);
            let machine = MachineFigures {
                system: hardware.system,
                architecture: std::env::consts::ARCH.to_owned(),
                processor: hardware.processor,
                cores: count(hardware.cores),
                fast_cores: hardware.fast_cores.map(count),
                working_set_bytes: working_set(),
                memory_bytes_per_second: known.memory_bandwidth,
                disk_bytes_per_second: known.disk_bandwidth,
                disk_free_bytes: Volume::of(&folder).ok().map(|volume| volume.free),
                sync_ms: sync_ms(&home).ok().flatten(),
            };
            (machine, footprint(pid), cpu_ms(pid))
        });
        let (machine, footprint_bytes, cpu_ms) = read.await.unwrap_or_default();
        let tierbar = HostFigures {
            app: self.kind == HostKind::App,
            uptime_seconds: self.begun.elapsed().as_secs(),
            footprint_bytes,
            cpu_ms,
        };
        (machine, tierbar)
    }
}

/// Times small writes in the folder until they are safe on the disk, as an acknowledged message is; returns the median.
fn sync_ms(folder: &Path) -> io::Result<Option<f64>> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut runs = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        let begun = Instant::now();
        file.write_all(&[0; WRITE_BYTES])?;
        // On macOS this asks the disk itself to write (F_FULLFSYNC).
        file.sync_all()?;
        runs.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(Figure::from_runs(runs).map(|figure| figure.median))
}
