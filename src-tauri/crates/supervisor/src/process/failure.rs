//! Why a worker did not start, or has ended.

use super::{LaunchParams, WorkerProcess, exit, handshake::HandshakeFailure};
use std::{io, path::Path, process::ExitStatus, time::Duration};
use tierbar_core::{Code, Error, own_lack_of_start};
use tokio::time::timeout;

#[derive(Debug)]
pub(crate) struct WorkerFailure {
    pub(crate) error: Error,
    /// Whether it crashed, instead of reporting in its handshake why it could not load.
    pub(crate) crashed: bool,
}

impl WorkerFailure {
    pub(super) fn crash(error: Error) -> Self {
        Self {
            error,
            crashed: true,
        }
    }
}

impl LaunchParams {
    pub(super) fn failed(&self, what: &str) -> Error {
        let message = format!("{} could not start: {what}", self.tier);
        Error::new(Code::TierFailed, message)
    }

    pub(super) fn log_hint(&self) -> String {
        format!("its log is {}", self.log().display())
    }

    pub(super) fn not_run(&self, error: &io::Error) -> WorkerFailure {
        self.program_not_run(
            &self.options.worker,
            error,
            "quit Tierbar and open it again, since it may have been moved; if that does not help, install it again",
        )
    }

    /// A lack of this computer's is no crash of the program's.
    pub(super) fn program_not_run(
        &self,
        program: &Path,
        error: &io::Error,
        hint: &str,
    ) -> WorkerFailure {
        if let Some(error) = own_lack_of_start(error) {
            return WorkerFailure {
                error,
                crashed: false,
            };
        }
        let what = format!("{} cannot be run: {error}", program.display());
        WorkerFailure::crash(self.failed(&what).hint(hint))
    }

    /// Ends the process, if it has not ended.
    pub(super) async fn unready(
        &self,
        unready: HandshakeFailure,
        process: &mut WorkerProcess,
    ) -> WorkerFailure {
        let deadline = self.options.stop_deadline;
        WorkerFailure::crash(match unready {
            HandshakeFailure::Reported(error) => {
                process.end(deadline).await;
                return WorkerFailure {
                    error,
                    crashed: false,
                };
            }
            HandshakeFailure::Closed => match timeout(deadline, process.child.wait()).await {
                Ok(Ok(status)) => {
                    process.evidence.complete().await;
                    let ended = exit::describe_exit(status);
                    let what = format!("its worker {ended} while loading");
                    let evidence = &process.evidence;
                    evidence.explain(status, what, |what| self.failed(&what))
                }
                _ => {
                    process.kill().await;
                    self.failed("its worker closed its output without a handshake")
                        .hint(self.log_hint())
                }
            },
            HandshakeFailure::Invalid(lie) => {
                process.kill().await;
                self.failed(&format!("its worker {lie}")).hint(
                    "install Tierbar again: the worker is not the one that belongs to this host",
                )
            }
            HandshakeFailure::Silent => {
                process.kill().await;
                let seconds = self.options.load_silence.as_secs_f32();
                let what = format!(
                    "{} could not start: its worker was silent for {seconds} s",
                    self.tier
                );
                let what = process.evidence.words.quoted_by(what);
                Error::new(Code::WorkerTimeout, what).hint(self.log_hint())
            }
        })
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
        let error = Error::new(Code::WorkerTimeout, what).hint(self.log_hint());
        WorkerFailure::crash(error.detail("cause", "hung"))
    }

    pub(super) async fn crashed(
        &self,
        status: io::Result<ExitStatus>,
        process: &mut WorkerProcess,
    ) -> WorkerFailure {
        process.evidence.complete().await;
        let tier = &self.tier;
        WorkerFailure::crash(match status {
            Ok(status) => {
                let what = format!("the worker of {tier} {}", exit::describe_exit(status));
                let crash = |what| Error::new(Code::WorkerCrashed, what);
                process.evidence.explain(status, what, crash)
            }
            Err(error) => {
                process.kill().await;
                let what = format!("the worker of {tier} could not be waited for: {error}");
                Error::new(Code::WorkerCrashed, what).hint("report this as a bug")
            }
        })
    }
}
