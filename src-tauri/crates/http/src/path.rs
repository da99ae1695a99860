//! Parameters in a request's path.

use crate::error::Failure;
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use tierbar_core::{Code, Error};

/// The `{id}` of a path.
#[derive(Debug)]
pub struct Id(pub String);

/// The two ids of a path, such as those of a chat and of its turn.
#[derive(Debug)]
pub struct Ids(pub String, pub String);

impl<S: Send + Sync> FromRequestParts<S> for Ids {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path((first, second))) => Ok(Self(first, second)),
            Err(_) => Err(not_utf8()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            // Only invalid UTF-8 fails here, and no name contains that.
            Err(_) => Err(not_utf8()),
        }
    }
}

fn not_utf8() -> Failure {
    let message = "the path has a part that is not UTF-8";
    Failure(Error::new(Code::NotFound, message))
}
