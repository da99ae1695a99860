//! ConnectionSlots for a limited number of connections. When all are taken, the one that has waited longest for its client gives up
//! its slot: so clients that connect and send nothing, or one byte per second, block no other client.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The order of a slot whose request is complete and being answered.
const ANSWERING: u64 = 0;

#[derive(Debug)]
pub(super) struct ConnectionSlots {
    most: usize,
    taken: Mutex<HashMap<u64, Arc<Slot>>>,
    /// Numbers the waits of slots in order.
    ticks: AtomicU64,
    /// A slot may have become free, or be given up.
    changed: Notify,
}

#[derive(Debug)]
struct Slot {
    waits_since: AtomicU64,
    given_up: CancellationToken,
}

/// A connection's slot, held while this lives.
#[derive(Debug)]
pub(super) struct TakenSlot {
    slots: Arc<ConnectionSlots>,
    slot: Arc<Slot>,
    number: u64,
}

impl ConnectionSlots {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Mutex::default(),
            ticks: AtomicU64::new(ANSWERING + 1),
            changed: Notify::new(),
        }
    }

    pub(super) async fn take(self: &Arc<Self>) -> TakenSlot {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            self.changed.notified().await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<TakenSlot> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.most {
            let longest = longest_waiting(&taken)?;
            if let Some(slot) = taken.remove(&longest) {
                slot.given_up.cancel();
            }
        }
        let number = self.tick();
        let slot = Arc::new(Slot {
            waits_since: AtomicU64::new(number),
            given_up: CancellationToken::new(),
        });
        taken.insert(number, Arc::clone(&slot));
        Some(TakenSlot {
            slots: Arc::clone(self),
            slot,
            number,
        })
    }

    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }
}

fn longest_waiting(taken: &HashMap<u64, Arc<Slot>>) -> Option<u64> {
    let since = |slot: &Arc<Slot>| slot.waits_since.load(Ordering::Acquire);
    let waiting = taken.iter().filter(|(_, slot)| since(slot) != ANSWERING);
    waiting
        .min_by_key(|(_, slot)| since(slot))
        .map(|(number, _)| *number)
}

impl TakenSlot {
    /// Marks the connection as waiting for its client.
    pub(super) fn waits(&self) {
        let now = self.slots.tick();
        self.slot.waits_since.store(now, Ordering::Release);
        self.slots.changed.notify_one();
    }

    /// Marks the connection's request as complete.
    pub(super) fn answers(&self) {
        self.slot.waits_since.store(ANSWERING, Ordering::Release);
    }

    /// Gives the slot up when the guard is dropped.
    pub(super) fn end_with(&self) -> DropGuard {
        self.slot.given_up.clone().drop_guard()
    }

    pub(super) async fn given_up(&self) {
        self.slot.given_up.cancelled().await;
    }
}

impl Drop for TakenSlot {
    fn drop(&mut self) {
        self.slots.taken.lock().remove(&self.number);
        self.slots.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        pin::{Pin, pin},
        task::{Context, Waker},
    };

    fn waits(future: Pin<&mut impl Future>) -> bool {
        future
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    }

    fn is_given_up(taken: &TakenSlot) -> bool {
        taken.slot.given_up.is_cancelled()
    }

    #[tokio::test]
    async fn the_longest_waiting_connection_gives_way() {
        let slots = Arc::new(ConnectionSlots::new(3));
        let [answered, first, second] = [(); 3].map(|()| slots.try_take().unwrap());
        answered.answers();
        let third = slots.take().await;
        assert_eq!(
            [&answered, &first, &second].map(is_given_up),
            [false, true, false]
        );
        second.answers();
        second.waits();
        // The third one now waits longest.
        let fourth = slots.take().await;
        assert!(!is_given_up(&second) && is_given_up(&third));
        drop((first, third));
        fourth.answers();
        second.answers();
        let mut next = pin!(slots.take());
        assert!(waits(next.as_mut()));
        second.waits();
        next.await;
        assert!(is_given_up(&second) && !is_given_up(&fourth));
    }

    #[tokio::test]
    async fn an_ended_connection_frees_its_place() {
        let slots = Arc::new(ConnectionSlots::new(1));
        let only = slots.take().await;
        only.answers();
        let mut next = pin!(slots.take());
        assert!(waits(next.as_mut()));
        drop(only);
        next.await;
    }
}
