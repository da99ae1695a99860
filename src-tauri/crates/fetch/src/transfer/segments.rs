//! A file in pieces over several connections. This task owns the plan; a connection owns the piece it fetches.

use super::{
    Phase, Report, Terms,
    backoff::Backoff,
    disk::{Block, Disk},
    head::{self, FileProperties},
    pieces::{self, BusyPiece, Piece, Plan, Relief},
    rate::RateLimit,
    source::{Source, Trouble},
};
use crate::web::Answer;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tierbar_core::{Code, Error};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, Id, JoinSet},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

/// Connections to begin with, and the most: servers and home routers are used to as many from a browser.
const CONNECTIONS: usize = 4;
const MOST_CONNECTIONS: usize = 8;
/// What another connection must add to the rate to be followed by one more.
const GROWTH: f64 = 1.1;
const LOOK_EVERY: Duration = Duration::from_millis(200);
const GROW_EVERY: Duration = Duration::from_secs(1);
/// Less than this before a failure is no progress: a server that breaks off at once is not retried at once.
const PROGRESS: u64 = 64 << 10;

pub(super) enum End {
    Complete,
    Changed,
}

pub(super) struct Fetch<'a> {
    pub(super) source: &'a Arc<Source>,
    pub(super) known: &'a Arc<FileProperties>,
    pub(super) disk: &'a Disk,
    pub(super) rate: &'a RateLimit,
    pub(super) terms: &'a Terms,
    pub(super) report: &'a Report,
}

struct Connection {
    piece: Arc<Piece>,
    abort: AbortHandle,
    begun: Instant,
    /// How much was to come at the beginning.
    bytes: u64,
    /// When it was last seen to have moved, and where it was.
    moved: (Instant, u64),
    retaken: bool,
}

impl Fetch<'_> {
    /// Fetches what `plan` lacks; `first` is the answer for its first piece.
    ///
    /// # Errors
    /// Failures that a retry does not fix, and those of the disk.
    pub(super) async fn run(
        &self,
        mut plan: Plan,
        first: (Arc<Piece>, Answer),
        backoff: &mut Backoff,
    ) -> Result<End, Error> {
        let mut tasks = JoinSet::new();
        let mut busy: HashMap<Id, Connection> = HashMap::new();
        let mut size = pieces::SMALLEST * 2;
        let mut resting: Vec<Instant> = Vec::new();
        let mut crew = Crew::new(plan.bytes() + first.0.rest().1 - first.0.rest().0);
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut received = self.disk.received();
        self.spawn(&mut tasks, &mut busy, first.0, Some(first.1), false);
        loop {
            if let Some(trouble) = self.disk.trouble() {
                return Err(trouble);
            }
            let now = Instant::now();
            resting.retain(|until| *until > now);
            while busy.len() + resting.len() < crew.size {
                if let Some(piece) = plan.next(size) {
                    self.spawn(&mut tasks, &mut busy, piece, None, false);
                } else if let Some((piece, retaken)) = relieve(&mut busy) {
                    self.spawn(&mut tasks, &mut busy, piece, None, retaken);
                } else {
                    break;
                }
            }
            if busy.is_empty() && plan.is_empty() {
                return Ok(End::Complete);
            }
            let rested = resting.iter().min().copied();
            if busy.is_empty() {
                self.report.phase(Phase::Waiting {
                    reason: backoff.reason.clone(),
                    until: rested,
                });
            }
            tokio::select! {
                Some(ended) = tasks.join_next_with_id() => {
                    let (id, trouble) = match ended {
                        Ok((id, ended)) => (id, ended.err()),
                        Err(error) => (error.id(), None),
                    };
                    // An aborted connection has been forgotten already.
                    let Some(connection) = busy.remove(&id) else { continue };
                    let (next, end) = connection.piece.rest();
                    let got = connection.bytes.saturating_sub(end - next);
                    plan.give_back(&connection.piece);
                    if got >= PROGRESS || trouble.is_none() {
                        backoff.reset();
                    }
                    let doubt = trouble.as_ref().and_then(|it| it.contradiction(self.known));
                    if let Some(rest) = doubt.and_then(|doubt| backoff.after_wrong_answer(doubt, self.terms)) {
                        resting.push(Instant::now() + rest);
                        continue;
                    }
                    match trouble {
                        None => size = pieces::size_at(rate_of(got, connection.begun)),
                        Some(Trouble::Changed | Trouble::Beyond(_) | Trouble::Whole(_)) => {
                            backoff.reset();
                            return Ok(End::Changed);
                        }
                        Some(Trouble::Busy(error, after)) => {
                            let until = Instant::now() + backoff.after_busy(error, after, self.terms);
                            match after {
                                // Applies to all connections: running ones end, and none starts until then.
                                Some(_) => resting.extend(std::iter::repeat_n(until, crew.size)),
                                None if busy.is_empty() => resting.push(until),
                                None => crew.shrink(busy.len()),
                            }
                        }
                        // A connection that broke while receiving continues at once.
                        Some(Trouble::Passing(_)) if got >= PROGRESS => {}
                        Some(trouble) => {
                            let rest = backoff.next_wait(trouble, self.terms)?;
                            resting.push(Instant::now() + rest);
                        }
                    }
                }
                () = self.disk.troubled() => {}
                () = sleep_until(rested.unwrap_or(now)), if rested.is_some() => {}
                _ = look.tick() => {
                    let now_received = self.disk.received();
                    if now_received > received {
                        received = now_received;
                        self.report.phase(Phase::Receiving);
                    }
                    self.report.received(now_received);
                    crew.look(now_received, busy.len());
                    busy.values_mut().for_each(Connection::look);
                }
            }
        }
    }

    fn spawn(
        &self,
        tasks: &mut JoinSet<Result<(), Trouble>>,
        busy: &mut HashMap<Id, Connection>,
        piece: Arc<Piece>,
        answer: Option<Answer>,
        retaken: bool,
    ) {
        let segment = Segment {
            source: self.source.clone(),
            known: self.known.clone(),
            rate: self.rate.clone(),
            blocks: self.disk.blocks(),
            piece: piece.clone(),
        };
        let abort = tasks.spawn(segment.fetch(answer));
        let (next, end) = piece.rest();
        let now = Instant::now();
        busy.insert(
            abort.id(),
            Connection {
                piece,
                abort,
                begun: now,
                bytes: end - next,
                moved: (now, next),
                retaken,
            },
        );
    }
}

impl Connection {
    fn look(&mut self) {
        let next = self.piece.rest().0;
        if next != self.moved.1 {
            self.moved = (Instant::now(), next);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn rate_of(bytes: u64, since: Instant) -> f64 {
    bytes as f64 / since.elapsed().as_secs_f64().max(1e-3)
}

/// Work for an idle connection from the one that needs help most.
fn relieve(busy: &mut HashMap<Id, Connection>) -> Option<(Arc<Piece>, bool)> {
    let needy = busy.iter().filter_map(|(id, connection)| {
        let (next, end) = connection.piece.rest();
        let rest = end - next;
        let done = connection.bytes.saturating_sub(rest);
        let relief = pieces::relief(BusyPiece {
            rest,
            bytes_per_second: rate_of(done, connection.begun),
            working: connection.begun.elapsed(),
            silent: connection.moved.0.elapsed(),
            retaken: connection.retaken,
        })?;
        Some((rest, *id, relief))
    });
    let (_, id, relief) = needy.max_by_key(|(rest, ..)| *rest)?;
    let connection = busy.get_mut(&id)?;
    let piece = pieces::relieve(&connection.piece, relief);
    connection.bytes -= piece.rest().1 - piece.rest().0;
    if relief == Relief::All {
        connection.abort.abort();
        busy.remove(&id);
    }
    Some((piece, relief == Relief::All))
}

/// How many connections there should be: more while that brings more, fewer where a server refuses.
struct Crew {
    size: usize,
    grows: bool,
    seen: (Instant, u64),
    rate: f64,
}

impl Crew {
    fn new(bytes: u64) -> Self {
        let pieces = usize::try_from(bytes / pieces::SMALLEST).unwrap_or(CONNECTIONS);
        Self {
            size: pieces.clamp(1, CONNECTIONS),
            grows: true,
            seen: (Instant::now(), 0),
            rate: 0.0,
        }
    }

    fn shrink(&mut self, working: usize) {
        self.size = working.max(1);
        self.grows = false;
    }

    fn look(&mut self, received: u64, working: usize) {
        let (since, before) = self.seen;
        if since.elapsed() < GROW_EVERY {
            return;
        }
        let rate = rate_of(received.saturating_sub(before), since);
        self.seen = (Instant::now(), received);
        // What idles does not show whether one more would help.
        if !self.grows || before == 0 || working < self.size {
            return;
        }
        if rate > self.rate * GROWTH && self.size < MOST_CONNECTIONS {
            self.rate = rate;
            self.size += 1;
        }
    }
}

struct Segment {
    source: Arc<Source>,
    known: Arc<FileProperties>,
    rate: RateLimit,
    blocks: mpsc::Sender<Block>,
    piece: Arc<Piece>,
}

impl Segment {
    async fn fetch(self, answer: Option<Answer>) -> Result<(), Trouble> {
        let mut answer = match answer {
            Some(answer) => answer,
            None => self.source.open(self.piece.rest(), &self.known).await?,
        };
        let host = crate::web::host_of(&answer.url);
        loop {
            let Some(bytes) = answer.chunk().await.map_err(Trouble::Passing)? else {
                let (next, end) = self.piece.rest();
                // A server may send less than requested; the rest is requested again.
                if next == end {
                    return Ok(());
                }
                let message = format!("{host} sent {} bytes too few", end - next);
                return Err(Trouble::Passing(Error::new(Code::Unreachable, message)));
            };
            if self.piece.rest().0 == 0 {
                head::check_page(&answer, &bytes)?;
            }
            self.rate.take(bytes.len()).await;
            // A closed writer has reported its error.
            let Ok(room) = self.blocks.reserve().await else {
                return Ok(());
            };
            // From here to `send` nothing waits: an aborted connection must not have claimed what it did not hand
            // over. Bytes behind the piece's end are another's, or more than was announced.
            let (at, length) = self.piece.claim(bytes.len());
            if length > 0 {
                room.send((at, bytes.slice(..length)));
            }
            let (next, end) = self.piece.rest();
            if next == end {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second in which so many bytes came, on all connections that there may be.
    async fn second(crew: &mut Crew, received: &mut u64, bytes: u64) -> usize {
        tokio::time::sleep(GROW_EVERY).await;
        *received += bytes;
        crew.look(*received, crew.size);
        crew.size
    }

    #[tokio::test(start_paused = true)]
    async fn connections_are_added_while_that_helps_up_to_eight() {
        let (mut crew, mut received) = (Crew::new(1 << 40), 0);
        let mut sizes = Vec::new();
        for seconds in 1..10 {
            sizes.push(second(&mut crew, &mut received, seconds << 20).await);
        }
        assert_eq!(sizes, [4, 5, 6, 7, 8, 8, 8, 8, 8]);

        let (mut crew, mut received) = (Crew::new(1 << 40), 0);
        for _ in 0..10 {
            second(&mut crew, &mut received, 1 << 20).await;
        }
        assert_eq!(crew.size, 5, "a fifth brought nothing");
        crew.shrink(2);
        assert_eq!(second(&mut crew, &mut received, 1 << 30).await, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_file_has_no_more_connections_than_pieces() {
        assert_eq!(Crew::new(pieces::SMALLEST / 2).size, 1);
        assert_eq!(Crew::new(2 * pieces::SMALLEST).size, 2);
    }
}
