//! Stores that do not answer at once, as a locked Keychain and one that asks its user.

use super::*;
use parking_lot::{Condvar, Mutex};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Answers once it is unlocked.
#[derive(Default)]
struct Locked {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    unlocked: bool,
    /// How often a secret was asked for.
    reads: usize,
    value: Option<SecretString>,
}

impl Locked {
    fn unlock(&self) {
        self.state.lock().unlocked = true;
        self.changed.notify_all();
    }

    fn lock(&self) {
        self.state.lock().unlocked = false;
    }

    fn reads(&self) -> usize {
        self.state.lock().reads
    }

    /// Waits until it was asked this often: a thread may start late.
    fn wait_for(&self, reads: usize) {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| state.reads < reads, HANG);
        assert!(state.reads >= reads, "{} of {reads} reads", state.reads);
    }
}

impl Store for Locked {
    fn source(&self) -> Source {
        Source::Keychain
    }

    fn get(&self, _: &Name) -> Result<Option<SecretString>, Error> {
        let mut state = self.state.lock();
        state.reads += 1;
        self.changed.notify_all();
        // As of its begin, as a store may answer.
        let value = state.value.clone();
        self.changed.wait_while(&mut state, |state| !state.unlocked);
        Ok(value)
    }

    fn set(&self, _: &Name, value: &SecretString) -> Result<(), Error> {
        self.state.lock().value = Some(value.clone());
        Ok(())
    }

    fn remove(&self, _: &Name) -> Result<(), Error> {
        self.state.lock().value = None;
        Ok(())
    }
}

/// A Keychain whose reads end so.
struct Answering(fn() -> Result<Option<SecretString>, Error>);

impl Store for Answering {
    fn source(&self) -> Source {
        Source::Keychain
    }

    fn get(&self, _: &Name) -> Result<Option<SecretString>, Error> {
        self.0()
    }

    fn set(&self, _: &Name, _: &SecretString) -> Result<(), Error> {
        Ok(())
    }

    fn remove(&self, _: &Name) -> Result<(), Error> {
        Ok(())
    }
}

/// Its user looks elsewhere for a minute.
const ASKING: Answering = Answering(|| {
    let (_silent, answer) = std::sync::mpsc::channel::<()>();
    let _none = answer.recv_timeout(Duration::from_secs(60));
    Ok(Some(TOKEN.into()))
});

/// Its user has denied access.
const REFUSING: Answering = Answering(|| {
    Err(Error::new(
        Code::Storage,
        "the Keychain cannot be read: denied",
    ))
});

fn over(store: Arc<dyn Store>, deadline: Duration) -> Secrets {
    Secrets::with_store(store, deadline, environment(&[]))
}

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(120);
/// After which a test fails.
const HANG: Duration = Duration::from_secs(60);

/// Asks until there is an answer.
fn answer(secrets: &Secrets) -> Option<String> {
    let begun = Instant::now();
    loop {
        match secrets.get(&Name::HuggingFace) {
            Ok(secret) => return exposed(secret),
            Err(error) => assert!(begun.elapsed() < HANG, "{error}"),
        }
        thread::yield_now();
    }
}

#[test]
fn a_keychain_that_does_not_answer_is_an_error() {
    let secrets = over(Arc::new(ASKING), SHORT);
    let (done, found) = std::sync::mpsc::channel();
    thread::spawn(move || done.send(secrets.get(&Name::of_server("https://api.example.com"))));
    // Far less than the store sleeps.
    let error = found
        .recv_timeout(Duration::from_secs(40))
        .unwrap()
        .unwrap_err();
    assert_eq!(error.code, Code::Storage);
    assert!(
        error
            .message
            .starts_with("the key of api.example.com was not read within "),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("unlock the login Keychain"));
}

#[test]
fn a_refusal_is_passed_on_each_time() {
    let secrets = over(Arc::new(REFUSING), LONG);
    for _ in 0..2 {
        let error = secrets.get(&Name::HuggingFace).unwrap_err();
        assert_eq!(error.message, "the Keychain cannot be read: denied");
    }
}

#[test]
fn reads_of_a_locked_keychain_are_one_for_each_secret() {
    let store = Arc::new(Locked::default());
    let hasty = over(Arc::clone(&store) as Arc<dyn Store>, SHORT);
    for _ in 0..5 {
        hasty.get(&Name::HuggingFace).unwrap_err();
    }
    store.wait_for(1);
    hasty.get(&Name::BraveSearch).unwrap_err();
    store.wait_for(2);
    assert_eq!(store.reads(), 2);

    let store = Arc::new(Locked::default());
    let secrets = over(Arc::clone(&store) as Arc<dyn Store>, LONG);
    secrets.set(&Name::HuggingFace, &TOKEN.into()).unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let secrets = secrets.clone();
            thread::spawn(move || get(&secrets))
        })
        .collect();
    store.wait_for(1);
    store.unlock();
    for waiting in waiting {
        assert_eq!(waiting.join().unwrap().as_deref(), Some(TOKEN));
    }
    // The next one asks again.
    let before = store.reads();
    assert_eq!(get(&secrets).as_deref(), Some(TOKEN));
    assert_eq!(store.reads(), before + 1);
}

#[test]
fn a_new_secret_is_not_answered_by_an_older_read() {
    let store = Arc::new(Locked::default());
    let hasty = over(Arc::clone(&store) as Arc<dyn Store>, SHORT);
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(1);
    hasty.set(&Name::HuggingFace, &TOKEN.into()).unwrap();
    // Another read, which sees it.
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(2);
    store.unlock();
    assert_eq!(answer(&hasty).as_deref(), Some(TOKEN));

    store.lock();
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(3);
    hasty.remove(&Name::HuggingFace).unwrap();
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(4);
    store.unlock();
    assert_eq!(answer(&hasty), None);
}

#[test]
fn a_late_answer_serves_the_next_request() {
    let store = Arc::new(Locked::default());
    // Each of its requests ends at once, so that every answer is late.
    let hasty = over(Arc::clone(&store) as Arc<dyn Store>, Duration::ZERO);
    hasty.set(&Name::HuggingFace, &TOKEN.into()).unwrap();
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(1);
    store.unlock();
    assert_eq!(answer(&hasty).as_deref(), Some(TOKEN));
    assert_eq!(store.reads(), 1);
    // Only one: the next one asks again.
    assert_eq!(answer(&hasty).as_deref(), Some(TOKEN));
    assert_eq!(store.reads(), 2);
}

#[test]
fn a_late_answer_is_forgotten_when_the_secret_changes() {
    let store = Arc::new(Locked::default());
    let hasty = over(Arc::clone(&store) as Arc<dyn Store>, Duration::ZERO);
    hasty.get(&Name::HuggingFace).unwrap_err();
    store.wait_for(1);
    store.unlock();
    // Most likely, the answer is kept by then.
    let (_silent, never) = std::sync::mpsc::channel::<()>();
    let _none = never.recv_timeout(SHORT);
    hasty.set(&Name::HuggingFace, &TOKEN.into()).unwrap();
    assert_eq!(answer(&hasty).as_deref(), Some(TOKEN));
    assert_eq!(store.reads(), 2);
}
