//! One worker process, from its spawn to its end. The task here owns the child and reports; it decides nothing.

mod cause;
mod command;
mod exit;
mod failure;
pub(crate) mod foreign;
mod handshake;
mod health;
mod log;
mod socket;
mod trim;

pub(crate) use failure::WorkerFailure;
pub(crate) use trim::trim;

use crate::{
    LoadSpec,
    predecessors::PredecessorLock,
    reclaim::{MemoryProbe, MemoryReclaim},
    safe_mode::LoadRecord,
};
use cause::OomKills;
use handshake::HandshakeFailure;
use log::RecentOutput;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    fs::{self, Permissions},
    io,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tierbar_core::{TierId, lease::Address, reclaim::MissingMemory, worker::WorkerReady};
use tokio::{
    io::{BufReader, copy, sink},
    process::{Child, ChildStdin},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// After a process has ended, how long a pipe that something else holds open is still read.
const LAST_READ: Duration = Duration::from_secs(1);

/// How long a killed process may take to end: a large one takes seconds, and one that waits for a broken disk never ends.
const KILLED: Duration = Duration::from_secs(10);

/// The parameters of a process.
#[derive(Debug)]
pub(crate) struct LaunchParams {
    pub(crate) tier: TierId,
    pub(crate) program: PathBuf,
    pub(crate) spec: LoadSpec,
    pub(crate) socket: PathBuf,
    /// The address of a command.
    pub(crate) address: Address,
    /// Reserves the port until then.
    pub(crate) reserved: Option<TcpListener>,
    pub(crate) log: PathBuf,
    pub(crate) contexts: Option<PathBuf>,
    /// The folder of saved conversations, and its limit in MiB.
    pub(crate) swapped: Option<(PathBuf, u32)>,
    pub(crate) load_silence: Duration,
    pub(crate) stop_deadline: Duration,
    pub(crate) health_period: Duration,
    pub(crate) memory: Arc<dyn MemoryProbe>,
    pub(crate) loads: Arc<LoadRecord>,
    pub(crate) predecessors: Arc<PredecessorLock>,
}

/// The reports on a process, in this order; `Ended` and `Back` always come.
#[derive(Debug)]
pub(crate) enum ProcessReport {
    Spawned(u32),
    /// The percentage of the weights that is loaded.
    Loading(u8),
    Ready(WorkerReady),
    /// The process has ended. Without a failure, it ended on request.
    Ended(Option<WorkerFailure>),
    /// Memory not freed this long after its end.
    Missing(MissingMemory, Duration),
    /// All memory is freed, or counts as another program's; with the available memory. This is the last report.
    Back(Option<u64>),
}

/// Requests a process's end. Clones request it of the same process.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignal {
    requested: CancellationToken,
    at_once: CancellationToken,
}

impl StopSignal {
    /// With `at_once`, it has no time to save its conversations.
    pub(crate) fn request(&self, at_once: bool) {
        if at_once {
            self.at_once.cancel();
        }
        self.requested.cancel();
    }
}

/// Runs a process until it ends or is stopped. Must be called within a tokio runtime.
pub(crate) fn run_process(
    mut launch: LaunchParams,
    stop: StopSignal,
    report: impl Fn(ProcessReport) + Send + Sync + 'static,
) {
    tokio::spawn(async move {
        let available = launch.run(&stop, &report).await;
        report(ProcessReport::Back(available));
    });
}

impl LaunchParams {
    async fn run(&mut self, stop: &StopSignal, report: &impl Fn(ProcessReport)) -> Option<u64> {
        tokio::select! {
            biased;
            () = self.predecessors.gone() => {}
            () = stop.requested.cancelled() => {
                report(ProcessReport::Ended(None));
                return None;
            }
        }
        let reserved = self.reserved.take();
        let model = self.spec.model.clone();
        self.loads.begin(self.tier.clone(), model).await;
        match &self.spec.command {
            None => self.run_worker(stop, report).await,
            Some(command) => foreign::run_command(self, command, reserved, stop, report).await,
        }
    }

    async fn run_worker(&self, stop: &StopSignal, report: &impl Fn(ProcessReport)) -> Option<u64> {
        let mut process = match WorkerProcess::spawn(self) {
            Ok(process) => process,
            Err(error) => {
                self.loads.end(false).await;
                report(ProcessReport::Ended(Some(self.not_run(&error))));
                return None;
            }
        };
        report(ProcessReport::Spawned(process.pid));
        let failure = self.attend(&mut process, stop, report).await;
        if !process.ready {
            self.loads.end(false).await;
        }
        report(ProcessReport::Ended(failure));
        let report_missing = |missing, waited| report(ProcessReport::Missing(missing, waited));
        process.reclaim.follow(report_missing).await
    }

    /// Returns when the process has ended.
    async fn attend(
        &self,
        process: &mut WorkerProcess,
        stop: &StopSignal,
        report: &impl Fn(ProcessReport),
    ) -> Option<WorkerFailure> {
        tokio::select! {
            biased;
            () = stop.requested.cancelled() => {}
            unready = process.start(self, report) => match unready {
                Ok(ready) => {
                    process.ready = true;
                    self.loads.end(true).await;
                    report(ProcessReport::Ready(ready));
                    tokio::select! {
                        biased;
                        () = stop.requested.cancelled() => {}
                        status = process.child.wait() => return Some(self.crashed(status, process).await),
                        silent = health::wait_until_lost(&self.socket, self.health_period) => {
                            return Some(self.hung(process, silent).await);
                        }
                    }
                }
                Err(unready) => return Some(self.unready(unready, process).await),
            },
        }
        tokio::select! {
            biased;
            () = stop.at_once.cancelled() => process.kill().await,
            () = process.end(self.stop_deadline) => {}
        }
        None
    }
}

struct WorkerProcess {
    child: Child,
    pid: u32,
    /// Open while the worker may run: its end signals that the host is gone.
    stdin: Option<ChildStdin>,
    words: Arc<RecentOutput>,
    drains: JoinSet<()>,
    reclaim: MemoryReclaim,
    oom_kills: OomKills,
    ready: bool,
}

impl WorkerProcess {
    fn spawn(launch: &LaunchParams) -> io::Result<Self> {
        let mut child = launch.command().spawn()?;
        let pid = child
            .id()
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        let words = Arc::new(RecentOutput::default());
        let mut drains = JoinSet::new();
        if let Some(stderr) = child.stderr.take() {
            let (words, path) = (Arc::clone(&words), launch.log.clone());
            drains.spawn(async move { log::drain(stderr, &path, &words).await });
        }
        let stdin = child.stdin.take();
        Ok(Self {
            child,
            pid,
            stdin,
            words,
            drains,
            reclaim: MemoryReclaim::new(Arc::clone(&launch.memory), pid),
            oom_kills: OomKills::since_now(&launch.memory),
            ready: false,
        })
    }

    /// Waits for the handshake, and keeps reading after it.
    async fn start(
        &mut self,
        launch: &LaunchParams,
        report: &impl Fn(ProcessReport),
    ) -> Result<WorkerReady, HandshakeFailure> {
        let Some(stdout) = self.child.stdout.take() else {
            return Err(HandshakeFailure::Closed);
        };
        let mut stdout = BufReader::new(stdout);
        let ready = handshake::await_handshake(
            &mut stdout,
            &self.words,
            launch.load_silence,
            self.pid,
            &launch.socket,
            |percent| report(ProcessReport::Loading(percent)),
        )
        .await?;
        // The folder is private; this is for a worker with another one.
        if let Err(error) = fs::set_permissions(&launch.socket, Permissions::from_mode(0o600)) {
            tracing::warn!(socket = %launch.socket.display(), %error, "a socket's mode could not be set");
        }
        self.drains.spawn(async move {
            // Only a full pipe matters.
            let _ = copy(&mut stdout, &mut sink()).await;
        });
        Ok(ready)
    }

    /// Asks the process to end, and kills it after the deadline. Returns when it is gone.
    async fn end(&mut self, deadline: Duration) {
        self.reclaim.look().await;
        if let Some(pid) = self.alive() {
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(deadline, self.child.wait()).await.is_err() {
            self.kill().await;
        }
        // Not earlier: its end would keep the worker from saving its conversations.
        drop(self.stdin.take());
        self.drain_output().await;
    }

    /// Returns when the process is gone, or cannot be killed: then its memory does not come back.
    async fn kill(&mut self) {
        self.reclaim.look().await;
        if let Some(pid) = self.alive() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        match timeout(KILLED, self.child.wait()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::error!(pid = self.pid, %error, "a killed worker could not be waited for");
            }
            Err(_) => tracing::error!(pid = self.pid, "a worker was killed and does not end"),
        }
    }

    /// Its id, which is not reused until the process is reaped.
    fn alive(&self) -> Option<Pid> {
        let pid = i32::try_from(self.child.id()?).ok()?;
        Pid::from_raw(pid)
    }

    /// Reads the rest of the process's output.
    async fn drain_output(&mut self) {
        let all = async { while self.drains.join_next().await.is_some() {} };
        let _ = timeout(LAST_READ, all).await;
    }
}
