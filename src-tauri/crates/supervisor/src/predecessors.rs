//! Commands of a killed host: their process guards end them within their deadline, and until then they hold memory and
//! ports. Each guard holds a lock on a file while it lives.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

const LOOK: Duration = Duration::from_millis(50);
/// The longest deadline of a command, and its guard's own time.
const LONGEST: Duration = Duration::from_secs(75);

#[derive(Debug)]
pub(crate) struct PredecessorLock {
    pub(crate) lock: PathBuf,
    gone: OnceCell<()>,
}

impl PredecessorLock {
    pub(crate) fn new(run_dir: &Path) -> Self {
        Self {
            lock: run_dir.join("commands.lock"),
            gone: OnceCell::new(),
        }
    }

    /// Returns when none of them is left.
    pub(crate) async fn gone(&self) {
        let wait = || async {
            let late = Instant::now() + LONGEST;
            let mut logged = false;
            while self.are_alive() && Instant::now() < late {
                if !logged {
                    tracing::warn!("a command that an earlier Tierbar started is still ending");
                    logged = true;
                }
                sleep(LOOK).await;
            }
        };
        self.gone.get_or_init(wait).await;
    }

    fn are_alive(&self) -> bool {
        let lock = match File::options().append(true).open(&self.lock) {
            Ok(file) => file.try_lock(),
            Err(_) => return false,
        };
        matches!(lock, Err(TryLockError::WouldBlock))
    }
}
