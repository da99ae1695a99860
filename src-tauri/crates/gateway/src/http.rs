//! How every handler speaks HTTP: bodies, errors as responses, and what a path names.

pub(crate) mod body;
pub(crate) mod error;
pub(crate) mod headers;
pub(crate) mod path;
pub(crate) mod schema;
