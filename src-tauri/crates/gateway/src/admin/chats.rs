//! Conversations, as the store keeps them.

use crate::{
    Gateway,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::chat::{Chat, ChatMessage, ChatSummary};
use tierbar_store::ChatFields;

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Result<Json<Value>, Failure> {
    Ok(Json(json!({"chats": gateway.store.list_chats().await?})))
}

pub(crate) async fn create(
    State(gateway): State<Arc<Gateway>>,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let fields: ChatFields = body::object(body).await?;
    Ok((
        StatusCode::CREATED,
        Json(gateway.store.create_chat(fields).await?),
    ))
}

pub(crate) async fn get(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
) -> Result<Json<Chat>, Failure> {
    Ok(Json(gateway.store.chat(&id).await?))
}

pub(crate) async fn update(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<ChatSummary>, Failure> {
    let fields: ChatFields = body::object(body).await?;
    Ok(Json(gateway.store.update_chat(&id, fields).await?))
}

pub(crate) async fn delete(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    gateway.store.delete_chat(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn add_message(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
    body: Body,
) -> Result<(StatusCode, Json<ChatSummary>), Failure> {
    let message: ChatMessage = body::object(body).await?;
    Ok((
        StatusCode::CREATED,
        Json(gateway.store.add_message(&id, message).await?),
    ))
}
