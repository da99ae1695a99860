//! The source of a file: its URL, the location that it redirects to, and the failures of requests there.

use super::{
    TokenFor,
    head::{self, FileProperties},
};
use crate::web::{Answer, ByteRange, Failure, Get, Location, Web};
use parking_lot::Mutex;
use std::time::Duration;
use tierbar_core::{Code, Error};
use url::Url;

/// Why a request brought no bytes.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Trying again gives the same result.
    Fatal(Error),
    /// The network or the server may recover.
    Passing(Error),
    /// The server limits requests, perhaps for a given time.
    Busy(Error, Option<Duration>),
    /// The server violates HTTP.
    Wrong(Error),
    Changed,
    /// The server answered with the whole file instead of the part.
    Whole(Box<Answer>),
    /// The part lies beyond the end of the file (416), whose size may be known.
    Beyond(Option<u64>),
}

impl Trouble {
    /// Returns how an answer contradicts earlier ones, if the file is otherwise the same.
    pub(super) fn contradiction(&self, known: &FileProperties) -> Option<&'static str> {
        match self {
            Self::Whole(answer) if known.total.is_some() && !known.differs(answer) => {
                Some("the server sends the whole file instead of the requested part")
            }
            Self::Beyond(total)
                if known.total.is_some() && (total.is_none() || *total == known.total) =>
            {
                Some("the server refuses a part that its file has (416)")
            }
            _ => None,
        }
    }
}

pub(super) struct Source {
    web: Web,
    url: Url,
    tokens: TokenFor,
    place: Mutex<Place>,
    /// Held while the redirects are followed, so that one does it for all.
    resolving: tokio::sync::Mutex<()>,
}

/// What the URL redirects to, which would cost a round trip more for each piece. It ends: signed URLs expire.
#[derive(Debug, Default)]
struct Place {
    location: Option<Location>,
    /// Counts the times that the redirects were forgotten.
    version: u64,
    /// Denied since the last bytes: the redirects have been resolved again for it.
    denied: bool,
    /// Asked on a condition, the server sends the whole of a file that by its own word is the same: it does not know
    /// `If-Range`. The metadata of each part is compared anyway.
    unconditional: bool,
}

impl Source {
    pub(super) fn new(web: &Web, url: &Url, tokens: &TokenFor) -> Self {
        Self {
            web: web.clone(),
            url: url.clone(),
            tokens: tokens.clone(),
            place: Mutex::default(),
            resolving: tokio::sync::Mutex::default(),
        }
    }

    /// Bytes `start..end`. The answer's head has been checked.
    pub(super) async fn open(
        &self,
        part: (u64, u64),
        known: &FileProperties,
    ) -> Result<Answer, Trouble> {
        loop {
            let mut resolving = None;
            if self.place().0.is_none() {
                resolving = Some(self.resolving.lock().await);
            }
            let (location, version) = self.place();
            let get = Get {
                url: self.url.clone(),
                token: (self.tokens)(&self.url),
                token_header: None,
                range: Some(ByteRange {
                    start: part.0,
                    end: Some(part.1),
                }),
                if_range: (known.validator()).filter(|_| !self.place.lock().unconditional),
            };
            let answer = match location {
                Some(location) => self.web.fetch_at(&get, location).await,
                None => self.web.fetch(&get).await,
            };
            let answer = answer.map_err(|failure| match failure {
                Failure::Refused(error) => Trouble::Fatal(error),
                Failure::Passing(error) => {
                    self.forget(version);
                    Trouble::Passing(error)
                }
            })?;
            match answer.status {
                200 | 206 => {
                    let mut place = self.place.lock();
                    place.denied = false;
                    if place.version == version {
                        place.location = Some(answer.location.clone());
                    }
                }
                408 | 416 | 429 => self.forget(version),
                // Servers differ in what they call a signature that has expired.
                400..500 if self.resolves_again(&answer, version) => continue,
                _ => self.forget(version),
            }
            drop(resolving);
            return self.judge(answer, part, known);
        }
    }

    fn place(&self) -> (Option<Location>, u64) {
        let place = self.place.lock();
        (place.location.clone(), place.version)
    }

    fn judge(
        &self,
        answer: Answer,
        part: (u64, u64),
        known: &FileProperties,
    ) -> Result<Answer, Trouble> {
        let Some(error) = answer.refusal() else {
            if answer.status == 206 {
                return head::check_part(&answer, part, known).map(|()| answer);
            }
            head::check_encoding(&answer)?;
            let trouble = Trouble::Whole(Box::new(answer));
            if trouble.contradiction(known).is_some() {
                self.place.lock().unconditional = true;
            }
            return Err(trouble);
        };
        Err(match answer.status {
            416 => Trouble::Beyond(answer.content_range.and_then(|range| range.total)),
            429 | 503 => Trouble::Busy(error, answer.retry_after),
            408 | 500.. => Trouble::Passing(error),
            300..400 => Trouble::Fatal(Error::new(Code::Unreachable, error.message)),
            _ => Trouble::Fatal(error),
        })
    }

    fn forget(&self, version: u64) {
        let mut place = self.place.lock();
        if place.version == version {
            place.location = None;
            place.version += 1;
        }
    }

    /// A refusal by a server that was redirected to may be an expired signature: once, the redirects are asked
    /// for again.
    fn resolves_again(&self, answer: &Answer, version: u64) -> bool {
        if answer.url == self.url {
            return false;
        }
        let mut place = self.place.lock();
        if place.version != version {
            return true;
        }
        if place.denied {
            return false;
        }
        place.denied = true;
        place.location = None;
        place.version += 1;
        true
    }
}
