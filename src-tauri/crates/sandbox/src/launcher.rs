//! The program `tierbar-sandbox`. Without arguments it is the launcher: it reads a [`Request`] from stdin, runs it, and writes a
//! report to stdout. When stdin closes before that, the command is ended. Of a command that speaks with the host, stdin and stdout are
//! passed on, the report goes to stderr, and a moment is left for it to end by itself. With [`INSIDE`] it is the second stage, which
//! restricts itself and becomes the command.

use super::{
    CommandResult, End, Network, Report, Request,
    children::{NOT_RUN, exit_code, pid_of, reap, wait_for_host},
    environment::{kept_environment, readable_path},
    output::Collector,
    platform,
    program_files::check_program,
    proxy::Proxy,
    search_path,
    temporary::TemporaryFolder,
};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitStatus, fchdir, kill_process, kill_process_group};
use std::{
    collections::HashSet,
    convert::Infallible,
    env,
    ffi::OsString,
    io::{self, BufRead, Read, Write},
    net::Shutdown,
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, parent_id},
        },
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};
use tierbar_core::own_lack_of_start;

/// The first argument of the second stage. The launcher's process number and the [`StageInput`] follow.
const INSIDE: &str = "--inside";
/// How often processes and memory are counted: there is nothing to wait on.
const LOOK: Duration = Duration::from_millis(50);
/// How many threads each process of the limit may have, on average.
const THREADS: u64 = 16;
/// A killed process is gone by then, or hangs in the kernel.
const KILLED: Duration = Duration::from_secs(5);
/// How long a command that speaks with the host may go on after its stdin has ended.
const GRACE: Duration = Duration::from_secs(2);
/// How many readings in a row without a process mean that none is left. One misses a process whose parent ends meanwhile, and a chain of
/// those could be missed again: three readings follow each other, and three more after a pause.
const EMPTY_READINGS: u32 = 6;

/// What the second stage has to do.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct StageInput {
    request: Request,
    /// A folder for this command alone.
    home: PathBuf,
    /// The port that it may connect to.
    proxy: Option<u16>,
}

/// The program.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [first, launcher, inside] if first == INSIDE => {
            let Err((why, code)) = become_command(launcher, inside);
            write_error(&why);
            ExitCode::from(code)
        }
        [] => {
            let mut speaks = false;
            let report = launch(&mut speaks);
            let report = report.unwrap_or_else(|error| match own_lack_of_start(&error) {
                Some(lack) => Report::Lack(lack),
                None => Report::Failed(error.to_string()),
            });
            let text = serde_json::to_string(&report).unwrap_or_default();
            let mut place: Box<dyn Write> = if speaks {
                Box::new(io::stderr())
            } else {
                Box::new(io::stdout())
            };
            let written = place
                .write_all(text.as_bytes())
                .and_then(|()| place.flush());
            ExitCode::from(u8::from(written.is_err()))
        }
        _ => {
            write_error("is started by Tierbar, with a request on stdin");
            ExitCode::from(2)
        }
    }
}

/// Restricts this process, and turns it into the command.
///
/// # Errors
/// Why it is still this one, and the exit code.
fn become_command(launcher: &OsString, inside: &OsString) -> Result<Infallible, (String, u8)> {
    let not_run = |why: &str| (why.to_owned(), NOT_RUN);
    platform::die_with_parent();
    // The launcher may have died before that took effect.
    if launcher.to_str().and_then(|text| text.parse().ok()) != Some(parent_id()) {
        return Err(not_run("the launcher is gone"));
    }
    let inside = inside.to_str().map(serde_json::from_str);
    let Some(Ok(StageInput {
        request,
        home,
        proxy,
    })) = inside
    else {
        return Err(not_run("the request cannot be read"));
    };
    let policy = &request.policy;
    let system = platform::system_folders().into_iter();
    let readable: Vec<PathBuf> = system
        .filter_map(|path| path.canonicalize().ok())
        .chain(policy.read.iter().chain(&policy.write).cloned())
        .collect();
    let path = search_path();
    let start = request.folder.as_deref().unwrap_or(&home);
    check_program(&request, start, &path, &readable)?;
    let named = &request.variables;
    let developer = platform::developer_folder();
    let developer = developer.as_deref();
    let path = readable_path(&path, &readable, developer);
    let environment = kept_environment(env::vars_os(), path, &home, developer, named, proxy);
    let arguments = restrict(&request, &home, proxy).map_err(|why| (why, NOT_RUN))?;
    let command = arguments.split_first();
    let (program, rest) = command.ok_or_else(|| not_run("there is no command"))?;
    let error = Command::new(program)
        .args(rest)
        .env_clear()
        .envs(environment)
        .exec();
    let why = format!("{program} cannot be run: {error}");
    Err((why, exit_code(&error)))
}

/// Restricts this process to what the request grants, and returns the command to become.
fn restrict(request: &Request, home: &Path, proxy: Option<u16>) -> Result<Vec<String>, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let granted = request.policy.open(request.folder.as_deref(), &this);
    let granted = granted.map_err(|refused| refused.to_string())?;
    let entered = match &granted.folder {
        Some(folder) => fchdir(folder),
        None => {
            let home = tierbar_nofollow::open(home).map_err(|refused| refused.to_string())?;
            fchdir(home.into_file())
        }
    };
    entered.map_err(|error| io::Error::from(error).to_string())?;
    platform::restrict(request, &granted, home, proxy)
}

enum Event {
    HostGone,
    /// The host has nothing more to say to the command.
    InputEnded,
    Ended(WaitStatus),
    /// A stream is at its end.
    Read,
}

/// Reads the request, runs it, and ends all that it has started. Notes whether the command speaks with the host.
fn launch(speaks: &mut bool) -> io::Result<Report> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line)?;
    *speaks = request.speaks;
    if let Err(why) = platform::enforcement() {
        return Ok(Report::Unenforceable(why));
    }
    let start = request.folder.as_deref();
    let checked = request.policy.check(start, &env::current_exe()?);
    checked.map_err(io::Error::other)?;
    platform::adopt();
    let home = TemporaryFolder::create()?;
    let finished = RunningCommand::start(request, home.path().to_owned())?.run();
    Ok(Report::Finished(finished))
}

struct RunningCommand {
    request: Request,
    /// The command, which leads its session and its process group.
    command: Pid,
    started: Instant,
    events: Receiver<Event>,
    streams: [Arc<Mutex<Collector>>; 2],
    written: Arc<AtomicU64>,
    /// Bytes of shared memory that were mapped.
    shared: Arc<AtomicU64>,
    proxy: Option<Proxy>,
    ended: Option<WaitStatus>,
    streams_read: usize,
    /// When a command whose stdin has ended is ended.
    grace: Option<Instant>,
    /// All processes that were seen, for systems on which one can leave its tree.
    seen: HashSet<platform::Process>,
}

impl RunningCommand {
    fn start(request: Request, home: PathBuf) -> io::Result<Self> {
        let limits = request.policy.limits;
        let kept = limits.kept_output_bytes;
        let places = request.policy.write.iter().chain([&home]);
        let places: Vec<PathBuf> = places.cloned().collect();
        let speaks = request.speaks;
        let proxy = match request.policy.network {
            Network::None => None,
            Network::Web => Some(Proxy::start(limits)?),
        };
        let port = proxy.as_ref().map(|proxy| proxy.port);
        let inside = StageInput {
            request,
            home,
            proxy: port,
        };
        // The way to the command: until it is one, and beyond that if it speaks with the host.
        let (ours, theirs) = UnixStream::pair()?;
        let to_command = speaks.then(|| ours.try_clone()).transpose()?;
        let text = serde_json::to_string(&inside)?;
        // Here, because it dies with the thread that started it.
        let mut child = Command::new(env::current_exe()?)
            .args([INSIDE, &std::process::id().to_string(), &text])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let started = Instant::now();
        let command = pid_of(&child)?;
        let (sender, events) = channel();
        let streams = [kept, kept].map(|kept| Arc::new(Mutex::new(Collector::new(kept))));
        let written = Arc::new(AtomicU64::new(0));
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            let readers: [Box<dyn Read + Send>; 2] = [Box::new(stdout), Box::new(stderr)];
            for (at, (mut reader, stream)) in readers.into_iter().zip(&streams).enumerate() {
                let (stream, written) = (Arc::clone(stream), Arc::clone(&written));
                let sender = sender.clone();
                let passed_on = speaks && at == 0;
                thread::spawn(move || {
                    let mut host = io::stdout();
                    each_piece(&mut reader, |piece| {
                        written.fetch_add(piece.len() as u64, Ordering::Relaxed);
                        if passed_on {
                            return host.write_all(piece).and_then(|()| host.flush());
                        }
                        stream.lock().push(piece);
                        Ok(())
                    });
                    let _ = sender.send(Event::Read);
                });
            }
        }
        let shared = Arc::new(AtomicU64::new(0));
        thread::spawn({
            let shared = Arc::clone(&shared);
            let most = limits.memory_bytes;
            move || platform::serve(&ours, &places, &shared, most, port)
        });
        thread::spawn({
            let sender = sender.clone();
            move || match to_command {
                None => {
                    wait_for_host();
                    let _ = sender.send(Event::HostGone);
                }
                Some(command) => pass_to(&command, &sender),
            }
        });
        thread::spawn(move || {
            reap(command, |status| {
                let _ = sender.send(Event::Ended(status));
            });
        });
        Ok(Self {
            request: inside.request,
            command,
            started,
            events,
            streams,
            written,
            shared,
            proxy,
            ended: None,
            streams_read: 0,
            grace: None,
            seen: HashSet::new(),
        })
    }

    fn run(mut self) -> CommandResult {
        let end = self.wait();
        self.kill();
        // After the last reading, because the end itself may come while all are being killed.
        let end = end.unwrap_or_else(|| self.own_end());
        let [stdout, stderr] = self.streams.each_ref().map(|stream| stream.lock().finish());
        CommandResult {
            end,
            stdout,
            stderr,
            network: self.proxy.as_ref().map(Proxy::used),
        }
    }

    /// Waits for the end of the command, or for the first limit that it exceeds.
    fn wait(&mut self) -> Option<End> {
        let limits = self.request.policy.limits;
        let late = self.started + Duration::from_secs(limits.seconds);
        loop {
            match self.events.recv_timeout(LOOK) {
                Ok(Event::HostGone) => return Some(End::Stopped),
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            if self.ended.is_some() {
                return None;
            }
            if Instant::now() >= late {
                return Some(End::TimeLimit);
            }
            if self.grace.is_some_and(|grace| Instant::now() >= grace) {
                return Some(End::Stopped);
            }
            if self.written.load(Ordering::Relaxed) > limits.output_bytes {
                return Some(End::OutputLimit);
            }
            let found = self.processes();
            let processes = found.alive.len() as u64 + found.zombies;
            let most_threads = limits.processes.saturating_mul(THREADS);
            if processes > limits.processes || found.threads > most_threads {
                return Some(End::ProcessLimit);
            }
            let memory = platform::memory_bytes(&found.alive);
            let shared = self.shared.load(Ordering::Relaxed);
            if memory.saturating_add(shared) > limits.memory_bytes {
                return Some(End::MemoryLimit);
            }
            if platform::is_memory_short() {
                return Some(End::MemoryShort);
            }
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::HostGone => {}
            Event::InputEnded => self.grace = Some(Instant::now() + GRACE),
            Event::Ended(status) => self.ended = Some(*status),
            Event::Read => self.streams_read += 1,
        }
    }

    fn processes(&mut self) -> platform::Processes {
        let found = platform::processes(self.command, &self.seen);
        self.seen = found.alive.iter().copied().collect();
        found
    }

    /// Ends all processes, and reads what they have written.
    fn kill(&mut self) {
        let late = Instant::now() + KILLED;
        let mut empty = 0;
        while empty < EMPTY_READINGS && Instant::now() < late {
            // Fails if no process is left.
            let _ = kill_process_group(self.command, Signal::KILL);
            // Stopped before any is killed: what forks faster than it is found would never be gone.
            for signal in [Signal::STOP, Signal::STOP, Signal::KILL] {
                let processes = self.processes().alive;
                empty = if processes.is_empty() { empty + 1 } else { 0 };
                for process in processes {
                    let _ = kill_process(process.pid, signal);
                }
            }
            self.drain(Duration::from_millis(5));
        }
        while self.streams_read < self.streams.len() || self.ended.is_none() {
            if Instant::now() >= late || !self.drain(LOOK) {
                break;
            }
        }
    }

    /// Handles what arrives within this time; `false` once nothing can any more.
    fn drain(&mut self, time: Duration) -> bool {
        match self.events.recv_timeout(time) {
            Ok(event) => {
                self.note(&event);
                true
            }
            Err(error) => error == RecvTimeoutError::Timeout,
        }
    }

    fn own_end(&self) -> End {
        let status = self.ended;
        let code = status.and_then(WaitStatus::exit_status);
        let signal = status.and_then(WaitStatus::terminating_signal);
        match (code, signal) {
            (Some(code), _) => End::Exited { code },
            (None, Some(signal)) => End::Killed { signal },
            (None, None) => End::Stopped,
        }
    }
}

/// Passes what the host says on to the command, to its end.
fn pass_to(mut command: &UnixStream, events: &Sender<Event>) {
    let mut host = io::stdin().lock();
    each_piece(&mut host, |piece| command.write_all(piece));
    // The command may have ended.
    let _ = command.shutdown(Shutdown::Write);
    let _ = events.send(Event::InputEnded);
}

/// Reads to the end, or until a piece cannot be passed on because the receiver is gone.
fn each_piece(reader: &mut impl Read, mut take: impl FnMut(&[u8]) -> io::Result<()>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                if take(&buffer[..count]).is_err() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
}

fn write_error(line: &str) {
    let _ = writeln!(io::stderr(), "tierbar-sandbox: {line}");
}
