//! `POST /v1/triage`: what kind of message a text is.

use super::{
    ask::{ONLY_JSON, Session, TaskPrompt, TaskResult, no_answer},
    batch::{self, Items},
    message::Message,
    schema::{TaskMessage, TriageAnswer},
};
use crate::Jobs;
use axum::{body::Body, extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_chats::lenient;
use tierbar_core::Error;
use tierbar_http::{RequestHints, error::Failure};
use tierbar_inference::body;
use tierbar_tasks::{
    Task,
    email::{self, Header},
    triage::{self, CloudNeed, MessageType, Triage},
};
use utoipa::ToSchema;

/// Messages to classify: texts, images and sound.
#[derive(Deserialize, ToSchema)]
struct TriageRequest {
    /// A text, the parts of a message in OpenAI's or Anthropic's form, or a message.
    #[schema(value_type = Option<TaskMessage>)]
    text: Option<Value>,
    /// Instead of `text`: at most 256 of them.
    #[schema(value_type = Option<Vec<TaskMessage>>)]
    texts: Option<Vec<Value>>,
    /// Beside `text`: images in base64, as in Ollama's API.
    #[serde(default)]
    #[schema(required = false)]
    images: Vec<String>,
    /// A tier, a chain, a model's id, or `auto`. Default: `fast`, or for images and sound a tier that takes them.
    model: Option<String>,
}

/// Classifies a message, and how urgent it is.
#[utoipa::path(
    post,
    path = "/v1/triage",
    reach(Inference, Spends, Counts),
    request_body = TriageRequest,
    responses((status = 200, description = "The answer, or one for each text", body = TriageAnswer)),
)]
pub(super) async fn triage(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    body: Body,
) -> Result<Response, Failure> {
    let TriageRequest {
        text,
        texts,
        images,
        model,
    } = body::request(body).await?;
    let items = Items::texts(text, texts, &images)?;
    let one = |message: Value, trail| {
        let message = Message::prompt(&message, &images);
        let session = |message: &Message| {
            let (model, media) = (model.as_deref(), message.modalities());
            Session::new(&jobs.inference, Task::Triage, model, &media, &hints, trail)
        };
        let sorted = message.map(|message| (session(&message), message));
        async move {
            let (session, message) = sorted?;
            sort(session, &message).await
        }
    };
    Ok(batch::answer(&jobs, Task::Triage, items, one).await)
}

async fn sort(mut session: Session, message: &Message) -> Result<TaskResult, Error> {
    let text = message.text();
    let is_text = message.media().next().is_none();
    if let Some(need) = CloudNeed::of_greeting(&text).filter(|_| is_text) {
        let triage = Triage {
            kind: MessageType::Greeting,
            urgency: 0,
            needs_cloud: false,
        };
        let saved = session.tokens_of(text.len());
        return Ok(session.done(render(triage, need, &text), saved));
    }
    for again in ["", ONLY_JSON] {
        let prompt = TaskPrompt {
            system: message.instructions(triage::INSTRUCTIONS),
            user: message.between("Message:", again),
            schema: triage::schema(),
            max_tokens: triage::ANSWER_TOKENS,
        };
        let said = session.ask(&prompt).await?;
        let read = lenient::object(&said.text).and_then(|answer| Triage::from_answer(&answer));
        let Some(triage) = read else { continue };
        let need = if session.sorts_badly().await {
            CloudNeed::without_judgment()
        } else {
            triage.cloud_need(&text)
        };
        let answer = render(triage, need, &text);
        let saved = if need.needed {
            0
        } else {
            session.tokens_of(message.len())
        };
        return Ok(session.done(answer, saved));
    }
    Err(no_answer(Task::Triage))
}

fn render(triage: Triage, need: CloudNeed, text: &str) -> Value {
    let mut answer = json!({
        "type": triage.kind,
        "urgency": triage.urgency,
        "needs_cloud": need.needed,
        "why": need.because,
    });
    if let Some(subject) = email::subject(text) {
        let header = Header {
            subject,
            kind: triage.kind,
            urgency: triage.urgency,
        };
        answer["header"] = header.to_string().into();
    }
    answer
}
