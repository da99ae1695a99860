//! Pressure as the kernel announces it: triggers on stall information.

use super::{cgroup, stalls};
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    fd::{AsFd, OwnedFd},
    io::Errno,
};
use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
};
use tierbar_core::status::Pressure;

/// Without privileges, only multiples of two seconds are allowed.
const WINDOWS_US: [u64; 2] = [1_000_000, 2_000_000];

/// Announces changes while this lives. No call is running after it is dropped.
#[derive(Debug)]
pub struct PressureListener {
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl PressureListener {
    /// Returns `None` if the kernel offers no triggers, or none to this user.
    pub(crate) fn begin(notify: impl Fn(Pressure) + Send + 'static) -> Option<Self> {
        let file = cgroup::limit(Path::new("/"))
            .map(|limit| limit.group.join("memory.pressure"))
            .filter(|file| file.exists())
            .unwrap_or_else(|| PathBuf::from(stalls::MACHINE));
        let triggers = [
            (stalls::CRITICAL_PERCENT, Pressure::Critical),
            (stalls::WARNING_PERCENT, Pressure::Warning),
        ]
        .into_iter()
        .map(|(percent, level)| Ok((open_trigger(&file, percent)?, level)))
        .collect::<io::Result<Vec<_>>>();
        let begun = triggers.and_then(|triggers| Self::with_triggers(triggers, notify));
        begun
            .inspect_err(|error| {
                tracing::info!(
                    "{} does not announce pressure, so it is only read at intervals: {error}",
                    file.display()
                );
            })
            .ok()
    }

    fn with_triggers(
        triggers: Vec<(OwnedFd, Pressure)>,
        notify: impl Fn(Pressure) + Send + 'static,
    ) -> io::Result<Self> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let thread = thread::Builder::new().name("pressure".into()).spawn({
            let end = Arc::clone(&end);
            move || wait_for_triggers(&end, &triggers, notify)
        })?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for PressureListener {
    fn drop(&mut self) {
        // This fails only if the counter is full, and then the thread is already awake.
        let _ = rustix::io::write(&*self.end, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A panic in the callback was printed where it happened.
            let _ = thread.join();
        }
    }
}

fn open_trigger(file: &Path, percent: u64) -> io::Result<OwnedFd> {
    let mut refused = None;
    for window in WINDOWS_US {
        // Each open file has one trigger.
        let mut opened = OpenOptions::new().read(true).write(true).open(file)?;
        let request = format!("some {} {window}\0", window / 100 * percent);
        match opened.write_all(request.as_bytes()) {
            Ok(()) => return Ok(opened.into()),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
}

fn wait_for_triggers(end: &OwnedFd, triggers: &[(OwnedFd, Pressure)], notify: impl Fn(Pressure)) {
    let mut waiting = vec![PollFd::new(end, PollFlags::IN)];
    waiting.extend(
        triggers
            .iter()
            .map(|(trigger, _)| PollFd::from_borrowed_fd(trigger.as_fd(), PollFlags::PRI)),
    );
    loop {
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!("pressure is no longer announced: {error}");
                return;
            }
        }
        if !waiting[0].revents().is_empty() {
            return;
        }
        let happened = |flag: PollFlags| {
            waiting[1..]
                .iter()
                .zip(triggers)
                .filter(move |(fd, _)| fd.revents().contains(flag))
                .map(|(_, (_, level))| *level)
                .max()
        };
        if happened(PollFlags::ERR).is_some() {
            tracing::info!("pressure is no longer announced: its control group is gone");
            return;
        }
        if let Some(level) = happened(PollFlags::PRI) {
            notify(level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        net::{TcpListener, TcpStream},
        sync::mpsc,
    };

    /// Out-of-band data makes a connection ready, as an event does a trigger.
    fn connection() -> (TcpStream, OwnedFd) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0.into())
    }

    fn fire(connection: &TcpStream) {
        rustix::net::send(connection, b"!", rustix::net::SendFlags::OOB).unwrap();
    }

    #[test]
    fn an_event_has_its_level_and_a_closed_file_ends_the_watch() {
        let ((warning, first), (critical, second)) = (connection(), connection());
        let triggers = vec![(first, Pressure::Warning), (second, Pressure::Critical)];
        let (sender, levels) = mpsc::channel();
        let announced = PressureListener::with_triggers(triggers, move |level| {
            let _ = sender.send(level);
        })
        .unwrap();
        fire(&warning);
        assert_eq!(levels.recv(), Ok(Pressure::Warning));
        fire(&critical);
        // The first stays ready, unlike a trigger; of several levels the worst is reported.
        while levels.recv().unwrap() != Pressure::Critical {}
        drop(announced);
        // The thread has ended, and with it the sender.
        while levels.recv().is_ok() {}
    }

    #[test]
    fn a_trigger_can_be_set_where_the_kernel_has_psi() {
        let file = Path::new(stalls::MACHINE);
        if OpenOptions::new().write(true).open(file).is_err() {
            assert!(PressureListener::begin(|_| {}).is_none());
        } else {
            assert!(open_trigger(file, stalls::WARNING_PERCENT).is_ok());
            // More than 100 % is invalid.
            assert!(open_trigger(file, 101).is_err());
            assert!(PressureListener::begin(|_| {}).is_some());
            assert!(open_trigger(&file.join("none"), 10).is_err());
        }
    }
}
