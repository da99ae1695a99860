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

pub(crate) use failure::WorkerFailure;
pub(crate) use socket::trim;

use crate::{
    LoadSpec, Options, predecessors::PredecessorLock, reclaim::MemoryReclaim, safe_mode::LoadRecord,
};
use cause::Evidence;
use handshake::HandshakeFailure;
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
    io::BufReader,
    process::{Child, ChildStdin},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// After a process has ended, how long a pipe that something else holds open is still read.
const LAST_READ: Duration = Duration::from_secs(1);

/// How long a killed process may take to end: a large one takes seconds, and one that waits for a broken disk never ends.
const KILLED: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct LaunchParams {
    pub(crate) tier: TierId,
    pub(crate) options: Options,
    pub(crate) spec: LoadSpec,
    pub(crate) socket: PathBuf,
    /// Where it answers: a worker at its socket.
    pub(crate) address: Address,
    /// Reserves the port of a command until then.
    pub(crate) reserved: Option<TcpListener>,
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

/// The end of a process.
struct ProcessEnd {
    failure: Option<WorkerFailure>,
    was_ready: bool,
    /// `None` if it never had any memory.
    reclaim: Option<MemoryReclaim>,
}

impl From<WorkerFailure> for ProcessEnd {
    fn from(failure: WorkerFailure) -> Self {
        Self {
            failure: Some(failure),
            was_ready: false,
            reclaim: None,
        }
    }
}

impl LaunchParams {
    fn log(&self) -> PathBuf {
        let name = format!("worker-{}.log", self.tier);
        self.options.log_dir.join(name)
    }

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
        let end = match &self.spec.command {
            None => self.run_worker(stop, report).await,
            Some(command) => foreign::run_command(self, command, reserved, stop, report).await,
        };
        if !end.was_ready {
            self.loads.end(false).await;
        }
        report(ProcessReport::Ended(end.failure));
        let report_missing = |missing, waited| report(ProcessReport::Missing(missing, waited));
        end.reclaim?.follow(report_missing).await
    }

    async fn run_worker(&self, stop: &StopSignal, report: &impl Fn(ProcessReport)) -> ProcessEnd {
        let mut process = match WorkerProcess::spawn(self) {
            Ok(process) => process,
            Err(error) => return self.not_run(&error).into(),
        };
        report(ProcessReport::Spawned(process.pid));
        ProcessEnd {
            failure: self.attend(&mut process, stop, report).await,
            was_ready: process.ready,
            reclaim: Some(process.reclaim),
        }
    }

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
                        silent = health::wait_until_lost(&self.address, self.options.health_period) => {
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
            () = process.end(self.options.stop_deadline) => {}
        }
        None
    }
}

struct WorkerProcess {
    child: Child,
    pid: u32,
    /// Open while the worker may run: its end signals that the host is gone.
    stdin: Option<ChildStdin>,
    evidence: Evidence,
    reclaim: MemoryReclaim,
    ready: bool,
}

impl WorkerProcess {
    fn spawn(launch: &LaunchParams) -> io::Result<Self> {
        let mut child = launch.command().spawn()?;
        let (Some(pid), Some(stderr)) = (child.id(), child.stderr.take()) else {
            return Err(io::Error::other("the process has no id or no output"));
        };
        let memory = &launch.options.memory;
        Ok(Self {
            pid,
            stdin: child.stdin.take(),
            evidence: Evidence::collect_from(stderr, launch.log(), memory),
            reclaim: MemoryReclaim::new(Arc::clone(memory), pid),
            ready: false,
            child,
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
            &self.evidence.words,
            launch.options.load_silence,
            self.pid,
            &launch.socket,
            |percent| report(ProcessReport::Loading(percent)),
        )
        .await?;
        // The folder is private; this is for a worker with another one.
        if let Err(error) = fs::set_permissions(&launch.socket, Permissions::from_mode(0o600)) {
            tracing::warn!(socket = %launch.socket.display(), %error, "a socket's mode could not be set");
        }
        self.evidence.discard(stdout);
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
        self.evidence.complete().await;
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
}
