//! The chains, and which of their endpoints may be asked now.

use crate::admin::Admin;
use axum::{Json, extract::State};
use serde::Serialize;
use std::sync::Arc;
use tierbar_core::chain::ChainStatus;
use tierbar_http::schema::Errors;
use utoipa::ToSchema;

/// All chains.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChainList {
    chains: Vec<ChainStatus>,
}

/// Lists the chains, and whether each endpoint can be asked now.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chains",
    tag = "owner",
    operation_id = "listChains",
    reach(Owner, Reads),
    responses((status = 200, description = "The chains", body = ChainList), Errors),
)]
pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Json<ChainList> {
    let chains = admin.inference.chain_status();
    Json(ChainList { chains })
}
