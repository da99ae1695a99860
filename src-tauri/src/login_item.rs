//! Starting at login: off until the user turns it on. The system keeps it in one of the places of `platform::login_item`, and what
//! it says is kept here: asking it may take long, so that only threads in the background do.

use crate::{lock, platform::login_item, tray};
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};
use tauri::{
    AppHandle, Manager,
    async_runtime::{self, spawn_blocking},
};

/// A place where the system keeps login items.
pub(crate) trait Place {
    /// Whether the app is there.
    ///
    /// # Errors
    /// The system's reason, as of the other functions.
    fn is_on(&self) -> Result<bool, String>;
    /// Adds the app, or brings it up to date.
    fn add(&self) -> Result<(), Refusal>;
    /// Removes the app if it is there.
    fn remove(&self) -> Result<(), String>;
}

/// Why a place does not take the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This place cannot; another one may.
    Here(String),
    /// No place is to take it, such as against the user's own choice.
    Everywhere(String),
}

/// The login item as the system described it last.
#[derive(Debug, Default)]
pub(crate) struct LoginItem {
    is_on: AtomicBool,
    /// Held while the system is asked: changes come one after the other.
    asked: Mutex<()>,
}

/// Returns what the system said last. Callable from the main thread.
pub(crate) fn is_on(app: &AppHandle) -> bool {
    app.state::<LoginItem>().is_on.load(Ordering::Relaxed)
}

/// Reads it anew; the menu shows it.
///
/// # Errors
/// The task has ended early.
pub(crate) async fn read(app: &AppHandle) -> Result<bool, String> {
    ask(app, |_| Ok(())).await
}

/// Reads it anew in the background, unless it is being read already.
pub(crate) fn look(app: &AppHandle) {
    let app = app.clone();
    async_runtime::spawn(async move {
        if app.state::<LoginItem>().asked.try_lock().is_ok() {
            // A failure is in the log, and the menu keeps what it showed.
            let _ = read(&app).await;
        }
    });
}

/// Turns it on or off; the menu shows what is true then.
///
/// # Errors
/// A sentence with the system's reason.
pub(crate) async fn set(app: &AppHandle, on: bool) -> Result<bool, String> {
    ask(app, move |places| {
        let word = if on { "on" } else { "off" };
        store(places, on)
            .map_err(|error| format!("Start at Login could not be turned {word}: {error}"))
    })
    .await
}

/// Brings an enabled login item up to date, in the background. Call it once at each start.
pub(crate) async fn renew(app: AppHandle) {
    if let Err(error) = ask(&app, keep_one).await {
        tracing::warn!("the login item could not be brought up to date: {error}");
    }
}

async fn ask(
    app: &AppHandle,
    change: impl FnOnce(&[Box<dyn Place>]) -> Result<(), String> + Send + 'static,
) -> Result<bool, String> {
    let shell = app.clone();
    let asked = spawn_blocking(move || {
        let item = shell.state::<LoginItem>();
        let _one = lock(&item.asked);
        let places = login_item::places(&shell);
        let changed = change(&places);
        let is_on = places.iter().any(|place| is_there(&**place));
        item.is_on.store(is_on, Ordering::Relaxed);
        // Also if nothing has changed: a click has toggled the check.
        tray::refresh(&shell);
        changed.map(|()| is_on)
    });
    asked
        .await
        .unwrap_or_else(|ended| Err(format!("the question ended early: {ended}")))
}

fn is_there(place: &dyn Place) -> bool {
    place.is_on().unwrap_or_else(|error| {
        tracing::warn!("the login item could not be read: {error}");
        false
    })
}

/// Leaves the app in one place, the first that takes it, or in none.
fn store(places: &[Box<dyn Place>], on: bool) -> Result<(), String> {
    if !on {
        return remove_all(places, None);
    }
    let mut refused = "this system keeps no login items".to_owned();
    for (at, place) in places.iter().enumerate() {
        match place.add() {
            Ok(()) => return remove_all(places, Some(at)),
            Err(Refusal::Here(reason)) => refused = reason,
            Err(Refusal::Everywhere(reason)) => return Err(reason),
        }
    }
    Err(refused)
}

/// Of the places that have the app, the first one keeps it, with its path as it is now.
fn keep_one(places: &[Box<dyn Place>]) -> Result<(), String> {
    let Some(at) = places.iter().position(|place| is_there(&**place)) else {
        return Ok(());
    };
    match places[at].add() {
        Ok(()) => remove_all(places, Some(at)),
        Err(Refusal::Here(reason) | Refusal::Everywhere(reason)) => Err(reason),
    }
}

/// Removes the app from all places but one; returns the first reason why that failed.
fn remove_all(places: &[Box<dyn Place>], kept: Option<usize>) -> Result<(), String> {
    let others = places
        .iter()
        .enumerate()
        .filter(|(at, _)| Some(*at) != kept);
    let removed: Vec<_> = others.map(|(_, place)| place.remove()).collect();
    removed.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    /// A place that has the app or not, and what it answers when it is to take it.
    struct Played {
        has: Rc<AtomicBool>,
        add: Result<(), Refusal>,
    }

    impl Place for Played {
        fn is_on(&self) -> Result<bool, String> {
            Ok(self.has.load(Ordering::Relaxed))
        }

        fn add(&self) -> Result<(), Refusal> {
            self.add.clone()?;
            self.has.store(true, Ordering::Relaxed);
            Ok(())
        }

        fn remove(&self) -> Result<(), String> {
            self.has.store(false, Ordering::Relaxed);
            Ok(())
        }
    }

    /// What becomes of two places that have the app or not: of the system's service, which answers so, and of a launch agent.
    fn after(
        has: [bool; 2],
        service: &Result<(), Refusal>,
        act: impl FnOnce(&[Box<dyn Place>]) -> Result<(), String>,
    ) -> ([bool; 2], Result<(), String>) {
        let has = has.map(|has| Rc::new(AtomicBool::new(has)));
        let adds = [service.clone(), Ok(())];
        let places = has.iter().cloned().zip(adds);
        let places: Vec<Box<dyn Place>> = places
            .map(|(has, add)| Box::new(Played { has, add }) as Box<dyn Place>)
            .collect();
        let done = act(&places);
        (has.map(|has| has.load(Ordering::Relaxed)), done)
    }

    const BOTH: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

    #[test]
    fn one_place_has_the_login_item_or_none() {
        let here = Err(Refusal::Here("signed ad hoc".to_owned()));
        for has in BOTH {
            let on = |service: &_| after(has, service, |places| store(places, true));
            assert_eq!(on(&Ok(())), ([true, false], Ok(())), "{has:?}");
            assert_eq!(on(&here), ([false, true], Ok(())), "{has:?}");
            for service in [Ok(()), here.clone()] {
                let off = after(has, &service, |places| store(places, false));
                assert_eq!(off, ([false, false], Ok(())), "{has:?}");
            }
        }
    }

    #[test]
    fn a_users_refusal_is_final() {
        let service = Err(Refusal::Everywhere(
            "allow it in System Settings".to_owned(),
        ));
        let (has, done) = after([false, false], &service, |places| store(places, true));
        assert_eq!(has, [false, false]);
        assert_eq!(done.unwrap_err(), "allow it in System Settings");
    }

    #[test]
    fn a_start_leaves_one_login_item() {
        for (has, kept) in
            BOTH.into_iter()
                .zip([[false, false], [false, true], [true, false], [true, false]])
        {
            assert_eq!(after(has, &Ok(()), keep_one), (kept, Ok(())), "{has:?}");
        }
    }
}
