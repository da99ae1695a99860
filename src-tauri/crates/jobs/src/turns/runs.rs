//! Runs of an agent for programs: turns without a chat. Nothing of them is stored, and a run ends with its client.

use super::{Acting, Jobs, Prompt, Turn, follow, run};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::{ops::Deref, pin::pin, sync::Arc};
use tierbar_agent::consent::Grant;
use tierbar_chats::{
    AnswerFacts, ChatMessage, Part, Role, TurnEvent,
    agent::{AgentAllowed, AgentDocuments, AgentOptions, AgentWay, ConsentAnswer, ConsentQuestion},
    context::{Excerpt, WhenFull},
};
use tierbar_core::{Code, Error, TierId, bad_request};
use utoipa::ToSchema;
use uuid::Uuid;

/// What an agent is to do, and what it may use. What a field does not give, it does without.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRequest {
    input: AgentInput,
    /// A tier, a chain or a model's id; `auto` without it.
    model: Option<String>,
    /// Whether the run comes as server-sent events. Without them, what would ask is refused.
    #[serde(default)]
    pub stream: bool,
    /// The absolute path of the folder for files and commands, which may begin with `~/`. Without one there are neither.
    folder: Option<String>,
    /// The web search engine: `duckduckgo`, `brave` (with the secret `brave-search`), or a SearXNG server's address. Omit to disable
    /// web search.
    search: Option<String>,
    /// Whether pages of the web can be opened.
    #[serde(default)]
    pages: bool,
    /// Which of the user's documents can be searched: `true` for all, or a list of collections. Without it none can.
    documents: Option<AgentDocuments>,
    /// The MCP servers whose tools it may use, by their names in the configuration. Without the field, those that are enabled.
    servers: Option<Vec<String>>,
    /// What is done without a question.
    #[serde(default)]
    allow: AgentAllowed,
    #[serde(default)]
    way: AgentWay,
}

/// The task: text, or messages of which the last is the user's.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "`input` is a text, or a list of messages with `role` and `content`"
)]
pub(crate) enum AgentInput {
    Text(String),
    Messages(Vec<AgentMessage>),
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentMessage {
    role: Role,
    content: String,
}

/// The first event of a streamed run. Each further one is a `TurnEvent`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentRunEvent {
    /// Its questions are answered at `/v1/agent/{run}/consent`.
    Begun { run: String },
}

/// The whole of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentAnswer {
    run: String,
    /// The answer.
    text: String,
    /// The answer with the steps before it and its figures. It is not stored.
    message: ChatMessage,
    /// Acts that needed consent and were refused, because a run cannot ask for it.
    refused: Vec<ConsentQuestion>,
}

/// A run, which goes on as long as this is kept.
#[derive(Debug)]
pub struct Run(Arc<Turn>);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.stop.cancel();
    }
}

impl Deref for Run {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        &self.0
    }
}

impl Run {
    pub fn begun(&self) -> AgentRunEvent {
        AgentRunEvent::Begun {
            run: self.id.clone(),
        }
    }

    /// Waits for the run's end.
    ///
    /// # Errors
    /// Whatever kept the model from answering.
    pub async fn answer(self) -> Result<AgentAnswer, Error> {
        let (run, mut refused) = (self.id.clone(), Vec::new());
        let mut events = pin!(follow(self, 0));
        while let Some((_, event)) = events.next().await {
            if let Some(error) = event.to_error() {
                return Err(error);
            }
            match event {
                TurnEvent::Consent { question } => refused.push(question),
                TurnEvent::Finished { message } => {
                    return Ok(AgentAnswer {
                        run,
                        text: message.text(),
                        message,
                        refused,
                    });
                }
                _ => {}
            }
        }
        let message = "the run ended without an answer";
        Err(Error::new(Code::Internal, message))
    }
}

impl Jobs {
    /// Begins a run. `memory`: what the request takes, in bytes.
    ///
    /// # Errors
    /// `BadRequest` for input that ends with no task, and for what the agent cannot use; `Overloaded` while too many requests are in
    /// progress.
    pub async fn begin_run(
        self: &Arc<Self>,
        request: AgentRequest,
        memory: usize,
    ) -> Result<Run, Error> {
        let conversation = conversation(request.input)?;
        let options = AgentOptions {
            folder: request.folder,
            search: request.search,
            pages: request.pages,
            documents: request.documents,
            servers: request.servers,
            allow: request.allow,
            way: request.way,
        };
        let id = Uuid::new_v4().to_string();
        let mut acting = Acting::prepare(options, &id, self).await?;
        acting.is_attended = request.stream;
        let most = self.inference.services.config().server.requests_at_once;
        let admitted = self.keys.enter(None, self.charge(memory)?, most.into())?;
        let prompt = Prompt {
            model: request.model.unwrap_or_else(|| TierId::AUTO.to_owned()),
            when_full: WhenFull::Refuse,
            instructions: String::new(),
            excerpt: Excerpt::new(conversation, Vec::new()),
            options: Map::new(),
            has_media: false,
        };
        let turn = Arc::new(Turn {
            id,
            stop: self.inference.closing.child_token(),
            ..Turn::default()
        });
        self.turns.turns.lock().await.push(Arc::clone(&turn));
        let begun = Run(Arc::clone(&turn));
        let jobs = Arc::clone(self);
        self.turns.tasks.spawn(async move {
            run::run(&jobs, &turn, prompt, None, Some(acting), admitted).await;
            // What was allowed to this run ends with it.
            let is_others = |grant: &Grant| grant.chat.as_deref() != Some(turn.id.as_str());
            jobs.turns.grants.list.lock().retain(is_others);
            jobs.turns.forget(&turn).await;
        });
        Ok(begun)
    }

    /// Answers the open question of a run.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if no question is open; `BadRequest` for another question, or a scope that it does not offer.
    pub async fn answer_run(&self, id: &str, answer: ConsentAnswer) -> Result<(), Error> {
        let run = self.turns.find(id, None).await.ok_or_else(|| {
            Error::new(Code::NotFound, "there is no such run")
                .hint("a run ends with its answer, or with the connection that began it")
        })?;
        run.consents.answer(answer).await
    }
}

fn conversation(input: AgentInput) -> Result<Vec<ChatMessage>, Error> {
    let messages = match input {
        AgentInput::Text(content) => vec![AgentMessage {
            role: Role::User,
            content,
        }],
        AgentInput::Messages(messages) => messages,
    };
    let is_task = |last: &AgentMessage| last.role == Role::User && !last.content.trim().is_empty();
    if !messages.last().is_some_and(is_task) {
        let error = bad_request("`input` does not end with a task");
        return Err(error.hint("write the task as text, or as the last message, with role user"));
    }
    let messages = (1..).zip(messages).map(|(id, message)| ChatMessage {
        id,
        parent: None,
        role: message.role,
        parts: vec![Part::Text {
            text: message.content,
        }],
        answer: AnswerFacts::default(),
    });
    Ok(messages.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_is_the_users_last_word() {
        let read = |input: serde_json::Value| {
            let request = serde_json::from_value::<AgentRequest>(json!({"input": input}));
            conversation(request.unwrap().input)
        };
        assert_eq!(read(json!("Look")).unwrap()[0].text(), "Look");
        let both =
            json!([{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Look"}]);
        assert_eq!(read(both).unwrap().len(), 2);
        for wrong in [
            json!(" "),
            json!([]),
            json!([{"role": "assistant", "content": "Done"}]),
        ] {
            assert_eq!(read(wrong).unwrap_err().code, Code::BadRequest);
        }
        for wrong in [
            json!({}),
            json!({"input": 1}),
            json!({"input": "x", "everything": true}),
        ] {
            assert!(
                serde_json::from_value::<AgentRequest>(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
    }
}
