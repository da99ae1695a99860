//! For whom an answer is made. A request's caller goes with its task and not with its arguments, so that no dialect has to pass it on.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};

tokio::task_local! {
    static CALLER: Caller;
}

/// The account that answers are charged to: a client with a limit of its own.
pub trait Account: Send + Sync + fmt::Debug {
    /// Distinguishes it from all others, those closed too.
    fn id(&self) -> &str;

    /// What its owner calls it.
    fn name(&self) -> &str;

    /// Counts what is more than one request in what came as one.
    fn count(&self, more: u32);

    /// Takes the tokens of an answer.
    fn spend(&self, tokens: u64);

    /// Bytes of the memory that its answers take.
    fn answers(&self) -> &AtomicUsize;
}

/// The memory that the answers of all programs without a key take, in bytes.
static OF_PROGRAMS: AtomicUsize = AtomicUsize::new(0);

/// The caller of a request. Only the tokens of accounts are counted.
#[derive(Debug, Clone, Default)]
pub enum Caller {
    #[default]
    Owner,
    /// A program on this machine that shows neither a key nor that it is the owner's.
    Program,
    Account(Arc<dyn Account>),
}

impl From<Arc<dyn Account>> for Caller {
    fn from(account: Arc<dyn Account>) -> Self {
        Self::Account(account)
    }
}

impl Caller {
    /// The caller of the request that this task answers.
    pub fn of_this_request() -> Self {
        CALLER.try_with(Clone::clone).unwrap_or_default()
    }

    /// The account's id, if there is one.
    pub fn id(&self) -> Option<String> {
        self.account().map(|account| account.id().to_owned())
    }

    /// The account's name, if there is one.
    pub fn name(&self) -> Option<String> {
        self.account().map(|account| account.name().to_owned())
    }

    pub(crate) fn is_owner(&self) -> bool {
        matches!(self, Self::Owner)
    }

    /// The memory that the caller's answers take; the owner has all of it.
    pub(crate) fn answers(&self) -> Option<&AtomicUsize> {
        match self {
            Self::Owner => None,
            Self::Program => Some(&OF_PROGRAMS),
            Self::Account(account) => Some(account.answers()),
        }
    }

    fn account(&self) -> Option<&dyn Account> {
        match self {
            Self::Account(account) => Some(&**account),
            Self::Owner | Self::Program => None,
        }
    }

    /// Runs `answering` for this caller.
    pub async fn scope<F: Future>(&self, answering: F) -> F::Output {
        CALLER.scope(self.clone(), answering).await
    }

    /// As [`Self::scope`], for one poll.
    pub fn sync_scope<T>(&self, poll: impl FnOnce() -> T) -> T {
        CALLER.sync_scope(self.clone(), poll)
    }

    /// Counts a request for so many answers as that many requests; the first was counted as it came.
    pub fn count(&self, answers: u64) {
        let more = u32::try_from(answers.saturating_sub(1)).unwrap_or(u32::MAX);
        if let Some(account) = self.account().filter(|_| more > 0) {
            account.count(more);
        }
    }

    pub fn spend(&self, tokens: u64) {
        if let Some(account) = self.account() {
            account.spend(tokens);
        }
    }
}
