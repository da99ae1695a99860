//! Chats, as the store keeps them.

use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::chat::{Chat, ChatSummary};
use tierbar_store::{ChatFields, NewMessage};

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Value>, Failure> {
    let mut chats = admin.store.list_chats().await?;
    admin.jobs.note_turns(&mut chats).await;
    Ok(Json(json!({"chats": chats})))
}

pub(crate) async fn create(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let fields: ChatFields = body::object(body).await?;
    let chat = admin.store.create_chat(fields).await?;
    admin.jobs.note_chat_change();
    Ok((StatusCode::CREATED, Json(chat)))
}

pub(crate) async fn get(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<Json<Chat>, Failure> {
    let mut chat = admin.store.chat(&id).await?;
    admin
        .jobs
        .note_turns(std::slice::from_mut(&mut chat.summary))
        .await;
    Ok(Json(chat))
}

pub(crate) async fn update(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<ChatSummary>, Failure> {
    let fields: ChatFields = body::object(body).await?;
    let mut chat = admin.store.update_chat(&id, fields).await?;
    admin.jobs.note_chat_change();
    admin.jobs.note_turns(std::slice::from_mut(&mut chat)).await;
    Ok(Json(chat))
}

pub(crate) async fn delete(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    admin.jobs.stop_turns_of(&id).await;
    admin.store.delete_chat(&id).await?;
    // One that began in between writes to nobody.
    admin.jobs.stop_turns_of(&id).await;
    admin.jobs.note_chat_change();
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn add_message(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let message: NewMessage = body::object(body).await?;
    let chat = admin.store.add_message(&id, message).await?;
    admin.jobs.note_chat_change();
    Ok((StatusCode::CREATED, Json(chat)))
}
