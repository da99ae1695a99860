//! Reads of a store, each with a deadline: the Keychain may be locked, or ask its user first, who may not be there.

use crate::{Name, Source, Store};
use parking_lot::{Condvar, Mutex};
use secrecy::SecretString;
use std::{collections::HashMap, sync::Arc, thread, time::Duration};
use tierbar_core::{Code, Error};

/// Enough for a password to be typed. A later answer serves the next request.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// How long an answer waits for that request.
const KEPT: Duration = Duration::from_secs(60);

type SecretAnswer = Result<Option<SecretString>, Error>;

/// Those of one store. Each has a thread, since nothing can cancel it, and a secret has at most one.
pub(crate) struct Reads {
    store: Arc<dyn Store>,
    deadline: Duration,
    outstanding: Mutex<HashMap<Name, Arc<PendingRead>>>,
}

#[derive(Default)]
struct PendingRead {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    answer: Option<SecretAnswer>,
    /// Whether a request has received the answer, or the secret has changed.
    is_over: bool,
}

impl PendingRead {
    fn wait(&self, deadline: Duration) -> Option<SecretAnswer> {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| state.answer.is_none(), deadline);
        state.answer.clone()
    }

    /// Passes the answer on to the requests that wait, or else keeps it for a while.
    fn keep(&self, answer: SecretAnswer) {
        let mut state = self.state.lock();
        state.answer = Some(answer);
        self.changed.notify_all();
        self.changed
            .wait_while_for(&mut state, |state| !state.is_over, KEPT);
    }

    fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_all();
    }
}

impl Reads {
    pub(crate) fn new(store: Arc<dyn Store>, deadline: Duration) -> Arc<Self> {
        let outstanding = Mutex::default();
        Arc::new(Self {
            store,
            deadline,
            outstanding,
        })
    }

    /// # Errors
    /// Those of the store; `Storage` if it has not answered in time.
    pub(crate) fn get(self: &Arc<Self>, name: &Name) -> SecretAnswer {
        let read = self.join(name)?;
        let Some(answer) = read.wait(self.deadline) else {
            return Err(self.unanswered(name));
        };
        self.end(name, &read);
        answer
    }

    /// Has the next read begin anew, because the secret has changed.
    pub(crate) fn forget(&self, name: &Name) {
        let read = self.outstanding.lock().remove(name);
        if let Some(read) = read {
            read.end();
        }
    }

    fn end(&self, name: &Name, read: &Arc<PendingRead>) {
        let mut outstanding = self.outstanding.lock();
        if outstanding
            .get(name)
            .is_some_and(|other| Arc::ptr_eq(other, read))
        {
            outstanding.remove(name);
        }
        drop(outstanding);
        read.end();
    }

    fn join(self: &Arc<Self>, name: &Name) -> Result<Arc<PendingRead>, Error> {
        let mut outstanding = self.outstanding.lock();
        if let Some(read) = outstanding.get(name) {
            return Ok(Arc::clone(read));
        }
        let read = Arc::<PendingRead>::default();
        let (reads, this, of) = (Arc::clone(self), Arc::clone(&read), name.clone());
        let log = tracing::dispatcher::get_default(Clone::clone);
        let begun = thread::Builder::new().spawn(move || {
            let answer = tracing::dispatcher::with_default(&log, || reads.store.get(&of));
            this.keep(answer);
            reads.end(&of, &this);
        });
        begun.map_err(|error| {
            let message = format!("the secrets cannot be read: {error}");
            Error::new(Code::Storage, message)
        })?;
        outstanding.insert(name.clone(), Arc::clone(&read));
        Ok(read)
    }

    fn unanswered(&self, name: &Name) -> Error {
        let seconds = self.deadline.as_secs();
        let hint = match self.store.source() {
            Source::Keychain => {
                "unlock the login Keychain, or answer its question on this Mac's screen; then try again"
            }
            _ => "try again",
        };
        let message = format!("the key of {name} was not read within {seconds} s");
        Error::new(Code::Storage, message).hint(hint)
    }
}
