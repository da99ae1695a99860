//! A turn in which the model acts. `tierbar_agent::agent` decides what is next; here it gets its model, its tools and its person.

mod shelf;

use super::{Ending, Inference, Prompt, STORED_EVERY, Writing, pace::Pace, shutting_down};
use crate::{
    blocking::blocking,
    inference::{
        ask::{Event, ToolCall},
        caller::Caller,
        request::Request,
    },
    jobs::{
        Jobs,
        mcp::Servers,
        turns::grants::{KeptGrants, now},
    },
    services::SandboxPlace,
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::{Value, json};
use shelf::Shelf;
use std::{sync::Arc, time::Instant};
use tierbar_agent::{
    agent::{
        Agent, Ask, Bounds, Failed, Finish as End, Found, Input, Misplaced, Moment, Output, Reply,
        Task, Way,
    },
    calls::{Call, Surroundings, Wanted},
    consent::{Act, General, Grants, Permitted},
    sandbox::{Limits, Stop},
    tools::{
        Workplace,
        shell::Terms,
        web::{Page, Provider, read_page},
    },
};
use tierbar_core::{
    Code, Config, Error, ModelKind,
    chat::{
        Finish, Part, TurnEvent,
        agent::{
            AgentOptions, AgentTier, AgentWay, ConsentAnswer, ConsentQuestion, measured_way,
            result_part, way_of,
        },
    },
    config::McpServerConfig,
    home::from_home,
    nearest::suggest,
};
use tierbar_documents::charset::{self, Decoded};
use tierbar_fetch::{Get, Url, Web, WebOptions};
use tierbar_secrets::{Name, Secrets};
use tokio::{
    sync::{mpsc, oneshot},
    time::{MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The longest page that is read, in bytes.
const PAGE_BYTES: usize = 4 << 20;
/// How many of a page's links the model reads.
const LINKS: usize = 30;
/// As much of a result is kept in the message, in characters. The model may have read more.
const KEPT_CHARACTERS: usize = 16_000;

/// What a turn acts with.
pub(in crate::jobs::turns) struct Acting {
    options: AgentOptions,
    chat: String,
    place: Option<Arc<Workplace>>,
    provider: Option<Provider>,
    /// The provider's key, if it needs one.
    key: Option<SecretString>,
    web: Option<Web>,
    shelf: Option<Shelf>,
    /// The MCP servers that it may use, and those that are connected.
    wanted: Vec<(String, McpServerConfig)>,
    servers: Servers,
    /// What was allowed beyond once, in all chats.
    grants: Arc<KeptGrants>,
    /// Whether a person can be asked.
    is_attended: bool,
}

impl Acting {
    /// Opens what the options name.
    ///
    /// # Errors
    /// `BadRequest` for a folder, a provider, a collection or a server that cannot be used; `Internal` if there is no sandbox.
    pub(in crate::jobs::turns) async fn prepare(
        options: AgentOptions,
        chat: &str,
        jobs: &Arc<Jobs>,
    ) -> Result<Self, Error> {
        let place = match &options.folder {
            Some(folder) => Some(Arc::new(open_folder(folder, jobs).await?)),
            None => None,
        };
        let provider = options.search.as_deref().map(provider).transpose()?;
        let key = match provider {
            Some(Provider::Brave) => Some(brave_key(&jobs.inference.secrets).await?),
            _ => None,
        };
        let web = (provider.is_some() || options.pages)
            .then(|| Web::new(WebOptions::default()))
            .transpose()?;
        let shelf = match &options.documents {
            Some(documents) => Shelf::open(documents, jobs).await?,
            None => None,
        };
        let wanted = match options.way {
            AgentWay::Calls | AgentWay::Auto => wanted(
                options.servers.as_deref(),
                &jobs.inference.services.config(),
            )?,
            AgentWay::Text => Vec::new(),
        };
        jobs.turns.grants.load(&jobs.store).await?;
        Ok(Self {
            chat: chat.to_owned(),
            place,
            provider,
            key,
            web,
            shelf,
            wanted,
            servers: Servers::default(),
            grants: Arc::clone(&jobs.turns.grants),
            is_attended: true,
            options,
        })
    }

    /// Nobody can be asked: what would ask is refused.
    pub(in crate::jobs::turns) fn unattended(self) -> Self {
        Self {
            is_attended: false,
            ..self
        }
    }

    fn task(&self, question: String, way: AgentWay) -> Task {
        let allow = self.options.allow;
        Task {
            question,
            chat: self.chat.clone(),
            way: match way {
                AgentWay::Auto | AgentWay::Calls => Way::Calls,
                AgentWay::Text => Way::Text { grammar: true },
            },
            surroundings: Surroundings {
                folder: self.place.as_ref().map(|place| place.path().to_owned()),
                provider: self.provider.as_ref().map(Provider::name),
                pages: self.options.pages,
                documents: self.shelf.as_ref().map(|shelf| shelf.collections().clone()),
                external: self.servers.tools(),
            },
            general: General {
                reading: allow.reading,
                search: allow.search,
                known_pages: allow.known_pages,
            },
            grants: Grants::new(self.grants.list.lock().clone(), &self.chat),
            bounds: Bounds::default(),
        }
    }

    async fn search(&self, words: &str) -> Result<Found, String> {
        let (Some(web), Some(provider)) = (&self.web, &self.provider) else {
            return Err("there is no search provider".to_owned());
        };
        let request = provider.request(words).map_err(|failure| failure.0)?;
        let mut get = Get::new(request.url);
        if request.key_header.is_some() {
            get.token.clone_from(&self.key);
            get.token_header = request.key_header;
        }
        let answer = web.get(get).await;
        let answer = answer.map_err(|error| error.message)?;
        let bytes = answer.bytes(PAGE_BYTES).await;
        let bytes = bytes.map_err(|error| error.message)?;
        let text = String::from_utf8_lossy(&bytes);
        let hits = provider.hits(&text).map_err(|failure| failure.0)?;
        let lines = hits.iter().enumerate().map(|(at, hit)| {
            let address = hit.address.url();
            format!("{}. {}\n{address}\n{}", at + 1, hit.title, hit.excerpt)
        });
        let text = lines.collect::<Vec<_>>().join("\n\n");
        Ok(Found {
            text: if text.is_empty() {
                "nothing was found".to_owned()
            } else {
                text
            },
            addresses: hits.into_iter().map(|hit| hit.address).collect(),
            failed: false,
        })
    }

    async fn page(&self, url: &Url) -> Result<Found, String> {
        let web = self.web.as_ref().ok_or("pages cannot be opened")?;
        let answer = web.get_public(Get::new(url.clone())).await;
        let answer = answer.map_err(|error| error.message)?;
        let kind = answer.content_type.clone().unwrap_or_default();
        let is_html = kind.contains("html");
        let is_text = ["text/", "json", "xml"]
            .iter()
            .any(|word| kind.contains(word));
        if !kind.is_empty() && !is_html && !is_text {
            return Err(format!("this is no page but {kind}"));
        }
        let came_from = answer.url.clone();
        let bytes = answer.bytes(PAGE_BYTES).await;
        let bytes = bytes.map_err(|error| error.message)?;
        // A large page takes as long as a large file.
        let read = tokio::task::spawn_blocking(move || {
            let is_html = is_html || kind.is_empty();
            let declared = charset::declared_by(&kind);
            let Decoded { text, doubt } = charset::decode(&bytes, declared.as_deref(), is_html)?;
            let text = if is_html {
                page_text(&read_page(&text, &came_from))
            } else {
                text
            };
            Some(doubt.map_or_else(String::new, |doubt| doubt + "\n\n") + &text)
        });
        let read = read.await.map_err(|ended| ended.to_string())?;
        let text = read.ok_or("this page holds no text")?;
        Ok(Found::text(text))
    }
}

/// Opens the folder of an agent, which may begin with `~/`.
///
/// # Errors
/// `BadRequest` for one that is not there, is relative, or would show what is protected; `Internal` if there is no sandbox.
pub(in crate::jobs::turns) async fn open_folder(
    folder: &str,
    jobs: &Jobs,
) -> Result<Workplace, Error> {
    let path = from_home(folder, std::env::home_dir());
    if !path.is_absolute() {
        let message = format!("\"{folder}\" is not an absolute path");
        return Err(Error::new(Code::BadRequest, message)
            .hint("begin the path of the agent's folder with / or ~/"));
    }
    let SandboxPlace {
        launcher,
        protected,
        own_ports,
    } = jobs.inference.services.sandbox()?;
    let terms = Terms {
        limits: Limits::default(),
        protected,
        own_ports,
    };
    let opened = blocking("opening the agent's folder", move || {
        if matches!(path.try_exists(), Ok(false)) {
            let message = format!("there is no folder {}", path.display());
            let error = Error::new(Code::BadRequest, message);
            return Err(error.hint("create it, or enter another path"));
        }
        let place = Workplace::open(&path, terms, launcher);
        place.map_err(|failure| Error::new(Code::BadRequest, failure.0))
    });
    opened.await
}

/// The MCP servers that a turn may use, of those that are configured.
fn wanted(
    names: Option<&[String]>,
    config: &Config,
) -> Result<Vec<(String, McpServerConfig)>, Error> {
    let pair = |(name, server): (&String, &McpServerConfig)| (name.clone(), server.clone());
    let Some(names) = names else {
        let enabled = config.mcp.iter().filter(|(_, server)| server.enabled);
        return Ok(enabled.map(pair).collect());
    };
    let found = names.iter().map(|name| {
        let server = config.mcp.get_key_value(name).map(pair);
        server.ok_or_else(|| {
            let known = config.mcp.keys().map(String::as_str);
            let hint = suggest(name, known, "`tierbar mcp-servers list` lists them");
            let message = format!("there is no MCP server \"{name}\"");
            Error::new(Code::BadRequest, message).hint(hint)
        })
    });
    found.collect()
}

/// What the model reads of a page.
fn page_text(page: &Page) -> String {
    let mut text = format!("{}\n\n{}", page.title, page.text);
    if !page.links.is_empty() {
        text.push_str("\n\nLinks:");
        for link in page.links.iter().take(LINKS) {
            text.push_str(&format!("\n{}: {}", link.text, link.url));
        }
    }
    text
}

fn provider(name: &str) -> Result<Provider, Error> {
    match name {
        "duckduckgo" => return Ok(Provider::DuckDuckGo),
        "brave" => return Ok(Provider::Brave),
        _ => {}
    }
    let url = Url::parse(name).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    url.map(Provider::SearXng).ok_or_else(|| {
        let message = format!("\"{name}\" is no search provider");
        Error::new(Code::BadRequest, message)
            .hint("write \"duckduckgo\", \"brave\", or the address of a SearXNG")
    })
}

/// The key of Brave's search.
///
/// # Errors
/// `BadRequest` if there is none; `Storage` if the secrets cannot be read.
async fn brave_key(secrets: &Secrets) -> Result<SecretString, Error> {
    let secrets = secrets.clone();
    let key = blocking("the key of Brave's search", move || {
        secrets.get(&Name::BraveSearch)
    });
    key.await?.ok_or_else(|| {
        let message = "Brave's search needs a key, and none is saved";
        Error::new(Code::BadRequest, message)
            .hint("save it in Settings, or with: tierbar secret set brave-search")
    })
}

type Delivered = (ConsentAnswer, oneshot::Sender<Result<(), Error>>);

/// The way from a person's answer to the agent that waits for it.
#[derive(Debug, Default)]
pub(in crate::jobs::turns) struct Consents(Mutex<Option<mpsc::Sender<Delivered>>>);

impl Consents {
    fn open(&self) -> mpsc::Receiver<Delivered> {
        let (sender, receiver) = mpsc::channel(1);
        *self.0.lock() = Some(sender);
        receiver
    }

    fn close(&self) {
        *self.0.lock() = None;
    }

    /// Answers the open question.
    ///
    /// # Errors
    /// `Conflict` if no question is open, or another one; `BadRequest` for a scope that it does not offer.
    pub(in crate::jobs::turns) async fn answer(&self, answer: ConsentAnswer) -> Result<(), Error> {
        let not_open = || {
            let error = Error::new(Code::Conflict, "this turn has no open question");
            error.hint("follow the turn's events; it may have been answered already")
        };
        let sender = self.0.lock().clone();
        let sender = sender.ok_or_else(not_open)?;
        let (reply, replied) = oneshot::channel();
        let sent = sender.send((answer, reply)).await;
        sent.map_err(|_| not_open())?;
        replied.await.map_err(|_| not_open())?
    }
}

fn misplaced(error: &Misplaced) -> Error {
    match error {
        Misplaced::Answer(invalid) => Error::new(Code::BadRequest, invalid.to_string())
            .hint("answer the last question of the turn's events, in one of its scopes"),
        Misplaced::NotOpen => Error::new(Code::Conflict, error.to_string()),
    }
}

/// A step's tool and its arguments, as the message keeps them.
fn described(act: &Act) -> (&'static str, Value) {
    match act {
        Act::Command { line, network, .. } => {
            ("run_command", json!({"command": line, "network": network}))
        }
        Act::Read { path, .. } => ("read_file", json!({"path": path})),
        Act::Write { change, .. } => (
            "write_file",
            json!({"path": change.path, "diff": change.diff}),
        ),
        Act::Search { words, .. } => ("search_web", json!({"query": words})),
        Act::Page { address, .. } => ("read_page", json!({"url": address})),
        Act::Documents { words, .. } => ("search_documents", json!({"query": words})),
        Act::Tool {
            server,
            name,
            arguments,
            ..
        } => (
            "tool",
            json!({"server": server, "name": name, "arguments": arguments}),
        ),
    }
}

/// The agent with the random texts of each step.
struct Stepping {
    agent: Agent,
    grants: Arc<KeptGrants>,
}

impl Stepping {
    fn step(&mut self, input: Input) -> Result<Output, Misplaced> {
        let (nonce, id) = (Uuid::new_v4().simple().to_string(), Uuid::new_v4());
        let moment = Moment {
            now: now(),
            nonce: &nonce,
            id: &id.to_string(),
        };
        // Held for the whole step, so that what is revoked neither counts in it nor comes back with it.
        let mut kept = self.grants.list.lock();
        self.agent.set_grants(kept.clone());
        let stepped = self.agent.step(input, moment);
        let grants = self.agent.grants().list();
        if grants != kept.as_slice() {
            *kept = grants.to_vec();
        }
        stepped
    }
}

impl Writing {
    /// Runs the agent to its answer.
    pub(super) async fn act(
        &mut self,
        inference: &Arc<Inference>,
        prompt: &Prompt,
        mut acting: Acting,
    ) -> Ending {
        let (earlier, question) = prompt.before_question();
        let way = match acting.options.way {
            AgentWay::Auto => {
                let thinks = prompt.options.get("think").and_then(Value::as_bool);
                way_by_model(inference, &prompt.model, thinks).await
            }
            chosen => chosen,
        };
        // A word and a line have no room for the arguments of a server's tool.
        if way == AgentWay::Calls
            && let Err(ending) = self.connect(inference, &mut acting).await
        {
            return ending;
        }
        let mut stepping = Stepping {
            agent: Agent::new(acting.task(question, way)),
            grants: Arc::clone(&acting.grants),
        };
        // What has answered first goes on: one turn never loads a second model.
        let mut model = prompt.model.clone();
        let mut next = stepping.step(Input::Begin);
        loop {
            for Failed {
                tool,
                arguments,
                why,
            } in stepping.agent.take_failed()
            {
                let id = self.begin_step(&tool, &arguments);
                self.end_step(id, why, true);
            }
            let output = match next {
                Ok(output) => output,
                Err(error) => {
                    let message = format!("the agent lost its place: {error}");
                    return Ending::Failed(Error::new(Code::Internal, message));
                }
            };
            let done = match output {
                Output::Ask(ask) => {
                    let reply = self.reply(inference, prompt, &earlier, &model, &ask).await;
                    if let Some(tier) = &self.facts.tier {
                        model.clone_from(tier);
                    }
                    reply.map(Input::Reply)
                }
                Output::Prepare(wanted) => prepared(&acting, wanted).await,
                Output::Consent(question) if !acting.is_attended => {
                    let refusal = ConsentAnswer {
                        id: question.id.clone(),
                        allow: None,
                    };
                    self.turn.log.push(TurnEvent::Consent { question });
                    self.turn.log.push(TurnEvent::ConsentAnswered {
                        id: refusal.id.clone(),
                        allow: None,
                    });
                    next = stepping.step(Input::Answer(refusal));
                    continue;
                }
                Output::Consent(question) => {
                    match self.consent(inference, question, &mut stepping).await {
                        Ok(output) => {
                            next = Ok(output);
                            continue;
                        }
                        Err(ending) => Err(ending),
                    }
                }
                Output::Do(permitted) => self.perform(inference, &acting, permitted).await,
                Output::Finish(End::Answered(_)) => return Ending::Answered(Finish::Stop),
                Output::Finish(End::Stopped) => return Ending::Answered(Finish::Stopped),
                Output::Finish(End::Exhausted(limit)) => {
                    self.show(&format!("The agent reached its limit: {limit}."));
                    return Ending::Answered(Finish::Length);
                }
            };
            if let Err(error) = self.store_so_far().await {
                tracing::warn!("an answer cannot be stored for now: {error}");
            }
            match done {
                Ok(input) => next = stepping.step(input),
                Err(ending) => return ending,
            }
        }
    }

    /// Connects the MCP servers. One that cannot be used is shown as a step that has failed.
    async fn connect(
        &mut self,
        inference: &Arc<Inference>,
        acting: &mut Acting,
    ) -> Result<(), Ending> {
        if acting.wanted.is_empty() {
            return Ok(());
        }
        let stop = self.turn.stop.clone();
        let closing = &inference.closing;
        let services = inference.services.as_ref();
        let opening = Servers::open(&acting.wanted, services, &inference.secrets);
        let (servers, failed) = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Ending::Answered(Finish::Stopped)),
            () = closing.cancelled() => return Err(Ending::Failed(shutting_down())),
            opened = opening => opened,
        };
        acting.servers = servers;
        for (server, error) in failed {
            let id = self.begin_step("tool", &json!({"server": server}));
            let text = match error.hint {
                Some(hint) => format!("{}: {hint}", error.message),
                None => error.message,
            };
            self.end_step(id, text, true);
        }
        Ok(())
    }

    /// Shows and keeps what a step does; its id.
    fn begin_step(&mut self, name: &str, arguments: &Value) -> String {
        // Each has its result by then.
        let id = format!("step-{}", self.steps.len() / 2 + 1);
        let (name, arguments) = (name.to_owned(), arguments.to_string());
        self.turn.log.push(TurnEvent::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        });
        self.steps.push(Part::ToolCall {
            id: id.clone(),
            name,
            arguments,
        });
        id
    }

    /// Shows and keeps what a step has found.
    fn end_step(&mut self, id: String, text: String, failed: bool) {
        self.steps.push(result_part(&id, &text, failed));
        self.turn
            .log
            .push(TurnEvent::ToolResult { id, text, failed });
    }

    /// Asks the model, and shows its answer as it comes if it is for the person.
    async fn reply(
        &mut self,
        inference: &Arc<Inference>,
        prompt: &Prompt,
        earlier: &[Value],
        model: &str,
        ask: &Ask,
    ) -> Result<Reply, Ending> {
        let mut fields = prompt.options.clone();
        fields.extend(ask.fields(earlier));
        fields.insert("model".to_owned(), model.into());
        let request = Request::streamed_chat(fields).map_err(Ending::Failed)?;
        self.tiers = inference.tiers.snapshot();
        self.asked = Instant::now();
        // What was before was the work of tools, and the time in which a person was asked.
        self.pace = Pace::new(self.asked);
        let stop = self.turn.stop.clone();
        let closing = &inference.closing;
        let asked = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Ending::Answered(Finish::Stopped)),
            () = closing.cancelled() => return Err(Ending::Failed(shutting_down())),
            asked = inference.ask(request, Caller::default()) => asked,
        };
        let mut answer = match asked {
            Err(failed) => {
                self.facts_of(failed.source);
                return Err(Ending::Failed(failed.error));
            }
            Ok(answer) => answer,
        };
        let mut store = interval(STORED_EVERY);
        store.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut reply = Reply::default();
        loop {
            let event = tokio::select! {
                biased;
                () = stop.cancelled() => return Err(Ending::Answered(Finish::Stopped)),
                () = closing.cancelled() => return Err(Ending::Failed(shutting_down())),
                _ = store.tick() => {
                    if let Err(error) = self.store_so_far().await {
                        tracing::warn!("an answer cannot be stored for now: {error}");
                    }
                    continue;
                }
                event = answer.next() => event,
            };
            let ending = match event {
                None | Some(Event::Finished { .. }) => break,
                Some(Event::ToolCall(part)) => {
                    if let Some(call) = ToolCall::of(&mut calls, part.index) {
                        call.add(part);
                    }
                    None
                }
                Some(Event::Text(text)) => {
                    let begins = reply.text.is_empty();
                    reply.text.push_str(&text);
                    match (ask.is_answer, begins) {
                        (false, _) => None,
                        (true, true) => self.take(Event::Text(self.apart(text))),
                        (true, false) => self.take(Event::Text(text)),
                    }
                }
                Some(Event::Usage(usage)) => {
                    reply.tokens = usage.completion_tokens;
                    reply.read = usage.prompt_tokens.saturating_sub(usage.cached_tokens);
                    self.take(Event::Usage(usage))
                }
                Some(event) => self.take(event),
            };
            if let Some(ending) = ending {
                return Err(ending);
            }
        }
        self.note_thinking(false);
        reply.calls = calls
            .into_iter()
            .enumerate()
            .map(|(at, call)| Call {
                id: call.id.unwrap_or_else(|| format!("call-{at}")),
                name: call.name,
                arguments: call.arguments,
            })
            .collect();
        Ok(reply)
    }

    /// The text with a blank line before it, if something was shown already.
    fn apart(&self, text: String) -> String {
        let (before, _) = self.turn.log.content_from((0, 0));
        if before.is_empty() {
            text
        } else {
            format!("\n\n{text}")
        }
    }

    fn show(&mut self, text: &str) {
        let text = self.apart(text.to_owned());
        let _ended = self.take(Event::Text(text));
    }

    /// Asks the person and waits for an answer that counts, however long that takes.
    async fn consent(
        &mut self,
        inference: &Arc<Inference>,
        question: ConsentQuestion,
        stepping: &mut Stepping,
    ) -> Result<Output, Ending> {
        let stop = self.turn.stop.clone();
        let closing = &inference.closing;
        // Open before it is announced, so that an answer finds it.
        let mut answers = self.turn.consents.open();
        self.turn.log.push(TurnEvent::Consent { question });
        let outcome = loop {
            let delivered = tokio::select! {
                biased;
                () = stop.cancelled() => break Err(Ending::Answered(Finish::Stopped)),
                () = closing.cancelled() => break Err(Ending::Failed(shutting_down())),
                delivered = answers.recv() => delivered,
            };
            let Some((answer, reply)) = delivered else {
                // Its sender lives as long as this question is open.
                break Err(Ending::Answered(Finish::Stopped));
            };
            match stepping.step(Input::Answer(answer.clone())) {
                Ok(output) => {
                    if let Err(error) = stepping.grants.store(&self.store).await {
                        tracing::warn!("what was allowed ends when Tierbar quits: {error}");
                    }
                    self.turn.log.push(TurnEvent::ConsentAnswered {
                        id: answer.id,
                        allow: answer.allow,
                    });
                    // The person may have left.
                    let _ = reply.send(Ok(()));
                    break Ok(output);
                }
                Err(error) => {
                    let _ = reply.send(Err(misplaced(&error)));
                }
            }
        };
        self.turn.consents.close();
        outcome
    }

    /// Does what was permitted. A stop ends it, too.
    async fn perform(
        &mut self,
        inference: &Arc<Inference>,
        acting: &Acting,
        permitted: Permitted,
    ) -> Result<Input, Ending> {
        let (name, arguments) = described(permitted.act());
        let id = self.begin_step(name, &arguments);
        let ending = Stop::default();
        let given_up = CancellationToken::new();
        let stop = self.turn.stop.clone();
        let closing = &inference.closing;
        let doing = done(acting, permitted, ending.clone(), &given_up);
        tokio::pin!(doing);
        let found = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            () = closing.cancelled() => None,
            found = &mut doing => Some(found),
        };
        let found = match found {
            Some(found) => found,
            None => {
                // Until the command has ended, so that none outlives its turn.
                ending.stop();
                given_up.cancel();
                doing.await
            }
        };
        let (text, failed) = match &found {
            Ok(found) => (found.text.as_str(), found.failed),
            Err(why) => (why.as_str(), true),
        };
        let text: String = text.chars().take(KEPT_CHARACTERS).collect();
        self.end_step(id, text, failed);
        Ok(Input::Done(found))
    }
}

/// The way for what answers to this name. `thinks`: whether it is to think; without it, as its tier is configured.
async fn way_by_model(inference: &Inference, name: &str, thinks: Option<bool>) -> AgentWay {
    let listed = inference.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let config = inference.services.config();
    let tiers = inference.tiers.snapshot().into_iter();
    let chats = tiers.filter(|tier| tier.kind == ModelKind::Chat && tier.model.is_some());
    let tiers = chats.map(|tier| {
        let model = models.iter().find(|model| model.tiers.contains(&tier.id));
        let account = model.and_then(|model| model.account.as_ref());
        let configured = config.tiers.get(&tier.id);
        let thinks = thinks.unwrap_or_else(|| configured.is_some_and(|tier| tier.thinking));
        let thinking = thinks && account.is_some_and(|account| account.thinking);
        AgentTier {
            knows_tools: account.map(|account| account.tools),
            measured: model.and_then(|model| measured_way(&model.agent, thinking)),
            tier: tier.id,
            model: tier.model,
        }
    });
    way_of(name, &tiers.collect::<Vec<_>>())
}

async fn prepared(acting: &Acting, wanted: Wanted) -> Result<Input, Ending> {
    let Some(place) = acting.place.clone() else {
        return Ok(Input::Prepared(Err("this chat has no folder".to_owned())));
    };
    let prepared = blocking("preparing a change", move || {
        Ok(place.prepare(wanted).map_err(|failure| failure.0))
    });
    prepared.await.map(Input::Prepared).map_err(Ending::Failed)
}

/// Carries out an act. A command is ended by `stop`, and the wait for a server by `given_up`.
async fn done(
    acting: &Acting,
    permitted: Permitted,
    stop: Stop,
    given_up: &CancellationToken,
) -> Result<Found, String> {
    match permitted.act().clone() {
        Act::Command { .. } | Act::Read { .. } | Act::Write { .. } => {
            let place = acting.place.clone().ok_or("this chat has no folder")?;
            let performed = blocking("the step", move || {
                Ok(place
                    .perform(&permitted, &stop)
                    .map_err(|failure| failure.0))
            });
            performed.await.map_err(|error| error.message)?
        }
        Act::Search { words, .. } => acting.search(&words).await,
        Act::Page { address, .. } => acting.page(address.url()).await,
        Act::Documents { words, .. } => {
            let shelf = acting.shelf.as_ref();
            let text = shelf
                .ok_or("no documents can be searched")?
                .find(&words)
                .await?;
            Ok(Found::text(text))
        }
        Act::Tool {
            server,
            name,
            definition,
            arguments,
        } => {
            let servers = &acting.servers;
            let call = servers.call(&server, &name, &definition, &arguments);
            let called = given_up.run_until_cancelled(call).await;
            let text = called.unwrap_or_else(|| Err("it was stopped".to_owned()))?;
            Ok(Found::text(text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::chat::agent::ConsentScope;

    fn answer(id: &str) -> ConsentAnswer {
        ConsentAnswer {
            id: id.to_owned(),
            allow: Some(ConsentScope::Once),
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_question_is_a_conflict() {
        let consents = Consents::default();
        let error = consents.answer(answer("a")).await.unwrap_err();
        assert_eq!(error.code, Code::Conflict);
        // Nobody waits any more.
        drop(consents.open());
        assert!(consents.answer(answer("a")).await.is_err());
        let _answers = consents.open();
        consents.close();
        assert!(consents.answer(answer("a")).await.is_err());
    }

    #[tokio::test]
    async fn an_answer_reaches_the_agent_and_its_reply_returns() {
        let consents = Arc::new(Consents::default());
        let mut answers = consents.open();
        let sent = tokio::spawn({
            let consents = Arc::clone(&consents);
            async move { consents.answer(answer("a")).await }
        });
        let (received, reply) = answers.recv().await.unwrap();
        assert_eq!(received.id, "a");
        assert_eq!(received.allow, Some(ConsentScope::Once));
        reply.send(Err(misplaced(&Misplaced::NotOpen))).unwrap();
        assert_eq!(sent.await.unwrap().unwrap_err().code, Code::Conflict);
    }

    #[test]
    fn servers_are_those_that_are_enabled_or_named() {
        let config: Config = serde_json::from_value(json!({"mcp": {
            "notes": {"command": ["notes"]},
            "off": {"command": ["off"], "enabled": false},
        }}))
        .unwrap();
        let names = |chosen: Option<&[&str]>| {
            let chosen: Option<Vec<_>> =
                chosen.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let wanted = wanted(chosen.as_deref(), &config)?;
            Ok::<_, Error>(wanted.into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        assert_eq!(names(None).unwrap(), ["notes"]);
        assert_eq!(names(Some(&[])).unwrap(), [""; 0]);
        assert_eq!(names(Some(&["off"])).unwrap(), ["off"]);
        let error = names(Some(&["note"])).unwrap_err();
        assert!(error.hint.unwrap().contains("notes"));
    }

    #[test]
    fn a_provider_has_a_name_or_an_address() {
        assert_eq!(provider("duckduckgo").unwrap(), Provider::DuckDuckGo);
        assert_eq!(provider("brave").unwrap(), Provider::Brave);
        let own = provider("http://127.0.0.1:8080").unwrap();
        assert!(matches!(own, Provider::SearXng(_)));
        for wrong in ["", "google", "file:///etc"] {
            assert!(provider(wrong).is_err(), "{wrong}");
        }
    }
}
