//! What handlers read of a request: its query, its body, and the bounds of a field.

use crate::error::Failure;
use axum::{
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::request::Parts,
};
use serde::de::DeserializeOwned;
use std::{fmt::Display, ops::RangeInclusive};
use tierbar_core::{Error, bad_request};
use tierbar_inference::body;

/// The fields of a query.
#[derive(Debug)]
pub struct QueryFields<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for QueryFields<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let query = Query::try_from_uri(&parts.uri);
        query
            .map(|Query(fields)| Self(fields))
            .map_err(|rejection| {
                let message = format!("the query is not valid: {}", rejection.body_text());
                Failure(bad_request(message))
            })
    }
}

/// A body of at most [`body::ADMIN_LIMIT`] bytes, which is a JSON object.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        Ok(Self(body::object(request.into_body()).await?))
    }
}

/// Returns the value of a field.
///
/// # Errors
/// `BadRequest` outside the range.
pub fn check_range<T: PartialOrd + Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, Error> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    let message = format!("{field} is {value}; it must be between {least} and {most}");
    Err(bad_request(message))
}
