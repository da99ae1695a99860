//! The status: put together from readings, tiers and speed, and published when it has changed.

use crate::{history::PastReadings, journal::now, memory_guard::GuardRunner};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tierbar_core::{
    TierState,
    download::DownloadStatus,
    history::ModelUse,
    lease::Tiers,
    notification::Notification,
    origin::RefusedOrigins,
    paging::DiskTraffic,
    reading::Reading,
    status::{EngineKind, Pressure, Ram, Status, Swap},
};
use tierbar_inference::speed::SpeedMeter;
use tierbar_supervisor::Handle;
use tierbar_telemetry::{DiskUse, Sampler, footprint, held_by, members_of_group, pressure_changes};
use tokio::{
    sync::{Notify, watch},
    task::spawn_blocking,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

/// How often readings are taken while there is a watcher or a worker, and otherwise.
const WATCHED: Duration = Duration::from_secs(1);
const UNWATCHED: Duration = Duration::from_secs(5);
/// How many notifications are published: a page that reconnects may have missed some.
const NOTIFICATIONS: usize = 8;
/// The most that a slow sensor may delay a reading.
const LATE: Duration = Duration::from_secs(3);

type Downloads = watch::Receiver<Arc<Vec<DownloadStatus>>>;

#[derive(Debug)]
pub(crate) struct StatusBoard {
    pub(crate) past: PastReadings,
    disks: Mutex<DiskUse>,
    published: watch::Sender<Arc<Status>>,
    watcher: Notify,
    url: String,
    supervisor: Handle,
    memory_guard: Arc<GuardRunner>,
    speed: SpeedMeter,
    downloads: Downloads,
    memory: Mutex<Memory>,
    notices: Mutex<Vec<String>>,
    notifications: Mutex<Vec<Notification>>,
    refused: Mutex<RefusedOrigins>,
    models: AtomicU64,
    config: AtomicU64,
}

/// The memory shown: for unknown figures, the last known ones.
#[derive(Debug, Default)]
struct Memory {
    ram: Ram,
    swap: Swap,
    /// A notice that some figures are old, and why.
    notice: Option<String>,
}

impl Memory {
    fn update(&mut self, reading: &Reading) {
        let Self { ram, swap, notice } = self;
        ram.total_bytes = reading.ram_total_bytes.unwrap_or(ram.total_bytes);
        ram.available_bytes = reading.ram_available_bytes.unwrap_or(ram.available_bytes);
        ram.pressure = reading.pressure.unwrap_or(ram.pressure);
        swap.used_bytes = reading.swap_used_bytes.unwrap_or(swap.used_bytes);
        swap.growth_bytes_per_minute = reading
            .swap_growth_bytes_per_minute
            .unwrap_or(swap.growth_bytes_per_minute);
        let unknown = reading.ram_total_bytes.is_none()
            || reading.ram_available_bytes.is_none()
            || reading.pressure.is_none()
            || reading.swap_used_bytes.is_none();
        *notice = reading.doubts.first().filter(|_| unknown).map(|doubt| {
            format!(
                "Tierbar cannot read this machine's memory, so the figures shown are older: {}",
                doubt.why
            )
        });
    }
}

impl StatusBoard {
    pub(crate) fn new(
        url: String,
        supervisor: Handle,
        memory_guard: Arc<GuardRunner>,
        speed: SpeedMeter,
        downloads: Downloads,
        reading: &Reading,
        past: PastReadings,
    ) -> Self {
        let board = Self {
            past,
            disks: Mutex::default(),
            published: watch::Sender::default(),
            watcher: Notify::new(),
            url,
            supervisor,
            memory_guard,
            speed,
            downloads,
            memory: Mutex::default(),
            notices: Mutex::default(),
            notifications: Mutex::default(),
            refused: Mutex::default(),
            models: AtomicU64::new(0),
            config: AtomicU64::new(0),
        };
        board.take_in(reading);
        board.now();
        board
    }

    fn take_in(&self, reading: &Reading) {
        self.memory_guard.observe(reading);
        self.memory.lock().update(reading);
        self.disks.lock().record(reading);
    }

    /// Returns the current status, and publishes it.
    pub(crate) fn now(&self) -> Arc<Status> {
        let now = self.compose();
        self.published.send_if_modified(|published| {
            let differs = **published != now;
            if differs {
                *published = Arc::new(now);
            }
            differs
        });
        Arc::clone(&self.published.borrow())
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.now();
        let receiver = self.published.subscribe();
        self.watcher.notify_one();
        receiver
    }

    /// Marks the list of models as changed. Watchers see it with the next notices.
    pub(crate) fn models_changed(&self) {
        self.models.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn config_changed(&self) {
        self.config.fetch_add(1, Ordering::Relaxed);
        self.now();
    }

    /// Returns what the disks do; `None` if that is unknown.
    pub(crate) fn disk_traffic(&self) -> Option<DiskTraffic> {
        self.disks.lock().traffic()
    }

    pub(crate) fn notice(&self, notices: Vec<String>) {
        *self.notices.lock() = notices;
        self.now();
    }

    /// Publishes notifications, with the last ones before them.
    pub(crate) fn notify(&self, new: Vec<Notification>) {
        let mut published = self.notifications.lock();
        published.extend(new);
        let surplus = published.len().saturating_sub(NOTIFICATIONS);
        published.drain(..surplus);
        drop(published);
        self.now();
    }

    /// Remembers an origin whose page was refused, and publishes it if it is new.
    pub(crate) fn refuse_origin(&self, origin: &str) {
        let is_new = self.refused.lock().note(origin, now());
        if is_new {
            self.now();
        }
    }

    /// Forgets that pages of these origins were refused. Watchers see it with the next notices.
    pub(crate) fn forget_origins(&self, origins: &[String]) {
        self.refused.lock().forget(origins);
    }

    /// Keeps the status up to date until `closing`.
    pub(crate) async fn run(self: Arc<Self>, mut sampler: Sampler, closing: CancellationToken) {
        let mut tiers = self.supervisor.watch();
        let mut downloads = self.downloads.clone();
        let mut sampled = Instant::now();
        let mut footprints = Instant::now();
        let mut read = Vec::new();
        let (announce, mut announced) = watch::channel(Pressure::Normal);
        let _announcements = pressure_changes(move |level| {
            announce.send_replace(level);
        });
        loop {
            let watched = self.published.receiver_count() > 0;
            let alert = watched || !read.is_empty() || self.memory_guard.is_alarmed();
            let period = if alert { WATCHED } else { UNWATCHED };
            let due = tokio::select! {
                () = closing.cancelled() => return self.past.close().await,
                () = sleep_until(sampled + period) => true,
                () = self.watcher.notified() => sampled.elapsed() >= WATCHED,
                // Memory may run out before the next reading. Without announcements this never happens.
                Ok(()) = announced.changed() => {
                    sampler.announced(*announced.borrow_and_update());
                    true
                }
                // It ends with the host, like the tiers, which report that.
                Ok(()) = downloads.changed() => false,
                changed = tiers.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    // A worker is read at once when it starts and when it has loaded, but not more often: some cannot be
                    // read, and a reading is itself a change.
                    let now: Vec<_> = tiers
                        .borrow_and_update()
                        .iter()
                        .filter_map(|tier| Some((tier.pid?, tier.state == TierState::Starting)))
                        .collect();
                    if now.iter().any(|worker| !read.contains(worker)) {
                        self.read_footprints().await;
                    }
                    read = now;
                    false
                }
            };
            if due {
                sampled = Instant::now();
                let reading;
                (sampler, reading) = sample(sampler).await;
                self.take_in(&reading);
                // A busy disk must not delay the status.
                let _ = timeout(WATCHED, self.past.record(&reading, self.model_use())).await;
                // The kernel walks a worker's pages for it, and no decision depends on it.
                if watched || footprints.elapsed() >= UNWATCHED {
                    footprints = Instant::now();
                    self.read_footprints().await;
                }
            }
            self.now();
        }
    }

    async fn read_footprints(&self) {
        let tiers = self.supervisor.snapshot();
        if tiers.iter().all(|tier| tier.pid.is_none()) {
            return;
        }
        let read = spawn_blocking(move || {
            let tiers = tiers.into_iter();
            tiers
                .filter_map(|tier| Some((tier.id, footprint_of(tier.pid?, tier.engine)?)))
                .collect::<Vec<_>>()
        });
        // The kernel may be slow for a process that is short of memory.
        if let Ok(Ok(footprints)) = timeout(WATCHED, read).await
            && !footprints.is_empty()
        {
            self.supervisor.set_footprints(footprints);
        }
    }
}

/// Returns what a worker's end would free. A command may have started other processes in its group; our worker starts none.
fn footprint_of(pid: u32, engine: EngineKind) -> Option<u64> {
    match engine {
        EngineKind::Command => held_by(&members_of_group(pid).ok()?).ok(),
        EngineKind::Embedded | EngineKind::Endpoint => footprint(pid),
    }
}

/// Off the tasks that answer requests, since some sensors are slow.
async fn sample(mut sampler: Sampler) -> (Sampler, Reading) {
    let sampled = spawn_blocking(move || {
        let reading = sampler.sample();
        (sampler, reading)
    });
    let late = timeout(LATE, sampled).await;
    let why = match late {
        Ok(Ok(sampled)) => return sampled,
        Ok(Err(ended)) => ended.to_string(),
        Err(_) => format!("it takes more than {} s", LATE.as_secs()),
    };
    tracing::error!("a reading counts as unknown: {why}");
    (Sampler::default(), Reading::default())
}

impl StatusBoard {
    /// What models have done since the last reading. A worker that cannot be read makes the sum unknown.
    fn model_use(&self) -> ModelUse {
        let tiers = self.supervisor.snapshot();
        let bytes: Option<u64> = tiers
            .iter()
            .filter(|tier| tier.pid.is_some())
            .map(|tier| tier.footprint_bytes)
            .sum();
        ModelUse {
            bytes,
            decode_tokens_per_second: self.speed.take_decode(),
        }
    }

    fn compose(&self) -> Status {
        let mut notices = self.notices.lock().clone();
        let (ram, swap) = {
            let memory = self.memory.lock();
            notices.extend(memory.notice.clone());
            (memory.ram, memory.swap)
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url: self.url.clone(),
            ram,
            swap,
            speed: self.speed.speed(),
            budget: self.supervisor.budget(),
            guard: self.memory_guard.status(),
            tiers: self.supervisor.snapshot(),
            downloads: self.downloads.borrow().to_vec(),
            models_revision: self.models.load(Ordering::Relaxed),
            config_revision: self.config.load(Ordering::Relaxed),
            notices,
            notifications: self.notifications.lock().clone(),
            refused_origins: self.refused.lock().list().to_vec(),
        }
    }
}
