//! The Responses API over a WebSocket. Each message of the client is sent as a `POST /v1/responses` through all the layers that a
//! request over HTTP passes, so that keys, limits, charges, pauses, ids and metrics are the same; its events are the messages back.
//!
//! Specification: Open Responses, version 2026-04-24, "WebSocket Transport".

mod answer;
mod connection;
mod metered;
mod turn;

use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Request},
    response::Response,
};
use connection::Connection;
use hyper_util::rt::TokioIo;
use std::{fmt, sync::Arc};
use tierbar_core::{Error, bad_request, lease::BoxFuture};
use tierbar_dialects::openai::responses::RESPONSES;
use tierbar_edge::{
    keys::{Key, Keys, Sender, Weight},
    origin::TlsMark,
};
use tierbar_http::{error::Failure, mount::Routes, routes};
use tierbar_inference::headers::{REQUEST_ID, on_behalf};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The place of a connection among those that the server holds.
pub trait ConnectionSlot: fmt::Debug + Send + Sync {
    /// Marks the connection as waiting for its client. If other clients need places, those that wait longest lose theirs.
    fn waits(&self);

    /// Marks the connection's request as complete.
    fn answers(&self);

    /// Waits until the place is lost.
    fn given_up(&self) -> BoxFuture<'_, ()>;
}

/// On a request: its connection's place, for a connection that outlives the request. The connection lasts while this is held.
#[derive(Debug, Clone)]
pub struct Slot(pub Arc<dyn ConnectionSlot>);

/// What WebSockets are served with.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// The Responses API with all layers.
    pub(crate) requests: Router,
    pub(crate) keys: Arc<Keys>,
    pub(crate) closing: CancellationToken,
}

pub(crate) fn routes() -> Routes<Arc<Sockets>> {
    Routes::default().routes(routes!(open))
}

/// Opens a WebSocket for responses. Each message `response.create` has the fields of `POST /v1/responses`, and is answered with the
/// same events.
#[utoipa::path(
    get,
    path = RESPONSES,
    operation_id = "respondOverWebSocket",
    reach(Inference, Spends),
    responses((status = 101, description = "The connection is a WebSocket")),
)]
async fn open(
    State(sockets): State<Arc<Sockets>>,
    Extension(sender): Extension<Sender>,
    mut request: Request<Body>,
) -> Result<Response, Failure> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (headers, extensions) = (request.headers(), request.extensions());
    let slot = extensions.get::<Slot>().cloned();
    let source = TurnSource {
        router: sockets.requests.clone(),
        headers: on_behalf(headers, &OF_THE_CONNECTION, "sec-websocket-"),
        over_tls: extensions.get::<TlsMark>().copied(),
        id: headers.get(&REQUEST_ID).cloned(),
        count: 0,
    };
    let accepted = create_response_with_body(&request, Body::empty).map_err(|why| {
        let message = format!("GET {RESPONSES} opens a WebSocket: {why}");
        bad_request(message).hint(format!("for a response over HTTP, send POST {RESPONSES}"))
    })?;
    let account = Account::of(&sockets.keys, &sender)?;
    let reading = account.weigh();
    let closing = sockets.closing.clone();
    let serving = async move {
        match upgrade.await {
            Ok(upgraded) => {
                let stream = TokioIo::new(upgraded);
                let connection = Connection::new(stream, reading, account, source, slot, closing);
                connection.await.run().await;
            }
            Err(error) => tracing::debug!("a connection did not become a WebSocket: {error}"),
        }
    };
    tokio::spawn(serving.in_current_span());
    Ok(accepted)
}

/// Headers that are about the connection or its first request, and `x-tierbar-queue`, since a turn is answered now or not at all.
const OF_THE_CONNECTION: [&str; 7] = [
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
    "x-tierbar-queue",
];

/// Whose memory a connection takes.
#[derive(Debug, Clone)]
struct Account {
    keys: Arc<Keys>,
    /// As it was when the connection was opened: an answer that runs outlives its key.
    key: Option<Arc<Key>>,
    is_owner: bool,
}

impl Account {
    fn of(keys: &Arc<Keys>, sender: &Sender) -> Result<Self, Error> {
        let key = match sender {
            Sender::Key(id) => Some(keys.of_id(id)?),
            Sender::Owner | Sender::Program => None,
        };
        Ok(Self {
            keys: Arc::clone(keys),
            key,
            is_owner: matches!(sender, Sender::Owner),
        })
    }

    fn weigh(&self) -> Weight {
        let weight = self.keys.weigh(self.key.clone());
        if self.is_owner {
            weight.of_the_owner()
        } else {
            weight
        }
    }
}

/// Makes requests of messages.
#[derive(Debug)]
struct TurnSource {
    router: Router,
    /// The connection's, which identify the client, the tier and the page.
    headers: HeaderMap,
    over_tls: Option<TlsMark>,
    /// Of the request that opened the connection. Turns have the same with a number.
    id: Option<HeaderValue>,
    count: u32,
}

impl TurnSource {
    fn request(&mut self, body: String) -> Request<Body> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = axum::http::Method::POST;
        *request.uri_mut() = axum::http::Uri::from_static(RESPONSES);
        *request.headers_mut() = self.headers.clone();
        self.count += 1;
        let id = self.id.as_ref().and_then(|id| id.to_str().ok());
        let id = id.map(|id| HeaderValue::try_from(format!("{id}-{}", self.count)));
        if let Some(Ok(id)) = id {
            request.headers_mut().insert(REQUEST_ID.clone(), id);
        }
        if let Some(over_tls) = self.over_tls {
            request.extensions_mut().insert(over_tls);
        }
        request
    }
}

#[cfg(test)]
mod tests;
