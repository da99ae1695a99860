//! The admin API under `/tierbar/v1`. All of it needs the token, or a session.

mod agent;
mod chat_files;
mod chats;
mod config;
mod connect;
mod costs;
mod diagnosis;
mod documents;
mod downloads;
mod grades;
mod hub;
mod keys;
mod log;
mod mcp_servers;
mod measures;
mod models;
mod origins;
mod presets;
mod queue;
mod route;
mod schedules;
mod secrets;
mod session;
mod setup;
pub(crate) mod status;
mod tiers;
mod turns;
mod vector_stores;

use axum::extract::State;
use std::sync::Arc;
use tierbar_edge::Edge;
use tierbar_http::{mount::Routes, routes};
use tierbar_inference::{
    Inference,
    services::{
        Services, documents::DocumentIndex, measures::Measures, models::Models,
        schedules::Schedules,
    },
};
use tierbar_jobs::Jobs;
use tierbar_store::Store;

/// What the owner's API is answered from.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) services: Arc<dyn Services>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) measures: Arc<dyn Measures>,
    pub(crate) schedules: Arc<dyn Schedules>,
    pub(crate) documents: Arc<dyn DocumentIndex>,
    pub(crate) store: Store,
    pub(crate) inference: Arc<Inference>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) edge: Arc<Edge>,
}

/// Where a handler finds it.
pub(crate) type AdminState = State<Arc<Admin>>;

pub(crate) fn routes() -> Routes<Arc<Admin>> {
    Routes::default()
        .routes(routes!(status::status))
        .routes(routes!(status::events))
        .routes(routes!(status::history))
        .routes(routes!(status::paging))
        .routes(routes!(diagnosis::diagnose))
        .routes(routes!(tiers::pause))
        .routes(routes!(tiers::resume))
        .routes(routes!(tiers::expect))
        .routes(routes!(log::log))
        .routes(routes!(log::requests))
        .routes(routes!(route::explain))
        .routes(routes!(tiers::start))
        .routes(routes!(tiers::stop))
        .routes(routes!(measures::last_bench, measures::bench))
        .routes(routes!(measures::last_tune, measures::tune))
        .routes(routes!(measures::agent))
        .routes(routes!(models::list))
        .routes(routes!(models::fit))
        .routes(routes!(models::import))
        .routes(routes!(models::remove))
        .routes(routes!(models::verify))
        .routes(routes!(setup::plan))
        .routes(routes!(setup::folder))
        .routes(routes!(setup::answers, setup::ask, setup::stop_asking))
        .routes(routes!(hub::catalog))
        .routes(routes!(hub::refresh))
        .routes(routes!(hub::search))
        .routes(routes!(hub::repository))
        .routes(routes!(hub::readme))
        .routes(routes!(downloads::list, downloads::add))
        .routes(routes!(downloads::change, downloads::remove))
        .routes(routes!(queue::list))
        .routes(routes!(queue::secret))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::set, secrets::remove))
        .routes(routes!(keys::list, keys::add))
        .routes(routes!(keys::revoke))
        .routes(routes!(config::get, config::patch))
        .routes(routes!(origins::list, origins::allow, origins::revoke))
        .routes(routes!(connect::list))
        .routes(routes!(tiers::chains))
        .routes(routes!(costs::costs))
        .routes(routes!(costs::break_even))
        .routes(routes!(costs::ledger))
        .routes(routes!(schedules::list))
        .routes(routes!(schedules::run))
        .routes(routes!(mcp_servers::put))
        .routes(routes!(mcp_servers::test))
        .routes(routes!(
            documents::status,
            documents::add,
            documents::change
        ))
        .routes(routes!(documents::remove, documents::change_source))
        .routes(routes!(documents::files))
        .routes(routes!(documents::text))
        .routes(routes!(documents::passage))
        .routes(routes!(documents::search))
        .routes(routes!(documents::ask))
        .routes(routes!(vector_stores::list, vector_stores::create))
        .routes(routes!(
            vector_stores::get,
            vector_stores::update,
            vector_stores::delete
        ))
        .routes(routes!(vector_stores::search))
        .routes(routes!(vector_stores::files, vector_stores::add_file))
        .routes(routes!(vector_stores::file))
        .routes(routes!(vector_stores::add_files))
        .routes(routes!(vector_stores::upload))
        .routes(routes!(chats::list, chats::create))
        .routes(routes!(chats::get, chats::update, chats::delete))
        .routes(routes!(chats::add_message))
        .routes(routes!(grades::give, grades::remove))
        .routes(routes!(grades::report))
        .routes(routes!(grades::export))
        .routes(routes!(grades::reset))
        .routes(routes!(presets::list))
        .routes(routes!(presets::put, presets::remove))
        .routes(routes!(chats::restore))
        .routes(routes!(chats::fork))
        .routes(routes!(chat_files::export))
        .routes(routes!(chat_files::import))
        .routes(routes!(turns::begin))
        .routes(routes!(turns::stop))
        .routes(routes!(turns::events))
        .routes(routes!(turns::consent))
        .routes(routes!(agent::run))
        .routes(routes!(agent::consent))
        .routes(routes!(agent::folder))
        .routes(routes!(agent::grants, agent::revoke_all))
        .routes(routes!(agent::revoke))
        .routes(routes!(agent::runs))
        .routes(routes!(agent::undo))
        .routes(routes!(session::begin, session::end))
        .routes(routes!(session::create_code))
        .routes(routes!(session::list, session::end_all))
}

/// The most entries of a page.
const LONGEST_PAGE: u32 = 1000;

fn default_limit() -> u32 {
    100
}

/// The most days of a report: as many are kept.
const MOST_DAYS: u32 = 366;

fn default_days() -> u32 {
    30
}

#[cfg(test)]
mod tests;
