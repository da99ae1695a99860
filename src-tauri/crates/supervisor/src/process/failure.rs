//! Why a worker did not start, or has ended.

use super::{LaunchParams, WorkerProcess, cause, exit, handshake::HandshakeFailure};
use std::{io, process::ExitStatus, time::Duration};
use tierbar_core::{Code, Error};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct WorkerFailure {
    pub(crate) error: Error,
    /// Whether it crashed, instead of reporting in its handshake why it could not load.
    pub(crate) crashed: bool,
}

impl LaunchParams {
    pub(super) fn failed(&self, what: &str) -> Error {
        Error::new(
            Code::TierFailed,
            format!("{} could not start: {what}", self.tier),
        )
    }

    pub(super) fn not_run(&self, error: &io::Error) -> WorkerFailure {
        let what = format!("{} cannot be run: {error}", self.program.display());
        let error = self
            .failed(&what)
            .hint("quit Tierbar and open it again, since it may have been moved; if that does not help, install it again");
        WorkerFailure {
            error,
            crashed: true,
        }
    }

    /// Ends the process, if it has not ended.
    pub(super) async fn unready(
        &self,
        unready: HandshakeFailure,
        process: &mut WorkerProcess,
    ) -> WorkerFailure {
        let hint = format!("its log is {}", self.log.display());
        let error = match unready {
            HandshakeFailure::Reported(error) => {
                process.end(self.stop_deadline).await;
                return WorkerFailure {
                    error,
                    crashed: false,
                };
            }
            HandshakeFailure::Closed => {
                match timeout(self.stop_deadline, process.child.wait()).await {
                    Ok(Ok(status)) => {
                        process.drain_output().await;
                        let what =
                            format!("its worker {} while loading", exit::describe_exit(status));
                        let what = cause::with_last_output(&process.words, what, status);
                        let killed = process.oom_kills.has_risen();
                        cause::explain_crash(&process.words, self.failed(&what), status, killed)
                    }
                    _ => {
                        process.kill().await;
                        self.failed("its worker closed its output without a handshake")
                            .hint(hint)
                    }
                }
            }
            HandshakeFailure::Invalid(lie) => {
                process.kill().await;
                let what = format!("its worker {lie}");
                self.failed(&what).hint(
                    "install Tierbar again: the worker is not the one that belongs to this host",
                )
            }
            HandshakeFailure::Silent => {
                process.kill().await;
                let seconds = self.load_silence.as_secs_f32();
                let what = format!(
                    "{} could not start: its worker was silent for {seconds} s",
                    self.tier
                );
                Error::new(Code::WorkerTimeout, process.words.quoted_by(what)).hint(hint)
            }
        };
        WorkerFailure {
            error,
            crashed: true,
        }
    }

    /// `silent`: how long it has not answered.
    pub(super) async fn hung(
        &self,
        process: &mut WorkerProcess,
        silent: Duration,
    ) -> WorkerFailure {
        process.kill().await;
        let what = format!(
            "the worker of {} did not answer for {:.0} s and was stopped",
            self.tier,
            silent.as_secs_f32()
        );
        let error = Error::new(Code::WorkerTimeout, what)
            .hint(format!("its log is {}", self.log.display()))
            .detail("cause", "hung");
        WorkerFailure {
            error,
            crashed: true,
        }
    }

    pub(super) async fn crashed(
        &self,
        status: io::Result<ExitStatus>,
        process: &mut WorkerProcess,
    ) -> WorkerFailure {
        process.drain_output().await;
        let error = match status {
            Ok(status) => {
                let what = format!(
                    "the worker of {} {}",
                    self.tier,
                    exit::describe_exit(status)
                );
                let what = cause::with_last_output(&process.words, what, status);
                let error = Error::new(Code::WorkerCrashed, what);
                let killed = process.oom_kills.has_risen();
                cause::explain_crash(&process.words, error, status, killed)
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
        WorkerFailure {
            error,
            crashed: true,
        }
    }
}
