//! Runs one command that can write, read, reach and use only what it was given; and with [`guard`], a program that ends with its host.
//!
//! The host starts `tierbar-sandbox`, the launcher, and writes the [`Request`] to it. The launcher starts itself once more, and this
//! second stage restricts itself and becomes the command: it has one thread, so nothing has to be done between a fork and an exec.
//! The launcher keeps time, counts processes, memory and output, and ends the command with all that it has started, also when its
//! host is gone. A command may speak with its host by stdin and stdout meanwhile. On Linux, Landlock, seccomp and resource
//! limits enforce the policy; on macOS, Seatbelt and resource limits.
//! Where nothing can, no command runs. A command with the network can connect to a proxy of the launcher's, and to nothing else.

mod children;
mod environment;
pub mod guard;
pub mod launcher;
mod output;
mod platform;
mod policy;
mod program_files;
mod proxy;
mod search_path;
mod seatbelt;
mod temporary;

pub use output::Output;
pub use policy::{Limits, Network, Policy, PolicyError};
pub use proxy::NetworkUse;
pub use search_path::search_path;
pub use seatbelt::{Profile, profile};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    sync::Arc,
};
use tierbar_core::{Error, own_lack_of_start};

/// The longest command line, in bytes of all its arguments.
pub const COMMAND_BYTES: usize = 32 * 1024;

/// One command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The program and its arguments. A program without a slash is looked up in `PATH`.
    pub arguments: Vec<String>,
    /// The folder that it starts in, which the policy allows to read; without one, its `HOME`, which is deleted afterwards.
    pub folder: Option<PathBuf>,
    pub policy: Policy,
    /// Variables of the launcher's environment that it sees as they are, besides those that every command sees.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Whether it speaks with the host: what follows the request on the launcher's stdin is its stdin, its stdout is the launcher's, and
    /// the report comes on the launcher's stderr.
    #[serde(default)]
    pub speaks: bool,
}

impl Request {
    /// A line of shell.
    pub fn shell(line: &str, folder: PathBuf, policy: Policy) -> Self {
        let arguments = ["/bin/sh", "-c", line].map(str::to_owned).into();
        Self {
            arguments,
            folder: Some(folder),
            policy,
            ..Self::default()
        }
    }

    /// What this launcher is to read, once it is certain that it may.
    ///
    /// # Errors
    /// [`NotRun`], if the command is too long, the policy is refused, or nothing enforces it here.
    pub fn line(&self, launcher: &Path) -> Result<String, NotRun> {
        let bytes = self.arguments.iter().map(String::len).sum();
        if bytes > COMMAND_BYTES {
            return Err(NotRun::TooLong(bytes));
        }
        self.policy.check(self.folder.as_deref(), launcher)?;
        enforcement()?;
        let line = serde_json::to_string(self);
        let mut line = line.map_err(|error| NotRun::Launcher(error.to_string()))?;
        line.push('\n');
        Ok(line)
    }
}

/// How a command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    Exited {
        code: i32,
    },
    /// By a signal, its own or the kernel's.
    Killed {
        signal: i32,
    },
    /// The launcher ended it: it ran for longer than its limit.
    TimeLimit,
    /// It and what it had started used more memory than its limit.
    MemoryLimit,
    /// The machine had almost no memory left, which commands give way to.
    MemoryShort,
    /// It had more processes than its limit.
    ProcessLimit,
    /// It wrote more output than its limit.
    OutputLimit,
    /// The host ended it, or is gone.
    Stopped,
}

/// What a command has done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandResult {
    pub end: End,
    pub stdout: Output,
    pub stderr: Output,
    pub network: Option<NetworkUse>,
}

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// This system cannot enforce a sandbox.
    #[error("commands cannot run here: {0}")]
    Unenforceable(String),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("the command has {0} bytes, and at most {COMMAND_BYTES} can be run")]
    TooLong(usize),
    #[error("the sandbox did not start: {0}")]
    Launcher(String),
    /// This computer lacks something for it.
    #[error("the sandbox did not start: {0}")]
    Lack(Error),
}

/// What the launcher writes to its host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Finished(CommandResult),
    Unenforceable(String),
    Failed(String),
    Lack(Error),
}

/// Ends a command from elsewhere. Clones end the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    /// The launcher ends the command when this is closed.
    stdin: Option<ChildStdin>,
}

impl Stop {
    /// Ends the command, now or as soon as it starts.
    pub fn stop(&self) {
        *self.0.lock() = State {
            stopped: true,
            stdin: None,
        };
    }

    fn keep(&self, stdin: ChildStdin) {
        let mut state = self.0.lock();
        if !state.stopped {
            state.stdin = Some(stdin);
        }
    }
}

/// Returns what enforces a sandbox on this system, such as `Landlock 7 and seccomp`.
///
/// # Errors
/// [`NotRun::Unenforceable`], with what is missing.
pub fn enforcement() -> Result<String, NotRun> {
    crate::platform::enforcement().map_err(NotRun::Unenforceable)
}

/// Runs a command to its end, with the launcher at this path. Blocks for as long as the policy's time limit at most, and some
/// seconds.
///
/// # Errors
/// [`NotRun`], if the command did not start. A command that fails, or that is ended, is no error.
pub fn run(launcher: &Path, request: &Request, stop: &Stop) -> Result<CommandResult, NotRun> {
    let failed = |error: io::Error| match own_lack_of_start(&error) {
        Some(lack) => NotRun::Lack(lack),
        None => NotRun::Launcher(error.to_string()),
    };
    let line = request.line(launcher)?;
    let mut child = Command::new(launcher)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let mut text = String::new();
    let sent = (|| {
        let mut stdin = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(line.as_bytes())?;
        stop.keep(stdin);
        let mut stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        stdout.read_to_string(&mut text)
    })();
    // Its stdin is closed by now, or it has ended.
    stop.0.lock().stdin = None;
    let status = child.wait().map_err(failed)?;
    sent.map_err(failed)?;
    match report(&text) {
        Err(NotRun::Launcher(_)) if text.is_empty() => {
            Err(NotRun::Launcher(format!("it ended with {status}")))
        }
        report => report,
    }
}

/// Reads what the launcher has reported.
///
/// # Errors
/// [`NotRun`], if the command did not start, or if this is no report.
pub fn report(text: &str) -> Result<CommandResult, NotRun> {
    match serde_json::from_str(text) {
        Ok(Report::Finished(finished)) => Ok(finished),
        Ok(Report::Unenforceable(why)) => Err(NotRun::Unenforceable(why)),
        Ok(Report::Failed(why)) => Err(NotRun::Launcher(why)),
        Ok(Report::Lack(lack)) => Err(NotRun::Lack(lack)),
        Err(_) => Err(NotRun::Launcher("it has left no report".to_owned())),
    }
}
