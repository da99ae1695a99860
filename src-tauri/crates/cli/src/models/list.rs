//! `tierbar models list` and `tierbar models import`.

use crate::{
    client::{Client, read_answer, read_field},
    output,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;
use tierbar_core::{
    Code, Error, Modality, bad_request,
    budget::Placement,
    fit::{Keeper, LibraryModel},
    nearest::suggest,
    units::file_size,
    volume::ModelDisk,
};

#[derive(Debug, clap::Args)]
#[group(id = "list")]
pub(crate) struct Args {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

const PATH: &str = "/tierbar/v1/models";

#[derive(Debug, Deserialize)]
pub(super) struct ModelList {
    models_dir: String,
    #[serde(default)]
    pub(super) disks: Vec<ModelDisk>,
    pub(super) models: Vec<LibraryModel>,
}

pub(super) async fn fetch_models(client: &Client) -> Result<ModelList, Error> {
    read_answer(client.get(PATH).await?)
}

/// Returns what is free on the disk of the models folder, if that is known.
pub(super) async fn free_bytes(client: &Client) -> Option<u64> {
    let list = fetch_models(client).await.ok()?;
    list.disks.first().map(|disk| disk.free_bytes)
}

/// Finds a model on this machine by its ID, the name of its file or its path.
pub(super) async fn find_model(client: &Client, name: &str) -> Result<LibraryModel, Error> {
    let wanted = super::absolute_if_path(name);
    let id = wanted.strip_suffix(".gguf").unwrap_or(&wanted);
    let mut models = fetch_models(client).await?.models;
    let is_wanted = |model: &LibraryModel| model.id.as_str() == id || model.path == wanted;
    if let Some(at) = models.iter().position(is_wanted) {
        return Ok(models.swap_remove(at));
    }
    let ids = models.iter().map(|model| model.id.as_str());
    let all = "run `tierbar models` for the list, or `tierbar models pull`";
    let message = format!("there is no model \"{wanted}\"");
    Err(Error::new(Code::ModelMissing, message).hint(suggest(id, ids, all)))
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let body = client.get(PATH).await?;
    output::write_answer(args.json, body, |list: ModelList| {
        let folder = &list.models_dir;
        if list.models.is_empty() {
            output::error_line(&format!(
                "There are no models in {folder}.\n  Run `tierbar models pull gemma-4-e4b`, or put a .gguf file in the folder."
            ));
            return String::new();
        }
        let disks: String = list.disks.iter().map(disk_line).collect();
        render_models(folder, &list.models) + &disks
    })
}

/// Returns how much of a disk the models take, and what is left.
fn disk_line(disk: &ModelDisk) -> String {
    format!(
        "On the disk of {}: {} of models, {} free of {}.\n",
        disk.folder,
        file_size(disk.models_bytes()),
        file_size(disk.free_bytes),
        file_size(disk.size_bytes)
    )
}

/// Prints the models of other apps on this machine.
pub(super) async fn of_other_apps(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut models = fetch_models(client).await?.models;
    models.retain(|model| describe_keeper(model.keeper).is_some());
    let none = "Found no models in LM Studio, Ollama or the Hugging Face cache.\n  To add another folder: tierbar models import FOLDER";
    write_used_in_place(as_json, json!({"models": models}), none)
}

pub(super) async fn import(client: &Client, path: &Path, as_json: bool) -> Result<(), Error> {
    let path = std::path::absolute(path)
        .map_err(|error| bad_request(format!("{}: {error}", path.display())))?;
    let Some(path) = path.to_str() else {
        let message = format!("{} is not valid UTF-8", path.display());
        return Err(bad_request(message));
    };
    let body = json!({"path": path});
    let imported = client.post("/tierbar/v1/models/import", &body).await?;
    let none = "The folder has no models yet. Tierbar adds them when they appear.";
    write_used_in_place(as_json, imported, none)
}

/// Prints models that are not in the models folder.
fn write_used_in_place(as_json: bool, answer: Value, none: &str) -> Result<(), Error> {
    if as_json {
        output::write_json(&answer);
        return Ok(());
    }
    let models: Vec<LibraryModel> = read_field(answer, "models")?;
    if models.is_empty() {
        output::error_line(none);
        return Ok(());
    }
    let head = "Used in place; never copied or changed:";
    output::write(&render_models(head, &models));
    Ok(())
}

fn render_models(head: &str, models: &[LibraryModel]) -> String {
    let longest = models.iter().map(|model| model.id.as_str().chars().count());
    let width = longest.max().unwrap_or(0).min(56);
    let mut text = format!("{head}\n");
    for model in models {
        let size = file_size(model.size_bytes);
        let mut about = Vec::new();
        if let Some(account) = &model.account {
            about.push(format!(
                "{} {}, trained for {} tokens",
                account.architecture, account.quant, account.context_train
            ));
        }
        if let Some(verdict) = &model.fit {
            match verdict.placement {
                Placement::Resident => {}
                Placement::Mmap | Placement::Advise | Placement::Cache | Placement::Stream => {
                    about.push("partly read from disk while it runs".to_owned())
                }
                Placement::Refused => about.push("does not fit in memory".to_owned()),
            }
        }
        about.extend(describe_media(model));
        about.extend(describe_keeper(model.keeper).map(str::to_owned));
        if !model.tiers.is_empty() {
            let tiers: Vec<_> = model.tiers.iter().map(|tier| tier.as_str()).collect();
            about.push(format!("used by {}", tiers.join(", ")));
        }
        about.extend(model.error.clone());
        let id = model.id.as_str();
        text += &format!("  {id:<width$} {size:>9}  {}\n", about.join("; "));
    }
    text
}

/// Returns what the model takes besides text, or why it does not.
fn describe_media(model: &LibraryModel) -> Option<String> {
    if let Some(error) = &model.projector_error {
        return Some(format!("accepts only text: {error}"));
    }
    if let (Some(_), Some(bytes)) = (&model.projector, model.projector_bytes) {
        let takes = Modality::list(&model.input_modalities);
        return Some(format!("takes {takes}, projector {}", file_size(bytes)));
    }
    model.projector_offer.as_ref()?;
    let id = &model.id;
    Some(format!(
        "accepts only text; `tierbar models pull {id} --only-media` adds images and sound"
    ))
}

/// Returns where a model of another app is.
fn describe_keeper(keeper: Keeper) -> Option<&'static str> {
    match keeper {
        Keeper::Tierbar | Keeper::Folder => None,
        Keeper::LmStudio => Some("in LM Studio"),
        Keeper::Ollama => Some("in Ollama"),
        Keeper::HuggingFace => Some("in the Hugging Face cache"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::volume::KeptModels;

    #[test]
    fn a_disk_is_described_in_decimal_units() {
        let kept = |keeper, bytes| KeptModels { keeper, bytes };
        let disk = ModelDisk {
            folder: "/data/models".to_owned(),
            size_bytes: 500_000_000_000,
            free_bytes: 112_000_000_000,
            models: vec![
                kept(Keeper::Tierbar, 3_000_000_000),
                kept(Keeper::Ollama, 1_500_000_000),
            ],
        };
        assert_eq!(
            disk_line(&disk),
            "On the disk of /data/models: 4.5 GB of models, 112 GB free of 500 GB.\n"
        );
    }
}
