//! `POST /mcp`: Tierbar as an MCP server over streamable HTTP. A tool is a request that is sent through all the layers that a request
//! over HTTP passes, with the headers of the call, so that keys, sessions, limits, charges and metrics are the same.

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Request},
    response::Response,
};
use serde_json::Value;
use std::sync::Arc;
use tierbar_core::{Code, Error, json};
use tierbar_edge::origin::TlsMark;
use tierbar_http::{error::Failure, mount::Routes, routes};
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
    operation_id = "mcp",
    reach(Inference, Reads, Spends),
    request_body(content = Object, description = "A message of JSON-RPC 2.0, as the Model Context Protocol has it"),
    responses(
        (status = 200, description = "The answer", content(("text/event-stream"))),
        (status = 202, description = "A notification has been read"),
    ),
)]
async fn message(State(mcp): State<Arc<Mcp>>, request: Request<Body>) -> Result<Response, Failure> {
    let (head, body) = request.into_parts();
    let body = body::read_again(body).await?;
    if json::values_memory(&body) > json::MCP_MESSAGE_MEMORY {
        let message = format!(
            "the values of the message would take more than {} MiB of memory",
            json::MCP_MESSAGE_MEMORY >> 20
        );
        return Err(Error::new(Code::PayloadTooLarge, message).into());
    }
    let request = Request::from_parts(head, Body::from(body));
    // Those of the message that identify its sender and page. A tool's request is answered now or not at all.
    let mut headers = on_behalf(request.headers(), &OF_THE_MESSAGE, "mcp-");
    let now = HeaderValue::from_static("never");
    headers.insert(HeaderName::from_static("x-tierbar-queue"), now);
    let calls = Calls {
        router: mcp.requests.clone(),
        headers,
        over_tls: request.extensions().get::<TlsMark>().copied(),
    };
    let closing = mcp.closing.clone();
    let answer = tierbar_mcp_server::answer(calls, request, INFERENCE_LIMIT, closing).await;
    Ok(answer.map(Body::new))
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

/// Sends the requests of one message's tool.
#[derive(Debug)]
struct Calls {
    router: Router,
    headers: HeaderMap,
    over_tls: Option<TlsMark>,
}

impl Calls {
    fn request(&self, path: &str, body: Option<&Value>) -> Result<Request<Body>, Error> {
        let request = match body {
            Some(body) => Request::post(path).body(body.to_string().into()),
            None => Request::get(path).body(Body::empty()),
        };
        let mut request = request.map_err(|error| Error::new(Code::Internal, error.to_string()))?;
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
        let Ok(response) = self.router.clone().oneshot(request).await;
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
