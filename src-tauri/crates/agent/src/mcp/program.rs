//! Starts a server's program in the sandbox, and keeps what is known of its end.

use crate::mcp::{
    Failure,
    messages::{Messages, Unread},
};
use secrecy::{ExposeSecret, SecretString};
use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};
use tierbar_core::own_lack_of_start;
use tierbar_sandbox::{End, Limits, Network, NotRun, Policy, Request, report};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

/// A turn may wait for a person for hours; no server outlives a grant.
const SECONDS: u64 = 8 * 60 * 60;
const CPU_SECONDS: u64 = 60 * 60;
/// As much of a report is read. What it keeps of the program's output is far less.
const REPORT_BYTES: u64 = 1 << 20;
/// How long the report of a program that has ended may take.
const REPORT_WAIT: Duration = Duration::from_secs(3);
/// The exit code of shells, and of the launcher.
const NOT_FOUND: i32 = 127;
/// How much of its last words is shown, in characters.
const LAST_WORDS: usize = 400;

/// A program that serves tools.
#[derive(Debug)]
pub struct Program {
    /// The program `tierbar-sandbox`.
    pub launcher: PathBuf,
    /// With its arguments.
    pub command: Vec<String>,
    /// What it may read and write, by its real path; without one, it has a folder of its own that is deleted afterwards.
    pub folder: Option<PathBuf>,
    /// What it may read besides.
    pub read: Vec<PathBuf>,
    pub network: Network,
    /// What no program may see.
    pub protected: Vec<PathBuf>,
    /// Variables of this process that it sees.
    pub variables: Vec<String>,
    /// A variable of its own, with its value.
    pub key: Option<(String, SecretString)>,
}

/// A program that was started.
pub(crate) struct StartedProgram {
    pub(crate) messages: Messages<ChildStdout, ChildStdin>,
    pub(crate) end: ProgramEnd,
}

/// What is known of a program's end.
#[derive(Debug)]
pub(crate) struct ProgramEnd {
    pub(crate) unread: Arc<Unread>,
    /// The launcher's report, once there is one.
    report: watch::Receiver<Option<String>>,
}

impl Program {
    pub(crate) async fn start(self) -> Result<StartedProgram, Failure> {
        let not_run = |error: std::io::Error| match own_lack_of_start(&error) {
            Some(lack) => Failure::Lack(lack),
            None => Failure::NotRun(error.to_string()),
        };
        let policy = Policy {
            read: self.read,
            write: self.folder.iter().cloned().collect(),
            network: self.network,
            limits: Limits {
                seconds: SECONDS,
                cpu_seconds: CPU_SECONDS,
                ..Limits::default()
            },
            protected: self.protected,
        };
        let mut variables = self.variables;
        let mut launcher = Command::new(&self.launcher);
        if let Some((name, value)) = &self.key {
            // In the environment, which other users cannot read, and not among the arguments, which they can.
            launcher.env(name, value.expose_secret());
            variables.push(name.clone());
        }
        let request = Request {
            arguments: self.command,
            folder: self.folder,
            policy,
            variables,
            speaks: true,
        };
        let line = request.line(&self.launcher);
        let line = line.map_err(|refused| Failure::NotRun(refused.to_string()))?;
        let mut launcher = launcher
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(not_run)?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (
            launcher.stdin.take(),
            launcher.stdout.take(),
            launcher.stderr.take(),
        ) else {
            return Err(Failure::NotRun("it has no pipes".to_owned()));
        };
        stdin.write_all(line.as_bytes()).await.map_err(not_run)?;
        let (sender, report) = watch::channel(None);
        tokio::spawn(async move {
            let mut bytes = Vec::new();
            // What was read until then counts.
            let _ = stderr.take(REPORT_BYTES).read_to_end(&mut bytes).await;
            let _ = launcher.wait().await;
            sender.send_replace(Some(String::from_utf8_lossy(&bytes).into_owned()));
        });
        let unread = Arc::new(Unread::default());
        Ok(StartedProgram {
            messages: Messages::new(stdout, stdin, Arc::clone(&unread)),
            end: ProgramEnd { unread, report },
        })
    }
}

impl ProgramEnd {
    /// Why a program does not answer whose output has ended.
    pub(crate) async fn why(&self) -> Failure {
        if self.unread.is_too_long() {
            return Failure::TooLong;
        }
        let mut reports = self.report.clone();
        let reported = timeout(REPORT_WAIT, reports.wait_for(Option::is_some)).await;
        let text = match reported {
            Ok(Ok(text)) => text.clone().unwrap_or_default(),
            _ => return Failure::Ended(String::new()),
        };
        match report(&text) {
            Ok(finished) => {
                let mut how = describe_end(&finished.end, &finished.stderr.text);
                for why in finished.network.unwrap_or_default().refusals {
                    how.push_str(&format!("; {why}"));
                }
                match finished.end {
                    End::Exited { code: NOT_FOUND } => Failure::NotFound(how),
                    _ => Failure::Ended(how),
                }
            }
            Err(NotRun::Lack(lack)) => Failure::Lack(lack),
            Err(not_run) => Failure::NotRun(not_run.to_string()),
        }
    }
}

/// How it ended and what it wrote last, behind `has ended`.
fn describe_end(end: &End, errors: &str) -> String {
    let how = match end {
        End::Exited { code: 0 } => String::new(),
        End::Exited { code } => format!(" with code {code}"),
        End::Killed { signal } => format!(" by signal {signal}"),
        End::TimeLimit => " at its limit of time".to_owned(),
        End::MemoryLimit => " at its limit of memory".to_owned(),
        End::MemoryShort => " because the machine had almost no memory left".to_owned(),
        End::ProcessLimit => " at its limit of processes".to_owned(),
        End::OutputLimit => " at its limit of output".to_owned(),
        End::Stopped => String::new(),
    };
    let errors = errors.trim();
    if errors.is_empty() {
        return how;
    }
    let left_out = errors.chars().count().saturating_sub(LAST_WORDS);
    let last: String = errors.chars().skip(left_out).collect();
    format!("{how}, and wrote: {last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::{Code, Error};

    #[tokio::test]
    async fn what_the_launcher_lacks_is_not_the_servers_fault() {
        let lack = Error::new(Code::Storage, "a disk is full").hint("free up space");
        let text = json!({"lack": &lack}).to_string();
        let (_sender, report) = watch::channel(Some(text));
        let unread = Arc::default();
        let end = ProgramEnd { unread, report };
        assert_eq!(end.why().await, Failure::Lack(lack));
    }

    #[test]
    fn an_exit_is_reported_with_the_last_output() {
        assert_eq!(describe_end(&End::Exited { code: 0 }, " \n"), "");
        assert_eq!(
            describe_end(&End::Exited { code: 127 }, "x cannot be run: not found\n"),
            " with code 127, and wrote: x cannot be run: not found"
        );
        let long = "ä".repeat(LAST_WORDS * 2) + "!";
        let told = describe_end(&End::MemoryLimit, &long);
        assert!(told.starts_with(" at its limit of memory, and wrote: ä"));
        assert!(told.ends_with("ä!") && told.chars().count() < LAST_WORDS + 50);
    }
}
