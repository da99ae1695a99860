//! `tierbar models search`: finds models on Hugging Face.

use crate::{
    client::{Client, admin_path, read},
    output,
};
use serde::Deserialize;
use tierbar_core::{Error, catalog::HubModel};

#[derive(Debug, Deserialize)]
struct SearchResults {
    models: Vec<HubModel>,
}

pub(super) async fn run(client: &Client, words: &str, as_json: bool) -> Result<(), Error> {
    let body = client
        .get(&admin_path(&["hub", "search"], &[("q", words)]))
        .await?;
    if as_json {
        output::write_json(&body);
        return Ok(());
    }
    let SearchResults { models } = read(body)?;
    if models.is_empty() {
        output::error_line(
            "Found no GGUF models. Try fewer words, or see what suits this machine: tierbar models show",
        );
    }
    for HubModel {
        repository,
        downloads,
        gated,
        ..
    } in models
    {
        let gated = if gated { "  requires a license" } else { "" };
        output::write_line(&format!(
            "{repository:<60} {downloads:>10} downloads{gated}"
        ));
    }
    Ok(())
}
