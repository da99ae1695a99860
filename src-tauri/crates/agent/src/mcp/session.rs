//! A connection with one server, kept while its tools are in use.

use crate::mcp::{
    Failure,
    http::HttpClient,
    messages::{UNREADABLE, Unread},
    program::{Program, ProgramEnd, StartedProgram},
    tools::{Listing, MOST_LISTED, MOST_MEMORY, text_of},
};
use reqwest::redirect::Policy;
use rmcp::{
    ClientCacheConfig, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest,
        CustomResult, ErrorCode, Implementation, ListToolsRequest, PaginatedRequestParams,
        ServerResult,
    },
    serve_client,
    service::{ClientInitializeError, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{error::Error, sync::Arc, time::Duration};
use tierbar_core::own_lack;
use tierbar_fetch::root_cause;
use tokio::time::timeout;

/// Programs such as `npx` download themselves first.
const OPEN: Duration = Duration::from_secs(60);
const LIST: Duration = Duration::from_secs(20);
/// As long as a command may take.
const CALL: Duration = Duration::from_secs(120);
/// The longest message from an address, in bytes, which is parsed before its values can be counted.
const ANSWER_BYTES: usize = 256 << 10;
const CONNECT: Duration = Duration::from_secs(10);
/// Of a server's own words in an error, in characters.
const WORDS: usize = 2_000;

/// Where a server is.
#[derive(Debug)]
pub enum Place {
    Program(Program),
    /// With a key, which goes there and nowhere else.
    Address {
        url: String,
        key: Option<SecretString>,
    },
}

/// A part of a server's list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    tools: Vec<Value>,
    next_cursor: Option<String>,
}

/// An open connection. Dropping it ends it, and its program.
#[derive(Debug)]
pub struct Session {
    service: RunningService<RoleClient, ClientConfig>,
    unread: Arc<Unread>,
    /// Of a program.
    ending: Option<ProgramEnd>,
}

impl Session {
    /// Starts a program, or connects to an address.
    ///
    /// # Errors
    /// [`Failure`], if it does not run, answer or speak the protocol.
    pub async fn open(place: Place) -> Result<Self, Failure> {
        match place {
            Place::Program(program) => {
                let StartedProgram { messages, end } = program.start().await?;
                let unread = Arc::clone(&end.unread);
                Self::serve(serve_client(client_config(), messages), unread, Some(end)).await
            }
            Place::Address { url, key } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url)
                    .max_sse_event_size(ANSWER_BYTES)
                    .max_json_response_size(ANSWER_BYTES);
                if let Some(key) = key {
                    config = config.auth_header(key.expose_secret());
                }
                let http = tierbar_fetch::client()
                    .user_agent(concat!("Tierbar/", env!("CARGO_PKG_VERSION")))
                    .connect_timeout(CONNECT)
                    // Arguments and the key go to the server that was added.
                    .redirect(Policy::none())
                    .build()
                    .map_err(|error| Failure::Unreachable(shorten(&root_cause(&error))))?;
                let unread = Arc::<Unread>::default();
                let http = HttpClient::new(http, Arc::clone(&unread));
                let transport = StreamableHttpClientTransport::with_client(http, config);
                Self::serve(serve_client(client_config(), transport), unread, None).await
            }
        }
    }

    async fn serve(
        opening: impl Future<
            Output = Result<RunningService<RoleClient, ClientConfig>, ClientInitializeError>,
        >,
        unread: Arc<Unread>,
        ending: Option<ProgramEnd>,
    ) -> Result<Self, Failure> {
        match timeout(OPEN, opening).await {
            Ok(Ok(service)) => {
                // How long its tools stay as they are is not the server's to say.
                let peer = service.peer();
                peer.set_response_cache_config(ClientCacheConfig::disabled())
                    .await;
                Ok(Self {
                    service,
                    unread,
                    ending,
                })
            }
            Ok(Err(error)) => Err(not_opened(error, ending.as_ref()).await),
            Err(_) => Err(unread.silence(OPEN)),
        }
    }

    /// The tools, as the server lists them now.
    ///
    /// # Errors
    /// [`Failure`], also for a server that lists too many.
    pub async fn tools(&self) -> Result<Listing, Failure> {
        let listed = timeout(LIST, self.pages()).await;
        listed.unwrap_or_else(|_| Err(self.unread.silence(LIST)))
    }

    async fn pages(&self) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        let (mut listed, mut memory) = (0, 0);
        let mut cursor = None;
        // Each page counts as a tool at least, so that a server without an end reaches the limit.
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.page(params).await?;
            listed += page.tools.len().max(1);
            if listed > MOST_LISTED {
                return Err(Failure::TooMany);
            }
            for tool in page.tools {
                memory += listing.add(tool);
                if memory > MOST_MEMORY {
                    return Err(Failure::TooMuch);
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(listing);
            }
        }
    }

    /// One tool that is not as it should be makes the whole page a result of an unknown kind.
    async fn page(&self, params: PaginatedRequestParams) -> Result<Page, Failure> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = match self.service.peer().send_request(request).await {
            Ok(ServerResult::ListToolsResult(page)) => serde_json::to_value(page),
            Ok(ServerResult::CustomResult(CustomResult(page))) => Ok(page),
            Ok(_) => Ok(Value::Null),
            Err(error) => return Err(self.why(error).await),
        };
        let page = page.and_then(Page::deserialize);
        page.map_err(|_| Failure::Protocol("it does not list its tools".to_owned()))
    }

    /// Uses a tool, if it is still defined as it was when its use was allowed. Returns what a model reads.
    ///
    /// # Errors
    /// [`Failure`], with the server's own words if the tool has failed.
    pub async fn call(
        &self,
        name: &str,
        definition: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, Failure> {
        let tools = self.tools().await?;
        let tool = tools.tools.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| Failure::Gone(name.to_owned()))?;
        if tool.definition != definition {
            return Err(Failure::Changed(name.to_owned()));
        }
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        let call = self.service.peer().call_tool_once(params);
        let answer = match timeout(CALL, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(self.why(error).await),
            Err(_) => return Err(self.unread.silence(CALL)),
        };
        match answer {
            CallToolResponse::Complete(result) => {
                let text = text_of(&result);
                if result.is_error == Some(true) {
                    return Err(Failure::Reported(shorten(&text)));
                }
                Ok(text)
            }
            _ => Err(Failure::WantsInput),
        }
    }

    async fn why(&self, error: ServiceError) -> Failure {
        if error.is_authorization_required() {
            return Failure::KeyWanted;
        }
        match (error, &self.ending) {
            (ServiceError::McpError(error), _) => reported(&error),
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), Some(ending)) => {
                ending.why().await
            }
            (ServiceError::TransportClosed, None) => Failure::Ended(String::new()),
            (ServiceError::TransportSend(error), None) => unreachable(error.error.as_ref()),
            (error, _) => Failure::Protocol(shorten(&error.to_string())),
        }
    }
}

/// What is said of ourselves: no capabilities, so that no server asks for the model, folders or the person.
fn client_config() -> ClientConfig {
    let name = Implementation::new("tierbar", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), name)
}

async fn not_opened(error: ClientInitializeError, ending: Option<&ProgramEnd>) -> Failure {
    if error.is_authorization_required() {
        return Failure::KeyWanted;
    }
    match (error, ending) {
        (
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. },
            Some(ending),
        ) => ending.why().await,
        (ClientInitializeError::TransportError { error, .. }, None) => {
            unreachable(error.error.as_ref())
        }
        (ClientInitializeError::ConnectionClosed(_), None) => Failure::Ended(String::new()),
        (ClientInitializeError::JsonRpcError(error), _) => reported(&error),
        (error, _) => Failure::Protocol(shorten(&error.to_string())),
    }
}

/// An error in the server's words, or that of an answer that could not be read.
fn reported(error: &ErrorData) -> Failure {
    let words = shorten(&error.message);
    // A server may use the code for what it could not read itself.
    if error.code == ErrorCode::PARSE_ERROR && words.starts_with(UNREADABLE) {
        return Failure::Protocol(words);
    }
    Failure::Reported(words)
}

fn unreachable(error: &(dyn Error + 'static)) -> Failure {
    if let Some(lack) = own_lack(error) {
        return Failure::Lack(lack);
    }
    let why = shorten(&root_cause(error));
    // A server that does not say in a header how it wants the key.
    if ["HTTP 401", "HTTP 403"]
        .iter()
        .any(|status| why.contains(status))
    {
        return Failure::KeyWanted;
    }
    Failure::Unreachable(why)
}

fn shorten(words: &str) -> String {
    words.trim().chars().take(WORDS).collect()
}

#[cfg(test)]
mod tests;
