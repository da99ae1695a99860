//! HTTP of every handler: routes, bodies, errors as responses, and path parameters.

pub(crate) mod body;
pub(crate) mod error;
pub(crate) mod headers;
pub(crate) mod path;
pub(crate) mod routes;
pub(crate) mod schema;
