//! The figures of the machine and of the tiers, for a report about Tierbar.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use serde::Serialize;
use std::collections::BTreeMap;
use tierbar_core::journal::Filter;
use tierbar_edge::now_ms;
use tierbar_http::Answer;
use tierbar_measure::diagnosis::{Diagnosis, Sources};
use utoipa::ToSchema;

/// More events than these of one day tell nothing new.
const LOG_ENTRIES: u32 = 1000;

/// A diagnosis, and the same as text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Diagnosed)]
pub(crate) struct DiagnosisReport {
    /// To be pasted into a report.
    text: String,
    #[serde(flatten)]
    figures: Diagnosis,
}

/// Collects the figures of this machine and its tiers. They contain no texts of the user and no paths.
#[utoipa::path(
    get,
    path = "/tierbar/v1/diagnosis",
    reach(Owner, Reads),
    responses((status = 200, description = "The figures", body = DiagnosisReport)),
)]
pub(crate) async fn diagnose(State(admin): AdminState) -> Answer<DiagnosisReport> {
    let status = admin.services.status();
    // What cannot be read is left out: it may be what the report is about.
    let models = admin.models.list().await.map(|listed| listed.models);
    let log = admin.store.entries(None, Filter::default(), LOG_ENTRIES);
    let log = log.await;
    let mut benches = BTreeMap::new();
    for tier in &status.tiers {
        if let Ok(Some(report)) = admin.measures.last_bench(tier.id.clone()).await {
            benches.insert(tier.id.clone(), report);
        }
    }
    let (machine, tierbar) = admin.services.figures().await;
    let figures = Diagnosis::from_sources(
        Sources {
            machine,
            tierbar,
            status: &status,
            config: &admin.services.config(),
            models: &models.unwrap_or_default(),
            benches: &benches,
            log: &log.unwrap_or_default(),
        },
        now_ms(),
    );
    Ok(Json(DiagnosisReport {
        text: figures.to_string(),
        figures,
    }))
}
