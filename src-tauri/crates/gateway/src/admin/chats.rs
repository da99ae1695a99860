//! Conversations, as the store keeps them.

use crate::{
    admin::Admin,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::chat::{Chat, ChatMessage, ChatSummary};
use tierbar_store::ChatFields;

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Value>, Failure> {
    Ok(Json(json!({"chats": admin.store.list_chats().await?})))
}

pub(crate) async fn create(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let fields: ChatFields = body::object(body).await?;
    Ok((
        StatusCode::CREATED,
        Json(admin.store.create_chat(fields).await?),
    ))
}

pub(crate) async fn get(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<Json<Chat>, Failure> {
    Ok(Json(admin.store.chat(&id).await?))
}

pub(crate) async fn update(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<ChatSummary>, Failure> {
    let fields: ChatFields = body::object(body).await?;
    Ok(Json(admin.store.update_chat(&id, fields).await?))
}

pub(crate) async fn delete(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    admin.store.delete_chat(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn add_message(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let message: ChatMessage = body::object(body).await?;
    Ok((
        StatusCode::CREATED,
        Json(admin.store.add_message(&id, message).await?),
    ))
}
