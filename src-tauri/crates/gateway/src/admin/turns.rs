//! Turns of chats: begun, followed and stopped. See [`tierbar_jobs::turns`].

use crate::admin::AdminState;
use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_chats::{
    ChatMessage, Finish, StartedTurn, TurnEvent, TurnFailure, agent::ConsentAnswer,
};
use tierbar_core::{Code, Error};
use tierbar_edge::sessions::{self, SessionMark};
use tierbar_fetch::detached;
use tierbar_http::{
    error::Failure,
    path::Id,
    request::{JsonBody, QueryFields},
    sse::{self, json_event},
};
use tierbar_inference::body;
use tierbar_jobs::turns::{TurnRequest, follow};

/// Starts a turn: a question or another answer, which the host runs and stores.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/turns",
    operation_id = "beginTurn",
    reach(Owner, Writes, Spends, MayRun),
    params(("id" = String, Path, description = "The id of a chat")),
    request_body = TurnRequest,
    responses((status = 201, description = "The turn", body = StartedTurn)),
)]
pub(crate) async fn begin(
    State(admin): AdminState,
    session: Option<Extension<SessionMark>>,
    Id(chat): Id,
    body: Body,
) -> Result<(StatusCode, Json<StartedTurn>), Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let question: TurnRequest = body::object_of(&bytes)?;
    if question.agent.is_some() {
        sessions::check_fresh(session.as_deref(), "run an agent")?;
    }
    // The turn keeps what is in it for longer than this request lasts.
    let memory = bytes.len() + body::memory_of(&bytes, false)?;
    drop(bytes);
    // A task of its own: a client that leaves in between would else leave a turn that is stored and does not run.
    let jobs = Arc::clone(&admin.jobs);
    let begun = async move { jobs.begin_turn(&chat, question, memory).await };
    let begun = detached("the start of the turn", begun).await?;
    Ok((StatusCode::CREATED, Json(begun)))
}

/// Stops a turn. What has arrived is kept.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/chats/{id}/turns/{turn}",
    operation_id = "stopTurn",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn")),
    responses((status = 204, description = "The turn has ended")),
)]
pub(crate) async fn stop(
    State(admin): AdminState,
    Id((chat, turn)): Id<(String, String)>,
) -> Result<StatusCode, Failure> {
    admin.jobs.stop_turn(&chat, &turn).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers what the agent of a turn asks before it acts. Nothing but this allows an act.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/turns/{turn}/consent",
    operation_id = "answerConsent",
    reach(Owner, MayRun),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn")),
    request_body = ConsentAnswer,
    responses((status = 204, description = "The agent goes on")),
)]
pub(crate) async fn consent(
    State(admin): AdminState,
    session: Option<Extension<SessionMark>>,
    Id((chat, turn)): Id<(String, String)>,
    JsonBody(answer): JsonBody<ConsentAnswer>,
) -> Result<StatusCode, Failure> {
    check_consent(session.as_deref(), &answer)?;
    admin.jobs.answer_consent(&chat, &turn, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks what a person answers: a session that is too old for what agents do can still refuse it.
pub(super) fn check_consent(
    session: Option<&SessionMark>,
    answer: &ConsentAnswer,
) -> Result<(), Error> {
    match answer.allow {
        Some(_) => sessions::check_fresh(session, "allow what an agent does"),
        None => Ok(()),
    }
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
    operation_id = "turnEvents",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The id of a chat"), ("turn" = String, Path, description = "The id of a turn"), FollowQuery),
    responses((status = 200, description = "Server-sent events with ids; the data of each is a `TurnEvent`", content(("text/event-stream")))),
)]
pub(crate) async fn events(
    State(admin): AdminState,
    Id((chat, turn)): Id<(String, String)>,
    QueryFields(FollowQuery { after }): QueryFields<FollowQuery>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let last = headers.get("last-event-id");
    let last = last.and_then(|last| last.to_str().ok()?.parse::<u64>().ok());
    let after = last.unwrap_or(after);
    let (events, weight) = match admin.jobs.turn(&chat, &turn).await {
        // A follower that joins late gets what there is at once.
        Ok(running) => {
            let weight = admin.jobs.charge_answer(running.size())?;
            (follow(running, after).left_stream(), weight)
        }
        Err(gone) => {
            let weight = admin.jobs.charge_chat(&chat, 0).await?;
            let stored = admin.store.answer_of_turn(&chat, &turn).await?;
            let last = last_event(stored.ok_or(gone)?);
            let only = stream::iter([(after.saturating_add(1), last)]);
            (only.right_stream(), weight)
        }
    };
    let closing = admin.inference.closing.clone().cancelled_owned();
    let response = sse::response(events.map(numbered).take_until(closing));
    Ok(response.map(|body| weight.with(body)))
}

/// The end of a turn whose events are gone. A host that was killed has stored no reason.
fn last_event(message: ChatMessage) -> TurnEvent {
    if message.answer.finish != Some(Finish::Error) {
        return TurnEvent::Finished { message };
    }
    let failure = message.answer.failure.as_ref();
    let unknown = || {
        Error::new(Code::Internal, "the answer broke off")
            .hint("ask again, or see the event log for the reason")
    };
    let error = failure.map_or_else(unknown, TurnFailure::to_error);
    TurnEvent::failed(error, message.answer.tier.clone(), Some(message))
}

/// An event of a turn with its number as its id.
pub(super) fn numbered((number, event): (u64, TurnEvent)) -> Event {
    json_event(Event::default().id(number.to_string()), &event)
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
        let mut known = message(Finish::Error);
        let why = Error::new(Code::OverBudget, "it does not fit").hint("choose a smaller one");
        known.answer.failure = Some(TurnFailure::from(&why));
        assert_eq!(last_event(known).to_error(), Some(why));
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
