//! The agent for programs: a run without a chat. See [`tierbar_jobs::turns`].

use crate::admin::{
    AdminState,
    turns::{check_consent, numbered},
};
use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierbar_chats::agent::{AgentGrant, AgentRun, ConsentAnswer};
use tierbar_edge::sessions::SessionMark;
use tierbar_fetch::detached;
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    request::JsonBody,
    sse::{self, json_event},
};
use tierbar_inference::body;
use tierbar_jobs::turns::follow;
pub(super) use tierbar_jobs::turns::{AgentAnswer, AgentRequest, AgentRunEvent};
use utoipa::ToSchema;

/// Has an agent do something, without a chat. A client that leaves ends the run.
#[utoipa::path(
    post,
    path = "/v1/agent",
    operation_id = "runAgent",
    reach(Owner, Reads, Writes, Spends, Runs),
    request_body = AgentRequest,
    responses(
        (
            status = 200,
            description = "The answer, whole or as events: the data of the first is an `AgentRunEvent`, of each other a `TurnEvent`",
            content((AgentAnswer = "application/json"), (AgentRunEvent = "text/event-stream")),
        ),
    ),
)]
pub(crate) async fn run(State(admin): AdminState, body: Body) -> Result<Response, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let request: AgentRequest = body::object_of(&bytes)?;
    // The run keeps what is in it for longer than it is read.
    let memory = bytes.len() + body::memory_of(&bytes, false)?;
    drop(bytes);
    let is_streamed = request.stream;
    let run = admin.jobs.begin_run(request, memory).await?;
    if !is_streamed {
        return Ok(Json(run.answer().await?).into_response());
    }
    let begun = stream::iter([json_event(Event::default().id("0"), &run.begun())]);
    // The run is dropped, and so ended, with the stream.
    let events = begun.chain(follow(run, 0).map(numbered));
    let closing = admin.inference.closing.clone().cancelled_owned();
    Ok(sse::response(events.take_until(closing)))
}

/// Answers what the agent of a streamed run asks before it acts. Nothing but this allows an act.
#[utoipa::path(
    post,
    path = "/v1/agent/{run}/consent",
    operation_id = "answerRunConsent",
    reach(Owner, MayRun),
    params(("run" = String, Path, description = "The id of a run")),
    request_body = ConsentAnswer,
    responses((status = 204, description = "The agent goes on")),
)]
pub(crate) async fn consent(
    State(admin): AdminState,
    session: Option<Extension<SessionMark>>,
    Id(run): Id,
    JsonBody(answer): JsonBody<ConsentAnswer>,
) -> Result<StatusCode, Failure> {
    check_consent(session.as_deref(), &answer)?;
    admin.jobs.answer_run(&run, answer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A folder for an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentFolder {
    /// An absolute path, which may begin with `~/` in a request.
    folder: String,
}

/// Checks whether an agent can use a folder, before there is a turn. The answer has its real path.
#[utoipa::path(
    post,
    path = "/tierbar/v1/agent/folder",
    operation_id = "checkAgentFolder",
    reach(Owner, Reads),
    request_body = AgentFolder,
    responses((status = 200, description = "The folder can be used", body = AgentFolder)),
)]
pub(crate) async fn folder(
    State(admin): AdminState,
    JsonBody(AgentFolder { folder }): JsonBody<AgentFolder>,
) -> Answer<AgentFolder> {
    let folder = admin.jobs.agent_folder(&folder).await?;
    Ok(Json(AgentFolder { folder }))
}

/// What agents may do without asking again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentGrants {
    /// The newest first.
    grants: Vec<AgentGrant>,
}

/// What was revoked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevokedGrants {
    revoked: usize,
}

/// Lists what agents may do without asking again.
#[utoipa::path(
    get,
    path = "/tierbar/v1/agent/grants",
    operation_id = "agentGrants",
    reach(Owner, Reads),
    responses((status = 200, description = "What is allowed", body = AgentGrants)),
)]
pub(crate) async fn grants(State(admin): AdminState) -> Answer<AgentGrants> {
    let grants = admin.jobs.agent_grants().await?;
    Ok(Json(AgentGrants { grants }))
}

/// Revokes all that agents may do without asking again.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/agent/grants",
    operation_id = "revokeAgentGrants",
    reach(Owner, Writes),
    responses((status = 200, description = "How much was revoked", body = RevokedGrants)),
)]
pub(crate) async fn revoke_all(State(admin): AdminState) -> Answer<RevokedGrants> {
    let revoked = admin.jobs.revoke_agent_grants().await?;
    Ok(Json(RevokedGrants { revoked }))
}

/// Revokes one thing that agents may do without asking again. A turn that runs asks before it does it again.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/agent/grants/{id}",
    operation_id = "revokeAgentGrant",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a grant")),
    responses((status = 204, description = "It is revoked")),
)]
pub(crate) async fn revoke(State(admin): AdminState, Id(id): Id) -> Result<StatusCode, Failure> {
    admin.jobs.revoke_agent_grant(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The runs whose changes of files can be undone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AgentRuns {
    /// The last first.
    runs: Vec<AgentRun>,
}

/// Lists the runs of agents, in chats and for programs, whose changes of files can be undone. What commands changed is not among them.
#[utoipa::path(
    get,
    path = "/tierbar/v1/agent/runs",
    operation_id = "agentRuns",
    reach(Owner, Reads),
    responses((status = 200, description = "The runs of the last seven days", body = AgentRuns)),
)]
pub(crate) async fn runs(State(admin): AdminState) -> Answer<AgentRuns> {
    let runs = admin.jobs.agent_runs().await?;
    Ok(Json(AgentRuns { runs }))
}

/// How a run is undone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoRequest {
    /// Also undoes files that have changed since. What has changed is lost.
    #[serde(default)]
    force: bool,
}

/// What was undone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndoneRun {
    /// The files that are as they were before the run, relative to its folder.
    files: Vec<String>,
}

/// Undoes what a run changed in files, all or nothing: `409 conflict` if one has changed since.
#[utoipa::path(
    post,
    path = "/tierbar/v1/agent/runs/{run}/undo",
    operation_id = "undoAgentRun",
    reach(Owner, Writes),
    params(("run" = String, Path, description = "The id of a run")),
    request_body = UndoRequest,
    responses((status = 200, description = "The changes are undone", body = UndoneRun)),
)]
pub(crate) async fn undo(
    State(admin): AdminState,
    Id(run): Id,
    JsonBody(UndoRequest { force }): JsonBody<UndoRequest>,
) -> Answer<UndoneRun> {
    let jobs = Arc::clone(&admin.jobs);
    // A task of its own: a client that leaves in between would else leave files undone that are listed as changed.
    let undoing = async move { jobs.undo_agent_run(&run, force).await };
    let files = detached("undoing the run", undoing).await?;
    Ok(Json(UndoneRun { files }))
}
