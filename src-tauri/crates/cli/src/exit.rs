//! Exit codes: what a script learns of a command's outcome. `tierbar --help` and docs/cli.md list them.

use std::process::ExitCode;
use tierbar_core::Code;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    /// Also what clap ends with.
    Usage = 2,
    NotRunning = 3,
    NotFound = 4,
    Refused = 5,
    NoRoom = 6,
    Busy = 7,
    Unreachable = 8,
    /// 128 and the number of SIGINT, as shells have it.
    Interrupted = 130,
}

impl Exit {
    const ALL: [Self; 10] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotRunning,
        Self::NotFound,
        Self::Refused,
        Self::NoRoom,
        Self::Busy,
        Self::Unreachable,
        Self::Interrupted,
    ];

    pub(crate) fn for_code(code: Code) -> Self {
        match code {
            Code::BadRequest
            | Code::MethodNotAllowed
            | Code::UnsupportedMediaType
            | Code::PreviousResponseNotFound
            | Code::ConfigInvalid => Self::Usage,
            Code::ShuttingDown => Self::NotRunning,
            Code::NotFound
            | Code::ModelUnknown
            | Code::TierUnknown
            | Code::ModelMissing
            | Code::ContextUnknown
            | Code::RepositoryUnknown => Self::NotFound,
            Code::Unauthorized
            | Code::Forbidden
            | Code::AccessDenied
            | Code::NotOurs
            | Code::ModelInUse
            | Code::Conflict => Self::Refused,
            Code::OverBudget
            | Code::BudgetSpent
            | Code::ContextExceeded
            | Code::PayloadTooLarge
            | Code::Storage => Self::NoRoom,
            Code::Paused
            | Code::Overloaded
            | Code::Measuring
            | Code::PortTaken
            | Code::AlreadyRunning
            | Code::TierStopped
            | Code::RequestTimeout
            | Code::WorkerTimeout => Self::Busy,
            Code::Unreachable => Self::Unreachable,
            Code::Cancelled => Self::Interrupted,
            Code::WebsocketConnectionLimitReached
            | Code::ModelInvalid
            | Code::ModelUnsupported
            | Code::ContextMismatch
            | Code::Corrupt
            | Code::TierFailed
            | Code::WorkerCrashed
            | Code::Internal => Self::Failed,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Usage => "wrong usage: an option, a value or config.toml",
            Self::NotRunning => "Tierbar is not running, or quit meanwhile",
            Self::NotFound => "not found: a tier, model, key, file or other name",
            Self::Refused => "refused: needs a yes, a token or a license, or is in use",
            Self::NoRoom => {
                "no room: in the memory budget, a chain's budget, the context or on the disk"
            }
            Self::Busy => "busy or paused: try again later",
            Self::Unreachable => "a server cannot be reached",
            Self::Interrupted => "interrupted with Ctrl-C",
        }
    }

    pub(crate) fn list() -> String {
        let lines = Self::ALL.map(|exit| format!("  {:<4} {}\n", exit as u8, exit.meaning()));
        format!("Exit codes:\n{}", lines.concat())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_list_every_exit_code() {
        let rows = Exit::ALL.map(|exit| format!("| {} | {} |\n", exit as u8, exit.meaning()));
        let table = format!("| code | meaning |\n|---|---|\n{}", rows.concat());
        let docs = include_str!("../../../../docs/cli.md");
        assert!(
            docs.contains(&table),
            "docs/cli.md should have this table:\n\n{table}"
        );
        for exit in Exit::ALL {
            assert!(Exit::list().contains(exit.meaning()), "{exit:?}");
        }
    }

    #[test]
    fn an_error_ends_with_the_code_of_its_kind() {
        for (code, exit) in [
            (Code::TierUnknown, Exit::NotFound),
            (Code::ShuttingDown, Exit::NotRunning),
            (Code::OverBudget, Exit::NoRoom),
            (Code::BudgetSpent, Exit::NoRoom),
            (Code::Cancelled, Exit::Interrupted),
            (Code::ConfigInvalid, Exit::Usage),
            (Code::AccessDenied, Exit::Refused),
            (Code::TierFailed, Exit::Failed),
        ] {
            assert_eq!(Exit::for_code(code), exit, "{code:?}");
        }
    }
}
