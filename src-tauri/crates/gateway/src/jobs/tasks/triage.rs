//! `POST /v1/triage`: what kind of message a text is.

use super::{
    ask::{Answered, Question, Session, no_answer},
    batch::{self, Items},
    schema::{self, TaskAnswer},
};
use crate::{
    http::{
        body,
        error::Failure,
        schema::{Errors, Queued, RequestHeaders},
    },
    inference::hints::Hints,
    jobs::Jobs,
};
use axum::{body::Body, extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{
    Error,
    tasks::{
        Task,
        email::{self, Header},
        lenient,
        triage::{self, CloudNeed, MessageType, Triage},
    },
};
use utoipa::ToSchema;

/// Texts to classify.
#[derive(Deserialize, ToSchema)]
#[schema(as = TriageRequest)]
struct Wanted {
    /// The text.
    #[schema(value_type = Option<String>)]
    text: Option<Value>,
    /// Instead of `text`: at most 256 texts.
    #[schema(value_type = Option<Vec<String>>)]
    texts: Option<Vec<Value>>,
    /// A tier, a chain, a model's id, or `auto`. Default: `fast`.
    model: Option<String>,
}

/// Classifies a message, and how urgent it is.
#[utoipa::path(
    post,
    path = "/v1/triage",
    tag = "tasks",
    operation_id = "triage",
    params(RequestHeaders),
    request_body = Wanted,
    responses(
        (
            status = 200,
            description = "The answer, or one for each text",
            body = TaskAnswer<schema::Triage>,
        ),
        (status = 202, response = Queued),
        Errors,
    ),
)]
pub(super) async fn triage(
    State(jobs): State<Arc<Jobs>>,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let Wanted { text, texts, model } = body::request(body).await?;
    let items = Items::texts(text, texts)?;
    let one = |text: Value, trail| {
        let session = Session::new(
            &jobs.inference,
            Task::Triage,
            model.as_deref(),
            &hints,
            trail,
        );
        async move { sort(session, batch::prompt(&text)?).await }
    };
    Ok(batch::answer(&jobs, Task::Triage, items, one).await)
}

async fn sort(mut session: Session, text: &str) -> Result<Answered, Error> {
    if let Some(need) = CloudNeed::of_greeting(text) {
        let triage = Triage {
            kind: MessageType::Greeting,
            urgency: 0,
            needs_cloud: false,
        };
        let saved = session.tokens_of(text.len());
        return Ok(session.done(render(triage, need, text), saved));
    }
    for again in ["", "\nAnswer with the JSON object alone."] {
        let question = Question {
            system: triage::INSTRUCTIONS,
            user: format!("{}{again}", triage::about(text)),
            schema: triage::schema(),
            max_tokens: triage::ANSWER_TOKENS,
        };
        let said = session.ask(&question).await?;
        let read = lenient::object(&said.text).and_then(|answer| Triage::read(&answer));
        let Some(triage) = read else { continue };
        let need = triage.cloud_need(text);
        let answer = render(triage, need, text);
        let saved = if need.needed {
            0
        } else {
            session.tokens_of(text.len())
        };
        return Ok(session.done(answer, saved));
    }
    Err(no_answer(Task::Triage))
}

fn render(triage: Triage, need: CloudNeed, text: &str) -> Map<String, Value> {
    let mut answer = Map::from_iter([
        ("type".to_owned(), json!(triage.kind)),
        ("urgency".to_owned(), triage.urgency.into()),
        ("needs_cloud".to_owned(), need.needed.into()),
        ("why".to_owned(), need.because.into()),
    ]);
    if let Some(subject) = email::subject(text) {
        let header = Header {
            subject,
            kind: triage.kind,
            urgency: triage.urgency,
        };
        answer.insert("header".to_owned(), header.to_string().into());
    }
    answer
}
