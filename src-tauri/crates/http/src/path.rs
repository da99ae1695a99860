//! Parameters in a request's path.

use crate::error::Failure;
use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use tierbar_core::{Code, Error};

/// The `{id}` of a path, or a tuple of several, such as those of a chat and of its turn.
#[derive(Debug)]
pub struct Id<T = String>(pub T);

impl<S: Send + Sync, T> FromRequestParts<S> for Id<T>
where
    Path<T>: FromRequestParts<S>,
{
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        // Only invalid UTF-8 fails here, and no name contains that.
        let message = "the path has a part that is not UTF-8";
        let Path(id) = path.map_err(|_| Error::new(Code::NotFound, message))?;
        Ok(Self(id))
    }
}
