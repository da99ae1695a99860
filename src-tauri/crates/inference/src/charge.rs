//! What a request takes of its API key's tokens. It is charged once, however many servers were tried: by the count of the server that
//! answered, or else by what was sent and what arrived.

use super::caller::Caller;
use parking_lot::Mutex;
use std::sync::Arc;

const BYTES_PER_TOKEN: usize = 4;
/// An event of one token is no longer, with all that stands around it.
const PLAIN: usize = 512;

/// Of a request. It is spent when the last of its attempts is gone, also with a client that has gone away.
#[derive(Debug, Clone, Default)]
pub struct Charge(Arc<Bill>);

#[derive(Debug, Default)]
struct Bill {
    caller: Caller,
    prompt: u64,
    so_far: Mutex<ChargeProgress>,
}

#[derive(Debug, Default)]
struct ChargeProgress {
    /// A server has worked on it.
    begun: bool,
    reported: Option<u64>,
    pieces: u64,
}

impl Charge {
    /// `prompt_bytes`: of the prompt, without the data of images and sounds, which says nothing of their tokens.
    pub fn new(caller: Caller, prompt_bytes: usize) -> Self {
        let prompt = (prompt_bytes / BYTES_PER_TOKEN) as u64;
        Self(Arc::new(Bill {
            caller,
            prompt,
            so_far: Mutex::default(),
        }))
    }

    /// It is on its way to a server.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            bill: Arc::clone(&self.0),
            worked: true,
            reported: None,
            pieces: 0,
        }
    }
}

impl Bill {
    fn sum(&self) -> u64 {
        let so_far = self.so_far.lock();
        match so_far.begun {
            true => so_far.reported.unwrap_or(self.prompt + so_far.pieces),
            false => 0,
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        self.caller.spend(self.sum());
    }
}

/// What comes of asking one server.
#[derive(Debug)]
pub struct Attempt {
    bill: Arc<Bill>,
    worked: bool,
    /// As the server says.
    reported: Option<u64>,
    pieces: u64,
}

impl Attempt {
    /// A piece of the answer, or all of it, with so many bytes: a token, and more if it is longer than one.
    pub(super) fn piece(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(PLAIN) / BYTES_PER_TOKEN;
        self.pieces += 1 + more as u64;
    }

    pub(super) fn report(&mut self, tokens: Option<u64>) {
        self.reported = tokens.or(self.reported);
    }

    /// The server has done nothing for it.
    pub(crate) fn void(&mut self) {
        self.worked = false;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.worked {
            let mut so_far = self.bill.so_far.lock();
            so_far.begun = true;
            so_far.reported = self.reported.or(so_far.reported);
            so_far.pieces += self.pieces;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(asks: impl FnOnce(&Charge)) -> u64 {
        let charge = Charge(Arc::new(Bill {
            caller: Caller::default(),
            prompt: 100,
            so_far: Mutex::default(),
        }));
        asks(&charge);
        charge.0.sum()
    }

    #[test]
    fn a_request_is_charged_once_over_all_attempts() {
        assert_eq!(spent(|_| ()), 0);
        assert_eq!(spent(|charge| charge.attempt().void()), 0);
        // Two servers that hang, and no count.
        assert_eq!(
            spent(|charge| drop((charge.attempt(), charge.attempt()))),
            100
        );
        let reply = |charge: &Charge| {
            drop(charge.attempt());
            charge.attempt().void();
            charge.attempt().report(Some(70));
        };
        assert_eq!(spent(reply), 70);
        let pieces = |charge: &Charge| {
            let mut attempt = charge.attempt();
            attempt.piece(20);
            attempt.piece(PLAIN + 40);
        };
        assert_eq!(spent(pieces), 112);
    }
}
