//! Turns of chats: begun, followed and stopped. See [`tierbar_jobs::turns`].

use crate::admin::{Admin, models::read_query};
use axum::{
    Extension, Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};
use tierbar_chats::{ChatMessage, Finish, StartedTurn, TurnEvent, agent::ConsentAnswer};
use tierbar_core::{Code, Error};
use tierbar_edge::sessions::{self, SessionMark};
use tierbar_http::{error::Failure, path::Id, schema::Errors};
use tierbar_inference::body;
use tierbar_jobs::turns::{Question, Turn};

/// Often enough for proxies, and for a dead connection to be noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Starts a turn: a question or another answer, which the host runs and stores.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/turns",
    tag = "owner",
    operation_id = "beginTurn",
    reach(Owner, Writes, Spends, MayRun),
    params(("id" = String, Path, description = "The id of a chat")),
    request_body = Question,
    responses((status = 201, description = "The turn", body = StartedTurn), Errors),
)]
pub(crate) async fn begin(
    State(admin): State<Arc<Admin>>,
    session: Option<Extension<SessionMark>>,
    Id(chat): Id,
    body: Body,
) -> Result<(StatusCode, Json<StartedTurn>), Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let question: Question = body::object_of(&bytes)?;
    if question.has_agent() {
        sessions::check_fresh(session.as_deref(), "run an agent")?;
    }
    // The turn keeps what is in it for longer than this request lasts.
    let memory = bytes.len() + body::memory_of(&bytes, false)?;
    drop(bytes);
    // A task of its own: a client that leaves in between would else leave a turn that is stored and does not run.
    let jobs = Arc::clone(&admin.jobs);
    let begun = tokio::spawn(async move { jobs.begin_turn(&chat, question, memory).await }).await;
    let begun = begun.map_err(|ended| {
        Error::new(Code::Internal, format!("the turn did not start: {ended}"))
    })??;
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Stops a turn. What has arrived is kept.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/chats/{id}/turns/{turn}",
    tag = "owner",
    operation_id = "stopTurn",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn")),
    responses((status = 204, description = "The turn has ended"), Errors),
)]
pub(crate) async fn stop(
    State(admin): State<Arc<Admin>>,
    Id((chat, turn)): Id<(String, String)>,
) -> Result<StatusCode, Failure> {
    admin.jobs.stop_turn(&chat, &turn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers what the agent of a turn asks before it acts. Nothing but this allows an act.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/turns/{turn}/consent",
    tag = "owner",
    operation_id = "answerConsent",
    reach(Owner, MayRun),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn")),
    request_body = ConsentAnswer,
    responses((status = 204, description = "The agent goes on"), Errors),
)]
pub(crate) async fn consent(
    State(admin): State<Arc<Admin>>,
    session: Option<Extension<SessionMark>>,
    Id((chat, turn)): Id<(String, String)>,
    body: Body,
) -> Result<StatusCode, Failure> {
    let answer = consent_answer(session, body).await?;
    admin.jobs.answer_consent(&chat, &turn, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads what a person answers: a session that is too old for what agents do can still refuse it.
pub(super) async fn consent_answer(
    session: Option<Extension<SessionMark>>,
    body: Body,
) -> Result<ConsentAnswer, Error> {
    let answer: ConsentAnswer = body::object(body).await?;
    if answer.allow.is_some() {
        sessions::check_fresh(session.as_deref(), "allow what an agent does")?;
    }
    Ok(answer)
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FollowQuery {
    /// The number of the last event that the follower has.
    #[serde(default)]
    after: u64,
}

/// Streams the events of a turn from a number on, to its last. A turn that ended a while ago has one, with its message.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chats/{id}/turns/{turn}/events",
    tag = "owner",
    operation_id = "turnEvents",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn"), FollowQuery),
    responses((status = 200, description = "Server-sent events with ids; the data of each is a `TurnEvent`", content(("text/event-stream"))), Errors),
)]
pub(crate) async fn events(
    State(admin): State<Arc<Admin>>,
    Id((chat, turn)): Id<(String, String)>,
    from: Result<Query<FollowQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let FollowQuery { after } = read_query(from)?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok()?.parse::<u64>().ok());
    let after = last.unwrap_or(after);
    let (turn, ready, weight) = match admin.jobs.turn(&chat, &turn).await {
        // A follower that joins late gets what there is at once.
        Ok(running) => {
            let weight = admin.jobs.charge_answer(running.size())?;
            (Some(running), VecDeque::new(), weight)
        }
        Err(gone) => {
            let weight = admin.jobs.charge_chat(&chat, 0).await?;
            let stored = admin.store.answer_of_turn(&chat, &turn).await?;
            let last = last_event(stored.ok_or(gone)?);
            let ready = VecDeque::from([(after.saturating_add(1), last)]);
            (None, ready, weight)
        }
    };
    let following = TurnFollower { turn, after, ready };
    let events = stream::unfold(following, |mut following| async {
        let (number, event) = following.next().await?;
        let data = serde_json::to_string(&event).unwrap_or_default();
        let event = Event::default().id(number.to_string()).data(data);
        Some((Ok::<_, Infallible>(event), following))
    });
    let closing = admin.inference.closing.clone().cancelled_owned();
    let events = events.take_until(closing);
    let response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(response.into_response().map(|body| weight.with(body)))
}

/// The end of a turn whose events are gone. Why it failed was in them.
fn last_event(message: ChatMessage) -> TurnEvent {
    if message.answer.finish != Some(Finish::Error) {
        return TurnEvent::Finished { message };
    }
    let error = Error::new(Code::Internal, "the answer broke off")
        .hint("ask again, or see the event log for the reason");
    TurnEvent::failed(error, message.answer.tier.clone(), Some(message))
}

/// A follower's place in a turn.
pub(super) struct TurnFollower {
    /// `None` once all its events are ready.
    turn: Option<Arc<Turn>>,
    after: u64,
    ready: VecDeque<(u64, TurnEvent)>,
}

impl TurnFollower {
    /// A follower of all of a turn that runs.
    pub(super) fn from_start(turn: Arc<Turn>) -> Self {
        Self {
            turn: Some(turn),
            after: 0,
            ready: VecDeque::new(),
        }
    }

    pub(super) async fn next(&mut self) -> Option<(u64, TurnEvent)> {
        loop {
            if let Some((number, event)) = self.ready.pop_front() {
                self.after = number;
                return Some((number, event));
            }
            let turn = self.turn.as_ref()?;
            turn.wait_after(self.after).await;
            let (events, ended) = turn.events_after(self.after);
            self.ready = events.into();
            if ended {
                self.turn = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_chats::{AnswerFacts, Role, text_parts};

    #[test]
    fn a_stored_answer_that_broke_off_is_a_failure_with_its_text() {
        let message = |finish| ChatMessage {
            id: 2,
            parent: Some(1),
            role: Role::Assistant,
            parts: text_parts("so far".to_owned()),
            answer: AnswerFacts {
                tier: Some("fast".to_owned()),
                finish: Some(finish),
                ..AnswerFacts::default()
            },
        };
        let last = last_event(message(Finish::Error));
        let error = last.to_error().unwrap();
        assert_eq!(error.code, Code::Internal);
        assert!(error.hint.unwrap().contains("event log"));
        let TurnEvent::Failed { tier, answer, .. } = last else {
            panic!("{last:?}");
        };
        assert_eq!(
            (tier.as_deref(), answer),
            (Some("fast"), Some(message(Finish::Error)))
        );
        for finish in [Finish::Stop, Finish::Stopped, Finish::Length] {
            assert_eq!(
                last_event(message(finish)),
                TurnEvent::Finished {
                    message: message(finish)
                }
            );
        }
    }
}
