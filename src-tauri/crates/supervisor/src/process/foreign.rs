//! A command: run under the process guard, and ready once its health path returns success.

use super::{
    KILLED, LAST_READ, LaunchParams, ProcessEnd, ProcessReport, StopSignal, WorkerFailure,
    cause::Evidence, command::passes, exit, health, socket::status_at,
};
use crate::{ForeignCommand, reclaim::MemoryReclaim};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    net::TcpListener,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{
    Code, Error,
    config::CommandEngine,
    lease::Address,
    worker::{Memory, PROTOCOL, WorkerReady},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

/// How often a starting server's health is checked.
const ASKING: Duration = Duration::from_millis(100);
/// How long a health check may take during the start: a server may drop early requests.
const ANSWER: Duration = Duration::from_secs(5);
/// How many health periods a server may take to answer: many handle one request at a time.
const PATIENCE: u32 = 20;

/// Returns the command's address: the socket, the configured port, or a free one that is reserved until the command starts.
pub(crate) fn address(
    engine: &CommandEngine,
    socket: &Path,
) -> io::Result<(Address, Option<TcpListener>)> {
    if engine.asks_for(CommandEngine::SOCKET) {
        return Ok((Address::Unix(socket.to_owned()), None));
    }
    match engine.port {
        Some(port) => Ok((Address::Port(port), None)),
        None => {
            let free = TcpListener::bind(("127.0.0.1", 0))?;
            Ok((Address::Port(free.local_addr()?.port()), Some(free)))
        }
    }
}

/// Like a worker's `run`.
pub(super) async fn run_command(
    launch: &LaunchParams,
    command: &ForeignCommand,
    reserved: Option<TcpListener>,
    stop: &StopSignal,
    report: &impl Fn(ProcessReport),
) -> ProcessEnd {
    if let (Address::Port(port), None) = (&launch.address, &reserved)
        && TcpStream::connect(("127.0.0.1", *port)).await.is_ok()
    {
        return launch.port_taken(*port).into();
    }
    // Another program may still take the port first; the command then reports that and ends.
    drop(reserved);
    let mut guarded = match GuardedCommand::spawn(launch, command) {
        Ok(guarded) => guarded,
        Err(error) => return launch.guard_not_run(command, &error).into(),
    };
    ProcessEnd {
        failure: watch_command(launch, command, &mut guarded, stop, report).await,
        was_ready: guarded.ready,
        reclaim: guarded.reclaim,
    }
}

/// Returns when nothing of the command is left.
async fn watch_command(
    launch: &LaunchParams,
    command: &ForeignCommand,
    guarded: &mut GuardedCommand,
    stop: &StopSignal,
    report: &impl Fn(ProcessReport),
) -> Option<WorkerFailure> {
    let name = command.engine.name();
    let (period, deadline) = (launch.options.health_period, launch.options.stop_deadline);
    let path = format!("GET {}", command.engine.health);
    tokio::select! {
        biased;
        () = stop.requested.cancelled() => {}
        status = guarded.watch(report) => {
            guarded.clear().await;
            let what = format!("its command {name} {} before it answered", exit::describe_exit(status));
            return Some(guarded.explain(status, what, |what| launch.failed(&what)));
        }
        healthy = check_health(&launch.address, &path, command.engine.load_deadline.0) => match healthy {
            Ok(()) => {
                guarded.ready = true;
                launch.loads.end(true).await;
                report(ProcessReport::Ready(launch.ready()));
                tokio::select! {
                    biased;
                    () = stop.requested.cancelled() => {}
                    status = guarded.watch(report) => {
                        guarded.clear().await;
                        let what = format!("the command {name} of {} {}", launch.tier, exit::describe_exit(status));
                        return Some(guarded.explain(status, what, |what| Error::new(Code::WorkerCrashed, what)));
                    }
                    silent = health::wait_until_checks_fail(period, period * PATIENCE, || status_at(&launch.address, &path)) => {
                        guarded.end(deadline, &command.engine).await;
                        return Some(launch.silent(name, silent));
                    }
                }
            }
            Err(outcome) => {
                guarded.end(deadline, &command.engine).await;
                let seconds = command.engine.load_deadline.0.as_secs();
                let what = format!(
                    "{} could not start: its command {name} was not ready after {seconds} s: {} {outcome}",
                    launch.tier, command.engine.health
                );
                let hint = format!(
                    "{}; `load_deadline` gives it more time, `health` names another path",
                    launch.log_hint()
                );
                let what = guarded.evidence.words.quoted_by(what);
                return Some(WorkerFailure::crash(Error::new(Code::WorkerTimeout, what).hint(hint)));
            }
        }
    }
    tokio::select! {
        biased;
        () = stop.at_once.cancelled() => guarded.kill().await,
        () = guarded.end(deadline, &command.engine) => {}
    }
    None
}

impl LaunchParams {
    /// The user's settings, since a server does not report its own.
    fn ready(&self) -> WorkerReady {
        WorkerReady {
            protocol: PROTOCOL,
            pid: 0,
            context_tokens: self.spec.settings.context,
            memory: Memory::default(),
        }
    }

    fn port_taken(&self, port: u16) -> WorkerFailure {
        let what = format!("another program already uses port {port}");
        WorkerFailure {
            error: Error::new(Code::PortTaken, self.failed(&what).message).hint(
                "quit that program, or remove `port` and give the command {port} among its arguments",
            ),
            crashed: false,
        }
    }

    fn guard_not_run(&self, command: &ForeignCommand, error: &io::Error) -> WorkerFailure {
        self.program_not_run(
            &command.process_guard,
            error,
            "install Tierbar again: its process guard, tierbar-guard, is missing or damaged",
        )
    }

    fn silent(&self, name: &str, silent: Duration) -> WorkerFailure {
        let what = format!(
            "the command {name} of {} did not answer for {:.0} s and was ended",
            self.tier,
            silent.as_secs_f32()
        );
        WorkerFailure::crash(Error::new(Code::WorkerTimeout, what).hint(self.log_hint()))
    }
}

/// Waits until the request for the health path returns success.
///
/// # Errors
/// The last result, once the time is over.
async fn check_health(at: &Address, request: &str, patience: Duration) -> Result<(), String> {
    let mut outcome = "was not checked".to_owned();
    let healthy = async {
        loop {
            outcome = match timeout(ANSWER, status_at(at, request)).await {
                Ok(Ok(200..=299)) => return,
                Ok(Ok(status)) => format!("returned {status}"),
                Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => error.to_string(),
                Ok(Err(error)) => format!("did not answer ({error})"),
                Err(_) => "did not answer".to_owned(),
            };
            sleep(ASKING).await;
        }
    };
    let is_healthy = timeout(patience, healthy).await;
    is_healthy.map_err(|_| outcome)
}

/// The guard with the command below it.
struct GuardedCommand {
    guard: Child,
    /// Open while the command may run.
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    /// The command's group, once the guard has reported it.
    group: Option<Pid>,
    /// Whether it has reported the command's end: its group is gone.
    reported_end: bool,
    evidence: Evidence,
    /// The command's memory, once the guard has reported its number.
    reclaim: Option<MemoryReclaim>,
    ready: bool,
}

impl GuardedCommand {
    fn spawn(launch: &LaunchParams, command: &ForeignCommand) -> io::Result<Self> {
        let engine = &command.engine;
        let filled = |argument: &String| match &launch.address {
            Address::Unix(socket) => {
                argument.replace(CommandEngine::SOCKET, &socket.to_string_lossy())
            }
            Address::Port(port) => argument.replace(CommandEngine::PORT, &port.to_string()),
            Address::Url(_) => argument.clone(),
        };
        let mut guard = Command::new(&command.process_guard)
            .arg(engine.stop_signal.as_str())
            .arg(engine.stop_deadline.0.as_millis().to_string())
            .args(engine.command.first())
            .args(engine.command.iter().skip(1).map(filled))
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| passes(name)))
            .envs(&engine.env)
            .env("TIERBAR_GUARD_LOCK", &launch.predecessors.lock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in the host's terminal is the host's to handle.
            .process_group(0)
            .spawn()?;
        let (Some(stdout), Some(stderr)) = (guard.stdout.take(), guard.stderr.take()) else {
            return Err(io::Error::other("a pipe is missing"));
        };
        Ok(Self {
            stdin: guard.stdin.take(),
            lines: BufReader::new(stdout).lines(),
            guard,
            group: None,
            reported_end: false,
            evidence: Evidence::collect_from(stderr, launch.log(), &launch.options.memory),
            reclaim: None,
            ready: false,
        })
    }

    /// Reads the guard's output until the command has ended. Cancel-safe.
    async fn watch(&mut self, report: &impl Fn(ProcessReport)) -> ExitStatus {
        while let Ok(Some(line)) = self.lines.next_line().await {
            match line.split_once(' ') {
                Some(("pid", number)) if self.group.is_none() => {
                    self.group = number.parse().ok().and_then(Pid::from_raw);
                    let pid = self.group.map(Pid::as_raw_nonzero);
                    if let Some(pid) = pid.and_then(|pid| u32::try_from(pid.get()).ok()) {
                        self.reclaim =
                            Some(MemoryReclaim::new(Arc::clone(&self.evidence.memory), pid));
                        report(ProcessReport::Spawned(pid));
                    }
                }
                Some(("exit", code)) => {
                    self.reported_end = true;
                    return ExitStatus::from_raw(code.parse().unwrap_or(1) << 8);
                }
                Some(("signal", number)) => {
                    self.reported_end = true;
                    return ExitStatus::from_raw(number.parse().unwrap_or(9));
                }
                _ => {}
            }
        }
        // The guard itself has crashed.
        let status = self.guard.wait().await;
        status.unwrap_or_else(|_| ExitStatus::from_raw(1 << 8))
    }

    /// Lets the guard end the command, and ends it directly if the guard hangs. Returns when both are gone.
    async fn end(&mut self, margin: Duration, engine: &CommandEngine) {
        self.look().await;
        drop(self.stdin.take());
        self.await_end(engine.stop_deadline.0 + margin).await;
    }

    /// Kills both without a deadline. Returns when both are gone.
    async fn kill(&mut self) {
        self.look().await;
        if let Some(group) = self.group.filter(|_| !self.reported_end) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        drop(self.stdin.take());
        self.await_end(KILLED).await;
    }

    async fn look(&mut self) {
        if let Some(reclaim) = &mut self.reclaim {
            reclaim.look().await;
        }
    }

    async fn await_end(&mut self, deadline: Duration) {
        let watched = async {
            self.watch(&|_| ()).await;
        };
        if timeout(deadline, watched).await.is_err() {
            tracing::warn!("a command's guard hangs, and is killed");
        }
        self.clear().await;
    }

    /// Waits until the group is empty and the guard is gone.
    async fn clear(&mut self) {
        drop(self.stdin.take());
        if let Some(group) = self.group.filter(|_| !self.reported_end) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        if timeout(LAST_READ, self.guard.wait()).await.is_err()
            && let Err(error) = self.guard.kill().await
        {
            tracing::error!(%error, "a killed guard could not be waited for");
        }
        self.evidence.complete().await;
    }

    fn explain(
        &self,
        status: ExitStatus,
        sentence: String,
        error: impl FnOnce(String) -> Error,
    ) -> WorkerFailure {
        let error = self.evidence.explain(status, sentence, error);
        WorkerFailure::crash(match status.code() {
            Some(126 | 127) => {
                error.hint("give the program's full path: an app does not have your shell's PATH")
            }
            _ => error,
        })
    }
}
