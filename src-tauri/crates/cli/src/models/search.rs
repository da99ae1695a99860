//! Finding models on the hub.

use crate::{
    client::{Client, admin, read},
    output,
};
use serde::Deserialize;
use tierbar_core::{Error, catalog::HubModel};

#[derive(Debug, Deserialize)]
struct Found {
    models: Vec<HubModel>,
}

pub(super) async fn run(client: &Client, words: &str) -> Result<(), Error> {
    let body = client
        .get(&admin(&["hub", "search"], &[("q", words)]))
        .await?;
    let Found { models } = read(body)?;
    if models.is_empty() {
        output::line("The hub has no GGUF models of that name.");
    }
    for HubModel {
        repository,
        downloads,
        gated,
        ..
    } in models
    {
        let gated = if gated { "  asks for a licence" } else { "" };
        output::line(&format!(
            "{repository:<60} {downloads:>10} downloads{gated}"
        ));
    }
    Ok(())
}
