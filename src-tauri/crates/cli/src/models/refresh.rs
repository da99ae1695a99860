//! `tierbar models refresh`: updates the list of models from Hugging Face.

use crate::{client::Client, output};
use serde_json::json;
use tierbar_core::{Error, catalog::CatalogRefresh};

#[derive(Debug, clap::Args)]
#[group(id = "refresh")]
pub(crate) struct Args {
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let path = "/tierbar/v1/catalog/refresh";
    let body = client.post(path, &json!({})).await?;
    output::write_answer(args.json, body, |outcome| render_refresh(&outcome))
}

fn render_refresh(outcome: &CatalogRefresh) -> String {
    let updated = outcome.updated.len();
    let all = updated + outcome.failed.len();
    let mut text = format!("Updated {updated} of {all} models.\n");
    for failure in &outcome.failed {
        text += &format!("  {} not updated: {}\n", failure.name, failure.reason);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_outcome_names_the_failures() {
        let outcome = serde_json::from_value(json!({
            "refreshed": "2026-11-26T07:00:00Z", "updated": ["a", "b"],
            "failed": [{"id": "c", "name": "C", "repository": "o/c", "reason": "the hub has no repository o/c"}],
        }))
        .unwrap();
        assert_eq!(
            render_refresh(&outcome),
            "Updated 2 of 3 models.\n  C not updated: the hub has no repository o/c\n"
        );
    }
}
