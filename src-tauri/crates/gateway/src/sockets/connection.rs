//! One WebSocket: it answers its messages one after the other, and ends when its client is gone, silent or too fast.

use super::{
    Account, Slot, TurnSource,
    answer::{ContinuableResponse, Rendered, answer, error_message},
    metered::MeteredStream,
    turn::{Conversation, TurnMessage, add_items},
};
use futures_util::{SinkExt, StreamExt};
use std::{collections::VecDeque, convert::Infallible, future, time::Duration};
use tierbar_core::{Code, Error, bad_request};
use tierbar_dialects::openai::responses::PreviousResponse;
use tierbar_edge::keys::Weight;
use tierbar_inference::body::INFERENCE_LIMIT;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message, Utf8Bytes,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::Instrument;

/// How long a WebSocket may be open, as the specification has it.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often a client is asked whether it is there.
const PING: Duration = Duration::from_secs(20);
/// A client of which nothing arrives for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// Messages that may wait while one is answered.
const MOST_WAITING: usize = 16;
/// How long a client has to read why the connection ends.
const FAREWELL: Duration = Duration::from_secs(5);
/// In bytes.
const BUFFER: usize = 16 << 10;
/// Events that may wait for the client to read.
const EVENTS: usize = 8;

/// What the bytes of a control frame are beside its content: a client's has a mask.
const CONTROL_HEAD: usize = 6;

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The client is gone, or has said goodbye.
    Gone,
    /// With this code, once the client has been told why.
    Close(CloseCode, Error),
    /// The same, with a message that has not arrived whole.
    Unread(CloseCode, Error),
}

#[derive(Debug)]
pub(super) struct Connection<S> {
    socket: WebSocketStream<MeteredStream<S>>,
    account: Account,
    source: TurnSource,
    slot: Option<Slot>,
    closing: CancellationToken,
    kept: Option<Conversation>,
    /// Messages in their order, or why one is refused.
    waiting: VecDeque<Result<Utf8Bytes, Error>>,
    /// The client has sent more than may wait: what came after is dropped, and the connection ends once the others are answered.
    is_over: bool,
    /// By how many bytes the longest message has grown the buffer in which messages arrive: it stays as large, and charged.
    growth: usize,
    pings: Interval,
    ends_at: Instant,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) async fn new(
        stream: S,
        reading: Weight,
        account: Account,
        source: TurnSource,
        slot: Option<Slot>,
        closing: CancellationToken,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(BUFFER)
            .max_message_size(Some(INFERENCE_LIMIT))
            .max_frame_size(Some(INFERENCE_LIMIT));
        let stream = MeteredStream::new(stream, reading);
        let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
        let now = Instant::now();
        let mut pings = interval_at(now + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            socket,
            account,
            source,
            slot,
            closing,
            kept: None,
            waiting: VecDeque::new(),
            is_over: false,
            growth: 0,
            pings,
            ends_at: now + LONGEST,
        }
    }

    pub(super) async fn run(mut self) {
        let Err(end) = self.serve().await;
        tracing::debug!("a WebSocket ends: {end:?}");
        // What it held is of no more use.
        self.kept = None;
        self.waiting.clear();
        let _late = timeout(FAREWELL, self.farewell(end)).await;
    }

    async fn serve(&mut self) -> Result<Infallible, End> {
        loop {
            match self.next_message().await? {
                Ok(text) => self.turn(text).await?,
                Err(error) => self.send(error_message(&error)).await?,
            }
        }
    }

    /// Waits for a message, for as long as there may be one.
    async fn next_message(&mut self) -> Result<Result<Utf8Bytes, Error>, End> {
        loop {
            if self.closing.is_cancelled() {
                let error = Error::new(Code::ShuttingDown, "Tierbar is shutting down");
                return Err(End::Close(CloseCode::Away, error));
            }
            if Instant::now() >= self.ends_at {
                return Err(End::Close(CloseCode::Normal, too_old()));
            }
            if let Some(next) = self.waiting.pop_front() {
                return Ok(next);
            }
            if self.is_over {
                return Err(End::Close(CloseCode::Policy, too_many()));
            }
            if let Some(Slot(slot)) = &self.slot {
                slot.waits();
            }
            let (closing, slot, ends_at) = (self.closing.clone(), self.slot.clone(), self.ends_at);
            tokio::select! {
                biased;
                () = closing.cancelled() => {}
                () = sleep_until(ends_at) => {}
                () = given_up(slot.as_ref()) => return Err(End::Close(CloseCode::Again, given_away())),
                heard = self.listen() => heard?,
            }
        }
    }

    /// Waits until a message has arrived whole.
    async fn listen(&mut self) -> Result<(), End> {
        loop {
            tokio::select! {
                heard = self.socket.next() => {
                    if self.hear(heard).await? {
                        return Ok(());
                    }
                }
                _ = self.pings.tick() => {
                    if self.socket.get_ref().read_at.elapsed() >= SILENCE {
                        return Err(End::Gone);
                    }
                    let ping = self.socket.send(Message::Ping(Default::default()));
                    ping.await.map_err(|_| End::Gone)?;
                }
            }
        }
    }

    /// Takes in what has arrived. Returns whether it is a message.
    async fn hear(
        &mut self,
        heard: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<bool, End> {
        let message = match heard {
            None => return Err(End::Gone),
            Some(Err(error)) => return Err(End::from(error)),
            Some(Ok(Message::Close(_))) => {
                // The answer to it is on its way out.
                let _gone = self.socket.flush().await;
                return Err(End::Gone);
            }
            Some(Ok(Message::Ping(content) | Message::Pong(content))) => {
                let stream = self.socket.get_mut();
                stream.weight.shrink(content.len() + CONTROL_HEAD);
                return Ok(false);
            }
            Some(Ok(Message::Frame(_))) => return Ok(false),
            Some(Ok(Message::Text(text))) => Ok(text),
            Some(Ok(Message::Binary(content))) => {
                self.growth = self.growth.max(content.len().saturating_sub(BUFFER));
                let message = "the message is binary, and this WebSocket takes text";
                Err(bad_request(message).hint("send JSON in a text message"))
            }
        };
        self.is_over |= self.waiting.len() == MOST_WAITING;
        if self.is_over {
            drop(message);
            self.settle();
            return Ok(false);
        }
        self.waiting.push_back(message);
        self.settle();
        Ok(true)
    }

    /// Charges the messages that wait. Of one that is arriving, no more than a buffer is here when another has just ended.
    fn settle(&mut self) {
        let waiting = self.waiting.iter();
        let bytes = waiting.map(|message| message.as_ref().map_or(0, |text| text.len()));
        let bytes: usize = bytes.sum();
        self.socket.get_mut().weight.shrink_to(bytes + self.growth);
    }

    async fn turn(&mut self, text: Utf8Bytes) -> Result<(), End> {
        if let Some(Slot(slot)) = &self.slot {
            slot.answers();
        }
        let weight = self.account.weigh();
        let turn = TurnMessage::parse(&text, &mut self.kept, weight);
        let stays = text.len().saturating_sub(BUFFER + self.growth);
        self.growth += stays;
        self.socket.get_mut().weight.shrink(text.len() - stays);
        drop(text);
        let TurnMessage {
            body,
            continues,
            mut items,
            mut weight,
        } = match turn {
            Ok(turn) => turn,
            Err(error) => return self.send(error_message(&error)).await,
        };
        let mut request = self.source.request(body);
        if let Some(id) = continues {
            request.extensions_mut().insert(PreviousResponse(id));
        }
        let Some(ContinuableResponse { id, items: more }) = self.answer(request).await? else {
            return Ok(());
        };
        // Without room for it, the next turn is told that there is nothing to continue.
        if weight.grow(more.len()).is_ok() {
            add_items(&mut items, &more);
            self.kept = Some(Conversation {
                id,
                items,
                _weight: weight,
            });
        }
        Ok(())
    }

    /// Sends the answer to a request while it listens. A client that goes away cancels it.
    async fn answer(
        &mut self,
        request: axum::extract::Request,
    ) -> Result<Option<ContinuableResponse>, End> {
        let (messages, mut rendered) = mpsc::channel(EVENTS);
        let account = self.account.clone();
        let answering = answer(self.source.router.clone(), request, account, messages);
        let answering = AbortOnDropHandle::new(tokio::spawn(answering.in_current_span()));
        let slot = self.slot.clone();
        loop {
            tokio::select! {
                biased;
                // The server ends.
                () = given_up(slot.as_ref()) => return Err(End::Gone),
                message = rendered.recv() => match message {
                    Some(Rendered { text, weight }) => {
                        self.send(text).await?;
                        drop(weight);
                    }
                    None => break,
                },
                heard = self.listen() => heard?,
            }
        }
        match answering.await {
            Ok(answered) => Ok(answered),
            Err(ended) => {
                let message = format!("the request was not finished: {ended}");
                let error = Error::new(Code::Internal, message);
                self.send(error_message(&error)).await?;
                Ok(None)
            }
        }
    }

    async fn send(&mut self, text: String) -> Result<(), End> {
        let sent = self.socket.send(Message::text(text)).await;
        sent.map_err(|_| End::Gone)
    }

    async fn farewell(&mut self, end: End) {
        let (code, error, unread) = match end {
            End::Gone => return,
            End::Close(code, error) => (code, error, false),
            End::Unread(code, error) => (code, error, true),
        };
        if self.send(error_message(&error)).await.is_err() {
            return;
        }
        let frame = CloseFrame {
            code,
            reason: error.code.as_str().into(),
        };
        if self.socket.close(Some(frame)).await.is_err() {
            return;
        }
        let stream = self.socket.get_mut();
        stream.is_over = true;
        stream.weight.release();
        if unread {
            // A connection that ends with something unread is reset, and the client may lose the reason.
            let mut thrown_away = [0; 4096];
            while let Ok(1..) = stream.read(&mut thrown_away).await {}
        } else {
            while let Some(Ok(_)) = self.socket.next().await {}
        }
    }
}

impl From<tungstenite::Error> for End {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Capacity(_) => {
                let message = format!(
                    "the message is larger than {} MiB, which is the maximum",
                    INFERENCE_LIMIT >> 20
                );
                Self::Unread(CloseCode::Size, Error::new(Code::PayloadTooLarge, message))
            }
            tungstenite::Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            ) => Self::Gone,
            tungstenite::Error::Protocol(why) => {
                let message = format!("what arrived is not of the WebSocket protocol: {why}");
                Self::Unread(CloseCode::Protocol, bad_request(message))
            }
            tungstenite::Error::Utf8(why) => {
                let message = format!("the message is not UTF-8: {why}");
                Self::Unread(CloseCode::Invalid, bad_request(message))
            }
            tungstenite::Error::Io(error) => match error.downcast::<Error>() {
                Ok(full) => Self::Unread(CloseCode::Again, full),
                Err(_) => Self::Gone,
            },
            _ => Self::Gone,
        }
    }
}

async fn given_up(slot: Option<&Slot>) {
    match slot {
        Some(Slot(slot)) => slot.given_up().await,
        None => future::pending().await,
    }
}

fn too_many() -> Error {
    let message = format!(
        "more than {MOST_WAITING} messages waited on this connection: the later ones are not answered"
    );
    Error::new(Code::Overloaded, message)
        .hint("wait for an answer before the next message, or open more connections")
}

fn too_old() -> Error {
    let message = format!(
        "the WebSocket has been open for {} minutes, which is the maximum",
        LONGEST.as_secs() / 60
    );
    Error::new(Code::WebsocketConnectionLimitReached, message)
        .hint("open another one, and send the whole conversation in `input`")
}

fn given_away() -> Error {
    let message = "the server needs the connection for another client";
    Error::new(Code::Overloaded, message)
        .hint("open another one, and send the whole conversation in `input`")
}
