//! Keeps the list of models up to date: one task scans again when models appear, vanish or change.
//!
//! The system reports changes in the folders of the last scan. Missing folders, such as those of disconnected volumes, and
//! link targets are polled every few seconds, as are all folders beyond the system's watch limit.

mod attach;

use crate::{Library, Scan, folder::Link, headers::stamp_at, trash::identity};
use attach::{Bell, WatchedFolders};
use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// The timing of scans.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// After a change, nothing may change for this long: files are written in several steps.
    pub settling: Duration,
    /// A scan waits no longer than this for changes to end.
    pub longest: Duration,
    /// How often missing folders are checked.
    pub look: Duration,
    /// How often everything is scanned if the system reports no changes.
    pub poll: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            settling: Duration::from_millis(500),
            longest: Duration::from_secs(3),
            look: Duration::from_secs(5),
            poll: Duration::from_secs(15),
        }
    }
}

/// Keeps a [`Scan`] up to date for as long as it lives.
#[derive(Debug)]
pub struct LibraryWatch {
    library: watch::Sender<Arc<Library>>,
    scan: watch::Receiver<Option<Arc<Scan>>>,
    bell: Arc<Bell>,
    scans: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl LibraryWatch {
    /// Must be called in a tokio runtime.
    pub fn start(library: Arc<Library>, pace: Pace) -> Self {
        Self::start_with(library, pace, attach::recommended_watcher)
    }

    fn start_with(library: Arc<Library>, pace: Pace, make: attach::Make) -> Self {
        let (library, follow) = watch::channel(library);
        let (publish, scan) = watch::channel(None);
        let bell = Arc::<Bell>::default();
        let scans = Arc::<AtomicU64>::default();
        let owner = Owner {
            library: follow,
            publish,
            bell: Arc::clone(&bell),
            scans: Arc::clone(&scans),
            pace,
            make,
        };
        Self {
            library,
            scan,
            bell,
            scans,
            task: tokio::spawn(owner.run()),
        }
    }

    /// Returns the watched library.
    pub fn library(&self) -> Arc<Library> {
        self.library.borrow().clone()
    }

    /// Watches another library from now on, after a change of its options. See [`Library::with`].
    pub fn follow(&self, library: Arc<Library>) {
        self.library.send_replace(library);
    }

    /// Returns the last scan as a channel; `None` until the first is done. It changes only with its contents.
    pub fn snapshot(&self) -> watch::Receiver<Option<Arc<Scan>>> {
        self.scan.clone()
    }

    /// Returns the last scan, and waits for the first.
    pub async fn latest(&self) -> Arc<Scan> {
        let mut scan = self.scan.clone();
        let first = scan.wait_for(Option::is_some).await;
        first.ok().and_then(|scan| scan.clone()).unwrap_or_default()
    }

    /// Requests a scan soon, after a change.
    pub fn look(&self) {
        self.bell.ring();
    }

    /// Returns the number of scans.
    pub fn scans(&self) -> u64 {
        self.scans.load(Ordering::Relaxed)
    }
}

impl Drop for LibraryWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Owner {
    library: watch::Receiver<Arc<Library>>,
    publish: watch::Sender<Option<Arc<Scan>>>,
    bell: Arc<Bell>,
    scans: Arc<AtomicU64>,
    pace: Pace,
    make: attach::Make,
}

impl Owner {
    async fn run(mut self) {
        let mut attached = WatchedFolders::new(self.make, &self.bell);
        loop {
            let library = self.library.borrow_and_update().clone();
            let places = folder_identities(&library);
            let work = spawn_blocking(move || {
                let (scan, links) = scan(&library, &mut attached);
                (scan, links, attached)
            });
            let Ok((scan, links, back)) = work.await else {
                // A defect of ours: the list stays as it is, and another try follows.
                tracing::error!("a scan of the models did not finish");
                attached = WatchedFolders::new(self.make, &self.bell);
                sleep(self.pace.poll).await;
                continue;
            };
            attached = back;
            self.scans.fetch_add(1, Ordering::Relaxed);
            self.publish.send_if_modified(|last| {
                let changed = last.as_deref() != Some(&scan);
                if changed {
                    *last = Some(Arc::new(scan));
                }
                changed
            });
            if !self.wait(places, links, attached.is_blind()).await {
                return;
            }
        }
    }

    /// Waits until the next scan is due. Returns `false` once the watch is dropped.
    async fn wait(&mut self, scanned: Vec<Place>, links: Vec<Link>, blind: bool) -> bool {
        let links = Arc::new(links);
        let poll = Instant::now() + self.pace.poll;
        loop {
            let look = Instant::now() + self.pace.look;
            tokio::select! {
                () = self.bell.rung() => {
                    wait_until_settled(&self.bell, self.pace).await;
                    return true;
                }
                changed = self.library.changed() => return changed.is_ok(),
                () = sleep_until(poll), if blind => return true,
                () = sleep_until(look) => {
                    let (library, links) = (self.library.borrow().clone(), Arc::clone(&links));
                    let look = move || {
                        let elsewhere = links.iter().any(|(link, was)| stamp_at(link) != *was);
                        (folder_identities(&library), elsewhere)
                    };
                    let now = spawn_blocking(look).await;
                    if now.is_ok_and(|(now, elsewhere)| elsewhere || now != scanned) {
                        return true;
                    }
                }
            }
        }
    }
}

async fn wait_until_settled(bell: &Bell, pace: Pace) {
    let latest = Instant::now() + pace.longest;
    loop {
        let quiet = (Instant::now() + pace.settling).min(latest);
        if timeout_at(quiet, bell.rung()).await.is_err() {
            return;
        }
    }
}

/// A folder's device and number; `None` if it is not there.
type Place = Option<(u64, u64)>;

fn folder_identities(library: &Library) -> Vec<Place> {
    let places = library.places().into_iter();
    places.map(|path| identity(&path)).collect()
}

fn scan(library: &Library, attached: &mut WatchedFolders) -> (Scan, Vec<Link>) {
    let mut inventory = library.inventory();
    // What came into a folder before it was watched is found by looking once more.
    if attached.to(&inventory.folders) {
        inventory = library.inventory();
        if attached.to(&inventory.folders) {
            attached.ring();
        }
    }
    inventory.notices.extend(attached.notice());
    let links = mem::take(&mut inventory.links);
    (library.read_headers(inventory), links)
}

#[cfg(test)]
mod tests;
