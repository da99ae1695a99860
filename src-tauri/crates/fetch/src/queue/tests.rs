//! The queue's rules, over transfers that a test conducts.

mod adding;
mod ending;
mod keeping;
mod real;
mod showing;
mod turns;

use super::{
    Job, Queue,
    owner::Owner,
    run::{Effects, FileTransfer},
};
use crate::{
    FileSpec, RateLimit,
    transfer::{FetchedFile, Phase, Progress},
};
use parking_lot::Mutex;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tempfile::TempDir;
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus, Priority},
};
use tokio::sync::{mpsc, oneshot};

/// Only a guard against a hang.
const LONG: Duration = Duration::from_secs(3600);

/// A queue whose transfers wait for the test.
struct Stage {
    folder: Arc<TempDir>,
    queue: Queue,
    calls: mpsc::UnboundedReceiver<Call>,
    cues: Cues,
}

#[derive(Clone, Default)]
struct Cues {
    /// A transfer goes on after it has been canceled, until the test ends it.
    stubborn: Arc<AtomicBool>,
    /// What `on_complete` answers, the next first. Empty: it succeeds.
    callback_answers: Arc<Mutex<Vec<CallbackAnswer>>>,
    /// What `on_complete` was called with.
    completed: Arc<Mutex<Vec<Completion>>>,
}

type CallbackAnswer = oneshot::Receiver<Result<(), Error>>;
type Completion = (String, Vec<FetchedFile>);

/// One transfer that runs.
struct Call {
    work: FileTransfer,
    end: oneshot::Sender<Outcome>,
}

type Outcome = Box<dyn FnOnce() -> Result<FetchedFile, Error> + Send>;

impl Stage {
    fn new(at_once: u8) -> Self {
        Self::within(Arc::new(tempfile::tempdir().unwrap()), at_once)
    }

    fn within(folder: Arc<TempDir>, at_once: u8) -> Self {
        let (called, calls) = mpsc::unbounded_channel();
        let cues = Cues::default();
        let stubborn = cues.stubborn.clone();
        let (callback_answers, completed) = (cues.callback_answers.clone(), cues.completed.clone());
        let effects = Effects {
            transfer: Arc::new(move |work| {
                let (end, mut ended) = oneshot::channel::<Outcome>();
                let (called, stubborn) = (called.clone(), stubborn.clone());
                Box::pin(async move {
                    let cancel = work.cancel.clone();
                    called
                        .send(Call { work, end })
                        .unwrap_or_else(|_| unreachable!());
                    tokio::select! {
                        biased;
                        Ok(outcome) = &mut ended => return outcome(),
                        () = cancel.cancelled() => {}
                    }
                    if stubborn.load(Ordering::Relaxed)
                        && let Ok(outcome) = ended.await
                    {
                        return outcome();
                    }
                    Err(Error::new(Code::Cancelled, "stopped"))
                })
            }),
            on_complete: Arc::new(move |job, fetched| {
                completed
                    .lock()
                    .push((job.reference.clone(), fetched.to_vec()));
                let mut callback_answers = callback_answers.lock();
                if callback_answers.is_empty() {
                    return Box::pin(async { Ok(()) });
                }
                let answer = callback_answers.remove(0);
                Box::pin(async move {
                    answer
                        .await
                        .unwrap_or_else(|_| panic!("the callback panicked"))
                })
            }),
        };
        let rate = RateLimit::new(0);
        let queue = Owner::start(folder.path().join("downloads.json"), effects, at_once, rate);
        Self {
            folder,
            queue,
            calls,
            cues,
        }
    }

    /// As another program would start after this one has ended.
    async fn restart(self) -> Self {
        self.queue.shutdown().await;
        Self::within(self.folder, 1)
    }

    /// As another program would start after this one was killed.
    async fn crash(self) -> Self {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let text = std::fs::read_to_string(copy.path().join("downloads.json")).unwrap();
        let moved = text.replace(
            self.folder.path().to_str().unwrap(),
            copy.path().to_str().unwrap(),
        );
        std::fs::write(copy.path().join("downloads.json"), moved).unwrap();
        Self::within(Arc::new(copy), 1)
    }

    fn dest(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn state_file(&self) -> String {
        std::fs::read_to_string(self.dest("downloads.json")).unwrap()
    }

    /// A job of files of 1000 bytes each.
    fn job(&self, reference: &str, files: &[&str]) -> Job {
        let file = |name: &&str| FileSpec {
            url: format!("https://hub.example/{name}").parse().unwrap(),
            dest: self.dest(name),
            size: Some(1000),
            sha256: None,
        };
        Job {
            reference: reference.to_owned(),
            files: files.iter().map(file).collect(),
            priority: Priority::Normal,
            warnings: Vec::new(),
        }
    }

    async fn add(&self, name: &str, priority: Priority) -> String {
        let job = Job {
            priority,
            ..self.job(name, &[name])
        };
        let (status, new) = self.queue.add(job).await.unwrap();
        assert!(new);
        status.id
    }

    /// The next transfer that starts.
    async fn call(&mut self) -> Call {
        let call = tokio::time::timeout(LONG, self.calls.recv()).await;
        call.expect("a transfer starts").unwrap()
    }

    /// The next two, by name, since their order is undefined.
    async fn two_calls(&mut self) -> (Call, Call) {
        let (one, other) = (self.call().await, self.call().await);
        if one.name() < other.name() {
            (one, other)
        } else {
            (other, one)
        }
    }

    /// No transfer has started, and none will by itself.
    async fn no_call(&mut self) {
        // Whatever is ready to run runs before time moves on.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(self.calls.try_recv().is_err(), "no transfer starts");
    }

    fn list(&self) -> Vec<DownloadStatus> {
        self.queue.watch().borrow().to_vec()
    }

    fn shown(&self) -> Vec<(String, DownloadState)> {
        let list = self.list().into_iter();
        list.map(|it| (it.reference, it.state)).collect()
    }

    fn status(&self, reference: &str) -> DownloadStatus {
        let mut list = self.list().into_iter();
        list.find(|it| it.reference == reference).expect(reference)
    }

    async fn until(&self, reference: &str, state: DownloadState) -> DownloadStatus {
        let mut seen = self.queue.watch();
        let is = |list: &Arc<Vec<DownloadStatus>>| {
            list.iter()
                .any(|it| it.reference == reference && it.state == state)
        };
        let waited = tokio::time::timeout(LONG, seen.wait_for(is)).await;
        assert!(
            waited.is_ok(),
            "{reference} becomes {state:?}: {:?}",
            self.shown()
        );
        self.status(reference)
    }
}

impl Call {
    fn name(&self) -> &str {
        self.work.spec.dest.file_name().unwrap().to_str().unwrap()
    }

    fn report(&self, received: u64, phase: Phase) {
        self.work.progress.send_replace(Progress {
            received,
            total: self.work.spec.size,
            phase,
        });
    }

    /// The file is here.
    fn finish(self) {
        let dest = self.work.spec.dest.clone();
        self.end_with(move || {
            std::fs::write(dest, [0; 1000]).unwrap();
            Ok(fetched())
        });
    }

    fn fail(self, error: Error) {
        self.end_with(|| Err(error));
    }

    fn end_with(self, outcome: impl FnOnce() -> Result<FetchedFile, Error> + Send + 'static) {
        assert!(
            self.end.send(Box::new(outcome)).is_ok(),
            "the transfer still runs"
        );
    }

    async fn cancelled(&self) {
        let cancelled = tokio::time::timeout(LONG, self.work.cancel.cancelled()).await;
        assert!(cancelled.is_ok(), "the transfer is canceled");
    }

    fn is_cancelled(&self) -> bool {
        self.work.cancel.is_cancelled()
    }
}

fn fetched() -> FetchedFile {
    FetchedFile {
        size: 1000,
        sha256: "00".repeat(32),
    }
}

fn waiting(reason: &str) -> Phase {
    Phase::Waiting {
        reason: reason.to_owned(),
        until: None,
    }
}
