//! `tierbar models search`: finds models on Hugging Face.

use crate::{
    client::{Client, admin_path},
    output,
};
use tierbar_core::{Error, catalog::HubModel};

pub(super) async fn run(client: &Client, words: &str, as_json: bool) -> Result<(), Error> {
    let path = admin_path(&["hub", "search"], &[("q", words)]);
    let found = client.get(&path).await?;
    let none = "Found no GGUF models. Try fewer words, or see what suits this machine: tierbar models show";
    output::write_list(as_json, found, "models", none, |model: &HubModel| {
        let gated = if model.gated {
            "  requires a license"
        } else {
            ""
        };
        let (repository, downloads) = (&model.repository, model.downloads);
        format!("{repository:<60} {downloads:>10} downloads{gated}")
    })
}
