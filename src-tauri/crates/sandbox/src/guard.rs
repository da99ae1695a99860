//! `tierbar-guard SIGNAL DEADLINE_MS PROGRAM [ARGUMENT …]` runs a program for as long as its own stdin is open.
//!
//! Our worker ends by itself when its host is gone; other programs do not. When stdin closes for any reason, or the program
//! ends, its process group gets the signal, and SIGKILL after the deadline. On Linux this includes processes that have left
//! the group, since the guard adopts them, and the program dies with the guard; on macOS it is only the group.
//!
//! If `TIERBAR_GUARD_LOCK` names a file, the guard holds a shared lock on it while it lives.
//!
//! The program's stdout and stderr go to the guard's stderr. The guard's stdout is its own: `pid N`, and at the end `exit
//! CODE` or `signal N`.

use crate::{
    children::{NOT_RUN, exit_code, pid_of, reap, wait_for_host},
    platform::{adopt, die_with_parent, heed_signals, kill_adopted},
    search_path,
};
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitStatus, getpid, kill_process_group, test_kill_process_group},
};
use std::{
    env,
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::{
        fd::AsFd,
        unix::process::{CommandExt, parent_id},
    },
    process::{Command, ExitCode, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// The first argument of the second stage, which becomes the program; the guard's process number follows.
const BECOME: &str = "--become";
const LOCK: &str = "TIERBAR_GUARD_LOCK";
/// How often to check whether a group is empty: there is nothing to wait on.
const LOOK: Duration = Duration::from_millis(10);
/// A killed process is gone by then, or hangs in the kernel.
const KILLED: Duration = Duration::from_secs(5);

/// The program `tierbar-guard`.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [first, guard, program, rest @ ..] if first == BECOME => turn_into(guard, program, rest),
        [signal, deadline, program @ ..] if !program.is_empty() => {
            let (Some(signal), Some(deadline)) = (signal_of(signal), number(deadline)) else {
                return usage();
            };
            match ProcessGuard::start(program, signal, Duration::from_millis(deadline)) {
                Ok(guard) => guard.run(),
                Err(error) => {
                    write_error(&format!("the program cannot be guarded: {error}"));
                    ExitCode::from(NOT_RUN)
                }
            }
        }
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    write_error("tierbar-guard SIGNAL DEADLINE_MS PROGRAM [ARGUMENT …]");
    ExitCode::from(2)
}

fn number(text: &OsStr) -> Option<u64> {
    text.to_str()?.parse().ok()
}

fn signal_of(name: &OsStr) -> Option<Signal> {
    match name.to_str()? {
        "SIGTERM" => Some(Signal::TERM),
        "SIGINT" => Some(Signal::INT),
        "SIGQUIT" => Some(Signal::QUIT),
        "SIGHUP" => Some(Signal::HUP),
        _ => None,
    }
}

/// Becomes the program, after arranging to die with the guard where supported.
fn turn_into(guard: &OsStr, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    die_with_parent();
    heed_signals();
    // The guard may have died before that took effect.
    if number(guard) != Some(u64::from(parent_id())) {
        return ExitCode::FAILURE;
    }
    let error = Command::new(program)
        .args(arguments)
        .env("PATH", search_path())
        .exec();
    write_error(&format!("{} cannot be run: {error}", program.display()));
    ExitCode::from(exit_code(&error))
}

enum Event {
    HostGone,
    Ended(WaitStatus),
    /// No child is left, adopted ones included.
    Alone,
}

struct ProcessGuard {
    /// Held until this process ends.
    _lock: Option<File>,
    /// The program's process group, which it leads.
    group: Pid,
    signal: Signal,
    deadline: Duration,
    events: Receiver<Event>,
    ended: Option<WaitStatus>,
    alone: bool,
}

impl ProcessGuard {
    fn start(program: &[OsString], signal: Signal, deadline: Duration) -> io::Result<Self> {
        let lock = env::var_os(LOCK).and_then(|path| {
            lock_shared(path)
                .inspect_err(|error| write_error(&format!("no lock: {error}")))
                .ok()
        });
        adopt();
        let output = || io::Result::Ok(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
        let child = Command::new(env::current_exe()?)
            .args([BECOME, &getpid().as_raw_nonzero().to_string()])
            .args(program)
            .env_remove(LOCK)
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            .process_group(0)
            .spawn()?;
        let group = pid_of(&child)?;
        write_line(&format!("pid {}", group.as_raw_nonzero()));
        let (sender, events) = channel();
        thread::spawn({
            let sender = sender.clone();
            move || {
                wait_for_host();
                let _ = sender.send(Event::HostGone);
            }
        });
        thread::spawn(move || {
            reap(group, |status| {
                let _ = sender.send(Event::Ended(status));
            });
            let _ = sender.send(Event::Alone);
        });
        Ok(Self {
            _lock: lock,
            group,
            signal,
            deadline,
            events,
            ended: None,
            alone: false,
        })
    }

    /// Runs until either side is gone, and then until the whole program is.
    fn run(mut self) -> ExitCode {
        if let Ok(event) = self.events.recv() {
            self.note(event);
        }
        // Fails if no process is left.
        let _ = kill_process_group(self.group, self.signal);
        self.look_until(Instant::now() + self.deadline, Self::group_is_empty);
        let _ = kill_process_group(self.group, Signal::KILL);
        self.look_until(Instant::now() + KILLED, |guard| {
            kill_adopted();
            guard.alone
        });
        self.report_end()
    }

    fn group_is_empty(&mut self) -> bool {
        self.alone || test_kill_process_group(self.group) == Err(Errno::SRCH)
    }

    /// Handles events until the condition holds or the deadline passes.
    fn look_until(&mut self, late: Instant, mut is_so: impl FnMut(&mut Self) -> bool) {
        while !is_so(self) && Instant::now() < late {
            match self.events.recv_timeout(LOOK) {
                Ok(event) => self.note(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The sender is gone.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::HostGone => {}
            Event::Ended(status) => self.ended = Some(status),
            Event::Alone => self.alone = true,
        }
    }

    fn report_end(&self) -> ExitCode {
        let ended = self.ended;
        let code = ended.and_then(WaitStatus::exit_status);
        let signal = ended.and_then(WaitStatus::terminating_signal);
        let code = match (code, signal) {
            (Some(code), _) => {
                write_line(&format!("exit {code}"));
                code
            }
            (None, Some(signal)) => {
                write_line(&format!("signal {signal}"));
                128 + signal
            }
            (None, None) => {
                write_error("the program could not be ended");
                1
            }
        };
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}

fn lock_shared(path: OsString) -> io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    file.lock_shared()?;
    Ok(file)
}

/// The reader may be gone.
fn write_line(line: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

fn write_error(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
