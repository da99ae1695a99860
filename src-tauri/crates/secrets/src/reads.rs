//! Reads of a store, each with a deadline: the Keychain may be locked, or ask its user first, who may not be there.

use crate::{Name, Source, Store};
use parking_lot::{Condvar, Mutex};
use secrecy::SecretString;
use std::{collections::HashMap, sync::Arc, thread, time::Duration};
use tierbar_core::{Code, Error};

/// Enough for a password to be typed. A later answer serves the next request.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

type Answer = Result<Option<SecretString>, Error>;

/// Those of one store. Each has a thread, since nothing can cancel it, and a secret has at most one.
pub(crate) struct Reads {
    store: Arc<dyn Store>,
    deadline: Duration,
    outstanding: Mutex<HashMap<Name, Arc<Read>>>,
}

#[derive(Default)]
struct Read {
    answer: Mutex<Option<Answer>>,
    answered: Condvar,
}

impl Reads {
    pub(crate) fn of(store: Arc<dyn Store>, deadline: Duration) -> Arc<Self> {
        let outstanding = Mutex::default();
        Arc::new(Self {
            store,
            deadline,
            outstanding,
        })
    }

    /// # Errors
    /// Those of the store; `Storage` if it has not answered in time.
    pub(crate) fn get(self: &Arc<Self>, name: &Name) -> Answer {
        let read = self.join(name)?;
        let mut answer = read.answer.lock();
        read.answered
            .wait_while_for(&mut answer, |answer| answer.is_none(), self.deadline);
        let unanswered = || Err(self.unanswered(name));
        answer.clone().unwrap_or_else(unanswered)
    }

    /// Has the next read begin anew, because the secret has changed.
    pub(crate) fn forget(&self, name: &Name) {
        self.outstanding.lock().remove(name);
    }

    fn join(self: &Arc<Self>, name: &Name) -> Result<Arc<Read>, Error> {
        let mut outstanding = self.outstanding.lock();
        if let Some(read) = outstanding.get(name) {
            return Ok(Arc::clone(read));
        }
        let read = Arc::<Read>::default();
        let (reads, this, of) = (Arc::clone(self), Arc::clone(&read), name.clone());
        let log = tracing::dispatcher::get_default(Clone::clone);
        let begun = thread::Builder::new().spawn(move || {
            let answer = tracing::dispatcher::with_default(&log, || reads.store.get(&of));
            let mut outstanding = reads.outstanding.lock();
            if outstanding
                .get(&of)
                .is_some_and(|read| Arc::ptr_eq(read, &this))
            {
                outstanding.remove(&of);
            }
            drop(outstanding);
            *this.answer.lock() = Some(answer);
            this.answered.notify_all();
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
        let (who, hint) = match self.store.source() {
            Source::Keychain => (
                "macOS",
                "unlock the login Keychain, or answer its question on this Mac's screen; then try again",
            ),
            _ => ("the disk", "try again"),
        };
        let message = format!("{who} has not answered about the key of {name} within {seconds} s");
        Error::new(Code::Storage, message).hint(hint)
    }
}
