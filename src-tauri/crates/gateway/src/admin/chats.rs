//! Chats, as the store keeps them.

use crate::admin::AdminState;
use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use tierbar_chats::{Chat, ChatSummary};
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    request::{JsonBody, QueryFields, check_range},
};
use tierbar_store::{ChatFields, ChatPage, NewMessage};
use utoipa::{IntoParams, ToSchema};

/// Chats without their messages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatList {
    /// The pinned ones first, then the latest first.
    chats: Vec<ChatSummary>,
    /// How many chats there are; of a search, how many it found.
    total: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Search {
    /// Words that the title or a message has, the last of them perhaps only the beginning of one. At most 100 chats are found, the
    /// latest first. Without it, all chats are listed.
    search: Option<String>,
    /// The id of a chat: only those that follow it in the list are listed.
    before: Option<String>,
    /// The most chats to list. Default: all.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// The message at which a fork ends.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    message: u64,
}

/// Lists the chats, or those in which a search finds its words.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chats",
    operation_id = "listChats",
    reach(Owner, Reads),
    params(Search),
    responses((status = 200, description = "The chats", body = ChatList)),
)]
pub(crate) async fn list(
    State(admin): AdminState,
    QueryFields(query): QueryFields<Search>,
) -> Answer<ChatList> {
    if let Some(limit) = query.limit {
        check_range("limit", limit, 1..=super::LONGEST_PAGE)?;
    }
    let (mut chats, total) = match query.search {
        Some(words) => {
            let found = admin.store.search_chats(&words).await?;
            let count = found.len() as u64;
            (found, count)
        }
        None => {
            let (before, limit) = (query.before, query.limit);
            admin.store.list_page(ChatPage { before, limit }).await?
        }
    };
    admin.jobs.note_turns(&mut chats).await;
    Ok(Json(ChatList { chats, total }))
}

/// Creates a chat.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats",
    operation_id = "createChat",
    reach(Owner, Writes),
    request_body = ChatFields,
    responses((status = 201, description = "The chat", body = ChatSummary)),
)]
pub(crate) async fn create(
    State(admin): AdminState,
    JsonBody(fields): JsonBody<ChatFields>,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let chat = admin.store.create_chat(fields).await?;
    admin.jobs.note_chat_change();
    Ok((StatusCode::CREATED, Json(chat)))
}

/// Returns a chat with its messages.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chats/{id}",
    operation_id = "readChat",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "The id of a chat")),
    responses((status = 200, description = "The chat", body = Chat)),
)]
pub(crate) async fn get(State(admin): AdminState, Id(id): Id) -> Result<Response, Failure> {
    let weight = admin.jobs.charge_chat(&id, 0).await?;
    loop {
        let before = admin.jobs.running_turn(&id).await;
        let mut chat = admin.store.chat(&id).await?;
        chat.summary.turn = admin.jobs.running_turn(&id).await;
        // What was read of a turn that has ended meanwhile may be half an answer.
        if chat.summary.turn == before {
            let response = Json(chat).into_response();
            return Ok(response.map(|body| weight.with(body)));
        }
    }
}

/// Changes a chat.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/chats/{id}",
    operation_id = "updateChat",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat")),
    request_body = ChatFields,
    responses((status = 200, description = "The chat", body = ChatSummary)),
)]
pub(crate) async fn update(
    State(admin): AdminState,
    Id(id): Id,
    JsonBody(fields): JsonBody<ChatFields>,
) -> Answer<ChatSummary> {
    let mut chat = admin.store.update_chat(&id, fields).await?;
    admin.jobs.note_chat_change();
    admin.jobs.note_turns(std::slice::from_mut(&mut chat)).await;
    Ok(Json(chat))
}

/// Stops the turns of a chat, and deletes it. For ten minutes, it can be restored; then it is erased.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/chats/{id}",
    operation_id = "deleteChat",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat")),
    responses((status = 204, description = "The chat is deleted")),
)]
pub(crate) async fn delete(State(admin): AdminState, Id(id): Id) -> Result<StatusCode, Failure> {
    admin.jobs.stop_turns_of(&id).await;
    admin.store.delete_chat(&id).await?;
    // One that began in between has no chat to write to.
    admin.jobs.stop_turns_of(&id).await;
    admin.jobs.erase_deleted_chats_later();
    admin.jobs.note_chat_change();
    Ok(StatusCode::NO_CONTENT)
}

/// Restores a chat that was deleted in the last ten minutes.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/restore",
    operation_id = "restoreChat",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat")),
    responses((status = 200, description = "The chat", body = ChatSummary)),
)]
pub(crate) async fn restore(State(admin): AdminState, Id(id): Id) -> Answer<ChatSummary> {
    let chat = admin.store.restore_chat(&id).await?;
    admin.jobs.note_chat_change();
    Ok(Json(chat))
}

/// Makes a new chat of the branch up to a message, with the title and settings of the chat.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/fork",
    operation_id = "forkChat",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat")),
    request_body = Fork,
    responses((status = 201, description = "The new chat", body = ChatSummary)),
)]
pub(crate) async fn fork(
    State(admin): AdminState,
    Id(id): Id,
    JsonBody(Fork { message }): JsonBody<Fork>,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let _weight = admin.jobs.charge_chat(&id, 0).await?;
    let chat = admin.store.fork_chat(&id, message).await?;
    admin.jobs.note_chat_change();
    Ok((StatusCode::CREATED, Json(chat)))
}

/// Adds a message to the end of the branch that is shown.
#[utoipa::path(
    post,
    path = "/tierbar/v1/chats/{id}/messages",
    operation_id = "addMessage",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a chat")),
    request_body = NewMessage,
    responses((status = 201, description = "The chat", body = ChatSummary)),
)]
pub(crate) async fn add_message(
    State(admin): AdminState,
    Id(id): Id,
    JsonBody(message): JsonBody<NewMessage>,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let chat = admin.store.add_message(&id, message).await?;
    admin.jobs.note_chat_change();
    Ok((StatusCode::CREATED, Json(chat)))
}
