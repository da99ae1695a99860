//! Keys and tokens: taken, never told.

use crate::{
    admin::Admin,
    blocking::blocking,
    http::{body, error::Failure, path::Id},
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tierbar_core::{Code, Error, config::Engine};
use tierbar_secrets::{Name, Secrets};

#[derive(Debug, Deserialize)]
pub(crate) struct Given {
    value: SecretString,
}

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Result<Json<Value>, Failure> {
    let config = admin.services.config();
    let servers = config.tiers.values().filter_map(|tier| match &tier.engine {
        Engine::Endpoint(engine) => Some(Name::of_server(&engine.endpoint)),
        _ => None,
    });
    let names: BTreeSet<_> = servers.chain([Name::HuggingFace]).collect();
    let listed = with_secrets(&admin, |secrets| {
        let names = names.into_iter();
        names
            .map(|name| Ok(json!({"name": name.as_str(), "source": secrets.source(&name)?})))
            .collect::<Result<Vec<_>, Error>>()
    });
    Ok(Json(json!({"secrets": listed.await?})))
}

pub(crate) async fn set(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
    body: Body,
) -> Result<StatusCode, Failure> {
    let name: Name = name.parse()?;
    let bytes = body::read(body, body::ADMIN_LIMIT).await?;
    // The parser's own message may quote the value.
    let Given { value } = body::parse(&bytes)
        .map_err(|_| Error::new(Code::BadRequest, "the body is not {\"value\": \"…\"}"))?;
    let server = name.as_str().to_owned();
    with_secrets(&admin, move |secrets| secrets.set(&name, &value)).await?;
    admin.inference.chains.forget(&server);
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn remove(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<StatusCode, Failure> {
    let name: Name = name.parse()?;
    with_secrets(&admin, move |secrets| secrets.remove(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The system may ask the user before it opens its store.
async fn with_secrets<T: Send + 'static>(
    admin: &Admin,
    work: impl FnOnce(&Secrets) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let secrets = admin.inference.secrets.clone();
    blocking("the secrets", move || work(&secrets)).await
}
