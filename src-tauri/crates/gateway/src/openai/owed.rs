//! What an answer takes of its API key's tokens. Whatever becomes of it, it is paid for once: as its server tells, or else by what has
//! been sent and what has come.

use crate::keys::Payer;

const BYTES_PER_TOKEN: usize = 4;
/// An event of one token is no longer, with all that stands around it.
const PLAIN: usize = 512;
const IMAGE: &[u8] = b";base64,";

/// Spent when it is dropped, also by a client that has gone away.
#[derive(Debug)]
pub(crate) struct Owed {
    payer: Payer,
    /// As the server says.
    told: Option<u64>,
    /// As the bytes of both ways are worth.
    reckoned: u64,
}

impl Owed {
    /// For a request on its way to its server. Bytes of an image say nothing of its tokens.
    pub(crate) fn of(request: &[u8]) -> Self {
        let payer = Payer::of_this_request();
        let says_nothing = || request.windows(IMAGE.len()).any(|part| part == IMAGE);
        let reckoned = match payer.counts() && !says_nothing() {
            true => (request.len() / BYTES_PER_TOKEN) as u64,
            false => 0,
        };
        Self {
            payer,
            told: None,
            reckoned,
        }
    }

    /// A piece of the answer, or all of it, with so many bytes: a token, and more if it is longer than one.
    pub(super) fn piece(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(PLAIN) / BYTES_PER_TOKEN;
        self.reckoned += 1 + more as u64;
    }

    pub(super) fn told(&mut self, tokens: Option<u64>) {
        self.told = tokens.or(self.told);
    }

    /// Nobody has done anything for it.
    pub(crate) fn nothing(mut self) {
        self.told = Some(0);
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        self.payer.spend(self.told.unwrap_or(self.reckoned));
    }
}
