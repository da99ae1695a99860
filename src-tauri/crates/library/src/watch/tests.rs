use super::*;
use notify::{Config, EventHandler, RecursiveMode, Watcher, WatcherKind};
use std::{fs, path::Path};
use tokio::time::timeout;

const SOON: Pace = Pace {
    settling: Duration::from_millis(5),
    longest: Duration::from_millis(50),
    look: Duration::from_millis(20),
    poll: Duration::from_millis(20),
};

#[tokio::test(start_paused = true)]
async fn a_burst_of_changes_ends_after_a_quiet_period() {
    let bell = Arc::<Bell>::default();
    let pace = Pace::default();
    let start = Instant::now();
    let ringing = Arc::clone(&bell);
    tokio::spawn(async move {
        for _ in 0..10 {
            ringing.ring();
            sleep(Duration::from_millis(100)).await;
        }
    });
    wait_until_settled(&bell, pace).await;
    assert_eq!(start.elapsed(), Duration::from_millis(900) + pace.settling);
}

#[tokio::test(start_paused = true)]
async fn endless_changes_still_cause_scans() {
    let bell = Arc::<Bell>::default();
    let pace = Pace::default();
    let start = Instant::now();
    let ringing = Arc::clone(&bell);
    tokio::spawn(async move {
        loop {
            ringing.ring();
            sleep(Duration::from_millis(100)).await;
        }
    });
    wait_until_settled(&bell, pace).await;
    assert_eq!(start.elapsed(), pace.longest);
}

/// As inotify when its watches are used up.
#[derive(Debug)]
struct Full;

impl Watcher for Full {
    fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
        Ok(Self)
    }
    fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
        Err(notify::Error::new(notify::ErrorKind::MaxFilesWatch))
    }
    fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
        Ok(())
    }
    fn kind() -> WatcherKind {
        WatcherKind::NullWatcher
    }
}

fn full(_: Arc<Bell>) -> notify::Result<Box<dyn Watcher + Send>> {
    Ok(Box::new(Full))
}

fn none(_: Arc<Bell>) -> notify::Result<Box<dyn Watcher + Send>> {
    Err(notify::Error::generic("too many instances"))
}

#[tokio::test]
async fn folders_beyond_the_watch_limit_are_polled_and_noted() {
    for (make, why) in [
        (full as attach::Make, "watch limit reached"),
        (none, "too many instances"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let library = Arc::new(Library::new(folder.path().to_owned()));
        let watch = LibraryWatch::start_with(library, SOON, make);
        let first = watch.latest().await;
        assert_eq!(first.notices.len(), 1);
        assert!(first.notices[0].contains(why), "{:?}", first.notices);
        fs::write(folder.path().join("a.gguf"), "").unwrap();
        let mut snapshot = watch.snapshot();
        let seen =
            snapshot.wait_for(|scan| scan.as_ref().is_some_and(|scan| scan.entries.len() == 1));
        let seen = timeout(Duration::from_secs(60), seen).await;
        assert!(seen.unwrap().is_ok());
    }
}
