//! A name that leads elsewhere at times. The tests of other crates use it, too.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// What an attempt to use a name found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Own,
    Refused,
    /// What the link leads to.
    Foreign,
}

/// Exchanges a name with that of a link, over and over, while the name is used: for this time, and until it was both used and refused.
pub(crate) fn race(time: Duration, own: &Path, link: &Path, mut attempt: impl FnMut() -> Found) {
    let exchange = || renameat_with(CWD, own, CWD, link, RenameFlags::EXCHANGE);
    // Where the disk cannot do this, nothing is tested.
    exchange().and_then(|()| exchange()).unwrap();
    let is_over = AtomicBool::new(false);
    let leaked = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                exchange().unwrap();
            }
        });
        let begun = Instant::now();
        let (mut used, mut refused, mut leaked) = (false, false, false);
        while !leaked && (begun.elapsed() < time || !used || !refused) {
            match attempt() {
                Found::Own => used = true,
                Found::Refused => refused = true,
                Found::Foreign => leaked = true,
            }
        }
        is_over.store(true, Ordering::Relaxed);
        leaked
    });
    assert!(!leaked, "{} led elsewhere", own.display());
}
