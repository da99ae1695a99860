//! One worker process, from its spawn to its end. The task here owns the child and reports; it decides nothing.

mod cause;
mod exit;
pub(crate) mod foreign;
mod handshake;
mod health;
mod log;
mod socket;
mod trim;

use crate::{
    LoadSpec,
    predecessors::Predecessors,
    reclaim::{MemoryProbe, Reclaim},
    safe_mode::Loads,
};
use handshake::Unready;
use log::LastWords;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::{
    ffi::OsString,
    fs::{self, Permissions},
    io,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{
    Code, Error, TierId,
    budget::{LineKind, MICRO_BATCH, Placement},
    config::Approximation,
    lease::Address,
    reclaim::Missing,
    sampling::ModelSampling,
    worker::Ready,
};
use tokio::{
    io::{BufReader, copy, sink},
    process::{Child, ChildStdin, Command},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
pub(crate) use trim::trim;

/// After a process has ended, how long a pipe that something else holds open is still read.
const LAST_READ: Duration = Duration::from_secs(1);

/// How long a killed process may take to end: a large one takes seconds, and one that waits for a broken disk never ends.
const KILLED: Duration = Duration::from_secs(10);

/// The parameters of a process.
#[derive(Debug)]
pub(crate) struct Launch {
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
    pub(crate) loads: Arc<Loads>,
    pub(crate) predecessors: Arc<Predecessors>,
}

/// The reports on a process, in this order; `Ended` and `Back` always come.
#[derive(Debug)]
pub(crate) enum Report {
    Spawned(u32),
    /// The percentage of the weights that is loaded.
    Loading(u8),
    Ready(Ready),
    /// The process has ended. Without a failure, it ended on request.
    Ended(Option<Failure>),
    /// Memory not freed this long after its end.
    Missing(Missing, Duration),
    /// All memory is freed, or counts as another program's; with the available memory. This is the last report.
    Back(Option<u64>),
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether it crashed, instead of reporting in its handshake why it could not load.
    pub(crate) crashed: bool,
}

/// Requests a process's end. Clones request it of the same process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    requested: CancellationToken,
    at_once: CancellationToken,
}

impl Stop {
    /// With `at_once`, it has no time to save its conversations.
    pub(crate) fn request(&self, at_once: bool) {
        if at_once {
            self.at_once.cancel();
        }
        self.requested.cancel();
    }
}

/// Runs a process until it ends or is stopped. Must be called within a tokio runtime.
pub(crate) fn run(mut launch: Launch, stop: Stop, report: impl Fn(Report) + Send + Sync + 'static) {
    tokio::spawn(async move {
        let available = launch.run(&stop, &report).await;
        report(Report::Back(available));
    });
}

impl Launch {
    async fn run(&mut self, stop: &Stop, report: &impl Fn(Report)) -> Option<u64> {
        tokio::select! {
            biased;
            () = self.predecessors.gone() => {}
            () = stop.requested.cancelled() => {
                report(Report::Ended(None));
                return None;
            }
        }
        let reserved = self.reserved.take();
        let model = self.spec.model.clone();
        self.loads.begin(self.tier.clone(), model).await;
        match &self.spec.command {
            None => self.run_worker(stop, report).await,
            Some(command) => foreign::run(self, command, reserved, stop, report).await,
        }
    }

    async fn run_worker(&self, stop: &Stop, report: &impl Fn(Report)) -> Option<u64> {
        let mut process = match Process::spawn(self) {
            Ok(process) => process,
            Err(error) => {
                self.loads.end(false).await;
                report(Report::Ended(Some(self.not_run(&error))));
                return None;
            }
        };
        report(Report::Spawned(process.pid));
        let failure = self.attend(&mut process, stop, report).await;
        if !process.ready {
            self.loads.end(false).await;
        }
        report(Report::Ended(failure));
        let report_missing = |missing, waited| report(Report::Missing(missing, waited));
        process.reclaim.follow(report_missing).await
    }

    /// Returns when the process has ended.
    async fn attend(
        &self,
        process: &mut Process,
        stop: &Stop,
        report: &impl Fn(Report),
    ) -> Option<Failure> {
        tokio::select! {
            biased;
            () = stop.requested.cancelled() => {}
            unready = process.start(self, report) => match unready {
                Ok(ready) => {
                    process.ready = true;
                    self.loads.end(true).await;
                    report(Report::Ready(ready));
                    tokio::select! {
                        biased;
                        () = stop.requested.cancelled() => {}
                        status = process.child.wait() => return Some(self.crashed(status, process).await),
                        () = health::lost(&self.socket, self.health_period) => return Some(self.hung(process).await),
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

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let spec = &self.spec;
        command
            .arg("--model")
            .arg(&spec.path)
            .arg("--socket")
            .arg(&self.socket)
            .args(["--id", spec.model.as_str()])
            .args(["--context", &spec.settings.context.to_string()])
            .args(["--kv-cache", spec.settings.kv_cache.as_str()]);
        if let Some(contexts) = &self.contexts {
            command.arg("--contexts").arg(contexts);
        }
        if let Some((swapped, mib)) = &self.swapped {
            command.arg("--swapped").arg(swapped);
            command.args(["--swapped-mib", &mib.to_string()]);
        }
        if let Some(projector) = &spec.projector {
            command.arg("--projector").arg(projector);
        }
        if spec.settings.threads > 0 {
            command.args(["--threads", &spec.settings.threads.to_string()]);
        }
        if spec.settings.batch != MICRO_BATCH {
            command.args(["--batch", &spec.settings.batch.to_string()]);
        }
        match &spec.draft_model {
            Some(path) => {
                command.arg("--draft-model").arg(path);
            }
            None if spec.settings.lookup => {
                command.arg("--lookup");
            }
            None => {}
        }
        if let Some(layers) = spec.settings.gpu_layers {
            command.args(["--gpu-layers", &layers.to_string()]);
        }
        if spec.plan.placement.is_paged() {
            command.arg("--mapped");
        }
        if spec.plan.bytes(LineKind::PagedExperts) > 0 {
            command.arg("--experts-on-cpu");
        }
        if let Some(count) = spec.settings.experts_used {
            command.args(["--experts-used", &count.to_string()]);
        }
        if spec.settings.thinking {
            command.arg("--thinking");
        }
        if spec.settings.sampling != ModelSampling::default()
            && let Ok(sampling) = serde_json::to_string(&spec.settings.sampling)
        {
            command.args(["--sampling", &sampling]);
        }
        match spec.plan.placement {
            Placement::Cache => {
                let mib = spec.plan.bytes(LineKind::ExpertCache) >> 20;
                command.args(["--expert-cache-mib", &mib.to_string()]);
                let how = spec.settings.approximate;
                if how != Approximation::Off {
                    command.args(["--approximate", how.as_str()]);
                }
            }
            Placement::Advise => {
                command.arg("--announce-experts");
            }
            Placement::Stream => {
                let mib = spec.plan.bytes(LineKind::LayerCache) >> 20;
                command.args(["--layer-cache-mib", &mib.to_string()]);
            }
            _ => {}
        }
        command
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| passes(name)))
            .env("NO_COLOR", "1")
            // Where a debugger is installed, a failed assertion of ggml's would let it write into the handshake.
            .env("GGML_NO_BACKTRACE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the host's terminal is the host's to handle, and a stop reaches whatever the worker started.
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    fn failed(&self, what: &str) -> Error {
        Error::new(
            Code::TierFailed,
            format!("{} could not start: {what}", self.tier),
        )
    }

    fn not_run(&self, error: &io::Error) -> Failure {
        let what = format!("{} cannot be run: {error}", self.program.display());
        let error = self
            .failed(&what)
            .hint("quit Tierbar and open it again, since it may have been moved; if that does not help, install it again");
        Failure {
            error,
            crashed: true,
        }
    }

    /// Ends the process, if it has not ended.
    async fn unready(&self, unready: Unready, process: &mut Process) -> Failure {
        let hint = format!("its log is {}", self.log.display());
        let error = match unready {
            Unready::Reported(error) => {
                process.end(self.stop_deadline).await;
                return Failure {
                    error,
                    crashed: false,
                };
            }
            Unready::Closed => match timeout(self.stop_deadline, process.child.wait()).await {
                Ok(Ok(status)) => {
                    process.drain_output().await;
                    let what = format!("its worker {} while loading", exit::words(status));
                    cause::explain(
                        &process.words,
                        self.failed(&process.words.quoted_by(what)),
                        status,
                    )
                }
                _ => {
                    process.kill().await;
                    self.failed("its worker closed its output without a handshake")
                        .hint(hint)
                }
            },
            Unready::Invalid(lie) => {
                process.kill().await;
                let what = format!("its worker {lie}");
                self.failed(&what).hint(
                    "install Tierbar again: the worker is not the one that belongs to this host",
                )
            }
            Unready::Silent => {
                process.kill().await;
                let seconds = self.load_silence.as_secs_f32();
                let what = format!(
                    "{} could not start: its worker was silent for {seconds} s",
                    self.tier
                );
                Error::new(Code::WorkerTimeout, process.words.quoted_by(what)).hint(hint)
            }
        };
        Failure {
            error,
            crashed: true,
        }
    }

    async fn hung(&self, process: &mut Process) -> Failure {
        process.kill().await;
        let seconds = (self.health_period * health::MISSES).as_secs_f32();
        let what = format!(
            "the worker of {} did not answer for {seconds} s and was stopped",
            self.tier
        );
        let error = Error::new(Code::WorkerTimeout, what)
            .hint(format!("its log is {}", self.log.display()));
        Failure {
            error,
            crashed: true,
        }
    }

    async fn crashed(&self, status: io::Result<ExitStatus>, process: &mut Process) -> Failure {
        process.drain_output().await;
        let error = match status {
            Ok(status) => {
                let what = format!("the worker of {} {}", self.tier, exit::words(status));
                // A process killed from outside has not reported why.
                let killed = exit::from_outside(status);
                let what = if killed {
                    what
                } else {
                    process.words.quoted_by(what)
                };
                cause::explain(
                    &process.words,
                    Error::new(Code::WorkerCrashed, what),
                    status,
                )
            }
            Err(error) => {
                process.kill().await;
                let what = format!(
                    "the worker of {} could not be waited for: {error}",
                    self.tier
                );
                Error::new(Code::WorkerCrashed, what).hint("report this as a bug")
            }
        };
        Failure {
            error,
            crashed: true,
        }
    }
}

struct Process {
    child: Child,
    pid: u32,
    /// Open while the worker may run: its end signals that the host is gone.
    stdin: Option<ChildStdin>,
    words: Arc<LastWords>,
    drains: JoinSet<()>,
    reclaim: Reclaim,
    ready: bool,
}

impl Process {
    fn spawn(launch: &Launch) -> io::Result<Self> {
        let mut child = launch.command().spawn()?;
        let pid = child
            .id()
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        let words = Arc::new(LastWords::default());
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
            reclaim: Reclaim::new(Arc::clone(&launch.memory), pid),
            ready: false,
        })
    }

    /// Waits for the handshake, and keeps reading after it.
    async fn start(&mut self, launch: &Launch, report: &impl Fn(Report)) -> Result<Ready, Unready> {
        let Some(stdout) = self.child.stdout.take() else {
            return Err(Unready::Closed);
        };
        let mut stdout = BufReader::new(stdout);
        let ready = handshake::shake(
            &mut stdout,
            &self.words,
            launch.load_silence,
            self.pid,
            &launch.socket,
            |percent| report(Report::Loading(percent)),
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

/// Returns whether a worker gets this variable of the host's. It gets no keys or tokens.
fn passes(name: &OsString) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    matches!(
        name,
        "HOME"
            | "PATH"
            | "TMPDIR"
            | "LANG"
            | "LC_ALL"
            | "LD_LIBRARY_PATH"
            | "RUST_BACKTRACE"
            | "RUST_LOG"
    ) || name.starts_with("GGML_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadSettings;
    use tierbar_core::{
        ModelId,
        budget::{Line, LoadPlan},
        config::{KvCache, TierConfig},
    };

    fn arguments(change: impl FnOnce(&mut LoadSpec)) -> Vec<String> {
        let mut spec = LoadSpec {
            model: ModelId("m".to_owned()),
            path: "/models/m.gguf".into(),
            projector: None,
            settings: LoadSettings {
                kv_cache: KvCache::Q4_0,
                ..LoadSettings::from(&TierConfig::default())
            },
            draft_model: None,
            command: None,
            plan: LoadPlan {
                placement: Placement::Resident,
                lines: Vec::new(),
                context_tokens: 4096,
                kind: tierbar_core::TierKind::Generative,
            },
        };
        change(&mut spec);
        let second = Duration::from_secs(1);
        let launch = Launch {
            tier: TierId::new("fast").unwrap(),
            program: "/tierbar-worker".into(),
            spec,
            socket: "/run/1".into(),
            address: Address::Unix("/run/1".into()),
            reserved: None,
            log: "/logs/fast".into(),
            contexts: Some("/contexts".into()),
            swapped: Some(("/swapped".into(), 64)),
            load_silence: second,
            stop_deadline: second,
            health_period: second,
            memory: Arc::new(crate::reclaim::ThisMachine),
            loads: Loads::open(None),
            predecessors: Arc::new(Predecessors::new("/run".as_ref())),
        };
        let command = launch.command();
        let arguments = command.as_std().get_args();
        arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_workers_arguments_are_those_of_the_plan() {
        let plain = arguments(|_| {});
        assert_eq!(
            plain.join(" "),
            "--model /models/m.gguf --socket /run/1 --id m --context 16384 --kv-cache q4_0 --contexts /contexts --swapped /swapped --swapped-mib 64"
        );
        let behind = |change: fn(&mut LoadSpec)| arguments(change).split_off(plain.len()).join(" ");
        assert_eq!(behind(|spec| spec.settings.threads = 3), "--threads 3");
        assert_eq!(behind(|spec| spec.settings.batch = 64), "--batch 64");
        assert_eq!(behind(|spec| spec.settings.lookup = true), "--lookup");
        let guesses = |spec: &mut LoadSpec| {
            spec.settings.lookup = true;
            spec.draft_model = Some("/models/small.gguf".into());
        };
        assert_eq!(behind(guesses), "--draft-model /models/small.gguf");
        let projector = |spec: &mut LoadSpec| spec.projector = Some("/models/mmproj.gguf".into());
        assert_eq!(behind(projector), "--projector /models/mmproj.gguf");
        assert_eq!(
            behind(|spec| spec.settings.gpu_layers = Some(0)),
            "--gpu-layers 0"
        );
        assert_eq!(
            behind(|spec| spec.settings.gpu_layers = Some(37)),
            "--gpu-layers 37"
        );
        assert_eq!(
            behind(|spec| spec.plan.placement = Placement::Mmap),
            "--mapped"
        );
        let cached = |spec: &mut LoadSpec| {
            spec.plan.placement = Placement::Cache;
            spec.plan.lines.push(Line {
                what: LineKind::ExpertCache,
                bytes: (700 << 20) + 5,
            });
        };
        assert_eq!(behind(cached), "--mapped --expert-cache-mib 700");
        let approximate = |spec: &mut LoadSpec| {
            spec.settings.approximate = Approximation::Substitute;
            spec.settings.experts_used = Some(2);
            spec.plan.placement = Placement::Cache;
        };
        assert_eq!(
            behind(approximate),
            "--mapped --experts-used 2 --expert-cache-mib 0 --approximate substitute"
        );
        let streamed = |spec: &mut LoadSpec| {
            spec.plan.placement = Placement::Stream;
            spec.plan.lines.push(Line {
                what: LineKind::LayerCache,
                bytes: 90 << 20,
            });
        };
        assert_eq!(behind(streamed), "--mapped --layer-cache-mib 90");
        let advised = |spec: &mut LoadSpec| {
            spec.plan.placement = Placement::Advise;
            spec.plan.lines.push(Line {
                what: LineKind::PagedExperts,
                bytes: 1,
            });
        };
        assert_eq!(
            behind(advised),
            "--mapped --experts-on-cpu --announce-experts"
        );
    }
}
