//! `tierbar models`: what lies in the models folder.

use crate::{client::Client, output};
use serde_json::Value;
use std::path::PathBuf;
use tierbar_core::{Error, budget::gib};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let listed = client.get("/tierbar/v1/models").await;
    client.close().await;
    let body = listed?;
    if args.json {
        output::line(&body.to_string());
    } else {
        output::write(&text(&body));
    }
    Ok(())
}

fn text(body: &Value) -> String {
    let folder = body["models_dir"].as_str().unwrap_or_default();
    let models = body["models"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if models.is_empty() {
        return format!("There is no model in {folder}. Put a .gguf file there.\n");
    }
    let mut text = format!("{folder}\n");
    for model in models {
        let id = model["id"].as_str().unwrap_or_default();
        let size = gib(model["size_bytes"].as_u64().unwrap_or(0));
        let about = match (&model["account"], model["error"].as_str()) {
            (_, Some(error)) => error.to_owned(),
            (account, None) => format!(
                "{} {}, trained for {} tokens",
                account["architecture"].as_str().unwrap_or_default(),
                account["quant"].as_str().unwrap_or_default(),
                account["context_train"]
            ),
        };
        text += &format!("  {id:<44} {size:>9}  {about}\n");
    }
    text
}
