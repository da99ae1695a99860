//! `utoipa`, as our crates know it. In tests, which are built with `--cfg openapi` (`tests/lint`), its derives describe the types and
//! routes, and the description is compared with `docs/openapi.json`. The programs serve that file: in what is shipped, the same
//! derives leave nothing. Half of the code of a crate of plain types was descriptions. Schemas that no type holds are written in that file
//! (`tierbar_http::written`).
//!
//! A field of an answer that may be null is always there, and its type need not say so: `gateway/src/tests/edge/openapi.rs` does, and
//! names the few answers that leave such fields out.

pub use utoipa::*;

#[cfg(not(openapi))]
pub use tierbar_openapi_macros::{IntoParams, OpenApi, ToResponse, ToSchema, path};
#[cfg(openapi)]
pub use {tierbar_openapi_macros::described_path as path, utoipa::path as describe};
