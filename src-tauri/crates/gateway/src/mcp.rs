//! `POST /mcp`: Tierbar as an MCP server over streamable HTTP. A tool is a request that is sent through all the layers that a request
//! over HTTP passes, with the headers of the call, so that keys, sessions, limits, charges and metrics are the same.

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri},
    response::Response,
};
use serde_json::Value;
use std::sync::Arc;
use tierbar_core::{Code, Error, json};
use tierbar_edge::origin::TlsMark;
use tierbar_http::{mount::Routes, routes, schema::Errors};
use tierbar_inference::{
    body::{self, INFERENCE_LIMIT},
    headers::on_behalf,
};
use tierbar_mcp_server::Api;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// What tools are answered from.
#[derive(Debug)]
pub(crate) struct Mcp {
    /// The API with all layers.
    pub(crate) requests: Router,
    pub(crate) closing: CancellationToken,
}

pub(crate) fn routes() -> Routes<Arc<Mcp>> {
    Routes::default().routes(routes!(message))
}

/// Answers a message of an MCP client, over streamable HTTP without sessions. The tools for documents need the token.
#[utoipa::path(
    post,
    path = "/mcp",
    tag = "tools",
    operation_id = "mcp",
    reach(Inference, Reads, Spends),
    request_body(content = Object, description = "A message of JSON-RPC 2.0, as the Model Context Protocol has it"),
    responses(
        (status = 200, description = "The answer", content(("text/event-stream"))),
        (status = 202, description = "A notification has been read"),
        Errors,
    ),
)]
async fn message(State(mcp): State<Arc<Mcp>>, request: Request<Body>) -> Response {
    let calls = Calls {
        router: mcp.requests.clone(),
        headers: call_headers(request.headers()),
        over_tls: request.extensions().get::<TlsMark>().copied(),
    };
    let closing = mcp.closing.clone();
    let answer = tierbar_mcp_server::answer(calls, request, INFERENCE_LIMIT, closing).await;
    answer.map(Body::new)
}

/// Headers that are about the message and not about its sender.
const OF_THE_MESSAGE: [&str; 8] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "transfer-encoding",
    "upgrade",
];

/// The headers of a tool's request: those of the message that identify its sender and page. It is answered now or not at all.
fn call_headers(headers: &HeaderMap) -> HeaderMap {
    let mut kept = on_behalf(headers, &OF_THE_MESSAGE, "mcp-");
    let now = HeaderValue::from_static("never");
    kept.insert(HeaderName::from_static("x-tierbar-queue"), now);
    kept
}

/// Sends the requests of one message's tool.
#[derive(Debug)]
struct Calls {
    router: Router,
    headers: HeaderMap,
    over_tls: Option<TlsMark>,
}

impl Calls {
    fn request(&self, path: &str, body: Option<&Value>) -> Result<Request<Body>, Error> {
        let uri = path.parse::<Uri>();
        let uri = uri.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        let mut request =
            Request::new(body.map_or_else(Body::empty, |body| body.to_string().into()));
        *request.method_mut() = match body {
            Some(_) => Method::POST,
            None => Method::GET,
        };
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        if let Some(over_tls) = self.over_tls {
            request.extensions_mut().insert(over_tls);
        }
        Ok(request)
    }
}

impl Api for Calls {
    async fn send(&self, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let request = self.request(path, body)?;
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let answer = body::read_again(response.into_body()).await?;
        let answer: Value = json::read(&answer).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        Err(Error::from_openai_body(&answer).unwrap_or_else(|| {
            let message = format!("Tierbar returned {status} without an error message");
            Error::new(Code::Internal, message)
        }))
    }
}

#[cfg(test)]
mod tests;
