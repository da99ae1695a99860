//! Keys and tokens: stored, never returned.

use crate::admin::{Admin, AdminState};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tierbar_core::{Error, bad_request, config::Engine};
use tierbar_fetch::blocking;
use tierbar_http::{Answer, error::Failure, path::Id};
use tierbar_inference::body;
use tierbar_jobs::mcp;
use tierbar_secrets::{Name, Secrets, Source};
use utoipa::ToSchema;

/// A secret to store.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct SecretValue {
    #[schema(value_type = String)]
    value: SecretString,
}

/// The secrets that can be stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretList {
    secrets: Vec<SecretPlace>,
}

/// A secret, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SecretPlace {
    name: String,
    /// Where it was found; `null` if it is not stored.
    source: Option<Source>,
}

/// Lists the secrets that can be stored, and where each is found.
#[utoipa::path(
    get,
    path = "/tierbar/v1/secrets",
    operation_id = "listSecrets",
    reach(Owner, Reads),
    responses((status = 200, description = "The secrets, without their values", body = SecretList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Answer<SecretList> {
    let config = admin.services.config();
    let servers = config.tiers.values().filter_map(|tier| match &tier.engine {
        Engine::Endpoint(engine) => Some(Name::of_server(&engine.endpoint)),
        _ => None,
    });
    let mut names: BTreeSet<_> = servers
        .chain([Name::HuggingFace, Name::BraveSearch])
        .collect();
    if !config.contexts.store.is_empty() {
        names.extend([Name::ContextStore, Name::ContextPassphrase]);
    }
    let servers = config.mcp.iter();
    names.extend(servers.filter_map(|(name, server)| mcp::secret_of(name, server)));
    let listed = with_secrets(&admin, |secrets| {
        let names = names.into_iter();
        names
            .map(|name| {
                let source = secrets.source(&name)?;
                let name = name.as_str().to_owned();
                Ok(SecretPlace { name, source })
            })
            .collect::<Result<Vec<_>, Error>>()
    });
    let secrets = listed.await?;
    Ok(Json(SecretList { secrets }))
}

/// Stores a secret.
#[utoipa::path(
    put,
    path = "/tierbar/v1/secrets/{name}",
    operation_id = "setSecret",
    reach(Owner, Writes, Opens),
    params(("name" = String, Path, description = "The name of a secret")),
    request_body = SecretValue,
    responses((status = 204, description = "The secret is stored")),
)]
pub(crate) async fn set(
    State(admin): AdminState,
    Id(name): Id,
    body: Body,
) -> Result<StatusCode, Failure> {
    let name: Name = name.parse()?;
    let bytes = body::read(body, body::ADMIN_LIMIT).await?;
    // The parser's own message may quote the value.
    let SecretValue { value } =
        body::parse(&bytes).map_err(|_| bad_request("the body is not {\"value\": \"…\"}"))?;
    change(&admin, name, Some(value)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a stored secret.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/secrets/{name}",
    operation_id = "removeSecret",
    reach(Owner, Writes, Opens),
    params(("name" = String, Path, description = "The name of a secret")),
    responses((status = 204, description = "The secret is deleted")),
)]
pub(crate) async fn remove(State(admin): AdminState, Id(name): Id) -> Result<StatusCode, Failure> {
    let name: Name = name.parse()?;
    change(&admin, name, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Stores a secret, or deletes it without a value, and lets its server be asked again.
pub(super) async fn change(
    admin: &Admin,
    name: Name,
    value: Option<SecretString>,
) -> Result<(), Error> {
    let server = name.as_str().to_owned();
    let changed = with_secrets(admin, move |secrets| match value {
        Some(value) => secrets.set(&name, &value),
        None => secrets.remove(&name),
    });
    changed.await?;
    admin.inference.endpoints.forget(&server);
    Ok(())
}

/// The system may ask the user before it opens its store.
async fn with_secrets<T: Send + 'static>(
    admin: &Admin,
    work: impl FnOnce(&Secrets) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let secrets = admin.inference.secrets.clone();
    blocking("the secrets", move || work(&secrets)).await
}
