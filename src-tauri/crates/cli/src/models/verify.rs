//! `tierbar models verify`: compares models with their recorded checksums.

use super::list;
use crate::{
    client::{Client, admin_path},
    output,
};
use serde_json::{Value, json};
use tierbar_core::{Code, Error};

pub(super) async fn run(client: &Client, model: Option<&str>, as_json: bool) -> Result<(), Error> {
    let models = match model {
        Some(model) => vec![super::absolute_if_path(model)],
        None => {
            let listed = list::fetch_models(client).await?.models;
            listed.into_iter().map(|model| model.id.0).collect()
        }
    };
    if models.is_empty() && !as_json {
        output::error_line("There are no models to verify.");
    }
    let one = models.len() == 1;
    let (mut wrong, mut failed) = (Vec::new(), false);
    for model in models {
        let path = admin_path(&["models", &model, "verify"], &[]);
        match client.post(&path, &json!({})).await {
            Ok(mut verified) => {
                if as_json {
                    verified["model"] = model.as_str().into();
                    output::write_json(&verified);
                } else {
                    output::write(&render_verification(&model, &verified));
                }
                if verified["matches"] == false {
                    wrong.push(model);
                }
            }
            // With one model, its error is the outcome.
            Err(error) if one => return Err(error),
            Err(error) => {
                output::write_error(&error);
                failed = true;
            }
        }
    }
    match (wrong.as_slice(), failed) {
        ([], false) => Ok(()),
        ([], true) => Err(Error::new(Code::Storage, "some models could not be read")),
        (wrong, _) => {
            let message = format!("checksum mismatch: {}", wrong.join(", "));
            Err(Error::new(Code::Corrupt, message)
                .hint("delete the damaged model and download it again"))
        }
    }
}

fn render_verification(model: &str, verified: &Value) -> String {
    let sha256 = verified["sha256"].as_str().unwrap_or_default();
    let outcome = match verified["matches"].as_bool() {
        Some(true) => "ok",
        Some(false) => "DAMAGED",
        None => "unknown",
    };
    let mut text = format!("{outcome:<8} {sha256}  {model}\n");
    let damaged = verified["damaged"].as_array().into_iter().flatten();
    for file in damaged.filter_map(Value::as_str) {
        text += &format!("         {file}\n");
    }
    text
}
